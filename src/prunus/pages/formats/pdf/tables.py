"""Find the tables of a PDF page: tables with rulings by their lines, tables without by aligned columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from .lines import PdfPiece, Word
from .page import Boxes
from .reader import BOLD

_TOUCH: Final = 3.0  # points; lines closer than this meet
_MAX_LINES: Final = 600  # rulings of a page; a page with more holds a drawing
_MAX_CELLS: Final = 20_000  # cells of a grid; a larger grid is a drawing
_MAX_ROWS: Final = 200  # rows of a table without rulings, on one page


@dataclass(slots=True)
class PdfCell:
    """A cell with the words in it."""

    words: list[Word] = field(default_factory=list)
    colspan: int = 1
    rowspan: int = 1
    head: bool = False

    @property
    def text(self) -> str:
        """The words with a space between any two."""
        return " ".join(word.text for word in self.words)


@dataclass(slots=True)
class Table:
    """A table: rows of cells, None where a cell above or to the left spans the place.

    :param box: x0, y0, x1, y1 on the page, in points.
    :param columns: left edges of the columns, and the right edge of the last column.
    """

    rows: list[list[PdfCell | None]]
    box: tuple[float, float, float, float]
    columns: list[float]
    caption: list[PdfPiece] = field(default_factory=list)


def cell_lines(cell: PdfCell) -> list[list[Word]]:
    """Return the words of a cell by line."""
    lines: list[list[Word]] = []
    for word in cell.words:
        if lines and abs(word.y - lines[-1][-1].y) < 0.5 * max(word.size, lines[-1][-1].size):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def ruled_tables(rules: Sequence[Sequence[float]], fills: Sequence[Sequence[float]], words: list[Word]) -> list[Table]:
    """Return the tables with rulings, and remove their words from ``words``."""
    across, down = _merge_rulings(rules, 0), _merge_rulings(rules, 1)
    if not across or not down or len(across) + len(down) > _MAX_LINES:
        return []
    tables = []
    for horizontal, vertical in _group_meeting(across, down):
        table = _from_grid(horizontal, vertical, words)
        if table is not None:
            _mark_heads(table, fills)
            tables.append(table)
    return tables


Line = tuple[float, float, float]
"""Position of a line on its axis, start, end."""


def _merge_rulings(rules: Sequence[Sequence[float]], axis: int) -> list[Line]:
    """Return the horizontal (axis 0) or vertical (axis 1) rulings; pieces of the same line are joined."""
    lines = []
    for x0, y0, x1, y1 in rules:
        if axis == 0 and x1 - x0 > max(y1 - y0, 4):
            lines.append(((y0 + y1) / 2, x0, x1))
        elif axis == 1 and y1 - y0 > max(x1 - x0, 4):
            lines.append(((x0 + x1) / 2, y0, y1))
    lines.sort()
    merged: list[Line] = []
    group: list[Line] = []
    for line in [*lines, (float("inf"), 0.0, 0.0)]:
        if group and line[0] - group[-1][0] > 1.5:
            at = sum(piece[0] for piece in group) / len(group)
            reach: list[list[float]] = []
            for _, start, stop in sorted(group, key=lambda piece: piece[1]):
                if reach and start <= reach[-1][1] + _TOUCH:
                    reach[-1][1] = max(reach[-1][1], stop)
                else:
                    reach.append([start, stop])
            merged += [(at, start, stop) for start, stop in reach]
            group = []
        group.append(line)
    return merged


def _group_meeting(across: list[Line], down: list[Line]) -> list[tuple[list[Line], list[Line]]]:
    """Group lines that meet, directly or through other lines (union-find)."""
    parent = list(range(len(across) + len(down)))

    def root(line_id: int) -> int:
        while parent[line_id] != line_id:
            parent[line_id] = parent[parent[line_id]]
            line_id = parent[line_id]
        return line_id

    for i, (y, x0, x1) in enumerate(across):
        for j, (x, y0, y1) in enumerate(down, len(across)):
            if x0 - _TOUCH <= x <= x1 + _TOUCH and y0 - _TOUCH <= y <= y1 + _TOUCH:
                parent[root(i)] = root(j)
    groups: dict[int, tuple[list[Line], list[Line]]] = {}
    for i, line in enumerate(across):
        groups.setdefault(root(i), ([], []))[0].append(line)
    for j, line in enumerate(down, len(across)):
        groups.setdefault(root(j), ([], []))[1].append(line)
    return [group for group in groups.values() if group[0] and group[1]]


def _from_grid(across: list[Line], down: list[Line], words: list[Word]) -> Table | None:
    """Return the table of a group of rulings, or None where they frame too few cells with words."""
    xs = _grid_lines([x for x, _, _ in down], [x for _, x0, x1 in across for x in (x0, x1)])
    ys = _grid_lines([y for y, _, _ in across], [y for _, y0, y1 in down for y in (y0, y1)])
    if len(xs) < 2 or len(ys) < 2 or (len(xs) - 1) * (len(ys) - 1) > _MAX_CELLS:
        return None
    width, height = len(xs) - 1, len(ys) - 1
    words_by_cell = _words_by_cell(xs, ys, words)
    # too few cells frame a text box, and a mostly empty grid is a drawing
    if len(words_by_cell) < 2 or width * height < (3 if height == 1 else 2) or len(words_by_cell) * 4 < width * height:
        return None
    lines_at_x = [[line for line in down if abs(line[0] - x) <= _TOUCH] for x in xs]
    lines_at_y = [[line for line in across if abs(line[0] - y) <= _TOUCH] for y in ys]
    walls = [[_is_covered(lines, ys[row], ys[row + 1]) for lines in lines_at_x] for row in range(height)]
    floors = [[_is_covered(lines, xs[column], xs[column + 1]) for column in range(width)] for lines in lines_at_y]
    grid: list[list[PdfCell | None]] = [[None] * width for _ in range(height)]
    taken = [[False] * width for _ in range(height)]
    count = 0
    for row in range(height):
        for column in range(width):
            if taken[row][column]:
                continue
            right, bottom = _cell_extent(row, column, walls, floors, taken)
            cell = grid[row][column] = PdfCell(colspan=right - column + 1, rowspan=bottom - row + 1)
            count += 1
            for r in range(row, bottom + 1):
                for c in range(column, right + 1):
                    taken[r][c] = True
                    cell.words += words_by_cell.get((r, c), [])
            cell.words.sort(key=lambda word: word.order)
    if count < 2 or sum(bool(cell and cell.words) for line in grid for cell in line) < 2:
        return None
    in_table = {id(word) for group in words_by_cell.values() for word in group}
    words[:] = [word for word in words if id(word) not in in_table]
    return _drop_empty_rows(Table(grid, (xs[0], ys[0], xs[-1], ys[-1]), xs))


def _grid_lines(ruled: list[float], ends: list[float]) -> list[float]:
    """Return the positions of a grid's lines. The ends of the crossing lines replace a missing outermost line."""
    positions: list[float] = []
    for value in sorted(ruled):
        if not positions or value - positions[-1] > _TOUCH:
            positions.append(value)
    if positions and min(ends) < positions[0] - 8:
        positions.insert(0, min(ends))
    if positions and max(ends) > positions[-1] + 8:
        positions.append(max(ends))
    return positions


