"""What the styles of an OpenDocument text say of its paragraphs, runs and lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from xml.etree.ElementTree import Element

from .._common.xml import below, value, whole

_CAPTIONS: Final = frozenset("Caption Table Illustration Figure Drawing Text".split())
_CODE: Final = re.compile(r"preformatted|source_20_text|code|listing", re.IGNORECASE)
_HEAVY: Final = frozenset({"bold", "600", "700", "800", "900"})


@dataclass(frozen=True, slots=True)
class OdtStyle:
    """What a style says, what it is based on included."""

    title: bool = False
    caption: bool = False
    code: bool = False
    quote: bool = False
    hidden: bool = False
    bold: bool = False
    italic: bool = False
    raised: str = ""


@dataclass(frozen=True, slots=True)
class ListLevel:
    """How one level of a list is marked."""

    tag: str = "ul"
    kind: str = ""
    start: int = 1


class OdtStyles:
    """The styles of a document by name, automatic ones too."""

    def __init__(self, roots: Sequence[Element]) -> None:
        self._elements: dict[str, Element] = {}
        self._lists: dict[str, Element] = {}
        self.lang = ""
        for root in roots:
            for one in root.iter():
                if one.tag == "style:style" and value(one, "style:family") in ("paragraph", "text"):
                    self._elements.setdefault(value(one, "style:name"), one)
                elif one.tag == "text:list-style":
                    self._lists.setdefault(value(one, "style:name"), one)
                elif one.tag == "style:default-style" and not self.lang:
                    said = below(one, "style:text-properties")
                    self.lang = value(said, "fo:language") if value(said, "fo:language") != "none" else ""
        self._made: dict[str, OdtStyle] = {"": OdtStyle()}

    def get(self, name: str) -> OdtStyle:
        """Return a style; one that is missing says nothing."""
        if name not in self._made:
            chain = [name]
            while len(chain) < 20 and chain[-1] in self._elements:
                chain.append(value(self._elements[chain[-1]], "style:parent-style-name"))
            made = OdtStyle()
            for one in reversed(chain):
                made = self._applied(made, one)
            self._made[name] = made
        return self._made[name]

    def _applied(self, style: OdtStyle, name: str) -> OdtStyle:
        said = below(self._elements.get(name), "style:text-properties")
        weight, slant = value(said, "fo:font-weight"), value(said, "fo:font-style")
        place = value(said, "style:text-position").split(" ")[0]
        raised = style.raised
        if place:
            raised = "sup" if place == "super" or place[:1] in "123456789" else "sub" if place[0] in "s-" else ""
        shown = value(said, "text:display")
        return replace(
            style,
            title=style.title or name == "Title",
            caption=style.caption or name in _CAPTIONS,
            code=style.code or bool(_CODE.search(name)),
            quote=style.quote or name in ("Quotations", "Quote"),
            hidden=shown in ("none", "condition") if shown else style.hidden,
            bold=weight in _HEAVY if weight else style.bold,
            italic=slant in ("italic", "oblique") if slant else style.italic,
            raised=raised,
        )

    def list_level(self, name: str, level: int) -> ListLevel:
        """Return how a level of a list is marked; without a style it is a bullet."""
        for one in self._lists.get(name, ()):
            if value(one, "text:level") == str(level):
                form, start = value(one, "style:num-format"), whole(value(one, "text:start-value"), 1)
                if one.tag == "text:list-level-style-number" and form:
                    return ListLevel("ol", form[:1], start)
                return ListLevel()
        return ListLevel()
