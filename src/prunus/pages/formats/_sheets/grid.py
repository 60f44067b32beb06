"""Decide whether the first row of a grid is a header. Without evidence, it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NUMBER: Final = re.compile(r"[-+(]?[€$£¥]?\s?[-+]?\d[\d.,' \u00a0\u202f]*(?:[eE][-+]?\d+)?\s?[%€$£¥)]?")
_DATE: Final = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2})?"
    r"|\d{4}-\d{2}(?:-\d{2})?(?:[T ].*)?"
)
_MEASURE: Final = re.compile(r"[-+]?\d[\d.,]*\s?[A-Za-zµ°Ω/]{1,6}[²³]?")  # for example 2.5 km/h
_NAME: Final = re.compile(r"[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z]{2}[A-Z0-9_]*")
_KNOWN: Final = frozenset(
    """id no nr name title date time year month day type kind status state city country address email phone url
    price cost amount total sum count number quantity unit value currency code key description text comment note
    category group class author language size weight height width length lat lon latitude longitude age sex gender
    first last start end from to question answer term definition titel datum jahr preis menge betrag stadt land
    nombre fecha precio nom prix ville nome data prezzo
    名称 名前 日付 日期 价格 価格 数量 编号 番号""".split()
)
_SAMPLE: Final = 200  # rows below the first that are examined
_LONG: Final = 80  # characters; a longer cell is a sentence and no header


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row names the columns.

    The first row must hold short texts that all differ, no number and no date. Then one of these signs is enough:
    a column of numbers or dates below a word, a common column name (``price``), an identifier (``user_id``), or
    a column whose values repeat and never equal the first cell.
    """
    if len(rows) < 2:
        return False
    first = [cell.strip() for cell in rows[0]]
    names = [cell for cell in first if cell]
    below = [row for row in rows[1 : _SAMPLE + 1] if any(row)]
    if not below or len(names) < 2 or len(names) < len(first) - 1 or len(set(names)) < len(names):
        return False
    if any(len(cell) > _LONG or is_value(cell) for cell in names):
        return False
    if any(cell.lower() in _KNOWN or _NAME.fullmatch(cell) for cell in names):
        return True
    for column, cell in enumerate(first):
        values = [row[column].strip() for row in below if column < len(row) and row[column].strip()]
        if not cell or not values:
            continue
        if sum(is_value(text) or bool(_MEASURE.fullmatch(text[:40])) for text in values) * 10 >= 8 * len(values):
            return True
        different = set(values)
        if len(values) >= 5 and len(different) * 2 <= len(values) and cell not in different:
            return True
    return False


def count_headers(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of header rows of a grid: 0, 1, or 2 where the first row names groups of columns."""
    if has_header(rows):
        return 1
    if len(rows) < 3:
        return 0
    first, second = ([cell.strip() for cell in row] for row in rows[:2])
    groups = sum(map(bool, first))
    if not 1 < groups < sum(map(bool, second)) or any(is_value(cell) and not is_year(cell) for cell in first):
        return 0
    if any(map(is_value, second)) or sum(map(bool, second)) < len(second) - 1:
        return 0
    names, group = [], ""
    for above, cell in zip(first, second, strict=False):
        group = above or group
        names.append(f"{group} {cell}".strip())
    return 2 * has_header([names, *rows[2:]])


def is_year(text: str) -> bool:
    """Tell whether a text is a year of our time, which may head a column."""
    return len(text) == 4 and text.isdecimal() and text[:2] in ("19", "20")


def is_value(text: str) -> bool:
    """Tell whether a text is a number, an amount or a date."""
    return len(text) < 40 and bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))
