"""Find the tables of a PDF page.

A table has rulings around its cells, or only between groups of rows (bands), or only above, below and between rows, as
the LaTeX package booktabs draws them, or none: then its columns are aligned.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from .lines import PdfPiece, Word, group_words, is_marker, rows_of
from .page import Boxes
from .reader import BOLD

SIGN: Final = re.compile(r"[$€£¥]|US\$|USD|EUR")
"""The sign of a currency, alone."""
CLOSE: Final = re.compile(r"[)%*]{1,3}")
"""What ends a number, alone."""
_APART: Final = 300.0  # points between two rulings of one table, at most
_PART: Final = 0.9  # share of a table's width; shorter rulings name a group of columns
_SEVERAL: Final = 0.6  # share of rows that stand in several columns, at least

"""Position of a line on its axis, start, end."""


def booktabs(across: Sequence[Line], words: list[Word], grids: Sequence[PdfTable]) -> list[PdfTable]:
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
        if _lacks_labels(inside, words, left) or _lacks_numbers(inside, words, right):
            continue
        parts = [line for line in across if line[2] - line[1] < _PART * (right - left)]
        table = _table(inside, [y for y, _, _ in lines], parts)
        if table is not None:
            held = {id(word) for word in inside}
            words[:] = [word for word in words if id(word) not in held]
            tables.append(table)
    return tables


def _lacks_labels(inside: Sequence[Word], words: Sequence[Word], left: float) -> bool:
    """Tell whether the rulings are below numbers only, whose labels stand at their left."""
    rows = [row for row in rows_of(group_words(inside)) if row]
    numbers = [row[0] for row in rows if is_numeric(row[0].text) or row[0].text == "$"]
    heights = sorted(word.y for word in words if word.x1 <= left + _TOUCH)
    beside = sum(bisect_right(heights, row.y + 1) > bisect_left(heights, row.y - 1) for row in numbers)
    return 2 * len(numbers) > len(rows) and 2 * beside > len(numbers)


def _lacks_numbers(inside: Sequence[Word], words: Sequence[Word], right: float) -> bool:
    """Tell whether the rulings end before further numbers of the rows: most lines go on with one at their right."""
    rows = [row for row in rows_of(group_words(inside)) if row]
    beside = sorted((word for word in words if word.x0 >= right - _TOUCH), key=lambda word: word.y)
    heights = [word.y for word in beside]
    going_on = 0
    for row in rows:
        line = beside[bisect_left(heights, row[0].y - 1) : bisect_right(heights, row[0].y + 1)]
        going_on += bool(line) and _is_value(min(line, key=lambda word: word.x0).text)
    return 2 * going_on > len(rows)


def _is_value(text: str) -> bool:
    return is_numeric(text) or text in ("$", "€", "£", "—", "–", "-")


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


def _table(words: Sequence[Word], heights: Sequence[float], parts: Sequence[Line]) -> PdfTable | None:
    """Return the table of the words between rulings, or None where they stand in no columns."""
    rows = [row for row in rows_of(group_words(words)) if row]
    several = sum(len(row) > 1 for row in rows)
    if several < 2 or several < _SEVERAL * len(rows) or any(piece.leader for row in rows for piece in row):
        return None
    slots = column_edges(rows)
    if len(slots) < 2 or is_stretched(rows, slots):
        return None
    rows, labels = _without_labels([with_signs(row) for row in rows])
    gaps = [lower[0].y - upper[0].y for upper, lower in pairwise(rows)]
    table = from_slots([_widened(row, parts) for row in rows], slots, gaps)
    for piece, at in labels:
        column = columns_of(piece, slots)[0]
        upper = table.rows[at - 1][column] if at <= len(table.rows) else None
        if upper is not None:
            upper.words += piece.words
    second = next((y for y in heights if y > rows[0][0].y), heights[-1])
    heads = [row for line, row in zip(rows, table.rows, strict=False) if line[0].y < second]
    numbers = sum(any(cell and is_numeric(cell.text) for cell in row[1:]) for row in table.rows)
    if 2 * numbers > len(table.rows) and not any(sum(bool(cell and cell.words) for cell in row) > 1 for row in heads):
        return None  # numbers whose header stands above the rulings: see number_tables
    for row in heads if len(heads) < len(table.rows) else []:
        cells = [cell for cell in row if cell and cell.words]
        if 2 * sum(is_numeric(cell.text) for cell in cells) >= len(cells):
            break
        for cell in filter(None, row):
            cell.head = True
    return table


def with_signs(row: Sequence[PdfPiece]) -> list[PdfPiece]:
    """Return a line with each currency sign before its number, and each bracket and percent sign after it."""
    joined: list[PdfPiece] = []
    carried: list[PdfPiece] = []
    for piece in row:
        if piece.atom is not None:
            return list(row)
        words = piece.words
        if joined and CLOSE.fullmatch(piece.text):
            joined[-1] = PdfPiece([*joined[-1].words, *words])
            continue
        sign: list[Word] = []
        while words and SIGN.fullmatch(words[-1].text):
            sign, words = [words[-1], *sign], words[:-1]
        if words:
            joined.append(PdfPiece([*(word for held in carried for word in held.words), *words]))
            carried = []
        if sign:
            carried.append(PdfPiece(sign))
    return [*joined, *carried]


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
            is_below = 0 <= y - piece.y <= 0.9 * piece.size and start <= piece.x0 and piece.x1 <= stop
            if is_below and not any(other is not piece and start < other.x1 and other.x0 < stop for other in row):
                piece.x0, piece.x1 = start, stop
    return list(row)


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
class PdfTable:
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


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def meet(first: Box, second: Box) -> bool:
    """Tell whether two boxes overlap."""
    apart = first[0] >= second[2] or second[0] >= first[2] or first[1] >= second[3] or second[1] >= first[3]
    return not apart


def is_numeric(text: str) -> bool:
    """Tell whether a text is mostly digits."""
    digits = sum(letter.isdigit() for letter in text)
    return digits > 0 and digits * 2 >= sum(not letter.isspace() for letter in text) - 2


def mark_heads(table: PdfTable, fills: Sequence[Sequence[float]]) -> None:
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
    words_only = all(not is_numeric(cell.text) for cell in filled) and all(len(cell.text) < 80 for cell in filled)
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


_FULL: Final = 0.7  # share of a band's lines that a cell has at least if it shows the rows
_NUMBERS: Final = 0.6  # share of a cell's lines that are numbers in a column of numbers
_GAP: Final = 0.95  # em; words farther apart stand in different columns
_OPEN: Final = 0.5  # share of lines with such gaps from which on the rulings do not part the columns

Row = list[PdfCell | None]


def is_open(table: PdfTable) -> bool:
    """Tell whether rulings frame whole groups of columns, so that the columns must be found otherwise."""
    lines = [line for row in table.rows for cell in row if cell for line in cell_lines(cell)]
    several = sum(any(_is_gap(left, right) for left, right in pairwise(line)) for line in lines)
    return len(lines) >= 3 and several >= _OPEN * len(lines)


def _is_gap(left: Word, right: Word) -> bool:
    return not is_marker(left.text) and bool(right.x0 - left.x1 > _GAP * max(left.size, right.size))


def split_bands(table: PdfTable) -> None:
    """Divide each band that holds several rows with numbers into these rows."""
    rows: list[Row] = []
    reaching: list[tuple[PdfCell, int]] = []  # cells that reach down, and the bands that they still cover
    for number, band in enumerate(table.rows):
        parts = _parts(band)
        if number == 0 and len(parts) == 2:
            parts = []  # a header of two lines
        begun = [(cell, cell.rowspan) for cell in band if cell and cell.rowspan > 1]
        for cell, _ in [*reaching, *begun] if parts else []:
            cell.rowspan += len(parts) - 1
        reaching = [(cell, bands - 1) for cell, bands in [*reaching, *begun] if bands > 1]
        rows += parts or [band]
    table.rows = rows


def _parts(band: Row) -> list[Row]:
    """Return the rows of a band; an empty list where it is one row."""
    lines = {
        column: _lines(cell.words) for column, cell in enumerate(band) if cell and cell.rowspan == 1 and cell.words
    }
    several = [held for held in lines.values() if len(held) > 1]
    levels = [level[0].y for level in _lines(line[0] for held in several for line in held)]
    full = [held for held in several if len(held) >= _FULL * len(levels)]
    if len(full) < 2 or not any(_are_numbers(held) for held in full):
        return []
    parts: list[Row] = [[None] * len(band) for _ in levels]
    for column, cell in enumerate(band):
        if cell is None:
            continue
        held = lines.get(column, [])
        at = [_nearest(levels, line[0].y) for line in held]
        if cell.rowspan > 1:
            parts[0][column] = cell
        elif len(held) == 1 and abs(levels[at[0]] - held[0][0].y) > 0.35 * held[0][0].size:
            parts[0][column] = PdfCell(cell.words, cell.colspan, len(levels))  # centred beside the rows
        else:
            for part in parts:
                part[column] = PdfCell(colspan=cell.colspan)
            for level, line in zip(at, held, strict=True):
                target = parts[level][column]
                if target:
                    target.words += sorted(line, key=lambda word: word.order)
    return parts


def _lines(words: Iterable[Word]) -> list[list[Word]]:
    """Return words by line, from the top."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.y):
        if lines and word.y - lines[-1][0].y <= 0.5 * max(word.size, lines[-1][0].size):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def _nearest(levels: Sequence[float], y: float) -> int:
    return min(range(len(levels)), key=lambda at: abs(levels[at] - y))


