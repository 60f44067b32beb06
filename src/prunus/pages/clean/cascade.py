"""Reads a page's own ``<style>`` elements: which rules match an element, and which elements they hide on a screen.

The cascade is computed only for elements that a rule may hide, and only for the properties that hide them. Where the
rules cannot be trusted to say what a reader sees, the element stays; ``docs/decisions.md`` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from . import rules
from .css import ALL, declarations, declared
from .hidden import Styles, has_place, hides_most
from .parse import Document, Element, SelectorSyntaxError, ShadowRoot
from .stylesheet import Rule, StyleSheet, may_hide, on_screen, separate

MAX_CSS: Final = 24 * 1024
"""Code points of the style sheets of a page that are read at most. Of a page with more, no sheet is read."""

MAX_WORK: Final = 10_000_000
"""Tests of an element against a selector at most, about half a second. On a page that needs more, no sheet is read."""

MAX_MATCHES: Final = 200_000
"""Rules that hide, counted for each element that they match, at most. On a page with more, no sheet is read."""

Hidden: TypeAlias = "dict[Element, list[Element]]"
"""The elements that rules hide, each with the outermost descendants that are shown again."""

_PROPERTIES: Final = frozenset(
    """-webkit-background-clip -webkit-clip-path -webkit-mask -webkit-mask-image -webkit-text-fill-color
    -webkit-text-stroke -webkit-text-stroke-width -webkit-user-select animation animation-name background-clip
    block-size bottom clip clip-path color column-gap content-visibility display filter float font font-size gap
    grid-gap height inline-size inset inset-block-start inset-inline-start left margin margin-left margin-top mask
    mask-image max-height max-width opacity overflow overflow-x overflow-y position right scale text-decoration
    text-decoration-line text-indent text-shadow top transform transition transition-property translate user-select
    vertical-align visibility white-space white-space-collapse width will-change""".split()
)
"""The properties that :func:`~prunus.pages.clean.css.unseen_by` and :mod:`~prunus.pages.clean.layout` read."""

_MANY: Final = 30
"""Selectors from which on the classes and ids of the page are collected first."""

_NEVER: Final = frozenset({"html", "head", "body", "main", "article"})
"""Elements that no sheet hides: where one does, a script shows them."""

_AT_STAKE: Final = (
    ("display", re.compile("display:none")),
    ("visibility", re.compile("visibility:")),
    ("opacity", re.compile("opacity:")),
    ("transition", re.compile("opacity:|transform:|scale:")),
    ("animation", re.compile("opacity:|transform:|scale:")),
    ("transform", re.compile("opacity:|transform:")),
    ("color", re.compile("(?:^|;)(?:color|-webkit-text-fill-color):")),
    ("background-clip", re.compile("(?:^|;)(?:color|-webkit-text-fill-color):")),
    ("text-shadow", re.compile("(?:^|;)(?:color|-webkit-text-fill-color):")),
    ("filter", re.compile("filter:")),
    ("mask", re.compile("mask")),
    ("scale", re.compile("scale")),
    ("clip", re.compile("clip")),
    ("font-size", re.compile("font-size:")),
    ("width", re.compile("(?:width|height):[0.]")),
    ("height", re.compile("(?:width|height):[0.]")),
    ("overflow", re.compile("(?:width|height):[0.]")),
    ("position", rules.FAR),
    ("left", rules.FAR),
    ("top", rules.FAR),
    ("right", rules.FAR),
    ("bottom", rules.FAR),
    ("indent", rules.FAR),
)
"""Words of the properties that can undo what hides an element, and the declarations that ask for them."""

_UNSEEN: Final = rules.DROPPED | {"title", "br", "img", "noscript"}
"""Elements whose hiding changes nothing."""

_SCRIPTED: Final = re.compile(
    r"no-?js|cloak|loading|loaded|lazy|preload|invisible|fouc|\baos\b|data-aos|\bwow\b|anim|fade|reveal|skeleton|"
    r"wf-|async|hide-until|:not\(:defined\)|:defined",
    re.IGNORECASE,
)
"""Selectors of states that a page is in until its scripts have run; they show what was hidden."""

_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_COMBINATOR: Final = re.compile(r"[\s>+~]+")
_KEY: Final = re.compile(r"(?:^|[.#])[\w-]+")
_ID: Final = re.compile(r"#[\w-]")
_CLASS: Final = re.compile(r"\.[\w\\-]|\[|(?<!:):(?!:|where\b|is\b|not\b|has\b)")
_TYPE: Final = re.compile(r"(?:^|[\s>+~(,])[a-zA-Z]")
_WHERE: Final = re.compile(r":where\([^()]*\)")
QUADRATIC: Final = re.compile(r"~(?!=)|:has\(|\bof\b|:nth-last|:last-of|:only-of")
_PSEUDO_ELEMENT: Final = re.compile(r"::|:(?:before|after|first-line|first-letter)\b")


class Sheets:
    """The style sheets of a page, in parts."""

    def __init__(self, document: Document) -> None:
        styles = _styles_of(document)
        self.sheets = [StyleSheet(css) for css in styles]
        self.parts = [sheet.parts for sheet in self.sheets]
        self.layers: dict[str, int] = {}
        self.placed: set[Element] = set()
        """Hidden cells that keep their place in the row; :func:`hidden_by_sheets` finds them."""

    def rules(self, wanted: Sequence[set[int]]) -> Iterator[Rule]:
        """Yield the rules of the wanted parts of each sheet."""
        first = 0
        for sheet, places in zip(self.sheets, wanted, strict=True):
            if places:
                yield from sheet.rules(places, first, self.layers)
            first += len(sheet.parts)


Said: TypeAlias = "tuple[str, str, bool]"
"""A declaration: property, value, and whether it is important."""


def _said_of_elements(body: str) -> Iterator[Said]:
    return (one for one in declarations(body) if one[0] in _PROPERTIES)


class Cascade:
    """The rules that concern some elements of a page, or the boxes beside them.

    :param read: yields the declarations of a rule that count.
    """

    def __init__(self, read: Callable[[str], Iterable[Said]] = _said_of_elements) -> None:
        self._read = read
        self.said: dict[Rule, list[Said]] = {}
        self.matching: dict[Element, list[tuple[Rule, int]]] = {}  # rules, and the specificity they match by
        self.matches = 0

    def add(self, element: Element, rule: Rule, specificity: int) -> None:
        """Record that a rule matches an element."""
        self.matches += 1
        self.matching.setdefault(element, []).append((rule, specificity))
        if rule not in self.said:
            self.said[rule] = list(self._read(rule.body))

    def values_of(self, matched: Sequence[tuple[Rule, int]], style: str = "") -> dict[str, str]:
        """Return the winning declaration of each property.

        :param style: an inline style, which wins over the rules.
        """
        ranked: list[tuple[tuple[bool, int, int, int], str, str]] = []
        for rule, specificity in matched:
            place = 1 << 30 if rule.layer is None else rule.layer
            for name, value, important in self.said[rule]:
                ranked.append(((important, -place if important else place, specificity, rule.order), name, value))
        for name, value, important in self._read(style) if style else ():
            ranked.append(((important, 1 << 31, 0, 0), name, value))
        ranked.sort(key=lambda one: one[0])
        return {name: value for _, name, value in ranked}

    def style_of(self, element: Element) -> str:
        """Return what rules and inline style say of an element."""
        values = self.values_of(self.matching[element], element.attr("style") or "")
        return ";".join(f"{name}:{value}" for name, value in values.items())


def hidden_by_sheets(document: Document, sheets: Sheets, inline: Styles) -> Hidden:
    """Return the elements that the ``<style>`` elements of a page hide.

    :param inline: the inline styles of the page, which know its variables.
    """
    if not any(sheet.suspects for sheet in sheets.sheets):
        return {}
    suspected = [
        (rule, selector)
        for rule in sheets.rules([set(sheet.suspects) for sheet in sheets.sheets])
        for selector in selectors_of(rule.selector)
    ]
    if len(suspected) > _MANY:  # most rules of most pages are for other pages
        names = names_on(document)
        suspected = [(rule, selector) for rule, selector in suspected if is_on(selector, names)]
    hiding = [
        (rule, selector)
        for rule, selector in suspected
        if not _SCRIPTED.search(selector) and may_hide(inline.values(rule.body))
    ]
    if not hiding:
        return {}
    if not affordable(document, [selector for _, selector in hiding]):
        return {}
    cascade = Cascade()
    for rule, selector in hiding:
        specificity = specificity_of(selector)
        for element in select(document, selector):
            if element.tag not in _UNSEEN:
                cascade.add(element, rule, specificity)
        if cascade.matches > MAX_MATCHES:
            return {}
    if not cascade.matching:
        return {}
    matching = {rule for matched in cascade.matching.values() for rule, _ in matched}
    said = ";".join(f"{name}:{value}" for rule in matching for name, value, _ in cascade.said[rule])
    words = [word for word, hides in _AT_STAKE if hides.search(said)]
    if not add_others(cascade, sheets, {rule for rule, _ in hiding}, words):
        return {}
    hidden = _hidden(cascade, inline)
    cells = [element for element in hidden if element.tag in ("td", "th")]
    sheets.placed.update(cell for cell in cells if has_place(declared(cascade.style_of(cell))))
    outermost = [element for element in hidden if _hider(element.parent, hidden) is None]
    return {} if hides_most(document, outermost) else _shown_again(document, sheets, hidden)


def affordable(document: Document, wanted: Sequence[str]) -> bool:
    """Tell whether searching a page for some selectors is within ``MAX_WORK``."""
    slow = sum(1 for selector in wanted if QUADRATIC.search(selector))
    if not slow and len(wanted) <= _MANY:
        return True
    elements = len(document.select("*"))
    return elements * (len(wanted) + slow * elements) <= MAX_WORK


def _styles_of(document: Document) -> list[str]:
    """Return the style sheets of a page that a browser applies; none where they are over the limit."""
    sheets: list[str] = []
    size = 0
    for style in document.select("style"):
        above = style.parent
        if not isinstance(above, ShadowRoot) and (not isinstance(above, Element) or above.tag == "noscript"):
            continue  # or in a <template>
        if (style.attr("type") or "text/css").strip().lower() == "text/css" and on_screen(style.attr("media") or ""):
            sheets.append(style.text)
            size += len(sheets[-1])
            if size > MAX_CSS:
                return []
    return sheets


def names_on(document: Document) -> set[str]:
    """Return the tags, classes and ids of a page, as selectors write them."""
    tags = {element.tag for element in document.select("*")}
    classes = {element.attr("class") or "" for element in document.select("[class]")}
    ids = {f"#{element.attr('id')}" for element in document.select("[id]")}
    return {f".{name}" for name in " ".join(classes).split()} | ids | tags


def concerns(part: str, names: set[str]) -> bool:
    """Tell whether the rule of a part may match an element with one of these classes and ids, or with none."""
    if "\\" in part:
        return True
    before, _, prelude = part.rpartition("{")[0].rpartition("{")
    if before and "@" not in before:
        return True  # a rule in a rule
    return any(is_on(selector, names) for selector in separate(prelude.rpartition(";")[2]))


def is_on(selector: str, names: set[str]) -> bool:
    """Tell whether the page has the tag, classes and ids of a selector's last compound."""
    return "\\" in selector or all(name in names for name in _keys_of(selector))


