"""Read numbers that somebody else wrote: in a page, a document, a header, a server's answer or a model's reply."""

from __future__ import annotations

import math
import re
from typing import Final, TypeVar
from unicodedata import decimal

_T = TypeVar("_T")

_WHOLE: Final = re.compile(r"[ \t\n\f\r]*([+-]?)([0-9]+)[ \t\n\f\r]*", re.ASCII)
_HEX: Final = re.compile(r"[ \t\n\f\r]*()([0-9A-Fa-f]+)[ \t\n\f\r]*", re.ASCII)
_DECIMAL: Final = re.compile(r"[ \t\n\f\r]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\f\r]*", re.ASCII)
_LARGEST: Final = 1 << 1023  # a larger whole number does not fit a float
_DIGITS: Final = 18
"""Digits that are read. Python refuses to read more than 4,300, and takes quadratic time for fewer."""


def bounded_int(value: object, otherwise: _T, *, least: int = 0, most: int, base: int = 10) -> int | _T:
    """Return the whole number that a text or a value of JSON states, moved into the limits.

    ``str.isdigit`` is True for ``²`` and ``int`` then raises an error; ``int`` raises one for over 4,300 digits too.
    This function raises none.

    :param value: ASCII digits with an optional sign; white space around them is ignored. Or a whole number.
    :param otherwise: the result where the value is missing or states no whole number.
    :param least, most: the limits, at most 18 digits each; a number beyond one becomes the limit.
    :param base: 10 or 16; numbers of base 16 have no sign.
    """
    if not isinstance(value, str):
        number = _whole(value)
        return otherwise if number is None else max(least, min(number, most))
    result = _WHOLE.fullmatch(value) if base == 10 else _HEX.fullmatch(value)
    if result is None:
        return otherwise
    digits = result[2].lstrip("0")
    number = int(digits or "0", base) if len(digits) <= _DIGITS else 10**_DIGITS
    return max(least, min(-number if result[1] == "-" else number, most))


def bounded_float(
    value: object, otherwise: _T, *, least: float = 0.0, most: float = math.inf, longest: int = 400
) -> float | _T:
    """Return the number that a text or a value of JSON states, moved into the limits; raises no error.

    :param value: decimal ASCII digits, with an optional sign, point and exponent; white space around is ignored. Or a
        number.
    :param otherwise: the result where the value is missing, states no number, or is not a number (NaN).
    :param least, most: the limits; a number beyond one becomes the limit.
    :param longest: code points of a text that is read at most; a longer one states no number.
    """
    number: int | float
    if isinstance(value, str):
        if len(value) > longest or not _DECIMAL.fullmatch(value):
            return otherwise
        number = float(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        number = value
    else:
        return otherwise
    if isinstance(number, int) and abs(number) > _LARGEST:
        number = math.inf if number > 0 else -math.inf
    return float(max(least, min(number, most)))


def in_ascii(digits: str) -> str:
    """Return a text with the decimal digits of every script as ASCII digits."""
    return digits if digits.isascii() else "".join(str(decimal(letter, letter)) for letter in digits)


def _whole(value: object) -> int | None:
    """Return a value of JSON as a whole number; None where it is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
