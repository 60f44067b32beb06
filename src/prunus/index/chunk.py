"""Cut a document into chunks: the leaves of the summary tree (RAPTOR §3).

A chunk is a slice of the document's canonical text: whole sentences up to about ``size`` tokens, never more than
``cap``, never empty. Chunks do not overlap, are in document order, and together leave out only white space. A table, a
group of its rows, a list or a code block that fits under the cap is not cut.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..core.errors import BadInput
from ..core.ports import TokenCounter
from ..core.text.words import sentence_spans
from ..evidence.breadcrumbs import LEAD_LENGTH, breadcrumbs_of
from ..pages.clean.rules import HEADINGS
from ..pages.table_headers import group_titles
from ..pages.tree import Tree, subtree_text

SIZE: Final = 100
"""Tokens of a chunk (RAPTOR §3)."""

SMALLEST: Final = 8
"""The smallest cap: a single code point can take several tokens."""

_WHOLE: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr", "ul", "ol", "dl", "li", "pre", "figure"})
_POINTS_A_TOKEN: Final = 16
"""More code points than a token has on average in any text: a longer slice cannot fit, and is not counted."""
_TRIES: Final = 8
"""Nested elements that are counted to see whether they fit; bounds the work on deep nesting."""
_RUN: Final = 8
"""Code points of the pieces of a word that is longer than a chunk."""
_WORD: Final = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of a document.

    :param start, end: the slice, in code points of the canonical text.
    :param text: the text of the slice.
    :param tokens: tokens of ``text``.
    :param above: the headings above the chunk, outermost first, then the lead of its table or list.
    """

    start: int
    end: int
    text: str
    tokens: int
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    """An indivisible slice: a sentence, a small table, or a piece of a long sentence."""

    start: int
    end: int
    tokens: int
    heading: bool = False


def chunk_text(text: str, counter: TokenCounter, size: int = SIZE, cap: int = 0) -> list[Chunk]:
    """Cut plain text into chunks.

    :param size: tokens up to which sentences are packed together; the next sentence begins a new chunk.
    :param cap: most tokens of a chunk; a longer sentence is cut. 0 is twice the size.
    :raises BadInput: the size is below 1, or the cap below the size or below 8.
    """
    return _Chunker(text, counter, size, cap).chunks(_sentences(text, 0, len(text)))


def chunk_tree(tree: Tree, counter: TokenCounter, size: int = SIZE, cap: int = 0) -> list[Chunk]:
    """Cut a cleaned document into chunks along its structure; spans refer to ``tree.canonical``.

    A heading begins a chunk (unless the text before it is very short) and never ends a chunk.

    :param size, cap: as for :func:`chunk_text`.
    :raises BadInput: as for :func:`chunk_text`.
    """
    text = tree.canonical
    chunker = _Chunker(text, counter, size, cap)
    headings = _headings(tree)
    whole = _whole(tree, chunker.fits)
    spans: list[tuple[int, int]] = []
    place = 0
    for start, end in sorted([*whole, *headings]):
        if start < place:  # a heading inside a cell or an item that is kept whole
            continue
        spans += _sentences(text, place, start)
        spans.append((start, end))
        place = end
    spans += _sentences(text, place, len(text))
    chunks = chunker.chunks(spans, {start for start, _ in headings})
    above = _above(tree, chunks)
    return [
        Chunk(chunk.start, chunk.end, chunk.text, chunk.tokens, lines)
        for chunk, lines in zip(chunks, above, strict=True)
    ]


