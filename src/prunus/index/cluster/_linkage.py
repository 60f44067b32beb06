"""Ward's linkage: whole (nearest-neighbour chain) for some thousand points, on a neighbour graph for more.

The distance of two clusters is what joining them adds to the sum of squared deviations:
|a||b| / (|a| + |b|) · ‖mean(a) − mean(b)‖² (Ward 1963).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Vectors

Merge = tuple[int, int]
"""Two points; the clusters that they are in are joined."""

_BLOCK_BYTES = 32 * 1024 * 1024
"""Similarities that are held at a time while neighbours are looked for."""


def chain(vectors: Vectors, weights: NDArray[np.float32]) -> list[Merge]:
    """Return all merges of the dendrogram, lowest first, by the nearest-neighbour chain.

    Memory is n² × 4 bytes, time O(n²).
    """
    size = weights.astype(np.float32).copy()
    squares = np.einsum("ij,ij->i", vectors, vectors)
    near = np.asarray(vectors @ vectors.T, np.float32)
    near *= -2
    near += squares
    near += squares[:, None]
    np.maximum(near, 0, out=near)
    for row in range(len(near)):
        near[row] *= size[row] * size / (size[row] + size)
    np.fill_diagonal(near, np.inf)
    found: list[tuple[float, int, int]] = []
    path: list[int] = []
    alive = np.ones(len(near), bool)
    for _ in range(len(near) - 1):
        if not path:
            path.append(int(alive.argmax()))
        while True:
            top = path[-1]
            row = near[top]
            best = int(row.argmin())
            if len(path) > 1 and row[path[-2]] <= row[best]:
                break
            path.append(best)
        top, best = path.pop(), path.pop()
        height = near[top, best]
        found.append((float(height), top, best))
        joined = (size + size[top]) * near[top] + (size + size[best]) * near[best] - size * height
        joined /= size + size[top] + size[best]
        near[best] = near[:, best] = joined
        near[top] = near[:, top] = np.inf
        near[best, best] = np.inf
        size[best] += size[top]
        alive[top] = False
    found.sort(key=lambda merge: merge[0])  # stable: of equal heights the earlier merge stays first
    return [(one, other) for _, one, other in found]


def graph(
    vectors: Vectors, weights: NDArray[np.float32], neighbours: int, join: Callable[[int, int], bool]
) -> Iterator[Merge]:
    """Yield merges along the graph of nearest neighbours, lowest first.

    Joining clusters brings none nearer to a third (Ward's linkage is reducible), so an edge whose ends
    have grown is put back with its new length only when it comes up.

    :param join: told the two clusters; False leaves them apart for good.
    """
    means, size = vectors.copy(), weights.astype(np.float64)
    parent = list(range(len(vectors)))
    grown = [0] * len(vectors)

    def length(one: int, other: int) -> float:
        apart = means[one] - means[other]
        return float(size[one] * size[other] / (size[one] + size[other]) * (apart @ apart))

    heap: list[tuple[float, int, int, int, int]] = [
        (length(one, other), one, other, 0, 0) for one, other in _edges(vectors, neighbours)
    ]
    heapq.heapify(heap)
    seen: set[tuple[int, int, int, int]] = set()
    while heap:
        _, one, other, before, after = heapq.heappop(heap)
        now = _root(parent, one), _root(parent, other)
        if now[0] == now[1]:
            continue
        state = grown[now[0]], grown[now[1]]
        if now != (one, other) or state != (before, after):
            first, last = sorted(now)
            key = (first, last, grown[first], grown[last])
            if key not in seen:
                seen.add(key)
                heapq.heappush(heap, (length(first, last), *key))
            continue
        if not join(one, other):
            continue
        total = size[one] + size[other]
        means[one] = (size[one] * means[one] + size[other] * means[other]) / total
        size[one] = total
        parent[other] = one
        grown[one] += 1
        yield one, other


def _edges(vectors: Vectors, neighbours: int) -> list[Merge]:
    """Return pairs of near points, each once, found by comparing all in blocks of bounded memory."""
    count = len(vectors)
    wanted = min(neighbours, count - 1)
    rows = max(1, _BLOCK_BYTES // (4 * count))
    pairs: list[NDArray[Any]] = []
    for start in range(0, count, rows):
        block = vectors[start : start + rows]
        alike = block @ vectors.T
        own = np.arange(len(block))
        alike[own, start + own] = -np.inf
        near = np.argpartition(-alike, wanted - 1, axis=1)[:, :wanted]
        first = np.repeat(start + own, wanted)
        last = near.ravel()
        pairs.append(np.minimum(first, last) * count + np.maximum(first, last))
    keys = np.unique(np.concatenate(pairs))
    return list(zip((keys // count).tolist(), (keys % count).tolist(), strict=True))


def _root(parent: list[int], point: int) -> int:
    while parent[point] != point:
        parent[point] = parent[parent[point]]
        point = parent[point]
    return point


def halves(vectors: Vectors, members: NDArray[np.int64], largest: int) -> Iterator[NDArray[np.int64]]:
    """Part points into halves along the line between two far ones, until no part is over ``largest``."""
    todo = [members]
    while todo:
        part = todo.pop()
        if len(part) <= largest:
            yield part
            continue
        own = vectors[part]
        one = own[int((own @ own.mean(axis=0)).argmin())]
        other = own[int((own @ one).argmin())]
        for _ in range(4):  # a few steps of 2-means turn the line towards the two bulks
            side = own @ (other - one) > 0
            if side.all() or not side.any():
                break
            one, other = own[~side].mean(axis=0), own[side].mean(axis=0)
        order = np.argsort(own @ (other - one), kind="stable")
        middle = len(part) // 2
        todo += [np.sort(part[order[middle:]]), np.sort(part[order[:middle]])]
