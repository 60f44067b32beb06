"""``csv``: tables of text (comma, semicolon, tab or bar), with careful guesses that never lose a cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ...core.types import Page
from ._common.write import bad, document, lines, note, table, text_of
from ._sheets.grid import has_header

_DELIMITERS: Final = "\t;|,"
"""In this order where two do equally well: the comma also stands in numbers and sentences."""

_SAMPLE: Final = 1 << 16
_SAMPLE_ROWS: Final = 100
_CELL_LINES: Final = 500


class Engine:
    """CSV and TSV as a table; a header row is marked only where something speaks for it.

    Rows of different lengths stay as they are; quotes that are never closed are taken as letters.

    :param max_rows: rows that are shown; default 100,000. The page says how many there are.
    :param max_cells: cells that are shown; default 300,000.
    :param max_columns: columns that are shown; default 2,000.
    """

    name = "csv"
    media_types = ("text/csv", "text/tab-separated-values", "application/csv")
    suffixes = (".csv", ".tsv", ".tab")

    def __init__(self, max_rows: int = 100_000, max_cells: int = 300_000, max_columns: int = 2000) -> None:
        self._max_rows, self._max_cells, self._max_columns = max_rows, max_cells, max_columns

    def to_html(self, page: Page) -> str:
        """Return the rows as a table, with a note where something was left out.

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
            raise bad(page, "this table holds no cell but empty ones")
        if not rows:
            raise bad(page, f"the first row has {widest:,} cells, over the limit of {self._max_cells:,}")
        width = max(map(len, rows))
        notes = []
        if len(rows) < total:
            notes.append(note(f"Rows 1 to {len(rows):,} of {total:,} are shown."))
        if width < widest:
            notes.append(note(f"Columns 1 to {width:,} of {widest:,} are shown."))
        header = int(has_header(rows))
        return document([*notes, table(([lines(cell) for cell in row] for row in rows), header)])


def delimiter_of(text: str) -> str:
    """Return what separates the cells: what splits most rows into the same number, more than one."""
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
        if agreement > best + 0.05:
            best, chosen = agreement, delimiter
    return chosen


def _declared(text: str) -> tuple[str, str]:
    """Take off the line ``sep=;`` that spreadsheets write; return the rest and what it names."""
    first, _, rest = text.partition("\n")
    if first[:4].lower() == "sep=" and first[4:] in {"\t", ";", "|", ",", ":"}:
        return rest, first[4]
    return text, ""


def _is_quoted(text: str, delimiter: str) -> bool:
    """Tell whether double quotes hold cells together: not where one is never closed, or a cell would be endless."""
    if '"' not in text:
        return False
    for strict in (True, False):
        if not strict and not _mostly_closed(text):
            return False
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict):
                if any(cell.count("\n") > _CELL_LINES for cell in row):
                    return False  # a quote that was left open swallows all that follows
        except csv.Error:
            continue
        return True
    return False


def _mostly_closed(text: str) -> bool:
    """Tell whether nearly all lines hold whole pairs of quotes, as sloppy writers of cells leave them."""
    found = [line.count('"') for line in islice(io.StringIO(text), 20_000) if '"' in line]
    return text.count('"') % 2 == 0 and sum(count % 2 == 0 for count in found) * 20 >= 19 * len(found)


def _rows(text: str, delimiter: str, quoted: bool) -> Iterator[list[str]]:
    """Yield the rows that hold something."""
    if quoted:
        given: Iterator[list[str]] = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    else:
        given = (line.rstrip("\n").split(delimiter) for line in io.StringIO(text))
    return (row for row in given if any(cell and not cell.isspace() for cell in row))
