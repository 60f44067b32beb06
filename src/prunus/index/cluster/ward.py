"""``ward`` (default): Ward's linkage, cut to about ``fan_out`` children a parent and to the limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.ports import ClusterItems, ClusterLimits, Ints
from ._groups import finish, whole_layer
from ._linkage import chain, graph, halves


class Engine:
    """Agglomerative clustering by Ward's linkage; no summary is needed for it.

    A layer clusters the means of the layer below, as Ward's own dendrogram goes on. Up to ``whole``
    items all distances are known; above, only those to the nearest neighbours; above ``part``, items are
    parted first, so that time stays linear and memory bounded.

    :param whole: items up to which the linkage is whole; memory is 4 × whole² bytes.
    :param neighbours: of each item in the graph.
    :param part: items that are clustered together at most.
    """

    name = "ward"
    needs_summaries = False
    last_layer = 1

    def __init__(self, whole: int = 2000, neighbours: int = 15, part: int = 8000) -> None:
        self.whole, self.neighbours, self.part = whole, neighbours, part

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return disjoint groups that cover the layer, in order; one group where the layer is small."""
        found = whole_layer(items, limits)
        if found is not None:
            return found
        vectors = np.nan_to_num(np.asarray(items.vectors, np.float32))
        groups: list[list[int]] = []
        for part in halves(vectors, np.arange(len(vectors)), self.part):
            groups += self._groups(vectors[part], part, items.tokens, limits)
        return finish(groups, items, limits)

    def _groups(self, vectors: Any, part: Ints, tokens: Ints, limits: ClusterLimits) -> list[list[int]]:
        """Cluster one part; identical items count as one point with their weight."""
        points = _alike(vectors, part, tokens, limits)
        own = np.stack([vectors[place] for place, _ in points])
        weights = np.asarray([len(members) for _, members in points], np.float32)
        groups = _Groups([members for _, members in points], tokens, limits)
        target = max(1, round(len(part) / limits.fan_out))
        if len(points) <= self.whole:
            for one, other in chain(own, weights):
                if groups.left <= target:
                    break
                groups.merge(one, other)
        else:
            for _ in graph(own, weights, self.neighbours, groups.join):
                if groups.left <= target:
                    break
        return groups.members()


def _alike(vectors: Any, part: Ints, tokens: Ints, limits: ClusterLimits) -> list[tuple[int, list[int]]]:
    """Put identical items together as far as they fit: (place in the part, items)."""
    latest: dict[bytes, int] = {}
    points: list[tuple[int, list[int]]] = []
    totals: list[int] = []
    for place, item in enumerate(part.tolist()):
        key = vectors[place].tobytes()
        point = latest.get(key, -1)
        size = int(tokens[item])
        if point >= 0 and limits.fits(len(points[point][1]) + 1, totals[point] + size):
            points[point][1].append(item)
            totals[point] += size
        else:
            latest[key] = len(points)
            points.append((place, [item]))
            totals.append(size)
    return points


class _Groups:
    """Groups that grow by merges, and never over the limits."""

    def __init__(self, points: list[list[int]], tokens: Ints, limits: ClusterLimits) -> None:
        self._own = [list(members) for members in points]
        self._tokens: NDArray[np.int64] = np.asarray([int(np.sum(tokens[members])) for members in points], np.int64)
        self._limits = limits
        self._above = list(range(len(points)))  # of the dendrogram's clusters
        self._open = list(range(len(points)))  # the group of each cluster that can still grow
        self.left = len(points)

    def join(self, one: int, other: int) -> bool:
        """Join two groups if they fit together."""
        total = int(self._tokens[one] + self._tokens[other])
        if not self._limits.fits(len(self._own[one]) + len(self._own[other]), total):
            return False
        self._own[one] += self._own[other]
        self._own[other] = []
        self._tokens[one] = total
        self.left -= 1
        return True

    def merge(self, one: int, other: int) -> None:
        """Follow a merge of the dendrogram; where the groups do not fit together, the smaller one stays open."""
        first, last = self._cluster(one), self._cluster(other)
        mine, its = self._open[first], self._open[last]
        self._above[last] = first
        if not self.join(mine, its):
            self._open[first] = min(mine, its, key=lambda group: (len(self._own[group]), group))

    def members(self) -> list[list[int]]:
        """Return the groups."""
        return [members for members in self._own if members]

    def _cluster(self, point: int) -> int:
        while self._above[point] != point:
            self._above[point] = self._above[self._above[point]]
            point = self._above[point]
        return point
