"""Forward passes over a token tree: all at once with a tree mask, depth-first, or with the prompt for every branch.

The prompt is read once, in chunks, into a plain cache of keys and values. Sliding windows are applied by
masks only, so that this cache can be cropped. At the end the cache is cropped back to the prompt, and the
next question on the same page reads only the tokens that differ.
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
"""Kinds of layer that obey a tree mask; a recurrent layer has no mask."""


@dataclass(slots=True)
class CountingModel:
    """Runs a model, counts passes and tokens, and collects the logits of branching nodes.

    :param model: a causal language model of transformers.
    :param rows: multiply only the rows of the output head that are needed.
    :param deadline: latest time of a pass, by ``time.monotonic``.
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
        wanted: Sequence[tuple[int, NDArray[np.int64]]] = (),
    ) -> list[NDArray[np.float64]]:
        """Read tokens behind the tokens in the cache.

        :param mask: additive mask [1, 1, ids, cached + ids], or a dict of masks by kind of layer; None is causal.
        :param wanted: pairs of a place in ``ids`` and the candidates for the next token.
        :returns: the logits of the candidates, one float64 array for each pair.
        :raises OutsideFailed: the deadline has passed.
        """
        import torch

        if time.monotonic() > self.deadline:
            raise OutsideFailed("generative: the model took longer than a call may; see path_options: total")
        device = self.model.device
        inputs = {
            "input_ids": torch.tensor([list(ids)], device=device),
            "attention_mask": mask,
            "past_key_values": cache,
            "use_cache": cache is not None,
        }
        if takes_positions(self.model):
            inputs["position_ids"] = torch.tensor([list(positions)], device=device)
        self.forwards += 1
        self.tokens += len(ids)
        places = torch.tensor([place for place, _ in wanted], dtype=torch.long, device=device)
        if self.rows or not wanted:
            hidden = self.model.base_model(**inputs)[0]
            return child_logits(self.model, hidden[0, places], [tokens for _, tokens in wanted]) if wanted else []
        logits = self.model(**inputs, logits_to_keep=places).logits[0].double().cpu().numpy()
        return [logits[row, tokens] for row, (_, tokens) in enumerate(wanted)]

    def prefill(self, ids: Sequence[int], known: int, cache: Any, tree: TokenTree, chunk: int) -> None:
        """Read the prompt in chunks.

        :param known: tokens of the prompt that the cache holds already.
        :param tree: where it branches at its root, the logits at the end of the prompt are collected.
        """
        for start in range(known, len(ids), chunk):
            stop = min(start + chunk, len(ids))
            at_end = stop == len(ids) and len(tree.branching) > 0 and tree.branching[0] == 0
            wanted = [(stop - start - 1, tree.token[tree.children[0]])] if at_end else []
            logits = self.read(ids[start:stop], range(start, stop), cache, None, wanted)
            if at_end:
                self.logits[0] = logits[0]


def takes_positions(model: Any) -> bool:
    """Tell whether a model takes the positions of its tokens; a model that counts them itself cannot read a tree."""
    return "position_ids" in signature(model.forward).parameters


