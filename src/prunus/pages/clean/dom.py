"""What the walk asks of DOM nodes beside and below the one that it stands at."""

from __future__ import annotations

from typing import Any, Final

from .parse import Element, Text
from .tag_table import BLOCK, KIND, KINDS, NOT_NESTED, SHOWN, STRICT

_APART: Final = frozenset({"applet", "caption", "marquee", "object", "td", "template", "th"})
"""Elements in which formatting begins anew (HTML, 13.2.4.3: markers)."""

_SHOWN: Final = ",".join(sorted(SHOWN))

_ONLY_TEMPLATE: Final = frozenset({"template"})  # nothing else sets a form apart (HTML, 13.2.6.4.7)


def holds_one_block(children: Any) -> bool:
    """Tell whether children are white space around one block-level element."""
    found = False
    for child in children:
        if type(child) is Element:
            if found or KINDS.get(child.tag, BLOCK) & KIND not in (BLOCK, STRICT):
                return False
            found = True
    # last: to look at a text takes a copy of it
    return found and all(type(child) is not Text or child.data.isspace() for child in children)


def holds_heading(children: Any) -> bool:
    """Tell whether a heading that shows something is among children: straight in another it would end that one."""
    return any(type(child) is Element and child.tag in NOT_NESTED and says(child) for child in children)


def says(element: Element) -> bool:
    """Tell whether an element may show something; it may be large, and stops at the first words."""
    return any(not text.isspace() for text in element.strings if text) or element.select_one(_SHOWN) is not None


def is_nested(element: Element) -> bool:
    """Tell whether a link, a button or a form stands in another one as no markup can say."""
    above: Any = element.parent
    apart = _APART if element.tag != "form" else _ONLY_TEMPLATE
    while type(above) is Element and above.tag not in apart:
        if above.tag == element.tag:
            return True
        above = above.parent
    return False
