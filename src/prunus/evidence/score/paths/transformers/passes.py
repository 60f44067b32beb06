"""Forward passes over a token tree: all at once with a tree mask, depth-first, or again for every branch.

The prompt is read once, in chunks, into a plain cache of keys and values; a sliding window is a matter
of the mask alone, so that such a cache can be cropped. Everything behind the prompt is cropped off in
the end, and the next question on the same page reads only what differs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .....core.errors import OutsideFailed
from .....core.ports import TokenTree

KINDS: Final = frozenset({"full_attention", "sliding_attention", "chunked_attention"})
"""Kinds of layer for which a tree mask can be written; a recurrent layer has no mask."""


@dataclass(slots=True)
class CountingModel:
    """Runs a model, and counts what it costs.

    :param model: a causal language model of transformers.
    :param rows: multiply only the rows of the output head that are asked for.
    :param deadline: as of ``time.monotonic``.
    """

    model: Any
    rows: bool = True
    deadline: float = float("inf")
    forwards: int = 0
    tokens: int = 0
    reused: int = 0
    logits: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        cache: Any = None,
        mask: Any = None,
        asked: Sequence[tuple[int, NDArray[np.int64]]] = (),
    ) -> list[NDArray[np.float64]]:
        """Read tokens behind what the cache holds.

        :param mask: additive, [1, 1, ids, cached + ids], or a dict of them by kind of layer; None is causal.
        :param asked: places among ``ids`` with the tokens that may come next.
        :returns: the logits of those tokens, a float64 array for each place asked.
        :raises OutsideFailed: out of time.
        """
        import torch

        if time.monotonic() > self.deadline:
            raise OutsideFailed("generative: the model took longer than a call may; see path_options: total")
        device = self.model.device
        given = {
            "input_ids": torch.tensor([list(ids)], device=device),
            "attention_mask": mask,
            "past_key_values": cache,
            "use_cache": cache is not None,
        }
        if takes_positions(self.model):
            given["position_ids"] = torch.tensor([list(positions)], device=device)
        self.forwards += 1
        self.tokens += len(ids)
        places = torch.tensor([place for place, _ in asked], dtype=torch.long, device=device)
        if self.rows or not asked:
            hidden = self.model.base_model(**given)[0]
            return child_logits(self.model, hidden[0, places], [tokens for _, tokens in asked]) if asked else []
        found = self.model(**given, logits_to_keep=places).logits[0].double().cpu().numpy()
        return [found[row, tokens] for row, (_, tokens) in enumerate(asked)]

    def prefill(self, ids: Sequence[int], known: int, cache: Any, tree: TokenTree, chunk: int) -> None:
        """Read the prompt from token ``known`` on, and the logits at its end where the tree branches there."""
        for start in range(known, len(ids), chunk):
            stop = min(start + chunk, len(ids))
            at_end = stop == len(ids) and len(tree.branching) > 0 and tree.branching[0] == 0
            asked = [(stop - start - 1, tree.token[tree.children[0]])] if at_end else []
            found = self.read(ids[start:stop], range(start, stop), cache, None, asked)
            if at_end:
                self.logits[0] = found[0]


def takes_positions(model: Any) -> bool:
    """Tell whether a model is told the positions of its tokens; one that counts them itself reads no tree."""
    return "position_ids" in signature(model.forward).parameters


def child_logits(model: Any, hidden: Any, wanted: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Multiply hidden states by the rows of the output head that are asked for, in float32 at least.

    :param hidden: [places, width].
    :param wanted: tokens asked for at each place.
    """
    import torch

    head = model.get_output_embeddings()
    tokens, inverse = np.unique(np.concatenate(wanted), return_inverse=True)
    index = torch.as_tensor(tokens, device=head.weight.device)
    kind = torch.promote_types(hidden.dtype, torch.float32)
    found = hidden.to(kind) @ head.weight[index].to(kind).T
    if getattr(head, "bias", None) is not None:
        found = found + head.bias[index].to(kind)
    found = _finished(model.config.get_text_config(decoder=True), found).double().cpu().numpy()
    ends = np.cumsum([len(one) for one in wanted])
    columns = np.split(inverse, ends[:-1])
    return [found[place, column] for place, column in enumerate(columns)]


def _finished(config: Any, logits: Any) -> Any:
    """Scale and cap logits as the model's family does behind its output head."""
    scale, divisor, cap = (
        getattr(config, name, None) for name in ("logit_scale", "logits_scaling", "final_logit_softcapping")
    )
    if scale:
        logits = logits * scale
    if divisor:
        logits = logits / divisor
    if cap:
        logits = (logits / cap).tanh() * cap
    return logits


def tree_pass(reader: CountingModel, tree: TokenTree, prompt: int, cache: Any, chunk: int) -> None:
    """Read the flattened tree behind a prompt of ``prompt`` tokens in one pass, or in chunks of ``chunk``."""
    nodes = tree.read
    depth = tree.depth[nodes]
    ends = _subtree_ends(tree, nodes)
    children = dict(zip(tree.branching.tolist(), tree.children, strict=True))
    for start in range(0, len(nodes), chunk):
        part = nodes[start : start + chunk]
        mask = tree_masks(reader.model, (start, start + len(part)), depth, ends, prompt)
        asked = [(place, tree.token[children[node]]) for place, node in enumerate(part.tolist()) if node in children]
        positions = (prompt + tree.depth[part] - 1).tolist()
        found = reader.read(tree.token[part].tolist(), positions, cache, mask, asked)
        for (place, _), logits in zip(asked, found, strict=True):
            reader.logits[int(part[place])] = logits


