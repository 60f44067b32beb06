"""Fields of Word that have no result: what they show is drawn from their instruction.

``EQ`` writes fractions, roots, raised words and, in Chinese and Japanese documents, readings above words; ``SYMBOL``
one character of a font; ``MACROBUTTON`` the words to click on (ECMA-376, part 1, 17.16.5).
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from ....core.text.numbers import bounded_int
from .._common.symbols import is_symbol_font, symbol

_KIND: Final = re.compile(r"\s{0,50}(EQ|SYMBOL|MACROBUTTON)\s{1,50}", re.I)
_MACRO: Final = re.compile(r"\S{1,200}\s{1,50}(.*)", re.S)
_CODE: Final = re.compile(r"(0x[0-9a-f]{1,6}|\d{1,7})\b", re.I)
_FONT: Final = re.compile(r'\\f\s{0,50}"?([^"\\]{1,100})', re.I)
_GENERAL: Final = re.compile(r'\\\*\s{0,50}(?:"[^"]{0,200}"|[^\s\\"]{1,100})\s{0,50}')
"""Switches of every field; those of readings name their font and size."""

_FUNCTION: Final = re.compile(r"\\([a-z])", re.I)
_OPTION: Final = re.compile(
    r"\s{0,9}\\(up|do|su|pr|in|lc|rc|bc|fc|vc|a[clrd]|co|vs|hs|ai|di|to|bo|le|ri|fo|ba|li)", re.I
)
_NUMBER: Final = re.compile(r"\s{0,9}-?\d{0,6}\s{0,9}")
_RAISED: Final = re.compile(r"<sup>[^<>]{1,200}</sup>")
_DEEPEST: Final = 20
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}


def drawn(instruction: str) -> str | None:
    """Return what a field shows as HTML; None for a field of another kind."""
    kind = _KIND.match(instruction)
    if not kind:
        return None
    said = instruction[kind.end() :].strip()
    if kind[1].upper() == "EQ":
        return _Equation(_GENERAL.sub("", said)).html()
    if kind[1].upper() == "SYMBOL":
        return _character(said)
    words = _MACRO.match(said)
    return escape(words[1].strip(), quote=False) if words else ""


def _character(said: str) -> str:
    code, font = _CODE.match(said), _FONT.search(said)
    if not code:
        return ""
    number = bounded_int(code[1], 0, most=0x10FFFF, base=16 if code[1][:2].lower() == "0x" else 10)
    if font and is_symbol_font(font[1]):
        return escape(symbol(font[1], number), quote=False)
    return escape(chr(number), quote=False) if 0x20 < number < 0xD800 else ""


class _Equation:
    """Reads an instruction of ``EQ`` once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def html(self) -> str:
        """Return the whole equation as HTML."""
        parts = [self._part(0)]
        while self._at < len(self._text):  # a stray comma or bracket is a sign like others
            parts.append(escape(self._text[self._at], quote=False))
            self._at += 1
            parts.append(self._part(0))
        return "".join(parts).strip()

    def _part(self, depth: int) -> str:
        """Read up to the comma or the bracket that ends a part."""
        written, text, plain = [], self._text, 0
        while self._at < len(text) and text[self._at] not in ",;)":
            sign = text[self._at]
            function = _FUNCTION.match(text, self._at) if sign == "\\" and depth < _DEEPEST else None
            if function:
                self._at = function.end()
                written.append(self._drawn(function[1].lower(), depth + 1))
                continue
            if sign == "\\" and self._at + 1 < len(text):  # an escaped comma or bracket
                self._at += 1
                sign = text[self._at]
            elif sign == "(":
                plain += 1
            written.append(escape(sign, quote=False))
            self._at += 1
            while plain and self._at < len(text) and text[self._at] in ",;)":  # brackets that belong to no function
                plain -= text[self._at] == ")"
                written.append(escape(text[self._at], quote=False))
                self._at += 1
        return "".join(written)

    def _drawn(self, name: str, depth: int) -> str:
        """Read the options and the parts of a function, and draw it."""
        options: dict[str, str] = {}
        while option := _OPTION.match(self._text, self._at):
            self._at = option.end()
            chosen = option[1].lower()
            if chosen in ("lc", "rc", "bc", "fc", "vc") and self._text[self._at : self._at + 1] == "\\":
                options[chosen] = self._text[self._at + 1 : self._at + 2]
                self._at += 2
            else:
                options[chosen] = ""
                number = _NUMBER.match(self._text, self._at)
                self._at = number.end() if number else self._at
        parts = self._parts(depth)
        return _function(name, options, parts)

    def _parts(self, depth: int) -> list[str]:
        parts: list[str] = []
        if self._text[self._at : self._at + 1] != "(":
            return parts
        while self._at < len(self._text):
            self._at += 1  # the bracket or the comma before it
            parts.append(self._part(depth).strip())
            if self._text[self._at : self._at + 1] == ")":
                self._at += 1
                break
        return parts


def _function(name: str, options: dict[str, str], parts: list[str]) -> str:
    """Draw a function: ``f`` a fraction, ``r`` a root, ``s`` raised or lowered words, ``o`` words over each other."""
    first, second = (*parts, "", "")[:2]
    if name == "f":
        return f"{_group(first)}/{_group(second)}"
    if name == "r":
        return f"root({first}, {second})" if first and second else f"√({first or second})"
    if name == "s":
        return "".join(f"<sub>{part}</sub>" if "do" in options else f"<sup>{part}</sup>" for part in parts if part)
    if name == "o" and _RAISED.fullmatch(first) and second and len(parts) == 2:  # a reading above a word
        return f"<ruby>{second}<rt>{first[5:-6]}</rt></ruby>"
    if name == "b":
        both = options.get("bc", "" if options else "(")
        left, right = options.get("lc", both), options.get("rc", _BRACKETS.get(both, both))
        return escape(left, quote=False) + ", ".join(parts) + escape(right, quote=False)
    if name == "i":
        sign = "Σ" if "su" in options else "Π" if "pr" in options else "∫"
        low, high, inner = (*parts, "", "", "")[:3]
        low, high = (f"<sub>{low}</sub>" if low else "", f"<sup>{high}</sup>" if high else "")
        return f"{sign}{low}{high} {inner}"
    return ("" if name in "ox" else ", ").join(parts) if name != "d" else ""


def _group(html: str) -> str:
    return html if html.isalnum() or len(html) < 2 else f"({html})"
