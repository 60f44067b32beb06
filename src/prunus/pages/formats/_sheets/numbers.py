"""Show numbers as a spreadsheet does: the number format codes of ECMA-376 (part 1, section 18.8.30)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Final

from ....core.text.numbers import bounded_float, bounded_int

BUILT_IN: Final[dict[int, str]] = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0", 6: "$#,##0", 7: "$#,##0.00", 8: "$#,##0.00",
    9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
    16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)", 41: "#,##0", 42: "$#,##0", 43: "#,##0.00", 44: "$#,##0.00", 45: "mm:ss",
    46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    **dict.fromkeys((27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33, 34, 35, 55, 56), "h:mm:ss"),
}  # fmt: skip
"""Built-in format codes by format id. Ids 14 and 22 depend on the reader's country; here they are ISO dates.

Ids 27 to 36 and 50 to 58 are dates and times of East Asian countries.
"""

_LITERAL: Final = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*+)[^\]]*+\]|\[(?!h++\]|m++\]|s++\])[^\]]*+\]', re.I | re.S
)
_DATE: Final = re.compile(r"[ymdhs]", re.I)
_TOKEN: Final = re.compile(
    r"\[h+\]|\[m+\]|\[s+\](?:\.0+)?|y+|m+|d+|h+|s+(?:\.0+)?|AM/PM|A/P|e+|g+|[^\[ymdhsaeg]+|.", re.I | re.S
)
_DIGITS: Final = re.compile(r"(?:[#0?][#0?,]*(?:\.[#0?]*)?|\.[0#?]+)(?:E[+-][0#?]+)?,*", re.I)
_FRACTION: Final = re.compile(r"(?:([#0?]{1,15})([^#0?/.]{1,3}))?([#0?]{1,15})/([#0?]{1,15}|[1-9]\d{0,4})")
_NOT_ZERO: Final = re.compile("[1-9]")
_CONDITION: Final = re.compile(r"\[(<=|>=|<>|<|>|=) {0,20}(-?[\d.]{1,20}(?:E[+-]?\d{1,3})?)\]", re.I)
_MONTHS: Final = "January February March April May June July August September October November December".split()
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MAX_CODE: Final = 300  # characters; a bound for hostile files
_MAX_GROUPS: Final = 20  # groups of digits of a code
_MAX_TOKENS: Final = 30  # parts of the code of a date; "yyyy-mm-dd hh:mm:ss AM/PM" has 13
_LITERALS: Final = 0xE000  # private-use characters stand for the literal texts of a code
_PRIVATE: Final = re.compile("[\ue000-\uf8ff]")


_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of a code. Private-use characters replace its literal texts.

    :param condition: which numbers the section shows: an operator of ``_HOLDS`` and a limit; None by its place.
    :param tokens: of a date: its parts, and whether each stands for minutes.
    """

    code: str
    texts: tuple[str, ...]
    condition: tuple[str, float] | None
    tokens: tuple[tuple[str, bool], ...]
    twelve_hours: bool

    def holds(self, number: float) -> bool:
        """Tell whether the section's own condition holds for a number."""
        return self.condition is not None and _HOLDS[self.condition[0]](number, self.condition[1])

    def literal(self, text: str) -> str:
        """Return a text with the literals in their places."""
        return _PRIVATE.sub(lambda letter: self.texts[ord(letter[0]) - _LITERALS], text)

    def fill(self, text: str) -> str:
        return self.literal(text).strip()


