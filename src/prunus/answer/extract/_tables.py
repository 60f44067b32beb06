"""Rows of a table as cells under their heads, and the numbers, dates and times of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ...core.ports import Tagged
from ...core.text.numbers import bounded_float, bounded_int

Cells = list[tuple[int, float]]
"""The row and the number of each cell of a column that holds a number."""

_NUMBER: Final = re.compile(r"[-\u2212\u2013]?\d{1,12}(?:[,.\u2009\u202f]\d{1,6}){0,4}")
_YEAR: Final = re.compile(r"\b(?:1\d|20)\d\d\b")
_TIME: Final = re.compile(r"\b(\d{1,3}):(\d\d)(?::(\d\d))?(\.\d+)?\b")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\b\.?", re.IGNORECASE)
_DAY: Final = re.compile(r"\b([1-9]|[12]\d|3[01])\b(?![.,:]\d)")
_SUM: Final = re.compile(
    r"^\W*(?:grand )?(?:total|sum|average|overall|gesamt|summe)\b|^\W*[\u5408\u603b]\u8ba1", re.IGNORECASE
)
_LONGEST: Final = 80


@dataclass
class Table:
    """A table: of each row its cells as (head, text). A head that is not known is the number of its column."""

    rows: list[list[tuple[str, str]]]
    unlabelled: bool

    @classmethod
    def of(cls, rows: Sequence[Tagged]) -> Table:
        """Read the rows of a table; a table without a header takes the words of its first row."""
        unlabelled = not any(row.label for row in rows)
        texts = [(row.shown or row.text).split("\t") for row in rows]
        if unlabelled:
            first = texts[0]
            usable = not any(letter.isdigit() for text in first for letter in text)
            heads = [text.strip() for text in first] if usable else []
            return cls([_under(heads, cells) for cells in texts], unlabelled)
        return cls([_labelled(row.label, cells) for row, cells in zip(rows, texts, strict=True)], unlabelled)

    @cached_property
    def heads(self) -> frozenset[str]:
        """All heads that are words."""
        return frozenset(head for row in self.rows for head, _ in row if not head.isdigit())

    @cached_property
    def columns(self) -> dict[str, Cells]:
        """The numbers of each column, by its head."""
        found: dict[str, Cells] = {}
        for place, row in enumerate(self.rows):
            for head, text in row:
                value = value_in(text)
                if value is not None:
                    found.setdefault(head, []).append((place, value))
        return found

    def is_total(self, row: int) -> bool:
        """Tell whether the first cell of a row says that it is a sum."""
        return _SUM.search(self.rows[row][0][1]) is not None


def _under(heads: Sequence[str], cells: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (heads[number] if number < len(heads) and heads[number] else str(number), text.strip())
        for number, text in enumerate(cells)
    ]


def _labelled(label: str, cells: Sequence[str]) -> list[tuple[str, str]]:
    """Put the cells of a row under the heads that its label names; cells that span it stand at the label's end."""
    named, *spanning = label.split("; ")
    result = _under(named.split(" | "), cells)
    for part in spanning:
        head, colon, text = part.partition(": ")
        if colon:
            result.append((head, text.strip()))
    return result


def value_in(cell: str) -> float | None:
    """Return what a cell is sorted by: a date as year, month and day, a time in seconds, else its first number.

    None where it holds no number.
    """
    text = cell[:_LONGEST]
    time, year, month = _TIME.search(text), _YEAR.search(text), _MONTH.search(text)
    if month and (year or _DAY.search(text)):
        day = _DAY.search(text)
        return (
            _whole(year.group() if year else "") * 10000.0
            + (_MONTHS.index(month.group(1).lower()) + 1) * 100
            + _whole(day.group() if day else "")
        )
    if time:
        first, second, third, rest = time.groups()
        seconds = (_whole(first) * 60 + _whole(second)) * (60 if third else 1) + _whole(third or "")
        return seconds + _fraction(rest)
    return number_in(text) if not year else _whole(year.group()) * 10000.0


def _whole(digits: str) -> int:
    return bounded_int(digits, 0, most=10_000)


def _fraction(text: str | None) -> float:
    """Return the part of a second behind the stop; 0 for none."""
    return bounded_float(f"0{text}", 0.0, least=0, most=1) if text else 0.0


def number_in(text: str) -> float | None:
    """Return the first number of a text; None where it holds none."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    written = found.group()
    if written[0] in "-\u2212\u2013" and found.start() and text[found.start() - 1].isalnum():
        written = written[1:]  # a hyphen between two words is no minus
    digits = re.sub(r"[,\u2009\u202f](?=\d{3})", "", written.replace("\u2212", "-").replace("\u2013", "-"))
    return bounded_float(digits.replace(",", "."), None, least=-1e18, most=1e18)
