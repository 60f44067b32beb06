"""Reads a date that a page or document states, as ISO 8601; a date that can be read in two ways is not read."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from ..core.text.numbers import bounded_int

_LONGEST: Final = 64
_ISO: Final = re.compile(r"(\d{4})(?:[-/.](\d\d?)(?:[-/.](\d\d?))?)?")
_COMPACT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?!\d)")
_CLOCK: Final = re.compile(r"(?:[Tt]|[ \t]{1,3})(\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?[ \t]{0,3}([Zz]|[+-]\d\d:?\d\d)?")
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_NAMED: Final = re.compile(
    r"(?:[A-Za-z]{3,9},[ ]{0,3})?([A-Za-z]{3,9})\.?[ ]{1,3}(\d{1,2})(?:st|nd|rd|th)?,?[ ]{1,3}(\d{4})\b"
)
_DAY_FIRST: Final = re.compile(
    r"(?:[A-Za-z]{3,9},?[ ]{0,3})?(\d{1,2})(?:st|nd|rd|th)?[ ]{1,3}([A-Za-z]{3,9})\.?,?[ ]{1,3}(\d{4})\b"
)


def iso_date(stated: str) -> str:
    """Return a stated date as ISO 8601, no more exact than it was stated; '' where it is none, or not clear."""
    text = stated.strip()[:_LONGEST]
    result = _COMPACT.match(text) or _ISO.match(text)
    if result:
        year, month, day = (part or "" for part in result.groups())
        dated = _checked(year, month, day)
        clock = _CLOCK.match(text, result.end()) if dated and day else None
        return dated + _time(clock) if clock else dated if not text[result.end() : result.end() + 1].isalnum() else ""
    named = _NAMED.match(text)
    if named:
        return _checked(named[3], _month(named[1]), named[2])
    named = _DAY_FIRST.match(text)
    if named and ":" not in text:
        return _checked(named[3], _month(named[2]), named[1])
    from email.utils import parsedate_to_datetime  # here: it loads the network's modules, and few dates need it

    try:
        moment = parsedate_to_datetime(text)  # as in e-mail
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return moment.isoformat(timespec="seconds") if _checked(f"{moment.year:04d}", "", "") else ""


def _month(name: str) -> str:
    low = name.lower()
    return str(_MONTHS.index(low[:3]) + 1) if low[:3] in _MONTHS else "0"


def _checked(year: str, month: str, day: str) -> str:
    """Return the date with two digits a part; '' where no calendar has it."""
    numbers = [bounded_int(part, 0, most=9_999) for part in (year, month or "1", day or "1")]
    try:
        known = date(*numbers)
    except ValueError:
        return ""
    if not 1000 <= known.year <= 2199:
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