class Code:
    """A parsed format code. Parse it once and format many numbers.

    :param epoch_1904: count days from 1904, as old Excel versions for Mac did.
    """

    def __init__(self, code: str, epoch_1904: bool = False) -> None:
        sections = _sections_of(code)
        self._for_text = sections[-1] if len(sections) == 4 or "@" in sections[-1].code else None
        if len(sections) > 1 and "@" in sections[-1].code:
            sections.pop()  # it shows texts
        self._sections = sections[:3]
        first = sections[0].condition
        self._splits_at_zero = first in (None, (">", 0), (">=", 0)) or len(sections) > 2
        self._epoch_1904 = epoch_1904

    def format_number(self, number: float) -> str:
        """Return a number as the code shows it, or the plain number where the code does not fit it."""
        if not abs(number) < 1e21:  # also true of NaN
            return plain(number)
        place = self._place(number)
        if place is None:
            return plain(number)
        section = self._sections[place]
        if not section.code:
            return ""  # an empty section hides its numbers
        if section.tokens:
            return section.fill(_date(number, section, self._epoch_1904)) or plain(number)
        only_negative = place == 1 and section.condition is None and self._splits_at_zero
        only_negative = only_negative or section.condition == ("<", 0)
        return section.fill(_number(abs(number) if only_negative else number, section.code))

    def format_text(self, text: str) -> str:
        """Return a text as the code shows it: in the place of its ``@``; '' where its section of the code is empty."""
        section = self._for_text
        if section is None or "general" in section.code.lower():
            return text
        # piece by piece, since the text may hold the letters that stand for literals
        first, *pieces = (section.literal(piece) for piece in section.code.split("@"))
        if not pieces:
            return first.strip()
        *inner, last = pieces
        return text.join((first.lstrip(), *inner, last.rstrip()))

    def _place(self, number: float) -> int | None:
        """Return the place of the section that shows a number, or None where none does."""
        first, count = self._sections[0], len(self._sections)
        by_place = number > 0 or (number == 0 and count == 2)
        if first.holds(number) if first.condition else by_place or count == 1:
            return 0
        if count == 1:
            return None
        second = self._sections[1]
        if second.holds(number) if second.condition else number < 0 or count == 2:
            return 1 if second.code or count > 2 else 0
        return 2 if count > 2 else None


def _sections_of(code: str) -> list[_Section]:
    """Return the sections of a code: for positive numbers, negative numbers, zero, and text."""
    sections: list[_Section] = []
    texts: list[str] = []
    conditions: dict[str, tuple[str, float]] = {}

    def keep(match: re.Match[str]) -> str:
        literal = match[1] or match[2] or match[3] or (" " if match[0][0] == "_" else "")
        texts.append(literal)
        letter = chr(_LITERALS + len(texts) - 1)
        condition = _CONDITION.fullmatch(match[0])
        if condition is not None:
            conditions[letter] = (condition[1], bounded_float(condition[2], 0.0, least=-math.inf))
        return letter

    for part in _LITERAL.sub(keep, _PRIVATE.sub("", code[:_MAX_CODE])).split(";")[:4]:
        low = part.lower()
        is_date = "general" not in low and bool(_DATE.search(low.replace("e+", "").replace("e-", "")))
        tokens = tuple(_date_tokens(part)) if is_date else ()
        twelve_hours = any(token.upper() in ("AM/PM", "A/P") for token, _ in tokens)
        condition = next((conditions[letter] for letter in part if letter in conditions), None)
        sections.append(_Section(part, tuple(texts), condition, tokens, twelve_hours))
    return sections


