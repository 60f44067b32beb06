"""The names of months and weekdays in the languages that dates are read in.

``date_words.txt`` holds those of CLDR: a line a language, with its code, its twelve months and its weekdays. Names are
case-folded, without a stop: full and short, in the forms that stand alone and in dates.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def month_numbers() -> dict[str, dict[str, int]]:
    """Return the numbers of months by their names, by language; under ``""`` the names that mean one month in all."""
    found: dict[str, dict[str, int]] = {"": {}}
    unclear = set()
    for language, *names in _lines():
        found[language] = {name: number for number, group in enumerate(names[:12], 1) for name in group.split("/")}
        unclear |= {name for name, number in found[language].items() if found[""].setdefault(name, number) != number}
    for name in unclear:  # as "listopada", November in Polish and October in Croatian
        del found[""][name]
    return found


@cache
def weekdays() -> frozenset[str]:
    """Return the words of the names of weekdays in all languages."""
    return frozenset(name for line in _lines() for name in line[13].split("/"))


def _lines() -> list[list[str]]:
    return [line.split(" ") for line in Path(__file__).with_name("date_words.txt").read_text("utf-8").splitlines()]
