"""The rows that label the columns of a table, at its top or in its middle, and those that are titles of rows below."""

from __future__ import annotations

import re
from typing import Final

from .grid import first_rows, placed_cells, row_cells, span, table_rows
from .node_arrays import NodeArrays

_MOST: Final = 4
"""Header rows of a table at most."""

_SAMPLE: Final = 4
"""Rows below a header that tell which columns hold numbers."""

_LONGEST: Final = 12
"""Words of a label at most."""

_LONGEST_NAME: Final = 4
"""Words of the name of a thing at most."""

_NODES: Final = 40
"""Nodes of a label or a number at most."""

_MOST_CELLS: Final = 200
"""Cells of a row that are looked at for a title."""

_NUMBER: Final = re.compile(r"\W*\d[\d\W]*(?:[^\W\d]{1,4}\W*)?")
"""A number, perhaps with a sign, a currency or a short unit."""

_BEGINS_NUMBER: Final = re.compile(r"\W*\d")

_TOTAL: Final = re.compile(
    r"\W*(?:(?:sub-?)?totals?\b|totale\b|totaux\b|(?:zwischen)?summe\b|(?:ins)?gesamt|suma\b|合计|总计|小计|合計|小計)",
    re.IGNORECASE,
)
"""How a row begins that ends a group of rows."""

_YEAR: Final = re.compile(r"\W*(?:19|20)\d\d\W*")


def header_rows(tree: NodeArrays, table: int) -> frozenset[int]:
    """Return the rows at a table's top that label its columns, at most four.

    They are rows of <thead>, rows of <th> or of bold words alone, words over columns of numbers, names of things whose
    properties are the rows below, and rows into which cells of these reach. A table that would be all header has none.
    """
    key = ("header rows", table)
    known: frozenset[int] | None = tree.cache.get(key)
    if known is None:
        rows = first_rows(tree, table, _MOST + _SAMPLE)
        count = _marked(tree, rows) or _over_numbers(tree, rows) or _names_things(tree, rows)
        known = tree.cache[key] = frozenset(rows[:count] if count < len(rows) else ())
    return known


def group_titles(tree: NodeArrays, table: int) -> dict[int, tuple[int, ...]]:
    """Return the rows that are titles of the rows below them, for each row below one: "Current assets" above "Cash".

    A title is the only filled cell of its row, spans columns, is a header or bold, or ends with a colon, and is no
    number. It holds up to the next title, and up to a row that is a total. Titles that follow each other hold together.
    A name and its value in a table whose columns have no names, as in the box of facts of an article, need no title.
    """
    key = ("group titles", table)
    known: dict[int, tuple[int, ...]] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = {}
        headers = header_rows(tree, table)
        has_columns = any(sum(tree.word_count(cell) > 0 for cell in row_cells(tree, row)) > 1 for row in headers)
        titles: tuple[int, ...] = ()
        below = False  # a row stands below the titles
        for row in table_rows(tree, table):
            if row in headers:
                continue
            cells = row_cells(tree, row)
            filled = [cell for cell in cells[:_MOST_CELLS] if tree.word_count(cell)]
            if len(filled) == 1 and filled[0] == cells[0] and _is_title(tree, filled[0], len(cells)):
                titles = (row,) if below else (*titles, row)[-_MOST:]
                below = False
            elif filled:
                below = True
                names_itself = not has_columns and len(cells) == 2 and tree.tag[cells[0]] == "th"
                if titles and not names_itself:
                    known[row] = titles
                if _TOTAL.match(_text(tree, filled[0])):
                    titles = ()
    return known


def header_rows_of(tree: NodeArrays, table: int) -> dict[int, tuple[int, ...]]:
    """Return the rows that label the columns of each row below a header in the middle of a table, and of that header.

    A header in the middle is a row of two <th> or more and no other cell, or of a further <thead>; it labels the rows
    below it in place of the header at the top. Rows under the header at the top have no entry; a header has itself.
    """
    key = ("header rows of", table)
    known: dict[int, tuple[int, ...]] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = {}
        top = header_rows(tree, table)
        current: tuple[int, ...] = ()
        below = False
        for row in table_rows(tree, table):
            if row in top:
                continue
            filled = [cell for cell in row_cells(tree, row)[:_MOST_CELLS] if tree.word_count(cell)]
            marked = tree.tag[tree.parent[row]] == "thead" or all(tree.tag[cell] == "th" for cell in filled)
            if top and marked and len(filled) > 1:
                current = (row,) if below or not current else (*current, row)[-_MOST:]
                below = False
            else:
                below = True
            if current:
                known[row] = current
    return known


def _is_title(tree: NodeArrays, cell: int, beside: int) -> bool:
    """Tell whether the only filled cell of a row is the title of the rows below.

    :param beside: cells of the row.
    """
    if (beside < 2 and span(tree, cell, "colspan") < 2) or not _are_labels(tree, [cell]):
        return False
    marked = span(tree, cell, "colspan") > 1 or tree.tag[cell] == "th" or _is_bold(tree, cell)
    return marked or _text(tree, cell).rstrip().endswith((":", "："))


