"""Read whole numbers from text that somebody else wrote."""

from __future__ import annotations

import re
from typing import Final, TypeVar

_T = TypeVar("_T")

_WHOLE: Final = re.compile(r"[ \t\n\f\r]*([+-]?)([0-9]+)[ \t\n\f\r]*", re.ASCII)
_DIGITS: Final = 18
"""Digits that are read. Python refuses to read more than 4,300, and takes quadratic time for fewer."""


def bounded_int(text: str | None, otherwise: _T, *, least: int = 0, most: int) -> int | _T:
    """Return the whole number that a text states, moved into the limits.

    ``str.isdigit`` is True for ``²`` and ``int`` then raises an error; ``int`` raises one for over 4,300 digits too.
    This function raises none.

    :param text: ASCII digits with an optional sign; white space around them is ignored.
    :param otherwise: the result where the text is missing or states no whole number.
    :param least, most: the limits, at most 18 digits each; a number beyond one becomes the limit.
    """
    found = _WHOLE.fullmatch(text) if text else None
    if found is None:
        return otherwise
    digits = found[2].lstrip("0")
    number = int(digits or "0") if len(digits) <= _DIGITS else 10**_DIGITS
    return max(least, min(-number if found[1] == "-" else number, most))
