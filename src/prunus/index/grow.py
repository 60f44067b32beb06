"""Update a tree in place: new leaves are inserted from the root down, and nodes over the limits are split.

Only the nodes above an added or removed leaf lose their summaries; the rest of the tree stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.ports import ClusterLimits
from .all_nodes import AllNodes
from .cluster._linkage import chain, halves
from .nodes import Growth, Parent, View

_WIDE: Final = 16
"""Nodes of each layer that are searched for the parent of a new leaf (beam width)."""


_NEAR: Final = 1e-5
"""Two means nearer than this in every number are the same; sums of many numbers differ by rounding."""


class Growing:
    """A tree into which leaves are inserted. Its nodes are numbers; new nodes are -1, -2, …

    What is known of all nodes is in arrays; only nodes that are looked at become lists.

    :param view, edges: one state of the index.
    :param limits: limits of a node's children.
    :param summary_tokens: tokens that a summary counts against the limits.
    """

    def __init__(
        self, view: View, edges: Mapping[int, Sequence[int]], limits: ClusterLimits, summary_tokens: int
    ) -> None:
        self._view, self._limits = view, limits
        self._all = AllNodes(view, edges)
        self._planned = summary_tokens
        self._made = 0
        self._dirty: set[int] = set()
        self._gone: set[int] = set()
        self._children: dict[int, list[int]] = {}  # of nodes that were looked at, and of new ones
        self._before: dict[int, list[int]] = {}
        self._above: dict[int, int | None] = {}  # of nodes that were moved
        self._layers: dict[int, int] = {}  # of new nodes
        self._sums: dict[int, NDArray[np.float32]] = {}
        self._roots = set(self._all.roots())
        self._alone = set(self._all.orphans())  # leaves without a parent
        self._unshrunk: list[tuple[int, int]] = []

    def grow(self) -> Growth:
        """Insert every leaf without a parent, and return the change."""
        for node in self._all.stale(_NEAR):
            self._mark(node)
        self._shrink()
        for leaf in sorted(self._alone, key=self._all.place):
            self._insert(leaf)
        return self._change()

    # --- the tree as it is now ---------------------------------------------------------------

    def _inner(self, node: int) -> bool:
        """Tell whether a node is a parent."""
        return node in self._children or (node not in self._gone and self._all.inner(node))

    def _below(self, node: int) -> list[int]:
        """Return the children of a node, as a list that may be changed."""
        if node not in self._children:
            self._children[node] = self._all.children(node)
            self._before[node] = list(self._children[node])
        return self._children[node]

    def _parent(self, node: int) -> int | None:
        return self._above[node] if node in self._above else self._all.parent(node)

    def _layer(self, node: int) -> int:
        return self._layers[node] if node < 0 else self._all.layer(node)

    def _sum(self, node: int) -> NDArray[np.float32]:
        """Return the sum of the vectors of the leaves below a parent."""
        if node not in self._sums:
            self._sums[node] = self._all.sum(node)
        return self._sums[node]

    def _mark(self, node: int) -> None:
        """Note that a node has other leaves than before."""
        self._dirty.add(node)
        heappush(self._unshrunk, (self._layer(node), node))

    def _place_below(self, node: int, above: int | None) -> None:
        """Note the parent of a node."""
        self._above[node] = above
        if above is None and self._inner(node):
            self._roots.add(node)
        else:
            self._roots.discard(node)

    def _drop(self, node: int) -> None:
        """Delete a parent."""
        self._children.pop(node, None)
        self._roots.discard(node)
        self._gone.add(node)

    # --- changes -----------------------------------------------------------------------------

    def _insert(self, leaf: int) -> None:
        """Add a leaf to the nearest parent of leaves, which a beam search from the root finds."""
        vector = self._vector(leaf)
        beam, ends = [self._root()], list[int]()
        while beam:
            below = {node: [child for child in self._below(node) if self._inner(child)] for node in beam}
            ends += [node for node, inner in below.items() if not inner]
            beam = self._nearest(vector, [child for inner in below.values() for child in inner])[:_WIDE]
        (node, *_) = self._nearest(vector, ends)
        self._below(node).append(leaf)
        self._above[leaf] = node
        self._add_up(node, vector)
        self._split(node)

    def _nearest(self, vector: NDArray[np.float32], nodes: list[int]) -> list[int]:
        """Return nodes sorted by the cosine of a vector and the mean of their leaves, best first."""
        if len(nodes) < 2:
            return nodes
        means = np.stack([self._direction(node) for node in nodes])
        return [nodes[place] for place in np.argsort(-(means @ vector), kind="stable").tolist()]

    def _split(self, node: int) -> None:
        """Split a node that is over the limits in two, and then its ancestors as far as they are over the limits."""
        while not self._fits(self._below(node)):
            kept, moved = self._split_children(self._below(node))
            sibling = self._new(self._layer(node), moved)
            self._children[node] = kept
            self._sums[node] = self._summed(node)
            self._dirty.add(node)
            above = self._parent(node)
            if above is None:
                self._new(self._layer(node) + 1, [node, sibling])
                return
            self._below(above).append(sibling)
            self._place_below(sibling, above)
            self._dirty.add(above)
            node = above

    def _split_children(self, children: list[int]) -> tuple[list[int], list[int]]:
        """Split children in two by Ward's linkage, or in halves where a part would be too small or too large."""
        count = len(children)
        vectors = np.stack([self._direction(child) for child in children])
        group = list(range(count))
        for left, right in chain(vectors, np.ones(count, np.float32))[:-1]:
            kept, merged = group[left], group[right]
            group = [kept if label == merged else label for label in group]
        first = [child for child, label in zip(children, group, strict=True) if label == group[0]]
        last = [child for child, label in zip(children, group, strict=True) if label != group[0]]
        if min(len(first), len(last)) >= max(2, count // 5) and self._fits(first) and self._fits(last):
            return first, last
        first, last = ([children[at] for at in part.tolist()] for part in self._halves(vectors))
        return first, last

    def _halves(self, vectors: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        return list(halves(vectors, np.arange(len(vectors)), (len(vectors) + 1) // 2))[:2]

    def _shrink(self) -> None:
        """Remove nodes that have one child after removals: a lone leaf is inserted again, a lone node moves up."""
        while self._unshrunk:
            _, node = heappop(self._unshrunk)
            if node in self._gone or len(self._below(node)) != 1:
                continue
            (only,) = self._below(node)
            above = self._parent(node)
            if above is None and not self._inner(only):
                continue  # the root of the last leaf
            self._drop(node)
            self._place_below(only, None)
            if above is None:
                continue
            self._below(above).remove(node)
            if self._inner(only):
                self._below(above).append(only)
                self._place_below(only, above)
            else:
                self._alone.add(only)
                self._add_up(above, np.asarray(-self._vector(only), np.float32))
            self._drop_if_empty(above)

    def _drop_if_empty(self, node: int) -> None:
        while not self._below(node):
            above = self._parent(node)
            self._drop(node)
            if above is None:
                return
            self._below(above).remove(node)
            node = above

    def _root(self) -> int:
        """Return the root; a root is made where the tree has several roots or none."""
        roots = sorted(self._roots, key=lambda node: (node < 0, abs(node)))
        if len(roots) == 1:
            return roots[0]
        layer = 1 + max((self._layer(node) for node in roots), default=0)
        made = self._new(layer, roots)
        self._split(made)
        return self._root() if made not in self._roots else made

    def _new(self, layer: int, children: list[int]) -> int:
        self._made += 1
        node = -self._made
        self._layers[node] = layer
        self._children[node] = list(children)
        self._place_below(node, None)
        for child in children:
            self._place_below(child, node)
        self._sums[node] = self._summed(node)
        return node

    def _add_up(self, node: int, vector: NDArray[np.float32]) -> None:
        """Add a leaf's vector to the sums of a node and its ancestors, and mark them as dirty."""
        above: int | None = node
        while above is not None:
            self._sums[above] = self._sum(above) + vector
            self._mark(above)
            above = self._parent(above)

    def _fits(self, children: list[int]) -> bool:
        tokens = sum(
            self._planned if self._inner(child) else int(self._view.tokens[self._all.place(child)])
            for child in children
        )
        full = len(children) > 1 + 3 * self._limits.fan_out // 2  # half as much again: halves come near fan_out
        return not full and self._limits.fits(len(children), tokens)

    def _summed(self, node: int) -> NDArray[np.float32]:
        parts = [self._sum(child) if self._inner(child) else self._vector(child) for child in self._below(node)]
        dimension = self._view.matrix.shape[1]
        return np.asarray(np.sum(parts, axis=0) if parts else np.zeros(dimension), np.float32)

    def _vector(self, leaf: int) -> NDArray[np.float32]:
        return np.asarray(self._view.matrix[self._view.row[self._all.place(leaf)]], np.float32)

    def _direction(self, node: int) -> NDArray[np.float32]:
        if self._inner(node) and node >= 0 and node not in self._sums and node not in self._dirty:
            return self._all.mean(node)
        vector: Any = self._sum(node) if self._inner(node) else self._vector(node)
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)

    def _documents_below(self, node: int) -> set[int]:
        found: set[int] = set()
        todo = [node]
        while todo and len(found) < 2:
            member = todo.pop()
            if self._inner(member):
                todo += self._below(member)
            else:
                found.add(int(self._view.document[self._all.place(member)]))
        return found

    def _owner(self, node: int) -> str:
        below = self._documents_below(node)
        return self._view.names[below.pop()] if len(below) == 1 else ""

    def _change(self) -> Growth:
        new = [-number for number in range(1, self._made + 1)]
        dirty = sorted(node for node in self._dirty if node >= 0 and self._inner(node))
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
    """Return the change that deletes every summary and keeps the tree."""
    summarised = np.flatnonzero((view.layer > 0) & (view.row >= 0))
    documents = [view.names[number] if number >= 0 else "" for number in view.document[summarised].tolist()]
    means = np.array(view.matrix[view.routing[summarised]], np.float32)
    return Growth([], {}, [], view.ids[summarised].tolist(), documents, means, view.version)