def _words_by_cell(xs: list[float], ys: list[float], words: Iterable[Word]) -> dict[tuple[int, int], list[Word]]:
    """Return the words in each cell of a grid."""
    by_cell: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        x, y = (word.x0 + word.x1) / 2, word.y - 0.3 * word.size
        if xs[0] <= x < xs[-1] and ys[0] <= y < ys[-1]:
            by_cell.setdefault((bisect_right(ys, y) - 1, bisect_right(xs, x) - 1), []).append(word)
    return by_cell


def _is_covered(lines: list[Line], start: float, stop: float) -> bool:
    """Tell whether rulings cover at least 60 % of an edge."""
    covered = sum(max(0.0, min(high, stop) - max(low, start)) for _, low, high in lines)
    return covered >= 0.6 * (stop - start)


def _cell_extent(
    row: int, column: int, walls: list[list[bool]], floors: list[list[bool]], taken: list[list[bool]]
) -> tuple[int, int]:
    """Return the last column and the last row of the cell that begins at a place; rulings end a cell."""
    width, height = len(floors[0]), len(walls)
    right = column
    while right + 1 < width and not walls[row][right + 1] and not taken[row][right + 1]:
        right += 1
    bottom = row
    while bottom + 1 < height and not any(floors[bottom + 1][column : right + 1]):
        below = walls[bottom + 1]
        # the cell grows down only where the next row has no wall inside it and walls at both its sides
        is_open = not any(below[column + 1 : right + 1])
        has_sides = (column == 0 or below[column]) and (right + 1 == width or below[right + 1])
        if not is_open or not has_sides or any(taken[bottom + 1][column : right + 1]):
            break
        bottom += 1
    return right, bottom


def _drop_empty_rows(table: Table) -> Table:
    """Remove rows without words, which double rulings leave."""
    for row in range(len(table.rows) - 1, -1, -1):
        cells = table.rows[row]
        if all(cell is not None and not cell.words and cell.rowspan == 1 for cell in cells) and len(table.rows) > 1:
            del table.rows[row]
    return table


def _mark_heads(table: Table, fills: Sequence[Sequence[float]]) -> None:
    """Mark the header row: it is bold or shaded unlike the next row, or it holds no numbers."""
    if len(table.rows) < 2:
        return
    first, second = table.rows[0], next((row for row in table.rows[1:] if any(row)), [])
    cells = [cell for cell in first if cell]
    filled = [cell for cell in cells if cell.words]
    if len(filled) < 2 and not (filled and len(cells) > 1 and not cells[0].words):
        return
    bold = [all(cell.words and _is_bold(cell) for cell in row if cell and cell.words) for row in (first, second)]
    boxes = Boxes(fills)
    shaded = [any(_is_shaded(cell, boxes) for cell in row if cell) for row in (first, second)]
    words_only = all(not _is_numeric(cell.text) for cell in filled) and all(len(cell.text) < 80 for cell in filled)
    if (bold[0] and not bold[1]) or (shaded[0] and not shaded[1]) or words_only:
        depth = max((cell.rowspan for cell in cells), default=1)
        for row in table.rows[: min(depth, len(table.rows) - 1)]:
            for cell in row:
                if cell:
                    cell.head = True


