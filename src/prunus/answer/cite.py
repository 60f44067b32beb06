"""Locate quotes in the pages that were read, and build citations; a quote that is not found is marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..core.text.words import normalise
from ..core.types import Citation, Passage, Span
from ..pages.metadata import known_metadata, title_of
from ..pages.place import place_in_document
from ..pages.tree import Tree
from ..pages.xpath import xpath_of

_SUBSCRIPT: Final = re.compile(r"(?<=[^\W\d_])[₀-₉]+(?![\d₀-₉])")
_DIGITS: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_RAISED: Final = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_POWER: Final = re.compile(r"(?:\^|\*\*)\{?([-+\u2212]?\d{1,4})\}?|<sup>\s*([-+\u2212]?\d{1,4})\s*</sup>")
_NOTE: Final = re.compile(r"\s?\[(?:\d{1,3}|[a-z]|note \d{1,2})\]")
_MARKUP: Final = re.compile(r"\*\*|__|`")
_GAP: Final = re.compile(r"\[?(?:\.\.\.|…)\]?")
_LEAST: Final = 8
"""Letters of each part of a quote with a gap at least; shorter parts stand anywhere."""
_RUN: Final = re.compile(r"[^\t\n]++")
_WIDEST: Final = 600
"""Letters of a page between two parts of a quote at most."""
_NUMBER_GOES_ON: Final = re.compile(r"\d[.,]?\d|\d[⁰¹²³⁴-⁹⁺⁻^]")


def locate(quote: str, tree: Tree) -> Span | None:
    """Find a quote in a document: first literally, then as a reader would read it.

    Differences in white space, quotation marks and dashes do not count; nor does what models change and no page means:
    the case of the first letter, CO2 for CO₂, 10^9 for 10⁹, the marks of notes, bold type, and a gap ("…") between two
    parts. A number is found whole or not at all.

    :returns: the span of the page's own words, or None.
    """
    words = quote.strip()
    if not words:
        return None
    position = _find(tree.canonical, words)
    if position >= 0:
        return Span(tree.document, position, position + len(words))
    page, origins = _normal_form(tree.canonical)
    for parts in _readings(words):
        start, end = _find_parts(page, parts)
        if start >= 0:
            return Span(tree.document, origins[start], origins[end - 1] + 1)
    return None


def is_found(quote: str, tree: Tree, span: Span) -> bool:
    """Tell whether a quote is its slice of the page, as :func:`locate` compares them."""
    slice_ = tree.canonical[span.start : span.end]
    page = _comparable(slice_)
    return any(_find_parts(page, parts) == (0, len(page)) for parts in _readings(quote))


def _readings(quote: str) -> Iterator[list[str]]:
    """Yield what to look for: the quote, then its parts around gaps; then both as the page may have them."""
    for wanted in (_comparable(quote), _as_read(quote)):
        yield [wanted]
        yield [part.strip() for part in _GAP.split(wanted)]


def _find_parts(page: str, parts: Sequence[str]) -> tuple[int, int]:
    """Find the parts of a quote one after the other; its first letter may be of either case.

    :returns: (start, end) of all, or (-1, -1).
    """
    if not parts[0] or (len(parts) > 1 and min(map(len, parts)) < _LEAST):
        return -1, -1
    for first in dict.fromkeys((parts[0], parts[0][0].swapcase() + parts[0][1:])):
        start = _find(page, first)
        end = start + len(first)
        for part in parts[1:]:
            after = _find(page, part, end, end + _WIDEST) if start >= 0 else -1
            start, end = (start, after + len(part)) if after >= 0 else (-1, -1)
        if start >= 0:
            return start, end
    return -1, -1


def _find(text: str, words: str, low: int = 0, high: int | None = None) -> int:
    """Return where words stand in a text, and do not cut a number; -1 where they do not."""
    position = text.find(words, low, high)
    while position >= 0:
        end = position + len(words)
        edges = text[position - 1 : position + 1] if position else "", text[end - 1 : end + 1]
        wider = text[max(0, position - 2) : position + 1], text[end - 1 : end + 2]
        if not any(map(_NUMBER_GOES_ON.fullmatch, (*edges, *wider))):
            return position
        position = text.find(words, position + 1, high)
    return -1


def _comparable(text: str) -> str:
    """Return a text in the form in which quotes are compared with pages."""
    return _normal_subscripts(normalise(text))


def _normal_subscripts(text: str) -> str:
    """Return a text with the digits of subscripts on the line, where they cannot lengthen a number; letters stay."""
    return text if text.isascii() else _SUBSCRIPT.sub(lambda digits: digits[0].translate(_DIGITS), text)


def _as_read(quote: str) -> str:
    """Return a quote as the page may have it: powers raised, and no note marks, bold type, or gaps at its ends."""
    quote = _POWER.sub(lambda power: (power[1] or power[2]).translate(_RAISED), quote)
    quote = _NOTE.sub("", _MARKUP.sub("", quote)).strip().strip('"“”').strip()
    return _comparable(quote.removeprefix("...").removeprefix("…").removesuffix("...").removesuffix("…"))


def _normal_form(text: str) -> tuple[str, list[int]]:
    """Normalise a text; return it with the origin of each letter: the position of the last code point that made it."""
    text = _normal_subscripts(text)
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


def _holder(tree: Tree, span: Span) -> int:
    """Return the innermost node that holds a whole span: for a quoted row the row, not its first cell."""
    node, last = tree.node_at(span.start), tree.node_at(max(span.start, span.end - 1))
    while node > 0 and tree.end[node] <= last:
        node = tree.parent[node]
    return node


def cite(number: int, quote: str, tree: Tree, span: Span | None = None, marks: Sequence[Span] = ()) -> Citation:
    """Build a checked citation: the quote as the page has it, with its span and XPath.

    :param span: the expected span of the quote; the page is searched where it is None or wrong.
    :param marks: the words of the quote that answer; the XPath is then that of the first ones.
    """
    if span is None or not is_found(quote, tree, span):
        span = locate(quote, tree)
    matches = span is not None and is_found(quote, tree, span)
    span = span or Span(tree.document, 0, 0)
    known = known_metadata(tree)
    node = _holder(tree, marks[0] if marks else span) if matches else -1
    return Citation(
        number=number,
        url=tree.url,
        title=title_of(tree),
        published=known.published or tree.published,
        document=tree.document,
        snapshot=tree.snapshot,
        quote=tree.canonical[span.start : span.end] if matches else quote,
        span=span,
        xpath=xpath_of(tree, node) if matches else "",
        found=matches,
        support=1.0 if matches else 0.0,
        authors=known.authors,
        site=known.site,
        marks=tuple(marks) if matches else (),
        place=place_in_document(tree, node) if matches else "",
        read_at=tree.read_at,
    )


def quote_lines(passages: Sequence[Passage], numbers: Iterable[int]) -> list[str]:
    """Return a paragraph for each passage: its words, the header of its table, and the number of its citation."""
    lines = []
    for number, passage in zip(numbers, passages, strict=False):
        words = _with_gaps(passage.shown) if passage.shown else _on_one_line(_marked(passage))
        beside = "; ".join(filter(None, [" ".join(passage.label.split()), passage.how]))
        label = f" ({beside})" if beside else ""
        lines.append(f"\u201c{words}\u201d{label} [{number}]")
    return lines


def _marked(passage: Passage) -> str:
    """Return the text of a passage with its marked words in bold, line by line and cell by cell."""
    text, start = passage.text, passage.spans[0].start
    for mark in reversed(passage.marks):
        low, high = mark.start - start, mark.end - start
        text = text[:low] + _RUN.sub(_bold, text[low:high]) + text[high:]
    return text


def _bold(run: re.Match[str]) -> str:
    words = run[0].strip()
    return run[0].replace(words, f"**{words}**") if words else run[0]


def _on_one_line(text: str) -> str:
    """Return a quote on one line: bars separate cells, slashes separate the lines of a list or of code."""
    rows = (" | ".join(" ".join(cell.split()) for cell in row.split("\t") if cell.strip()) for row in text.split("\n"))
    return " / ".join(row for row in rows if row)


def _with_gaps(row: str) -> str:
    """Return a row of a table on one line, with its empty cells in place."""
    return " ".join(row.replace("\t", " | ").split())
