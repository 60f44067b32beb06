"""The words of icons and ratings: those that a page gives in place of what is drawn.

A reader sees a tick, a row of stars, a letter of a symbol font; ``aria-label``, the ``<title>`` of a drawing, or
``title`` say what it means. They count where an element shows no words of its own and none beside it say the same; not
in links and buttons, whose icons are for use, but for those in tables.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .elements import SHOWN
from .parse import CHILDREN, Element, Text

_LONGEST: Final = 200  # code points of a name; a longer text is a description
_NEAR: Final = 3
"""Siblings that may say the same."""

_ICONS: Final = frozenset({"a", "b", "em", "i", "small", "span", "strong", "svg", "td", "th"})
"""Elements that stand for an icon where they are empty and have a name."""

MAY_BE_ICONS: Final = "[role=img],span[title],span[aria-label]"
"""Elements that may be icons; drawings, empty cells and other empty inline elements are looked at anyway."""

_PICTURES: Final = frozenset({"img", "image", "graphics-symbol"})
"""Roles of icons."""

_SIGNS: Final = (range(0x2300, 0x3000), range(0xE000, 0xF900))
"""Signs that a name explains: ticks, stars, letters of symbol fonts. Emoji and signs of mathematics stay."""

_FOR_USE: Final = re.compile(
    r"(?i)\b(?:arrow|background|bookmark|bullet|caret|chevron|clipboard|close|collapse|copy|decorati|drop-?down|expand|"
    r"hamburger|icon|loading|menu|scroll|search|share|submenu|swipe|toggle|triangle|view|zoom)|\A(?:\S*_\S*|\S*-\S*-\S*|rating)\Z"
)
"""Names of signs for use, and names that a program gave."""

_NUMBER: Final = re.compile(r"\d")
_IN_USE: Final = "a,button,select,label,summary,[role=button],[role=tab],[role=link],[tabindex='0']"
_CELL: Final = "td,th,[role=cell],[role=gridcell]"
_FILLED: Final = SHOWN | {"select", "textarea", "button", "iframe", "object", "math", "br", "hr"}
_UNREAD: Final = frozenset({"title", "desc", "style", "script", "text", "defs"})


def _name_of(element: Element) -> str:
    """Return the name of an element that may be an icon; '' where it is none, or has none."""
    attr, tag = element.attr, element.tag
    name = attr("aria-label") or attr("title") or ""
    if not name and tag == "svg":
        title = element.find("title", axis=CHILDREN)
        name = title.text if title is not None else ""
    if not name or (attr("aria-hidden") or "").lower() == "true":
        return ""
    role = attr("role") or ""
    if role not in _PICTURES and (role or (tag not in _ICONS and not (tag == "div" and _NUMBER.search(name)))):
        return ""
    name = " ".join(name.split()) if len(name) <= _LONGEST else ""
    return name if any(map(str.isalnum, name)) and not _FOR_USE.search(name) else ""


def icon_words(element: Element) -> str:
    """Return the words that stand for an element; '' where it is no icon, shows words itself, or is in use."""
    name = _name_of(element)
    if not name or not _is_drawn(element):
        return ""
    if element.closest(_IN_USE) is not None and element.closest(_CELL) is None:
        return ""
    folded = name.casefold()
    node: Any = element
    for _ in range(2):  # an icon often has an element to itself
        beside = _beside(node)
        if any(folded in words for words in beside):
            return ""
        node = node.parent
        if beside or not isinstance(node, Element) or node.tag not in _ICONS or node.tag in ("td", "th"):
            break
    return name


def _is_drawn(element: Element) -> bool:
    """Tell whether an element shows nothing, or only signs and letters of symbol fonts that its name explains."""
    for node in element.descendants:
        if isinstance(node, Text):
            above = node.parent
            if isinstance(above, Element) and above.tag in _UNREAD:
                continue
            if not all(letter.isspace() or any(ord(letter) in signs for signs in _SIGNS) for letter in node.data):
                return False
        elif isinstance(node, Element) and node.tag in _FILLED and (node.tag != "img" or node.attr("alt")):
            return False
    return True


def _beside(element: Element) -> list[str]:
    """Return the words of the nearest siblings, in lower case."""
    found: list[str] = []
    for step in (-1, 1):
        node: Any = element
        for _ in range(_NEAR):
            node = node.previous_sibling if step < 0 else node.next_sibling
            if node is None:
                break
            words = node.data if isinstance(node, Text) else ""
            if isinstance(node, Element) and node.tag != "svg":
                words = node.text
            if words and not words.isspace():
                found.append(" ".join(words.split()).casefold())
    return found
