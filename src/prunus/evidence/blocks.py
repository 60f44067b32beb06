"""The block tree of adjustable granularity (HtmlRAG §3.3, Algorithm 1), over one or many documents.

A block is a subtree, or a run of siblings: the text directly attached to a node whose children are
blocks of their own, a small section under its heading, a term with its definitions, or some
sentences of a text that is larger than a block. Blocks are contiguous, in document order, and
every visible word lies in exactly one of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Literal

from ..pages.clean.rules import HEADINGS
from ..pages.tree import Tree
from .breadcrumbs import Breadcrumbs, breadcrumbs_of
from .cut import cut_piece, cut_tree
from .runs import Piece

Units = Literal["blocks", "leaves"]

DEFAULT_MAX_WORDS = 256
"""Words per block before embedding-based pruning (HtmlRAG §4.4)."""

Steps = tuple[Sequence[int], Sequence[int]]
"""The children of a node, and the number that each carries in a path: 0 where it carries none."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block: nodes ``[lo, hi)`` of a Tree, less ``first`` code points at its start.

    :param document: which of the Trees.
    :param node: the subtree's root, or the node to which a run is attached.
    :param lo, hi: its nodes.
    :param first: code points of text node ``lo`` that belong to the block before it.
    :param last: where it ends in text node ``hi - 1``; -1 at that node's end.
    :param words: how many words it shows.
    :param requires: indices of blocks without which it must not stand (the header of its table).
    """

    document: int
    node: int
    lo: int
    hi: int
    words: int
    first: int = 0
    last: int = -1
    requires: tuple[int, ...] = ()

    @property
    def is_subtree(self) -> bool:
        """Whether the block is one whole subtree."""
        return self.lo == self.node


@dataclass(slots=True)
class Blocks:
    """A cut of one or more Trees; cut once, asked many times (treat it as immutable).

    :param trees: the documents, in order.
    :param blocks: their blocks, in document order.
    :param max_words: the granularity of the cut.
    :param whole: the cut that these are some blocks of; None where they are all.
    :param places: for each block its index in ``whole``.
    """

    trees: Sequence[Tree]
    blocks: list[Block]
    max_words: int
    whole: Blocks | None = None
    places: Sequence[int] = ()
    _texts: list[str] = field(default_factory=list)
    _contexts: list[Breadcrumbs] = field(default_factory=list)
    _steps: dict[tuple[int, int], Steps] = field(default_factory=dict)
    _attached: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    cache: dict[str, object] = field(default_factory=dict)
    """What engines derive from the blocks alone (token lists, embeddings), by engine."""

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def texts(self) -> list[str]:
        """The visible text of each block, a slice of its document's canonical text."""
        if not self._texts and self.blocks:
            spans = map(self.span, range(len(self.blocks)))
            whole = [self.trees[block.document].canonical for block in self.blocks]
            self._texts = [text[start:end] for text, (start, end) in zip(whole, spans, strict=True)]
        return self._texts

    @property
    def contexts(self) -> list[Breadcrumbs]:
        """What stands above each block: headings, table caption and header, the list's lead."""
        if not self._contexts and self.blocks:
            for number, own in groupby(self.blocks, key=attrgetter("document")):
                self._contexts.extend(breadcrumbs_of(self.trees[number], ((b.node, b.lo, b.hi) for b in own)))
        return self._contexts

    def span(self, index: int) -> tuple[int, int]:
        """Return the block's (start, end) in code points of its document's canonical text."""
        block = self.blocks[index]
        tree = self.trees[block.document]
        starts = tree.starts
        end_node = block.hi - 1
        while end_node > block.lo and not tree.text[end_node]:
            end_node -= 1
        end = starts[end_node] + len(tree.text[end_node])
        if block.last >= 0:
            end = starts[block.hi - 1] + block.last
        begin = block.lo
        while begin < end_node and not tree.text[begin]:
            begin += 1
        start = starts[begin] + (block.first if begin == block.lo else 0)
        return start, max(start, end)

    def path(self, index: int) -> str:
        """Return the block's numbered path, as ``html1/body/div2/p``; a run ends in ``text``.

        Siblings that share a tag are numbered from 1, an only one carries no number; the roots of
        several documents are numbered too. A tag that could be read as another's number, or as a
        run, is followed by a hyphen: ``<p1>`` is ``p1-``.
        """
        if self.whole is not None:  # runs that are not here keep their numbers
            return self.whole.path(self.places[index])
        block = self.blocks[index]
        tree = self.trees[block.document]
        steps: list[str] = []
        if not block.is_subtree:
            steps.append(_step("text", index, self._runs(block)))
        node = block.node
        while node > 0:
            parent = tree.parent[node]
            steps.append(_step(_name(tree.tag[node]), node, self._numbered(block.document, parent)))
            node = parent
        steps.append(f"{tree.tag[0]}{block.document + 1}" if len(self.trees) > 1 else tree.tag[0])
        return "/".join(reversed(steps))

    def _numbered(self, document: int, parent: int) -> Steps:
        """Number the element children of a node by tag."""
        known = self._steps.get((document, parent))
        if known is None:
            tree = self.trees[document]
            children = [child for child in tree.children(parent) if tree.tag[child]]
            known = self._steps[document, parent] = children, _numbers([tree.tag[child] for child in children])
        return known

    def _runs(self, block: Block) -> Steps:
        """Number the runs that are attached to one node."""
        if not self._attached:
            for index, other in enumerate(self.blocks):
                if not other.is_subtree:
                    self._attached.setdefault((other.document, other.node), []).append(index)
        key = (-1 - block.document, block.node)
        known = self._steps.get(key)
        if known is None:
            runs = self._attached[block.document, block.node]
            known = self._steps[key] = runs, _numbers(["text"] * len(runs))
        return known


