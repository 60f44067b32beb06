"""Read the styles of an OpenDocument text: paragraphs, runs and lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from xml.etree.ElementTree import Element

from .._common.xml import attribute, find_path, whole_number

_CAPTIONS: Final = frozenset("Caption Table Illustration Figure Drawing Text".split())
_CODE: Final = re.compile(r"preformatted|source_20_text|code|listing", re.IGNORECASE)
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
    """The marking of one level of a list: tag, ``type`` attribute and first number."""

    tag: str = "ul"
    kind: str = ""
    start: int = 1


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
        self.lang = ""
        for root in roots:
            for element in root.iter():
                if element.tag == "style:style" and attribute(element, "style:family") in ("paragraph", "text"):
                    self._elements.setdefault(attribute(element, "style:name"), element)
                elif element.tag == "text:list-style":
                    self._lists.setdefault(attribute(element, "style:name"), element)
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
        """Return the marking of a list level; a list without a style has bullets."""
        for element in self._lists.get(name, ()):
            if attribute(element, "text:level") == str(level):
                number_format, start = (
                    attribute(element, "style:num-format"),
                    whole_number(attribute(element, "text:start-value"), 1),
                )
                if element.tag == "text:list-level-style-number" and number_format:
                    return ListLevel("ol", number_format[:1], start)
                return ListLevel()
        return ListLevel()
