"""Ward's linkage: exact (nearest-neighbour chain) for some thousand points, on a neighbour graph for more points.

The distance of two clusters is the increase of the sum of squared deviations when they are merged:
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
"""Two points, whose clusters are merged."""

_BLOCK_BYTES = 32 * 1024 * 1024
"""Bytes of the similarities that are in memory at a time during the search for neighbours."""


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
    result: list[tuple[float, int, int]] = []
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
        result.append((float(height), top, best))
        joined = (size + size[top]) * near[top] + (size + size[best]) * near[best] - size * height
        joined /= size + size[top] + size[best]
        near[best] = near[:, best] = joined
        near[top] = near[:, top] = np.inf
        near[best, best] = np.inf
        size[best] += size[top]
        alive[top] = False
    result.sort(key=lambda merge: merge[0])  # stable: merges of equal height keep their order
    return [(first, second) for _, first, second in result]


def graph(
    vectors: Vectors, weights: NDArray[np.float32], neighbours: int, join: Callable[[int, int], bool]
) -> Iterator[Merge]:
    """Yield merges along the graph of nearest neighbours, lowest first.

    A merge brings no cluster nearer to a third cluster (Ward's linkage is reducible). So the length of an edge whose
    ends have grown only needs to be updated when the edge reaches the top of the heap.

    :param weights: how many items each vector stands for, float32 [vectors].
    :param neighbours: neighbours of each vector in the graph.
    :param join: called with the two clusters; False keeps them apart for good.
    """
    means, size = vectors.copy(), weights.astype(np.float64)
    parent = list(range(len(vectors)))
    grown = [0] * len(vectors)

    def length(left: int, right: int) -> float:
        apart = means[left] - means[right]
        return float(size[left] * size[right] / (size[left] + size[right]) * (apart @ apart))

    heap: list[tuple[float, int, int, int, int]] = [
        (length(left, right), left, right, 0, 0) for left, right in _edges(vectors, neighbours)
    ]
    heapq.heapify(heap)
    seen: set[tuple[int, int, int, int]] = set()
    while heap:
        _, left, right, left_grown, right_grown = heapq.heappop(heap)
        now = _root(parent, left), _root(parent, right)
        if now[0] == now[1]:
            continue
        state = grown[now[0]], grown[now[1]]
        if now != (left, right) or state != (left_grown, right_grown):
            first, last = sorted(now)
            key = (first, last, grown[first], grown[last])
            if key not in seen:
                seen.add(key)
                heapq.heappush(heap, (length(first, last), *key))
            continue
        if not join(left, right):
            continue
        total = size[left] + size[right]
        means[left] = (size[left] * means[left] + size[right] * means[right]) / total
        size[left] = total
        parent[right] = left
        grown[left] += 1
        yield left, right


def _edges(vectors: Vectors, neighbours: int) -> list[Merge]:
    """Return the pairs of nearest neighbours, each once, by comparing all points in blocks of bounded memory."""
    count = len(vectors)
    wanted = min(neighbours, count - 1)
    rows = max(1, _BLOCK_BYTES // (4 * count))
    pairs: list[NDArray[Any]] = []
    for start in range(0, count, rows):
        block = vectors[start : start + rows]
        similarities = block @ vectors.T
        places = np.arange(len(block))
        similarities[places, start + places] = -np.inf
        near = np.argpartition(-similarities, wanted - 1, axis=1)[:, :wanted]
        first = np.repeat(start + places, wanted)
        second = near.ravel()
        pairs.append(np.minimum(first, second) * count + np.maximum(first, second))
    keys = np.unique(np.concatenate(pairs))
    return list(zip((keys // count).tolist(), (keys % count).tolist(), strict=True))


def _root(parent: list[int], point: int) -> int:
    while parent[point] != point:
        parent[point] = parent[parent[point]]
        point = parent[point]
    return point


def halves(vectors: Vectors, members: NDArray[np.int64], largest: int) -> Iterator[NDArray[np.int64]]:
    """Split points into halves along the line between two distant points, until no part is over ``largest``."""
    todo = [members]
    while todo:
        part = todo.pop()
        if len(part) <= largest:
            yield part
            continue
        points = vectors[part]
        pole = points[int((points @ points.mean(axis=0)).argmin())]
        antipode = points[int((points @ pole).argmin())]
        for _ in range(4):  # a few steps of 2-means turn the line towards the two densest parts
            side = points @ (antipode - pole) > 0
            if side.all() or not side.any():
                break
            pole, antipode = points[~side].mean(axis=0), points[side].mean(axis=0)
        order = np.argsort(points @ (antipode - pole), kind="stable")
        middle = len(part) // 2
        todo += [np.sort(part[order[middle:]]), np.sort(part[order[:middle]])]
