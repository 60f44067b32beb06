"""Write the runs of a Word document as inline HTML: emphasis, links, fields, notes, equations, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final, Protocol
from xml.etree.ElementTree import Element

from ....core.text.numbers import bounded_int
from .._common.body import Body
from .._common.charts import chart_table
from .._common.omml import tex
from .._common.ooxml import Relation, chosen_branch
from .._common.symbols import is_symbol_font, symbol, symbols
from .._common.xml import attribute, children, find_path, whole_number
from .._common.zip import Archive
from .drawn_fields import drawn
from .styles import WordStyle, WordStyles, is_on, is_struck, script_of

_IGNORED: Final = frozenset(
    """w:del w:moveFrom w:pPr w:rPr w:commentRangeStart w:commentRangeEnd w:commentReference w:instrText
    w:delText w:delInstrText w:bookmarkStart w:bookmarkEnd w:proofErr w:lastRenderedPageBreak w:annotationRef
    w:footnoteRef w:endnoteRef w:separator w:continuationSeparator w:sdtPr w:sdtEndPr w:fldData w:object""".split()
)
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_LINK: Final = re.compile(r'\s*HYPERLINK\s+(?:\\l\s+)?"?([^"\s]+)"?', re.IGNORECASE)
_SILENT: Final = re.compile(r"\s*+(?:SET|ASK)\s", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"</?(?:b|i)>")
_NO_STYLE: Final = WordStyle()


@dataclass(slots=True)
class _Field:
    """An open field: its instruction, then its result, which is shown unless the field is a box or a choice of a form.

    :param is_in_link: whether a field around it is a link.
    :param is_part: whether it stands in the instruction of a field around it, whose result alone is shown.
    """

    is_in_link: bool
    is_part: bool
    instruction: list[str] = field(default_factory=list)
    shown: bool = False
    is_link: bool = False
    is_choice: bool = False


class WordContext(Protocol):
    """The parts of a document that runs and tables need."""

    archive: Archive
    styles: WordStyles
    notes: Mapping[tuple[str, str], Element]

    def blocks(self, element: Element | None, body: Body) -> None:
        """Add the blocks of an element."""

    def relation(self, key: str) -> Relation | None:
        """Return a relation by its id."""


class WordRuns:
    """Writes the runs of one document, and collects notes, pictures and floating boxes.

    ``noted`` lists the notes in the order of their references. ``pictures``, ``floating`` and ``commented`` hold the
    pictures, boxes and ids of comments of the latest paragraph.
    """

    def __init__(self, document: WordContext) -> None:
        self.document = document
        self.noted: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}  # of the noted, from 1
        self.commented: list[str] = []
        self.pictures: list[str] = []
        self.floating: list[str] = []
        self._fields: list[_Field] = []  # open fields, the outermost first
        self._shown: set[str] = set()  # parts of charts and diagrams

    def inline(self, elements: Iterable[Element], style: WordStyle = _NO_STYLE) -> str:
        """Return runs as HTML. Adjacent runs with the same emphasis are joined."""
        self._fields = []
        html = self._inline_html(elements, style)
        html += self._close_fields()
        for tag in ("b", "i", "s", "code"):
            html = html.replace(f"</{tag}><{tag}>", "")
        return html

    def plain(self, html: str) -> str:
        """Return inline HTML without bold and italics, for headings."""
        return _EMPHASIS.sub("", html)

    def raw(self, element: Element) -> str:
        """Return the text of a line of code with its white space."""
        parts = []
        for part in element.iter():
            if part.tag == "w:t":
                parts.append(part.text or "")
            elif part.tag == "w:tab":
                parts.append("\t")
            elif part.tag in ("w:br", "w:cr"):
                parts.append("\n")
        return escape("".join(parts), quote=False)

    def _close_fields(self) -> str:
        end_tags = "".join("</a>" for field in self._fields if field.is_link)
        self._fields = []
        return end_tags

    def _inline_html(self, elements: Iterable[Element], style: WordStyle) -> str:
        parts = []
        for child in elements:
            self.document.archive.allowance.spend("items")
            tag = child.tag
            if tag == "w:r":
                parts.append(self._run_html(child, style))
            elif tag == "w:hyperlink":
                relation = self.document.relation(child.get("r:id", ""))
                address = relation.target if relation and relation.outside else ""
                self.document.archive.allowance.spend("letters", len(address))
                parts.append(_link_html(self._inline_html(child, style), address))
            elif tag == "w:fldSimple":
                instruction = child.get("w:instr", "")
                if _SILENT.match(instruction):
                    continue
                match = _LINK.match(instruction)
                parts.append(_link_html(self._inline_html(child, style), match[1] if match else ""))
            elif tag in ("m:oMath", "m:oMathPara"):
                parts.append(f'<code class="math">{escape(" ".join(tex(child).split()), quote=False)}</code>')
            elif tag == "mc:AlternateContent":
                parts.append(self._inline_html(chosen_branch(child), style))
            elif tag == "w:sdt":
                content = find_path(child, "w:sdtContent")
                parts.append(self._inline_html(content if content is not None else (), style))
            elif tag not in _IGNORED and tag not in ("w:p", "w:tbl"):
                parts.append(self._inline_html(child, style))
        return "".join(parts)

    def _run_html(self, run: Element, style: WordStyle) -> str:
        props = find_path(run, "w:rPr")
        style_ref = find_path(props, "w:rStyle")
        run_style = self.document.styles.get(attribute(style_ref, "w:val")) if style_ref is not None else _NO_STYLE
        hidden = find_path(props, "w:vanish")
        if is_on(hidden) if hidden is not None else run_style.hidden or style.hidden:
            return "".join(self._part_html(part) for part in run if part.tag in ("w:fldChar", "w:instrText"))
        fonts = find_path(props, "w:rFonts")
        font = attribute(fonts, "w:ascii") or attribute(fonts, "w:hAnsi") or run_style.font or style.font
        html = "".join(self._part_html(part, font) for part in run)
        if not html.strip() or "<a " in html or "</a>" in html:
            return html
        core = html.strip()
        before, after = html[: len(html) - len(html.lstrip())], html[len(html.rstrip()) :]
        script = script_of(props, run_style.script or style.script)
        is_code = run_style.code and not style.code
        italic, bold = (find_path(props, key) for key in ("w:i", "w:b"))
        for tag, wanted in (
            (script, bool(script) and not core.startswith("<sup")),
            ("code", is_code),
            ("s", is_struck(props, run_style.struck or style.struck)),
            ("i", is_on(italic) if italic is not None else run_style.italic),
            ("b", is_on(bold) if bold is not None else run_style.bold),
        ):
            if wanted:
                core = f"<{tag}>{core}</{tag}>"
        return before + core + after

    def _part_html(self, part: Element, font: str = "") -> str:
        """Return one element of a run as HTML."""
        tag = part.tag
        if tag == "w:fldChar":
            return self._field_html(part)
        if tag == "w:instrText":
            if self._fields and not self._fields[-1].shown:
                self._fields[-1].instruction.append(part.text or "")
            return ""
        if self._fields and (self._fields[-1].is_part or not self._fields[-1].shown):
            return ""  # nothing shows between a field's instruction and its result
        if tag == "w:t":
            text = part.text or ""
            return escape(symbols(font, text) if is_symbol_font(font) else text, quote=False)
        if tag in ("w:tab", "w:ptab"):
            return "\t"
        if tag in ("w:br", "w:cr"):
            return " " if part.get("w:type") in ("page", "column") else "<br>"  # both part words
        if tag == "w:noBreakHyphen":
            return "\u2011"
        if tag == "w:sym":
            return _symbol(part)
        if tag in ("w:footnoteReference", "w:endnoteReference"):
            return self._note_reference(tag[2:-9], attribute(part, "w:id"))
        if tag == "w:commentReference":
            self.commented.append(attribute(part, "w:id"))
            return ""
        if tag in ("w:drawing", "w:pict"):
            self._collect_drawing(part)
            return ""
        if tag == "mc:AlternateContent":
            return "".join(self._part_html(inner, font) for inner in chosen_branch(part))
        if tag == "w:ruby":
            base, above = find_path(part, "w:rubyBase"), find_path(part, "w:rt")
            return f"<ruby>{self._ruby(base)}<rt>{self._ruby(above)}</rt></ruby>"
        return ""

    def _ruby(self, element: Element | None) -> str:
        return self._inline_html(element, _NO_STYLE) if element is not None else ""

    def _field_html(self, part: Element) -> str:
        """Track a field from its instruction to its result. Only the address of a link is used."""
        kind = part.get("w:fldCharType")
        if kind == "begin":
            around = self._fields[-1] if self._fields else None
            is_part = around is not None and (around.is_part or not around.shown)
            self._fields.append(_Field(around is not None and (around.is_in_link or around.is_link), is_part))
            choice = _choice(find_path(part, "w:ffData"))
            if choice and not is_part:
                self._fields[-1].is_choice = True
                return escape(choice, quote=False)
        elif kind == "separate" and self._fields and not (self._fields[-1].shown or self._fields[-1].is_choice):
            opened = self._fields[-1]
            instruction = "".join(opened.instruction)
            if _SILENT.match(instruction):
                return ""  # its result goes into a bookmark
            shown = drawn(instruction)
            if shown is not None:
                opened.is_choice = True
                return shown
            match = _LINK.match(instruction)
            address = match[1] if match and not opened.is_part else ""
            opened.shown, opened.is_link = True, address.lower().startswith(_WEB) and not opened.is_in_link
            return f'<a href="{escape(address)}">' if opened.is_link else ""
        elif kind == "end" and self._fields:
            ended = self._fields.pop()
            if not (ended.shown or ended.is_choice or ended.is_part):
                return drawn("".join(ended.instruction)) or ""
            return "</a>" if ended.is_link else ""
        return ""

    def _note_reference(self, kind: str, key: str) -> str:
        if (kind, key) not in self.document.notes:
            return ""
        number = self._numbers.setdefault((kind, key), len(self.noted) + 1)
        if number > len(self.noted):
            self.noted.append((kind, key))
        return f"<sup>[{number}]</sup>"

    # --- pictures, boxes, charts, diagrams --------------------------------------------------------

    def _collect_drawing(self, drawing: Element) -> None:
        """Collect the alt text of a picture, the data of a chart, the text of boxes and diagrams."""
        frames = [frame for frame in drawing if frame.tag in ("wp:anchor", "wp:inline")]
        if any(attribute(find_path(frame, "wp:docPr"), "hidden") in ("1", "true") for frame in frames):
            return
        boxes = [*drawing.iter("w:txbxContent")]
        for shape in (*drawing.iter("wp:docPr"), *drawing.iter("v:shape"), *drawing.iter("v:rect")):
            alt = shape.get("descr") or shape.get("alt") or shape.get("title") or ""
            if alt.strip():
                self.pictures.append(f'<img alt="{escape(" ".join(alt.split()))}">')
        for chart in drawing.iter("c:chart"):
            self._add_part(chart.get("r:id", ""), chart=True)
        for diagram in drawing.iter("dgm:relIds"):
            self._add_part(diagram.get("r:dm", ""), chart=False)
        inside = {id(inner) for box in boxes for inner in box.iter("w:txbxContent") if inner is not box}
        # a fallback repeats the box of the choice; boxes inside boxes are read with the outer box
        skipped = {id(inner) for fallback in drawing.iter("mc:Fallback") for inner in fallback.iter("w:txbxContent")}
        for box in boxes:
            if id(box) in inside or id(box) in skipped:
                continue
            saved, self.floating = self.floating, []
            fields, self._fields = self._fields, []  # the paragraphs of the box must not touch the outer state
            pictures, self.pictures = self.pictures, []
            body = Body()
            self.document.blocks(box, body)
            self._fields, self.pictures = fields, pictures
            saved += [body.html(), *self.floating]
            self.floating = saved

    def _add_part(self, key: str, chart: bool) -> None:
        """Add the data of a chart or the texts of a diagram, from the part that holds them."""
        relation = self.document.relation(key)
        archive = self.document.archive
        if relation is None or relation.outside or relation.target not in archive or relation.target in self._shown:
            return
        self._shown.add(relation.target)
        root = archive.xml(relation.target)
        if chart:
            self.floating.append(chart_table(root, archive.allowance))
            return
        points = ["".join(text.text or "" for text in point.iter("a:t")) for point in root.iter("dgm:pt")]
        items = "".join(f"<li>{escape(point, quote=False)}</li>" for point in points if point.strip())
        if items:
            self.floating.append(f"<ul>{items}</ul>")


def _link_html(inner: str, address: str) -> str:
    if not inner or not address.lower().startswith(_WEB) or "<a " in inner:
        return inner
    return f'<a href="{escape(address)}">{inner}</a>'


def _symbol(part: Element) -> str:
    """Return the character of a symbol."""
    code, font = bounded_int(part.get("w:char"), 0, most=0x10FFFF, base=16), part.get("w:font", "")
    if 0xF000 <= code <= 0xF0FF or is_symbol_font(font):
        return escape(symbol(font, code), quote=False)
    return escape(chr(code)) if 0x20 < code < 0xD800 else ""


def _choice(form: Element | None) -> str:
    """Return what a box or a choice of a form shows; '' for other fields."""
    box, choice = find_path(form, "w:checkBox"), find_path(form, "w:ddList")
    if box is not None:
        checked = find_path(box, "w:checked")
        return "☒" if is_on(checked if checked is not None else find_path(box, "w:default")) else "☐"
    entries = [attribute(entry, "w:val") for entry in children(choice, "w:listEntry")]
    at = whole_number(
        attribute(find_path(choice, "w:result"), "w:val") or attribute(find_path(choice, "w:default"), "w:val")
    )
    return entries[at] if at < len(entries) else ""
