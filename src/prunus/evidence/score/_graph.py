"""The neighbours of a block in a graph: the blocks that name its node.

Documents that were graphs link to ``#graph-node-N``, their N-th section (:mod:`prunus.pages.formats.graph`). Blocks of
other documents have no such neighbours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...pages.tree import Tree
from ..blocks import Blocks

_LINK = "#graph-node-"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The links between the nodes of graphs.

    :param sources: the block of each link, int [links].
    :param targets: the node that it names, int [links].
    :param node: node of each block, int [blocks]; the last number stands for all blocks of other documents.
    :param nodes: number of nodes, the last one included.
    """

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    node: NDArray[np.int64]
    nodes: int

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which blocks belong to graphs, [blocks]."""
        return np.asarray(self.node < self.nodes - 1)

    def named(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each block the best value among the blocks that name its node; 0 without any.

        :param values: non-negative numbers, [blocks].
        """
        of_nodes = np.zeros(self.nodes)
        np.maximum.at(of_nodes, self.targets, values[self.sources])
        return np.asarray(of_nodes[self.node], np.float64)


def neighbours_of(blocks: Blocks) -> Neighbours | None:
    """Return the links between the blocks of graphs; None where no document is a graph with links."""
    known = blocks.cache.get("graph")
    if known is None:
        blocks.cache["graph"] = known = _found(blocks) or False
    return known if isinstance(known, Neighbours) else None


def _found(blocks: Blocks) -> Neighbours | None:
    links = [_links(tree) for tree in blocks.trees]
    if not any(links):
        return None
    places: list[list[int]] = [[] for _ in blocks.trees]  # of the blocks of each document
    for index, block in enumerate(blocks.blocks):
        places[block.document].append(index)
    node_of = np.full(len(blocks), -1, np.int64)
    pairs: set[tuple[int, int]] = set()
    nodes = 0
    for document, tree in enumerate(blocks.trees):
        if not links[document]:
            continue
        own, sections = places[document], _sections(tree)
        starts = [blocks.blocks[index].lo for index in own]
        for index, start in zip(own, starts, strict=True):  # a block that holds several nodes counts for its first
            node_of[index] = nodes + max(0, bisect_right(sections, start) - 1)
        for link, number in links[document]:
            if 0 < number <= len(sections):
                source = _block_at(blocks, own, starts, link)
                if source >= 0 and node_of[source] != nodes + number - 1:
                    pairs.add((source, nodes + number - 1))
        nodes += len(sections)
    if not pairs:
        return None
    node_of[node_of < 0] = nodes
    linked = np.array(sorted(pairs), np.int64)
    return Neighbours(linked[:, 0], linked[:, 1], node_of, nodes + 1)


def _block_at(blocks: Blocks, places: Sequence[int], starts: Sequence[int], node: int) -> int:
    """Return the block of a document that holds a node of its tree; -1 for none: the blocks may be a part of all."""
    place = bisect_right(starts, node) - 1
    return places[place] if place >= 0 and node < blocks.blocks[places[place]].hi else -1


def _links(tree: Tree) -> list[tuple[int, int]]:
    """Return the (node, number of the section) of each link from node to node."""
    result = []
    for node, tag in enumerate(tree.tag):
        if tag == "a":
            target = (tree.attrs[node] or {}).get("href", "")
            if target.startswith(_LINK) and target[len(_LINK) :].isdecimal() and len(target) < 30:
                result.append((node, int(target[len(_LINK) :])))
    return result


def _sections(tree: Tree) -> list[int]:
    """Return the sections of a document that stand in no other, in order."""
    result, node = [], 0
    while node < len(tree):
        if tree.tag[node] == "section":
            result.append(node)
            node = tree.end[node]
        else:
            node += 1
    return result
