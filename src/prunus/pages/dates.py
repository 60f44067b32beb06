"""Reads a date that a page or document states, as ISO 8601; a date that can be read in two ways is not read."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from ..core.text.date_words import month_numbers, weekdays
from ..core.text.numbers import bounded_int, in_ascii

_LONGEST: Final = 64
_ISO: Final = re.compile(r"(\d{4})(?:[-/.](\d\d?)(?:[-/.](\d\d?))?)?")
_COMPACT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?!\d)")
_YEAR_FIRST: Final = re.compile(r"(\d{4}) ?[.年년] ?(\d\d?) ?[.月월](?: ?(\d\d?)(?!\d))?")
_YEAR_LAST: Final = re.compile(r"(\d\d?)(?:([/-])(\d\d?)\2|\. ?(\d\d?)\. ?)(\d{4})(?!\w)")
_CLOCK: Final = re.compile(r"(?:[Tt]|[ \t]{1,3})(\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?[ \t]{0,3}([Zz]|[+-]\d\d:?\d\d)?")
_WORD: Final = re.compile(r"\d+|[^\s\d,.،/()]+(?:\.[^\s\d,.،/()]+)*")
_BESIDE: Final = frozenset("am d de del den di el er gada le m nd of rd st th the º ª г год года р року ที่ ค.ศ".split())
"""Words that stand beside the parts of a date: ``4 de marzo de 2024``, ``March 4th``, ``4 марта 2024 г.``"""

_DAY_FIRST: Final = frozenset(
    "ar bg ca cs da de el es et fi fr he hi hr id it lv nb nl nn no pl pt ro ru sk sl sr tr uk vi"
    " en-au en-gb en-ie en-in en-nz".split()
)
"""Languages, and English of some countries, in which 04/03/2024 and 04.03.2024 are the 4th of March."""

_EITHER: Final = ("us", "pr", "pa", "ca", "ph")
"""Countries where some write the month first in any language."""

_YEARS: Final = range(1500, 2070)
"""Other years are of other calendars: 1403 is a Persian year, 2080 one of Nepal, 2567 a Thai one."""


def iso_date(stated: str, language: str = "") -> str:
    """Return a stated date as ISO 8601, no more exact than it was stated; '' where it is none, or not clear.

    Names of months are known in the languages of ``date_words.txt``.

    :param language: tag of the page's language: it tells which month 04/03/2024 is in. '' when unknown.
    """
    text = in_ascii(" ".join(stated[:_LONGEST].replace("\u200f", "").split()))
    low = language.lower()
    result = _COMPACT.match(text) or _YEAR_FIRST.match(text) or _ISO.match(text)
    if result and result[2]:
        year, month, day = (part or "" for part in result.groups())
        dated = _checked(year, month, day)
        clock = _CLOCK.match(text, result.end()) if dated and day else None
        end = text[result.end() : result.end() + 1]
        return dated + _time(clock) if clock else dated if not end.isalnum() or end in "日일" else ""
    numbers = _YEAR_LAST.match(text)
    if numbers:
        return _of_numbers(numbers[5], numbers[1], numbers[3] or numbers[4], low)
    dated = (_as_in_mail(text) if ":" in text else "") or _of_words(text, low.split("-")[0])
    return dated or (_checked(result[1], "", "") if result and not text[4:5].isalnum() else "")


def _of_numbers(year: str, first: str, second: str, language: str) -> str:
    """Return a date that states its day and its month as numbers, before the year; '' where both could be either."""
    main, *rest = language.split("-")
    if bounded_int(second, 0, most=99) > 12:
        return _checked(year, first, second)
    is_day_first = (main in _DAY_FIRST or language in _DAY_FIRST) and not any(part in _EITHER for part in rest)
    return (
        _checked(year, second, first) if bounded_int(first, 0, most=99) > 12 or first == second or is_day_first else ""
    )


def _of_words(text: str, language: str) -> str:
    """Return a date with the name of its month, in any order; '' where any other word stands between its parts."""
    names = month_numbers()
    year = month = day = before = ""
    for match in _WORD.finditer(text.casefold()):
        word = match[0].removeprefix("d'").removeprefix("d’")
        number = names.get(language, {}).get(word) or names[""].get(word)
        if word.isdecimal() and len(word) == 4 and not year:
            year = word
        elif word.isdecimal() and len(word) < 3 and not day:
            day = word
        elif number and (not month or before in weekdays()):  # French "mar" is Tuesday, and March elsewhere
            month, before = str(number), word
        elif word not in _BESIDE and word not in weekdays():
            return ""
        if year and month and day:
            return _checked(year, month, day)
    return ""


def _as_in_mail(text: str) -> str:
    """Return a date with its time of day as e-mail writes it; '' where it is none."""
    from email.utils import parsedate_to_datetime  # here: it loads the network's modules, and few dates need it

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return moment.isoformat(timespec="seconds") if _checked(f"{moment.year:04d}", "", "") else ""


def _checked(year: str, month: str, day: str) -> str:
    """Return the date with two digits a part; '' where no calendar has it."""
    numbers = [bounded_int(part, 0, most=9_999) for part in (year, month or "1", day or "1")]
    try:
        known = date(*numbers)
    except ValueError:
        return ""
    if known.year not in _YEARS:
        return ""
    return known.isoformat()[: 10 if day else 7 if month else 4]


def _time(clock: re.Match[str]) -> str:
    """Return the time of day of an ISO date; '' where no clock shows it."""
    zone = (clock[2] or "").upper().replace("Z", "+00:00")
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    try:
        return datetime.fromisoformat(f"2000-01-01T{clock[1]}{zone}").isoformat(timespec="seconds")[10:]
    except ValueError:
        return ""
