"""Build the HTML of an RTF document while it is read: runs, paragraphs, lists, and table rows."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final

from ....core.text.numbers import bounded_int
from .._common.allowance import Allowance
from .._common.body import Body
from .._common.numerals import is_said
from .._common.write import Cell, without_paragraph
from .._common.write import table as to_table

_HEADING: Final = re.compile(r"(?:heading|überschrift|titre|titolo|título)\s*([1-9])", re.IGNORECASE)
_CODE: Final = re.compile(r"code|preformatted|listing|verbatim", re.IGNORECASE)
_QUOTE: Final = re.compile(r"quote|quotation|zitat|citation", re.IGNORECASE)
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
MAX_TABLES: Final = 8
"""Depth of tables inside tables; what is deeper stands in the innermost."""

_NEAR: Final = 30  # twips; cell edges closer than this count as one edge


@dataclass(slots=True)
class Paragraph:
    """Properties of a paragraph."""

    style: str = ""
    outline: int = 9
    listed: bool = False
    level: int = 0
    depth: int = 0  # tables around the paragraph
    is_drop_cap: bool = False  # a large first letter, which is lowered to the lines beside it


@dataclass(frozen=True, slots=True)
class Look:
    """The look of text, and its link target."""

    bold: bool = False
    italic: bool = False
    raised: str = ""
    struck: bool = False
    href: str = ""


@dataclass(slots=True)
class _Cell:
    html: str = ""
    right: int = 0
    merges_left: bool = False  # merged with the cell to its left
    vertical_merge: str = ""  # "start" or "on" for the first or a further cell of a vertical merge
    rowspan: int = 1
    colspan: int = 1


@dataclass(slots=True)
class RowShape:
    """The cells that a row declares: their right edges in twips, and their merges."""

    cells: list[_Cell] = field(default_factory=list)
    pending: _Cell = field(default_factory=_Cell)
    head: bool = False

    def close_cell(self, right: int) -> None:
        """End the description of a cell."""
        self.pending.right = right
        self.cells.append(self.pending)
        self.pending = _Cell()


@dataclass(slots=True)
class _Table:
    """A table while it is read: its finished rows, the cells of the open row, and the open cell."""

    rows: list[tuple[list[_Cell], bool]] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    cell: Body = field(default_factory=Body)


class Story:
    """One stream of paragraphs: the document, a note, a text box."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.body = Body()
        self.marker = ""  # printed list marker of the current paragraph
        self.beside: list[str] = []  # boxes and pictures of the current paragraph
        self._runs: list[tuple[Look, list[str]]] = []
        self._tables = [_Table()]  # the table of the body, then the tables inside its open cell

    def write(self, text: str, look: Look) -> None:
        """Add text to the current paragraph."""
        if self._runs and self._runs[-1][0] == look:
            self._runs[-1][1].append(text)
        else:
            self._allowance.spend("items")
            self._allowance.spend("letters", len(look.href))  # a link is written again for each of its runs
            self._runs.append((look, [text]))

    def end_paragraph(self, props: Paragraph) -> None:
        """End the current paragraph, and add it to the body or to the current cell."""
        table = self._table(props.depth)
        body = table.cell if props.depth else self.body
        self._add(props, body)
        beside, self.beside = self.beside, []
        for html in beside:
            body.add(html)

    def _add(self, props: Paragraph, body: Body) -> None:
        runs = [(look, "".join(parts)) for look, parts in self._runs]
        self._runs = []
        marker, self.marker = self.marker.strip(), ""
        html = "".join(_run_html(look, text) for look, text in runs).strip()
        if not html:
            return
        match = _HEADING.match(props.style)
        level = bounded_int(match[1], 1, most=6) if match else min(props.outline + 1, 6) if props.outline < 9 else 0
        title = props.style.lower() in ("title", "titel")
        if level or title:
            plain = "".join(_run_html(replace(look, bold=False, italic=False), text) for look, text in runs).strip()
            printed = f"{escape(marker, quote=False)} " if is_said(marker) else ""
            body.add(f"<h{level or 1}>{printed}{plain}</h{level or 1}>")
        elif props.listed or marker:
            self._allowance.spend("letters", len(marker))
            body.labelled(html, props.level, marker)
        elif _CODE.search(props.style):
            body.add(escape("".join(text for _, text in runs).replace("\v", "\n"), quote=False), "code")
        elif props.style.lower() in ("caption", "beschriftung"):
            body.add(html, "caption")
        else:
            body.add(f"<blockquote><p>{html}</p></blockquote>" if _QUOTE.search(props.style) else f"<p>{html}</p>")

    # --- tables ----------------------------------------------------------------------------------

    def _table(self, depth: int) -> _Table:
        """Return the open table at a depth from 1; end the tables inside it, and at depth 0 all tables."""
        while len(self._tables) > max(depth, 1):
            inner = self._tables.pop()
            outer = self._tables[-1].cell
            if inner.row:
                self._end_row(inner, RowShape())
            self._end_table(inner, outer)
            inner.cell.close()
            outer.parts += inner.cell.parts
        while len(self._tables) < depth:
            self._tables.append(_Table())
        if not depth:
            self._end_table(self._tables[0], self.body)
        return self._tables[-1]

    def end_cell(self, props: Paragraph, depth: int) -> None:
        """End a cell of the table at a depth, and its last paragraph."""
        table = self._table(depth)
        self._add(props, table.cell)
        table.row.append(without_paragraph(table.cell.html()))
        table.cell = Body()

    def end_row(self, shape: RowShape, depth: int) -> None:
        """End a row of the table at a depth. ``shape`` gives the edges and merges of its cells."""
        self._end_row(self._table(depth), shape)

    def _end_row(self, table: _Table, shape: RowShape) -> None:
        texts, table.row = table.row, []
        cells: list[_Cell] = []
        for at, text in enumerate(texts):
            declared = shape.cells[at] if at < len(shape.cells) else _Cell(right=(at + 1) * 1000)
            if declared.merges_left and cells:
                cells[-1].right = declared.right
                cells[-1].html = "<br>".join(part for part in (cells[-1].html, text) if part)
            else:
                cells.append(_Cell(text, declared.right, vertical_merge=declared.vertical_merge))
        if cells:
            table.rows.append((cells, shape.head))

    def _end_table(self, table: _Table, body: Body) -> None:
        """Add the collected rows of a table to the body or to the cell around it."""
        rows, table.rows = table.rows, []
        if not rows:
            return
        edges: list[int] = []
        for right in sorted({cell.right for cells, _ in rows for cell in cells}):
            if not edges or right - edges[-1] > _NEAR:
                edges.append(right)
        above: dict[int, _Cell] = {}
        header_rows, written = 0, []
        for number, (cells, head) in enumerate(rows):
            header_rows += head and header_rows == number
            column, row, open_merges = 0, [], {}
            for cell in cells:
                stop = min(bisect_left(edges, cell.right - _NEAR), len(edges) - 1) + 1
                cell.colspan = max(stop - column, 1)
                start = above.get(column)
                if cell.vertical_merge == "on" and start is not None and start.colspan == cell.colspan:
                    start.rowspan += 1
                    open_merges[column] = start
                else:
                    row.append(cell)
                    if cell.vertical_merge:
                        open_merges[column] = cell
                column = max(stop, column + 1)
            above = open_merges
            written.append(row)
        final = [[Cell(cell.html, cell.colspan, cell.rowspan) for cell in row] for row in written]
        body.add(to_table(final, header_rows if header_rows < len(written) else 0), "table")

    def html(self) -> str:
        """End the open row and paragraph, and return the HTML."""
        table = self._table(1)
        if table.row:
            self._end_row(table, RowShape())
        self.end_paragraph(Paragraph())
        table.cell.close()
        self.body.parts += table.cell.parts  # a cell that does not end
        return self.body.html()


def _run_html(look: Look, text: str) -> str:
    """Return a run as HTML. Spaces at its ends stay outside its elements."""
    core = text.strip(" \t")
    if not core:
        return text
    before, after = text[: len(text) - len(text.lstrip(" \t"))], text[len(text.rstrip(" \t")) :]
    html = escape(core, quote=False).replace("\v", "<br>").replace("\x0e", "").replace("\x0f", "")
    for tag, wanted in ((look.raised, bool(look.raised)), ("s", look.struck), ("i", look.italic), ("b", look.bold)):
        if wanted:
            html = f"<{tag}>{html}</{tag}>"
    if look.href.lower().startswith(_WEB):
        html = f'<a href="{escape(look.href)}">{html}</a>'
    return before + html + after
