"""Tables of an OpenDocument text, with their spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from .._common.write import Cell, table
from .._common.xml import whole

_GROUPS: Final = frozenset({"table:table-rows", "table:table-row-group", "table:table-header-rows"})
_MAX_REPEAT: Final = 50  # equal rows or cells side by side; more only fills a sheet to its edge


def table_html(element: Element, inner: Callable[[Element], str]) -> str:
    """Return a table as HTML.

    :param inner: writes what a cell holds.
    """
    rows, heads = [], 0
    for row, is_head in _rows(element, False):
        cells = []
        for one in row:
            if one.tag != "table:table-cell":  # a covered cell: the one that spans it was written
                continue
            html = inner(one)
            wide, high = (_count(one, f"table:number-{name}-spanned") for name in ("columns", "rows"))
            made = Cell(html, wide, high, is_head)
            cells += [made] * min(_count(one, "table:number-columns-repeated"), _MAX_REPEAT)
        if cells:
            repeated = min(_count(row, "table:number-rows-repeated"), _MAX_REPEAT)
            rows += [cells] * repeated
            heads += repeated * is_head
    return table(rows, heads if heads < len(rows) else 0) if rows else ""


def _rows(element: Element, is_head: bool) -> Iterator[tuple[Element, bool]]:
    """Yield the rows of a table, and whether each is of its header."""
    for child in element:
        if child.tag == "table:table-row":
            if child.get("table:visibility") not in ("collapse", "filter"):
                yield child, is_head
        elif child.tag in _GROUPS:
            yield from _rows(child, is_head or child.tag == "table:table-header-rows")


def _count(element: Element, name: str) -> int:
    return max(1, whole(element.get(name), 1, most=1000))
