"""Write the numbers of lists as their documents print them: letters, Roman numerals, Chinese numerals, digits."""

from __future__ import annotations

import re
from typing import Final

from ....core.text.numbers import bounded_int
from .symbols import is_symbol_font, symbols

_PLAIN: Final = re.compile(r"\(?([1-9][0-9]{0,5})[.)]?")
_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_HAN: Final = "〇一二三四五六七八九"
_ALPHABETS: Final = {
    "a": "abcdefghijklmnopqrstuvwxyz",
    "а": "абвгдежзиклмнопрстуфхцчшщэюя",  # Word and LibreOffice leave out й ъ ы ь
    "α": "αβγδεζηθικλμνξοπρστυφχψω",
    "가": "가나다라마바사아자차카타파하",
    "甲": "甲乙丙丁戊己庚辛壬癸",
}
_MAX_REPEATS: Final = 10
_TICKS: Final = frozenset("✓✔✗✘☐☑☒")


def numeral(number: int, kind: str, *, doubles: bool = True) -> str:
    """Return a number as a list prints it; digits where the kind has no sign for it.

    :param kind: the first number of its kind: ``a``, ``A``, ``i``, ``I``, ``01``, ``一``, ``①`` and so on; '' for none.
    :param doubles: whether aa and bb come after z, as in Word, and not aa and ab.
    """
    alphabet = _ALPHABETS.get(kind.lower(), "")
    if kind == "01":
        return f"{number:02d}"
    if alphabet and 0 < number <= len(alphabet) * _MAX_REPEATS:
        times, at = divmod(number - 1, len(alphabet))
        written = alphabet[at] * (times + 1) if doubles or not times else alphabet[times - 1] + alphabet[at]
    elif kind in ("i", "I") and 0 < number < 4000:
        written = _roman(number)
    elif kind == "一" and 0 < number < 10_000:
        return _han(number)
    elif kind == "①" and 0 < number <= 20:
        return chr(0x2460 + number - 1)
    else:
        return str(number) if kind else ""
    return written.upper() if kind.isupper() else written


def _roman(number: int) -> str:
    written = ""
    for size, letters in _ROMAN:
        written += letters * (number // size)
        number %= size
    return written


def _han(number: int) -> str:
    """Return a number up to 9999 in Chinese and Japanese words: 二十三, 一百〇五."""
    written, gap = "", False
    for size, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        gap = gap or (not digit and bool(written))
        if digit:
            written += (_HAN[0] if gap else "") + _HAN[digit] + unit
            gap = False
    return written.removeprefix("一") if written.startswith("一十") else written


def plain_number(label: str) -> int | None:
    """Return the number of a label that a numbered list shows by itself, such as 7. or (7); None for other labels."""
    match = _PLAIN.fullmatch(label.strip())
    return bounded_int(match[1], None, most=999_999) if match else None


def is_said(label: str) -> bool:
    """Tell whether a label says something, as a word, a number or a tick does, and a bullet does not."""
    label = label.strip()
    return label != "o" and any(letter.isalnum() or letter in _TICKS for letter in label)


def bullet_of(font: str, text: str) -> str:
    """Return a bullet as its font shows it: a tick or several letters as they are, any other sign as •."""
    shown = symbols(font, text) if is_symbol_font(font) else text.strip()
    return shown if shown in _TICKS or (len(shown) > 1 and is_said(shown)) else "•"
