"""Geometry of tables and ordered lists in pruned output: rows, cells, spans, item numbers.

Dropping rows of a table shortens the cells that span them, as in a spreadsheet: a spanning cell is written in the
first kept row that it covers, and spans the kept rows alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator
from typing import Final

from ..core.text.numbers import bounded_int
from .clean import rules
from .node_arrays import NodeArrays

_MAX_SPAN: Final = 65_534  # rows that a cell spans at most (HTML, 4.9.11)
_ONE_LINE: Final = 40
"""Nodes of a cell of one line at most."""
_LARGEST_ITEM: Final = 999_999_999  # Markdown reads nine digits
_INTEGER: Final = re.compile(r"[ \t\n\f\r]*[+-]?[0-9]+")
_LEAST_NOT_ROMAN: Final = 4_000
_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
MAX_SPAN_WORK = 200_000
"""Cells followed over all rows of one table. Beyond it, cells no longer reach into later rows: a hostile table could
hold rows times columns of them."""


def table_rows(tree: NodeArrays, table: int) -> list[int]:
    """Return the rows of ``table`` in document order, without the rows of nested tables."""
    rows: list[int] = []
    for part in tree.children(table):
        tag = tree.tag[part]
        if tag == "tr":
            rows.append(part)
        elif tag in ("thead", "tbody", "tfoot"):
            rows.extend(row for row in tree.children(part) if tree.tag[row] == "tr")
    return rows


def first_rows(tree: NodeArrays, table: int, count: int) -> list[int]:
    """Return the first ``count`` rows of ``table`` without reading the others."""
    rows: list[int] = []
    node, end = table + 1, tree.end[table]
    while node < end and len(rows) < count:
        tag = tree.tag[node]
        if tag == "tr":
            rows.append(node)
        node = node + 1 if tag in ("thead", "tbody", "tfoot") else tree.end[node]
    return rows


def row_cells(tree: NodeArrays, row: int) -> list[int]:
    """Return the cells of ``row``."""
    return [cell for cell in tree.children(row) if tree.tag[cell] in ("td", "th")]


def span(tree: NodeArrays, cell: int, name: str) -> int:
    """Return a cell's ``colspan`` or ``rowspan``, 1 by default; ``rowspan=0`` means to the end of the row group."""
    attrs = tree.attrs[cell]
    return bounded_int(attrs.get(name), 1, most=_MAX_SPAN) if attrs else 1


def has_rowspans(tree: NodeArrays, table: int) -> bool:
    """Tell whether a cell of ``table``, or of a table nested in it, spans rows."""
    key = ("rowspans", table)
    known = tree.cache.get(key)
    if known is None:
        attrs = tree.attrs[table + 1 : tree.end[table]]
        known = tree.cache[key] = any(kept and "rowspan" in kept for kept in attrs)
    return bool(known)


def first_row_group(tree: NodeArrays, table: int) -> int:
    """Return the first row group (thead, tbody or tfoot) of a table, -1 where it has none."""
    key = ("row group", table)
    known: int | None = tree.cache.get(key)
    if known is None:
        groups = (node for node in tree.children(table) if tree.tag[node] in ("thead", "tbody", "tfoot"))
        known = tree.cache[key] = next(groups, -1)
    return known


def next_kept(mask: bytearray, node: int, stop: int) -> int:
    """Return the first node of ``[node, stop)`` that is kept or has a kept descendant; ``stop`` if there is none."""
    kept, above = mask.find(1, node, stop), mask.find(2, node, stop)
    if kept < 0:
        return above if above >= 0 else stop
    return min(kept, above) if above >= 0 else kept


def item_numbers(tree: NodeArrays, ordered: int) -> dict[int, tuple[int, int]]:
    """Map each item of an ordered list to the number that a browser shows, and to the item before it (-1: none)."""
    key = ("items", ordered)
    known: dict[int, tuple[int, int]] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = {}
        items = [child for child in tree.children(ordered) if tree.tag[child] == "li"]
        attrs = tree.attrs[ordered] or {}
        step = -1 if "reversed" in attrs else 1
        number = _stated(attrs.get("start"), len(items) if step < 0 else 1)
        before = -1
        for item in items:
            number = _stated((tree.attrs[item] or {}).get("value"), number)
            known[item] = (number, before)
            number, before = number + step, item
    return known