def _name(tag: str) -> str:
    """Return what a tag is called in paths: never what another tag with a number, or a run, is called."""
    taken = tag in ("h", "text") or (tag != "" and tag[-1] in "-0123456789" and tag not in HEADINGS)
    return f"{tag}-" if taken else tag


def _numbers(names: Sequence[str]) -> Sequence[int]:
    """Number those that share a name from 1; an only one gets 0."""
    totals: dict[str, int] = {}
    for name in names:
        totals[name] = totals.get(name, 0) + 1
    seen: dict[str, int] = {}
    found: list[int] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(seen[name] if totals[name] > 1 else 0)
    return found


def _step(name: str, key: int, steps: Steps) -> str:
    """Return a step of a path: the name, with a number where several share it."""
    number = steps[1][bisect_left(steps[0], key)]
    return f"{name}{number}" if number else name


def cut(trees: Sequence[Tree], max_words: int = DEFAULT_MAX_WORDS, units: Units = "blocks") -> Blocks:
    """Cut documents into blocks of at most about ``max_words`` words (HtmlRAG, Algorithm 1).

    :param trees: one or many cleaned documents; several are one forest.
    :param max_words: granularity; a unit that cannot be cut (a table row's cell, a figure) may exceed it.
    :param units: ``blocks``, or ``leaves`` for the DOM's leaves as units (the paper's ablation).
    :raises ValueError: ``max_words`` is below 1.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, not {max_words}")
    blocks: list[Block] = []
    requires: tuple[int, ...] = ()
    for document, tree in enumerate(trees):
        offset = len(blocks)
        for piece in cut_tree(tree, max_words, units == "leaves"):
            needed = tuple(offset + other for other in piece.requires)
            requires = requires if requires == needed else needed  # the rows of a table share theirs
            blocks.append(
                Block(document, piece.node, piece.lo, piece.hi, piece.words, piece.first, piece.last, requires)
            )
    return Blocks(trees, blocks, max_words)


def split(blocks: Blocks, index: int, max_words: int) -> list[Block]:
    """Cut one block finer; the parts cover exactly it, and stand in its place."""
    block = blocks.blocks[index]
    whole = Piece(block.node, block.lo, block.hi, block.words, block.first, block.last)
    parts = cut_piece(blocks.trees[block.document], whole, max_words)
    return [
        Block(
            block.document,
            part.node,
            part.lo,
            part.hi,
            part.words,
            part.first,
            part.last,
            tuple(index + needed for needed in part.requires),
        )
        for part in parts
    ]


def mask_of(blocks: Blocks, kept: Sequence[int], document: int) -> tuple[bytearray, dict[int, list[tuple[int, int]]]]:
    """Translate kept blocks of one document into what a writer needs.

    :returns: per node 0 dropped, 1 kept, 2 above something kept; and the text nodes of which only
        pieces are kept.
    """
    tree = blocks.trees[document]
    mask = bytearray(len(tree))
    pieces: dict[int, list[tuple[int, int]]] = {}
    for index in kept:
        block = blocks.blocks[index]
        if block.document != document:
            continue
        mask[block.lo : block.hi] = b"\1" * (block.hi - block.lo)
        above = tree.parent[block.lo]
        while above >= 0 and not mask[above]:
            mask[above] = 2
            above = tree.parent[above]
        last = block.hi - 1
        above = tree.parent[last]
        while above >= block.lo:  # a run of an index may end inside an element that it begins
            if tree.end[above] > block.hi:
                mask[above] = 2
            above = tree.parent[above]
        if block.first or block.last >= 0:
            size = len(tree.text[last])
            end = block.last if block.last >= 0 else size
            if block.lo == last:
                pieces.setdefault(last, []).append((block.first, end))
            else:
                if block.first:
                    pieces.setdefault(block.lo, []).append((block.first, len(tree.text[block.lo])))
                if block.last >= 0:
                    pieces.setdefault(last, []).append((0, end))
    for ranges in pieces.values():
        ranges.sort()
    return mask, pieces