def _keys_of(selector: str) -> list[str]:
    """Return the tag, classes and ids of a selector's last compound, brackets aside."""
    if "(" in selector or "[" in selector:
        for _ in range(4):  # brackets in brackets
            selector = _BRACKETS.sub("", selector)
    compound = _COMBINATOR.split(selector.strip())[-1].partition(":")[0]
    return [name if name[0] in ".#" else name.lower() for name in _KEY.findall(compound)]


def select(document: Document, selector: str) -> Sequence[Element]:
    """Return the elements that a selector matches; none where a browser knows it and the parser does not."""
    try:
        return document.select(selector)
    except SelectorSyntaxError:
        return []


def specificity_of(selector: str) -> int:
    """Return a number that grows with the specificity of a selector."""
    plain = _WHERE.sub("", selector)
    return len(_ID.findall(plain)) << 20 | len(_CLASS.findall(plain)) << 10 | len(_TYPE.findall(plain))


def selectors_of(selector: str) -> list[str]:
    """Return the selectors of a rule that can match an element, without those of pseudo-elements."""
    return [one.strip() for one in separate(selector) if one.strip() and not _PSEUDO_ELEMENT.search(one)]


def add_others(
    cascade: Cascade,
    sheets: Sheets,
    known: set[Rule],
    words: Sequence[str],
    selectors: Callable[[str], Iterable[str]] = selectors_of,
) -> bool:
    """Add the other rules that match the elements in question; False where that is too much work.

    :param words: parts of the properties or selectors in question, in lower case.
    :param selectors: returns the selectors of elements of a rule.
    """
    elements = list(cascade.matching)
    keys = {f".{name}" for element in elements for name in (element.attr("class") or "").split()}
    keys.update(element.tag for element in elements)
    keys.update(f"#{element.attr('id')}" for element in elements if element.attr("id"))
    wanted = []
    for parts in sheets.parts:
        numbers = {number for word in words for number, part in enumerate(parts) if word in part}
        wanted.append({number for number in numbers if concerns(parts[number], keys)})
    work = 0
    for rule in sheets.rules(wanted):
        if rule in known:
            continue
        for selector in selectors(rule.selector):
            if is_on(selector, keys):
                work += len(elements) * (len(elements) if QUADRATIC.search(selector) else 1)
                if work > MAX_WORK:
                    return False
                specificity = specificity_of(selector)
                for element in matched_by(elements, selector):
                    cascade.add(element, rule, specificity)
                if cascade.matches > MAX_MATCHES:
                    return False
    return True


