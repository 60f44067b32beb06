"""Values in the words of a page: its numbers and dates, with their places."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from ...core.text.numbers import bounded_float, in_ascii
from ...pages.dates import iso_date

_NUMBER: Final = re.compile(
    r"(?<![\w.,])(?:[-\u2212](?=\d))?(?:\d{1,3}(?:[,.\u00a0\u202f']\d{3})+(?!\d)(?:[.,]\d{1,6})?|\d{1,15}(?:[.,]\d{1,6})?)"
    r"(?![\d\u2070-\u2079])"
)
_STRUCK: Final = re.compile(r"~~[^~\n]{1,200}~~")
_MONEY_BEFORE: Final = re.compile(r"(?:[€$£¥₹]|\b(?:EUR|USD|GBP|CHF))\s?$")
_MONEY_AFTER: Final = re.compile(r"\s?(?:[€$£¥₹]|(?:EUR|USD|GBP|CHF|euros?|dollars?|pounds?)\b)", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(?<![\w-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{4}\s?[年년]\s?\d{1,2}\s?[月월]\s?\d{1,2}\s?[日일]|\d{1,2}[./-]\d{1,2}[./-]\d{4}"
    r"|\d{1,2}(?:st|nd|rd|th|\.|º)?\s(?:de\s)?[^\W\d_]{3,12}\.?,?\s(?:de\s)?\d{4}|[^\W\d_]{3,12}\.?\s\d{1,2}(?:st|nd|rd|th)?,?\s\d{4})(?!\d)"
)
_DECIMAL_COMMA: Final = frozenset("cs da de el es fi fr hu it nb nl no pl pt ro ru sk sl sv tr uk".split())
"""Languages that write 1.250,50 for what others write 1,250.50."""


def numbers_in(text: str, language: str = "", money: bool = False) -> Iterator[tuple[float, int, int]]:
    """Yield the numbers of a text with their places; those that are struck out are none.

    :param language: tag of the page's language; it tells what a comma means.
    :param money: sums of money come first.
    """
    struck = [found.span() for found in _STRUCK.finditer(text)]
    starts = [start for start, _ in struck]
    found = []
    for match in _NUMBER.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before >= 0 and match.start() < struck[before][1]:
            continue
        value = bounded_float(_plain(match[0], language), None, most=1e15, least=-1e15)
        if value is not None:
            is_money = _MONEY_BEFORE.search(text[max(0, match.start() - 5) : match.start()]) or _MONEY_AFTER.match(
                text, match.end()
            )
            found.append((not is_money, value, match.start(), match.end()))
    if money:
        found.sort(key=lambda one: one[0])  # stable: in the order of the text otherwise
    return ((value, start, end) for _, value, start, end in found)


def _plain(number: str, language: str) -> str:
    """Return a number of a page as a computer writes it."""
    text = in_ascii(number).replace("\u2212", "-").replace("\u00a0", "").replace("\u202f", "").replace("'", "")
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = max(comma, point)
    elif comma >= 0 or point >= 0:
        decimal = max(comma, point)
        sign, thousands = text[decimal], len(text) - decimal == 4 and text[0] not in "0"
        by_comma = language.lower().split("-")[0] in _DECIMAL_COMMA
        if text.count(sign) > 1 or (thousands and (sign == ",") != by_comma):
            decimal = -1
    else:
        return text
    whole = re.sub(r"[.,]", "", text if decimal < 0 else text[:decimal])
    return whole if decimal < 0 else f"{whole}.{text[decimal + 1 :]}"


def dates_in(text: str, language: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield the days that a text states, as ISO 8601, with their places."""
    for match in _DATE.finditer(text):
        stated = iso_date(match[0], language)
        if len(stated) >= 10:
            yield stated[:10], match.start(), match.end()


def as_number(value: float, whole: bool) -> Any:
    """Return a number as JSON has it, None where it must be whole and is not."""
    is_whole = value == round(value)
    return round(value) if is_whole else None if whole else value
