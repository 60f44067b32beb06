"""All nodes of a tree as arrays: who is below whom, and the sum and the owner of each parent's leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.ports import Ints
from .nodes import View

_BLOCK: Final = 512
"""Parents whose children are added up at a time; bounds the memory."""
_MANY: Final = 4
"""Leaves are added up one by one where they are less than one in so many of the matrix."""
_FEW: Final = 64
"""So many parents without a summary are taken for stale without a look at all leaves."""


class AllNodes:
    """One state of the tree; nothing here changes. Numbers of nodes are those of the view.

    :param edges: the children of every parent.
    """

    def __init__(self, view: View, edges: Mapping[int, Sequence[int]]) -> None:
        self._view = view
        self._leaves = view.leaves
        self._order: Ints = np.argsort(view.ids, kind="stable")
        self._sorted = view.ids[self._order]
        counts = np.fromiter(map(len, edges.values()), np.int64, len(edges))
        above = np.fromiter(edges, np.int64, len(edges)).repeat(counts)
        below = np.fromiter(chain.from_iterable(edges.values()), np.int64, len(above))
        known = np.isin(above, view.ids) & np.isin(below, view.ids)  # the edges may be of a later state than the view
        parents, children = self._places(above[known]), self._places(below[known])
        self._above: Ints = np.full(len(view.ids), -1, np.int64)
        self._above[children] = parents
        self._below = children[np.argsort(parents, kind="stable")]
        self._ends = np.cumsum(np.bincount(parents, minlength=len(view.ids)))
        self._sums: NDArray[np.float32] | None = None  # of all parents, where they were needed

    def place(self, node: int) -> int:
        """Return the place of a node in the view."""
        return int(self._order[np.searchsorted(self._sorted, node)])

    def inner(self, node: int) -> bool:
        """Tell whether a node is a parent."""
        return node >= 0 and self.place(node) >= self._leaves

    def children(self, node: int) -> list[int]:
        """Return the children of a node."""
        return [int(child) for child in self._view.ids[self._below_place(self.place(node))]]

    def parent(self, node: int) -> int | None:
        """Return the parent of a node; None for a root and a leaf without one."""
        above = int(self._above[self.place(node)]) if node >= 0 else -1
        return int(self._view.ids[above]) if above >= 0 else None

    def layer(self, node: int) -> int:
        """Return the layer of a node."""
        return int(self._view.layer[self.place(node)])

    def mean(self, node: int) -> NDArray[np.float32]:
        """Return the mean of the leaves below a parent, as the store has it: a direction."""
        return np.array(self._view.matrix[self._view.routing[self.place(node)]], np.float32)

    def sum(self, node: int) -> NDArray[np.float32]:
        """Return the sum of the vectors of the leaves below a parent."""
        place = self.place(node)
        if self._sums is not None:
            return np.array(self._sums[place - self._leaves], np.float32)
        rows = self._view.row[self._leaves_below(place)]
        matrix = self._view.matrix
        if _MANY * len(rows) < len(matrix):
            return np.asarray(matrix[rows].sum(axis=0), np.float32)
        counted = np.zeros(len(matrix), np.float32)
        counted[rows] = 1.0
        return np.asarray(counted @ matrix, np.float32)  # one pass over the file, and no copy

    def roots(self) -> list[int]:
        """Return the parents without a parent."""
        places = self._leaves + np.flatnonzero(self._above[self._leaves :] < 0)
        return [int(node) for node in self._view.ids[places]]

    def orphans(self) -> list[int]:
        """Return the leaves without a parent."""
        return [int(node) for node in self._view.ids[np.flatnonzero(self._above[: self._leaves] < 0)]]

    def stale(self, near: float) -> list[int]:
        """Return the parents without a summary that may have lost leaves.

        Where many have none, it looks at their means, owners and numbers of children.

        :param near: difference of two means, in any number, that comes from rounding.
        """
        view, first = self._view, self._leaves
        bare = first + np.flatnonzero(view.row[first:] < 0)
        if len(bare) <= _FEW:
            return [int(node) for node in view.ids[bare]]
        self._sums, owners = self._added_up()
        found = []
        counts = np.diff(self._ends, prepend=0)[first:]
        for start in range(0, len(self._sums), _BLOCK):
            part = slice(start, start + _BLOCK)
            sums = self._sums[part]
            means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
            stored = np.asarray(view.matrix[view.routing[first:][part]], np.float32)
            other = (np.abs(means - stored) > near).any(axis=1) | (counts[part] < 2)
            other |= owners[part] != view.document[first:][part]
            found.append(start + np.flatnonzero(other & (view.row[first:][part] < 0)))
        return [int(node) for part in found for node in view.ids[first + part]]

    def _places(self, ids: Ints) -> Ints:
        return self._order[np.searchsorted(self._sorted, ids)]

    def _below_place(self, place: int) -> Ints:
        return self._below[self._ends[place - 1] if place else 0 : self._ends[place]]

    def _leaves_below(self, place: int) -> Ints:
        found: list[Ints] = []
        todo = self._below_place(place)
        while len(todo):
            found.append(todo[todo < self._leaves])
            inner = todo[todo >= self._leaves]
            todo = np.concatenate([self._below[:0], *map(self._below_place, inner.tolist())])
        return np.concatenate([self._below[:0], *found])

    def _added_up(self) -> tuple[NDArray[np.float32], Ints]:
        """Return the sum of the leaves' vectors, float32 [parents, dimension], and the one document below, else -1."""
        view, first = self._view, self._leaves
        count = len(view.ids) - first
        sums = np.zeros((count, view.matrix.shape[1]), np.float32)
        owners = np.concatenate([view.document[:first], np.full(count, -1, np.int64)])
        starts = np.concatenate([[0], self._ends[:-1]])
        filled = first + np.flatnonzero(self._ends[first:] > starts[first:])
        for layer in np.unique(view.layer[filled]).tolist():
            of_layer = filled[view.layer[filled] == layer]
            for at in range(0, len(of_layer), _BLOCK):
                places = of_layer[at : at + _BLOCK]
                below = np.concatenate([self._below[starts[place] : self._ends[place]] for place in places])
                cuts = np.concatenate([[0], np.cumsum(self._ends[places] - starts[places])[:-1]])
                vectors = np.empty((len(below), sums.shape[1]), np.float32)
                leaf = below < first
                vectors[leaf] = view.matrix[view.row[below[leaf]]]
                vectors[~leaf] = sums[below[~leaf] - first]
                sums[places - first] = np.add.reduceat(vectors, cuts, axis=0)
                low, high = np.minimum.reduceat(owners[below], cuts), np.maximum.reduceat(owners[below], cuts)
                owners[places] = np.where(low == high, low, -1)
        return sums, owners[first:]
