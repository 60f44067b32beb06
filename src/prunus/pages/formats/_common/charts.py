"""The data of a chart of a Word or PowerPoint file, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias
from xml.etree.ElementTree import Element

from ....core.text.numbers import bounded_float
from .._sheets.numbers import Code
from .allowance import Allowance
from .write import Cell, escape_text, table
from .xml import attribute, find_path, whole_number

_MAX_POINTS: Final = 10_000  # rows of the table that shows a chart
_MAX_LEVELS: Final = 8  # of categories inside categories
_Points: TypeAlias = Mapping[int, str]
_Row: TypeAlias = tuple[str, Mapping[int, str]]
"""The name of a row, and its values by their column."""


def chart_table(root: Element, allowance: Allowance) -> str:
    """Return the data of a chart as a table with one column per series. The caption is the chart's title.

    :raises BadPage: the table has more cells than the document may have.
    """
    title = "".join(text.text or "" for text in _texts(next(root.iter("c:title"), None)))
    reader = _Reader(root, allowance)
    labels, names, columns, places = [], [], [], []
    for element in root.iter("c:ser"):
        values, x = find_path(element, "c:val"), find_path(element, "c:xVal")
        labels.append(" ".join(reader.points(find_path(element, "c:tx")).values()))
        names.append(reader.points(find_path(element, "c:cat")) or reader.points(x))
        columns.append(reader.points(values if values is not None else find_path(element, "c:yVal")))
        places.append(names[-1] if x is not None else {})
    is_scattered = any(place != places[0] for place in places)  # each series has places of its own
    rows = _rows_by_series(names, columns) if is_scattered else _rows(names, columns)
    if not labels or not rows:
        return f"<p>{escape_text(title)}</p>" if title else ""
    allowance.spend("cells", (len(rows) + 1) * (len(labels) + 1))
    table_rows: list[list[str | Cell]] = [["", *map(escape_text, labels)]]
    for name, cells in rows:
        filled = (escape_text(cells.get(column, "")) for column in range(len(labels)))
        table_rows.append([Cell(escape_text(name), header=True), *filled])
    return table(table_rows, 1, escape_text(title))


def _rows(names: Sequence[_Points], columns: Sequence[_Points]) -> list[_Row]:
    """Return a row for each point, which all series share."""
    named = next(filter(None, names), {})
    by_point: dict[int, dict[int, str]] = {index: {} for index in named}
    for column, points in enumerate(columns):
        for index, text in points.items():
            by_point.setdefault(index, {})[column] = text
    return [(named.get(index, str(index + 1)), by_point[index]) for index in sorted(by_point)[:_MAX_POINTS]]


def _rows_by_series(names: Sequence[_Points], columns: Sequence[_Points]) -> list[_Row]:
    """Return a row for each point of each series."""
    rows: list[_Row] = []
    for column, (named, points) in enumerate(zip(names, columns, strict=True)):
        rows += [(named.get(index, ""), {column: points[index]}) for index in sorted(points)]
    return rows[:_MAX_POINTS]


def _texts(element: Element | None) -> Iterator[Element]:
    return element.iter("a:t") if element is not None else iter(())


class _Reader:
    """Reads the points that a chart keeps of its sheet."""

    def __init__(self, root: Element, allowance: Allowance) -> None:
        self._allowance = allowance
        self._epoch_1904 = attribute(find_path(root, "c:date1904"), "val", "0") in ("1", "true")
        self._codes: dict[str, Code] = {}

    def points(self, element: Element | None) -> dict[int, str]:
        """Return the kept points of a sheet reference, by their index, as the sheet shows them."""
        if element is None:
            return {}
        levels = [self._of_level(level) for level in element.iter("c:lvl")]
        if levels:
            return self._joined(levels[:_MAX_LEVELS])
        texts = self._of_level(element)
        text = find_path(element, "c:v")
        return texts if texts or text is None or not text.text else {0: text.text}

    def _of_level(self, element: Element) -> dict[int, str]:
        """Return the points inside an element."""
        code = next((part.text or "" for part in element.iter("c:formatCode")), "")
        texts: dict[int, str] = {}
        for point in element.iter("c:pt"):
            index, text = whole_number(attribute(point, "idx"), -1), find_path(point, "c:v")
            if index >= 0 and text is not None:
                texts[index] = self._shown(text.text or "", point.get("formatCode") or code)
        return texts

    def _joined(self, levels: Sequence[_Points]) -> dict[int, str]:
        """Return the points of categories inside categories, each with the names around it, the outermost first.

        An outer name stands at the first of its points only.
        """
        around = [""] * len(levels)
        names: dict[int, str] = {}
        for index in sorted({index for level in levels for index in level}):
            for depth, level in enumerate(levels):
                around[depth] = level.get(index, around[depth] if depth else "")
            names[index] = ", ".join(filter(None, reversed(around)))
            self._allowance.spend("letters", len(names[index]))
        return names

    def _shown(self, text: str, code: str) -> str:
        """Return a number in the form of its format code; any other text as it is."""
        number = bounded_float(text, None, least=-math.inf) if code and code != "General" else None
        if number is None or not math.isfinite(number):
            return text
        if code not in self._codes:
            self._codes[code] = Code(code, self._epoch_1904)
        shown = self._codes[code].format_number(number)
        self._allowance.spend("letters", len(shown))
        return shown
