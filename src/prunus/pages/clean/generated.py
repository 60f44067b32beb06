"""Puts words into a page that its own ``<style>`` elements show (``content`` of ``::before`` and ``::after``).

Words and numbers, currencies, ``%`` and ``°``, brackets, and the marks of footnotes and of fields to fill are shown; so
are signs that touch a number, as "−" and "/", commas and colons after words, and ticks and crosses. Left out are
counters and pictures, letters of icon fonts, arrows, bullets, quotation marks and stars, what is hidden, what repeats
the element's own words, and all in code. Separators, as "|" and "·", become a space. Variables and style sheets of
shadow roots are not read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from ...core.text.numbers import bounded_int
from . import rules
from .cascade import Cascade, Said, Sheets, add_others, affordable, is_on, names_on, select, specificity_of
from .css import ESCAPE, declarations, declared, escaped, unseen_by
from .parse import Document, Element, Text
from .stylesheet import Rule, separate

MAX_PLACES: Final = 50_000
"""Places of generated words in a page at most. On a page with more, none are shown."""

_MANY: Final = 10
"""Selectors from which on the classes and ids of the page are collected first."""
_LONGEST: Final = 200  # code points of the words in one place
_NEAR: Final = 8  # nodes among which the words beside a sign are looked for

_PSEUDO: Final = re.compile(r"::?(before|after)\Z", re.IGNORECASE)
_STARTED: Final = re.compile(r"(?:\A|[\s>+~])\Z")
_TOKEN: Final = re.compile(
    r"\"((?:[^\"\\]|\\.)*+)\"?|'((?:[^'\\]|\\.)*+)'?|attr\(\s*+([\w-]++)[^()]*+\)|(/)|\s++|(\S)",
    re.DOTALL | re.IGNORECASE,
)
_PROPERTIES: Final = frozenset(
    """-webkit-clip-path -webkit-text-fill-color bottom clip clip-path color content-visibility display filter float
    font font-family font-size height inset left margin margin-left margin-top max-height max-width opacity overflow
    overflow-x overflow-y position right scale text-indent top transform translate visibility width""".split()
)
"""The properties that say whether generated words are seen, and whether they are apart. No transition counts: what is
shown under the pointer is not seen."""

_ICON_FONT: Final = re.compile(r"icon|awesome|glyph|symbol|fontello|icomoon|material|dingbat", re.IGNORECASE)
_FONT_LETTERS: Final = re.compile(r"[\ue000-\uf8ff\U000f0000-\U0010fffd]+")
_OF_LINES: Final = re.compile(r"line|counter|index", re.IGNORECASE)
"""Attributes with numbers of lines."""

_NO_BOX: Final = (
    rules.DROPPED
    | rules.VOID
    | rules.PREFORMATTED
    | rules.MEDIA
    | frozenset(
        """html head title body noscript select option optgroup object progress meter math ruby rb rp rt rtc table
        thead tbody tfoot tr""".split()
    )
)
"""Elements into which no words are put: they have no such boxes, show the state of the page, or hold no words."""

_CODE: Final = "pre,textarea,math,svg,select"
_FOR_USE: Final = frozenset({"a", "button", "label", "summary"})
_ITEMS: Final = frozenset({"li", "dt", "dd"})
_MARKS: Final = frozenset("()[]%‰°*†‡")
_AFTER_WORDS: Final = frozenset(",:;")
_OF_NUMBERS: Final = frozenset("−-–+±~≈<>≤≥=×/.#§№′″")
_TICKS: Final = frozenset("✓✔☑✅✗✘❌")
_SEPARATORS: Final = frozenset("·•∙|/\\›»>→—–-~⋅♦")

_Content: TypeAlias = "list[tuple[str, str]]"
"""Words, or the name of an attribute that has them."""


class _Box(NamedTuple):
    """What rules say of the box before or after an element.

    :param content: its parts; none where nothing is shown.
    :param apart: it does not touch the words beside it.
    """

    content: _Content
    apart: bool


_NONE: Final = _Box([], False)


def show_generated(document: Document, sheets: Sheets) -> None:
    """Put the words into the page that its sheets show before and after elements."""
    if any(sheet.saying for sheet in sheets.sheets):
        for after in (False, True):
            for element, words in _Side(document, sheets, after).found():
                if after:
                    element.append(Text(words))
                else:
                    element.insert(0, Text(words))


class _Side:
    """Finds what the sheets of a page show on one side of its elements.

    :param after: whether this is the side after the elements' own words.
    """

    def __init__(self, document: Document, sheets: Sheets, after: bool) -> None:
        self._document = document
        self._sheets = sheets
        self._after = after
        self._cascade = Cascade(_declarations)

    def found(self) -> list[tuple[Element, str]]:
        """Return the elements and the words on this side of them."""
        if not self._match():
            return []
        boxes: dict[Any, _Box] = {}
        result = []
        for element, rules_of in self._cascade.matching.items():
            key = tuple(rules_of)
            box = boxes.get(key)
            if box is None:
                box = boxes[key] = self._box(rules_of)
            words = _words(element, box, self._after) if box.content else ""
            if words:
                result.append((element, words))
        return result

    def _selectors(self, selector: str) -> list[str]:
        """Return the selectors of the elements on this side of which a rule says something."""
        found = []
        for one in separate(selector):
            pseudo = _PSEUDO.search(one.strip())
            if pseudo and (pseudo[1].lower() == "after") is self._after:
                base = one.strip()[: pseudo.start()]
                found.append(f"{base}*" if _STARTED.search(base) else base)
        return found

    def _match(self) -> bool:
        """Collect the elements beside which rules say words, with all rules of that place; False where it is none."""
        wanted = [set(sheet.saying) for sheet in self._sheets.sheets]
        saying = [(rule, one) for rule in self._sheets.rules(wanted) for one in self._selectors(rule.selector)]
        if len(saying) > _MANY:
            names = names_on(self._document)
            saying = [(rule, selector) for rule, selector in saying if is_on(selector, names)]
        if not saying or not affordable(self._document, [selector for _, selector in saying]):
            return False
        for rule, selector in saying:
            specificity = specificity_of(selector)
            for element in select(self._document, selector):
                if element.tag not in _NO_BOX:
                    self._cascade.add(element, rule, specificity)
            if self._cascade.matches > MAX_PLACES:
                return False
        known, name = {rule for rule, _ in saying}, ":after" if self._after else ":before"
        return bool(self._cascade.matching) and add_others(self._cascade, self._sheets, known, [name], self._selectors)

    def _box(self, rules_of: list[tuple[Rule, int]]) -> _Box:
        """Return what the winning declarations of some rules say."""
        values = self._cascade.values_of(rules_of)
        content = _content(values.pop("content", ""))
        if not content or _ICON_FONT.search(f"{values.get('font-family', '')} {values.get('font', '')}"):
            return _NONE
        values = declared(";".join(f"{name}:{value}" for name, value in values.items()))
        if unseen_by(values):
            return _NONE
        apart = (
            values.get("position") in ("absolute", "fixed")
            or values.get("float", "none") != "none"
            or values.get("display", "inline").partition(" ")[0] in ("block", "flex", "grid", "table", "list-item")
        )
        return _Box(content, apart)


def _declarations(body: str) -> Iterator[Said]:
    """Yield the declarations of a rule that count; the value of ``content`` as it is written."""
    for declaration in escaped(body).split(";"):
        name, _, value = declaration.partition(":")
        if name.strip().lower() == "content":
            value, mark, important = value.rpartition("!")
            if important.strip().lower() == "important":
                yield "content", value.strip(), True
            else:
                yield "content", f"{value}{mark}{important}".strip(), False
    for name, value, is_important in declarations(body):
        if name in _PROPERTIES:
            yield name, value, is_important


def _content(value: str) -> _Content:
    """Return the parts of a ``content``; none where it holds others than strings and attributes.

    What follows a "/" is for screen readers.
    """
    parts: _Content = []
    for token in _TOKEN.finditer(value):
        if token[4]:
            break
        if token[5]:
            return []
        string = token[1] if token[1] is not None else token[2]
        if string:
            words = ESCAPE.sub(_letter, string.replace("\\\n", ""))
            parts.append((_FONT_LETTERS.sub("", words), ""))
        elif token[3] and not _OF_LINES.search(token[3]):
            parts.append(("", token[3].lower()))
    return parts


def _letter(escape: re.Match[str]) -> str:
    """Return the letter of a CSS escape."""
    if escape[2]:
        return escape[2]
    code = bounded_int(escape[1], 0, most=0x110000, base=16)
    return "\ufffd" if not code or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)


def _words(element: Element, box: _Box, after: bool) -> str:
    """Return the words that a box shows; '' where it is for the look, a space where it only parts words."""
    words = "".join(text or element.attr(name) or "" for text, name in box.content)
    bare = words.strip()
    if not bare or len(words) > _LONGEST or element.closest(_CODE) is not None:
        return ""
    if not element.children and rules.ICON_CLASS.search(element.attr("class") or ""):
        return ""
    if not _is_said(element, words, box, after):
        return " " if element.children and _SEPARATORS.issuperset(bare.replace(" ", "")) else ""
    if any(name for _, name in box.content) and _says(element, words):
        return ""  # the shadow of a heading, or the room for bold letters
    return f" {words} " if box.apart else words


def _says(element: Element, words: str) -> bool:
    """Tell whether an element has these words, and no others; few of a long element are read."""
    own: list[str] = []
    letters = 0
    for text in element.strings:
        letters += len(text) - text.count(" ")
        if letters > len(words):
            return False
        own.append(text)
    return " ".join("".join(own).split()) == " ".join(words.split())


def _is_said(element: Element, words: str, box: _Box, after: bool) -> bool:
    """Tell whether words say something, and are no decoration."""
    bare = words.strip()
    if any(letter.isalnum() or unicodedata.category(letter) == "Sc" for letter in bare):
        single = len(bare) == 1 and bare.isascii() and bare.isalpha()  # a unit, or a letter of an icon font
        return not single or (not box.apart and _beside(element, after)[-1:].isdigit())
    if _TICKS.issuperset(bare):
        return element.tag not in _FOR_USE
    if _MARKS.issuperset(bare):
        return after or element.tag not in _ITEMS or bare[0] in "(["
    if _AFTER_WORDS.issuperset(bare):
        return after and not words[0].isspace() and bool(_beside(element, after))
    touches = words[0] == bare[0] if after else words[-1] == bare[-1]
    if not touches or box.apart or element.tag in _FOR_USE or not _OF_NUMBERS.issuperset(bare):
        return False
    beside = _beside(element, after)
    return beside.isdigit() or (not after and unicodedata.category(beside or " ") == "Sc")


def _beside(element: Element, after: bool) -> str:
    """Return the letter that generated words touch: in the element, or beside an empty one; '' where there is none."""
    node: Any = element if element.children else element.previous_sibling if after else element.next_sibling
    for _ in range(_NEAR):
        if isinstance(node, Text):
            return (node.data.rstrip()[-1:] if after else node.data.lstrip()[:1]) or ""
        if not isinstance(node, Element) or not node.children:
            return ""
        node = node.children[-1 if after else 0]
    return ""
