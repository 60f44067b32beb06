"""The block tree of adjustable granularity (HtmlRAG §3.3, Algorithm 1), over one or many documents.

A block is a subtree or a run of siblings. A run is the text between the child blocks of a node, a
small section with its heading, a term with its definitions, or some sentences of a text that is too
long for one block. Blocks are contiguous and in document order, and every visible word lies in
exactly one block. The default size of a block follows the size of the pages, the budget and the question.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Literal, Protocol

from ..core.ports import Floats
from ..pages.clean import rules
from ..pages.clean.elements import ITEMS
from ..pages.tree import Tree
from ..pages.write.selection import AFTER, BEFORE, Kept, Pieces
from .breadcrumbs import Breadcrumbs, breadcrumbs_of
from .cut import WHOLE_WORDS, Piece, cut_piece, cut_tree

Units = Literal["blocks", "leaves"]

DEFAULT_MAX_WORDS = 256
"""Words per block before embedding-based pruning (HtmlRAG §4.4)."""

Step = tuple[str, int]
"""A step of a path: a name, and its number among the siblings of that name; 0 where it is the only one."""

Steps = tuple[Sequence[int], Sequence[int]]
"""The children of a node, and the number of each child in a path; 0 for a child without a number."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block: the nodes ``[lo, hi)`` of a Tree; it may begin and end inside text nodes.

    :param document: index of the Tree.
    :param node: the subtree's root, or the parent node of a run.
    :param lo, hi: first node of the block, and one past its last node.
    :param words: visible words of the block.
    :param first: code points of text node ``lo`` that belong to the block before.
    :param last: code point of text node ``hi - 1`` at which the block ends; -1 is the end of that node.
    :param requires: indices of blocks that must be kept with this block (the header rows of its table).
    :param ragged: where the block ends inside a sentence: ``BEFORE`` and ``AFTER`` it.
    """

    document: int
    node: int
    lo: int
    hi: int
    words: int
    first: int = 0
    last: int = -1
    requires: tuple[int, ...] = ()
    ragged: int = 0

    @property
    def is_subtree(self) -> bool:
        """Whether the block is one whole subtree."""
        return self.lo == self.node


@dataclass(slots=True)
class Blocks:
    """The blocks of one or more Trees: cut once, used for many questions (treat it as immutable).

    :param trees: the documents, in order.
    :param blocks: their blocks, in document order.
    :param max_words: the granularity of the cut, in words per block.
    :param whole: the full cut, where these blocks are a subset of it; None where they are all blocks.
    :param places: index in ``whole`` of each block.
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
    """Values that engines derive from the blocks alone (token counts, embeddings), by a key that names the engine."""

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def texts(self) -> list[str]:
        """The visible text of each block, a slice of its document's canonical text."""
        if not self._texts and self.blocks:
            spans = map(self.span, range(len(self.blocks)))
            pages = [self.trees[block.document].canonical for block in self.blocks]
            self._texts = [page[start:end] for page, (start, end) in zip(pages, spans, strict=True)]
        return self._texts

    @property
    def contexts(self) -> list[Breadcrumbs]:
        """The breadcrumbs of each block: headings, table caption and header, lead of its list."""
        if not self._contexts and self.blocks:
            result: list[Breadcrumbs] = []  # another thread may ask meanwhile, and must not get a part
            for document, group in groupby(self.blocks, key=attrgetter("document")):
                result.extend(breadcrumbs_of(self.trees[document], ((b.node, b.lo, b.hi) for b in group)))
            self._contexts = result
        return self._contexts

    def span(self, index: int) -> tuple[int, int]:
        """Return the block's (start, end) in code points of its document's canonical text."""
        block = self.blocks[index]
        tree = self.trees[block.document]
        end_node = block.hi - 1
        while end_node > block.lo and not tree.text[end_node]:
            end_node -= 1
        end = tree.stop(end_node) if block.last < 0 else tree.offset(block.hi - 1, block.last)
        begin = block.lo
        while begin < end_node and not tree.text[begin]:
            begin += 1
        start = tree.offset(begin, block.first if begin == block.lo else 0)
        return start, max(start, end)

    def path(self, index: int) -> str:
        """Return the block's numbered path, as ``html1/body/div2/p``; the path of a run ends in ``text``.

        Siblings with the same tag are numbered from 1; a tag without such siblings has no number. The
        roots of several documents are numbered too. A hyphen follows a tag that looks like a numbered
        tag or like a run: ``<p1>`` is written ``p1-``.
        """
        return "/".join([f"{name}{number}" if number else name for name, number in self.steps(index)])

    def steps(self, index: int) -> list[Step]:
        """Return the steps of the block's numbered path, from the root down."""
        if self.whole is not None:  # the numbers of the full cut also count runs that this subset lacks
            return self.whole.steps(self.places[index])
        block = self.blocks[index]
        steps: list[Step] = []
        if not block.is_subtree:
            steps.append(("text", _number_of(index, self._runs(block))))
        node, parents = block.node, self.trees[block.document].parent
        while node >= 0:
            steps.append(self.step_of(block.document, node))
            node = parents[node]
        steps.reverse()
        return steps

    def step_of(self, document: int, node: int) -> Step:
        """Return the step of an element in numbered paths."""
        tree = self.trees[document]
        if not node:
            return tree.tag[0], document + 1 if len(self.trees) > 1 else 0
        return _name(tree.tag[node]), _number_of(node, self._numbered(document, tree.parent[node]))

    def _numbered(self, document: int, parent: int) -> Steps:
        """Number the element children of a node, by tag."""
        known = self._steps.get((document, parent))
        if known is None:
            tree = self.trees[document]
            children = [child for child in tree.children(parent) if tree.tag[child]]
            known = self._steps[document, parent] = children, _numbers([tree.tag[child] for child in children])
        return known

    def _runs(self, block: Block) -> Steps:
        """Number the runs below the parent of a run."""
        if not self._attached:
            for index, candidate in enumerate(self.blocks):
                if not candidate.is_subtree:
                    self._attached.setdefault((candidate.document, candidate.node), []).append(index)
        key = (-1 - block.document, block.node)  # negative: the keys of ``_numbered`` have the plain document
        known = self._steps.get(key)
        if known is None:
            runs = self._attached[block.document, block.node]
            known = self._steps[key] = runs, _numbers(["text"] * len(runs))
        return known


