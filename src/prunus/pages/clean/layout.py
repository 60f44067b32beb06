"""Finds where a page's own CSS parts words, keeps line breaks, strikes words, or keeps line numbers out of code.

Words are parted as on the screen: an inline element that is a block begins and ends a line; the items of flex and grid
boxes, cells, floats and positioned elements are apart by a space. Rules of ``<style>`` elements and inline styles
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ...core.text.numbers import bounded_int
from . import rules
from .cascade import Cascade, Sheets, add_others, affordable, is_on, select, selectors_of, specificity_of
from .css import declared, pixels
from .hidden import Styles
from .parse import Document, Element, Text
from .stylesheet import Rule

APART: Final = 1
"""A space is before a node."""

ON_LINE: Final = 2
"""An inline element is a block."""

LINES: Final = 4
"""A text keeps its line breaks."""

RAW: Final = 8
"""An element keeps all its white space."""

UNSEEN: Final = 16
"""A text, or an element in code, is no part of the words around it."""

AFTER: Final = 32
"""A node follows a block in text of one line."""

STRUCK: Final = 64
"""A sheet strikes an element's words through."""

RAISED: Final = 128
"""An inline element is a superscript by its style."""

LOWERED: Final = 256
"""An inline element is a subscript by its style."""

Layout: TypeAlias = "dict[Any, int]"
"""Nodes, and the sum of what is said of each."""

MAX_ITEMS: Final = 200_000
"""Items of flex and grid boxes, and nodes in elements that keep line breaks, that are looked at in a page."""

PARTED: Final = frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr output q s samp small span
    strike strong time tt u var""".split()
)
"""Inline elements that a display of their own parts; the others are apart anyway, or belong to the word before."""

_UNSEEN_WORDS: Final = "span.sr-only,span.visually-hidden,span.visuallyhidden,span.screen-reader-text"
"""Words for screen readers, out of the line."""

_CLASSED: Final = ",".join(f"{tag}[class]" for tag in sorted(PARTED))
_PROPERTIES: Final = ("display", "float", "white-space", "user-select")
_RARE: Final = {"text-decoration": "line-through", "vertical-align": "vertical-align"}
"""Properties that are looked for only where a rule says this."""
_ON_ALL_TAGS: Final = re.compile(
    r"white-space|user-select|line-through|display\s*+:\s*+(?:block )?[a-z-]{0,16}?(?:flex|grid|box)", re.IGNORECASE
)
"""What a rule says about elements that are not inline."""
_NEAR: Final = 16
"""Ancestors that are looked at."""
_FEW: Final = 5
"""Selectors from which on the classes of the page's inline elements are collected first."""
_BLOCKS: Final = re.compile(
    r"(?:block|flex|grid|table|list-item|flow-root|table-(?:row|caption)(?:-group)?|table-(?:header|footer)-group|"
    r"-webkit-(?:box|flex)|-ms-(?:flexbox|grid)|-moz-box)(?: |\Z)"
)
_ITEMS: Final = re.compile(
    r"(?:-webkit-|-ms-)?(?:inline-)?(?:flex|grid|flexbox)(?: |\Z)|block (?:flex|grid)|-webkit-box"
)
_KEPT: Final = re.compile(r"(pre(?!-line|serve-breaks)|break-spaces)|pre-line|preserve-breaks")
_CURRENCIES: Final = frozenset("$€£¥₹")
_SCRIPTS: Final = {"super": RAISED, "sub": LOWERED}
_CODE: Final = frozenset({"code", "samp", "kbd", "tt"})
_RAW_TAGS: Final = PARTED - {"a"} | {"div", "p"}
_GAP: Final = re.compile(r"\S {3,}+\S")
_NUMBERS: Final = re.compile(r"\s*+(?:\d++[.:|]?+\s*+)++")
_PROMPT: Final = re.compile(r"\s*[^\w\s]{1,3}\s*")
_NUMBER_CLASS: Final = re.compile(
    r"(?:^|[\s_-])(?:line-?no(?:s|div)?|line-?numbers?|lnt?|lnos?|gutter(?:-gl)?|rouge-gutter|num)(?:$|[\s_-])",
    re.IGNORECASE,
)
"""Classes of line numbers: of Pygments, Chroma, Rouge, highlight.js, Prism and others."""


