"""``csv``: text tables with comma, semicolon, tab or bar. The delimiter is guessed; no guess loses a cell."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ...core.types import Page
from ._common.write import document, escape_lines, note, page_error, table, text_of
from ._sheets.grid import has_header

_DELIMITERS: Final = "\t;|,"
"""Candidates; the earlier wins a tie. The comma is last because numbers and sentences contain it too."""

_SAMPLE: Final = 1 << 16  # characters in which the delimiter is searched
_SAMPLE_ROWS: Final = 100
_ESCAPED: Final = re.compile(r'\\"\w')
_CELL_LINES: Final = 500  # lines of a cell; more show an unclosed quote


class Engine:
    """CSV and TSV as a table. The first row is a header only where :func:`has_header` finds evidence.

    Rows of different lengths stay as they are. Unclosed quotes count as plain characters.

    :param max_rows: rows that are shown; default 100,000. A note gives the total.
    :param max_cells: cells that are shown; default 300,000.
    :param max_columns: columns that are shown; default 2,000.
    """

    name = "csv"
    media_types = ("text/csv", "text/tab-separated-values", "application/csv")
    suffixes = (".csv", ".tsv", ".tab")

    def __init__(self, max_rows: int = 100_000, max_cells: int = 300_000, max_columns: int = 2000) -> None:
        self._max_rows, self._max_cells, self._max_columns = max_rows, max_cells, max_columns

    def to_html(self, page: Page) -> str:
        """Return the rows as a table, with a note where rows or columns were left out.

        :raises BadPage: the content is empty or binary.
        """
        text = text_of(page, "a CSV file").replace("\r\n", "\n").replace("\r", "\n")
        text, delimiter = _declared(text)
        if not delimiter:
            tabs = page.url.lower().endswith((".tsv", ".tab")) or "tab-separated" in page.media_type
            delimiter = "\t" if tabs and "\t" in text[:_SAMPLE] else delimiter_of(text)
        quoted = _is_quoted(text, delimiter)
        rows: list[list[str]] = []
        cells = total = widest = 0
        for row in _rows(text, delimiter, quoted):
            total += 1
            widest = max(widest, len(row))
            if len(rows) == total - 1 and total <= self._max_rows:
                row = row[: self._max_columns]
                cells += len(row)
                if cells <= self._max_cells:
                    rows.append(row)
        if not total:
            raise page_error(page, "this table has only empty cells")
        if not rows:
            raise page_error(
                page, f"the first row has {widest:,} cells, over the limit of {self._max_cells:,}; split the table"
            )
        width = max(map(len, rows))
        notes = []
        if len(rows) < total:
            notes.append(note(f"Rows 1 to {len(rows):,} of {total:,} are shown."))
        if width < widest:
            notes.append(note(f"Columns 1 to {width:,} of {widest:,} are shown."))
        header = int(has_header(rows))
        return document([*notes, table(([escape_lines(cell) for cell in row] for row in rows), header)])


def delimiter_of(text: str) -> str:
    """Return the delimiter: the character that splits most rows into the same number of cells, at least two."""
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample[: sample.rfind("\n") + 1] or sample
    best, chosen = 0.0, ","
    for delimiter in _DELIMITERS:
        if delimiter not in sample:
            continue
        widths = [len(row) for row in islice(_rows(sample, delimiter, _is_quoted(sample, delimiter)), _SAMPLE_ROWS)]
        usual = max(set(widths), key=lambda width: (widths.count(width), width)) if widths else 1
        agreement = widths.count(usual) / len(widths) if usual > 1 else 0.0
        if agreement > best + 0.05:  # a later candidate must be clearly better
            best, chosen = agreement, delimiter
    return chosen


def _declared(text: str) -> tuple[str, str]:
    """Remove the line ``sep=;`` that spreadsheets write; return the rest and the delimiter, or '' without that line."""
    first, _, rest = text.partition("\n")
    if first[:4].lower() == "sep=" and first[4:] in {"\t", ";", "|", ",", ":"}:
        return rest, first[4]
    return text, ""


def _is_quoted(text: str, delimiter: str) -> bool:
    """Tell whether double quotes enclose cells by the rules in the whole text.

    They do not where a quote is never closed, or where a cell would span more than ``_CELL_LINES`` lines.
    """
    if '"' not in text:
        return False
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        # an unclosed quote would swallow the rest of the file
        return not any(cell.count("\n") > _CELL_LINES for row in rows for cell in row)
    except csv.Error:
        return False


class _Sloppy:
    """Reads rows in which some quotes break the rules, as ``2,"Pipe 12" long, copper",9.10``; other rows are not hurt.

    A quote at the start of a cell encloses it where a quote before a delimiter or a line end closes it.
    """

    def __init__(self, text: str, delimiter: str) -> None:
        sign = re.escape(delimiter)
        self._text, self._delimiter, self._place = text, delimiter, 0
        self._end = re.compile(rf"[{sign}\n]|\Z")
        self._closed = re.compile(rf"(?<! ) *+(?:[{sign}\n]|\Z)")
        self._escapes = bool(_ESCAPED.search(text))
        self._unclosed = 0  # up to here no quote closes a cell, so a document of opening quotes takes no square of time

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows."""
        text = self._text
        while self._place < len(text):
            line = text.find("\n", self._place)
            line = len(text) if line < 0 else line
            if text.find('"', self._place, line) < 0:
                yield text[self._place : line].split(self._delimiter)
                self._place = line + 1
                continue
            row = [self._cell()]
            while text.startswith(self._delimiter, self._place):
                self._place += 1
                row.append(self._cell())
            self._place += 1
            yield row

    def _cell(self) -> str:
        """Read a cell up to the delimiter or the line end after it."""
        text, start = self._text, self._place
        while text.startswith(" ", start):
            start += 1
        close = self._closing(start) if start >= self._unclosed and text.startswith('"', start) else -1
        self._place = self._end.search(text, close + 1 if close >= 0 else self._place).start()  # type: ignore[union-attr]
        if close < 0:
            return text[start : self._place]
        cell = text[start + 1 : close].replace('""', '"')
        return cell.replace('\\"', '"') if self._escapes else cell

    def _closing(self, start: int) -> int:
        """Return the place of the quote that closes the cell that begins at ``start``; -1 where none does."""
        text, strays, place = self._text, False, start + 1
        while (place := text.find('"', place)) >= 0:
            size = 1
            if text.startswith('""', place):
                size = 2
            elif self._escapes and place > start + 1 and text[place - 1] == "\\":
                pass
            elif self._closed.match(text, place + 1):
                lines = text.count("\n", start, place)
                if lines <= (0 if strays else _CELL_LINES):
                    return place
                break
            elif text[place - 1] in (self._delimiter, "\n"):
                break  # the start of another cell
            else:
                strays = True
            place += size
        self._unclosed = place if place >= 0 else len(text)
        return -1


def _rows(text: str, delimiter: str, quoted: bool) -> Iterator[list[str]]:
    """Yield the rows that have a non-empty cell."""
    if quoted:
        rows: Iterator[list[str]] = csv.reader(
            io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True
        )
    else:
        rows = _Sloppy(text, delimiter).rows()
    return (row for row in rows if any(cell and not cell.isspace() for cell in row))
