"""Finds tables that a page builds of other elements and names by their roles: ``table``, ``row``, ``cell``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ..node_arrays import Attrs
from .elements import cell_attributes
from .parse import Element, Text

ROWS: Final = "[role=row]"
_TABLES: Final = "[role=table],[role=grid],[role=treegrid]"
_CELLS: Final = {"cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th"}
_ANY_CELL: Final = ",".join(f"[role={role}]" for role in _CELLS)
_OWN: Final = frozenset({"table", "tr", "td", "th", "tbody", "thead", "tfoot"})
_STAYS: Final = frozenset({"a", "button", "img", "input", "select", "textarea", "pre", "code", "ul", "ol", "li"})
"""Elements that say more than their role: they stay in the cell."""

MAX_NODES: Final = 200_000
"""Nodes that are looked at in the tables of a page."""

_DEEP: Final = 6
"""Wrappers around rows, and around cells, at most."""


class TablePart(NamedTuple):
    """An element that is written as a part of a table.

    :param tag: the tag.
    :param inside: the nodes in it; the element itself where it is written once more, inside.
    """

    tag: str
    inside: Sequence[Any]
    attrs: Attrs | None = None


Parts: TypeAlias = "dict[Element, list[TablePart]]"
"""Element -> what it is written as, from outside to inside."""


def aria_tables(elements: Sequence[Element]) -> Parts:
    """Return the parts of the tables that are made of other elements than ``<table>``.

    A table has two rows, one of them with two cells, and no words outside of its cells but before and after its rows.

    :param elements: elements of the page in document order, among which all with the role of a row are.
    """
    parts: Parts = {}
    finder = _Finder()
    known: set[Element] = set()
    for row in elements:
        if row.tag in _OWN or row in parts or row.attr("role") != "row":
            continue
        table = row.closest(_TABLES)
        if table is None or table in known:
            continue
        known.add(table)
        if table.tag not in _OWN and table not in parts and table.select_one("table") is None:
            parts.update(finder.table(table))
    return parts


class _Finder:
    """Finds the rows and cells of tables."""

    def __init__(self) -> None:
        self._work = 0

    def table(self, table: Element) -> Parts:
        """Return the parts of a table; none where it is no table."""
        found = self._flat(table, {"row"}, ROWS, _DEEP)
        rows = [number for number, node in enumerate(found) if _has_role(node, {"row"})]
        if len(rows) < 2 or self._work > MAX_NODES:
            return {}
        first, last = rows[0], rows[-1] + 1
        inside = found[first:last]
        parts: Parts = {}
        most = 0
        for row in inside:
            cells = self._flat(row, _CELLS.keys(), _ANY_CELL, _DEEP) if _has_role(row, {"row"}) else [row]
            if not isinstance(row, Element) or not all(isinstance(cell, Element) for cell in cells):
                return {}
            most = max(most, len(cells))
            parts[row] = [TablePart("tr", cells)]
            for cell in cells:
                parts.setdefault(cell, []).append(_cell(cell))
        if most < 2:
            return {}
        whole = [TablePart("table", [table]), TablePart("tbody", inside)]
        if first or last < len(found):
            whole.insert(0, TablePart("div", [*found[:first], table, *found[last:]]))
        return {table: whole, **parts}

    def _flat(self, element: Element, roles: Any, selector: str, deep: int) -> list[Any]:
        """Return the nodes in an element that have a role, or words without one; wrappers are left out."""
        found: list[Any] = []
        for child in element.children:
            self._work += 1
            if isinstance(child, Text):
                if not child.data.isspace():
                    found.append(child)
            elif isinstance(child, Element):
                if _has_role(child, roles):
                    found.append(child)
                elif deep and self._work < MAX_NODES and child.select_one(selector) is not None:
                    found += self._flat(child, roles, selector, deep - 1)
                elif not child.text.isspace() or child.select_one("img,svg,input") is not None:
                    found.append(child)
        return found


def _has_role(node: Any, roles: Any) -> bool:
    return isinstance(node, Element) and node.attr("role") in roles


def _cell(cell: Element) -> TablePart:
    """Return the part that an element in a row is."""
    attrs = {name: cell.attr(f"aria-{name}") or cell.attr(name) or "1" for name in ("colspan", "rowspan")}
    inside = [cell] if cell.tag in _STAYS else cell.children
    return TablePart(_CELLS.get(cell.attr("role") or "", "td"), inside, cell_attributes(attrs) or None)
