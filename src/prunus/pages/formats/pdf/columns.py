"""Put the pieces of a PDF page into reading order: columns, and the lines that span them.

A gutter is a vertical stripe that hardly any line crosses. Lines that cross it cut the page into bands. Inside a band
the left side is read before the right side, and each side is cut again the same way. Pieces that are aligned in rows
are a table and no columns, and stay together.

Lines that repeat at the edges of pages (running headers, footers, page numbers) are removed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Final

from ....core.text.numbers import bounded_int, in_ascii
from .lines import PdfPiece, rows_of
from .page import PageWords

_DEPTH: Final = 5  # nested cuts
_STRIPE: Final = 2.0  # points; least width of a stripe in which crossings are counted
_PROSE: Final = 10.0  # em; lines of running text are longer, table cells mostly shorter
_WORDS: Final = 3  # words on a line of text, on average; labels and numbers are shorter
_STRIP: Final = 0.1  # em; least height of the space between two blocks of columns
_BLOCK: Final = 3  # lines of each column of such a block, at least
_CELLS: Final = 1000  # stripes of a page, at most


def split_flows(pieces: Sequence[PdfPiece], depth: int = 0) -> list[list[PdfPiece]]:
    """Return the pieces as flows. A flow is read from top to bottom before the next flow begins."""
    if len(pieces) < 4 or depth >= _DEPTH:
        return [list(pieces)] if pieces else []
    for low, high in _gutters(pieces):
        split = _split(pieces, low, high, depth)
        if split:
            return split
    return [list(pieces)]


def _split(pieces: Sequence[PdfPiece], low: float, high: float, depth: int) -> list[list[PdfPiece]]:
    """Cut at a gutter; return an empty list where no band of it holds columns."""
    done_flows: list[list[PdfPiece]] = []
    flow: list[PdfPiece] = []
    has_columns = False
    bands = _bands(pieces, low, high)
    for band in chain.from_iterable(_blocks(whole, high) for whole in bands):
        left = [piece for piece in band if piece.x1 <= high]
        right = [piece for piece in band if piece.x1 > high]
        if left and right and _are_columns(left, right):
            if flow:
                done_flows += split_flows(flow, depth + 1)
                flow = []
            below = _next_heading(left, right)
            done_flows += split_flows([piece for piece in left if piece not in below], depth + 1)
            done_flows += split_flows(right, depth + 1)
            flow += below
            has_columns = True
        else:
            flow += band
    if not has_columns:
        return []
    return done_flows + split_flows(flow, depth + 1)


def _next_heading(left: Sequence[PdfPiece], right: Sequence[PdfPiece]) -> list[PdfPiece]:
    """Return one or two lines apart below both columns: the heading of the next band."""
    rows = rows_of(left)
    bottom = max(piece.bottom for piece in right)
    for count in (1, 2):
        if len(rows) > count + 1 and rows[-count][0].top >= bottom:
            gap = rows[-count][0].top - rows[-count - 1][0].bottom
            if gap >= 0.5 * (rows[-count][0].size or 10):
                return [piece for row in rows[-count:] for piece in row]
    return []


def _bands(pieces: Sequence[PdfPiece], low: float, high: float) -> Iterator[list[PdfPiece]]:
    """Yield bands from the top: runs of pieces that cross the gutter or stand beside such, or that do not."""
    band: list[PdfPiece] = []
    crossing = False
    heights = sorted(piece.y for piece in pieces if piece.atom is None and piece.x0 < low and piece.x1 > high)
    for piece in sorted(pieces, key=lambda piece: (piece.top, piece.x0)):
        beside = piece.atom is None and _near(heights, piece.y, 0.25 * piece.size)
        crosses = beside or (piece.x0 < low and piece.x1 > high)
        if band and crosses != crossing:
            yield band
            band = []
        crossing = crosses
        band.append(piece)
    if band:
        yield band


def _blocks(band: Sequence[PdfPiece], high: float) -> Iterator[list[PdfPiece]]:
    """Yield the parts of a band from the top that the file holds one after the other, each with its own two columns."""
    pieces = sorted(band, key=lambda piece: piece.top)
    spans = [_places(piece) for piece in pieces]
    later = list(accumulate((start for start, _ in reversed(spans)), min))[::-1]
    block: list[PdfPiece] = []
    bottom = latest = float("-inf")
    left, right = float("-inf"), float("inf")  # last place of the left side, first place of the right side
    left_lines, right_lines = set[float](), set[float]()
    for piece, (start, stop), rest in zip(pieces, spans, later, strict=True):
        has_columns = min(len(left_lines), len(right_lines)) >= _BLOCK and left < right
        if has_columns and latest < rest and piece.top - bottom > _STRIP * (piece.size or 10):
            yield block
            block, left, right = [], float("-inf"), float("inf")
            left_lines, right_lines = set(), set()
        block.append(piece)
        bottom, latest = max(bottom, piece.bottom), max(latest, stop)
        if piece.x1 <= high:
            left = max(left, stop)
            left_lines.add(round(piece.y))
        else:
            right = min(right, start)
            right_lines.add(round(piece.y))
    if block:
        yield block


def _places(piece: PdfPiece) -> tuple[float, float]:
    """Return the first and the last place of a piece's words in the file; infinities for an atom."""
    orders = [word.order for word in piece.words]
    return min(orders, default=float("inf")), max(orders, default=float("-inf"))


