"""What styles and numbering of a Word document say of its paragraphs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from .._common.xml import below, each, value, whole
from .._common.zip import Archive

_HEADING: Final = re.compile(r"(?:heading|überschrift|titre|titolo|título)\s*([1-9])", re.IGNORECASE)
_LIST: Final = re.compile(r"list (?:bullet|number) ([2-5])", re.IGNORECASE)
_CODE: Final = re.compile(r"code|preformatted|listing|verbatim|macro text", re.IGNORECASE)
_QUOTE: Final = re.compile(r"quote|zitat|citation|block text", re.IGNORECASE)
_KINDS: Final = {
    "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I", "bullet": "", "none": "",
}  # fmt: skip
_OFF: Final = frozenset({"0", "false", "off"})


def is_on(element: Element | None) -> bool:
    """Tell whether a switch such as ``w:b`` is on: there, and not said to be off."""
    return element is not None and value(element, "w:val", "1") not in _OFF


@dataclass(slots=True)
class WordStyle:
    """What a paragraph or run style says, what it is based on included."""

    heading: int = 0
    title: bool = False
    caption: bool = False
    code: bool = False
    quote: bool = False
    hidden: bool = False
    number: tuple[str, int] | None = None  # numId, level
    bold: bool = False
    italic: bool = False


@dataclass(slots=True)
class Level:
    """One level of a numbering."""

    kind: str = ""  # the type of an <ol>; '' for a bullet
    bullet: bool = False
    start: int = 1
    text: str = ""


class WordStyles:
    """The styles of a document by id."""

    def __init__(self, root: Element | None) -> None:
        self._elements = {value(one, "w:styleId"): one for one in each(root, "w:style")}
        self._made: dict[str, WordStyle] = {}
        self.default = next(
            (
                key
                for key, one in self._elements.items()
                if value(one, "w:default") in ("1", "true") and value(one, "w:type") == "paragraph"
            ),
            "",
        )

    def get(self, key: str) -> WordStyle:
        """Return a style; one that is missing says nothing."""
        if key not in self._made:
            chain: list[Element] = []
            at = key
            while at in self._elements and len(chain) < 20:
                chain.append(self._elements[at])
                at = value(below(self._elements[at], "w:basedOn"), "w:val")
            style = WordStyle()
            for element in reversed(chain):
                _apply(style, element)
            self._made[key] = style
        return self._made[key]


def heading_level(outline: str, otherwise: int) -> int:
    """Return which heading an outline level is, 0 for the level of body text; ``otherwise`` where none is said."""
    level = whole(outline, -1)
    if level < 0:
        return otherwise
    return min(level + 1, 6) if level < 9 else 0


def _apply(style: WordStyle, element: Element) -> None:
    name = value(below(element, "w:name"), "w:val")
    about, run = below(element, "w:pPr"), below(element, "w:rPr")
    found = _HEADING.match(name)
    outline = value(below(about, "w:outlineLvl"), "w:val")
    style.heading = min(int(found[1]), 6) if found else heading_level(outline, style.heading)
    style.title = style.title or name.lower() in ("title", "titel", "titre")
    style.caption = style.caption or name.lower() in ("caption", "beschriftung", "légende")
    style.code = style.code or bool(_CODE.search(name))
    style.quote = style.quote or bool(_QUOTE.search(name))
    number = number_of(about)
    if number is not None:
        style.number = number
    deep = _LIST.fullmatch(name)
    if deep and style.number:  # each of these has a numbering of its own, and all stand on its first level
        style.number = (style.number[0], max(style.number[1], int(deep[1]) - 1))
    for key, attribute in (("w:vanish", "hidden"), ("w:b", "bold"), ("w:i", "italic")):
        found_switch = below(run, key)
        if found_switch is not None:
            setattr(style, attribute, is_on(found_switch))


def number_of(about: Element | None) -> tuple[str, int] | None:
    """Return the numbering that paragraph properties name: its id, and the level."""
    numbering = below(about, "w:numPr")
    if numbering is None:
        return None
    level = whole(value(below(numbering, "w:ilvl"), "w:val"), most=8)
    return value(below(numbering, "w:numId"), "w:val"), level


class Numbering:
    """The numberings of a document, and how far each has counted."""

    def __init__(self, root: Element | None) -> None:
        abstract = {value(one, "w:abstractNumId"): one for one in each(root, "w:abstractNum")}
        self._levels: dict[str, dict[int, Level]] = {}
        self._shared: dict[str, str] = {}
        for one in each(root, "w:num"):
            key, target = value(one, "w:numId"), value(below(one, "w:abstractNumId"), "w:val")
            levels = _levels(abstract.get(target))
            self._shared[key] = target
            for change in each(one, "w:lvlOverride"):
                at = whole(value(change, "w:ilvl", "0"), -1)
                levels.update(_levels(change))
                start = whole(value(below(change, "w:startOverride"), "w:val"), -1)
                if start >= 0 and at in levels:
                    levels[at].start = start
                    self._shared[key] = f"own {key}"
            self._levels[key] = levels
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)

    def count(self, key: str, level: int) -> tuple[Level, int, str] | None:
        """Count one paragraph; return its level, its number, and the label that Word prints."""
        levels = self._levels.get(key)
        if not levels or key == "0":
            return None
        found = levels.get(level) or levels[min(levels)]
        counts = self._counts[self._shared[key]]
        counts[level] = counts.get(level, found.start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            one = levels.get(at) or Level()
            return _written(counts.get(at, one.start), one.kind)

        return found, counts[level], re.sub(r"%([1-9])", shown, found.text)


def _levels(element: Element | None) -> dict[int, Level]:
    done = {}
    for one in each(element, "w:lvl"):
        at = whole(value(one, "w:ilvl", "0"), -1)
        form = value(below(one, "w:numFmt"), "w:val", "decimal")
        if at >= 0:
            done[at] = Level(
                _KINDS.get(form, "1"),
                form in ("bullet", "none"),
                whole(value(below(one, "w:start"), "w:val"), 1),
                value(below(one, "w:lvlText"), "w:val"),
            )
    return done


def _written(number: int, kind: str) -> str:
    """Return a number as its level writes it."""
    if kind in ("a", "A") and 0 < number <= 26:
        return chr(ord(kind) + number - 1)
    if kind in ("i", "I") and 0 < number < 400:
        done = ""
        for size, letters in (
            (100, "c"),
            (90, "xc"),
            (50, "l"),
            (40, "xl"),
            (10, "x"),
            (9, "ix"),
            (5, "v"),
            (4, "iv"),
            (1, "i"),
        ):
            done += letters * (number // size)
            number %= size
        return done if kind == "i" else done.upper()
    return str(number)


def optional(archive: Archive, part: str) -> Element | None:
    """Return a part as XML, or None where the document has none."""
    return archive.xml(part) if part in archive else None