def _marked(tree: NodeArrays, rows: list[int]) -> int:
    """Return how many rows at the top are headers by their elements."""
    count = reach = most = 0
    bold = False
    for row in rows[:_MOST]:
        cells = [cell for cell in row_cells(tree, row) if tree.word_count(cell)]
        if len(cells) == 1 and most > 1 and count >= reach and tree.tag[tree.parent[row]] != "thead":
            break  # a title of the rows below
        plain = [cell for cell in cells if tree.tag[cell] != "th"]
        if tree.tag[tree.parent[row]] != "thead" and (plain or not cells):
            if plain and all(_is_bold(tree, cell) for cell in plain):
                bold = True
            elif count >= reach or not _are_labels(tree, cells):
                break
        count += 1
        most = max(most, len(cells))
        reach = max(reach, _reach(tree, rows, count))
    if bold and (most < 2 or count == _MOST):  # a title above a layout, or a table whose words are all bold
        return 0
    return count


def _over_numbers(tree: NodeArrays, rows: list[int]) -> int:
    """Return how many rows at the top hold words over columns of numbers."""
    count = reach = 1
    while count < min(_MOST, len(rows)):
        reach = max(reach, _reach(tree, rows, count))
        if count == reach and all(span(tree, cell, "colspan") < 2 for cell in row_cells(tree, rows[count - 1])):
            break
        count += 1
    if len(rows) < count + 2 or not all(_are_labels(tree, row_cells(tree, row)) for row in rows[:count]):
        return 0
    lines = [{column: cell for column, cell, _ in line} for _, line in placed_cells(tree, rows)]
    head, below = lines[count - 1], [line for line in lines[count:] if len(line) > 1]  # one cell: a title of rows
    if len(head) < 2 or len(below) < 2 or any(len(line) != len(head) for line in below):
        return 0
    numbers = 0
    for place, (column, cell) in enumerate(head.items()):
        texts = [_text(tree, line[column]) for line in below if column in line]
        filled = [text for text in texts if any(map(str.isalnum, text))]
        year = bool(_YEAR.fullmatch(_text(tree, cell)))
        if (place and not tree.word_count(cell)) or (year and any(map(_YEAR.fullmatch, filled))):
            return 0
        numbers += len(filled) > 1 and all(map(_NUMBER.fullmatch, filled))
    return count if numbers == len(head) or (numbers and len(head) > 2) else 0


def _names_things(tree: NodeArrays, rows: list[int]) -> int:
    """Return 1 where the first row names things, and the first column their properties: "Plan", "Basic", "Pro".

    A row below holds numbers alone behind its name, or the corner is empty and two full rows or more are below.
    """
    if len(rows) < 2 or any(tree.tag[tree.parent[row]] == "thead" for row in rows[:2]):
        return 0
    lines = [[cell for _, cell, _ in line] for _, line in placed_cells(tree, rows)]
    (corner, *things), below = lines[0] or [-1], [line for line in lines[1:] if len(line) > 1]
    if len(things) < 2 or any(len(line) != len(lines[0]) for line in below):
        return 0
    names = [_text(tree, cell).strip().casefold() for cell in things]
    short = all(0 < tree.word_count(cell) <= _LONGEST_NAME and _are_labels(tree, [cell]) for cell in things)
    if not short or len(set(names)) < len(names) or any(_BEGINS_NUMBER.match(name) for name in names):
        return 0
    properties = [line[0] for line in below]
    if not all(tree.word_count(cell) and _are_labels(tree, [cell]) for cell in properties):
        return 0
    if any(span(tree, cell, "colspan") > 1 or span(tree, cell, "rowspan") != 1 for line in lines for cell in line):
        return 0
    if not tree.word_count(corner) and len(below) > 1:
        return 1 if all(0 < tree.word_count(cell) <= _LONGEST for line in below for cell in line[1:]) else 0
    return 1 if any(all(_BEGINS_NUMBER.match(_text(tree, cell)) for cell in line[1:]) for line in below) else 0


def _reach(tree: NodeArrays, rows: list[int], count: int) -> int:
    """Return the number of the rows at the top that end where the cells of the last of ``count`` rows end."""
    row = rows[count - 1]
    heights = [span(tree, cell, "rowspan") for cell in row_cells(tree, row)]
    end = count - 1 + max(heights, default=1)
    inside = end - count + 1 > 1 and end <= len(rows) and tree.parent[rows[end - 1]] == tree.parent[row]
    return end if inside else count


def _is_bold(tree: NodeArrays, cell: int) -> bool:
    """Tell whether a cell holds a short text in bold alone."""
    words = tree.word_count(cell)
    if words > _LONGEST or tree.end[cell] - cell > _NODES:
        return False
    node, bold = cell + 1, 0
    while node < tree.end[cell]:
        inside = tree.tag[node] in ("b", "strong")
        bold += tree.word_count(node) if inside else 0
        node = tree.end[node] if inside else node + 1
    return bold == words


def _are_labels(tree: NodeArrays, cells: list[int]) -> bool:
    """Tell whether cells hold short texts that are no numbers; years may label columns."""
    for cell in cells:
        if tree.word_count(cell) > _LONGEST or tree.end[cell] - cell > _NODES:
            return False
        text = _text(tree, cell)
        if _NUMBER.fullmatch(text) and not _YEAR.fullmatch(text):
            return False
    return any(map(tree.word_count, cells))


def _text(tree: NodeArrays, cell: int) -> str:
    """Return the words of a short cell."""
    return "".join(tree.text[cell + 1 : min(tree.end[cell], cell + _NODES)])
