"""Read the styles and the numbering of a Word document."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final
from xml.etree.ElementTree import Element

from ....core.text.numbers import bounded_int
from .._common.numerals import bullet_of, numeral
from .._common.xml import attribute, children, find_path, whole_number
from .._common.zip import Archive

_HEADING: Final = re.compile(r"(?:heading|überschrift|titre|titolo|título)\s*([1-9])", re.IGNORECASE)
_LIST: Final = re.compile(r"list (?:bullet|number) ([2-5])", re.IGNORECASE)
_CODE: Final = re.compile(r"code|preformatted|listing|verbatim|macro text", re.IGNORECASE)
_QUOTE: Final = re.compile(r"quote|zitat|citation|block text", re.IGNORECASE)
_KINDS: Final = {
    "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I", "decimalZero": "01", "none": "",
    "russianLower": "а", "russianUpper": "А", "ganada": "가", "ideographTraditional": "甲",
    "decimalEnclosedCircle": "①", "decimalEnclosedCircleChinese": "①",
    **dict.fromkeys(("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting"), "一"),
    **dict.fromkeys(("taiwaneseCountingThousand", "ideographDigital", "koreanCounting"), "一"),
}  # fmt: skip
_MAX_LEVELS: Final = 9  # Word has no more
_MAX_LABEL: Final = 200  # characters of the label of a numbered paragraph, which every paragraph repeats
_SCRIPTS: Final = {"superscript": "sup", "subscript": "sub"}
_OFF: Final = frozenset({"0", "false", "off"})


def is_on(element: Element | None) -> bool:
    """Tell whether a switch such as ``w:b`` is on: it is present, and its value is not off."""
    return element is not None and attribute(element, "w:val", "1") not in _OFF


@dataclass(slots=True)
class WordStyle:
    """A paragraph or run style, with the styles it is based on applied."""

    heading: int = 0
    title: bool = False
    caption: bool = False
    code: bool = False
    quote: bool = False
    hidden: bool = False
    number: tuple[str, int] | None = None  # numId, level; the level is -1 where only the numbering tells it
    numbered_by: str = ""  # id of the style that names the numbering
    bold: bool = False
    italic: bool = False
    struck: bool = False
    script: str = ""  # sup, sub or ''
    font: str = ""


@dataclass(slots=True)
class Level:
    """One level of a numbering."""

    kind: str = "1"  # as of `numeral`
    start: int = 1
    text: str = ""
    legal: bool = False
    bullet: str = ""  # character that a bullet shows; '' for a number
    restart: int = _MAX_LEVELS  # an item of a level below this restarts it, if it is higher up in the list


class WordStyles:
    """The styles of a document, by id."""

    def __init__(self, root: Element | None) -> None:
        self._elements = {attribute(style, "w:styleId"): style for style in children(root, "w:style")}
        self._made: dict[str, WordStyle] = {}
        self.default = next(
            (
                key
                for key, style in self._elements.items()
                if attribute(style, "w:default") in ("1", "true") and attribute(style, "w:type") == "paragraph"
            ),
            "",
        )

    def get(self, key: str) -> WordStyle:
        """Return a style; a missing style is an empty style."""
        if key not in self._made:
            chain: list[Element] = []
            at = key
            while at in self._elements and len(chain) < 20:  # styles may be based on each other in a circle
                chain.append(self._elements[at])
                at = attribute(find_path(self._elements[at], "w:basedOn"), "w:val")
            style = WordStyle()
            for element in reversed(chain):
                _apply(style, element)
            self._made[key] = style
        return self._made[key]


def heading_level(outline: str, otherwise: int) -> int:
    """Return the heading level of an outline level: 0 for body text, ``otherwise`` where ``outline`` is no number."""
    level = whole_number(outline, -1)
    if level < 0:
        return otherwise
    return min(level + 1, 6) if level < 9 else 0


def _apply(style: WordStyle, element: Element) -> None:
    name = attribute(find_path(element, "w:name"), "w:val")
    props, run_props = find_path(element, "w:pPr"), find_path(element, "w:rPr")
    match = _HEADING.match(name)
    outline = attribute(find_path(props, "w:outlineLvl"), "w:val")
    style.heading = bounded_int(match[1], 1, most=6) if match else heading_level(outline, style.heading)
    style.title = style.title or name.lower() in ("title", "titel", "titre")
    style.caption = style.caption or name.lower() in ("caption", "beschriftung", "légende")
    style.code = style.code or bool(_CODE.search(name))
    style.quote = style.quote or bool(_QUOTE.search(name))
    if find_path(props, "w:numPr") is not None:
        style.number, style.numbered_by = number_of(props, style.number), attribute(element, "w:styleId")
    list_depth = _LIST.fullmatch(name)
    if list_depth and style.number:  # Word gives each of these styles a separate numbering and uses its first level
        style.number = (style.number[0], max(style.number[1], whole_number(list_depth[1]) - 1))
    style.font = attribute(find_path(run_props, "w:rFonts"), "w:ascii") or style.font
    for key, flag in (("w:vanish", "hidden"), ("w:b", "bold"), ("w:i", "italic")):
        switch = find_path(run_props, key)
        if switch is not None:
            setattr(style, flag, is_on(switch))
    style.struck = is_struck(run_props, style.struck)
    style.script = script_of(run_props, style.script)


def is_struck(props: Element | None, otherwise: bool) -> bool:
    """Tell whether run properties strike words through, once or twice; ``otherwise`` where they do not say."""
    strikes = [find_path(props, key) for key in ("w:strike", "w:dstrike")]
    return otherwise if strikes == [None, None] else any(map(is_on, strikes))


def script_of(props: Element | None, otherwise: str) -> str:
    """Return the element of raised or lowered words, '' for those on the line; ``otherwise`` if unsaid."""
    place = find_path(props, "w:vertAlign")
    return otherwise if place is None else _SCRIPTS.get(attribute(place, "w:val"), "")


def number_of(props: Element | None, otherwise: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return the numbering that paragraph properties name, as (id, level); what they lack comes from ``otherwise``."""
    numbering = find_path(props, "w:numPr")
    if numbering is None:
        return otherwise
    key = attribute(find_path(numbering, "w:numId"), "w:val")
    level = find_path(numbering, "w:ilvl")
    if level is not None:
        at = whole_number(attribute(level, "w:val"), most=8)
    else:
        at = otherwise[1] if otherwise and otherwise[0] == key else -1
    return key or (otherwise[0] if otherwise else ""), at


