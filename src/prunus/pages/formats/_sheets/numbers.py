"""Show numbers as a spreadsheet does: the number format codes of ECMA-376 (part 1, section 18.8.30)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

BUILT_IN: Final[dict[int, str]] = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0", 6: "$#,##0", 7: "$#,##0.00", 8: "$#,##0.00",
    9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "General", 13: "General", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
    16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 41: "#,##0", 42: "$#,##0",
    43: "#,##0.00", 44: "$#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "0.0E+0", 49: "@",
}  # fmt: skip
"""Built-in format codes by format id. Ids 14 and 22 depend on the reader's country; here they are ISO dates."""

_LITERAL: Final = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*+)[^\]]*+\]|\[(?!h++\]|m++\]|s++\])[^\]]*+\]', re.I | re.S
)
_DATE: Final = re.compile(r"[ymdhs]", re.I)
_TOKEN: Final = re.compile(r"\[h+\]|\[m+\]|\[s+\]|y+|m+|d+|h+|s+(?:\.0+)?|AM/PM|A/P|[^\[ymdhsa]+|.", re.I | re.S)
_DIGITS: Final = re.compile(r"(?:[#0?][#0?,]*(?:\.[#0?]*)?|\.[0#?]+)(?:E[+-]0+)?,*", re.I)
_MONTHS: Final = "January February March April May June July August September October November December".split()
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MAX_CODE: Final = 300  # characters; a bound for hostile files
_MAX_TOKENS: Final = 30  # parts of the code of a date; "yyyy-mm-dd hh:mm:ss AM/PM" has 13
_LITERALS: Final = 0xE000  # private-use characters stand for the literal texts of a code
_PRIVATE: Final = re.compile("[\ue000-\uf8ff]")


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of a code. Private-use characters replace its literal texts.

    :param tokens: of a date: its parts, and whether each stands for minutes.
    """

    code: str
    texts: tuple[str, ...]
    tokens: tuple[tuple[str, bool], ...]
    twelve_hours: bool

    def fill(self, text: str) -> str:
        return _PRIVATE.sub(lambda letter: self.texts[ord(letter[0]) - _LITERALS], text).strip()


class Code:
    """A parsed format code. Parse it once and format many numbers.

    :param epoch_1904: count days from 1904, as old Excel versions for Mac did.
    """

    def __init__(self, code: str, epoch_1904: bool = False) -> None:
        self._sections = _sections_of(code)
        self._epoch_1904 = epoch_1904

    def format_number(self, number: float) -> str:
        """Return a number as the code shows it, or the plain number where the code does not fit it."""
        if not abs(number) < 1e21:  # also true of NaN
            return plain(number)
        parts = self._sections
        section = parts[0]
        signed = True
        if len(parts) > 1 and number < 0 and parts[1].code:
            section, signed = parts[1], False
        elif len(parts) > 2 and number == 0 and parts[2].code:
            section = parts[2]
        if section.tokens:
            return section.fill(_date(number, section, self._epoch_1904)) or plain(number)
        return section.fill(_number(number if signed else abs(number), section.code))


def _sections_of(code: str) -> list[_Section]:
    """Return the sections of a code: for positive numbers, negative numbers, zero, and text."""
    sections: list[_Section] = []
    texts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literal = match[1] or match[2] or match[3] or (" " if match[0][0] == "_" else "")
        texts.append(literal)
        return chr(_LITERALS + len(texts) - 1)

    for part in _LITERAL.sub(keep, _PRIVATE.sub("", code[:_MAX_CODE])).split(";")[:4]:
        low = part.lower()
        is_date = "general" not in low and bool(_DATE.search(low.replace("e+", "").replace("e-", "")))
        tokens = tuple(_date_tokens(part)) if is_date else ()
        twelve_hours = any(token.upper() in ("AM/PM", "A/P") for token, _ in tokens)
        sections.append(_Section(part, tuple(texts), tokens, twelve_hours))
    return sections


def _date_tokens(code: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of the code of a date, and whether each stands for minutes."""
    tokens = [match[0] for match in islice(_TOKEN.finditer(code), _MAX_TOKENS)]
    before = ""
    for place, token in enumerate(tokens):
        letter = token.lower().lstrip("[")[:1]
        after = next((low for low in (follower[0].lower() for follower in tokens[place + 1 :]) if low in "ymdhs"), "")
        yield token, token[0] in "mM" and len(token) <= 2 and (before == "h" or after == "s")
        before = letter if letter and letter in "ymdhs" else before


