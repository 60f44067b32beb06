"""Locate quotes in the pages that were read, and build citations; a quote that is not found is marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from ..core.text.words import normalise
from ..core.types import Citation, Passage, Span
from ..pages.metadata import known_metadata
from ..pages.tree import Tree
from ..pages.xpath import xpath_of


def locate(quote: str, tree: Tree) -> Span | None:
    """Find a quote in a document: first literally, then ignoring differences in white space, quotes and dashes.

    :returns: the span of the page's own words, or None.
    """
    words = quote.strip()
    if not words:
        return None
    position = tree.canonical.find(words)
    if position >= 0:
        return Span(tree.document, position, position + len(words))
    page, origins = _normal_form(tree.canonical)
    wanted = normalise(words)
    position = page.find(wanted) if wanted else -1
    if position < 0:
        return None
    return Span(tree.document, origins[position], origins[position + len(wanted) - 1] + 1)


def _normal_form(text: str) -> tuple[str, list[int]]:
    """Normalise a text; return it with the origin of each letter: the position of the last code point that made it."""
    letters: list[str] = []
    origins: list[int] = []
    start, size = 0, len(text)
    while start < size:
        end = start + 1
        while end < size and unicodedata.combining(text[end]):
            end += 1
        cluster = text[start:end]
        normal = " " if cluster.isspace() else normalise(cluster)
        if normal != " " or (letters and letters[-1] != " "):
            letters.extend(normal)
            origins.extend([end - 1] * len(normal))
        start = end
    return "".join(letters), origins


def is_found(quote: str, tree: Tree, span: Span) -> bool:
    """Tell whether a quote equals its slice of the page (both normalised)."""
    wanted = normalise(quote)
    return bool(wanted) and wanted == normalise(tree.canonical[span.start : span.end])


def _holder(tree: Tree, span: Span) -> int:
    """Return the innermost node that holds a whole span: for a quoted row the row, not its first cell."""
    node, last = tree.node_at(span.start), tree.node_at(max(span.start, span.end - 1))
    while node > 0 and tree.end[node] <= last:
        node = tree.parent[node]
    return node


def cite(number: int, quote: str, tree: Tree, span: Span | None = None) -> Citation:
    """Build a checked citation: the quote as the page has it, with its span and XPath.

    :param span: the expected span of the quote; the page is searched where it is None or wrong.
    """
    if span is None or not is_found(quote, tree, span):
        span = locate(quote, tree)
    matches = span is not None and is_found(quote, tree, span)
    span = span or Span(tree.document, 0, 0)
    known = known_metadata(tree)
    return Citation(
        number=number,
        url=tree.url,
        title=tree.title,
        published=known.published or tree.published,
        document=tree.document,
        snapshot=tree.snapshot,
        quote=tree.canonical[span.start : span.end] if matches else quote,
        span=span,
        xpath=xpath_of(tree, _holder(tree, span)) if matches else "",
        found=matches,
        support=1.0 if matches else 0.0,
        authors=known.authors,
        site=known.site,
    )


def quote_lines(passages: Sequence[Passage], numbers: Iterable[int]) -> list[str]:
    """Return a paragraph for each passage: its words, the header of its table, and the number of its citation."""
    lines = []
    for number, passage in zip(numbers, passages, strict=False):
        words = _with_gaps(passage.shown) if passage.shown else _on_one_line(passage.text)
        label = f" ({' '.join(passage.label.split())})" if passage.label else ""
        lines.append(f"\u201c{words}\u201d{label} [{number}]")
    return lines


def _on_one_line(text: str) -> str:
    """Return a quote on one line: bars separate cells, slashes separate the lines of a list or of code."""
    rows = (" | ".join(" ".join(cell.split()) for cell in row.split("\t") if cell.strip()) for row in text.split("\n"))
    return " / ".join(row for row in rows if row)


def _with_gaps(row: str) -> str:
    """Return a row of a table on one line, with its empty cells in place."""
    return " ".join(row.replace("\t", " | ").split())
