"""Read the styles of an OpenDocument text: paragraphs, runs and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from xml.etree.ElementTree import Element

from .._common.numerals import bullet_of, numeral
from .._common.xml import attribute, find_path, whole_number

_CAPTIONS: Final = frozenset("Caption Table Illustration Figure Drawing Text".split())
_CODE: Final = re.compile(r"preformatted|source_20_text|code|listing", re.IGNORECASE)
_KINDS: Final = {"一, 二, 三, ...": "一", "①, ②, ③, ...": "①", "01, 02, 03, ...": "01"}
MAX_LABEL: Final = 200
"""Characters of a label, and of what stands before and after its number."""

OUTLINE: Final = " outline"
"""The name here of the list style that numbers the headings; no other style has it."""

_HEAVY: Final = frozenset({"bold", "600", "700", "800", "900"})


@dataclass(frozen=True, slots=True)
class OdtStyle:
    """A style, with its parent styles applied."""

    title: bool = False
    caption: bool = False
    code: bool = False
    quote: bool = False
    hidden: bool = False
    bold: bool = False
    italic: bool = False
    raised: str = ""
    struck: bool = False
    unstruck: bool = False  # it says that nothing is struck
    font: str = ""


@dataclass(frozen=True, slots=True)
class ListLevel:
    """The labels of one level of a list.

    :param kind: as of :func:`numeral`; '' where it has no number.
    :param shown: levels whose numbers a label shows, its own the last.
    :param bullet: character that a bullet shows.
    """

    kind: str = ""
    start: int = 1
    shown: int = 1
    before: str = ""
    after: str = ""
    doubles: bool = False
    bullet: str = ""

    def number(self, count: int) -> str:
        """Return a number as the labels show it."""
        return numeral(count, self.kind, doubles=self.doubles)


def raised_by(position: str) -> str:
    """Return the element of words at a text position: ``sup``, ``sub``, or '' on the line."""
    place = position.strip().partition(" ")[0]
    if place == "super" or place[:1] in tuple("123456789"):
        return "sup"
    return "sub" if place[:1] in ("s", "-") else ""


class OdtStyles:
    """The styles of a document by name, automatic styles included."""

    def __init__(self, roots: Sequence[Element]) -> None:
        self._elements: dict[str, Element] = {}
        self._lists: dict[str, Element] = {}
        self._levels: dict[tuple[str, int], ListLevel] = {}
        self.lang = ""
        for root in roots:
            for element in root.iter():
                if element.tag == "style:style" and attribute(element, "style:family") in ("paragraph", "text"):
                    self._elements.setdefault(attribute(element, "style:name"), element)
                elif element.tag == "text:list-style":
                    self._lists.setdefault(attribute(element, "style:name"), element)
                elif element.tag == "text:outline-style":
                    self._lists.setdefault(OUTLINE, element)
                elif element.tag == "style:default-style" and not self.lang:
                    props = find_path(element, "style:text-properties")
                    self.lang = attribute(props, "fo:language") if attribute(props, "fo:language") != "none" else ""
        self._made: dict[str, OdtStyle] = {"": OdtStyle()}

    def get(self, name: str) -> OdtStyle:
        """Return a style; a missing style is an empty style."""
        if name not in self._made:
            chain = [name]
            while len(chain) < 20 and chain[-1] in self._elements:  # parents may form a circle
                chain.append(attribute(self._elements[chain[-1]], "style:parent-style-name"))
            style = OdtStyle()
            for ancestor in reversed(chain):
                style = self._applied(style, ancestor)
            self._made[name] = style
        return self._made[name]

    def _applied(self, style: OdtStyle, name: str) -> OdtStyle:
        props = find_path(self._elements.get(name), "style:text-properties")
        weight, slant = attribute(props, "fo:font-weight"), attribute(props, "fo:font-style")
        place = attribute(props, "style:text-position")
        shown = attribute(props, "text:display")
        struck = attribute(props, "style:text-line-through-style") or attribute(props, "style:text-line-through-type")
        return replace(
            style,
            title=style.title or name == "Title",
            caption=style.caption or name in _CAPTIONS,
            code=style.code or bool(_CODE.search(name)),
            quote=style.quote or name in ("Quotations", "Quote"),
            hidden=shown in ("none", "condition") if shown else style.hidden,
            bold=weight in _HEAVY if weight else style.bold,
            italic=slant in ("italic", "oblique") if slant else style.italic,
            raised=raised_by(place) if place else style.raised,
            struck=struck != "none" if struck else style.struck,
            unstruck=struck == "none" if struck else style.unstruck,
            font=attribute(props, "style:font-name") or attribute(props, "fo:font-family").strip("'") or style.font,
        )

    def list_level(self, name: str, level: int) -> ListLevel:
        """Return the labels of a list level; a list without a style has bullets."""
        if (name, level) not in self._levels:
            self._levels[name, level] = _list_level(self._lists.get(name, ()), level)
        return self._levels[name, level]


def _list_level(levels: Iterable[Element], level: int) -> ListLevel:
    for element in levels:
        if attribute(element, "text:level") != str(level):
            continue
        before, after = (attribute(element, f"style:num-{side}")[:MAX_LABEL] for side in ("prefix", "suffix"))
        if element.tag == "text:list-level-style-bullet":
            font = attribute(find_path(element, "style:text-properties"), "style:font-name")
            return ListLevel(bullet=bullet_of(font, attribute(element, "text:bullet-char")))
        if element.tag in ("text:list-level-style-number", "text:outline-level-style"):
            kind = attribute(element, "style:num-format")
            return ListLevel(
                _KINDS.get(kind, kind if len(kind) < 2 else "1"),
                whole_number(attribute(element, "text:start-value"), 1),
                whole_number(attribute(element, "text:display-levels"), 1, most=10),
                before,
                after,
                attribute(element, "style:num-letter-sync") == "true",
            )
    return ListLevel()
