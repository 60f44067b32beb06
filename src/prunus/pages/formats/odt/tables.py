"""Write the tables of an OpenDocument text, with merged cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from .._common.allowance import Allowance
from .._common.write import Cell, table
from .._common.xml import whole_number

_GROUPS: Final = frozenset({"table:table-rows", "table:table-row-group", "table:table-header-rows"})
_MAX_REPEAT: Final = 50  # repetitions of a row or a cell; higher counts only fill a sheet to its edge


def table_html(element: Element, cell_html: Callable[[Element], str], allowance: Allowance) -> str:
    """Return a table as HTML.

    :param cell_html: returns the content of a cell as HTML.
    :raises BadPage: with its repetitions the table has more cells or letters than the document may have.
    """
    rows, header_rows = [], 0
    for row, is_head in _rows(element, False):
        cells = []
        down = min(_count(row, "table:number-rows-repeated"), _MAX_REPEAT)
        for cell in row:
            if cell.tag != "table:table-cell":  # a covered cell; the cell that spans it was written
                continue
            html = cell_html(cell)
            colspan, rowspan = (_count(cell, f"table:number-{name}-spanned") for name in ("columns", "rows"))
            written = Cell(html, colspan, rowspan, is_head)
            across = min(_count(cell, "table:number-columns-repeated"), _MAX_REPEAT)
            allowance.spend("cells", down * across)
            allowance.spend("letters", (down * across - 1) * len(html))
            cells += [written] * across
        if cells:
            rows += [cells] * down
            header_rows += down * is_head
    return table(rows, header_rows if header_rows < len(rows) else 0) if rows else ""


def _rows(element: Element, is_head: bool) -> Iterator[tuple[Element, bool]]:
    """Yield the visible rows of a table, and whether each is a header row."""
    for child in element:
        if child.tag == "table:table-row":
            if child.get("table:visibility") not in ("collapse", "filter"):
                yield child, is_head
        elif child.tag in _GROUPS:
            yield from _rows(child, is_head or child.tag == "table:table-header-rows")


def _count(element: Element, name: str) -> int:
    return max(1, whole_number(element.get(name), 1, most=1000))
