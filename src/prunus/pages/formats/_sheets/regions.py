"""Write the cells of a sheet as HTML. Empty rows and columns split the sheet into separate tables."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...asides import HIDDEN, aside, comment
from .._common.allowance import Allowance
from .._common.write import Cell, escape_attribute, escape_lines, escape_text, note, table
from .grid import count_headers, is_value, is_year

Place: TypeAlias = tuple[int, int]
_LINKS: Final = ("http://", "https://", "mailto:")
_MAX_CUTS: Final = 40  # depth of cuts; a bound for sheets that split again and again


@dataclass(slots=True)
class Sheet:
    """The visible cells of a sheet. Rows and columns are numbered from 0; hidden rows and columns do not count.

    :param cells: text of the non-empty cells, by place.
    :param spans: (rows, columns) of merged cells, by their first place.
    :param links: link targets by place.
    :param headers: places of the header cells of tables that the sheet declares.
    :param notes: sentences about content that was left out.
    :param numbers: the numbers of rows with cells, as the spreadsheet shows them: from 1, hidden rows counted.
    :param boxes: HTML of the text boxes that lie on the sheet.
    :param comments: (cell as B5, author, text) of the comments on visible cells.
    :param is_hidden: whether the spreadsheet hides the sheet.
    :param marks: the numbers that are written, by the first cell of a row.
    :param markup: HTML of the cells whose text is struck, raised or lowered in part or as a whole, by place.
    """

    name: str
    cells: dict[Place, str] = field(default_factory=dict)
    spans: dict[Place, Place] = field(default_factory=dict)
    links: dict[Place, str] = field(default_factory=dict)
    headers: set[Place] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    marks: dict[Place, int] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)
    comments: list[tuple[str, str, str]] = field(default_factory=list)
    is_hidden: bool = False
    markup: dict[Place, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Area:
    """A rectangle of places, bounds included, with its non-empty rows and columns.

    :param sparse: leave out its empty cells, because the document has too many.
    """

    top: int
    left: int
    bottom: int
    right: int
    rows: list[int]
    columns: list[int]
    sparse: bool = False


def unsaved_formulas(count: int) -> str:
    """Return the note about formulas whose value the file does not hold, as no program computed them."""
    told = "1 formula has" if count == 1 else f"{count:,} formulas have"
    return f"{told} no saved value, and the cells are empty here: open the file in a spreadsheet program and save it."


def column_letters(number: int) -> str:
    """Return the letters by which a spreadsheet names a column, counted from 0: A, Z, AA."""
    letters = ""
    number += 1
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def to_markup(sheet: Sheet, allowance: Allowance) -> str:
    """Return a sheet as a section: its name, its notes, its areas in reading order, its text boxes and its comments.

    A hidden sheet without cells is ''.
    """
    name = f'<data value="sheet">{escape_text(sheet.name)}</data>'
    inner = "".join(map(note, sheet.notes)) + _areas_html(sheet, allowance) + "".join(sheet.boxes)
    for cell, author, text in sheet.comments:
        inner += comment(escape_lines(text.strip()), escape_text(author), escape_text(cell))
    if sheet.is_hidden and not (sheet.cells or sheet.boxes):
        return ""
    if sheet.is_hidden:
        label = f"<h2>{HIDDEN.format('sheet')}: {name}</h2>"
        return f"<section>{aside(label, inner)}</section>"
    return f"<section><h2>{name}</h2>{inner}</section>"


def _areas_html(sheet: Sheet, allowance: Allowance) -> str:
    _trim_spans(sheet, allowance)
    covered = {*sheet.cells}
    for (row, column), (down, across) in sheet.spans.items():
        covered.update((row, column + step) for step in range(across))
        covered.update((row + step, column) for step in range(down))
    areas = _join_areas(_split_areas(sorted(covered)), sheet, allowance)
    for area in areas:
        area.sparse = not allowance.take("places", len(area.rows) * len(area.columns))
    inner, by_row = _covered_places(sheet.spans), _columns_by_row(sheet)
    for number, area in enumerate(areas):
        sheet.marks.update(_marked_rows(sheet, area, by_row, 0 if number else 1))
    return "".join(_area_html(sheet, area, inner, by_row, allowance) for area in areas)


def _marked_rows(
    sheet: Sheet, area: _Area, by_row: Mapping[int, Sequence[int]], expected: int
) -> Iterator[tuple[Place, int]]:
    """Yield the first cell and the number of each row of an area that does not follow the row above.

    :param expected: the number that the first row has without a mark; 0 for none.
    """
    for row in area.rows:
        columns = by_row.get(row, ())
        at = bisect_left(columns, area.left)
        if at == len(columns) or columns[at] > area.right:
            expected = 0  # a row without cells is not written
            continue
        number = sheet.numbers.get(row, row + 1)
        if number != expected:
            yield (row, columns[at]), number
        expected = number + 1


def _trim_spans(sheet: Sheet, allowance: Allowance) -> None:
    """Cut merged cells at the end of the sheet, and drop those that cover more places than are left."""
    bottom = max((row for row, _ in sheet.cells), default=0)
    right = max((column for _, column in sheet.cells), default=0)
    kept: dict[Place, Place] = {}
    for (row, column), (down, across) in sheet.spans.items():
        size = (min(down, bottom - row + 1), min(across, right - column + 1))
        if size != (1, 1) and allowance.take("places", size[0] * size[1]):
            kept[row, column] = size
    sheet.spans = kept


def _split_areas(places: Sequence[Place]) -> list[_Area]:
    """Cut places at empty rows, then each part at empty columns, and repeat until no cut is left."""
    areas: list[_Area] = []
    pending = [(list(places), 0, 0)]  # places, number of cuts, cuts in a row that split nothing
    while pending:
        current, cuts, idle = pending.pop()
        if not current:
            continue
        by_row = cuts % 2 == 0
        parts = _split_at_gaps(current, 0 if by_row else 1)
        idle = idle + 1 if len(parts) == 1 else 0
        if idle >= 2 or cuts >= _MAX_CUTS:
            rows, columns = sorted({place[0] for place in current}), sorted({place[1] for place in current})
            areas.append(_Area(rows[0], columns[0], rows[-1], columns[-1], rows, columns))
            continue
        pending.extend((part, cuts + 1, idle) for part in reversed(parts))
    return areas


def _split_at_gaps(places: Sequence[Place], axis: int) -> list[list[Place]]:
    """Group places into runs of adjacent rows (axis 0) or columns (axis 1)."""
    by_number: dict[int, list[Place]] = {}
    for place in places:
        by_number.setdefault(place[axis], []).append(place)
    parts: list[list[Place]] = []
    last = -2
    for number in sorted(by_number):
        if number != last + 1:
            parts.append([])
        parts[-1].extend(by_number[number])
        last = number
    return parts


def _join_areas(areas: Sequence[_Area], sheet: Sheet, allowance: Allowance) -> list[_Area]:
    """Join two areas with one empty row between them, where they are equally wide and only the first has a header."""
    joined: list[_Area] = []
    for area in areas:
        above = joined[-1] if joined else None
        if (
            above is not None
            and area.top == above.bottom + 2
            and (area.left, area.right) == (above.left, above.right)
            and area.left < area.right
            and _count_headers(sheet, above, allowance)
            and not _count_headers(sheet, area, allowance)
        ):
            above.bottom = area.bottom
            above.rows += area.rows
            continue
        joined.append(area)
    return joined


def _texts(sheet: Sheet, area: _Area, rows: Sequence[int], allowance: Allowance) -> list[list[str]]:
    """Return the texts of some rows; no row where the document was looked at too often."""
    if not allowance.take("looks", len(rows) * len(area.columns)):
        return []
    return [[sheet.cells.get((row, column), "") for column in area.columns] for row in rows]


def _count_headers(sheet: Sheet, area: _Area, allowance: Allowance) -> int:
    """Return the number of header rows of an area."""
    if len(area.rows) < 2:
        return 0
    if any((area.top, column) in sheet.headers for column in area.columns):
        return 1
    merged = [sheet.spans[area.top, column] for column in area.columns if (area.top, column) in sheet.spans]
    if merged:
        depth = max(2 if any(across > 1 for _, across in merged) else 1, *(down for down, _ in merged))
        above = _texts(sheet, area, area.rows[:depth], allowance)
        below = _texts(sheet, area, area.rows[depth : depth + 50], allowance)
        if (
            depth > 3
            or not below
            or any(is_value(cell) and not is_year(cell) for row in above for cell in map(str.strip, row))
        ):
            return 0
        if all(is_value(cell.strip()) for cell in above[-1] if cell):
            return 0  # years in a row of sums
        return depth if any(is_value(cell.strip()) for row in below for cell in row) else 0
    return count_headers(_texts(sheet, area, area.rows[:200], allowance))


def _area_html(
    sheet: Sheet, area: _Area, covered: set[Place], by_row: Mapping[int, Sequence[int]], allowance: Allowance
) -> str:
    """Return an area as HTML: a paragraph for a single cell, a table otherwise.

    :param covered: places under merged cells.
    :param by_row: sorted columns of the non-empty cells by row.
    """
    if len(area.rows) == len(area.columns) == 1:
        return f"<p>{_cell_html(sheet, (area.top, area.left))}</p>"
    caption = ""
    first = [column for column in area.columns if (area.top, column) in sheet.cells]
    is_caption = len(first) == 1 and first[0] == area.left and len(area.columns) > 1 and len(area.rows) > 2
    first_span = sheet.spans.get((area.top, area.left), (1, 1))
    if is_caption and first_span[0] == 1 and not is_value(sheet.cells[area.top, area.left]):
        caption = _cell_html(sheet, (area.top, area.left))
        area = _Area(area.rows[1], area.left, area.bottom, area.right, area.rows[1:], area.columns, area.sparse)
    headers = _count_headers(sheet, area, allowance)
    if area.sparse:
        filled = _filled_rows(sheet, area, by_row)
        return note("Empty cells of the next table are left out.") + table(filled, headers, caption)
    rows = (
        [_cell(sheet, (row, column)) for column in area.columns if (row, column) not in covered] for row in area.rows
    )
    return table(rows, headers, caption)


def _columns_by_row(sheet: Sheet) -> Mapping[int, Sequence[int]]:
    by_row: dict[int, list[int]] = {}
    for row, column in sorted(sheet.cells):
        by_row.setdefault(row, []).append(column)
    return by_row


def _filled_rows(sheet: Sheet, area: _Area, by_row: Mapping[int, Sequence[int]]) -> Iterator[list[str | Cell]]:
    """Yield the rows of an area without their empty cells."""
    for row in area.rows:
        columns = by_row.get(row, ())
        inside = columns[bisect_left(columns, area.left) : bisect_right(columns, area.right)]
        yield [_cell_html(sheet, (row, column)) for column in inside]


def _covered_places(spans: Mapping[Place, Place]) -> set[Place]:
    """Return the places that merged cells cover, without the first place of each merge."""
    covered: set[Place] = set()
    for (row, column), (down, across) in spans.items():
        for y in range(row, row + down):
            covered.update((y, x) for x in range(column, column + across))
        covered.discard((row, column))
    return covered


def _cell(sheet: Sheet, place: Place) -> str | Cell:
    markup = _cell_html(sheet, place)
    down, across = sheet.spans.get(place, (1, 1))
    return Cell(markup, across, down) if (down, across) != (1, 1) else markup


def _cell_html(sheet: Sheet, place: Place) -> str:
    text = sheet.markup.get(place) or escape_lines(sheet.cells.get(place, ""))
    target = sheet.links.get(place, "")
    if place in sheet.marks:
        text = f'<data value="row-{sheet.marks[place]}">{text}</data>'
    return f'<a href="{escape_attribute(target)}">{text}</a>' if text and target.lower().startswith(_LINKS) else text
