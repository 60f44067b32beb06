"""Puts words into elements that a page makes boxes to tick and gauges by their roles, as real ones have them."""

from __future__ import annotations

from typing import Final

from .elements import BOXES
from .parse import Document, Element, Text

_STATES: Final = "[aria-checked],[aria-valuenow],[aria-valuetext]"
_TICKED: Final = frozenset({"checkbox", "radio", "switch"})
_GAUGES: Final = frozenset({"meter", "progressbar"})
_HOLD_WORDS: Final = frozenset("a b button div em i label li p span strong td th".split())
_SIGNS: Final = frozenset("☐☑☒✓✔✗✘")
_MOST: Final = 10_000  # elements of a page
_LONGEST: Final = 100  # code points of a value


def show_states(document: Document) -> None:
    """Put the words into the page that say what its boxes and gauges show."""
    for element in document.select(_STATES)[:_MOST]:
        above = element.parent
        if isinstance(above, Element) and above.closest(_STATES) is not None:
            continue  # in another one
        if element.tag in _HOLD_WORDS or "-" in element.tag:
            role = element.attr("role")
            words = _tick(element) if role in _TICKED else _value(element) if role in _GAUGES else ""
            if words:
                element.insert(0, Text(words))


def _tick(element: Element) -> str:
    """Return the sign of a box; '' where it shows one itself."""
    checked = (element.attr("aria-checked") or "").lower()
    if checked not in ("true", "false") or element.select_one("input") is not None:
        return ""
    return "" if _first_words(element)[:1] in _SIGNS else f" {BOXES[checked == 'true']} "


def _value(element: Element) -> str:
    """Return what a gauge shows; '' where it has words of its own."""
    if _first_words(element) or element.select_one("progress,meter") is not None:
        return ""
    told = " ".join((element.attr("aria-valuetext") or "").split())
    value = (element.attr("aria-valuenow") or "").strip()
    words = told or (f"{value}/{(element.attr('aria-valuemax') or '').strip() or 100}" if value else "")
    return f" {words} " if words and len(words) <= _LONGEST else ""


def _first_words(element: Element) -> str:
    """Return the first text with words in an element; '' where there is none."""
    return next((text.strip() for text in element.strings if text and not text.isspace()), "")
