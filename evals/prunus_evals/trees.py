"""The quality of a tree without retrieval: routing, coherence and purity, from vectors alone.

The recall of a collapsed tree does not measure the tree, because random groups reach the same recall. Routing does: it
is the share of the leaves found by exact search that a search from the roots down finds, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus.index.nodes import View

BEAM = 8
"""Nodes that the beam search keeps on each layer."""

NEAREST = 20
"""Number of leaves of the exact search that the beam search should find."""

Ints = NDArray[np.int64]


class Tree:
    """A tree whose nodes are named by their places in a view.

    ``children`` maps a parent to its children, ``roots`` are the nodes without a parent, ``means`` [nodes, dim] are
    the means of the vectors of each node's leaves.

    :param edges: the ids of the children, by the id of their parent.
    """

    def __init__(self, view: View, edges: Mapping[int, Sequence[int]]) -> None:
        place = {int(id): at for at, id in enumerate(view.ids.tolist())}
        self.view = view
        self.children = {place[node]: [place[child] for child in children] for node, children in edges.items()}
        below = {child for children in self.children.values() for child in children}
        self.roots = [at for at in range(len(place)) if at not in below]
        matrix: Any = view.matrix[view.routing] if len(view.routing) else np.zeros((0, 1), np.float32)
        self.means: NDArray[np.float32] = np.asarray(matrix, np.float32)

    def reached(
        self, vector: NDArray[np.float32], beam: int = BEAM, roots: Sequence[int] | None = None
    ) -> tuple[Ints, int]:
        """Return the leaves that a search from the roots down reaches, and the number of nodes that it scored.

        On each layer the search goes on below the ``beam`` nodes with the nearest means; every leaf that it meets
        counts as reached.

        :param roots: places where the search begins; by default all roots.
        """
        pool = list(self.roots if roots is None else roots)
        leaves: set[int] = set()
        scored = 0
        while pool:
            leaves |= {node for node in pool if node not in self.children}
            inner = [node for node in dict.fromkeys(pool) if node in self.children]
            scored += len(set(pool))
            if not inner:
                break
            likeness = self.means[inner] @ vector
            best = np.argsort(-likeness, kind="stable")[:beam].tolist()
            pool = [child for at in best for child in self.children[inner[at]]]
        return np.asarray(sorted(leaves), np.int64), scored

    def groups(self) -> list[list[int]]:
        """Return, for every parent of two leaves or more, its leaves."""
        found = ([node for node in children if node not in self.children] for children in self.children.values())
        return [group for group in found if len(group) > 1]


def routing(tree: Tree, questions: NDArray[np.float32], beam: int = BEAM, nearest: int = NEAREST) -> list[float]:
    """Return for each question the share of its nearest leaves that the beam search reaches."""
    count = tree.view.leaves
    shares = []
    for vector in questions:
        exact = np.argsort(-(tree.means[:count] @ vector), kind="stable")[:nearest]
        found, _ = tree.reached(vector, beam)
        shares.append(float(np.isin(exact, found).mean()) if len(exact) else 1.0)
    return shares


def scored(tree: Tree, questions: NDArray[np.float32], beam: int = BEAM) -> float:
    """Return the mean share of all nodes that the beam search scores."""
    total = max(1, len(tree.view.ids))
    return float(np.mean([tree.reached(vector, beam)[1] for vector in questions]) / total) if len(questions) else 0.0


def coherence(tree: Tree) -> float:
    """Return the mean cosine of two leaves with the same parent; a group's weight is its number of leaves."""
    total = weight = 0.0
    for group in tree.groups():
        vectors = tree.means[group]
        size = len(group)
        # |Σv|² is the sum over all pairs; without the squares it is the sum over pairs of different leaves
        whole = float(np.square(vectors.sum(axis=0)).sum())
        pairs = (whole - float(np.square(vectors).sum())) / (size * (size - 1))
        total += size * pairs
        weight += size
    return total / weight if weight else 0.0


def purity(tree: Tree) -> float:
    """Return the share of leaves that belong to the most frequent document below their parent."""
    same = weight = 0
    for group in tree.groups():
        _, counts = np.unique(tree.view.document[group], return_counts=True)
        same += int(counts.max())
        weight += len(group)
    return same / weight if weight else 0.0


def beam_of(tree: Tree, questions: NDArray[np.float32], share: float) -> int:
    """Return the widest beam, from 1 to 64, that scores at most this share of all nodes; at least 1."""
    fitting = (beam for beam in range(64, 1, -1) if scored(tree, questions, beam) <= share)
    return next(fitting, 1)


def quality(
    view: View, edges: Mapping[int, Sequence[int]], questions: NDArray[np.float32], share: float = 0.0
) -> dict[str, Any]:
    """Return all numbers of a tree.

    :param share: share of the nodes that the beam may score, so that trees of different shapes can be compared; 0: a
        beam of 8.
    """
    tree = Tree(view, edges)
    beam = beam_of(tree, questions, share) if share else BEAM
    shares = routing(tree, questions, beam)
    return {
        "nodes": [int(count) for count in np.unique(view.layer, return_counts=True)[1]],
        "routing": float(np.mean(shares)) if shares else 0.0,
        "beam": beam,
        "scored": scored(tree, questions, beam),
        "coherence": coherence(tree),
        "purity": purity(tree),
    }