def _is_bold(cell: PdfCell) -> bool:
    return all(word.flags & BOLD for word in cell.words)


def _is_shaded(cell: PdfCell, boxes: Boxes) -> bool:
    return any(boxes.at((word.x0 + word.x1) / 2, word.y - 0.3 * word.size) is not None for word in cell.words[:1])


def _is_numeric(text: str) -> bool:
    """Tell whether a text is mostly digits."""
    digits = sum(letter.isdigit() for letter in text)
    return digits > 0 and digits * 2 >= sum(not letter.isspace() for letter in text) - 2


# --- tables without rulings ----------------------------------------------------------------------


def aligned_table(rows: Sequence[Sequence[PdfPiece]], start: int) -> tuple[Table, int] | None:
    """Return the table that begins at a row of a flow, and the index of the row after it, or None.

    A table has at least two rows of three columns, or three rows of two columns, with common gaps between columns.
    """
    if len(rows[start]) < 2 or any(piece.atom is not None or piece.leader for piece in rows[start]):
        return None
    stop, slots = start + 1, _column_edges([rows[start]])
    gaps: list[float] = []
    while stop < min(len(rows), start + _MAX_ROWS):
        row = rows[stop]
        gap = row[0].y - rows[stop - 1][0].y
        em = max(row[0].size, rows[stop - 1][0].size)
        if any(piece.atom is not None or piece.leader for piece in row) or gap > 2.6 * em:
            break
        if gaps and gap > 1.9 * max(min(gaps), 1.1 * em):
            break
        wider = _column_edges(rows[start : stop + 1])
        if len(wider) < 2 or (len(row) == 1 and not _fits(row[0], slots)):
            break
        slots = wider
        gaps.append(gap)
        stop += 1
    while stop > start and len(rows[stop - 1]) == 1 and _columns_of(rows[stop - 1][0], slots)[0] == 0:
        stop -= 1
    several = sum(len(row) > 1 for row in rows[start:stop])
    slots = _column_edges(rows[start:stop]) if stop > start else []
    if len(slots) < 2 or several < (3 if len(slots) == 2 else 2) or _is_stretched(rows[start:stop], slots):
        return None
    table = _from_slots(rows[start:stop], slots, gaps)
    _mark_heads(table, ())
    return table, stop


def _is_stretched(rows: Sequence[Sequence[PdfPiece]], slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether rows are lines of justified running text with wide spaces."""
    left, right = slots[0][0], slots[-1][1]
    flush = sum(row[0].x0 - left < 1.5 and right - row[-1].x1 < 1.5 for row in rows)
    numbers = sum(_is_numeric(piece.text) for row in rows for piece in row[1:])
    return flush >= 0.6 * len(rows) and numbers * 3 < len(rows)


def _column_edges(rows: Sequence[Sequence[PdfPiece]]) -> list[tuple[float, float]]:
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


def _columns_of(piece: PdfPiece, slots: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return the first and the last column that a piece covers."""
    over = [at for at, (start, stop) in enumerate(slots) if piece.x0 < stop and piece.x1 > start]
    if over:
        return over[0], over[-1]
    middle = (piece.x0 + piece.x1) / 2
    nearest = min(range(len(slots)), key=lambda at: abs(sum(slots[at]) / 2 - middle))
    return nearest, nearest


def _fits(piece: PdfPiece, slots: Sequence[tuple[float, float]]) -> bool:
    """Tell whether a single piece of a line is within one column."""
    first, last = _columns_of(piece, slots)
    reach = piece.size
    return first == last and piece.x0 >= slots[first][0] - reach and piece.x1 <= slots[first][1] + 3 * reach


def _from_slots(rows: Sequence[Sequence[PdfPiece]], slots: list[tuple[float, float]], gaps: list[float]) -> Table:
    """Return the table of rows with known columns. Continuation lines of a cell are joined to it."""
    loose = bool(gaps) and max(gaps) > 1.25 * min(gaps)
    grid: list[list[PdfCell | None]] = []
    before: Sequence[PdfPiece] | None = None
    for row in rows:
        gap = row[0].y - before[0].y if before else 0.0
        is_continuation = before is not None and loose and gap <= 1.15 * min(gaps) and _columns_of(row[0], slots)[0] > 0
        before = row
        cells: list[PdfCell | None] = [PdfCell() for _ in slots]
        for piece in row:
            first, last = _columns_of(piece, slots)
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


def continues(table: Table, after: Table) -> bool:
    """Tell whether a table at the top of a page has the columns of the last table of the page before."""
    return len(table.columns) == len(after.columns) and all(
        abs(edge - next_edge) <= 4 for edge, next_edge in zip(table.columns, after.columns, strict=True)
    )
