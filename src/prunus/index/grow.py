"""Grows a tree: new leaves find their place from the root down, nodes that are too full are split.

Nothing is built anew. Only the nodes above a leaf that came or went lose their summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.ports import ClusterLimits
from .cluster._linkage import chain, halves
from .nodes import Growth, Parent, View

_WIDE: Final = 16
"""Nodes of each layer that a new leaf goes down through."""


class Growing:
    """A tree in memory that takes leaves in.

    :param view, edges: of one state of the index.
    :param limits: of a node's children.
    :param summary_tokens: what a summary that is not written yet counts against the limits.
    """

    def __init__(
        self, view: View, edges: Mapping[int, Sequence[int]], limits: ClusterLimits, summary_tokens: int
    ) -> None:
        self._view, self._limits = view, limits
        self._place = {int(id): place for place, id in enumerate(view.ids.tolist())}
        self._children = {node: list(children) for node, children in edges.items()}
        self._before = {node: list(children) for node, children in edges.items()}
        self._above = {child: node for node, children in edges.items() for child in children}
        self._planned = summary_tokens
        self._made = 0
        self._dirty: set[int] = set()
        self._gone: set[int] = set()
        self._sums: dict[int, NDArray[np.float32]] = {}
        self._layers = {node: int(view.layer[self._place[node]]) for node in edges}
        for node in sorted(edges, key=self._layers.__getitem__):
            self._sums[node] = self._summed(node)

    def grow(self) -> Growth:
        """Take in every leaf that stands below nothing; return the change."""
        for node in self._view.ids[self._view.leaves :].tolist():
            self._touch_if_unsaid(node)
        self._shrink()
        for leaf in self._view.ids[: self._view.leaves].tolist():
            if leaf not in self._above:
                self._insert(leaf)
        return self._change()

    def _insert(self, leaf: int) -> None:
        """Go down from the root, a few nodes wide, to the nearest node of leaves, and put the leaf there."""
        vector = self._vector(leaf)
        beam, ends = [self._root()], list[int]()
        while beam:
            below = {node: [child for child in self._children[node] if child in self._children] for node in beam}
            ends += [node for node, inner in below.items() if not inner]
            beam = self._nearest(vector, [child for inner in below.values() for child in inner])[:_WIDE]
        (node, *_) = self._nearest(vector, ends)
        self._children[node].append(leaf)
        self._above[leaf] = node
        self._add_up(node, vector)
        self._split(node)

    def _nearest(self, vector: NDArray[np.float32], nodes: list[int]) -> list[int]:
        """Return nodes by the cosine of their leaves' mean and a vector, best first."""
        if len(nodes) < 2:
            return nodes
        means = np.stack([self._sums[node] for node in nodes])
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return [nodes[place] for place in np.argsort(-(means @ vector), kind="stable").tolist()]

    def _split(self, node: int) -> None:
        """Halve a node that is over the limits, and then what stands above it where that is over them too."""
        while not self._fits(self._children[node]):
            kept, moved = self._parted(self._children[node])
            other = self._new(self._layers[node], moved)
            self._children[node] = kept
            self._sums[node] = self._summed(node)
            self._dirty.add(node)
            above = self._above.get(node)
            if above is None:
                self._new(self._layers[node] + 1, [node, other])
                return
            self._children[above].append(other)
            self._above[other] = above
            self._dirty.add(above)
            node = above

    def _parted(self, children: list[int]) -> tuple[list[int], list[int]]:
        """Part children in two by Ward's linkage, or in halves where that leaves a part too small or too full."""
        count = len(children)
        vectors = np.stack([self._direction(child) for child in children])
        group = list(range(count))
        for one, other in chain(vectors, np.ones(count, np.float32))[:-1]:
            stays, gone = group[one], group[other]
            group = [stays if mine == gone else mine for mine in group]
        first = [child for child, mine in zip(children, group, strict=True) if mine == group[0]]
        last = [child for child, mine in zip(children, group, strict=True) if mine != group[0]]
        if min(len(first), len(last)) >= max(2, count // 5) and self._fits(first) and self._fits(last):
            return first, last
        first, last = ([children[at] for at in part.tolist()] for part in self._halves(vectors))
        return first, last

    def _halves(self, vectors: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        return list(halves(vectors, np.arange(len(vectors)), (len(vectors) + 1) // 2))[:2]

    def _shrink(self) -> None:
        """Take out nodes that removals have left with one child: a leaf looks for a place again, a node moves up."""
        for node in sorted(self._children, key=lambda one: (self._layers[one], one)):
            children = self._children.get(node, [])
            if len(children) != 1 or node not in self._dirty:
                continue
            (only,) = children
            above = self._above.pop(node, None)
            if above is None and only not in self._children:
                continue  # the root of the last leaf
            del self._children[node]
            self._gone.add(node)
            del self._above[only]
            if above is not None:
                self._children[above].remove(node)
                if only in self._children:
                    self._children[above].append(only)
                    self._above[only] = above
                else:
                    self._take_off(above, self._vector(only))
                self._drop_if_empty(above)

    def _drop_if_empty(self, node: int) -> None:
        while node in self._children and not self._children[node]:
            del self._children[node]
            self._gone.add(node)
            above = self._above.pop(node, None)
            if above is None:
                return
            self._children[above].remove(node)
            node = above

    def _touch_if_unsaid(self, node: int) -> None:
        """Note a node whose summary was taken away; its leaves have changed."""
        if self._view.row[self._place[node]] < 0:
            self._dirty.add(node)

    def _root(self) -> int:
        """Return the one root, made where the tree has several, or none."""
        roots = [node for node in self._children if node not in self._above]
        if len(roots) == 1:
            return roots[0]
        layer = 1 + max((self._layers[node] for node in roots), default=0)
        made = self._new(layer, roots)
        self._split(made)
        return self._root() if made in self._above else made

    def _new(self, layer: int, children: list[int]) -> int:
        self._made += 1
        node = -self._made
        self._layers[node] = layer
        self._children[node] = list(children)
        self._above |= dict.fromkeys(children, node)
        self._sums[node] = self._summed(node)
        return node

    def _add_up(self, node: int, vector: NDArray[np.float32]) -> None:
        above: int | None = node
        while above is not None:
            self._sums[above] = self._sums[above] + vector
            self._dirty.add(above)
            above = self._above.get(above)

    def _take_off(self, node: int, vector: NDArray[np.float32]) -> None:
        self._add_up(node, np.asarray(-vector, np.float32))

    def _fits(self, children: list[int]) -> bool:
        tokens = sum(
            self._planned if child in self._children else int(self._view.tokens[self._place[child]])
            for child in children
        )
        full = len(children) > 1 + 3 * self._limits.fan_out // 2  # so that parts come near to the size aimed at
        return not full and self._limits.fits(len(children), tokens)

    def _summed(self, node: int) -> NDArray[np.float32]:
        parts = [
            self._sums[child] if child in self._children else self._vector(child) for child in self._children[node]
        ]
        dimension = self._view.matrix.shape[1]
        return np.asarray(np.sum(parts, axis=0) if parts else np.zeros(dimension), np.float32)

    def _vector(self, leaf: int) -> NDArray[np.float32]:
        return np.asarray(self._view.matrix[self._view.row[self._place[leaf]]], np.float32)

    def _direction(self, node: int) -> NDArray[np.float32]:
        vector: Any = self._sums[node] if node in self._children else self._vector(node)
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)

    def _documents_below(self, node: int) -> set[int]:
        found: set[int] = set()
        todo = [node]
        while todo and len(found) < 2:
            one = todo.pop()
            if one in self._children:
                todo += self._children[one]
            else:
                found.add(int(self._view.document[self._place[one]]))
        return found

    def _owner(self, node: int) -> str:
        below = self._documents_below(node)
        return self._view.names[below.pop()] if len(below) == 1 else ""

    def _change(self) -> Growth:
        new = [-number for number in range(1, self._made + 1)]
        dirty = sorted(node for node in self._dirty if node >= 0 and node in self._children)
        changed = {node: children for node, children in self._children.items() if children != self._before.get(node)}
        dimension = self._view.matrix.shape[1]
        means = [self._direction(node) for node in [*new, *dirty]]
        return Growth(
            [Parent((), self._layers[node], self._owner(node)) for node in new],
            changed,
            sorted(self._gone),
            dirty,
            [self._owner(node) for node in dirty],
            np.stack(means) if means else np.zeros((0, dimension), np.float32),
            self._view.version,
        )


def without_summaries(view: View) -> Growth:
    """Return the change that takes away every summary and leaves the tree as it is."""
    said = np.flatnonzero((view.layer > 0) & (view.row >= 0))
    documents = [view.names[number] if number >= 0 else "" for number in view.document[said].tolist()]
    means = np.array(view.matrix[view.routing[said]], np.float32)
    return Growth([], {}, [], view.ids[said].tolist(), documents, means, view.version)
