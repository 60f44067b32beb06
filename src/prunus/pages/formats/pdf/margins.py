"""Remove running headers, running footers and page numbers: lines that repeat at the edges of pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ....core.text.numbers import bounded_int, in_ascii
from .lines import PdfPiece, rows_of
from .page import PageWords

_EDGE: Final = 0.13  # share of the page height that counts as an edge, at the top and at the bottom
_LINES: Final = 3  # lines of an edge that are compared
_DIGITS: Final = re.compile(r"\d+")
_ROMAN: Final = re.compile(r"[ivxlc]+")
_FIRST: Final = re.compile(r"(\d{1,4})\s")
_LAST: Final = re.compile(r"\s(\d{1,4})$")
_NUMBER: Final = re.compile(
    r"(?:page|seite|p\.)?[-–—\[(|\s]*+(\d{1,5}|[ivxlc]{1,8})[-–—\])|\s]*+(?:(?:of|von|/)\s*\d+)?", re.I
)

Row = list[PdfPiece]


def drop_running_lines(pages: Sequence[tuple[PageWords, list[PdfPiece]]]) -> list[list[PdfPiece]]:
    """Return the pieces of each page without running headers, footers and page numbers.

    A line is removed where the same words, digits aside, are at the same height on at least three pages (on two pages,
    in documents of fewer than four). A line is also removed where a number at its end counts with the pages.
    """
    edges = [_edges(page, pieces) for page, pieces in pages]
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    counts: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, rows in enumerate(edges):
        for row in rows:
            height = round((row[0].y - pages[at][0].box[1]) / 6)
            for near in (height - 1, height, height + 1):
                places[_pattern(row), near].append(at)
            in_lower_half = row[0].y > sum(pages[at][0].box[1::2]) / 2
            for number in _page_numbers(row):
                counts[number - at, in_lower_half].append(at)
    needed = 2 if len(pages) < 4 else 3
    kept = []
    for at, (page, pieces) in enumerate(pages):
        removed: set[int] = set()
        for row in edges[at]:
            height = round((row[0].y - page.box[1]) / 6)
            repeats = len(set(places[_pattern(row), height]))
            in_lower_half = row[0].y > sum(page.box[1::2]) / 2
            is_page_number = any(
                len(set(counts[number - at, in_lower_half])) >= needed for number in _page_numbers(row)
            )
            if is_page_number or (repeats >= needed and len(pages) > 1):
                removed.update(id(piece) for piece in row)
        kept.append([piece for piece in pieces if id(piece) not in removed])
    # lines that are all that a document shows are its text
    return kept if any(kept) else [pieces for _, pieces in pages]


def _edges(page: PageWords, pieces: Sequence[PdfPiece]) -> list[Row]:
    """Return the first and last lines of a page that are near its edges and apart from the lines between."""
    rows = [row for row in rows_of(pieces) if row[0].atom is None]
    top = page.box[1] + _EDGE * page.height
    bottom = page.box[3] - _EDGE * page.height
    first = last = 0
    for count in range(1, min(_LINES, len(rows)) + 1):
        if rows[count - 1][0].y < top and (count == len(rows) or _are_apart(rows[count - 1], rows[count])):
            first = count
        if rows[-count][0].y > bottom and (count == len(rows) or _are_apart(rows[-count - 1], rows[-count])):
            last = count
    return [row for at, row in enumerate(rows) if at < first or at >= len(rows) - last]


def _are_apart(upper: Row, lower: Row) -> bool:
    """Tell whether two lines are farther apart than lines of running text."""
    return lower[0].y - upper[0].y >= 1.5 * max(piece.size for piece in (*upper, *lower))


def _pattern(row: Row) -> str:
    """Return the text of a line with ``#`` for every number."""
    text = " ".join(piece.text for piece in row).lower()
    if _ROMAN.fullmatch(text):
        return "#"
    return _DIGITS.sub("#", text)


def _page_numbers(row: Row) -> set[int]:
    """Return the numbers at the ends of a line: candidates for the page number."""
    text = " ".join(piece.text for piece in row).strip()
    found = {_value(match[1]) for match in (_FIRST.match(text), _LAST.search(text)) if match}
    whole_line = _NUMBER.fullmatch(text)
    return found | ({_value(whole_line[1])} if whole_line else set())


def _value(digits: str) -> int:
    number = bounded_int(in_ascii(digits), -1, most=9_999)
    return number if number >= 0 else _from_roman(digits.lower())


def _from_roman(text: str) -> int:
    """Return the value of a Roman numeral."""
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in text]
    after = [*values[1:], 0]
    return sum(-value if value < following else value for value, following in zip(values, after, strict=True))