def _stated(value: str | None, default: int) -> int:
    """Return the number at the beginning of an HTML attribute; ``default`` where there is none."""
    stated = _INTEGER.match(value) if value else None
    return bounded_int(stated[0], default, least=-_LARGEST_ITEM, most=_LARGEST_ITEM) if stated else default


def item_label(tree: NodeArrays, item: int, back: int = 0) -> str:
    """Return the number of an item of an ordered list as a browser writes it: ``3``, ``-1``, ``C``, ``iii``.

    :param back: 1 for the item before it.
    """
    above = tree.parent[item]
    attrs = tree.attrs[above] or {}
    number = item_numbers(tree, above)[item][0] + (back if "reversed" in attrs else -back)
    kind = attrs.get("type", "")
    written = ""
    if kind in ("a", "A") and number > 0:
        written = _in_letters(number)
    elif kind in ("i", "I") and 0 < number < _LEAST_NOT_ROMAN:
        written = _in_roman(number)
    return (written.upper() if kind in ("A", "I") else written) or str(number)


def counts_in_digits(tree: NodeArrays, ordered: int) -> bool:
    """Tell whether the items of an ordered list have numbers of Markdown: in digits, none below 0 or too large."""
    key = ("in digits", ordered)
    known: bool | None = tree.cache.get(key)
    if known is None:
        digits = (tree.attrs[ordered] or {}).get("type", "") not in ("a", "A", "i", "I")
        numbers = [number for number, _ in item_numbers(tree, ordered).values()]
        known = digits and min(numbers, default=0) >= 0 and max(numbers, default=0) <= _LARGEST_ITEM
        tree.cache[key] = known
    return known


def _in_letters(number: int) -> str:
    """Write a number as browsers do in letters: a to z, aa, ab."""
    letters = ""
    while number > 0:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _in_roman(number: int) -> str:
    """Write a number below 4000 in Roman numerals."""
    letters = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        letters += sign * count
    return letters


def cells_by_row(tree: NodeArrays, rows: list[int]) -> dict[int, list[tuple[int, int]]]:
    """Map each row to its cells from left to right, with the cells that reach down into it from rows above.

    :returns: row -> list of (cell, rows that it still spans, this row included).
    """
    return {row: [(cell, left) for _, cell, left in line] for row, line in placed_cells(tree, rows)}


def placed_cells(tree: NodeArrays, rows: list[int]) -> Iterator[tuple[int, list[tuple[int, int, int]]]]:
    """Yield each row with its cells from left to right, those that reach down into it from rows above included.

    :returns: (row, list of (first column, cell, rows that it still spans, this row included)).
    """
    open_cells: list[tuple[int, int, int, int]] = []  # column, width, rows left, cell
    work = 0
    group = -1
    for at, row in enumerate(rows):
        if tree.parent[row] != group:  # cells never reach into the next row group
            group, open_cells = tree.parent[row], []
        taken = sorted(open_cells)
        line: list[tuple[int, int, int]] = []  # column, cell, rows left
        following: list[tuple[int, int, int, int]] = []
        for column, width, left, cell in taken:
            line.append((column, cell, left))
            if left > 1:
                following.append((column, width, left - 1, cell))
        column = 0
        index = 0
        for cell in row_cells(tree, row):
            while index < len(taken) and taken[index][0] <= column:
                column = max(column, taken[index][0] + taken[index][1])
                index += 1
            width = span(tree, cell, "colspan")
            height = min(span(tree, cell, "rowspan") or len(rows), len(rows) - at)
            line.append((column, cell, height))
            if height > 1:
                following.append((column, width, height - 1, cell))
            column += width
        work += len(line)
        open_cells = following if work < MAX_SPAN_WORK else []
        yield row, sorted(line)


def cell_gaps(tree: NodeArrays, left_out: Container[int]) -> dict[int, str]:
    """Return what separates cells in plain text where it is more than one tab: every column keeps its place in its row.

    :param left_out: text nodes that plain text leaves out.
    :returns: the first text node of a cell -> the white space before it.
    """
    gaps: dict[int, str] = {}
    for table, tag in enumerate(tree.tag):
        if tag == "table":
            _add_gaps(tree, table_rows(tree, table), left_out, gaps)
    return gaps


