"""Find tables whose rulings only stand above, below and between rows, as the LaTeX package booktabs draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from .aligned import column_edges, columns_of, from_slots, is_stretched
from .cells import Table, is_numeric, meet
from .lines import PdfPiece, Word, group_words, rows_of

_TOUCH: Final = 3.0  # points; lines closer than this end at the same place
_APART: Final = 300.0  # points between two rulings of one table, at most
_PART: Final = 0.9  # share of a table's width; shorter rulings name a group of columns
_SEVERAL: Final = 0.6  # share of rows that stand in several columns, at least

Line = tuple[float, float, float]
"""Position of a line on its axis, start, end."""


def booktabs(across: Sequence[Line], words: list[Word], grids: Sequence[Table]) -> list[Table]:
    """Return the tables between rulings of one width, and remove their words from ``words``.

    :param across: horizontal rulings.
    :param grids: tables that were found before; rulings around them are theirs.
    """
    tables = []
    for lines in _stacks(across):
        _, left, right = lines[0]
        top, bottom = lines[0][0], lines[-1][0]
        if any(meet(grid.box, (left, top, right, bottom)) for grid in grids):
            continue
        inside = [word for word in words if _is_inside(word, (left, top, right, bottom))]
        parts = [line for line in across if line[2] - line[1] < _PART * (right - left)]
        table = _table(inside, [y for y, _, _ in lines], parts)
        if table is not None:
            held = {id(word) for word in inside}
            words[:] = [word for word in words if id(word) not in held]
            tables.append(table)
    return tables


def _stacks(across: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield runs of at least three lines of one width below each other."""
    stack: list[Line] = []
    for line in [*sorted(across, key=lambda line: (round(line[1] / _TOUCH), round(line[2] / _TOUCH), line[0])), None]:
        if stack and (line is None or not _continues(stack[-1], line)):
            if len(stack) > 2:
                yield stack
            stack = []
        if line is not None:
            stack.append(line)


def _continues(upper: Line, lower: Line) -> bool:
    same = abs(upper[1] - lower[1]) <= _TOUCH and abs(upper[2] - lower[2]) <= _TOUCH
    return same and lower[0] - upper[0] <= _APART


def _is_inside(word: Word, box: tuple[float, float, float, float]) -> bool:
    x, y = (word.x0 + word.x1) / 2, word.y - 0.3 * word.size
    return bool(box[0] - _TOUCH <= x <= box[2] + _TOUCH and box[1] <= y <= box[3])


def _table(words: Sequence[Word], heights: Sequence[float], parts: Sequence[Line]) -> Table | None:
    """Return the table of the words between rulings, or None where they stand in no columns."""
    rows = [row for row in rows_of(group_words(words)) if row]
    several = sum(len(row) > 1 for row in rows)
    if several < 2 or several < _SEVERAL * len(rows) or any(piece.leader for row in rows for piece in row):
        return None
    slots = column_edges(rows)
    if len(slots) < 2 or is_stretched(rows, slots):
        return None
    rows, labels = _without_labels(rows)
    gaps = [lower[0].y - upper[0].y for upper, lower in pairwise(rows)]
    table = from_slots([_widened(row, parts) for row in rows], slots, gaps)
    for piece, at in labels:
        column = columns_of(piece, slots)[0]
        upper = table.rows[at - 1][column] if at <= len(table.rows) else None
        if upper is not None:
            upper.words += piece.words
    second = next((y for y in heights if y > rows[0][0].y), heights[-1])
    heads = [row for line, row in zip(rows, table.rows, strict=False) if line[0].y < second]
    for row in heads if len(heads) < len(table.rows) else []:
        cells = [cell for cell in row if cell and cell.words]
        if 2 * sum(is_numeric(cell.text) for cell in cells) >= len(cells):
            break
        for cell in filter(None, row):
            cell.head = True
    return table


def _without_labels(rows: Sequence[list[PdfPiece]]) -> tuple[list[list[PdfPiece]], list[tuple[PdfPiece, int]]]:
    """Return rows without the labels that stand beside two of them, and each label with the number of rows above it."""
    kept: list[list[PdfPiece]] = []
    labels: list[tuple[PdfPiece, int]] = []
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        near = 0.8 * row[0].size
        beside = kept and below and row[0].y - kept[-1][0].y < near and below[0].y - row[0].y < near
        if len(row) == 1 and beside:
            labels.append((row[0], len(kept)))
        else:
            kept.append(row)
    return kept, labels


def _widened(row: Sequence[PdfPiece], parts: Sequence[Line]) -> list[PdfPiece]:
    """Return a row whose cells are as wide as the rulings right below them: those name groups of columns."""
    for piece in row:
        for y, start, stop in parts:
            if 0 <= y - piece.y <= 0.9 * piece.size and start <= piece.x0 and piece.x1 <= stop:
                piece.x0, piece.x1 = start, stop
    return list(row)
