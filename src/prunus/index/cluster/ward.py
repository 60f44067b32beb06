"""``ward`` (default): Ward's linkage, cut where a parent has about ``fan_out`` children and keeps the limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.ports import ClusterItems, ClusterLimits, Ints
from ._groups import finish, whole_layer
from ._linkage import chain, graph, halves


class Engine:
    """Agglomerative clustering by Ward's linkage of the means of leaves; it needs no summaries.

    Up to ``whole`` items the linkage is exact. Above, it uses only the distances to the nearest neighbours. Above
    ``part`` items, the items are split first, so that time stays linear and memory bounded.

    :param whole: most items for an exact linkage; memory is 4 × whole² bytes.
    :param neighbours: neighbours of each item in the graph.
    :param part: most items that are clustered together.
    """

    name = "ward"
    needs_summaries = False
    last_layer = 1
    by_shards = True

    def __init__(self, whole: int = 2000, neighbours: int = 15, part: int = 8000) -> None:
        self.whole, self.neighbours, self.part = whole, neighbours, part

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return disjoint groups that cover the layer, in order; one group where the layer is small."""
        result = whole_layer(items, limits)
        if result is not None:
            return result
        vectors = np.nan_to_num(np.asarray(items.vectors, np.float32))
        groups: list[list[int]] = []
        for part in halves(vectors, np.arange(len(vectors)), self.part):
            groups += self._groups(vectors[part], part, items.tokens, limits)
        return finish(groups, items, limits)

    def _groups(self, vectors: Any, part: Ints, tokens: Ints, limits: ClusterLimits) -> list[list[int]]:
        """Cluster one part; identical items count as one point with a weight."""
        points = _join_identical(vectors, part, tokens, limits)
        point_vectors = np.stack([vectors[place] for place, _ in points])
        weights = np.asarray([len(members) for _, members in points], np.float32)
        groups = _Groups([members for _, members in points], tokens, limits)
        target = max(1, round(len(part) / limits.fan_out))
        if len(points) <= self.whole:
            for first, second in chain(point_vectors, weights):
                if groups.left <= target:
                    break
                groups.merge(first, second)
        else:
            for _ in graph(point_vectors, weights, self.neighbours, groups.join):
                if groups.left <= target:
                    break
        return groups.members()


def _join_identical(vectors: Any, part: Ints, tokens: Ints, limits: ClusterLimits) -> list[tuple[int, list[int]]]:
    """Join identical items as far as the limits allow; return (place in the part, items) of each point."""
    latest: dict[bytes, int] = {}
    points: list[tuple[int, list[int]]] = []
    totals: list[int] = []
    for index, item in enumerate(part.tolist()):
        key = vectors[index].tobytes()
        point = latest.get(key, -1)
        size = int(tokens[item])
        if point >= 0 and limits.fits(len(points[point][1]) + 1, totals[point] + size):
            points[point][1].append(item)
            totals[point] += size
        else:
            latest[key] = len(points)
            points.append((index, [item]))
            totals.append(size)
    return points


class _Groups:
    """Groups that are merged pair by pair and never exceed the limits."""

    def __init__(self, points: list[list[int]], tokens: Ints, limits: ClusterLimits) -> None:
        self._own = [list(members) for members in points]
        self._tokens: NDArray[np.int64] = np.asarray([int(np.sum(tokens[members])) for members in points], np.int64)
        self._limits = limits
        self._above = list(range(len(points)))  # union-find over the dendrogram's clusters
        self._open = list(range(len(points)))  # of each cluster, its group that can still grow
        self.left = len(points)

    def join(self, first: int, second: int) -> bool:
        """Join two groups where they keep the limits together; return whether they were joined."""
        total = int(self._tokens[first] + self._tokens[second])
        if not self._limits.fits(len(self._own[first]) + len(self._own[second]), total):
            return False
        self._own[first] += self._own[second]
        self._own[second] = []
        self._tokens[first] = total
        self.left -= 1
        return True

    def merge(self, first_point: int, second_point: int) -> None:
        """Follow a merge of the dendrogram; where the two groups exceed the limits together, the smaller stays open."""
        first, last = self._cluster(first_point), self._cluster(second_point)
        first_group, second_group = self._open[first], self._open[last]
        self._above[last] = first
        if not self.join(first_group, second_group):
            self._open[first] = min(first_group, second_group, key=lambda group: (len(self._own[group]), group))

    def members(self) -> list[list[int]]:
        """Return the groups."""
        return [members for members in self._own if members]

    def _cluster(self, point: int) -> int:
        while self._above[point] != point:
            self._above[point] = self._above[self._above[point]]
            point = self._above[point]
        return point