def layout_of(document: Document, sheets: Sheets, inline: Styles, styled: Iterable[Element]) -> Layout:
    """Return what the styles of a page say about the places of its words.

    :param inline: the inline styles of the page.
    :param styled: elements among which all with a style are.
    """
    maker = _Layouter(inline)
    for element, values in _by_sheets(document, sheets):
        maker.said[element] = values
    known: dict[str, int] = {}
    said = maker.said
    for element in styled:
        style = element.attr("style")
        if style:
            says = known.get(style)
            if says is None:
                says = known[style] = _says(style.lower())
            if says and (says > 1 or element.tag in PARTED) and element not in said:
                said[element] = inline.values(style)
        elif "whitespace-pre" in (element.attr("class") or "") and element not in said:
            said[element] = _by_class(element)
    for element, values in maker.said.items():
        maker.add(element, values)
    for element in document.select(_UNSEEN_WORDS):
        maker.add_unseen(element)
    for code in document.select("pre"):
        maker.add_line_numbers(code)
    return maker.layout


_IN_LINE: Final = re.compile(r"display|float|absolute|fixed|vertical-align\s*+:\s*+su")
"""What lays out an inline element."""


def _says(style: str) -> int:
    """Return 2 where a style may lay out an element of any tag, 1 where only an inline one, 0 where none."""
    if "flex" in style or "grid" in style or "-box" in style or "white-space" in style or "user-select" in style:
        return 2
    return 1 if _IN_LINE.search(style) else 0


def _by_class(element: Element) -> dict[str, str]:
    """Return what Tailwind's classes say about white space."""
    for name in (element.attr("class") or "").split():
        if name.startswith("whitespace-"):
            return {"white-space": name.removeprefix("whitespace-")}
    return {}


def _by_sheets(document: Document, sheets: Sheets) -> Iterator[tuple[Element, Mapping[str, str]]]:
    """Yield the elements that a rule may lay out, and what the cascade says of each."""
    if not any(sheet.laying for sheet in sheets.sheets):
        return
    laying: list[tuple[Rule, str, bool]] = []  # the rule, a selector, and whether only inline elements count
    for rule in sheets.rules([set(sheet.laying) for sheet in sheets.sheets]):
        only_inline = not _ON_ALL_TAGS.search(rule.body)
        laying.extend((rule, selector, only_inline) for selector in selectors_of(rule.selector))
    if len(laying) > _FEW:
        names = _inline_names(document)
        laying = [one for one in laying if not one[2] or is_on(one[1], names)]
    if not affordable(document, [selector for _, selector, _ in laying]):
        return
    cascade = Cascade()
    for rule, selector, only_inline in laying:
        specificity = specificity_of(selector)
        for element in select(document, selector):
            if not only_inline or element.tag in PARTED:
                cascade.add(element, rule, specificity)
        if cascade.matches > MAX_ITEMS:
            return
    bodies = " ".join(rule.body for rule in cascade.said).lower()
    words = [*_PROPERTIES, *(name for name, sign in _RARE.items() if sign in bodies)]
    if not cascade.matching or not add_others(cascade, sheets, {rule for rule, _, _ in laying}, words):
        return
    known: dict[Any, dict[str, str]] = {}
    for element, matched in cascade.matching.items():
        key = (tuple(matched), element.attr("style"))
        if key not in known:
            known[key] = declared(cascade.style_of(element))
        yield element, known[key]


def _inline_names(document: Document) -> set[str]:
    """Return the tags, classes and ids of the inline elements of a page, as selectors write them."""
    classes = {element.attr("class") or "" for element in document.select(_CLASSED)}
    names = {f".{name}" for name in " ".join(classes).split()}
    return names | {f"#{element.attr('id')}" for element in document.select("[id]")} | PARTED


