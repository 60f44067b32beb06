"""A PowerPoint presentation as HTML, slide by slide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from ....core.types import Page
from .._common.body import Body
from .._common.ooxml import Relation, chart_table, chosen, main_part, properties, relations
from .._common.write import document
from .._common.xml import below, each, value
from .._common.zip import Archive
from .text import inline, slide_table, text_blocks

_TITLES: Final = ("title", "ctrTitle")
_FURNITURE: Final = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
"""Placeholders that every slide repeats: date, footer, number."""

_BULLETED: Final = frozenset({"body", "obj", ""})
_SIZE: Final = (9_144_000, 6_858_000)  # EMU of a slide that does not say
_MAX_SLIDES: Final = 5_000


class SlidePlace(NamedTuple):
    """Where a shape stands, in the units of its parent."""

    x: int
    y: int
    width: int
    height: int


def slides_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: see the engine.
    """
    archive = Archive(page.content, page.url, "PowerPoint presentation")
    part = main_part(archive, "ppt/presentation.xml")
    root = archive.xml(part)
    if root.tag != "p:presentation":
        raise archive.fault("this is no PowerPoint presentation")
    links = relations(archive, part)
    size = below(root, "p:sldSz")
    wide, high = _number(value(size, "cx")) or _SIZE[0], _number(value(size, "cy")) or _SIZE[1]
    done = []
    slides = [links.get(one.get("r:id", "")) for one in each(below(root, "p:sldIdLst"), "p:sldId")]
    if len(slides) > _MAX_SLIDES:
        raise archive.fault(f"{len(slides)} slides are over the limit of {_MAX_SLIDES}; split the presentation")
    for number, slide in enumerate(slides, 1):
        if slide is not None and not slide.outside and slide.target in archive:
            done.append(_Slide(archive, slide.target, number, (wide, high)).html())
    title, meta = properties(archive)
    lang = next((one.get("lang", "") for one in root.iter("a:defRPr") if one.get("lang")), "")
    return document(done, title, lang, **meta)