def child_logits(model: Any, hidden: Any, wanted: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Multiply hidden states by the needed rows of the output head, in float32 at least.

    :param hidden: hidden states, [places, width].
    :param wanted: the tokens whose logits are needed, for each place.
    :returns: the logits of these tokens, one float64 array for each place.
    """
    import torch

    head = model.get_output_embeddings()
    tokens, inverse = np.unique(np.concatenate(wanted), return_inverse=True)
    index = torch.as_tensor(tokens, device=head.weight.device)
    kind = torch.promote_types(hidden.dtype, torch.float32)
    product = hidden.to(kind) @ head.weight[index].to(kind).T
    if getattr(head, "bias", None) is not None:
        product = product + head.bias[index].to(kind)
    logits = _scale_and_cap(model.config.get_text_config(decoder=True), product).double().cpu().numpy()
    ends = np.cumsum([len(candidates) for candidates in wanted])
    columns = np.split(inverse, ends[:-1])
    return [logits[at, column] for at, column in enumerate(columns)]


def _scale_and_cap(config: Any, logits: Any) -> Any:
    """Scale and cap logits as the model's family does after its output head."""
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
        wanted = [(index, tree.token[children[node]]) for index, node in enumerate(part.tolist()) if node in children]
        positions = (prompt + tree.depth[part] - 1).tolist()
        rows = reader.read(tree.token[part].tolist(), positions, cache, mask, wanted)
        for (index, _), logits in zip(wanted, rows, strict=True):
            reader.logits[int(part[index])] = logits


def _subtree_ends(tree: TokenTree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of these nodes the place after its last descendant among them."""
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
    """Return the additive mask of some nodes of the tree: each attends to the prompt, its ancestors and itself.

    An additive mask works for sdpa and for eager attention; eager attention would add a boolean mask as
    numbers. Where the kinds of the model's layers differ, there is one mask for each kind.

    :param rows: first node and one past the last node, as places among the nodes that are read.
    :param depth, ends: depth and end of the subtree of each node that is read.
    :param prompt: tokens of the prompt.
    """
    nodes = np.arange(*rows)
    before = np.arange(rows[1])
    tree_part = (before[None] <= nodes[:, None]) & (nodes[:, None] < ends[before][None])
    visible = np.concatenate([np.ones((len(nodes), prompt), bool), tree_part], axis=1)
    row_position = prompt + depth[nodes] - 1
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
    """Return which column positions a kind of layer can attend to from each row position, bool [rows, columns]."""
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
    """Crop a cache to its first ``length`` tokens."""
    beyond = cache.get_seq_length() - length
    if beyond > 0:  # versions of the library differ in what crop(0) does
        cache.crop(-beyond)


def depth_first(reader: CountingModel, tree: TokenTree, prompt: int, cache: Any, crops: bool) -> None:
    """Read the tree branch by branch; branches share the cache of their common tokens (HtmlRAG, Algorithm 3).

    :param crops: whether the cache can be cropped; otherwise it is copied for each branch.
    """
    children = dict(zip(tree.branching.tolist(), tree.children, strict=True))
    kept = {0: cache}
    for chain in _chains(tree):
        above, last = int(tree.parent[chain[0]]), chain[-1]
        if crops:
            crop(cache, prompt + int(tree.depth[above]))
        else:
            kept = {node: kept[node] for node in _node_and_ancestors(tree, above) if node in kept}
            cache = copy.deepcopy(kept[above])
        positions = (prompt + tree.depth[chain] - 1).tolist()
        wanted = [(len(chain) - 1, tree.token[children[last]])]
        reader.logits[last] = reader.read(tree.token[chain].tolist(), positions, cache, None, wanted)[0]
        if not crops:
            kept[last] = cache


def _node_and_ancestors(tree: TokenTree, node: int) -> list[int]:
    """Return a node and its ancestors, node 0 last."""
    nodes = [node]
    while nodes[-1] > 0:
        nodes.append(int(tree.parent[nodes[-1]]))
    return nodes


def _chains(tree: TokenTree) -> list[list[int]]:
    """Cut the nodes to read into chains that end at a branching node, in preorder."""
    branching = set(tree.branching.tolist())
    chains: list[list[int]] = []
    chain: list[int] = []
    for node in tree.read.tolist():
        chain.append(node)
        if node in branching:
            chains.append(chain)
            chain = []
    return chains


def again_for_every_branch(reader: CountingModel, tree: TokenTree, ids: Sequence[int]) -> None:
    """Read prompt and path again for every branching node, for a model without any cache."""
    for node, children in zip(tree.branching.tolist(), tree.children, strict=True):
        whole = [*ids, *tree.path(node)]
        wanted = [(len(whole) - 1, tree.token[children])]
        reader.logits[node] = reader.read(whole, range(len(whole)), None, None, wanted)[0]


def again_for_every_path(reader: CountingModel, tree: TokenTree, ids: Sequence[int]) -> None:
    """Read prompt and path again for every leaf by plain causal passes: slow, and the oracle of all other ways."""
    children = dict(zip(tree.branching.tolist(), tree.children, strict=True))
    inner = set(tree.parent.tolist())
    for leaf in range(1, len(tree)):
        if leaf in inner:
            continue
        last = int(tree.parent[leaf])
        whole = [*ids, *tree.path(last)]
        above = [node for node in _node_and_ancestors(tree, last) if node in children]
        wanted = [(len(ids) - 1 + int(tree.depth[node]), tree.token[children[node]]) for node in above]
        logits = reader.read(whole, range(len(whole)), None, None, wanted)
        reader.logits.update(zip(above, logits, strict=True))
