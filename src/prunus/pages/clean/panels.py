"""Finds hidden panels that a visible control opens: of accordions, tabs and "show more" buttons.

Such a panel is no hidden text: a reader opens it. The walk keeps it as a closed ``<details>``. A control names it by an
attribute, by a link to its id, or stands right before it and has the class of an accordion. It counts where a reader
sees it and it has words of its own; hidden text that no such control names stays out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .parse import Document, Element, Text
from .rules import DROPPED, HEADINGS, INLINE

_CONTROLS: Final = (
    "[aria-controls],[data-bs-target^='#'],[data-target^='#'],[data-toggle][href^='#'],[data-bs-toggle][href^='#'],"
    "[role=tab][href^='#'],button[onclick],a[onclick],[role=button][onclick],a[href^='#'],[data-tab]"
)
_LABELLED: Final = "[role=tabpanel][aria-labelledby]"
_TOGGLES: Final = frozenset({"collapse", "tab", "pill", "list"})
"""What Bootstrap's controls may toggle; menus and dialogs lie over the page."""

_TABS: Final = frozenset({"tab", "pill", "list"})

_POPUPS: Final = frozenset({"alertdialog", "dialog", "listbox", "menu", "menubar", "navigation", "search", "tooltip"})
"""Roles of elements that lie over the page, and of its menus."""

_OVER: Final = re.compile(
    r"(?:^|[-_ ])(?:modal|dialog|pop-?up|overlay|lightbox|drawer|offcanvas|dropdown)(?:[-_ ]|$)", re.IGNORECASE
)
_OF_SITE: Final = re.compile(
    r"(?:^|[-_ ])(?:modal|pop-?up|mfp|fancybox|lightbox|thickbox|colorbox|cookies?|consent|gdpr|log-?in|"
    r"sign-?(?:in|up)|register|account|subscribe|newsletter|share|nav|navbar|navigation|menu|sub-?menu|search|cart|"
    r"lang|language)(?:[-_: ]|$)",
    re.IGNORECASE,
)
"""Names of what lies over a page or is for the use of the site, and of controls that open such."""

_ACCORDION: Final = re.compile(
    r"(?:^|[-_ ])(?:accordion|collaps(?:e|ible)|expand(?:er|able)|spoiler|faq|question)(?:[-_ ]|$)", re.IGNORECASE
)
"""Classes of an accordion."""
_HEAD: Final = re.compile(r"head|title|toggle|trigger|button|btn|question|label", re.IGNORECASE)
"""Classes of a control in an accordion, whose panel is the element after it."""
_BUTTONS: Final = HEADINGS | {"a", "button", "dt", "label", "summary"}

_STRING: Final = re.compile(r"[\"']#?([\w-]{1,80})[\"']")
_INPUTS: Final = frozenset({"input", "select", "textarea"})
_NO_PANELS: Final = DROPPED | INLINE
_LONGEST: Final = 200  # code points of a control's words; a longer text is no label
_NEAR: Final = 8  # nodes among which the element before a panel is
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
    pairs: list[tuple[Element, Element]] = []
    for element in marked:
        # a comment or a text inside a hidden element is none
        if not isinstance(element, Element) or element.tag in _NO_PANELS or not element.children:
            continue
        name = element.attr("id")
        before = _before(element)
        opener = before if before is not None and _is_accordion(before) else None
        if (name or opener is not None or element.attr("role") == "tabpanel") and is_unseen(element):
            hidden.setdefault(name or "", []).append(element)
            if opener is not None and not _is_of_site(opener, element):
                pairs.append((opener, element))
    if not hidden:
        return {}
    named = document.select(f"{_CONTROLS},{_LABELLED}")[:_MOST]  # one search of the page
    labelled = [element for element in named if element.attr("role") == "tabpanel" and element.attr("aria-labelledby")]
    controls = [element for element in named if element.attr("role") != "tabpanel"]
    for control in controls:
        names, is_sure = _targets(control)
        panels_of = [panel for name in names if name for panel in hidden.get(name, ())]
        pairs += [(control, panel) for panel in panels_of if is_sure or not _is_of_site(control, panel)]
    if labelled:
        by_id = {element.attr("id"): element for element in reversed(document.select("[id]"))}
        for panel in labelled:
            if is_unseen(panel):
                labels = (panel.attr("aria-labelledby") or "").split()[:4]
                pairs += [(by_id[label], panel) for label in labels if label in by_id]
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


def _targets(control: Element) -> tuple[list[str], bool]:
    """Return the ids that a control names, and whether it says that they are panels."""
    toggle = control.attr("data-bs-toggle") or control.attr("data-toggle") or ""
    names = (control.attr("aria-controls") or "").split()[:4]
    names += _STRING.findall((control.attr("onclick") or "")[:_LONGEST])
    is_sure = bool(names)
    if toggle in _TOGGLES or (control.attr("role") or "") == "tab":
        is_sure = True
    elif toggle:  # a menu, a dialog
        return names, is_sure
    others = [control.attr(name) or "" for name in ("data-bs-target", "data-target", "href")]
    names += [other[1:] for other in others if other.startswith("#")]
    tab = control.attr("data-tab")
    return [*names, tab.removeprefix("#")] if tab else names, is_sure


def _is_accordion(element: Element) -> bool:
    """Tell whether an element is the control of an accordion by its class."""
    name = element.attr("class")
    if not name or not _ACCORDION.search(name):
        return False
    return element.tag in _BUTTONS or element.attr("role") == "button" or _HEAD.search(name) is not None


def _is_of_site(control: Element, panel: Element) -> bool:
    """Tell whether the names of a control or panel, or a form in it, say that it is for the use of the site."""
    names = [element.attr(name) or "" for element in (control, panel) for name in ("class", "id", "rel")]
    return any(map(_OF_SITE.search, names)) or panel.select_one("form,input,iframe,video") is not None


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
    is_tab = control.attr("role") == "tab" or (control.attr("data-bs-toggle") or control.attr("data-toggle")) in _TABS
    return in_menu and not is_tab


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
    before = _before(panel)
    return before is not None and before in tuple(_with_ancestors(control))[:4]


def _before(element: Element) -> Element | None:
    """Return the element before another, white space and comments aside; None where there is none near."""
    before: Any = element.previous_sibling
    for _ in range(_NEAR):
        if before is None or isinstance(before, Element):
            return before
        before = before.previous_sibling
    return None
