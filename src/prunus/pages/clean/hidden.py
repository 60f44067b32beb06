"""Decide from an element's attributes whether a reader sees it.

The inline style, ``hidden``, ``popover`` and ``aria-hidden`` count. A class that hides an element is not recognised
here, but for a few of wide convention; :mod:`~prunus.pages.clean.cascade` reads the style sheets of a page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import rules
from .css import ALL, declared, is_harmless, is_shown_by, unseen_by, without_comments
from .parse import Document, Element, Text

_PICTURES: Final = frozenset({"img", "picture", "svg", "video", "audio", "iframe", "object", "canvas"})
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_FEW: Final = 2_000
"""Letters that a page may hide by its style in any case. Where it hides more, and more than half of the page, its
scripts show them, or the style is misread: then they are shown."""

_FADES: Final = ("opacity", "visibility")
"""The properties by which pages wait for their scripts, and then fade in."""

_SET: Final = re.compile(r"--(?<![\w-]--)([\w-]++)\s*+:\s*+([^;{}]++)")
"""A variable of CSS and its value."""


class Styles:
    """What the inline styles of a page say; a page repeats most of its styles, and each is read once."""

    def __init__(self, document: Document | None) -> None:
        self._document = document
        self._variables: dict[str, str] | None = None
        self._values: dict[str, dict[str, str]] = {}
        self._unseen: dict[str, frozenset[str]] = {}

    def values(self, style: str) -> dict[str, str]:
        """Return the value of each property that a style sets."""
        known = self._values.get(style)
        if known is None:
            known = self._values[style] = declared(style, self.variables if "var(" in style else None)
        return known

    @property
    def variables(self) -> dict[str, str]:
        """The variables that have one value on the whole page."""
        if self._variables is None:
            self._variables = _variables(self._document) if self._document is not None else {}
        return self._variables

    def unseen_by(self, style: str) -> frozenset[str]:
        """Return the properties by which a style hides; see :func:`~prunus.pages.clean.css.unseen_by`."""
        known = self._unseen.get(style)
        if known is None:
            known = frozenset() if is_harmless(style) else unseen_by(self.values(style))
            self._unseen[style] = known
        return known


def _variables(document: Document) -> dict[str, str]:
    """Return the variables of a page's styles that have one value on the whole page."""
    styles = [style.text for style in document.select("style")]
    styles += [element.attr("style") or "" for element in document.select("[style*='--']")]
    values: dict[str, set[str]] = {}
    for name, value in _SET.findall(without_comments(";".join(styles))):
        values.setdefault(f"--{name}", set()).add(value.partition("!")[0].strip().lower())
    return {name: several.pop() for name, several in values.items() if len(several) == 1}


def faded_in(document: Document, styles: Styles) -> set[Any]:
    """Return the elements that inline styles make transparent or invisible and that scripts show: most of the page."""
    found = {
        element
        for element in document.select("[style*='opacity' i],[style*='visibility' i]")
        if _fades(element.attr("style") or "", styles) and not _has_hidden_attribute(element)
    }
    apart: dict[Any, bool] = {}  # whether each element that was seen is in another one, or hidden whatever fades in
    outermost = [one for one in found if not _is_apart(one.parent, found, apart, styles)]
    return found if hides_most(document, outermost) else set()


def _is_apart(node: Any, found: set[Any], apart: dict[Any, bool], styles: Styles) -> bool:
    """Tell whether an element or one around it is in ``found`` or hidden; remember it for all of them in ``apart``."""
    path = []
    while isinstance(node, Element) and node not in apart:
        path.append(node)
        if node in found or is_hidden(node, styles):
            apart[node] = True
            break
        node = node.parent
    result = apart.get(node, False)
    apart.update(dict.fromkeys(path, result))
    return result


def _fades(style: str, styles: Styles) -> bool:
    """Tell whether a style hides by ``opacity`` or ``visibility`` alone."""
    values = {name: value for name, value in styles.values(style).items() if name not in _FADES}
    return bool(styles.unseen_by(style)) and not unseen_by(values)


def hides_most(document: Document, outermost: Sequence[Element]) -> bool:
    """Tell whether hidden elements, none in another, hold more letters than a page may hide by its style."""
    letters = sum(len(element.text) for element in outermost)
    root = document.root
    if letters <= _FEW or root is None:
        return False
    return letters - sum(map(_code_in, outermost)) > (len(root.text) - _code_in(root)) // 2


def _code_in(element: Element) -> int:
    """Return the number of code points of the scripts and sheets in an element."""
    return sum(len(code.text) for code in element.select("script,style"))


def is_hidden(element: Element, styles: Styles) -> bool:
    """Tell whether ``hidden``, ``popover``, inline style or ``aria-hidden`` hides an element's words."""
    style = element.attr("style")
    by = styles.unseen_by(style) if style else None
    # frameworks give pictures a transparent colour, for their alternative text while they load
    if by and (element.tag not in _PICTURES or ALL in by or "visibility" in by):
        return True
    return _has_hidden_attribute(element)


