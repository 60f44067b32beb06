"""Convert a PowerPoint presentation to HTML, slide by slide: text, tables, links, charts and notes of its shapes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from ....core.text.numbers import bounded_int
from ....core.types import Page
from ...asides import HIDDEN, NOTES, aside, comment
from .._common.allowance import Allowance
from .._common.body import Body
from .._common.charts import chart_table
from .._common.omml import tex
from .._common.ooxml import Relation, chosen_branch, main_part, properties, relations
from .._common.symbols import is_symbol_font, symbols
from .._common.write import Cell, document, table, with_mark
from .._common.xml import attribute, children, find_path, whole_number
from .._common.zip import Archive

_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_NUMBERS: Final = (("alphaLc", "a"), ("alphaUc", "A"), ("romanLc", "i"), ("romanUc", "I"))


def text_blocks(
    shape: Element | None, body: Body, bulleted: bool, links: Mapping[str, Relation], allowance: Allowance
) -> None:
    """Add the paragraphs of a text body.

    :param bulleted: whether paragraphs are list items by default.
    """
    shown = [(paragraph, inline(paragraph, links, allowance).strip()) for paragraph in children(shape, "a:p")]
    shown = [(paragraph, text) for paragraph, text in shown if text]
    is_single = len(shown) == 1
    for paragraph, text in shown:
        props = find_path(paragraph, "a:pPr")
        level = whole_number(attribute(props, "lvl"), most=8)
        numbered = find_path(props, "a:buAutoNum")
        marked = find_path(props, "a:buChar") is not None or find_path(props, "a:buBlip") is not None
        plain = find_path(props, "a:buNone") is not None or (not marked and not (bulleted and (level or not is_single)))
        if numbered is not None:
            kind = next((kind for name, kind in _NUMBERS if attribute(numbered, "type").startswith(name)), "")
            fresh = not body.is_numbered(level)
            body.item(text, level, "ol", whole_number(attribute(numbered, "startAt")) if fresh else 0, kind)
        elif plain:
            body.add(f"<p>{text}</p>")
        else:
            body.item(text, level)


def inline(paragraph: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    """Return the runs of a paragraph as HTML."""
    parts = []
    allowance.spend("items")
    for child in paragraph:
        allowance.spend("items")
        if child.tag in ("a:r", "a:fld"):
            if child.tag == "a:r" or not child.get("type", "").startswith("slidenum"):
                parts.append(_run(child, links, allowance))
        elif child.tag == "a:br":
            parts.append("<br>")
        elif child.tag == "mc:AlternateContent":
            parts += [_math(formula) for formula in chosen_branch(child)]
        elif child.tag == "a14:m":
            parts.append(_math(child))
    return "".join(parts).replace("</b><b>", "").replace("</i><i>", "").replace("</s><s>", "")


def _math(element: Element) -> str:
    return f'<code class="math">{escape(" ".join(tex(element).split()), quote=False)}</code>'


def _run(run: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    part, props = find_path(run, "a:t"), find_path(run, "a:rPr")
    html = escape(_in_signs(part.text or "", props), quote=False) if part is not None else ""
    core = html.strip()
    if not core:
        return html
    before, after = html[: len(html) - len(html.lstrip())], html[len(html.rstrip()) :]
    shift = attribute(props, "baseline", "0")
    script = {"-": "sub"}.get(shift[:1], "sup") if shift.lstrip("-").strip("0%") else ""
    for tag, wanted in (
        (script, bool(script)),
        ("s", attribute(props, "strike", "noStrike") != "noStrike"),
        ("i", attribute(props, "i") == "1"),
        ("b", attribute(props, "b") == "1"),
    ):
        if wanted:
            core = f"<{tag}>{core}</{tag}>"
    link = links.get(attribute(find_path(props, "a:hlinkClick"), "r:id"))
    if link is not None and link.outside and link.target.lower().startswith(_WEB):
        allowance.spend("letters", len(link.target))
        core = f'<a href="{escape(link.target)}">{core}</a>'
    return before + core + after


def _in_signs(text: str, props: Element | None) -> str:
    """Return the text of a run as its fonts show it. The font of signs (``a:sym``) shows no ASCII letters."""
    letters, signs = (attribute(find_path(props, name), "typeface") for name in ("a:latin", "a:sym"))
    if is_symbol_font(letters):
        return symbols(letters, text)
    if is_symbol_font(signs):
        return "".join(letter if letter.isascii() else symbols(signs, letter) for letter in text)
    return text


def slide_table(element: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    """Return a table of a slide, with merged cells."""
    header_rows = int(attribute(find_path(element, "a:tblPr"), "firstRow") in ("1", "true"))
    rows = []
    for row in children(element, "a:tr"):
        cells = []
        for cell in children(row, "a:tc"):
            allowance.spend("items")
            if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
                continue
            lines = (inline(p, links, allowance).strip() for p in children(find_path(cell, "a:txBody"), "a:p"))
            inner = "<br>".join(filter(None, lines))
            colspan, rowspan = (max(1, whole_number(cell.get(name), 1, most=1000)) for name in ("gridSpan", "rowSpan"))
            cells.append(Cell(inner, colspan, rowspan))
        rows.append(cells)
    return table(rows, header_rows if header_rows < len(rows) else 0) if any(rows) else ""


_TITLES: Final = ("title", "ctrTitle")
_FURNITURE: Final = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
"""Placeholders that every slide repeats: date, footer, number."""

_BULLETED: Final = frozenset({"body", "obj", ""})
_SIZE: Final = (9_144_000, 6_858_000)  # EMU; the default size of a slide
_MAX_SLIDES: Final = 5_000


class SlidePlace(NamedTuple):
    """Position and size of a shape, in the units of its parent."""

    x: int
    y: int
    width: int
    height: int


Places = Mapping[tuple[str, str], SlidePlace]
"""Positions of placeholders, by ("index", index) and by ("type", type)."""


def slides_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: as :meth:`.engine.Engine.to_html`.
    """
    # slides are read one after the other, so only the marks of one slide are in memory
    archive = Archive(page.content, "PowerPoint presentation", Allowance(page.url, marks=16_000_000))
    part = main_part(archive, "ppt/presentation.xml")
    root = archive.xml(part)
    if root.tag != "p:presentation":
        raise archive.fault("this is no PowerPoint presentation")
    links = relations(archive, part)
    size = find_path(root, "p:sldSz")
    width, height = _number(attribute(size, "cx")) or _SIZE[0], _number(attribute(size, "cy")) or _SIZE[1]
    sections = []
    slides = [links.get(slide.get("r:id", "")) for slide in children(find_path(root, "p:sldIdLst"), "p:sldId")]
    if len(slides) > _MAX_SLIDES:
        raise archive.fault(f"{len(slides)} slides are over the limit of {_MAX_SLIDES}; split the presentation")
    deck = _Deck(archive, (width, height))
    for part in (link.target for link in links.values() if link.kind in ("commentAuthors", "authors")):
        if part in archive:
            deck.authors.update((author.get("id", ""), author.get("name", "")) for author in archive.xml(part))
    for number, slide in enumerate(slides, 1):
        if slide is not None and not slide.outside and deck.is_new(slide.target):
            sections.append(_Slide(deck, slide.target, number).html())
    title, meta = properties(archive)
    lang = next((props.get("lang", "") for props in root.iter("a:defRPr") if props.get("lang")), "")
    return document(sections, title, lang, **meta)