def _are_numbers(lines: Sequence[Sequence[Word]]) -> bool:
    """Tell whether most lines of a cell are numbers."""
    numbers = sum(is_numeric(" ".join(word.text for word in line)) for line in lines)
    return numbers >= _NUMBERS * len(lines)


_TOUCH: Final = 3.0  # points; lines closer than this meet
_MAX_LINES: Final = 600  # rulings of a page; a page with more holds a drawing
_MAX_CELLS: Final = 20_000  # cells of a grid; a larger grid is a drawing


def ruled_tables(
    rules: Sequence[Sequence[float]], fills: Sequence[Sequence[float]], words: list[Word]
) -> list[PdfTable]:
    """Return the tables with rulings, and remove their words from ``words``."""
    across, down = _merge_rulings(rules, 0), _merge_rulings(rules, 1)
    if not across or len(across) + len(down) > _MAX_LINES:
        return []
    grids: list[PdfTable] = []
    opened: list[PdfTable] = []
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


def _take_words(table: PdfTable, words: list[Word]) -> None:
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


def _from_grid(across: list[Line], down: list[Line], words: list[Word]) -> PdfTable | None:
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
    return _drop_empty_rows(PdfTable(grid, (xs[0], ys[0], xs[-1], ys[-1]), xs))


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