def plain(number: float) -> str:
    """Return a number as the format General shows it. Whole numbers below 1e15 are written in full."""
    if not math.isfinite(number):
        return str(number)
    if number % 1 == 0 and abs(number) < 1e15:
        return f"{number:.0f}"
    return f"{number:.11g}".replace("e+", "E+").replace("e-", "E-")


def _number(number: float, code: str) -> str:
    if "general" in code.lower():
        return re.sub("general", plain(number), code, flags=re.I)
    if "/" in code or "@" in code:
        return plain(number)
    digits = _DIGITS.search(code)
    if digits is None:
        return code
    pattern = digits[0]
    scaled = number * 100 ** min(code.count("%"), 3)
    while pattern.endswith(","):
        pattern, scaled = pattern[:-1], scaled / 1000
    mantissa, exponent, _ = pattern.upper().partition("E")
    places = min(len(mantissa.partition(".")[2]), 15)
    optional = len(mantissa) - len(mantissa.rstrip("#?")) if "." in mantissa else 0
    if exponent:
        text = f"{scaled:.{places}E}"
    else:
        text = f"{scaled:,.{places}f}" if "," in mantissa else f"{scaled:.{places}f}"
        text = _without_zeros(text, min(optional, places))
        text = _padded(text, mantissa)
    return code[: digits.start()] + text + code[digits.end() :]


def _without_zeros(text: str, optional: int) -> str:
    for _ in range(optional):
        text = text[:-1] if text.endswith("0") else text
    return text.rstrip(".") if optional else text


def _padded(text: str, mantissa: str) -> str:
    """Add leading zeros: 123 becomes 00123 with the code 00000."""
    wanted = mantissa.partition(".")[0].count("0")
    whole, point, rest = text.lstrip("-").partition(".")
    sign = "-" if text.startswith("-") else ""
    if wanted == 0 and whole == "0" and point:
        whole = ""
    return f"{sign}{whole.zfill(wanted)}{point}{rest}"


def _date(number: float, section: _Section, epoch_1904: bool) -> str:
    """Return a day number as a date in the form of its code, or '' where it is out of range."""
    if not 0 <= number < 2_958_466:  # 31 December 9999 is the last day of Excel
        return ""
    days = min(number + 1462, 2_958_465) if epoch_1904 else number
    if days < 60:
        days += 1  # the standard counts a 29 February 1900, which never existed
    rounded = round(days * 86_400, 3) if ".0" in section.code else round(days * 86_400)
    moment = datetime(1899, 12, 30) + timedelta(seconds=rounded)
    parts: list[str] = []
    for token, minutes in section.tokens:
        low = token.lower()
        if low[0] == "m":
            parts.append(f"{moment.minute:0{len(low)}}" if minutes else _month(moment, len(low)))
        elif low[0] == "[" and len(low) > 1:
            whole = int(round(number * 86_400) // {"h": 3600, "m": 60, "s": 1}[low[1]])
            parts.append(str(whole).zfill(len(low) - 2))
        else:
            parts.append(_part(moment, low, token, section.twelve_hours))
    return "".join(parts)


def _month(moment: datetime, size: int) -> str:
    name = _MONTHS[moment.month - 1]
    if size >= 3:
        return {3: name[:3], 5: name[:1]}.get(size, name)
    return f"{moment.month:0{size}}"


def _part(moment: datetime, low: str, token: str, twelve_hours: bool) -> str:
    size = len(low)
    if low[0] == "y":
        return f"{moment.year:04}" if size > 2 else f"{moment.year % 100:02}"
    if low[0] == "d":
        return f"{moment.day:0{size}}" if size <= 2 else _DAYS[moment.weekday()][: 3 if size == 3 else None]
    if low[0] == "h":
        return f"{(moment.hour % 12 or 12) if twelve_hours else moment.hour:0{min(size, 2)}}"
    if low[0] == "s":
        whole, point, rest = low.partition(".")
        fraction = f"{moment.microsecond:06}"[: len(rest)] if point else ""
        return f"{moment.second:0{min(len(whole), 2)}}{point}{fraction}"
    if low in ("am/pm", "a/p"):
        return ("AM" if moment.hour < 12 else "PM") if low == "am/pm" else ("A" if moment.hour < 12 else "P")
    return token
