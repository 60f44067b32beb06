"""``contiguous``: neighbours in the text share a parent (RAPTOR, Appendix B, "recency-based" tree).

``contiguous`` groups windows of ``fan_out`` items. ``contiguous:segments`` cuts each document where its subject
changes, by dynamic programming.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UnknownEngine
from ...core.ports import ClusterItems, ClusterLimits, Ints
from ._groups import whole_layer, windows

_STEPS: Final = 12
"""Bisection steps of the search for the price of a border that gives the wanted number of segments."""


class Engine:
    """Groups consecutive items; a document of several items is not mixed with other documents.

    :param model: ``segments``, or '' for windows of fixed size.
    :raises UnknownEngine: the model is unknown.
    """

    name = "contiguous"
    needs_summaries = False
    last_layer = 1

    def __init__(self, model: str = "") -> None:
        if model not in ("", "segments"):
            raise UnknownEngine(f"contiguous:{model} is unknown; use contiguous or contiguous:segments", subject=model)
        self.model = model

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return groups of consecutive items that cover the layer."""
        result = whole_layer(items, limits)
        if result is not None:
            return result
        groups: list[list[int]] = []
        for run in _runs(items):
            if self.model:
                vectors = np.nan_to_num(np.asarray(items.vectors[run[0] : run[-1] + 1], np.float64))
                parts = [[run[0] + place for place in part] for part in _segments(vectors, items.tokens[run], limits)]
            else:
                parts = list(windows(run, items.tokens, limits))
            groups += _join_lone(parts, items.tokens, limits)
        return [np.asarray(group, np.int64) for group in _join_lone(groups, items.tokens, limits)]


def _runs(items: ClusterItems) -> list[list[int]]:
    """Split the items at the borders of documents; adjacent documents of one item form one run."""
    runs: list[list[int]] = []
    after_one = False
    for _, members in groupby(range(len(items.tokens)), key=lambda item: items.documents[item]):
        run = list(members)
        if len(run) == 1 and after_one:
            runs[-1] += run
        else:
            runs.append(run)
        after_one = len(run) == 1
    return runs


def _join_lone(groups: list[list[int]], tokens: Ints, limits: ClusterLimits) -> list[list[int]]:
    """Join a group of one item with the group before or after it, where the limits allow."""
    result: list[list[int]] = []
    for group in groups:
        lone = result and 1 in (len(group), len(result[-1]))
        if lone and limits.fits(len(result[-1]) + len(group), int(np.sum(tokens[result[-1] + group]))):
            result[-1] = result[-1] + group
        else:
            result.append(list(group))
    return result


def _segments(vectors: NDArray[np.float64], tokens: Ints, limits: ClusterLimits) -> list[list[int]]:
    """Cut one run into segments of about ``fan_out`` items with the least squared deviation from their means."""
    costs = _costs(vectors, tokens, limits)
    wanted = max(1, round(len(vectors) / limits.fan_out))
    low, high = 0.0, float(len(vectors)) + 1.0
    best = _cut(costs, high)
    for _ in range(_STEPS):
        price = (low + high) / 2
        borders = _cut(costs, price)
        if abs(len(borders) - wanted) <= abs(len(best) - wanted):
            best = borders
        low, high = (price, high) if len(borders) > wanted else (low, price)
    starts = [0, *best[:-1]]
    return [list(range(start, end)) for start, end in zip(starts, best, strict=True)]


def _costs(vectors: NDArray[np.float64], tokens: Ints, limits: ClusterLimits) -> NDArray[np.float64]:
    """Return the squared deviations of all segments, float64 [end, length - 1]; inf for a segment over the limits."""
    count, longest = len(vectors), max(2, min(limits.items, len(vectors)))
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.einsum("ij,ij->i", vectors, vectors))])
    sizes = np.concatenate([[0], np.cumsum(tokens)])
    costs: NDArray[Any] = np.full((count, longest), np.inf)
    for length in range(1, min(longest, count) + 1):
        inside = sums[length:] - sums[:-length]
        spread = squares[length:] - squares[:-length] - np.einsum("ij,ij->i", inside, inside) / length
        allowed = (length <= 2) | (sizes[length:] - sizes[:-length] <= limits.tokens)
        costs[length - 1 :, length - 1] = np.where(allowed, np.maximum(spread, 0.0), np.inf)
    return costs


def _cut(costs: NDArray[np.float64], price: float) -> list[int]:
    """Return the ends of the segments with the least total cost, where each border costs ``price``."""
    count, longest = costs.shape
    total = np.full(count + 1, np.inf)
    total[0] = 0.0
    length = np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        most = min(longest, end)
        sums = costs[end - 1, :most] + total[end - most : end][::-1]
        length[end] = int(sums.argmin()) + 1
        total[end] = sums[length[end] - 1] + price
    ends: list[int] = []
    end = count
    while end:
        ends.append(end)
        end -= int(length[end])
    return ends[::-1]