class _Chunker:
    """Packs the units of one text into chunks."""

    def __init__(self, text: str, counter: TokenCounter, size: int, cap: int) -> None:
        cap = cap or max(SMALLEST, 2 * size)
        if size < 1 or cap < max(size, SMALLEST):
            raise BadInput(
                f"chunks of {size} tokens with a cap of {cap}: the size must be positive, and the cap at least the "
                f"size and {SMALLEST}",
                subject="chunk size",
            )
        self.text, self.counter, self.size, self.cap = text, counter, size, cap

    def count(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Return the tokens of each slice."""
        return [int(tokens) for tokens in self.counter.count([self.text[start:end] for start, end in spans])]

    def fits(self, start: int, end: int) -> bool | None:
        """Tell whether a slice stays under the cap; None for a slice that is too long to be worth counting."""
        if end - start > self.cap * _POINTS_A_TOKEN:
            return None
        return self.count([(start, end)])[0] <= self.cap

    def chunks(self, spans: Sequence[tuple[int, int]], headings: set[int] | None = None) -> list[Chunk]:
        """Pack adjacent slices into chunks.

        :param headings: the starts of the slices that are headings.
        """
        units = self._units(spans, headings or set())
        ready = [self._trimmed(group) for group in self._packed(units)]
        found: list[Chunk] = []
        for (start, end), tokens in zip(ready, self.count(ready), strict=True):
            found += self._capped(start, end, tokens)
        return found

    def _units(self, spans: Sequence[tuple[int, int]], headings: set[int]) -> Iterator[_Unit]:
        """Yield slices as units; a slice over the cap is cut into pieces."""
        for (start, end), tokens in zip(spans, self.count(spans), strict=True):
            if tokens <= self.cap:
                yield _Unit(start, end, tokens, start in headings)
            else:
                yield from self._pieces(start, end)

    def _pieces(self, start: int, end: int) -> Iterator[_Unit]:
        """Cut a slice over the cap between words, and a word over the cap between letters."""
        words = [(start + word.start(), start + word.end()) for word in _WORD.finditer(self.text[start:end])]
        for (first, last), tokens in zip(words, self.count(words), strict=True):
            if tokens <= self.cap:
                yield _Unit(first, last, tokens)
                continue
            runs = list(_runs(self.text, first, last, _RUN))
            for (left, right), size in zip(runs, self.count(runs), strict=True):
                if size <= self.cap:
                    yield _Unit(left, right, size)
                else:
                    yield from (_Unit(place, place + 1, SMALLEST) for place in range(left, right))

    def _packed(self, units: Iterator[_Unit]) -> Iterator[list[_Unit]]:
        """Group units up to the size."""
        group: list[_Unit] = []
        total = 0
        for unit in units:
            if not group and not self.text[unit.start : unit.end].strip():
                continue
            new_section = unit.heading and total * 4 >= self.size and not group[-1].heading
            if group and (new_section or total + unit.tokens > self.size):
                kept = len(group)
                while not new_section and kept and group[kept - 1].heading:
                    kept -= 1  # a heading moves to the chunk of the text below it
                if kept:
                    yield group[:kept]
                    group = group[kept:]
                elif total + unit.tokens > self.cap:
                    yield group
                    group = []
                total = sum(moved.tokens for moved in group)
                if group and total + unit.tokens > self.cap:
                    yield group
                    group, total = [], 0
            if group or self.text[unit.start : unit.end].strip():
                group.append(unit)
                total += unit.tokens
        if group:
            yield group

    def _trimmed(self, group: Sequence[_Unit]) -> tuple[int, int]:
        return _trim(self.text, group[0].start, group[-1].end)

    def _capped(self, start: int, end: int, tokens: int) -> Iterator[Chunk]:
        """Yield a chunk, halved where it is over the cap: tokens of a joined text may exceed the sum of its parts."""
        if tokens <= self.cap or end - start < 2:
            yield Chunk(start, end, self.text[start:end], tokens)
            return
        half = _middle(self.text, start, end)
        parts = [span for span in (_trim(self.text, start, half), _trim(self.text, half, end)) if span[0] < span[1]]
        for (first, last), size in zip(parts, self.count(parts), strict=True):
            yield from self._capped(first, last, size)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a slice without the white space at its ends."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _middle(text: str, start: int, end: int) -> int:
    """Return a place near the middle of a slice, between words where possible."""
    half = (start + end) // 2
    space = text.find(" ", half, end - 1)
    return space if space >= 0 else half


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(start + first, start + last) for first, last in sentence_spans(text[start:end])]


def _runs(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a word into runs of about ``size`` letters; a combining mark stays with its letter."""
    while start < end:
        stop = min(end, start + size)
        longest = min(end, stop + size)
        while stop < longest and unicodedata.combining(text[stop]):
            stop += 1
        yield start, stop
        start = stop


def _span(tree: Tree, node: int) -> tuple[int, int]:
    """Return the span of a subtree's text; (0, 0) where it has none."""
    last = tree.end[node] - 1
    while last > node and not tree.text[last]:
        last -= 1
    first = node
    while first < last and not tree.text[first]:
        first += 1
    return tree.starts[first], tree.stop(last)


def _headings(tree: Tree) -> list[tuple[int, int]]:
    """Return the spans of headings with visible words."""
    spans = (_span(tree, node) for node, tag in enumerate(tree.tag) if tag in HEADINGS)
    return [(start, end) for start, end in spans if tree.canonical[start:end].strip()]


def _whole(tree: Tree, fits: Callable[[int, int], bool | None]) -> list[tuple[int, int]]:
    """Return the spans of the outermost tables, row groups, lists and code blocks that fit under the cap."""
    found: list[tuple[int, int]] = []
    failed: list[int] = []  # ends of the enclosing subtrees that do not fit
    node = 0
    while node < len(tree):
        while failed and failed[-1] <= node:
            failed.pop()
        if tree.tag[node] in _WHOLE and len(failed) < _TRIES:
            start, end = _span(tree, node)
            if start < end:
                answer = fits(start, end)
                if answer:
                    found.append((start, end))
                    node = tree.end[node]
                    continue
                if answer is not None:
                    failed.append(tree.end[node])
        node += 1
    return found


def _above(tree: Tree, chunks: Sequence[Chunk]) -> list[tuple[str, ...]]:
    """Return the headings and the lead above each chunk; a chunk of several sections has only their shared ones.

    A chunk that begins inside a group of rows has the group's title in its lead.
    """
    places: list[tuple[int, int, int]] = []
    for chunk in chunks:
        first, last = tree.node_at(chunk.start), tree.node_at(chunk.end - 1)
        places.append((max(0, tree.parent[first]), first, max(first, last) + 1))
    headings = [node for node, tag in enumerate(tree.tag) if tag in HEADINGS]
    texts: dict[int, str] = {}
    found = []
    for (_, first, end), context in zip(places, breadcrumbs_of(tree, places), strict=True):
        inside = headings[bisect_left(headings, first) : bisect_right(headings, end - 1)]
        level = min((int(tree.tag[node][1]) for node in inside), default=7)
        shared = [node for node in context.headings if int(tree.tag[node][1]) < level]
        for node in shared:
            if node not in texts:
                texts[node] = subtree_text(tree, node)
        lines = [texts[node] for node in shared]
        lead = context.lead
        if context.table >= 0:  # the title of the first row's group, too
            row = first
            while row > context.table and tree.tag[row] != "tr":
                row = tree.parent[row]
            titles = group_titles(tree, context.table).get(row, ())
            lead = " ".join([lead, *(subtree_text(tree, title) for title in titles)])[: 2 * LEAD_LENGTH].strip()
        beginning = " ".join(tree.canonical[tree.starts[first] : tree.starts[first] + 2 * len(lead) + 200].split())
        if lead and lead[:60] not in beginning:
            lines.append(lead)
        found.append(tuple(lines))
    return found
