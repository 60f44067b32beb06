"""Decide from an element's attributes whether a reader sees it.

The inline style, ``hidden``, ``popover`` and ``aria-hidden`` count. Style sheets are not evaluated, so a class that
hides an element is not recognised, but for a few of wide convention.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from . import rules
from .parse import Element

_RUN: Final = re.compile(r"\d+|[^\W\d_]+")


def style_hides(style: str) -> bool:
    """Tell whether an inline style hides its element: by display, size, place, opacity or colour."""
    low = "".join(style.lower().split())
    # most styles hide nothing: quick searches come before the slow patterns
    if rules.MAY_HIDE.search(low) and rules.HIDDEN_STYLE.search(style):
        return True
    if "background" in low and ";color:" in ";" + low and _has_colour_of_background(style):
        return True
    if "width:0" in low or "height:0" in low or "width:." in low or "height:." in low:
        boxes = {box.group(1).lower() for box in rules.ZERO_BOX.finditer(style)}
        if len(boxes) == 2 or (boxes and rules.OVERFLOW_HIDDEN.search(style)):
            return True
    if ("position:" in low or "indent:" in low or "margin" in low) and rules.FAR.search(low):
        moved = rules.OFF_SCREEN.search(style)
        if moved and ("indent" in low or "margin" in low or rules.POSITIONED.search(style)):
            return True
    return "opacity:" in low and bool(rules.TRANSPARENT.search(style)) and not rules.ANIMATED.search(style)


def _has_colour_of_background(style: str) -> bool:
    """Tell whether an inline style gives text the colour of its background."""
    colours: dict[str, set[str]] = {"color": set(), "background": set()}
    for declaration in style.lower().split(";"):
        name, _, value = declaration.partition(":")
        kind = name.strip().removesuffix("-color")
        if kind in colours:
            colours[kind].add(value.strip().removesuffix("!important").rstrip())
    return not colours["color"].isdisjoint(colours["background"] - {""})


def is_hidden(element: Element, known: dict[str, bool]) -> bool:
    """Tell whether ``hidden``, ``popover``, inline style or ``aria-hidden`` hides an element.

    :param known: cache of :func:`style_hides` for a page, which repeats most of its styles; this call adds to it.
    """
    attr = element.attr
    style = attr("style")
    if style:
        hides = known.get(style)
        if hides is None:
            hides = known[style] = style_hides(style)
        if hides:
            return True
    if (attr("aria-hidden") or "").lower() == "true" and is_decoration(element):
        return True
    hidden = attr("hidden")
    if hidden is not None and hidden.lower() != "until-found":
        return True
    return attr("popover") is not None or (element.tag in rules.DISSOLVED and has_hidden_class(element))


def is_struck(element: Element) -> bool:
    """Tell whether an inline style, or the class of that name in Tailwind, strikes an element's words through."""
    if "line-through" in (element.attr("style") or ""):
        return True
    return "line-through" in (element.attr("class") or "").split()


def has_hidden_class(element: Element) -> bool:
    """Tell whether an element has the class of MediaWiki's sort keys, which every wiki's style sheet hides.

    Shown, a sort key would repeat the words of a cell ("FyodorFyodor Cherenkov").
    """
    names = element.attr("class") or ""
    return "sortkey" in names and "sortkey" in names.split()


def shown_again(element: Element) -> list[Element]:
    """Return the outermost descendants that ``visibility: visible`` shows inside a hidden element."""
    style = element.attr("style") or ""
    if "visibility" not in style or not rules.HIDDEN_STYLE.search(style):
        return []
    kept = rules.HIDDEN_STYLE.sub(";", style)
    if ("display" in style and "none" in style) or style_hides(kept) or element.attr("hidden") is not None:
        return []
    result: list[Element] = []
    stack = list(reversed(element.children))
    while stack:
        node = stack.pop()
        if isinstance(node, Element):
            inner_style = node.attr("style") or ""
            if inner_style and rules.VISIBLE_AGAIN.search(inner_style):
                result.append(node)
            else:
                stack.extend(reversed(node.children))
    return result


def is_decoration(element: Element) -> bool:
    """Tell whether an ``aria-hidden`` element is empty, an icon, or repeated by a sibling for assistive technology.

    Any other element with ``aria-hidden`` shows text, and stays.
    """
    words = " ".join(element.text.split())
    if not words:
        return not element.children or element.select_one("img[alt]:not([alt=''])") is None
    if len(words) < 30 and rules.ICON_CLASS.search(element.attr("class") or ""):
        return True
    if len(words) <= 2 and not any(letter.isalnum() for letter in words):
        return True
    if not words.isascii() and all(unicodedata.category(letter) in ("Co", "So", "Zs") for letter in words):
        return True
    # only the nearest siblings: reading all of them would be quadratic in a hostile page
    return any(_is_twin(sibling, words) for sibling in (_beside(element, -1), _beside(element, 1)))


def _beside(element: Element, step: int) -> object:
    """Return the nearest sibling element on one side, at most four nodes away; None where there is none."""
    sibling: Any = element
    for _ in range(4):
        sibling = sibling.previous_sibling if step < 0 else sibling.next_sibling
        if sibling is None or isinstance(sibling, Element):
            return sibling
    return None


def _is_twin(sibling: object, words: str) -> bool:
    """Tell whether ``sibling`` repeats the words of a hidden element for assistive technology."""
    if not isinstance(sibling, Element):
        return False
    if (sibling.attr("aria-hidden") or "").lower() == "true" or sibling.attr("hidden") is not None:
        return False
    if style_hides(sibling.attr("style") or ""):
        return False
    sibling_words = " ".join(sibling.text.split())
    if not sibling_words:
        return False
    if sibling_words == words:
        return True
    if rules.VISUALLY_HIDDEN_CLASS.search(sibling.attr("class") or ""):
        sibling_words = (
            sibling_words.casefold()
        )  # "4.5/5" is doubled by "Rated 4.5 out of 5", "Share" not by "All options"
        return all(run in sibling_words for run in _RUN.findall(words.casefold()))
    return sibling.select_one("math") is not None
