"""Tables of a Word document, with their spans."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from .._common.body import Body
from .._common.write import Cell, alone, table
from .._common.xml import below, value, whole
from .runs import WordContext
from .styles import is_on

_FIRST_ROW = 0x20  # the bit of w:tblLook that says that the first row is a header


class _Cell:
    """A cell while its table is read."""

    def __init__(self, element: Element | None, width: int) -> None:
        self.element = element
        self.width = width
        self.height = 1
        self.covered = False  # a cell above reaches down over it


def table_html(element: Element, document: WordContext) -> str:
    """Return a table as HTML."""
    rows, heads = _rows(element)
    above: dict[int, _Cell] = {}
    for row in rows:
        column = 0
        seen: dict[int, _Cell] = {}
        for one in row:
            merge = below(one.element, "w:tcPr", "w:vMerge")
            if merge is not None and value(merge, "w:val", "continue") != "restart":
                start = above.get(column)
                if start is not None and start.width == one.width:
                    start.height += 1
                    one.covered = True
                    seen[column] = start
            elif merge is not None:
                seen[column] = one
            column += one.width
        above = seen
    written = [[Cell(_inner(one, document), one.width, one.height) for one in row if not one.covered] for row in rows]
    return table(written, heads) if any(written) else ""


def _rows(element: Element) -> tuple[list[list[_Cell]], int]:
    """Return the rows of a table, and how many of them are its header."""
    rows: list[list[_Cell]] = []
    heads, counting = 0, True
    for row in _inside(element, "w:tr"):
        about = below(row, "w:trPr")
        if below(about, "w:del") is not None:
            continue
        cells = [_Cell(None, width) for width in [_number(below(about, "w:gridBefore"))] if width]
        for one in _inside(row, "w:tc"):
            merge = below(one, "w:tcPr", "w:hMerge")
            if merge is not None and value(merge, "w:val", "continue") != "restart" and cells:
                cells[-1].width += 1
                continue
            cells.append(_Cell(one, max(_number(below(one, "w:tcPr", "w:gridSpan")), 1)))
        cells += [_Cell(None, width) for width in [_number(below(about, "w:gridAfter"))] if width]
        counting = counting and is_on(below(about, "w:tblHeader"))
        heads += counting
        rows.append(cells)
    look = below(element, "w:tblPr", "w:tblLook")
    bits = value(look, "w:val", "0")
    flagged = value(look, "w:firstRow") == "1" or (_is_hex(bits) and int(bits, 16) & _FIRST_ROW)
    if not heads and flagged and len(rows) > 1:
        heads = 1
    return rows, heads if heads < len(rows) else 0


def _inside(element: Element, tag: str) -> list[Element]:
    """Return the rows of a table or the cells of a row, those inside controls too."""
    found = []
    for child in element:
        if child.tag == tag:
            found.append(child)
        elif child.tag in ("w:sdt", "w:sdtContent", "w:customXml", "w:ins"):
            found += _inside(child, tag)
    return found


def _inner(one: _Cell, document: WordContext) -> str:
    """Return what a cell holds; a single paragraph stands in it without its element."""
    if one.element is None:
        return ""
    body = Body()
    document.blocks(one.element, body)
    return alone(body.html())


def _number(element: Element | None) -> int:
    return whole(value(element, "w:val"), most=1000)


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 8 and all(letter in "0123456789abcdefABCDEF" for letter in text)
