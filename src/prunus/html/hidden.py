"""What a reader cannot see, decided from an element's own attributes before they are stripped.

Style sheets are not evaluated: a class that hides is not known here. What inline style, ``hidden``
and ``aria-hidden`` say is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from . import rules
from .parse import Element

_RUN: Final = re.compile(r"\d+|[^\W\d_]+")

Attributes = Any
"""turbohtml's attribute mapping: str values, lists for class-like ones, '' for bare ones."""


def value_of(attributes: Attributes, name: str) -> str:
    """Return an attribute as one string, '' when it is absent."""
    value = attributes.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else " ".join(value)


def style_hides(style: str) -> bool:
    """Tell whether an inline style puts its element out of a reader's sight."""
    if rules.HIDDEN_STYLE.search(style):
        return True
    if "background" in style and len(style) < 1000 and rules.SAME_COLOUR.search(style):
        return True
    if rules.OVERFLOW_HIDDEN.search(style) and rules.ZERO_BOX.search(style):
        return True
    boxes = {found.group(1).lower() for found in rules.ZERO_BOX.finditer(style)}
    if len(boxes) == 2:
        return True
    if rules.OFF_SCREEN.search(style) and (rules.POSITIONED.search(style) or "indent" in style or "margin" in style):
        return True
    return bool(rules.TRANSPARENT.search(style)) and not rules.ANIMATED.search(style)


def is_hidden(element: Element, attributes: Attributes) -> bool:
    """Tell whether ``hidden``, ``popover``, inline style or ``aria-hidden`` hides an element."""
    hidden = attributes.get("hidden")
    if hidden is not None and value_of(attributes, "hidden").lower() != "until-found":
        return True
    if "popover" in attributes:
        return True
    style = attributes.get("style")
    if style and style_hides(value_of(attributes, "style")):
        return True
    return value_of(attributes, "aria-hidden").lower() == "true" and is_decoration(element, attributes)


def has_hidden_class(attributes: Attributes) -> bool:
    """Tell whether a class hides by wide convention, as MediaWiki's sort keys."""
    names = attributes.get("class")
    return bool(names) and "sortkey" in names and bool(rules.HIDDEN_CLASSES.search(value_of(attributes, "class")))


def shown_again(element: Element, attributes: Attributes) -> list[Element]:
    """Return the outermost descendants that ``visibility: visible`` shows inside a hidden element."""
    style = value_of(attributes, "style")
    if not style or not rules.HIDDEN_STYLE.search(style):
        return []
    kept = rules.HIDDEN_STYLE.sub(";", style)
    if (
        "visibility" not in style
        or ("display" in style and "none" in style)
        or style_hides(kept)
        or "hidden" in attributes
    ):
        return []
    found: list[Element] = []
    stack = list(reversed(element.children))
    while stack:
        node = stack.pop()
        if isinstance(node, Element):
            own = value_of(node.attrs, "style")
            if own and rules.VISIBLE_AGAIN.search(own):
                found.append(node)
            else:
                stack.extend(reversed(node.children))
    return found


def is_decoration(element: Element, attributes: Attributes) -> bool:
    """Tell whether an ``aria-hidden`` element is empty, an icon, or doubled by an accessible twin.

    Anything else with ``aria-hidden`` is visible text, and stays.
    """
    words = " ".join(element.text.split())
    if not words:
        return element.select_one("img[alt]:not([alt=''])") is None
    if rules.ICON_CLASS.search(value_of(attributes, "class")) and len(words) < 30:
        return True
    if len(words) <= 2 and not any(letter.isalnum() for letter in words):
        return True
    if all(unicodedata.category(letter) in ("Co", "So", "Zs") for letter in words):
        return True
    # only the nearest siblings: looking at all of them would be quadratic in a hostile page
    return any(_is_twin(sibling, words) for sibling in (_beside(element, -1), _beside(element, 1)))


def _beside(element: Element, step: int) -> object:
    """Return the nearest sibling that is an element, within a few nodes."""
    sibling: Any = element
    for _ in range(4):
        sibling = sibling.previous_sibling if step < 0 else sibling.next_sibling
        if sibling is None or isinstance(sibling, Element):
            return sibling
    return None


def _is_twin(sibling: object, words: str) -> bool:
    """Tell whether ``sibling`` says to assistive technology what the hidden words show."""
    if not isinstance(sibling, Element):
        return False
    attributes = sibling.attrs
    if value_of(attributes, "aria-hidden").lower() == "true" or "hidden" in attributes:
        return False
    if style_hides(value_of(attributes, "style")):
        return False
    said = " ".join(sibling.text.split())
    if not said:
        return False
    if said == words:
        return True
    if rules.VISUALLY_HIDDEN_CLASS.search(value_of(attributes, "class")):
        said = said.casefold()  # "4.5/5" is doubled by "Rated 4.5 out of 5", "Share" not by "All options"
        return all(run in said for run in _RUN.findall(words.casefold()))
    return sibling.select_one("math") is not None
