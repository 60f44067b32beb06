"""Questions about DOM nodes around the one that the walk has reached."""

from __future__ import annotations

from typing import Any, Final

from .parse import Element, Text
from .tag_table import BLOCK, KIND, KINDS, LINE, NOT_NESTED, SHOWN, STRICT

_ISOLATING: Final = frozenset({"caption", "object", "td", "th"})
"""Kept elements that isolate what they hold: a link inside one is not nested in a link outside (HTML, 13.2.4.3:
markers)."""

_SHOWN: Final = ",".join(sorted(SHOWN))

_ONLY_TEMPLATE: Final = frozenset({"template"})  # only a template isolates a form (HTML, 13.2.6.4.7)


def holds_one_block(children: Any) -> bool:
    """Tell whether the only child is a block-level element, white space aside."""
    found = False
    for child in children:
        if type(child) is Element:
            if found or KINDS.get(child.tag, BLOCK) & (KIND | LINE) not in (BLOCK, STRICT):
                return False
            found = True
    # texts last: reading a text copies it
    return found and all(type(child) is not Text or child.data.isspace() for child in children)


def holds_heading(children: Any) -> bool:
    """Tell whether a child is of ``NOT_NESTED``, as headings are, and shows something.

    Written directly inside an element of its kind, its start tag would end that element.
    """
    return any(type(child) is Element and child.tag in NOT_NESTED and shows_something(child) for child in children)


def shows_something(element: Element) -> bool:
    """Tell whether an element holds words, a picture, a player or a field; stops at the first words."""
    return any(not text.isspace() for text in element.strings if text) or element.select_one(_SHOWN) is not None


def is_nested(element: Element) -> bool:
    """Tell whether a link, button or form is inside another of its kind, which no markup can express."""
    above: Any = element.parent
    isolating = _ISOLATING if element.tag != "form" else _ONLY_TEMPLATE
    while type(above) is Element and above.tag not in isolating:
        if above.tag == element.tag:
            return True
        above = above.parent
    return False