class _Deck:
    """What the slides of a presentation share.

    :param size: width and height of a slide.
    """

    def __init__(self, archive: Archive, size: tuple[int, int]) -> None:
        self.archive = archive
        self.size = size
        self._places: dict[str, dict[tuple[str, str], SlidePlace]] = {"": {}}
        self._layouts: dict[str, Places] = {"": {}}
        self._shown: set[str] = set()
        self.authors: dict[str, str] = {}  # of comments, by id

    def target(self, links: Mapping[str, Relation], kind: str) -> str:
        """Return the part that a link of some kind leads to; '' for none."""
        targets = (link.target for link in links.values() if link.kind == kind and not link.outside)
        return next((target for target in targets if target in self.archive), "")

    def is_new(self, part: str) -> bool:
        """Tell whether a part exists and was not shown yet: however often it is named, it is shown once."""
        is_new = part in self.archive and part not in self._shown
        self._shown.add(part)
        return is_new

    def places(self, layout: str) -> Places:
        """Return the positions of the placeholders of a layout and its master."""
        if layout not in self._layouts:
            master = self.target(relations(self.archive, layout), "slideMaster")
            self._layouts[layout] = ChainMap(self._places_of(layout), self._places_of(master))
        return self._layouts[layout]

    def _places_of(self, part: str) -> dict[tuple[str, str], SlidePlace]:
        if part not in self._places:
            result = self._places[part] = {}
            for shape in self.archive.xml(part).iter("p:sp"):
                kind, index, is_placeholder = _placeholder(shape)
                place = _place(find_path(shape, "p:spPr", "a:xfrm"))
                if is_placeholder and place is not None:
                    result["type", kind] = place
                    if index:
                        result["index", index] = place
        return self._places[part]


