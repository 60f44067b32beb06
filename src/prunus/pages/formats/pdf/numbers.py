"""Find the tables of numbers of a PDF page by their lines: a label, and numbers in common columns beside it.

They are found before the columns of the text are, which would part such a table: a report of a year has many of them,
with hardly a ruling, with group rows that have no numbers and labels that take two lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .lines import PdfPiece, is_marker, rows_of
from .tables import CLOSE, SIGN, PdfCell, PdfTable, column_edges, columns_of, from_slots, with_signs

_ROWS: Final = 3  # lines with numbers of a table, at least
_MOST: Final = 200  # lines of a table on one page, at most
_LABELLED: Final = 0.5  # share of these with a label, at least
_LONE: Final = 4  # lines without numbers between two with numbers, at most
_LABELS: Final = 3  # lines of labels between a header and the first numbers, at most
_HEADER: Final = 8  # lines of a header, at most
_WORDS: Final = 9  # words of a header cell on one line, at most
_NEAR: Final = 2.7  # em; distance of two lines of one table, at most
_TIGHT: Final = 1.35  # em; distance of the lines of one label, at most
_VALUE: Final = re.compile(
    r"(?:US|[A-Z])?[$€£¥]? ?[(\[+\-–—−<>~]? ?(?:[$€£¥] ?)?\d[\d.,'’ ]*+"  # a sign and a number
    r"(?:%|x|bps|pts)? ?[)\]]? ?%? ?(?:\(?[a-z0-9*†]\)?)?"  # a unit, and the mark of a note
    r"|[$€£¥]? ?[–—−-]++ ?%?|N/?A|n/?a|NM|N/M|n/?m\.?|nil|\*++",
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d\W*")

Row = list[PdfPiece]


def number_tables(pieces: Sequence[PdfPiece]) -> tuple[list[PdfTable], list[PdfPiece]]:
    """Return the tables of numbers among pieces of a page, and the other pieces."""
    rows = rows_of(pieces)
    tables: list[PdfTable] = []
    kept: list[PdfPiece] = []
    at = 0
    taken = 0  # the first row that may head the next table
    while at < len(rows):
        stop = _end(rows, at)
        if not stop:
            at += 1
            continue
        slots = _columns([with_signs(row) for row in rows[at:stop]])
        begin, below = _header(rows, taken, at, slots), at
        while below > begin and _is_alone(rows[below - 1], slots):
            below -= 1  # the name of a group of rows
        kept += [piece for row in rows[taken:begin] for piece in row]
        tables.append(_table(list(map(with_signs, rows[begin:below])), list(map(with_signs, rows[below:stop])), slots))
        at = taken = stop
    return tables, [*kept, *(piece for row in rows[taken:] for piece in row)]


def _end(rows: Sequence[Row], start: int) -> int:
    """Return the index after the last row of the table whose first numbers stand in a row; 0 where there is none."""
    if not _has_numbers(rows[start]):
        return 0
    stop, count, labelled, lone = start, 0, 0, 0
    for at in range(start, min(len(rows), start + _MOST)):
        row = rows[at]
        if row[0].atom is not None or (at > start and row[0].y - rows[at - 1][0].y > _NEAR * max(row[0].size, 1.0)):
            break
        if _has_numbers(row):
            count, lone, stop = count + 1, 0, at + 1
            labelled += _has_label(row)
        elif len(row) == 1 and lone < _LONE and not row[0].leader:
            lone += 1
        else:
            break
    if count < _ROWS or labelled < _LABELLED * count:
        return 0
    slots = _columns([with_signs(row) for row in rows[start:stop]])
    return stop if len(slots) > 1 and all(_fits(row, slots) for row in rows[start:stop]) else 0


def _columns(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the edges of the columns: of the labels, and of the numbers, some of which few rows may have."""
    numbers = [row[1:] if _has_label(row) else row for row in rows if len(row) > 1]
    labels = [row[0] for row in rows if _has_label(row)]
    slots = column_edges(numbers, strict=True)
    if any(columns_of(left, slots) == columns_of(right, slots) for row in numbers for left, right in pairwise(row)):
        slots = column_edges(numbers)
    right = min(max(label.x1 for label in labels), slots[0][0]) if slots else 0.0
    return [(min(label.x0 for label in labels), right), *slots] if slots else []