def _is_wholly_hidden(element: Element, styles: Styles) -> bool:
    """Tell whether nothing of an element is seen, whatever it holds."""
    style = element.attr("style")
    return bool(style and ALL in styles.unseen_by(style)) or _has_hidden_attribute(element)


def _has_hidden_attribute(element: Element) -> bool:
    attrs = element.attrs
    if "aria-hidden" in attrs and (element.attr("aria-hidden") or "").lower() == "true" and is_decoration(element):
        return True
    if "hidden" in attrs and (element.attr("hidden") or "").lower() != "until-found":
        return True
    return "popover" in attrs or (element.tag in rules.DISSOLVED and has_hidden_class(element))


class Inside:
    """What of a hidden element's inside is seen: elements can undo the properties that words inherit.

    :param element: its own style hides it.
    """

    def __init__(self, element: Element, styles: Styles) -> None:
        self.seen = False
        """Whether anything is."""

        self.unseen: list[Element | Text] = []
        """Texts that are not seen, and elements without content."""

        self.settled: list[Element] = []
        """Elements of which this tells all: their own styles say no more."""

        if not _is_wholly_hidden(element, styles):
            self._look(element, styles)

    def _look(self, element: Element, styles: Styles) -> None:
        stack: list[tuple[Any, frozenset[str]]] = [(element, frozenset())]
        while stack:
            node, by = stack.pop()
            if isinstance(node, Text):
                self.unseen.append(node)
            elif isinstance(node, Element):
                if _is_wholly_hidden(node, styles):
                    continue
                style = node.attr("style")
                if "color" in by and node.tag == "a" and "href" in node.attrs:
                    by -= {"color"}  # browsers give links a colour of their own
                if style:
                    values = styles.values(style)
                    by = frozenset(name for name in by if not is_shown_by(values, name)) | styles.unseen_by(style)
                if not by:
                    self.seen = True
                elif node.children:
                    self.settled.append(node)
                    stack.extend((child, by) for child in reversed(node.children))
                elif "visibility" in by:
                    self.unseen.append(node)


def keeps_place(cell: Element) -> bool:
    """Tell whether a hidden cell keeps its column: its own style hides it otherwise than by ``display: none``."""
    style = cell.attr("style") or ""
    if cell.attr("hidden") is not None or not style:
        return False
    return has_place(declared(style))


def has_place(values: Mapping[str, str]) -> bool:
    """Tell whether a cell with a style keeps its column, though its words are not seen."""
    return values.get("display") != "none" and values.get("position") not in ("absolute", "fixed")


def is_struck(element: Element) -> bool:
    """Tell whether an inline style, or the class of that name in Tailwind, strikes an element's words through."""
    if "line-through" in (element.attr("style") or "").lower():
        return True
    names = element.attr("class") or ""
    return "line-through" in names and "line-through" in names.split()


def has_hidden_class(element: Element) -> bool:
    """Tell whether an element has the class of MediaWiki's sort keys, which every wiki's style sheet hides.

    Shown, a sort key would repeat the words of a cell ("FyodorFyodor Cherenkov").
    """
    names = element.attr("class") or ""
    return "sortkey" in names and "sortkey" in names.split()


_SIGNS: Final = frozenset("–−-+±×÷/:.,%‰°′″$€£¥₹<>≤≥~≈≠=¬&")
_TICKS: Final = frozenset("✓✔☑✅✗✘❌✕–—−-")


def is_decoration(element: Element) -> bool:
    """Tell whether an ``aria-hidden`` element is empty, an icon, or repeated by a sibling for assistive technology.

    Any other element with ``aria-hidden`` shows text, and stays; so does a sign of a number, as in 10–20, and a tick or
    a cross that is all that a cell shows.
    """
    words = " ".join(element.text.split())
    if not words:
        return not element.children or element.select_one("img[alt]:not([alt=''])") is None
    if len(words) < 30 and rules.ICON_CLASS.search(element.attr("class") or ""):
        return True
    # only the nearest siblings: reading all of them would be quadratic in a hostile page
    if any(_is_twin(sibling, words) for sibling in (_beside(element, -1), _beside(element, 1))):
        return True
    sign = len(words) <= 2 and not any(letter.isalnum() for letter in words)
    if not words.isascii() and all(unicodedata.category(letter) in ("Co", "So", "Zs") for letter in words):
        sign = True
    return sign and not _is_part(element, words)


def _is_part(element: Element, words: str) -> bool:
    """Tell whether a sign is part of the number or the word beside it, or the tick of a cell."""
    above = element.parent
    if words in _TICKS and isinstance(above, Element) and above.tag in ("td", "th", "dd"):
        return len(above.text.strip()) == len(words)
    if not _SIGNS.issuperset(words):
        return False
    before, after = element.previous_sibling, element.next_sibling
    left = before.data[-1:] if isinstance(before, Text) else ""
    right = after.data[:1] if isinstance(after, Text) else ""
    return left.isdigit() or right.isdigit() or (left.isalnum() and right.isalnum())


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
    if unseen_by(declared(sibling.attr("style") or "")):
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
