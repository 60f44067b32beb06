"""Rows of a table that hold the highest or the lowest number of a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Segment
from ...core.text.numbers import bounded_float

_NUMBER: Final = re.compile(r"[-\u2212]?\d{1,12}(?:[,.\u2009\u202f]\d{1,6}){0,4}")
_YEAR: Final = re.compile(r"\b(?:1\d|20)\d\d\b")


def extremes(
    rows: Sequence[Segment], low: bool, is_named: Callable[[str], bool]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tell which rows of a table hold the extreme of a column.

    :param low: the lowest number is wanted, not the highest.
    :param is_named: tells whether the question names the column with this head.
    :returns: per row, whether it holds the extreme of a named column, and of how many others as a share of them.
    """
    columns: dict[str, list[tuple[int, float]]] = {}
    for place, row in enumerate(rows):
        heads = row.label.split(" | ")
        for number, cell in enumerate((row.shown or row.text).split("\t")):
            value = number_in(cell)
            if value is not None:
                columns.setdefault(heads[number] if number < len(heads) else str(number), []).append((place, value))
    named, other, others = np.zeros(len(rows)), np.zeros(len(rows)), 0
    for head, cells in columns.items():
        if 2 * len(cells) < len(rows):
            continue
        values = [value for _, value in cells]
        best = min(values) if low else max(values)
        holders = [place for place, value in cells if value == best]
        if len(holders) * 2 > len(cells):
            continue  # a column of equal numbers has no extreme
        if is_named(head):
            named[holders] = 1
        else:
            others += 1
            other[holders] += 1
    return named, other / max(1, others)


def number_in(cell: str) -> float | None:
    """Return the number of a cell: its year, where it holds one, else its first number; None where it holds none."""
    year = _YEAR.search(cell[:80])
    found = year or _NUMBER.search(cell[:80])
    if found is None:
        return None
    digits = re.sub(r"[,\u2009\u202f](?=\d{3})", "", found.group().replace("\u2212", "-"))
    return bounded_float(digits.replace(",", "."), None, least=-1e18, most=1e18)