def _name(tag: str) -> str:
    """Return the name of a tag in paths; a hyphen follows if it looks like a numbered tag or like a run."""
    taken = tag in ("h", "text") or (tag != "" and tag[-1] in "-0123456789" and tag not in rules.HEADINGS)
    return f"{tag}-" if taken else tag


def _numbers(names: Sequence[str]) -> Sequence[int]:
    """Number equal names from 1; a name that occurs once gets 0."""
    totals: dict[str, int] = {}
    for name in names:
        totals[name] = totals.get(name, 0) + 1
    seen: dict[str, int] = {}
    numbers: list[int] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        numbers.append(seen[name] if totals[name] > 1 else 0)
    return numbers


def _number_of(key: int, steps: Steps) -> int:
    """Return the number of a child in paths."""
    return steps[1][bisect_left(steps[0], key)]


def cut(
    trees: Sequence[Tree],
    max_words: int = DEFAULT_MAX_WORDS,
    units: Units = "blocks",
    whole_words: int = WHOLE_WORDS,
) -> Blocks:
    """Cut documents into blocks of at most about ``max_words`` words (HtmlRAG, Algorithm 1).

    :param trees: one or many cleaned documents; several documents form one forest.
    :param max_words: granularity; a unit that cannot be cut (a table cell, a figure) may exceed it.
    :param units: ``blocks``, or ``leaves`` for the DOM's leaves as units (the paper's ablation).
    :param whole_words: most words of a sentence or a row of data that stays whole at any granularity.
    :raises ValueError: ``max_words`` is below 1.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, not {max_words}")
    blocks: list[Block] = []
    requires: tuple[int, ...] = ()
    for document, tree in enumerate(trees):
        offset = len(blocks)
        for piece in cut_tree(tree, max_words, units == "leaves", whole_words):
            needed = tuple(offset + place for place in piece.requires)
            requires = requires if requires == needed else needed  # the rows of a table share one tuple: saves memory
            blocks.append(
                Block(
                    document,
                    piece.node,
                    piece.lo,
                    piece.hi,
                    piece.words,
                    piece.first,
                    piece.last,
                    requires,
                    piece.ragged,
                )
            )
    return Blocks(trees, blocks, max_words)


def split(blocks: Blocks, index: int, max_words: int, whole_words: int = WHOLE_WORDS) -> list[Block]:
    """Cut one block finer; the parts cover it exactly.

    :param whole_words: as for :func:`cut`.
    :returns: the parts; their ``requires`` assume that the parts replace the block at ``index``.
    """
    block = blocks.blocks[index]
    whole = Piece(block.node, block.lo, block.hi, block.words, block.first, block.last, ragged=block.ragged)
    parts = cut_piece(blocks.trees[block.document], whole, max_words, whole_words)
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
            part.ragged,
        )
        for part in parts
    ]


def kept_part(blocks: Blocks, kept: Sequence[int], document: int) -> Kept:
    """Translate the kept blocks of one document into the part that a writer needs.

    :param kept: indices of the blocks, ascending.
    """
    tree = blocks.trees[document]
    mask = bytearray(len(tree))
    part = Kept(mask, {}, {})
    before: Block | None = None
    for index in kept:
        block = blocks.blocks[index]
        if block.document != document:
            continue
        _mark_gap(tree, before, block, part.marks)
        _add(tree, block, mask, part.pieces)
        before = block
    if before is not None and before.ragged & AFTER:
        _mark_text(tree, range(before.hi - 1, before.lo - 1, -1), AFTER, part.marks)
    for ranges in part.pieces.values():
        ranges.sort()
    return part


def _add(tree: Tree, block: Block, mask: bytearray, pieces: Pieces) -> None:
    """Add the nodes of a block and their ancestors to a mask, and its parts of text nodes to the pieces."""
    mask[block.lo : block.hi] = b"\1" * (block.hi - block.lo)
    above = tree.parent[block.lo]
    while above >= 0 and not mask[above]:
        mask[above] = 2
        above = tree.parent[above]
    last = block.hi - 1
    above = tree.parent[last]
    while above >= block.lo:  # a chunk of an index may end inside an element that begins in it
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


def _mark_gap(tree: Tree, before: Block | None, block: Block, marks: dict[int, int]) -> None:
    """Mark that something was left out between two kept blocks: inside a paragraph, or among the items of a list.

    :param before: the kept block before the block, if there is one.
    """
    if before is None:
        if block.ragged & BEFORE:
            _mark_text(tree, range(block.lo, block.hi), BEFORE, marks)
        return
    if not _words_between(tree, before, block):
        return
    last = before.hi - 1
    inline, item, node = True, -1, block.lo
    while node > last:
        tag = tree.tag[node]
        inline = inline and (tag in rules.INLINE or not tag)
        item = node if tag in ITEMS else item
        node = tree.parent[node]
    inline = inline and _ends_inline(tree, last, node)
    if item > last and tree.tag[node] in rules.LISTS:
        marks[item] = BEFORE
    if (inline or block.ragged & BEFORE) and last != block.lo:
        _mark_text(tree, range(block.lo, block.hi), BEFORE, marks)
    if before.ragged & AFTER and not inline:
        _mark_text(tree, range(last, before.lo - 1, -1), AFTER, marks)


def _words_between(tree: Tree, before: Block, block: Block) -> bool:
    """Tell whether there are words between two blocks."""
    last = before.hi - 1
    if last == block.lo:
        return bool(tree.text[last][before.last : block.first].strip())
    if tree.words[block.lo] > tree.words[before.hi]:
        return True
    tail = tree.text[last][before.last :] if before.last >= 0 else ""
    return bool(tail.strip() or tree.text[block.lo][: block.first].strip())


def _ends_inline(tree: Tree, node: int, above: int) -> bool:
    """Tell whether no block lies between a node and an ancestor."""
    while node > above:
        if tree.tag[node] and tree.tag[node] not in rules.INLINE:
            return False
        node = tree.parent[node]
    return True


def _mark_text(tree: Tree, nodes: Iterable[int], side: int, marks: dict[int, int]) -> None:
    """Mark the first of some nodes that is a text."""
    for node in nodes:
        if tree.text[node] and not tree.tag[node]:
            marks[node] = marks.get(node, 0) | side
            return


class Scorer(Protocol):
    """Scores blocks for a question."""

    second_stage: bool
    """Whether it reads closely, and serves as the second of two stages."""
    one_prompt: bool
    """Whether it reads all blocks in one prompt."""
    least_share: float
    """Share of the best block's score below which a block bears on nothing; 0 where its scores cannot tell."""

    @property
    def tree(self) -> Callable[[str, Blocks], Any] | None:
        """Scores as a token tree does (its ``scores``, float [n]), to be shown; None where there is no tree."""
        ...

    def score(self, query: str, blocks: Blocks) -> Floats:
        """Return one score per block, float [n]; higher is better."""
        ...


