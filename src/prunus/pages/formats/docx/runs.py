"""Runs of a Word document as inline HTML: emphasis, links, fields, notes, equations, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Final, Protocol
from xml.etree.ElementTree import Element

from .._common.body import Body
from .._common.omml import tex
from .._common.ooxml import Relation, chart_table, chosen
from .._common.xml import below, value
from .._common.zip import Archive
from .styles import WordStyle, WordStyles, is_on

_GONE: Final = frozenset(
    """w:del w:moveFrom w:pPr w:rPr w:commentRangeStart w:commentRangeEnd w:commentReference w:instrText
    w:delText w:delInstrText w:bookmarkStart w:bookmarkEnd w:proofErr w:lastRenderedPageBreak w:annotationRef
    w:footnoteRef w:endnoteRef w:separator w:continuationSeparator w:sdtPr w:sdtEndPr w:fldData w:object""".split()
)
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_LINK: Final = re.compile(r'\s*HYPERLINK\s+(?:\\l\s+)?"?([^"\s]+)"?', re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"</?(?:b|i)>")
_SYMBOLS: Final = {0xB7: "•", 0xA7: "▪", 0xD8: "➢", 0xFC: "✓", 0x6E: "■", 0x6C: "●", 0xE0: "→", 0xA8: "☐", 0xFE: "☑"}
_NONE: Final = WordStyle()


class WordContext(Protocol):
    """What runs and tables need of the document that they stand in."""

    archive: Archive
    styles: WordStyles
    notes: Mapping[tuple[str, str], Element]

    def blocks(self, element: Element | None, body: Body) -> None:
        """Add the blocks of an element."""

    def relation(self, key: str) -> Relation | None:
        """Return a relation by its id."""


class Runs:
    """Writes the runs of one document, and collects what stands beside its text.

    ``noted`` are the notes in the order of their references, ``pictures`` and ``floating`` what the
    latest paragraph holds beside its words.
    """

    def __init__(self, document: WordContext) -> None:
        self.document = document
        self.noted: list[tuple[str, str]] = []
        self.pictures: list[str] = []
        self.floating: list[str] = []
        self._fields: list[list[str]] = []  # of each open field: its instruction, and whether its result has begun

    def inline(self, elements: Iterable[Element], style: WordStyle = _NONE) -> str:
        """Return runs as HTML, neighbours of the same emphasis joined."""
        self._fields = []
        made = self._walk(elements, style)
        made += self._close_fields()
        for tag in ("b", "i", "code"):
            made = made.replace(f"</{tag}><{tag}>", "")
        return made

    def plain(self, html: str) -> str:
        """Return inline HTML without bold and italics, as headings are written."""
        return _EMPHASIS.sub("", html)

    def raw(self, element: Element) -> str:
        """Return the text of a line of code, its spaces kept."""
        done = []
        for part in element.iter():
            if part.tag == "w:t":
                done.append(part.text or "")
            elif part.tag == "w:tab":
                done.append("\t")
            elif part.tag in ("w:br", "w:cr"):
                done.append("\n")
        return escape("".join(done), quote=False)

    def _close_fields(self) -> str:
        done = "".join("</a>" for field in self._fields if field[1] == "link")
        self._fields = []
        return done

    def _walk(self, elements: Iterable[Element], style: WordStyle) -> str:
        done = []
        for child in elements:
            tag = child.tag
            if tag == "w:r":
                done.append(self._run(child, style))
            elif tag == "w:hyperlink":
                relation = self.document.relation(child.get("r:id", ""))
                done.append(_linked(self._walk(child, style), relation.target if relation and relation.outside else ""))
            elif tag == "w:fldSimple":
                found = _LINK.match(child.get("w:instr", ""))
                done.append(_linked(self._walk(child, style), found[1] if found else ""))
            elif tag in ("m:oMath", "m:oMathPara"):
                done.append(f'<code class="math">{escape(" ".join(tex(child).split()), quote=False)}</code>')
            elif tag == "mc:AlternateContent":
                done.append(self._walk(chosen(child), style))
            elif tag == "w:sdt":
                content = below(child, "w:sdtContent")
                done.append(self._walk(content if content is not None else (), style))
            elif tag not in _GONE and tag not in ("w:p", "w:tbl"):
                done.append(self._walk(child, style))
        return "".join(done)

    def _run(self, run: Element, style: WordStyle) -> str:
        about = below(run, "w:rPr")
        named = below(about, "w:rStyle")
        own = self.document.styles.get(value(named, "w:val")) if named is not None else _NONE
        hidden = below(about, "w:vanish")
        if is_on(hidden) if hidden is not None else own.hidden or style.hidden:
            return "".join(self._piece(part) for part in run if part.tag in ("w:fldChar", "w:instrText"))
        made = "".join(self._piece(part) for part in run)
        if not made.strip() or "<a " in made or "</a>" in made:
            return made
        core = made.strip()
        before, after = made[: len(made) - len(made.lstrip())], made[len(made.rstrip()) :]
        raised = {"superscript": "sup", "subscript": "sub"}.get(value(below(about, "w:vertAlign"), "w:val"), "")
        fixed = own.code and not style.code
        slanted, heavy, struck = (below(about, key) for key in ("w:i", "w:b", "w:strike"))
        for tag, wanted in (
            (raised, bool(raised) and not core.startswith("<sup")),
            ("code", fixed),
            ("s", is_on(struck)),
            ("i", is_on(slanted) if slanted is not None else own.italic),
            ("b", is_on(heavy) if heavy is not None else own.bold),
        ):
            if wanted:
                core = f"<{tag}>{core}</{tag}>"
        return before + core + after

    def _piece(self, part: Element) -> str:
        """Return a piece of a run."""
        tag = part.tag
        if tag == "w:fldChar":
            return self._field(part)
        if tag == "w:instrText":
            if self._fields and not self._fields[-1][1]:
                self._fields[-1][0] += part.text or ""
            return ""
        if self._fields and not self._fields[-1][1]:
            return ""  # between a field's instruction and its result nothing shows
        if tag == "w:t":
            return escape(part.text or "", quote=False)
        if tag in ("w:tab", "w:ptab"):
            return "\t"
        if tag in ("w:br", "w:cr"):
            return "" if part.get("w:type") in ("page", "column") else "<br>"
        if tag == "w:noBreakHyphen":
            return "\u2011"
        if tag == "w:sym":
            return _symbol(part)
        if tag in ("w:footnoteReference", "w:endnoteReference"):
            return self._note(tag[2:-9], value(part, "w:id"))
        if tag in ("w:drawing", "w:pict"):
            self._drawing(part)
            return ""
        if tag == "mc:AlternateContent":
            return "".join(self._piece(inner) for inner in chosen(part))
        if tag == "w:ruby":
            base, above = below(part, "w:rubyBase"), below(part, "w:rt")
            return f"<ruby>{self._ruby(base)}<rt>{self._ruby(above)}</rt></ruby>"
        return ""

    def _ruby(self, element: Element | None) -> str:
        return self._walk(element, _NONE) if element is not None else ""

    def _field(self, part: Element) -> str:
        """Follow a field from its instruction to its result; only a link's address is taken from it."""
        kind = part.get("w:fldCharType")
        if kind == "begin":
            self._fields.append(["", ""])
        elif kind == "separate" and self._fields:
            found = _LINK.match(self._fields[-1][0])
            address = found[1] if found else ""
            web = address.lower().startswith(_WEB) and not any(field[1] == "link" for field in self._fields)
            self._fields[-1][1] = "link" if web else "shown"
            return f'<a href="{escape(address)}">' if web else ""
        elif kind == "end" and self._fields:
            return "</a>" if self._fields.pop()[1] == "link" else ""
        return ""

    def _note(self, kind: str, key: str) -> str:
        if (kind, key) not in self.document.notes:
            return ""
        if (kind, key) not in self.noted:
            self.noted.append((kind, key))
        return f"<sup>[{self.noted.index((kind, key)) + 1}]</sup>"

    # --- what stands beside the text -------------------------------------------------------------

    def _drawing(self, drawing: Element) -> None:
        """Collect the alt text of a picture, the data of a chart, the text of boxes and diagrams."""
        boxes = [*drawing.iter("w:txbxContent")]
        for about in (*drawing.iter("wp:docPr"), *drawing.iter("v:shape"), *drawing.iter("v:rect")):
            alt = about.get("descr") or about.get("alt") or about.get("title") or ""
            if alt.strip():
                self.pictures.append(f'<img alt="{escape(" ".join(alt.split()))}">')
        for chart in drawing.iter("c:chart"):
            self._add_part(chart.get("r:id", ""), chart=True)
        for diagram in drawing.iter("dgm:relIds"):
            self._add_part(diagram.get("r:dm", ""), chart=False)
        inside = {id(inner) for box in boxes for inner in box.iter("w:txbxContent") if inner is not box}
        skipped = {id(inner) for fall in drawing.iter("mc:Fallback") for inner in fall.iter("w:txbxContent")}
        for box in boxes:
            if id(box) in inside or id(box) in skipped:
                continue
            saved, self.floating = self.floating, []
            fields, self._fields = self._fields, []
            pictures, self.pictures = self.pictures, []
            body = Body()
            self.document.blocks(box, body)
            self._fields, self.pictures = fields, pictures
            self.floating = [*saved, body.html(), *self.floating]

    def _add_part(self, key: str, chart: bool) -> None:
        """Add what a chart or a diagram says, from the part that holds it."""
        relation = self.document.relation(key)
        archive = self.document.archive
        if relation is None or relation.outside or relation.target not in archive:
            return
        root = archive.xml(relation.target)
        if chart:
            self.floating.append(chart_table(root))
            return
        points = ["".join(text.text or "" for text in point.iter("a:t")) for point in root.iter("dgm:pt")]
        items = "".join(f"<li>{escape(point, quote=False)}</li>" for point in points if point.strip())
        if items:
            self.floating.append(f"<ul>{items}</ul>")


def _linked(inner: str, address: str) -> str:
    if not inner or not address.lower().startswith(_WEB) or "<a " in inner:
        return inner
    return f'<a href="{escape(address)}">{inner}</a>'


def _symbol(part: Element) -> str:
    """Return the letter of a symbol font: by its place in the font where that is well known."""
    try:
        code = int(part.get("w:char", ""), 16)
    except ValueError:
        return ""
    if 0xF000 <= code <= 0xF0FF:
        return _SYMBOLS.get(code - 0xF000, "•")
    return escape(chr(code)) if 0x20 < code < 0xD800 else ""