def _date_tokens(code: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of the code of a date, and whether each stands for minutes."""
    tokens = [match[0] for match in islice(_TOKEN.finditer(code), _MAX_TOKENS)]
    before = ""
    for index, token in enumerate(tokens):
        letter = token.lower().lstrip("[")[:1]
        after = next((low for low in (follower[0].lower() for follower in tokens[index + 1 :]) if low in "ymdhs"), "")
        yield token, token[0] in "mM" and len(token) <= 2 and (before == "h" or after == "s")
        before = letter if letter and letter in "ymdhs" else before


def plain(number: float) -> str:
    """Return a number as the format General shows it, in up to 11 characters.

    Whole numbers below 1e15 are written in full, which are mostly numbers of things.
    """
    if not math.isfinite(number):
        return str(number)
    if number % 1 == 0 and abs(number) < 1e15:
        return f"{number:.0f}"
    text = f"{number:.11g}"
    if len(text) <= 11 and "e" not in text:
        return text
    size, sign = abs(number), "-" if number < 0 else ""
    if size < 1e11:
        places = max(0, min(9, 10 - len(str(math.floor(size)))))
        text = f"{_rounded(size, places):.{places}f}"
        if size >= 1e-4 or Decimal(text) == Decimal(f"{size:.14e}"):
            return sign + _without_zeros(text, places)
    digits, _, exponent = f"{_rounded(size, 0):.5E}".partition("E")
    return f"{sign}{_without_zeros(digits, 5)}E{exponent[0]}{exponent[1:].zfill(2)}"


def _number(number: float, code: str) -> str:
    sign, size = ("-" if number < 0 else ""), abs(number)
    if "general" in code.lower():
        return sign + re.sub("general", plain(size), code, flags=re.I)
    if "/" in code or "@" in code:
        slash = code.find("/")
        fraction = _FRACTION.search(code, max(0, slash - 36), slash + 16)  # nearby only: each cell asks again
        if fraction is None or size >= 1e15:
            return plain(number)
        return sign + code[: fraction.start()] + _fraction(size, fraction) + code[fraction.end() :]
    groups = list(islice(_DIGITS.finditer(code), _MAX_GROUPS))
    if not groups:
        return code
    size *= 100 ** min(code.count("%"), 3)
    if len(groups) > 1:
        *before, last = (group[0].upper() for group in groups)
        if "E" in last or last.endswith(",") or any("." in group or "E" in group for group in before):
            return plain(number)
        text = _spread_digits(size, code, groups[-1])
    else:
        text = code[: groups[0].start()] + _digits(size, groups[0][0]) + code[groups[0].end() :]
    return sign + text if sign and _NOT_ZERO.search(text) else text  # there is no negative zero


def _digits(number: float, pattern: str) -> str:
    """Return a number from 0 in the form of a group of digits, as ``#,##0.00`` or ``0.0E+00``."""
    mantissa, exponent, _ = pattern.upper().rstrip(",").partition("E")
    whole, point, decimals = mantissa.partition(".")
    scale = len(pattern) - len(pattern.rstrip(",")) + len(whole) - len(whole.rstrip(","))
    number, whole = number / 1000 ** min(scale, 100), whole.rstrip(",")
    places = min(len(decimals), 15)
    optional = len(decimals) - len(decimals.rstrip("#?")) if point else 0
    if exponent:
        return _scientific(number, pattern.upper().rstrip(","), len(whole), places)
    grouped = "," if "," in whole else ""
    text = _without_zeros(f"{_rounded(number, places):{grouped}.{places}f}", min(optional, places))
    return _padded(text, whole, bool(grouped))


def _rounded(number: float | Decimal, places: int) -> Decimal:
    """Return a number that Python rounds as Excel does: by its first 15 digits, and halves away from zero."""
    digits = f"{number:.14e}"
    is_cut = 0 < number < 10.0 ** (14 - places)  # otherwise all 15 digits are shown, or zero
    return Decimal(digits.replace("e", "01e") if is_cut else digits)


def _scientific(number: float, pattern: str, step: int, places: int) -> str:
    """Return a number with an exponent that is a multiple of ``step``."""
    exact, step = Decimal(f"{number:.14e}"), max(step, 1)
    power = exact.adjusted() // step * step if exact else 0
    text = f"{_rounded(exact.scaleb(-power), places):.{places}f}"
    if len(text.partition(".")[0]) > step:  # 9.99 has become 10.0
        power += step
        text = f"{_rounded(exact.scaleb(-power), places):.{places}f}"
    sign = "-" if power < 0 else "+" if "+" in pattern else ""
    return f"{text}E{sign}{str(abs(power)).zfill(pattern.rpartition('E')[2].count('0'))}"


def _spread_digits(number: float, code: str, last: re.Match[str]) -> str:
    """Return a number from 0 whose digits a code groups by other letters than commas: ``# ##0.00``.

    :param last: the last group of digits, which may hold a decimal point.
    """
    whole, point, decimals = last[0].partition(".")
    places = min(len(decimals), 15)
    optional = min(len(decimals) - len(decimals.rstrip("#?")), places)
    digits, _, rest = f"{_rounded(number, places):.{places}f}".partition(".")
    if not point:
        return _spread(digits, code)
    shown = _without_zeros(f".{rest}", optional)
    return _spread(digits, code[: last.start() + len(whole)]).lstrip() + shown + code[last.end() :]


def _spread(digits: str, code: str) -> str:
    """Put the digits of a whole number into the places of a code, from the right: ``000-00-0000``."""
    left, parts = list(digits.lstrip("0")), []
    first = min(code.find(mark) % (len(code) + 1) for mark in "#0?")
    for index in range(len(code) - 1, -1, -1):
        mark = code[index]
        if mark in "#0?":
            parts.append(left.pop() if left else "0" if mark == "0" else "")
            if index == first:
                parts.append("".join(left))
        elif mark != ",":
            parts.append(mark)
    return "".join(reversed(parts))


def _fraction(number: float, pattern: re.Match[str]) -> str:
    """Return a number from 0 as ``1 1/2``; without a place for whole ones as ``3/2``."""
    exact = Fraction(Decimal(f"{number:.14e}"))
    whole = exact.__floor__() if pattern[1] else 0
    rest = exact - whole
    if pattern[4].strip("#0?"):
        under = bounded_int(pattern[4], 1, least=1, most=99_999)
        over = (rest * under + Fraction(1, 2)).__floor__()
    else:
        over, under = rest.limit_denominator(10 ** min(len(pattern[4]), 5) - 1).as_integer_ratio()
    if pattern[1] and over == under:
        whole, over = whole + 1, 0
    part = f"{over}/{under}" if over or not pattern[1] else ""
    return f"{whole or ''} {part}".strip() or "0"


def _without_zeros(text: str, optional: int) -> str:
    for _ in range(optional):
        text = text[:-1] if text.endswith("0") else text
    return text.rstrip(".") if optional else text


def _padded(text: str, pattern: str, grouped: bool) -> str:
    """Add leading zeros: 123 becomes 00123 with the code 00000, and 0,123 with 0,000."""
    wanted = pattern.count("0")
    whole, point, rest = text.partition(".")
    if wanted == 0 and whole == "0" and point:
        whole = ""
    missing = wanted - len(whole.replace(",", ""))
    if grouped and missing > 0:
        digits = whole.replace(",", "").zfill(wanted)
        first = len(digits) % 3 or 3
        whole = ",".join((digits[:first], *(digits[at : at + 3] for at in range(first, wanted, 3))))
    return f"{whole.zfill(wanted)}{point}{rest}"


def _date(number: float, section: _Section, epoch_1904: bool) -> str:
    """Return a day number as a date in the form of its code, or '' where it is out of range."""
    if not 0 <= number < 2_958_466:  # 31 December 9999 is the last day of Excel
        return ""
    days = min(number + 1462, 2_958_465) if epoch_1904 else number
    if days < 60:
        days += 1  # the standard counts a 29 February 1900, which never existed
    places = min(max((token.count("0") for token, _ in section.tokens if "." in token), default=0), 3)
    seconds = min(round(days * 86_400, places), 2_958_466 * 86_400 - 1)  # rounded, the last moment would be after 9999
    moment = datetime(1899, 12, 30) + timedelta(seconds=seconds)
    parts: list[str] = []
    for token, minutes in section.tokens:
        low = token.lower()
        if low[0] == "m":
            parts.append(f"{moment.minute:0{len(low)}}" if minutes else _month(moment, len(low)))
        elif low[0] == "[" and len(low) > 1:
            whole = int(round(number * 86_400, places) // {"h": 3600, "m": 60, "s": 1}[low[1]])
            fraction = f"{moment.microsecond:06}"[: low.count("0")]
            parts.append(str(whole).zfill(low.find("]") - 1) + (f".{fraction}" if fraction else ""))
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
    if low[0] in "ye":
        return f"{moment.year:04}" if size > 2 or low[0] == "e" else f"{moment.year % 100:02}"
    if low[0] == "g":  # the name of an era; e is its year, of our era here
        return ""
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