def _add_gaps(tree: NodeArrays, rows: list[int], left_out: Container[int], gaps: dict[int, str]) -> None:
    """Add the gaps of a table's cells, unless a table around it has the same text in its own cells."""
    for row, line in placed_cells(tree, rows):
        before, blocks_before = -1, 0
        for column, cell, _ in line:
            if tree.parent[cell] != row:
                continue
            text = cell
            while text < tree.end[cell] and (not tree.text[text] or text in left_out):
                text += 1
            if text == tree.end[cell]:
                continue
            blocks = _blocks_of_line(tree, cell)
            if before < 0:
                if column:
                    gaps.setdefault(text, "\n" + "\t" * column)
            elif column - before > 1 or (blocks_before + blocks > 0 and min(blocks_before, blocks) >= 0):
                gaps.setdefault(text, "\t" * (column - before))
            before, blocks_before = column, blocks


def _blocks_of_line(tree: NodeArrays, cell: int) -> int:
    """Return the number of paragraphs, 0 or 1, in a cell of a single line; -1 for a cell of several lines."""
    if tree.end[cell] - cell > _ONE_LINE:
        return -1
    blocks = [tag for tag in tree.tag[cell + 1 : tree.end[cell]] if tag and tag not in rules.INLINE]
    return len(blocks) if blocks in ([], ["p"], ["div"]) else -1


def kept_cells(tree: NodeArrays, table: int, mask: bytearray) -> dict[int, list[tuple[int, int]]]:
    """Plan the cells of the kept rows of a table.

    :param mask: per node, non-zero where it is kept.
    :returns: kept row -> its cells in order as (cell, rowspan to write).
    """
    key = ("grid", table)
    known = tree.cache.get(key)
    if known is None:
        rows = table_rows(tree, table)
        known = tree.cache[key] = ({row: index for index, row in enumerate(rows)}, cells_by_row(tree, rows))
    position, shown = known
    kept: list[int] = []
    node, stop = next_kept(mask, table + 1, tree.end[table]), tree.end[table]
    while node < stop:
        if node in position:
            kept.append(node)
            node = tree.end[node]
        else:
            node += 1
        node = next_kept(mask, node, stop)
    places = [position[row] for row in kept]
    plan: dict[int, list[tuple[int, int]]] = {}
    placed: set[int] = set()
    for order, row in enumerate(kept):
        plan[row] = []
        for cell, left in shown[row]:
            if cell not in placed:
                placed.add(cell)
                plan[row].append((cell, bisect_left(places, places[order] + left) - order))
    return plan


def number_after_gap(tree: NodeArrays, item: int, mask: bytearray, marked: bool = False) -> str:
    """Return the attribute with the page's number for a list item after a gap, '' where none is needed.

    :param marked: an item with a mark stands before it.
    """
    above, attrs = tree.parent[item], tree.attrs[item]
    if mask[above] != 2 or tree.tag[above] != "ol" or (attrs and "value" in attrs):
        return ""
    number, before = item_numbers(tree, above)[item]
    return f" value={number}" if marked or (before >= 0 and not mask[before]) else ""


def is_sole(tree: NodeArrays, mask: bytearray | None, node: int) -> bool:
    """Tell whether an element is the only kept child of its parent."""
    above = tree.parent[node]
    if mask is None:
        return node == above + 1 and tree.end[node] == tree.end[above]
    end, stop = tree.end[node], tree.end[above]
    return next_kept(mask, above + 1, node) == node and next_kept(mask, end, stop) == stop


def begins_inline(tree: NodeArrays, mask: bytearray | None, node: int) -> bool:
    """Tell whether a node begins with inline content: a text, or an inline element that does not begin with a block."""
    while tree.tag[node] in rules.INLINE and tree.end[node] > node + 1:
        node = node + 1 if mask is None else next_kept(mask, node + 1, tree.end[node])
    return node >= len(tree) or not tree.tag[node] or tree.tag[node] in rules.INLINE
