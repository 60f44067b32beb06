"""Several short prompts read at once, padded on the right: a causal model's earlier tokens do not see the padding."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import OutsideFailed
from ...ports import Branches, TokenTree
from ._passes import child_logits, takes_positions
from ._rope import held_for

_TOKENS: Final = 8_192
"""Tokens of one batch, padding included."""


def branches_of(model: Any, prompts: Sequence[Sequence[int]], tree: TokenTree, deadline: float) -> list[Branches]:
    """Return the logits of every branch of a tree behind each of several prompts.

    :param model: a causal language model of transformers.
    :param prompts: tokens of each, none of them empty.
    :param deadline: as of ``time.monotonic``.
    :raises OutsideFailed: out of time.
    """
    import torch

    nodes = tree.branching.tolist()
    behind = [tree.path(node) for node in nodes]
    rows = [(place, node, [*ids, *behind[node]]) for place, ids in enumerate(prompts) for node in range(len(nodes))]
    rows.sort(key=lambda row: len(row[2]))  # alike in length, so that little is padded
    wanted = [tree.token[children] for children in tree.children]
    found: list[list[NDArray[np.float64]]] = [[np.zeros(0)] * len(nodes) for _ in prompts]
    forwards, tokens = [0] * len(prompts), [0] * len(prompts)
    with torch.inference_mode(), held_for(model, max(map(len, (row[2] for row in rows)), default=0)):
        for batch in _batches(rows):
            if time.monotonic() > deadline:
                raise OutsideFailed("generative: the model took longer than a call may; see path_options: total")
            logits = _read(model, [ids for _, _, ids in batch], [wanted[node] for _, node, _ in batch])
            for (place, node, ids), one in zip(batch, logits, strict=True):
                found[place][node] = one
                tokens[place] += len(ids)
            forwards[batch[0][0]] += 1  # of the batch as a whole: counted once
    return [Branches(*three) for three in zip(found, forwards, tokens, strict=True)]


_Row = tuple[int, int, list[int]]


def _batches(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Part rows, ascending in length, into batches of a bounded size."""
    parts: list[list[_Row]] = []
    for row in rows:
        if parts and (len(parts[-1]) + 1) * len(row[2]) <= _TOKENS:
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


def _read(model: Any, batch: Sequence[Sequence[int]], wanted: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float64]]:
    """Return the logits of wanted tokens behind each row of a batch."""
    import torch

    longest, device = max(map(len, batch)), model.device
    ids = torch.zeros((len(batch), longest), dtype=torch.long, device=device)
    seen = torch.zeros_like(ids)
    for place, row in enumerate(batch):
        ids[place, : len(row)] = torch.tensor(list(row), device=device)
        seen[place, : len(row)] = 1
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": seen, "use_cache": False}
    if takes_positions(model):
        given["position_ids"] = torch.arange(longest, device=device)[None].expand(len(batch), -1)
    hidden = model.base_model(**given)[0]
    last = torch.tensor([len(row) - 1 for row in batch], device=device)
    return child_logits(model, hidden[torch.arange(len(batch), device=device), last], wanted)
