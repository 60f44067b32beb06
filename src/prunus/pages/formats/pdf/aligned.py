"""Find tables without rulings by their aligned columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .cells import PdfCell, Table, is_numeric, mark_heads
from .lines import PdfPiece

_MAX_ROWS: Final = 200  # rows of a table without rulings, on one page


def aligned_table(rows: Sequence[Sequence[PdfPiece]], start: int) -> tuple[Table, int] | None:
    """Return the table that begins at a row of a flow, and the index of the row after it, or None.

    A table has at least two rows of three columns, or three rows of two columns, with common gaps between columns.
    """
    if len(rows[start]) < 2 or any(piece.atom is not None or piece.leader for piece in rows[start]):
        return None
    stop, slots = start + 1, column_edges([rows[start]])
    gaps: list[float] = []
    while stop < min(len(rows), start + _MAX_ROWS):
        row = rows[stop]
        gap = row[0].y - rows[stop - 1][0].y
        em = max(row[0].size, rows[stop - 1][0].size)
        if any(piece.atom is not None or piece.leader for piece in row) or gap > 2.6 * em:
            break
        if gaps and gap > 1.9 * max(min(gaps), 1.1 * em):
            break
        wider = column_edges(rows[start : stop + 1])
        if len(wider) < 2 or (len(row) == 1 and not _fits(row[0], slots)):
            break
        slots = wider
        gaps.append(gap)
        stop += 1
    while stop > start and len(rows[stop - 1]) == 1 and columns_of(rows[stop - 1][0], slots)[0] == 0:
        stop -= 1
    several = sum(len(row) > 1 for row in rows[start:stop])
    slots = column_edges(rows[start:stop]) if stop > start else []
    if len(slots) < 2 or several < (3 if len(slots) == 2 else 2) or is_stretched(rows[start:stop], slots):
        return None
    table = from_slots(rows[start:stop], slots, gaps)
    mark_heads(table, ())
    return table, stop


def is_stretched(rows: Sequence[Sequence[PdfPiece]], slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether rows are lines of justified running text with wide spaces."""
    left, right = slots[0][0], slots[-1][1]
    flush = sum(row[0].x0 - left < 1.5 and right - row[-1].x1 < 1.5 for row in rows)
    numbers = sum(is_numeric(piece.text) for row in rows for piece in row[1:])
    return flush >= 0.6 * len(rows) and numbers * 3 < len(rows)


def column_edges(rows: Sequence[Sequence[PdfPiece]]) -> list[tuple[float, float]]:
    """Return the (left, right) edges of the columns. A gap between columns may be crossed by one row in five."""
    edges: list[tuple[float, int]] = []
    for row in rows:
        edges += [(piece.x0, 1) for piece in row]
        edges += [(piece.x1, -1) for piece in row]
    edges.sort()
    allowed = len(rows) // 5
    em = max((piece.size for row in rows for piece in row), default=10.0)
    found: list[list[float]] = []
    depth = 0
    for place, step in edges:
        before, depth = depth, depth + step
        if before <= allowed < depth:
            if found and place - found[-1][1] < 0.5 * em:
                continue
            found.append([place, place])
        elif depth <= allowed < before:
            found[-1][1] = place
    return [(start, stop) for start, stop in found]


def columns_of(piece: PdfPiece, slots: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return the first and the last column that a piece covers."""
    over = [at for at, (start, stop) in enumerate(slots) if piece.x0 < stop and piece.x1 > start]
    if over:
        return over[0], over[-1]
    middle = (piece.x0 + piece.x1) / 2
    nearest = min(range(len(slots)), key=lambda at: abs(sum(slots[at]) / 2 - middle))
    return nearest, nearest


def _fits(piece: PdfPiece, slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether a single piece of a line is within one column."""
    first, last = columns_of(piece, slots)
    reach = piece.size
    return first == last and piece.x0 >= slots[first][0] - reach and piece.x1 <= slots[first][1] + 3 * reach


def _goes_on(above: Sequence[PdfCell | None], piece: PdfPiece, slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether a piece may be the next line of the cell above it: that holds words, and the piece is no number."""
    cell = above[columns_of(piece, slots)[0]]
    return cell is not None and bool(cell.words) and not is_numeric(piece.text)


def from_slots(rows: Sequence[Sequence[PdfPiece]], slots: list[tuple[float, float]], gaps: list[float]) -> Table:
    """Return the table of rows with known columns. Continuation lines of a cell are joined to it."""
    loose = bool(gaps) and max(gaps) > 1.25 * min(gaps)
    grid: list[list[PdfCell | None]] = []
    before: Sequence[PdfPiece] | None = None
    for row in rows:
        gap = row[0].y - before[0].y if before else 0.0
        is_close = before is not None and loose and gap <= 1.15 * min(gaps) and columns_of(row[0], slots)[0] > 0
        is_continuation = is_close and all(_goes_on(grid[-1], piece, slots) for piece in row)
        before = row
        cells: list[PdfCell | None] = [PdfCell() for _ in slots]
        for piece in row:
            first, last = columns_of(piece, slots)
            target = grid[-1] if is_continuation else cells
            cell = target[first] or next(cell for cell in reversed(target[:first]) if cell)
            cell.words += piece.words
            if not is_continuation and last > first and all(c and not c.words for c in target[first + 1 : last + 1]):
                cell.colspan = last - first + 1
                target[first + 1 : last + 1] = [None] * (last - first)
        if not is_continuation:
            grid.append(cells)
    box = (slots[0][0], rows[0][0].top, slots[-1][1], rows[-1][0].bottom)
    return Table(grid, box, [*[start for start, _ in slots], slots[-1][1]])
