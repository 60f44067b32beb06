"""Find the tables of a PDF page that have rulings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from .bands import is_open, split_bands
from .booktabs import booktabs
from .cells import PdfCell, Table, mark_heads, meet
from .lines import Word

_TOUCH: Final = 3.0  # points; lines closer than this meet
_MAX_LINES: Final = 600  # rulings of a page; a page with more holds a drawing
_MAX_CELLS: Final = 20_000  # cells of a grid; a larger grid is a drawing


def ruled_tables(rules: Sequence[Sequence[float]], fills: Sequence[Sequence[float]], words: list[Word]) -> list[Table]:
    """Return the tables with rulings, and remove their words from ``words``."""
    across, down = _merge_rulings(rules, 0), _merge_rulings(rules, 1)
    if not across or len(across) + len(down) > _MAX_LINES:
        return []
    grids: list[Table] = []
    opened: list[Table] = []
    for horizontal, vertical in _group_meeting(across, down):
        table = _from_grid(horizontal, vertical, words)
        if table is not None and is_open(table):
            opened.append(table)
        elif table is not None:
            _take_words(table, words)
            grids.append(table)
    tables = booktabs(across, words, grids)
    for table in opened:
        if not any(meet(table.box, other.box) for other in tables):
            _take_words(table, words)
            grids.append(table)
    for table in grids:
        split_bands(table)
        mark_heads(table, fills)
    return [*grids, *tables]


def _take_words(table: Table, words: list[Word]) -> None:
    """Remove the words of a table from ``words``, and from the table those that another table took."""
    left = {id(word) for word in words}
    cells = [cell for row in table.rows for cell in row if cell]
    for cell in cells:
        cell.words = [word for word in cell.words if id(word) in left]
    taken = {id(word) for cell in cells for word in cell.words}
    words[:] = [word for word in words if id(word) not in taken]


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


def continues(table: Table, after: Table) -> bool:
    """Tell whether a table at the top of a page has the columns of the last table of the page before."""
    return len(table.columns) == len(after.columns) and all(
        abs(edge - next_edge) <= 4 for edge, next_edge in zip(table.columns, after.columns, strict=True)
    )
