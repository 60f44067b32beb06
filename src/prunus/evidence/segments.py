"""What of a document can be quoted: sentences, and the rows, pairs, lists and code that must not be cut apart.

A quote is a slice of the canonical text. What stands above it (headings, the header of its table, the
words that introduce its list) is told apart from it: it helps to find the quote and to read it, and is
no part of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from ..core.ports import Tagged
from ..core.text.words import sentence_spans
from ..core.types import BlockRecord, Span
from ..pages.clean import rules
from ..pages.grid import has_rowspans, header_rows, row_cells, span
from ..pages.tree import Tree, subtree_text
from .breadcrumbs import Breadcrumbs, breadcrumbs_of

Kind = Literal["sentence", "row", "pair", "list", "code"]

WHOLE: Final = 80
"""Words of a row, a pair, a list or a piece of code that is quoted whole."""

ITEMS: Final = 10
"""Items of a list that is quoted whole."""

_LABELS: Final = rules.HEADINGS | {"title", "dt", "summary", "caption", "legend"}
_ABOVE_LENGTH: Final = 160


@dataclass(frozen=True, slots=True)
class Segment:
    """One thing that can be quoted.

    :param start, end: where it stands in the canonical text.
    :param above: headings, caption, table header and lead above it, for scoring.
    :param label: what a reader of the quote needs besides: the header of its table, the lead of its list.
    """

    start: int
    end: int
    kind: Kind
    above: str
    label: str = ""


def segments_of(tree: Tree, kept: Sequence[tuple[int, int]]) -> list[Segment]:
    """List what can be quoted of the kept parts of a document, in document order; lists also item by item.

    :param kept: slices of the canonical text, in order.
    """
    spans = _joined(tree, kept)
    units = [unit for unit in _units(tree) if _inside(spans, unit[0], unit[1])]
    found: list[tuple[int, int, Kind]] = [(start, end, kind) for start, end, kind in units if kind != "label"]
    taken = _merged([(start, end) for start, end, kind in units if kind != "list"])
    for start, end in _left(spans, taken):
        for begin, stop in sentence_spans(tree.canonical[start:end]):
            trimmed = _trimmed(tree.canonical, start + begin, start + stop)
            if trimmed:
                found.append((*trimmed, "sentence"))
    found.sort(key=lambda one: (one[0], -one[1]))
    return _with_context(tree, found)


def _units(tree: Tree) -> Iterator[tuple[int, int, Kind | Literal["label"]]]:
    """Yield what is quoted whole, or says what is below it, as (start, end, kind)."""
    node = 0
    headers: set[int] = set()
    while node < len(tree):
        tag = tree.tag[node]
        after = node + 1
        if tag == "table":
            headers |= header_rows(tree, node)
        elif tag in ("ul", "ol"):
            items = sum(tree.tag[child] == "li" for child in tree.children(node))
            if 1 < items <= ITEMS and 0 < tree.word_count(node) <= WHOLE:
                yield *_span(tree, node, tree.end[node]), "list"
        elif tag and tree.word_count(node):
            kind, last = _kind(tree, node, tag, headers)
            if kind:
                yield *_span(tree, node, last), kind
                after = last
        node = after


def _kind(tree: Tree, node: int, tag: str, headers: set[int]) -> tuple[Kind | Literal["label", ""], int]:
    """Return what kind of unit a node begins, and where it ends."""
    end = tree.end[node]
    if tag == "dt":
        last = end
        while last < tree.end[tree.parent[node]] and tree.tag[last] == "dd":
            last = tree.end[last]
        whole = last > end and tree.words[last] - tree.words[node] <= WHOLE
        return ("pair", last) if whole else ("label", end)
    if tag in _LABELS or node in headers:
        return "label", end
    if tag == "tr" and tree.word_count(node) <= WHOLE and "table" not in tree.tag[node:end]:
        return "row", end
    if tag == "pre" and tree.word_count(node) <= WHOLE:
        return "code", end
    return "", end


def _with_context(tree: Tree, found: Sequence[tuple[int, int, Kind]]) -> list[Segment]:
    """Give each what stands above it."""
    places = []
    for start, _, kind in found:
        node = tree.node_at(start)
        if kind == "list":
            while tree.tag[node] not in ("ul", "ol"):
                node = tree.parent[node]
        places.append((tree.parent[node], node, node + 1))
    texts: dict[int, str] = {}
    result = []
    for (start, end, kind), context in zip(found, breadcrumbs_of(tree, places), strict=True):
        for heading in context.headings:
            texts.setdefault(heading, subtree_text(tree, heading)[:_ABOVE_LENGTH])
        above = [tree.title[:_ABOVE_LENGTH], *(texts[heading] for heading in context.headings)]
        lead = context.lead or (_introduction(tree, tree.node_at(start)) if kind == "list" else "")
        result.append(Segment(start, end, kind, "\n".join([*above, lead]), _label(tree, start, kind, context)))
    return result


def _label(tree: Tree, start: int, kind: Kind, context: Breadcrumbs) -> str:
    """Return what a reader needs to understand a row or an item."""
    if context.table < 0:
        return context.lead if context.lead and kind in ("sentence", "list") else ""
    if kind != "row":
        return ""
    row = tree.node_at(start)
    while tree.parent[row] >= 0 and tree.tag[row] != "tr":
        row = tree.parent[row]
    return " | ".join(_column_heads(tree, context.table, row))[: 2 * _ABOVE_LENGTH]


def _column_heads(tree: Tree, table: int, row: int) -> list[str]:
    """Return what the header says above each cell of a row that shows something; where cells span rows, all of it."""
    heads = sorted(header_rows(tree, table))
    if not heads:
        return []
    above = dict(_columns(tree, heads[-1]))
    if not above:  # a header row without a cell
        return []
    if has_rowspans(tree, table):
        return [subtree_text(tree, cell) for cell in above.values() if tree.word_count(cell)]
    shown = [column for column, cell in _columns(tree, row) if tree.word_count(cell)]
    starts = sorted(above)
    found = []
    for column in shown:
        head = above[starts[max(0, bisect_right(starts, column) - 1)]]
        found.append(subtree_text(tree, head) if tree.word_count(head) else "-")
    return found


def _columns(tree: Tree, row: int) -> Iterator[tuple[int, int]]:
    """Yield the column at which each cell of a row begins, and the cell."""
    column = 0
    for cell in row_cells(tree, row):
        yield column, cell
        column += span(tree, cell, "colspan")


def _introduction(tree: Tree, node: int) -> str:
    """Return the words right before a list, where they are on the line that introduces it."""
    while node > 0 and tree.tag[node] not in ("ul", "ol"):
        node = tree.parent[node]
    before = tree.canonical[max(0, tree.starts[node] - 2 * _ABOVE_LENGTH) : tree.starts[node]].rstrip()
    return before[before.rfind("\n") + 1 :]


# --- spans ---------------------------------------------------------------------------------------


def _span(tree: Tree, node: int, end: int) -> tuple[int, int]:
    """Return where the text of nodes ``[node, end)`` stands."""
    last = end - 1
    while last > node and not tree.text[last]:
        last -= 1
    while node < last and not tree.text[node]:
        node += 1
    return _trimmed(tree.canonical, tree.starts[node], tree.starts[last] + len(tree.text[last])) or (0, 0)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Take white space off both ends; None where nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _joined(tree: Tree, kept: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join slices between which nothing but white space stands."""
    found: list[tuple[int, int]] = []
    for start, end in kept:
        if found and not tree.canonical[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge spans that overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _inside(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Tell whether a slice lies in one of several, which are in order."""
    place = bisect_right(spans, (start, 1 << 60)) - 1
    return start < end and place >= 0 and end <= spans[place][1]


def _left(spans: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of slices without those that are taken; both are in order."""
    place = 0
    for start, end in spans:
        while place < len(taken) and taken[place][1] <= start:
            place += 1
        index = place
        while index < len(taken) and taken[index][0] < end:
            if taken[index][0] > start:
                yield start, taken[index][0]
            start = max(start, taken[index][1])
            index += 1
        if start < end:
            yield start, end


def segments(kept: Sequence[BlockRecord], trees: Mapping[str, Tree]) -> list[Tagged]:
    """Cut kept blocks into what can be quoted, each with its place, its block's score and what stands above it."""
    tagged: list[Tagged] = []
    for document, run in groupby(kept, key=lambda record: record.span.document):
        records, tree = list(run), trees[document]
        begins = [record.span.start for record in records]
        for one in segments_of(tree, [(record.span.start, record.span.end) for record in records]):
            score = records[max(0, bisect_right(begins, one.start) - 1)].score
            text, span = tree.canonical[one.start : one.end], Span(document, one.start, one.end)
            tagged.append(Tagged(len(tagged) + 1, text, span, score, one.above, one.label, one.kind))
    return tagged