class _Layouter:
    """Collects what is said of the nodes of a page."""

    def __init__(self, inline: Styles) -> None:
        self.layout: Layout = {}
        self.said: dict[Element, Mapping[str, str]] = {}
        self._inline = inline
        self._work = 0

    def add(self, element: Element, values: Mapping[str, str]) -> None:
        """Add what the styles of an element say."""
        display = values.get("display", "")
        if display == "none":
            return
        if display and _ITEMS.match(display):
            self._add_items(element, any(_has_gap(values.get(name, "")) for name in ("gap", "column-gap", "grid-gap")))
        tag = element.tag
        if tag in PARTED:
            if values.get("float", "none").endswith(("left", "right", "start", "end")) or values.get("position") in (
                "absolute",
                "fixed",
            ):
                if not self._is_initial(element):
                    self._add_apart(element)
            elif _BLOCKS.match(display) and not _is_alone(element):
                self._say(element, ON_LINE)
            elif display == "table-cell":
                self._add_apart(element)
            if (script := _SCRIPTS.get(values.get("vertical-align", ""))) is not None:
                self._say(element, script)
        if "line-through" in values.get("text-decoration-line", values.get("text-decoration", "")):
            self._say(element, STRUCK)
        kept = _KEPT.match(values.get("white-space-collapse", values.get("white-space", "")))
        if kept and tag not in rules.PREFORMATTED:
            self._keep_lines(element, bool(kept[1]))
        select = (values.get("user-select"), values.get("-webkit-user-select"))
        if "none" in select and self._is_number(element) and (element.closest("pre,code") or _numbers_code(element)):
            self._say(element, UNSEEN)

    def add_unseen(self, element: Element) -> None:
        """Part words for screen readers from whole words and prices beside them."""
        words = self._text(element)
        before, following = element.previous_sibling, after(element)
        if len(words.strip()) < 3:
            return  # the end of a word, as an "s"
        if before is not None and words[:1].isalnum() and self._text_in(before)[-1:].isalnum():
            self._say(element, APART)
        beside = self._text_in(following)[:1] if following is not None else ""
        if words[-1:].isalnum() and (beside.isalnum() or beside in _CURRENCIES):
            self._say(following, APART)

    def add_line_numbers(self, code: Element) -> None:
        """Add the line numbers in a ``<pre>``, or the whole of one that holds the numbers of another's lines."""
        above = code.parent
        if isinstance(above, Element) and above.closest("pre") is not None:
            return
        for inner in code.select("[class]"):
            if _NUMBER_CLASS.search(inner.attr("class") or "") and self._is_number(inner):
                self._say(inner, UNSEEN)
        cell = code.closest("td")
        if cell is not None and _counts(self._text(code)) and _numbers_code(cell):
            self._say(cell, UNSEEN)

    def _text(self, element: Element) -> str:
        """Return the text of an element; '' where many were read, as nested elements repeat theirs."""
        if self._work > MAX_ITEMS:
            return ""
        text = element.text
        self._work += 1 + (len(text) >> 6)
        return text

    def _text_in(self, node: Any) -> str:
        """Return the text of a node; '' for a comment."""
        return node.data if isinstance(node, Text) else self._text(node) if isinstance(node, Element) else ""

    def _is_number(self, element: Element) -> bool:
        """Tell whether an element holds only numbers of lines, or a prompt."""
        words = self._text(element)
        return bool(words) and bool(_NUMBERS.fullmatch(words) or _PROMPT.fullmatch(words))

    def _is_initial(self, element: Element) -> bool:
        """Tell whether an element is the first letter of the word that follows it, drawn large."""
        words = self._text(element).strip()
        return len(words) <= 2 and words[-1:].isalpha()

    def _say(self, node: Any, what: int) -> None:
        self.layout[node] = self.layout.get(node, 0) | what

    def _add_apart(self, element: Element) -> None:
        """Part an element from the words before and after it."""
        self._say(element, APART)
        following = after(element)
        if following is not None:
            self._say(following, APART)

    def _add_items(self, box: Element, gap: bool) -> None:
        """Part the items of a flex or grid box; a sign stays beside its number, and single letters make a word.

        :param gap: the box says that there is room between its items.
        """
        before = ""
        for item in box.children:
            if isinstance(item, Text):
                words = item.data.strip()
            elif isinstance(item, Element):
                words = self._text(item).strip() if item.tag in PARTED else ""
            else:
                continue
            if words and before:
                single = len(words) == 1 and len(before) == 1 and not gap
                if not single and not _is_sign(words, before[-1]) and not _is_sign(before, words[0]):
                    self._say(item, APART)
            before = words or before

    def _keep_lines(self, element: Element, spaces: bool) -> None:
        """Keep the line breaks of an element's texts, or all its white space where its lines are indented."""
        text = self._text(element)
        if "\n" not in text.strip():
            return
        inside = element.select_one("a[href],img,pre,p,div,ul,ol,table,br,blockquote,h1,h2,h3,h4")
        if spaces and inside is None and element.tag in _RAW_TAGS and (element.tag in _CODE or _has_shape(text)):
            self._say(element, RAW)
            return
        stack: list[Any] = [element]
        while stack and self._work < MAX_ITEMS:
            node = stack.pop()
            for child in node.children:
                self._work += 1
                if isinstance(child, Text):
                    if "\n" in child.data and (not child.data.isspace() or _is_between_words(child)):
                        self._say(child, LINES)
                elif isinstance(child, Element) and child.tag not in rules.DROPPED | rules.PREFORMATTED:
                    own = self.said.get(child)
                    white_space = own.get("white-space") if own else None
                    if white_space in (None, "inherit", "unset") or _KEPT.match(white_space or ""):
                        stack.append(child)


