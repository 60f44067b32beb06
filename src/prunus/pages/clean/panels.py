"""Finds hidden panels that a visible control opens: of accordions, tabs and "show more" buttons.

Such a panel is no hidden text: a reader opens it. The walk keeps it as a closed ``<details>``. A control counts where a
reader sees it and it has words of its own; hidden text that no such control names stays out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .parse import Document, Element, Text
from .rules import DROPPED, INLINE

_CONTROLS: Final = (
    "[aria-controls],[data-bs-target^='#'],[data-target^='#'],[data-toggle][href^='#'],[data-bs-toggle][href^='#'],"
    "[role=tab][href^='#'],button[onclick],a[onclick],[role=button][onclick]"
)
_LABELLED: Final = "[role=tabpanel][aria-labelledby]"
_TOGGLES: Final = frozenset({"collapse", "tab", "pill", "list"})
"""What Bootstrap's controls may toggle; menus and dialogs lie over the page."""

_POPUPS: Final = frozenset({"alertdialog", "dialog", "listbox", "menu", "menubar", "navigation", "search", "tooltip"})
"""Roles of elements that lie over the page, and of its menus."""

_OVER: Final = re.compile(
    r"(?:^|[-_ ])(?:modal|dialog|pop-?up|overlay|lightbox|drawer|offcanvas|dropdown)(?:[-_ ]|$)", re.IGNORECASE
)
_STRING: Final = re.compile(r"[\"']#?([\w-]{1,80})[\"']")
_INPUTS: Final = frozenset({"input", "select", "textarea"})
_NO_PANELS: Final = DROPPED | INLINE
_LONGEST: Final = 200  # code points of a control's words; a longer text is no label
_LEVELS: Final = 5  # of panels in panels
_MOST: Final = 2_000  # controls of a page


def opened_panels(
    document: Document, marked: Iterable[object], is_unseen: Callable[[Element], bool]
) -> dict[Element, str]:
    """Return the hidden panels that visible controls name, and the words of each one's control.

    The words are '' where the control stands right before the panel.

    :param marked: what may be hidden; only elements can be panels.
    :param is_unseen: tells whether an element hides itself, whatever is around it.
    """
    hidden: dict[str, list[Element]] = {}
    for element in marked:
        # a comment or a text inside a hidden element is none
        if not isinstance(element, Element) or element.tag in _NO_PANELS or not element.children:
            continue
        name = element.attr("id")
        if (name or element.attr("role") == "tabpanel") and is_unseen(element):
            hidden.setdefault(name or "", []).append(element)
    if not hidden:
        return {}
    named = document.select(f"{_CONTROLS},{_LABELLED}")[:_MOST]  # one search of the page
    labelled = [element for element in named if element.attr("role") == "tabpanel" and element.attr("aria-labelledby")]
    controls = [element for element in named if element.attr("role") != "tabpanel"]
    pairs = [(control, panel) for control in controls for name in _targets(control) for panel in hidden.get(name, ())]
    if labelled:
        names = {element.attr("id"): element for element in reversed(document.select("[id]"))}
        for panel in labelled:
            if is_unseen(panel):
                labels = (panel.attr("aria-labelledby") or "").split()[:4]
                pairs += [(names[label], panel) for label in labels if label in names]
    pairs = [(control, panel) for control, panel in pairs[:_MOST] if not _lies_over(control, panel)]
    panels: dict[Element, str] = {}
    for _ in range(_LEVELS):  # a control in a panel is seen once the panel is
        known = len(panels)
        for control, panel in pairs:
            if panel not in panels and _is_seen(control, is_unseen, panels):
                words = _words(control, is_unseen)
                if any(map(str.isalnum, words)) and len(words) <= _LONGEST:
                    panels[panel] = "" if _stands_before(control, panel) else words
        if len(panels) == known:
            break
    return panels


def _targets(control: Element) -> list[str]:
    """Return the ids that a control names."""
    toggle = control.attr("data-bs-toggle") or control.attr("data-toggle") or ""
    names = (control.attr("aria-controls") or "").split()[:4]
    if toggle in _TOGGLES or (control.attr("role") or "") == "tab":
        others = (control.attr(name) or "" for name in ("data-bs-target", "data-target", "href"))
        names += [other[1:] for other in others if other.startswith("#")]
    return names + _STRING.findall((control.attr("onclick") or "")[:_LONGEST])


def _lies_over(control: Element, panel: Element) -> bool:
    """Tell whether a panel is a menu or a dialog, or its control a field, or a part of the site's menu."""
    if (control.attr("aria-haspopup") or "false").lower() != "false" or control.tag in _INPUTS:
        return True
    if panel.tag in ("dialog", "nav") or (panel.attr("role") or "").lower() in _POPUPS:
        return True
    if panel.attr("aria-modal") is not None or panel.attr("popover") is not None:
        return True
    if _OVER.search(panel.attr("class") or ""):
        return True
    around = {above.tag for above in _with_ancestors(control)}
    in_menu = "nav" in around or ("header" in around and not around & {"article", "main", "section"})
    return in_menu and control.attr("role") != "tab"


def _with_ancestors(element: Element) -> Iterator[Element]:
    """Yield an element and its ancestors; the parser caps their number."""
    node: Any = element
    while isinstance(node, Element):
        yield node
        node = node.parent


def _is_seen(control: Element, is_unseen: Callable[[Element], bool], panels: dict[Element, str]) -> bool:
    """Tell whether a reader sees a control, once the known panels are opened."""
    return not any(is_unseen(above) and above not in panels for above in _with_ancestors(control))


def _words(element: Element, is_unseen: Callable[[Element], bool]) -> str:
    """Return the words of a control that are seen."""
    words: list[str] = []
    stack: list[Any] = [element]
    while stack and len(words) <= _LONGEST:
        node = stack.pop()
        if isinstance(node, Text):
            words += node.data.split()
        elif isinstance(node, Element) and node.tag not in DROPPED and (node is element or not is_unseen(node)):
            stack.extend(reversed(node.children))
    return " ".join(words)


def _stands_before(control: Element, panel: Element) -> bool:
    """Tell whether the element before a panel is its control, or its heading with the control."""
    before: Any = panel.previous_sibling
    while before is not None and not isinstance(before, Element):
        before = before.previous_sibling
    return before is not None and before in tuple(_with_ancestors(control))[:4]