def _gutters(pieces: Sequence[PdfPiece]) -> list[tuple[float, float]]:
    """Return stripes that few pieces cross and that have pieces on both sides, best first, four at most."""
    left, right = min(piece.x0 for piece in pieces), max(piece.x1 for piece in pieces)
    step = max(_STRIPE, (right - left) / _CELLS)
    count = int((right - left) / step) + 1
    changes = [0] * (count + 2)
    for piece in pieces:
        changes[int((piece.x0 - left) / step)] += 1
        changes[min(int((piece.x1 - left) / step) + 1, count)] -= 1
    cover = list(accumulate(changes))[:count]
    highest_left = list(accumulate(cover, max))
    highest_right = list(accumulate(reversed(cover), max))[::-1]
    sizes = sorted(piece.size for piece in pieces if piece.size)
    em = sizes[len(sizes) // 2] if sizes else 10.0
    runs: list[tuple[int, float, float]] = []
    start = -1
    for at in range(count + 1):
        sparse = at < count and cover[at] <= 0.5 * min(highest_left[at], highest_right[at])
        if sparse and start < 0:
            start = at
        elif not sparse and start >= 0:
            low, high = left + start * step, left + at * step
            start = -1
            if high - low >= 0.55 * em:  # narrower gaps are spaces between words
                before = sum(piece.x1 <= high for piece in pieces)
                after = sum(piece.x0 >= low for piece in pieces)
                runs.append((min(before, after), low, high))
    runs.sort(key=lambda run: (-run[0], run[1] - run[2]))
    return [(low, high) for sides, low, high in runs[:4] if sides >= 2]


def _are_columns(left: Sequence[PdfPiece], right: Sequence[PdfPiece]) -> bool:
    """Tell whether two sides are columns of text, and not the cells of a table."""
    top = max(min(piece.top for piece in side) for side in (left, right))
    bottom = min(max(piece.bottom for piece in side) for side in (left, right))
    if bottom <= top:
        return False  # one side is entirely below the other
    prose = [_is_prose(side) for side in (left, right)]
    if all(prose):
        return True
    if any(piece.atom is not None for piece in (*left, *right)):
        return True
    if _is_written_first(left, right):
        return True
    fewer, more = sorted((left, right), key=len)
    lines = sorted(piece.y for piece in more)
    aligned = sum(_near(lines, piece.y, 0.25 * (piece.size or 10)) for piece in fewer) / len(fewer)
    return aligned < (0.8 if any(prose) else 0.5) and min(len(left), len(right)) > 1


def _is_written_first(left: Sequence[PdfPiece], right: Sequence[PdfPiece]) -> bool:
    """Tell whether the file holds all of the left side before the right side, and both are text of several lines.

    Files hold columns one after the other, and tables row by row.
    """
    if max(_places(piece)[1] for piece in left) > min(_places(piece)[0] for piece in right):
        return False
    words = [sum(len(piece.words) for piece in side) / len(rows_of(side)) for side in (left, right)]
    return min(len(left), len(right)) > 1 and min(words) >= _WORDS


def _is_prose(side: Sequence[PdfPiece]) -> bool:
    """Tell whether at least half of the lines are full, dense and long enough for running text."""
    lines = rows_of(piece for piece in side if piece.atom is None)
    if len(lines) < 3:
        return False
    width = max(row[-1].x1 for row in lines) - min(row[0].x0 for row in lines)
    full = 0
    for row in lines:
        reach = row[-1].x1 - row[0].x0
        dense = sum(piece.x1 - piece.x0 for piece in row) >= 0.7 * reach
        full += dense and reach >= 0.7 * width and reach >= _PROSE * row[0].size
    return full * 2 >= len(lines)


def _near(values: Sequence[float], value: float, reach: float) -> bool:
    """Tell whether a sorted list contains a number within ``reach`` of ``value``."""
    at = bisect_left(values, value - reach)
    return at < len(values) and values[at] <= value + reach


_EDGE: Final = 0.13  # share of the page height that counts as an edge, at the top and at the bottom
_LINES: Final = 3  # lines of an edge that are compared
_PAGE: Final = re.compile(r"(?<!\d)(?<!\d[.,])\d{1,5}(?!\d|[.,]\d)")
"""What may be the number of a page. Parts of amounts and dates are none."""

_NUMBERS: Final = 8  # numbers of a line that may be the page's, at most
_FIRST: Final = re.compile(r"(\d{1,4})\s")
_LAST: Final = re.compile(r"\s(\d{1,4})$")
_NUMBER: Final = re.compile(
    r"(?:page|seite|p\.)?[-–—\[(|\s]*+(\d{1,5}|[ivxlc]{1,8})[-–—\])|\s]*+(?:(?:of|von|/)\s*\d+)?", re.I
)

Row = list[PdfPiece]


def drop_running_lines(pages: Sequence[tuple[PageWords, list[PdfPiece]]]) -> list[list[PdfPiece]]:
    """Return the pieces of each page without running headers, footers and page numbers.

    A line is removed where the same line but for the number of the page is at the same height on at least three pages
    (on two pages, in documents of fewer than four, or where a number at its end counts with the pages). A number that
    counts with the pages and stands alone is removed too. Lines that differ in anything else are data: a balance
    carried forward, the first row of a table.
    """
    edges = [_edges(page, pieces) for page, pieces in pages]
    places: dict[tuple[str, int], set[int]] = defaultdict(set)
    counts: dict[tuple[int, int], set[int]] = defaultdict(set)
    for at, rows in enumerate(edges):
        for row in rows:
            height, in_lower_half = _height(row, pages[at][0])
            # an only page i goes with the pages 1, 2 and 3
            for pattern in _patterns(row, at) | ({"#"} if _NUMBER.fullmatch(_text(row)) else set()):
                for near in (height - 1, height, height + 1):
                    places[pattern, near].add(at)
            for number in _page_numbers(row):
                counts[number - at, in_lower_half].add(at)
    needed = 2 if len(pages) < 4 else 3
    kept = []
    for at, (page, pieces) in enumerate(pages):
        removed: set[int] = set()
        for row in edges[at]:
            height, in_lower_half = _height(row, page)
            repeats = max(len(places[pattern, height]) for pattern in _patterns(row, at))
            has_page_number = any(len(counts[number - at, in_lower_half]) >= needed for number in _page_numbers(row))
            is_number = has_page_number and _NUMBER.fullmatch(_text(row))
            if is_number or (repeats >= (2 if has_page_number else needed) and len(pages) > 1):
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


def _height(row: Row, page: PageWords) -> tuple[int, bool]:
    """Return the height of a line on its page in steps of six points, and whether it is in the lower half."""
    return round((row[0].y - page.box[1]) / 6), row[0].y > sum(page.box[1::2]) / 2


def _text(row: Row) -> str:
    return " ".join(piece.text for piece in row).strip()


def _patterns(row: Row, at: int) -> set[str]:
    """Return the text of a line, and that text with each number that may be the page's as its distance from ``at``.

    Lines that are the same on several pages but for a number that counts with the pages share one of them.

    :param at: place of the page in the document.
    """
    text = _text(row).lower()
    if _NUMBER.fullmatch(text) and any(map(str.isalpha, text)):
        return {"#"}  # page 1 of 2, xiv: these are numbers of pages also where they do not count
    patterns = {text}
    for found in islice(_PAGE.finditer(text), _NUMBERS):
        number = bounded_int(in_ascii(found[0]), -1, most=99_999)
        patterns.add(f"{text[: found.start()]}#{number - at}{text[found.end() :]}")
    return patterns


def _page_numbers(row: Row) -> set[int]:
    """Return the numbers at the ends of a line: candidates for the page number."""
    text = _text(row)
    result = {_value(match[1]) for match in (_FIRST.match(text), _LAST.search(text)) if match}
    whole_line = _NUMBER.fullmatch(text)
    return result | ({_value(whole_line[1])} if whole_line else set())


def _value(digits: str) -> int:
    number = bounded_int(in_ascii(digits), -1, most=9_999)
    return number if number >= 0 else _from_roman(digits.lower())


def _from_roman(text: str) -> int:
    """Return the value of a Roman numeral."""
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in text]
    after = [*values[1:], 0]
    return sum(-value if value < following else value for value, following in zip(values, after, strict=True))
