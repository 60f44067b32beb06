"""``ods``: OpenDocument spreadsheets: one section per sheet, cells with the text that the document shows."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, Final

from ...core.text.numbers import bounded_float
from ...core.types import Page
from ._common.allowance import Allowance
from ._common.write import document
from ._common.xml import StopReading, cut_bytes, is_flat, walk_xml, whole_number, xml_bytes
from ._common.zip import Archive
from ._sheets.numbers import plain
from ._sheets.regions import Sheet, column_letters, to_markup, unsaved_formulas
from ._sheets.rich import CellLook, rich_markup
from .odt.styles import raised_by

_MAX_COLUMNS: Final = 16_384
_LONG: Final = 32_768  # characters of a cell
_DURATION: Final = re.compile(r"PT(\d{1,6})H(\d{1,2})M(\d{1,2})(?:[.,]\d{1,12})?S")
_UNSEEN: Final = frozenset({"shapes", "tracked-changes"})
_HIDDEN: Final = ("collapse", "filter")


class Engine:
    """OpenDocument spreadsheets, zipped or flat. Hidden rows and columns, and formulas are left out.

    :param max_cells: cells of the document that are shown; default 300,000. A note marks a sheet that is cut.
    :param max_mb: unpacked size of the content, in MiB; default 256.
    :param max_chars: characters of the document that are shown; default 16 Mi.
    :param seconds: time limit for reading; default 60.
    """

    name = "ods"
    media_types = (
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.spreadsheet-flat-xml",
    )
    suffixes = (".ods", ".ots", ".fods")

    def __init__(
        self, max_cells: int = 300_000, max_mb: int = 256, max_chars: int = 16 << 20, seconds: float = 60.0
    ) -> None:
        self._max_cells, self._max_mb, self._max_chars, self._seconds = max_cells, max_mb, max_chars, seconds

    def to_html(self, page: Page) -> str:
        """Return the sheets as sections; a hidden sheet and comments are asides.

        :raises BadPage: the page is no spreadsheet, is damaged or password-protected, or exceeds a limit.
        """
        limits = {"bytes": self._max_mb << 20, "cells": self._max_cells, "letters": self._max_chars}
        allowance = Allowance(page.url, self._seconds, **limits)
        reader = _Content(allowance)
        if is_flat(page.content):
            content, encoding = xml_bytes(page.content)
            walk_xml(cut_bytes(content), reader, lambda reason: allowance.fault(f"this spreadsheet {reason}"), encoding)
        else:
            Archive(page.content, "OpenDocument spreadsheet", allowance).walk("content.xml", reader)
        sections = [to_markup(sheet, allowance) for sheet in reader.sheets]
        if not any(sections):
            raise allowance.fault(
                "this spreadsheet shows no cells, or is password-protected; save it without its password"
            )
        return document(sections)


class _Content:
    """Listener for ``content.xml``. Only visible rows are numbered, so hidden rows leave no gap."""

    def __init__(self, allowance: Allowance) -> None:
        self.sheets: list[Sheet] = []
        self._allowance = allowance
        self._hidden_styles: set[str] = set()
        self._style, self._family = "", ""
        self._looks: dict[tuple[str, str], dict[str, Any]] = {}  # what styles say, by family and name
        self._sheet: Sheet | None = None
        self._tables = 0  # nesting depth of tables
        self._comment: list[str] | None = None  # author and text of an open comment
        self._into = 0  # which of them
        self._unseen = 0

    def _begin_sheet(self, attrs: Mapping[str, str]) -> None:
        self._sheet = Sheet(attrs.get("name", ""), is_hidden=attrs.get("style-name", "") in self._hidden_styles)
        self._row, self._column, self._defined = 0, 0, 0
        self._hidden: list[int] = []  # sorted columns
        self._repeat, self._row_repeat = 1, 1
        self._row_hidden = False
        self._rows_hidden = 0
        self._unsaved = 0  # visible formulas without a value
        self._is_unsaved = False
        self._row_cells: list[tuple[int, str, str, str, int, int]] = []
        self._text: list[str] | None = None
        self._spans_open: list[CellLook] = [CellLook()]  # the look of the cell, then of each open part of its text
        self._runs: list[tuple[str, CellLook | None]] = []
        self._value = ""
        self._size = 0  # letters of the cell so far
        self._paragraphs: list[str] = []
        self._link = ""
        self._spans = (1, 1)

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Enter an element: a style, a sheet, a column, a row, a cell or a part of a cell."""
        if self._unseen or name in _UNSEEN:
            self._unseen += 1
        elif name == "style":
            self._style, self._family = attrs.get("name", ""), attrs.get("family", "")
        elif name == "table-properties" and attrs.get("display") == "false":
            self._allowance.spend("items")
            self._hidden_styles.add(self._style)
        elif name == "text-properties" and self._style:
            self._record_look(attrs)
        elif name == "table":
            self._tables += 1
            if self._tables == 1:
                self._allowance.spend("sheets")
                self._begin_sheet(attrs)
        elif self._tables != 1 or self._sheet is None:
            return
        elif name == "table-column":
            count = _count(attrs, "number-columns-repeated")
            if attrs.get("visibility") in _HIDDEN:
                self._hidden.extend(range(self._defined, min(self._defined + count, _MAX_COLUMNS)))
            self._defined += count
        elif name == "table-row":
            self._column, self._row_cells = 0, []
            self._row_hidden = attrs.get("visibility") in _HIDDEN
            self._row_repeat = _count(attrs, "number-rows-repeated")
        elif self._comment is not None:
            self._into = {"creator": 0, "p": 1, "date": 2}.get(name, self._into)
            self._comment[1] += "\n" if name == "p" else ""
        elif name == "annotation":
            self._comment, self._into = ["", "", ""], 2
        elif name in ("table-cell", "covered-table-cell"):
            self._repeat = _count(attrs, "number-columns-repeated")
            self._paragraphs, self._link, self._size = [], "", 0
            self._value = _value_text(attrs)
            self._runs = []
            self._spans_open = [self._look(CellLook(), "table-cell", attrs)]
            self._is_unsaved = (
                "formula" in attrs
                and not {"value", "string-value", "boolean-value", "date-value", "time-value"} & attrs.keys()
            )
            self._spans = (_count(attrs, "number-rows-spanned"), _count(attrs, "number-columns-spanned"))
        else:
            self._start_in_cell(name, attrs)

    def _record_look(self, attrs: Mapping[str, str]) -> None:
        """Record whether a style raises, lowers or strikes words."""
        said: dict[str, Any] = {}
        if "text-position" in attrs:
            said["script"] = raised_by(attrs["text-position"])
        line = attrs.get("text-line-through-style") or attrs.get("text-line-through-type")
        if line:
            said["struck"] = line != "none"
        if said:
            self._allowance.spend("items")
            self._looks[self._family, self._style] = said

    def _look(self, outer: CellLook, family: str, attrs: Mapping[str, str]) -> CellLook:
        """Return the look of words in a style, inside words that look like ``outer``."""
        said = self._looks.get((family, attrs.get("style-name", "")))
        return outer._replace(**said) if said else outer

    def _start_in_cell(self, name: str, attrs: Mapping[str, str]) -> None:
        if name == "p":
            self._text = []
            if self._paragraphs:
                self._runs.append(("\n", self._spans_open[0]))
        elif name == "span":
            self._spans_open.append(self._look(self._spans_open[-1], "text", attrs))
        elif self._text is not None and self._size < _LONG:
            if name == "s":
                self._add(" " * min(_count(attrs, "c"), 1000))
            elif name in ("tab", "line-break"):
                self._add("\t" if name == "tab" else "\n")
            elif name == "a":
                self._link = self._link or attrs.get("href", "")

    def end(self, name: str) -> None:
        """Leave an element; record a finished paragraph, cell, row or sheet."""
        if self._unseen:
            self._unseen -= 1
        elif name == "style":
            self._style = ""
        elif name == "table":
            self._tables -= 1
            if self._tables == 0 and self._sheet is not None:
                if self._unsaved:
                    self._sheet.notes.append(unsaved_formulas(self._unsaved))
                self.sheets.append(self._sheet)
                self._sheet = None
        elif self._tables != 1 or self._sheet is None:
            return
        elif self._comment is not None:
            if name == "annotation":
                self._end_comment(self._sheet, *self._comment[:2])
        elif name == "p" and self._text is not None:
            if self._text or self._size < _LONG:
                self._paragraphs.append("".join(self._text))
                self._size += 1
            self._text = None
        elif name == "span":
            self._spans_open = self._spans_open[:-1] or [CellLook()]
        elif name in ("table-cell", "covered-table-cell"):
            # a cell without a paragraph has only its value; an empty paragraph shows nothing
            text = ("\n".join(self._paragraphs) if self._paragraphs else self._value)[:_LONG]
            if not self._paragraphs and self._value:
                self._runs = [(text, self._spans_open[0])]
            if self._is_unsaved and not text and name == "table-cell" and not self._row_hidden:
                self._unsaved += 1
            if text.strip() and name == "table-cell":
                markup = rich_markup(text, self._runs, self._spans_open[0]) if len(text) < _LONG else ""
                stop = min(self._column + self._repeat, _MAX_COLUMNS)
                self._allowance.spend("looks", max(stop - self._column, 0))
                for index in range(self._column, stop):
                    if not self._hidden or bisect_left(self._hidden, index) == bisect_right(self._hidden, index):
                        self._row_cells.append((index, text, markup, self._link, *self._spans))
            self._column += self._repeat
        elif name == "table-row":
            self._end_row(self._sheet)

    def data(self, text: str) -> None:
        """Collect the text of a paragraph."""
        if self._tables != 1 or self._sheet is None or self._unseen:
            return
        if self._comment is not None:
            self._allowance.spend("letters", len(text))
            self._comment[self._into] += text
        elif self._text is not None:
            self._add(text)

    def _end_comment(self, sheet: Sheet, author: str, text: str) -> None:
        """Record the comment on a cell that is not hidden."""
        self._comment = None
        at = bisect_left(self._hidden, self._column)
        if not self._row_hidden and self._hidden[at : at + 1] != [self._column]:
            cell = f"{column_letters(self._column)}{self._row + self._rows_hidden + 1}"
            sheet.comments.append((cell, author, text))

    def _add(self, text: str) -> None:
        """Add text to a paragraph, as far as the cell shows it."""
        if self._text is not None and self._size < _LONG:
            self._text.append(text)
            self._runs.append((text, self._spans_open[-1]))
            self._size += len(text)

    def _end_row(self, sheet: Sheet) -> None:
        """Put the cells of a row into the sheet, once for each repetition of the row."""
        if self._row_hidden:
            self._rows_hidden += self._row_repeat
            return
        hidden, allowance = self._hidden, self._allowance
        for repetition in range(self._row_repeat if self._row_cells else 0):
            if repetition and not allowance.take("copies", len(self._row_cells)):
                sheet.notes.append(f"Row {self._row + 1:,} repeats the row above, {self._row_repeat:,} times in all.")
                self._row += self._row_repeat - repetition
                break
            for column, text, markup, link, rowspan, declared_colspan in self._row_cells:
                if not allowance.take("letters", len(markup or text) + len(link)) or not allowance.take("cells"):
                    sheet.notes.append(f"The sheet is cut at row {self._row + 1:,}: the limit of cells is reached.")
                    self.sheets.append(sheet)
                    raise StopReading
                place = (self._row, column - bisect_left(hidden, column))
                sheet.numbers[self._row] = self._row + self._rows_hidden + 1
                sheet.cells[place] = text
                if markup:
                    sheet.markup[place] = markup
                if link:
                    sheet.links[place] = link
                right = min(column + declared_colspan, _MAX_COLUMNS)
                colspan = right - column - bisect_left(hidden, right) + bisect_left(hidden, column)
                if (rowspan, colspan) != (1, 1):
                    sheet.spans[place] = (min(rowspan, 1000), colspan)
            self._row += 1
        if not self._row_cells:
            self._row += self._row_repeat


def _value_text(attrs: Mapping[str, str]) -> str:
    """Return the value of a cell as a text, in the form of its type; '' for none."""
    kind, number = attrs.get("value-type", ""), bounded_float(attrs.get("value"), None, least=-math.inf)
    if kind == "boolean":
        return attrs.get("boolean-value", "").upper()
    if kind == "date":
        return attrs.get("date-value", "").removesuffix("T00:00:00")
    if kind == "time":
        duration = _DURATION.fullmatch(attrs.get("time-value", ""))
        return ":".join(part.zfill(2) for part in duration.groups()) if duration else attrs.get("time-value", "")
    if kind not in ("float", "percentage", "currency") or number is None or not math.isfinite(number):
        return attrs.get("string-value", "") if kind == "string" else ""
    if kind == "percentage":
        return f"{plain(number * 100)}%"
    return f"{plain(number)} {attrs.get('currency', '') if kind == 'currency' else ''}".strip()


def _count(attrs: Mapping[str, str], name: str) -> int:
    """Return a count of at least 1, and at most the 1,048,576 rows of a sheet."""
    return max(1, whole_number(attrs.get(name), 1, most=1_048_576))
