"""Write the tables of a Word document, with merged cells."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ....core.text.numbers import bounded_int
from .._common.allowance import Allowance
from .._common.body import Body
from .._common.write import Cell, table, without_paragraph
from .._common.xml import attribute, find_path, whole_number
from .runs import WordContext
from .styles import is_on

_FIRST_ROW = 0x20  # the bit of w:tblLook that says that the first row is a header


class _Cell:
    """A cell while its table is read; ``width`` and ``height`` count columns and rows."""

    def __init__(self, element: Element | None, width: int) -> None:
        self.element = element
        self.width = width
        self.height = 1
        self.covered = False  # a cell above spans this place


def table_html(element: Element, document: WordContext) -> str:
    """Return a table as HTML."""
    rows, header_rows = _rows(element, document.archive.allowance)
    above: dict[int, _Cell] = {}
    for row in rows:
        column = 0
        open_merges: dict[int, _Cell] = {}
        for cell in row:
            merge = find_path(cell.element, "w:tcPr", "w:vMerge")
            if merge is not None and attribute(merge, "w:val", "continue") != "restart":
                start = above.get(column)
                if start is not None and start.width == cell.width:
                    start.height += 1
                    cell.covered = True
                    open_merges[column] = start
            elif merge is not None:
                open_merges[column] = cell
            column += cell.width
        above = open_merges
    written = [
        [Cell(_cell_html(cell, document), cell.width, cell.height) for cell in row if not cell.covered] for row in rows
    ]
    return table(written, header_rows) if any(written) else ""


def _rows(element: Element, allowance: Allowance) -> tuple[list[list[_Cell]], int]:
    """Return the rows of a table and the number of header rows."""
    rows: list[list[_Cell]] = []
    header_rows, counting = 0, True
    for row in _nested(element, "w:tr", allowance):
        props = find_path(row, "w:trPr")
        if find_path(props, "w:del") is not None:
            continue
        cells = [_Cell(None, width) for width in [_number(find_path(props, "w:gridBefore"))] if width]
        for element_cell in _nested(row, "w:tc", allowance):
            merge = find_path(element_cell, "w:tcPr", "w:hMerge")
            if merge is not None and attribute(merge, "w:val", "continue") != "restart" and cells:
                cells[-1].width += 1
                continue
            cells.append(_Cell(element_cell, max(_number(find_path(element_cell, "w:tcPr", "w:gridSpan")), 1)))
        cells += [_Cell(None, width) for width in [_number(find_path(props, "w:gridAfter"))] if width]
        counting = counting and is_on(find_path(props, "w:tblHeader"))
        header_rows += counting
        rows.append(cells)
    look = find_path(element, "w:tblPr", "w:tblLook")
    bits = attribute(look, "w:val", "0")
    flagged = attribute(look, "w:firstRow") == "1" or bounded_int(bits, 0, most=2**32, base=16) & _FIRST_ROW
    if not header_rows and flagged and len(rows) > 1:
        header_rows = 1
    return rows, header_rows if header_rows < len(rows) else 0


def _nested(element: Element, tag: str, allowance: Allowance) -> list[Element]:
    """Return the rows of a table or the cells of a row, also from inside content controls."""
    elements = []
    for child in element:
        allowance.spend("items")
        if child.tag == tag:
            elements.append(child)
        elif child.tag in ("w:sdt", "w:sdtContent", "w:customXml", "w:ins"):
            elements += _nested(child, tag, allowance)
    return elements


def _cell_html(cell: _Cell, document: WordContext) -> str:
    """Return the content of a cell as HTML; a single paragraph loses its ``<p>``."""
    if cell.element is None:
        return ""
    body = Body()
    document.blocks(cell.element, body)
    return without_paragraph(body.html())


def _number(element: Element | None) -> int:
    return whole_number(attribute(element, "w:val"), most=1000)