class Numbering:
    """The numberings of a document and their counters."""

    def __init__(self, root: Element | None) -> None:
        named = {attribute(element, "w:abstractNumId"): element for element in children(root, "w:abstractNum")}
        styled = {attribute(find_path(named[key], "w:styleLink"), "w:val"): key for key in reversed(named)}
        links = {key: attribute(find_path(one, "w:numStyleLink"), "w:val") for key, one in named.items()}
        by_style = {key: _styles_of(one) for key, one in named.items()}
        abstract = {key: _levels(element) for key, element in named.items()}
        self._levels: dict[str, dict[int, Level]] = {}
        self._styled: dict[str, dict[str, int]] = {}  # levels by the style whose paragraphs have them
        self._shared: dict[str, str] = {}
        for element in children(root, "w:num"):
            key, target = attribute(element, "w:numId"), attribute(find_path(element, "w:abstractNumId"), "w:val")
            link = links.get(target, "")
            target = styled.get(link, target) if link else target  # the levels stand where the style is defined
            levels = dict(abstract.get(target, {}))
            self._styled[key] = by_style.get(target, {})
            self._shared[key] = target
            for change in children(element, "w:lvlOverride"):
                at = whole_number(attribute(change, "w:ilvl", "0"), -1)
                levels.update(_levels(change))
                start = whole_number(attribute(find_path(change, "w:startOverride"), "w:val"), -1)
                if start >= 0 and at in levels:
                    levels[at] = replace(levels[at], start=start)
                    self._shared[key] = f"restarted {key}"  # a restarted list counts separately
            self._levels[key] = levels
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)

    def level_of(self, key: str, style: str) -> int:
        """Return the level that a numbering gives the paragraphs of a style."""
        return self._styled.get(key, {}).get(style, 0)

    def count(self, key: str, level: int) -> str | None:
        """Count one paragraph; return the label that Word prints, or None where the numbering does not exist."""
        levels = self._levels.get(key)
        if not levels or key == "0":
            return None
        item_level = levels.get(level) or levels[min(levels)]
        counts = self._counts[self._shared[key]]
        counts[level] = counts.get(level, item_level.start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            if level < levels.get(deeper, item_level).restart:
                del counts[deeper]

        def printed_number(match: re.Match[str]) -> str:
            at = whole_number(match[1]) - 1
            counted = levels.get(at) or Level()
            kind = "1" if item_level.legal and counted.kind not in ("01", "") else counted.kind
            return numeral(counts.get(at, counted.start), kind)

        return item_level.bullet or re.sub(r"%([1-9])", printed_number, item_level.text)


def _styles_of(element: Element) -> dict[str, int]:
    """Return the levels of a numbering by the style whose paragraphs have them."""
    return {
        attribute(style, "w:val"): whole_number(attribute(level, "w:ilvl"), most=8)
        for level in children(element, "w:lvl")
        if (style := find_path(level, "w:pStyle")) is not None
    }


def _levels(element: Element | None) -> dict[int, Level]:
    levels = {}
    for level in children(element, "w:lvl"):
        at = whole_number(attribute(level, "w:ilvl", "0"), -1)
        number_format = attribute(find_path(level, "w:numFmt"), "w:val", "decimal")
        text = attribute(find_path(level, "w:lvlText"), "w:val")[:_MAX_LABEL]
        fonts = find_path(level, "w:rPr", "w:rFonts")
        if 0 <= at < _MAX_LEVELS:
            levels[at] = Level(
                _KINDS.get(number_format, "1"),
                whole_number(attribute(find_path(level, "w:start"), "w:val"), 1),
                text,
                is_on(find_path(level, "w:isLgl")),
                bullet_of(attribute(fonts, "w:ascii") or attribute(fonts, "w:hAnsi"), text)
                if number_format == "bullet"
                else "",
                whole_number(attribute(find_path(level, "w:lvlRestart"), "w:val"), _MAX_LEVELS),
            )
    return levels


def optional(archive: Archive, part: str) -> Element | None:
    """Return a part as XML, or None where the document lacks it."""
    return archive.xml(part) if part in archive else None
