"""How good a tree is by itself: routing, coherence and purity, from vectors alone.

What a collapsed tree retrieves cannot judge a tree, because random groups reach the same; how well a
search from the roots down finds what a search of everything finds can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus.index.nodes import View

BEAM = 8
"""Nodes that are kept on each layer."""

NEAREST = 20
"""Leaves that exact search finds and the beam is to find too."""

Ints = NDArray[np.int64]


class Tree:
    """A tree as places in a view.

    :param edges: the children of every parent, by number.
    """

    def __init__(self, view: View, edges: Mapping[int, Sequence[int]]) -> None:
        place = {int(id): at for at, id in enumerate(view.ids.tolist())}
        self.view = view
        self.children = {place[node]: [place[one] for one in children] for node, children in edges.items()}
        below = {child for children in self.children.values() for child in children}
        self.roots = [at for at in range(len(place)) if at not in below]
        matrix: Any = view.matrix[view.routing] if len(view.routing) else np.zeros((0, 1), np.float32)
        self.means: NDArray[np.float32] = np.asarray(matrix, np.float32)

    def reached(
        self, vector: NDArray[np.float32], beam: int = BEAM, roots: Sequence[int] | None = None
    ) -> tuple[Ints, int]:
        """Return the leaves that a search from the roots down comes to, and how many nodes it has scored.

        Of each layer the ``beam`` nodes whose leaves' means are nearest go on; leaves are kept as they come.

        :param roots: places where the search begins; all roots without.
        """
        pool = list(self.roots if roots is None else roots)
        leaves: set[int] = set()
        scored = 0
        while pool:
            leaves |= {one for one in pool if one not in self.children}
            inner = [one for one in dict.fromkeys(pool) if one in self.children]
            scored += len(set(pool))
            if not inner:
                break
            likeness = self.means[inner] @ vector
            best = np.argsort(-likeness, kind="stable")[:beam].tolist()
            pool = [child for at in best for child in self.children[inner[at]]]
        return np.asarray(sorted(leaves), np.int64), scored

    def groups(self) -> list[list[int]]:
        """Return the leaves of every parent that stands right above leaves."""
        found = ([one for one in children if one not in self.children] for children in self.children.values())
        return [group for group in found if len(group) > 1]


def routing(tree: Tree, questions: NDArray[np.float32], beam: int = BEAM, nearest: int = NEAREST) -> list[float]:
    """Return for each question the share of its nearest leaves that the beam reaches."""
    count = tree.view.leaves
    shares = []
    for vector in questions:
        exact = np.argsort(-(tree.means[:count] @ vector), kind="stable")[:nearest]
        found, _ = tree.reached(vector, beam)
        shares.append(float(np.isin(exact, found).mean()) if len(exact) else 1.0)
    return shares


def scored(tree: Tree, questions: NDArray[np.float32], beam: int = BEAM) -> float:
    """Return the share of all nodes that the beam scores, on average."""
    total = max(1, len(tree.view.ids))
    return float(np.mean([tree.reached(vector, beam)[1] for vector in questions]) / total) if len(questions) else 0.0


def coherence(tree: Tree) -> float:
    """Return the mean cosine of two leaves that share a parent; each group counts by its leaves."""
    total = weight = 0.0
    for group in tree.groups():
        own = tree.means[group]
        size = len(group)
        whole = float(np.square(own.sum(axis=0)).sum())
        pairs = (whole - float(np.square(own).sum())) / (size * (size - 1))
        total += size * pairs
        weight += size
    return total / weight if weight else 0.0


def purity(tree: Tree) -> float:
    """Return the share of leaves whose document is the most frequent one below their parent."""
    same = weight = 0
    for group in tree.groups():
        _, counts = np.unique(tree.view.document[group], return_counts=True)
        same += int(counts.max())
        weight += len(group)
    return same / weight if weight else 0.0


def beam_of(tree: Tree, questions: NDArray[np.float32], share: float) -> int:
    """Return the widest beam, up to 64, that scores at most a share of all nodes; 1 where none does."""
    fitting = (beam for beam in range(64, 1, -1) if scored(tree, questions, beam) <= share)
    return next(fitting, 1)


def quality(
    view: View, edges: Mapping[int, Sequence[int]], questions: NDArray[np.float32], share: float = 0.0
) -> dict[str, Any]:
    """Return everything that is told of a tree.

    :param share: of the nodes that the beam may score, so that trees of other shapes compare; 0 is a beam of 8.
    """
    tree = Tree(view, edges)
    beam = beam_of(tree, questions, share) if share else BEAM
    shares = routing(tree, questions, beam)
    return {
        "nodes": [int(one) for one in np.unique(view.layer, return_counts=True)[1]],
        "routing": float(np.mean(shares)) if shares else 0.0,
        "beam": beam,
        "scored": scored(tree, questions, beam),
        "coherence": coherence(tree),
        "purity": purity(tree),
    }