def _fits(row: Row, slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether a line without numbers is a label: it begins in the column of the labels."""
    return len(row) > 1 or row[0].x0 < slots[1][0]


def _is_value(text: str) -> bool:
    text = " ".join(text.split())
    return bool(_VALUE.fullmatch(text) or SIGN.fullmatch(text) or CLOSE.fullmatch(text))


def _has_label(row: Row) -> bool:
    """Tell whether a line begins with a label, which may be a year."""
    years = [bool(_YEAR.fullmatch(piece.text)) for piece in row]
    return not _is_value(row[0].text) or (years[0] and not all(years))


def _has_numbers(row: Row) -> bool:
    """Tell whether a line holds nothing but numbers, after its label."""
    if row[0].atom is not None or len(row) < 2 or any(piece.leader for piece in row):
        return False
    first = row[0].words[0].text
    if len(row) == 2 and is_marker(first) and len(row[0].words) == 1:
        return False  # an item of a list
    texts = [piece.text.rstrip(" $€£¥") or piece.text for piece in row[1:]]  # the sign of the next column
    return all(map(_is_value, texts)) and any(any(map(str.isdigit, text)) or text in "–—-" for text in texts)


def _header(rows: Sequence[Row], least: int, start: int, slots: Sequence[tuple[float, float]]) -> int:
    """Return the index of the first row of a table's header, which stands above its columns of numbers."""
    begin = start
    for at in range(start - 1, max(least, start - _HEADER) - 1, -1):
        row, below = rows[at], rows[at + 1]
        em = max(row[0].size, 1.0)
        if row[0].atom is not None or below[0].y - row[0].y > _NEAR * em:
            break
        beside = [piece for piece in row if piece.x0 >= slots[1][0] - 4 * em or piece.x0 > slots[0][1]]
        labels = [piece for piece in row if piece not in beside]
        is_prose = any(piece.leader for piece in row) or any(len(piece.words) > _WORDS for piece in beside)
        if is_prose or any(piece.x1 > slots[1][0] for piece in labels) or len(labels) > 1:
            break
        if beside:
            begin = at
        elif start - at > _LABELS:
            break
    while begin < start and _is_alone(rows[begin], slots):
        begin += 1
    return begin


def _is_alone(row: Row, slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether a line is a label without anything above the numbers."""
    return len(row) == 1 and row[0].x0 < slots[1][0] - 4 * row[0].size


def _table(header: list[Row], body: list[Row], slots: list[tuple[float, float]]) -> PdfTable:
    """Return the table of a header and rows with known columns."""
    years = 0
    for row in body:
        named = row[1:] if _has_label(row) and not _YEAR.fullmatch(row[0].text) else row  # "At December 31, 2023 2022"
        if len(named) < 2 or not all(_YEAR.fullmatch(piece.text) for piece in named):
            break
        years += 1
    body = _joined(body, slots)
    table = from_slots([*header, *body], slots, [])
    for cells in table.rows[: len(header) + years]:
        for cell in filter(None, cells):
            cell.head = True
    for cells, row in zip(table.rows[len(header) :], body, strict=True):
        if len(row) == 1 and not _is_value(row[0].text):
            cells[:] = [PdfCell(list(row[0].words)), *(PdfCell() for _ in slots[1:])]
    return table


def _joined(body: list[Row], slots: Sequence[tuple[float, float]]) -> list[Row]:
    """Return rows with labels of several lines joined: their numbers stand beside the last line or the first."""
    rows: list[Row] = []
    waiting: PdfPiece | None = None  # a line of a label whose numbers stand below
    left, right = slots[0]
    for at, row in enumerate(body):
        label, alone = row[0], len(row) == 1
        before = rows[-1] if rows else None
        if waiting is not None and columns_of(label, slots)[0] == 0 and not _is_value(label.text):
            label = _one_label(waiting, label)
            row = [label, *row[1:]]
            rows.pop()
        waiting = None
        small = row[0].text[:1].islower()
        if alone and before is not None and len(before) > 1 and small and not _is_value(before[0].text):
            tight = row[0].y - body[at - 1][0].y < _TIGHT * label.size
            if tight and not _wants_more(body, at):
                rows[-1] = [_one_label(before[0], label), *before[1:]]
                continue
        if alone and at + 1 < len(body) and _wants_more(body, at):
            is_full = label.x1 > left + 0.8 * (right - left) and not label.text.isupper()
            if not label.text.endswith(":") and (body[at + 1][0].text[:1].islower() or is_full):
                waiting = label
        rows.append(row)
    return rows


def _one_label(first: PdfPiece, second: PdfPiece) -> PdfPiece:
    """Return two lines of a label as one."""
    second.words[0].space = True
    return PdfPiece([*first.words, *second.words])


def _wants_more(body: Sequence[Row], at: int) -> bool:
    """Tell whether the next line may go on with the label of a line: it stands right below, and no number before it."""
    below = body[at + 1][0] if at + 1 < len(body) else None
    label = body[at][0]
    return below is not None and below.y - label.y < _TIGHT * max(label.size, 1.0) and not _is_value(below.text)
