"""Cut documents into segments that can be quoted: sentences, and rows, pairs, lists and code that stay whole.

A quote is a slice of the canonical text. Its context (headings, the header of its table, the words
that introduce its list) is a separate field: it helps to find and to read the quote, and is no part of
it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, Literal

from ..core.ports import Segment
from ..core.text.words import sentence_spans
from ..core.types import BlockRecord, Span
from ..pages.clean import rules
from ..pages.grid import placed_cells, row_cells, table_rows
from ..pages.table_headers import group_titles, header_rows, header_rows_of
from ..pages.tree import Tree, subtree_text
from .breadcrumbs import breadcrumbs_of

Kind = Literal["sentence", "row", "pair", "list", "code"]

WHOLE: Final = 80
"""Most words of a row, a pair, a list or a piece of code that is quoted whole."""

ITEMS: Final = 10
"""Most items of a list that is quoted whole."""

_HEADINGS: Final = rules.HEADINGS | {"caption"}
_LABELS: Final = frozenset({"title", "dt", "summary", "legend"})
_ABOVE_LENGTH: Final = 160


def segments(kept: Sequence[BlockRecord], trees: Mapping[str, Tree]) -> list[Segment]:
    """Cut kept blocks into numbered segments, each with its span, the score of its block and its context.

    :param kept: records of the kept blocks; those of one document are neighbours, in document order.
    :param trees: the documents by id.
    """
    result: list[Segment] = []
    for document, run in groupby(kept, key=lambda record: record.span.document):
        records = list(run)
        starts = [record.span.start for record in records]
        for segment in segments_of(trees[document], [(record.span.start, record.span.end) for record in records]):
            score = records[max(0, bisect_right(starts, segment.span.start) - 1)].score
            result.append(replace(segment, tag=len(result) + 1, score=score))
    return result


def segments_of(tree: Tree, kept: Sequence[tuple[int, int]]) -> list[Segment]:
    """List the segments in the kept parts of a document, in document order; lists appear whole and item by item.

    :param kept: the kept slices of the canonical text, in order.
    """
    spans = _joined(tree, kept)
    units = [unit for unit in _units(tree) if _inside(spans, unit[0], unit[1])]
    slices: list[tuple[int, int, Kind]] = [(start, end, kind) for start, end, kind in units if kind != "label"]
    taken = _merged([(start, end) for start, end, kind in units if kind != "list"])
    for start, end in _remaining(spans, taken):
        for begin, stop in sentence_spans(tree.canonical[start:end]):
            trimmed = _trimmed(tree.canonical, start + begin, start + stop)
            if trimmed:
                slices.append((*trimmed, "sentence"))
    slices.sort(key=lambda piece: (piece[0], -piece[1]))
    return _with_context(tree, slices)


def _units(tree: Tree) -> Iterator[tuple[int, int, Kind | Literal["label"]]]:
    """Yield (start, end, kind) of each unit that is quoted whole, and of each label, which is not quoted."""
    node = 0
    headers: set[int] = set()
    while node < len(tree):
        tag = tree.tag[node]
        after = node + 1
        if tag == "table":
            headers |= header_rows(tree, node)
            headers.update(title for titles in group_titles(tree, node).values() for title in titles)
            headers.update(row for rows in header_rows_of(tree, node).values() for row in rows)
        elif tag in ("ul", "ol"):
            items = sum(tree.tag[child] == "li" for child in tree.children(node))
            if 1 < items <= ITEMS and 0 < tree.word_count(node) <= WHOLE:
                yield *span_of(tree, node, tree.end[node]), "list"
        elif tag and tree.word_count(node):
            kind, last = _kind(tree, node, tag, headers)
            if kind:
                yield *span_of(tree, node, last), kind
                after = last
        node = after


def _kind(tree: Tree, node: int, tag: str, headers: set[int]) -> tuple[Kind | Literal["label", ""], int]:
    """Return the kind of unit that begins at a node ('' for none), and the node after its end."""
    end = tree.end[node]
    if tag == "dt":
        last = end
        while last < tree.end[tree.parent[node]] and tree.tag[last] == "dd":
            last = tree.end[last]
        whole = last > end and tree.words[last] - tree.words[node] <= WHOLE
        return ("pair", last) if whole else ("label", end)
    if tag in _HEADINGS:
        return "sentence", end
    if tag in _LABELS or node in headers:
        return "label", end
    if tag == "tr" and tree.word_count(node) <= WHOLE and "table" not in tree.tag[node:end]:
        return "row", end
    if tag == "pre" and tree.word_count(node) <= WHOLE:
        return "code", end
    return "", end


def _with_context(tree: Tree, slices: Sequence[tuple[int, int, Kind]]) -> list[Segment]:
    """Make segments of slices: add headings, lead and label."""
    places = []
    for start, _, kind in slices:
        node = tree.node_at(start)
        if kind == "list":
            while tree.tag[node] not in ("ul", "ol"):
                node = tree.parent[node]
        places.append((tree.parent[node], node, node + 1))
    texts: dict[int, str] = {}
    result = []
    for (start, end, kind), context in zip(slices, breadcrumbs_of(tree, places), strict=True):
        for heading in context.headings:
            texts.setdefault(heading, subtree_text(tree, heading)[:_ABOVE_LENGTH])
        above = [tree.title[:_ABOVE_LENGTH], *(texts[heading] for heading in context.headings)]
        lead = context.lead or (_introduction(tree, tree.node_at(start)) if kind == "list" else "")
        label = context.lead if context.table < 0 and kind in ("sentence", "list") else ""
        shown = ""
        if kind == "row" and context.table >= 0:
            row = _row_at(tree, start)
            above_row = group_titles(tree, context.table).get(row, ())
            titles = " › ".join(subtree_text(tree, title).rstrip(" :：") for title in above_row)
            label = ": ".join(filter(None, [titles, _column_heads(tree, context.table, row)]))
            label, shown = label[: 2 * _ABOVE_LENGTH], _with_gaps(tree, row)
            own = header_rows_of(tree, context.table).get(row, ())
            lead = " ".join(subtree_text(tree, header) for header in own) or lead
        text, span = tree.canonical[start:end], Span(tree.document, start, end)
        result.append(Segment(0, text, span, 0.0, "\n".join([*above, lead]), label, kind, shown))
    return result


def _row_at(tree: Tree, start: int) -> int:
    """Return the row that begins at a code point of the canonical text."""
    row = tree.node_at(start)
    while tree.parent[row] >= 0 and tree.tag[row] != "tr":
        row = tree.parent[row]
    return row


def _column_heads(tree: Tree, table: int, row: int) -> str:
    """Return the head of each cell of a row, empty cells included; then the cells that span it from rows above.

    A column under several header rows is labelled by all of them: ``Population › 2010``.
    """
    heads = _heads(tree, table, header_rows_of(tree, table).get(row) or tuple(sorted(header_rows(tree, table))))
    line = _places(tree, table).get(row)
    if not heads or line is None:
        return ""
    own = [(column, cell) for column, cell in line if tree.parent[cell] == row]
    named = [[_head_at(level, column) for level in heads] for column, _ in own]
    shared = [names[0] for names in named if names[0]]
    title = ""
    if len(heads) > 1 and len(own) > 1 and len(shared) == len(own) and len({*shared}) == 1:
        title, named = shared[0], [names[1:] for names in named]  # a header cell over all columns is said once
    labels = [" › ".join(dict.fromkeys(filter(None, names))) or "-" for names in named]
    spanning = [
        f"{_head_at(heads[-1], column) or '-'}: {subtree_text(tree, cell)}"
        for column, cell in line
        if tree.parent[cell] != row and tree.word_count(cell)
    ]
    label = " | ".join(labels) if any(text != "-" for text in labels) else ""
    return "; ".join([f"{title}: {label}" if title else label, *spanning] if label or title else spanning)


def _heads(tree: Tree, table: int, rows: tuple[int, ...]) -> list[tuple[list[int], list[str]]]:
    """Return header rows of a table, each as the first columns of its cells, and their texts."""
    if not rows:
        return []
    key = ("column heads", rows[0])
    known: list[tuple[list[int], list[str]]] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = []
        for row in rows:
            line = _places(tree, table).get(row, [])
            if line:
                known.append(([column for column, _ in line], [subtree_text(tree, cell) for _, cell in line]))
    return known


def _head_at(level: tuple[list[int], list[str]], column: int) -> str:
    """Return the text of the header cell over a column."""
    starts, texts = level
    return texts[max(0, bisect_right(starts, column) - 1)]


def _places(tree: Tree, table: int) -> dict[int, list[tuple[int, int]]]:
    """Map each row of a table to its cells as (first column, cell), those that span it from rows above included."""
    key = ("cell places", table)
    known: dict[int, list[tuple[int, int]]] | None = tree.cache.get(key)
    if known is None:
        lines = placed_cells(tree, table_rows(tree, table))
        known = tree.cache[key] = {row: [(column, cell) for column, cell, _ in line] for row, line in lines}
    return known


def _with_gaps(tree: Tree, row: int) -> str:
    """Return a row as a reader sees it, with its empty cells in place; '' where it has none."""
    cells = row_cells(tree, row)
    if all(map(tree.word_count, cells)):
        return ""
    return "\t".join(subtree_text(tree, cell) if tree.word_count(cell) else "" for cell in cells)


def _introduction(tree: Tree, node: int) -> str:
    """Return the words on the line right before a list."""
    while node > 0 and tree.tag[node] not in ("ul", "ol"):
        node = tree.parent[node]
    before = tree.canonical[max(0, tree.starts[node] - 2 * _ABOVE_LENGTH) : tree.starts[node]].rstrip()
    return before[before.rfind("\n") + 1 :]


# --- spans ---------------------------------------------------------------------------------------


def span_of(tree: Tree, node: int, end: int) -> tuple[int, int]:
    """Return the span of the text of nodes ``[node, end)``, without white space at its ends."""
    last = end - 1
    while last > node and not tree.text[last]:
        last -= 1
    while node < last and not tree.text[node]:
        node += 1
    return _trimmed(tree.canonical, tree.starts[node], tree.stop(last)) or (0, 0)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Shrink a span by the white space at its ends; None if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _joined(tree: Tree, kept: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join slices that only white space separates."""
    joined: list[tuple[int, int]] = []
    for start, end in kept:
        if joined and not tree.canonical[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge spans that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _inside(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Tell whether a slice lies inside one of several spans, which are in order."""
    place = bisect_right(spans, (start, 1 << 60)) - 1
    return start < end and place >= 0 and end <= spans[place][1]


def _remaining(spans: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of spans outside the taken spans; both are in order."""
    position = 0
    for start, end in spans:
        while position < len(taken) and taken[position][1] <= start:
            position += 1
        index = position
        while index < len(taken) and taken[index][0] < end:
            if taken[index][0] > start:
                yield start, taken[index][0]
            start = max(start, taken[index][1])
            index += 1
        if start < end:
            yield start, end