def _subtree_ends(tree: TokenTree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one past the last descendant of each node that is read, among these."""
    place = np.full(len(tree), -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    ends = np.arange(1, len(nodes) + 1)
    for row in range(len(nodes) - 1, -1, -1):
        above = place[tree.parent[nodes[row]]]
        if above >= 0:
            ends[above] = max(ends[above], ends[row])
    return ends


def tree_masks(
    model: Any, rows: tuple[int, int], depth: NDArray[np.int64], ends: NDArray[np.int64], prompt: int
) -> Any:
    """Return the additive mask of some rows of the tree: the prompt, a node's ancestors and itself.

    Added numbers work for sdpa and eager attention alike; eager takes a mask of booleans for numbers.
    Where the model's layers differ, there is one mask for each kind.
    """
    own = np.arange(*rows)
    before = np.arange(rows[1])
    tree_part = (before[None] <= own[:, None]) & (own[:, None] < ends[before][None])
    visible = np.concatenate([np.ones((len(own), prompt), bool), tree_part], axis=1)
    row_position = prompt + depth[own] - 1
    position = np.concatenate([np.arange(prompt), prompt + depth[before] - 1])
    masks = {
        kind: _additive(model, visible & _in_reach(model, kind, row_position, position)) for kind in layer_kinds(model)
    }
    return masks if len(masks) > 1 else next(iter(masks.values()))


def layer_kinds(model: Any) -> list[str]:
    """Return the kinds of attention that a model's layers use."""
    config = model.config.get_text_config(decoder=True)
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return sorted(set(kinds))
    return ["sliding_attention" if getattr(config, "sliding_window", None) else "full_attention"]


def _in_reach(model: Any, kind: str, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which positions a kind of layer sees from each row's position."""
    config = model.config.get_text_config(decoder=True)
    if kind == "sliding_attention":
        return np.asarray(columns[None] > rows[:, None] - int(config.sliding_window))
    if kind == "chunked_attention":
        size = int(config.attention_chunk_size)
        return np.asarray(columns[None] // size == rows[:, None] // size)
    return np.ones((len(rows), len(columns)), bool)


def _additive(model: Any, visible: NDArray[np.bool_]) -> Any:
    import torch

    mask = torch.zeros(visible.shape, dtype=model.dtype, device=model.device)
    mask.masked_fill_(torch.from_numpy(~visible).to(model.device), torch.finfo(model.dtype).min)
    return mask[None, None]


def crop(cache: Any, length: int) -> None:
    """Crop a cache to its first tokens."""
    beyond = cache.get_seq_length() - length
    if beyond > 0:  # 0 means nothing to some versions, and everything to others
        cache.crop(-beyond)


def depth_first(reader: CountingModel, tree: TokenTree, prompt: int, cache: Any, crops: bool) -> None:
    """Read the tree branch by branch, keeping what branches share (HtmlRAG, Algorithm 3).

    :param crops: whether the cache can be cropped; else it is copied where several branches go on.
    """
    children = dict(zip(tree.branching.tolist(), tree.children, strict=True))
    kept = {0: cache}
    for chain in _chains(tree):
        above, last = int(tree.parent[chain[0]]), chain[-1]
        if crops:
            crop(cache, prompt + int(tree.depth[above]))
        else:
            kept = {node: kept[node] for node in _upwards(tree, above) if node in kept}
            cache = copy.deepcopy(kept[above])
        positions = (prompt + tree.depth[chain] - 1).tolist()
        asked = [(len(chain) - 1, tree.token[children[last]])]
        reader.logits[last] = reader.read(tree.token[chain].tolist(), positions, cache, None, asked)[0]
        if not crops:
            kept[last] = cache


def _upwards(tree: TokenTree, node: int) -> list[int]:
    """Return a node and all above it, node 0 last."""
    found = [node]
    while found[-1] > 0:
        found.append(int(tree.parent[found[-1]]))
    return found


def _chains(tree: TokenTree) -> list[list[int]]:
    """Cut the nodes that are read into runs without a branch, each down to a branching node, in preorder."""
    branching = set(tree.branching.tolist())
    found: list[list[int]] = []
    run: list[int] = []
    for node in tree.read.tolist():
        run.append(node)
        if node in branching:
            found.append(run)
            run = []
    return found


def again_for_every_branch(reader: CountingModel, tree: TokenTree, ids: Sequence[int]) -> None:
    """Read prompt and path anew for every branching node: what a model without any cache needs."""
    for node, children in zip(tree.branching.tolist(), tree.children, strict=True):
        whole = [*ids, *tree.path(node)]
        asked = [(len(whole) - 1, tree.token[children])]
        reader.logits[node] = reader.read(whole, range(len(whole)), None, None, asked)[0]


def again_for_every_path(reader: CountingModel, tree: TokenTree, ids: Sequence[int]) -> None:
    """Brute force, the oracle: read prompt and path anew for every leaf, by plain causal passes."""
    children = dict(zip(tree.branching.tolist(), tree.children, strict=True))
    inner = set(tree.parent.tolist())
    for leaf in range(1, len(tree)):
        if leaf in inner:
            continue
        last = int(tree.parent[leaf])
        whole = [*ids, *tree.path(last)]
        above = [one for one in _upwards(tree, last) if one in children]
        asked = [(len(ids) - 1 + int(tree.depth[one]), tree.token[children[one]]) for one in above]
        found = reader.read(whole, range(len(whole)), None, None, asked)
        reader.logits.update(zip(above, found, strict=True))