class _Slide:
    """One slide, with the layout and the master that its placeholders stand on."""

    def __init__(self, archive: Archive, part: str, number: int, size: tuple[int, int]) -> None:
        self.archive = archive
        self.number = number
        self.size = size
        self.root = archive.xml(part)
        self.links = relations(archive, part)
        self.places: dict[tuple[str, str], SlidePlace] = {}
        layout = self._target(self.links, "slideLayout")
        if layout:
            master = self._target(relations(archive, layout), "slideMaster")
            for inherited in (master, layout):
                self._learn_places(inherited)

    def _target(self, links: Mapping[str, Relation], kind: str) -> str:
        found = (one.target for one in links.values() if one.kind == kind and not one.outside)
        return next((target for target in found if target in self.archive), "")

    def _learn_places(self, part: str) -> None:
        """Remember where the placeholders of a layout or a master stand, by index and by type."""
        if not part:
            return
        for shape in self.archive.xml(part).iter("p:sp"):
            kind, index, placed = _placeholder(shape)
            place = _place(below(shape, "p:spPr", "a:xfrm"))
            if placed and place is not None:
                self.places["type", kind] = place
                if index:
                    self.places["index", index] = place

    def html(self) -> str:
        """Return the slide as a section; '' when it is hidden."""
        if self.root.get("show") in ("0", "false"):
            return ""
        body = Body()
        shapes = below(self.root, "p:cSld", "p:spTree")
        for shape in self._sorted(shapes, self.size):
            self._shape(shape, body)
        notes = self._notes()
        if notes:
            body.add(f"<aside>{notes}</aside>")
        inner = body.html()
        return f"<section>\n{inner}\n</section>" if inner else ""

    def _sorted(self, parent: Element | None, size: tuple[int, int] | None = None) -> list[Element]:
        """Return the shapes of a slide or a group: the title, then rows from the top, each from the left.

        :param size: of the slide; what stands outside it is left out.
        """
        found: list[tuple[SlidePlace, Element]] = []
        titles: list[Element] = []
        for shape in _flat(parent):
            kind, index, placed = _placeholder(shape)
            if placed and kind in _TITLES:
                titles.append(shape)
                continue
            own = below(shape, "p:spPr", "a:xfrm") if shape.tag != "p:graphicFrame" else below(shape, "p:xfrm")
            own = own if own is not None else below(shape, "p:grpSpPr", "a:xfrm")
            place = _place(own)
            if place is None and placed:
                place = self.places.get(("index", index)) or self.places.get(("type", kind))
            place = place or SlidePlace(0, 0, 1, 1)
            if size is None or _shows(place, size):
                found.append((place, shape))
        found.sort(key=lambda one: one[0].y)
        rows: list[list[tuple[SlidePlace, Element]]] = []
        for one in found:
            if rows and one[0].y - rows[-1][0][0].y < max(self.size[1] // 25, 1):
                rows[-1].append(one)
            else:
                rows.append([one])
        return [*titles, *(shape for row in rows for _, shape in sorted(row, key=lambda one: one[0].x))]

    def _shape(self, shape: Element, body: Body) -> None:
        """Add what a shape says."""
        about = next((one for part in shape for one in part if one.tag == "p:cNvPr"), None)
        if value(about, "hidden") in ("1", "true"):
            return
        kind, _, placed = _placeholder(shape)
        if shape.tag == "p:sp":
            if placed and kind in _FURNITURE:
                return
            text = below(shape, "p:txBody")
            if placed and kind in _TITLES:
                self._title(text, kind, body)
            else:
                text_blocks(text, body, placed and kind in _BULLETED, self.links)
        elif shape.tag == "p:grpSp":
            for inner in self._sorted(shape):
                self._shape(inner, body)
        elif shape.tag == "p:graphicFrame":
            self._frame(shape, body)
        alt = value(about, "descr") or value(about, "title")
        if alt.strip() and shape.tag != "p:sp":
            body.add(f'<figure><img alt="{escape(" ".join(alt.split()))}"></figure>')

    def _title(self, text: Element | None, kind: str, body: Body) -> None:
        lines = [line for p in each(text, "a:p") if (line := inline(p, self.links).strip())]
        level = 1 if kind == "ctrTitle" else 2
        if lines:
            said = " ".join(lines).replace("<b>", "").replace("</b>", "").replace("<br>", " ")
            body.add(f'<h{level}><data value="slide-{self.number}">{said}</data></h{level}>')

    def _frame(self, shape: Element, body: Body) -> None:
        """Add a table, the data of a chart, or the points of a diagram."""
        for table in shape.iter("a:tbl"):
            body.add(slide_table(table, self.links), "table")
        for chart in shape.iter("c:chart"):
            part = self._part(chart.get("r:id", ""))
            if part:
                body.add(chart_table(self.archive.xml(part)), "table")
        for diagram in shape.iter("dgm:relIds"):
            part = self._part(diagram.get("r:dm", ""))
            for point in self.archive.xml(part).iter("dgm:pt") if part else ():
                said = "".join(text.text or "" for text in point.iter("a:t")).strip()
                if said:
                    body.item(escape(said, quote=False), 0)

    def _part(self, key: str) -> str:
        link = self.links.get(key)
        return link.target if link is not None and not link.outside and link.target in self.archive else ""

    def _notes(self) -> str:
        """Return what the speaker's notes say."""
        part = self._target(self.links, "notesSlide")
        if not part:
            return ""
        body = Body()
        links = relations(self.archive, part)
        for shape in self.archive.xml(part).iter("p:sp"):
            kind, _, placed = _placeholder(shape)
            if placed and kind == "body":
                text_blocks(below(shape, "p:txBody"), body, False, links)
        return body.html()


def _flat(parent: Element | None) -> Iterable[Element]:
    """Yield shapes, those of a chosen alternative too."""
    for shape in parent if parent is not None else ():
        if shape.tag == "mc:AlternateContent":
            yield from chosen(shape)
        elif shape.tag in ("p:sp", "p:grpSp", "p:graphicFrame", "p:pic", "p:cxnSp"):
            yield shape


def _placeholder(shape: Element) -> tuple[str, str, bool]:
    """Return the type and index of a placeholder, and whether the shape is one."""
    found = next((one for part in shape for inner in part for one in inner if one.tag == "p:ph"), None)
    return value(found, "type"), value(found, "idx"), found is not None


def _place(frame: Element | None) -> SlidePlace | None:
    """Return where a shape says that it stands."""
    start, size = below(frame, "a:off"), below(frame, "a:ext")
    if start is None:
        return None
    return SlidePlace(*(_number(text) for text in (
        value(start, "x"), value(start, "y"), value(size, "cx"), value(size, "cy"),
    )))  # fmt: skip


def _shows(place: SlidePlace, size: tuple[int, int]) -> bool:
    """Tell whether a part of a shape stands on the slide."""
    return place.x < size[0] and place.y < size[1] and place.x + place.width >= 0 and place.y + place.height >= 0


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    if not digits.isdecimal() or len(digits) > 15:
        return 0
    return -int(digits) if text.startswith("-") else int(digits)