FINE: Final = 48
"""Words per block for a question about a fact (chosen on the dev half of table_qa and page_qa)."""

COARSE: Final = 128
"""Words per block for an overview question: whole paragraphs and small sections."""

_OVERVIEW: Final = re.compile(
    r"\b(?:summar\w*|overview|describe|explain|discuss|compare|outline|introduc\w+|about|why"
    r"|how (?:do|does|did|can|to|is|are)"
    r"|what (?:is|are) the (?:main|key|differences?|advantages?|steps?|reasons?)|tell me)\b"
    r"|总结|概述|介绍|为什么|如何|怎么",
    re.IGNORECASE,
)


def is_overview(query: str) -> bool:
    """Tell by its words whether a question asks for an overview rather than for a fact."""
    return bool(_OVERVIEW.search(query))


def max_words_for(words: int, budget: int, query: str) -> int:
    """Choose the number of words per block.

    :param words: visible words of all pages.
    :param budget: tokens of evidence.
    :param query: the question; an overview gets coarser blocks than a fact.
    """
    wanted = COARSE if is_overview(query) else FINE
    if budget < 16 * wanted:  # fewer than about a dozen blocks would fit
        wanted = max(8, budget // 16)
    if words > 200_000:  # very large input: fewer, larger units keep the time down
        wanted = max(wanted, 96)
    return min(wanted, COARSE)


PUBLISHED_BUDGETS: Final = (8192, 4096)
"""Tokens after the first and after the second stage (HtmlRAG §4.4)."""

PUBLISHED_WORDS: Final = (256, 128)
"""Words per block in the first and in the second stage (HtmlRAG §4.4)."""


def coarse_budget_for(budget: int) -> int:
    """Choose how many tokens the first of two stages keeps: the published 8,192, or twice the budget if that is more.

    :param budget: tokens of evidence after both stages.
    """
    return max(PUBLISHED_BUDGETS[0], 2 * budget)


def coarse_words_for(coarse_budget: int, fine_words: int) -> int:
    """Choose the words per block in the first of two stages: the published 256 at 8,192 tokens, fewer for fewer tokens.

    :param coarse_budget: tokens that the first stage keeps.
    :param fine_words: words per block in the second stage; the first stage never cuts finer.
    """
    return max(fine_words, min(PUBLISHED_WORDS[0], coarse_budget // 32))


def fine_words_for(budget: int, query: str) -> int:
    """Choose the words per block in the second of two stages.

    From the published 4,096 tokens on, blocks have the published 128 words. Below, :func:`max_words_for` chooses.

    :param budget: tokens of evidence.
    """
    if budget >= PUBLISHED_BUDGETS[1]:
        return PUBLISHED_WORDS[1]
    return max_words_for(0, budget, query)