def matched_by(elements: list[Element], selector: str) -> Iterator[Element]:
    """Yield the elements that a selector matches; none where the parser does not know it."""
    try:
        for element in elements:
            if element.matches(selector):
                yield element
    except SelectorSyntaxError:
        return


def _hidden(cascade: Cascade, inline: Styles) -> dict[Element, bool]:
    """Return the elements whose cascade hides them, and whether that is by ``visibility`` alone."""
    hidden: dict[Element, bool] = {}
    known: dict[Any, frozenset[str]] = {}  # by rules and inline style: most elements share them
    for element, matched in cascade.matching.items():
        if element.tag in _NEVER or element.attr("role") == "main":
            continue
        if rules.VISUALLY_HIDDEN_CLASS.search(element.attr("class") or ""):
            continue  # meant to be read, by a screen reader
        key = (tuple(matched), element.attr("style"))
        if key not in known:
            known[key] = inline.unseen_by(cascade.style_of(element))
        by = known[key]
        # rules give a row of inline blocks no font size, so that no gap is between them; each block has its own. Of
        # colours of what is inside nothing is known
        own = ALL not in by and "visibility" not in by
        if by and not (own and any(isinstance(child, Element) for child in element.children)):
            hidden[element] = by == {"visibility"}
    return hidden