class _Slide:
    """One slide, with the placeholder positions of its layout and master."""

    def __init__(self, deck: _Deck, part: str, number: int) -> None:
        self.deck = deck
        self.archive = deck.archive
        self.number = number
        self.size = deck.size
        self.root = self.archive.xml(part)
        self.links = relations(self.archive, part)
        self.places = deck.places(deck.target(self.links, "slideLayout"))

    def html(self) -> str:
        """Return the slide as a section."""
        body = Body()
        shapes = find_path(self.root, "p:cSld", "p:spTree")
        for shape in self._in_reading_order(shapes, self.size):
            self._add_shape(shape, body)
        notes = self._notes()
        if notes:
            body.add(aside(NOTES, notes))
        for said in self._comments():
            body.add(said)
        mark = f"slide-{self.number}"
        inner = with_mark(body.html(), mark)
        if inner and self.root.get("show") in ("0", "false"):
            inner = aside(f'<p><data value="{mark}">{HIDDEN.format("slide")}</data></p>', inner)
        return f"<section>\n{inner}\n</section>" if inner else ""

    def _in_reading_order(self, parent: Element | None, size: tuple[int, int] | None = None) -> list[Element]:
        """Return the shapes of a slide or a group: titles first, then rows from the top, each row from the left.

        :param size: size of the slide; shapes outside it are left out.
        """
        placed_shapes: list[tuple[SlidePlace, Element]] = []
        titles: list[Element] = []
        for shape in _shapes_of(parent):
            kind, index, is_placeholder = _placeholder(shape)
            if is_placeholder and kind in _TITLES:
                titles.append(shape)
                continue
            paths = (("p:xfrm",) if shape.tag == "p:graphicFrame" else ("p:spPr", "a:xfrm"), ("p:grpSpPr", "a:xfrm"))
            frame = next((result for path in paths if (result := find_path(shape, *path)) is not None), None)
            place = _place(frame)
            if place is None and is_placeholder:
                place = self.places.get(("index", index)) or self.places.get(("type", kind))
            place = place or SlidePlace(0, 0, 1, 1)
            if size is None or _is_on_slide(place, size):
                placed_shapes.append((place, shape))
        placed_shapes.sort(key=lambda entry: entry[0].y)
        rows: list[list[tuple[SlidePlace, Element]]] = []
        for place, shape in placed_shapes:
            # shapes within 1/25 of the slide's height count as one row
            if rows and place.y - rows[-1][0][0].y < max(self.size[1] // 25, 1):
                rows[-1].append((place, shape))
            else:
                rows.append([(place, shape)])
        return [
            *titles,
            *(shape for row in rows for _, shape in sorted(row, key=lambda entry: entry[0].x)),
        ]

    def _add_shape(self, shape: Element, body: Body) -> None:
        """Add the text, the table, the chart or the alt text of a shape."""
        props = next((element for part in shape for element in part if element.tag == "p:cNvPr"), None)
        if attribute(props, "hidden") in ("1", "true"):
            return
        kind, _, is_placeholder = _placeholder(shape)
        if shape.tag == "p:sp":
            if is_placeholder and kind in _FURNITURE:
                return
            text = find_path(shape, "p:txBody")
            if is_placeholder and kind in _TITLES:
                self._add_title(text, kind, body)
            else:
                text_blocks(text, body, is_placeholder and kind in _BULLETED, self.links, self.archive.allowance)
        elif shape.tag == "p:grpSp":
            for inner in self._in_reading_order(shape):
                self._add_shape(inner, body)
        elif shape.tag == "p:graphicFrame":
            self._add_frame(shape, body)
        alt = attribute(props, "descr") or attribute(props, "title")
        if alt.strip() and shape.tag != "p:sp":
            body.add(f'<figure><img alt="{escape(" ".join(alt.split()))}"></figure>')

    def _add_title(self, text: Element | None, kind: str, body: Body) -> None:
        lines = [line for p in children(text, "a:p") if (line := inline(p, self.links, self.archive.allowance).strip())]
        level = 1 if kind == "ctrTitle" else 2
        if lines:
            title = " ".join(lines).replace("<b>", "").replace("</b>", "").replace("<br>", " ")
            body.add(f"<h{level}>{title}</h{level}>")

    def _add_frame(self, shape: Element, body: Body) -> None:
        """Add a table, the data of a chart, or the points of a diagram."""
        for element in shape.iter("a:tbl"):
            body.add(slide_table(element, self.links, self.archive.allowance), "table")
        for chart in shape.iter("c:chart"):
            part = self._part(chart.get("r:id", ""))
            if part:
                body.add(chart_table(self.archive.xml(part), self.archive.allowance), "table")
        for diagram in shape.iter("dgm:relIds"):
            part = self._part(diagram.get("r:dm", ""))
            for point in self.archive.xml(part).iter("dgm:pt") if part else ():
                text = "".join(text.text or "" for text in point.iter("a:t")).strip()
                if text:
                    body.item(escape(text, quote=False), 0)

    def _part(self, key: str) -> str:
        link = self.links.get(key)
        return link.target if link is not None and not link.outside and self.deck.is_new(link.target) else ""

    def _notes(self) -> str:
        """Return the speaker's notes as HTML."""
        part = self.deck.target(self.links, "notesSlide")
        if not self.deck.is_new(part):
            return ""
        body = Body()
        links = relations(self.archive, part)
        for shape in self.archive.xml(part).iter("p:sp"):
            kind, _, is_placeholder = _placeholder(shape)
            if is_placeholder and kind == "body":
                text_blocks(find_path(shape, "p:txBody"), body, False, links, self.archive.allowance)
        return body.html()

    def _comments(self) -> Iterator[str]:
        """Yield the comments on the slide, as PowerPoint writes them today and as it did before."""
        part = self.deck.target(self.links, "comments")
        for said in self.archive.xml(part) if self.deck.is_new(part) else ():
            author = self.deck.authors.get(said.get("authorId", ""), "")
            texts = ("".join(text.itertext()) for element in ("p:text", "a:p") for text in said.iter(element))
            self.archive.allowance.spend("items")
            self.archive.allowance.spend("letters", len(author))
            yield comment("<br>".join(escape(text, quote=False) for text in texts), escape(author, quote=False))


def _shapes_of(parent: Element | None) -> Iterable[Element]:
    """Yield the shapes below an element, also those of the chosen ``mc:AlternateContent`` branch."""
    for shape in parent if parent is not None else ():
        if shape.tag == "mc:AlternateContent":
            yield from chosen_branch(shape)
        elif shape.tag in ("p:sp", "p:grpSp", "p:graphicFrame", "p:pic", "p:cxnSp"):
            yield shape


def _placeholder(shape: Element) -> tuple[str, str, bool]:
    """Return the type and the index of a placeholder, and whether the shape is a placeholder at all."""
    placeholder = next(
        (element for part in shape for inner in part for element in inner if element.tag == "p:ph"), None
    )
    return attribute(placeholder, "type"), attribute(placeholder, "idx"), placeholder is not None


def _place(frame: Element | None) -> SlidePlace | None:
    """Return the position that a shape states, or None."""
    start, size = find_path(frame, "a:off"), find_path(frame, "a:ext")
    if start is None:
        return None
    return SlidePlace(*(_number(text) for text in (
        attribute(start, "x"), attribute(start, "y"), attribute(size, "cx"), attribute(size, "cy"),
    )))  # fmt: skip


def _is_on_slide(place: SlidePlace, size: tuple[int, int]) -> bool:
    """Tell whether any part of a shape is on the slide."""
    return place.x < size[0] and place.y < size[1] and place.x + place.width >= 0 and place.y + place.height >= 0


def _number(text: str) -> int:
    return bounded_int(text, 0, least=-(10**15), most=10**15)