def _drop_empty_rows(table: PdfTable) -> PdfTable:
    """Remove rows without words, which double rulings leave."""
    for row in range(len(table.rows) - 1, -1, -1):
        cells = table.rows[row]
        if all(cell is not None and not cell.words and cell.rowspan == 1 for cell in cells) and len(table.rows) > 1:
            del table.rows[row]
    return table


def continues(table: PdfTable, after: PdfTable) -> bool:
    """Tell whether a table at the top of a page has the columns of the last table of the page before."""
    return len(table.columns) == len(after.columns) and all(
        abs(edge - next_edge) <= 4 for edge, next_edge in zip(table.columns, after.columns, strict=True)
    )


_MAX_ROWS: Final = 200  # rows of a table without rulings, on one page


def aligned_table(rows: Sequence[Sequence[PdfPiece]], start: int) -> tuple[PdfTable, int] | None:
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


def column_edges(rows: Sequence[Sequence[PdfPiece]], strict: bool = False) -> list[tuple[float, float]]:
    """Return the (left, right) edges of the columns. A gap between columns may be crossed by one row in five.

    :param strict: no row may cross it.
    """
    edges: list[tuple[float, int]] = []
    for row in rows:
        edges += [(piece.x0, 1) for piece in row]
        edges += [(piece.x1, -1) for piece in row]
    edges.sort()
    allowed = 0 if strict else len(rows) // 5
    em = max((piece.size for row in rows for piece in row), default=10.0)
    result: list[list[float]] = []
    depth = 0
    for place, step in edges:
        before, depth = depth, depth + step
        if before <= allowed < depth:
            if result and place - result[-1][1] < 0.5 * em:
                continue
            result.append([place, place])
        elif depth <= allowed < before:
            result[-1][1] = place
    return [(start, stop) for start, stop in result]


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


def from_slots(rows: Sequence[Sequence[PdfPiece]], slots: list[tuple[float, float]], gaps: list[float]) -> PdfTable:
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
            piece.words[0].space = piece.words[0].space or bool(cell.words)
            cell.words += piece.words
            if not is_continuation and last > first and all(c and not c.words for c in target[first + 1 : last + 1]):
                cell.colspan = last - first + 1
                target[first + 1 : last + 1] = [None] * (last - first)
        if not is_continuation:
            grid.append(cells)
    box = (slots[0][0], rows[0][0].top, slots[-1][1], rows[-1][0].bottom)
    return PdfTable(grid, box, [*[start for start, _ in slots], slots[-1][1]])