def _hider(node: object, hidden: Container[Element]) -> Element | None:
    """Return the nearest hidden element of a node and its ancestors; the parser caps their number at 511."""
    while isinstance(node, Element):
        if node in hidden:
            return node
        node = node.parent
    return None


def _shown_again(document: Document, sheets: Sheets, hidden: dict[Element, bool]) -> Hidden:
    """Return the hidden elements with the outermost descendants that ``visibility: visible`` shows."""
    result: Hidden = {element: [] for element in hidden}
    if not any(hidden.values()):
        return result
    visible = {
        element
        for element in document.select("[style*='visib' i]")
        if declared(element.attr("style") or "").get("visibility") == "visible"
    }
    elements, work = len(document.select("*")), 0
    wanted = [{number for number, part in enumerate(parts) if "visible" in part} for parts in sheets.parts]
    for rule in sheets.rules(wanted):
        if ("visibility", "visible") in {(name, value) for name, value, _ in declarations(rule.body)}:
            shows = [one for one in selectors_of(rule.selector) if not QUADRATIC.search(one)]
            work += len(shows) * elements
            if work > MAX_WORK:
                return {}
            for selector in shows:
                visible.update(select(document, selector))
    both = visible.union(hidden)
    for element in document.select("*") if visible else ():
        if element not in visible:
            continue
        above = _hider(element.parent, hidden)
        if above is not None and hidden[above] and _hider(element.parent, both) is above:
            result[above].append(element)
    return result
