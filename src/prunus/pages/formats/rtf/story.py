"""What an RTF document says, while it is read: runs, paragraphs, lists, and the rows of tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Final

from .._common.body import Body
from .._common.write import Cell, alone, table

_HEADING: Final = re.compile(r"(?:heading|überschrift|titre|titolo|título)\s*([1-9])", re.IGNORECASE)
_CODE: Final = re.compile(r"code|preformatted|listing|verbatim", re.IGNORECASE)
_QUOTE: Final = re.compile(r"quote|quotation|zitat|citation", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[(\[]?(?:[\d.]*?(\d{1,6})[.)\]:]*|([a-z])[.)\]]+|([A-Z])[.)\]]+)")
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_NEAR: Final = 30  # twips between edges of cells that are meant to be the same


@dataclass(slots=True)
class Paragraph:
    """Properties of a paragraph."""

    style: str = ""
    outline: int = 9
    listed: bool = False
    level: int = 0
    in_table: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """How letters look, and where they lead."""

    bold: bool = False
    italic: bool = False
    raised: str = ""
    href: str = ""


@dataclass(slots=True)
class _Cell:
    html: str = ""
    right: int = 0
    joined: bool = False  # to the cell on its left
    hangs: str = ""  # "start" or "on" of a vertical merge
    rowspan: int = 1
    colspan: int = 1


@dataclass(slots=True)
class RowShape:
    """The cells that a row says it has: right edge in twips, and its merges."""

    cells: list[_Cell] = field(default_factory=list)
    pending: _Cell = field(default_factory=_Cell)
    head: bool = False

    def close_cell(self, right: int) -> None:
        """End the description of a cell."""
        self.pending.right = right
        self.cells.append(self.pending)
        self.pending = _Cell()


class Story:
    """One stream of paragraphs: the document, a note, a text box."""

    def __init__(self) -> None:
        self.body = Body()
        self.marker = ""  # what is printed before the paragraph that is being read
        self.beside: list[str] = []  # boxes and pictures of the paragraph
        self._runs: list[tuple[Look, str]] = []
        self._cell = Body()
        self._row: list[str] = []
        self._rows: list[tuple[list[_Cell], bool]] = []

    def write(self, text: str, look: Look) -> None:
        """Add letters to the paragraph."""
        if self._runs and self._runs[-1][0] == look:
            self._runs[-1] = (look, self._runs[-1][1] + text)
        else:
            self._runs.append((look, text))

    def end_paragraph(self, about: Paragraph) -> None:
        """End the paragraph, and add it to what holds it."""
        if not about.in_table:
            self._end_table()
        body = self._cell if about.in_table else self.body
        self._add(about, body)
        beside, self.beside = self.beside, []
        for html in beside:
            body.add(html)

    def _add(self, about: Paragraph, body: Body) -> None:
        runs, self._runs = self._runs, []
        marker, self.marker = self.marker.strip(), ""
        html = "".join(_written(look, text) for look, text in runs).strip()
        if not html:
            return
        found = _HEADING.match(about.style)
        level = min(int(found[1]), 6) if found else min(about.outline + 1, 6) if about.outline < 9 else 0
        title = about.style.lower() in ("title", "titel")
        if level or title:
            plain = "".join(_written(Look(href=look.href, raised=look.raised), text) for look, text in runs).strip()
            printed = f"{escape(marker, quote=False)} " if marker and any(c.isalnum() for c in marker) else ""
            body.add(f"<h{level or 1}>{printed}{plain}</h{level or 1}>")
        elif about.listed or marker:
            self._item(html, about, marker, body)
        elif _CODE.search(about.style):
            body.add(escape("".join(text for _, text in runs).replace("\v", "\n"), quote=False), "code")
        elif about.style.lower() in ("caption", "beschriftung"):
            body.add(html, "caption")
        else:
            body.add(f"<blockquote><p>{html}</p></blockquote>" if _QUOTE.search(about.style) else f"<p>{html}</p>")

    def _item(self, html: str, about: Paragraph, marker: str, body: Body) -> None:
        found = _NUMBER.fullmatch(marker)
        if not found:
            body.item(html, about.level)
            return
        digits, low, high = found.groups()
        number = int(digits) if digits else ord((low or high).lower()) - 96
        body.item(html, about.level, "ol", number, "" if digits else "a" if low else "A")

    # --- tables ----------------------------------------------------------------------------------

    def end_cell(self, about: Paragraph) -> None:
        """End a cell with the paragraph that it ends in."""
        self._add(about, self._cell)
        self._row.append(alone(self._cell.html()))
        self._cell = Body()

    def end_row(self, shape: RowShape) -> None:
        """End a row of cells that look as ``shape`` says."""
        texts, self._row = self._row, []
        cells: list[_Cell] = []
        for at, text in enumerate(texts):
            known = shape.cells[at] if at < len(shape.cells) else _Cell(right=(at + 1) * 1000)
            if known.joined and cells:
                cells[-1].right = known.right
                cells[-1].html = "<br>".join(part for part in (cells[-1].html, text) if part)
            else:
                cells.append(_Cell(text, known.right, hangs=known.hangs))
        if cells:
            self._rows.append((cells, shape.head))

    def _end_table(self) -> None:
        """Add the rows that have come together as a table."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        edges: list[int] = []
        for right in sorted({one.right for cells, _ in rows for one in cells}):
            if not edges or right - edges[-1] > _NEAR:
                edges.append(right)
        above: dict[int, _Cell] = {}
        heads, written = 0, []
        for number, (cells, head) in enumerate(rows):
            heads += head and heads == number
            column, row, seen = 0, [], {}
            for one in cells:
                stop = next((at for at, edge in enumerate(edges) if one.right - edge <= _NEAR), len(edges) - 1) + 1
                one.colspan = max(stop - column, 1)
                start = above.get(column)
                if one.hangs == "on" and start is not None and start.colspan == one.colspan:
                    start.rowspan += 1
                    seen[column] = start
                else:
                    row.append(one)
                    if one.hangs:
                        seen[column] = one
                column = max(stop, column + 1)
            above = seen
            written.append(row)
        done = [[Cell(one.html, one.colspan, one.rowspan) for one in row] for row in written]
        self.body.add(table(done, heads if heads < len(written) else 0), "table")

    def html(self) -> str:
        """End everything that is open, and return it."""
        if self._row:
            self.end_row(RowShape())
        self.end_paragraph(Paragraph())
        return self.body.html()


def _written(look: Look, text: str) -> str:
    """Return a run as HTML; spaces at its ends stay outside its elements."""
    core = text.strip(" \t")
    if not core:
        return text
    before, after = text[: len(text) - len(text.lstrip(" \t"))], text[len(text.rstrip(" \t")) :]
    made = escape(core, quote=False).replace("\v", "<br>").replace("\x0e", "").replace("\x0f", "")
    for tag, wanted in ((look.raised, bool(look.raised)), ("i", look.italic), ("b", look.bold)):
        if wanted:
            made = f"<{tag}>{made}</{tag}>"
    if look.href.lower().startswith(_WEB):
        made = f'<a href="{escape(look.href)}">{made}</a>'
    return before + made + after