def _has_gap(value: str) -> bool:
    """Tell whether the last length of a ``gap`` is more than nothing; a width that is not known is some."""
    last = value.split()[-1] if value.split() else "0"
    return last != "normal" and pixels(last) != 0


def after(element: Element) -> Any:
    """Return the node that follows an element, its inline ancestors left; None where its block ends."""
    node: Any = element
    for _ in range(_NEAR):
        if node.next_sibling is not None:
            return node.next_sibling
        node = node.parent
        if not isinstance(node, Element) or node.tag not in PARTED:
            return None
    return None


def _is_alone(element: Element) -> bool:
    """Tell whether an element is all that its block holds."""
    above = element.parent
    if isinstance(above, Element) and above.tag in PARTED:
        return False
    beside: Any = (element.previous_sibling, element.next_sibling)
    return all(node is None or (isinstance(node, Text) and node.data.isspace() and _ends(node)) for node in beside)


def _ends(text: Text) -> bool:
    """Tell whether a text begins or ends its parent."""
    return text.previous_sibling is None or text.next_sibling is None


def _is_sign(words: str, beside: str) -> bool:
    """Tell whether an item is the sign of a number beside it: of a currency, percent."""
    return len(words) == 1 and not words.isalnum() and beside.isdigit()


def _has_shape(text: str) -> bool:
    """Tell whether white space gives lines a shape: they have columns, or are indented in several ways."""
    lines = [line for line in text.strip().expandtabs(4).split("\n") if line.strip()]
    indents = {len(line) - len(line.lstrip()) for line in lines[1:]}  # the same for all is a habit of the source
    if len(indents) > 1 or (len(lines) == 2 and 0 not in indents):
        return True
    return sum(_GAP.search(line) is not None for line in lines) > 1


def _is_between_words(text: Text) -> bool:
    """Tell whether white space stands between two inline elements."""
    before, following = text.previous_sibling, text.next_sibling
    return all(isinstance(node, Element) and node.tag in PARTED for node in (before, following))


def _counts(text: str) -> bool:
    """Tell whether a text holds consecutive numbers and nothing else."""
    numbers = [bounded_int(number, -1, most=999_999) for number in text.split()]
    return bool(numbers) and numbers[0] >= 0 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _numbers_code(element: Element) -> bool:
    """Tell whether code stands right after an element in its row."""
    following: Any = element.next_sibling
    while isinstance(following, Text) and following.data.isspace():
        following = following.next_sibling
    return isinstance(following, Element) and (
        following.tag in ("pre", "code") or following.select_one("pre,code") is not None
    )
