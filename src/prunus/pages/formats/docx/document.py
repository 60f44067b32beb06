"""A Word document as HTML: its blocks, by what their styles say that they are."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from xml.etree.ElementTree import Element

from ....core.types import Page
from .._common.body import Body
from .._common.ooxml import Relation, chosen, main_part, properties, relations
from .._common.write import document
from .._common.xml import below, each, value
from .._common.zip import Archive
from .runs import Runs
from .styles import Numbering, WordStyle, WordStyles, heading_level, number_of, optional
from .tables import table_html

_SKIPPED: Final = frozenset({"w:del", "w:moveFrom", "w:sectPr", "w:permStart", "w:permEnd"})
_NOTES: Final = ("footnote", "endnote")


def document_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: see the engine.
    """
    archive = Archive(page.content, page.url, "Word document")
    part = main_part(archive, "word/document.xml")
    return _Document(archive, part).html()


class _Document:
    """One document, and what was seen of it so far."""

    def __init__(self, archive: Archive, part: str) -> None:
        self.archive = archive
        self.root = archive.xml(part)
        if self.root.tag != "w:document":
            raise archive.fault("this is no Word document")
        self.links = relations(archive, part)
        self.styles = WordStyles(self._related("styles"))
        self.numbering = Numbering(self._related("numbering"))
        self.notes = self._notes()
        self.runs = Runs(self)

    def _related(self, kind: str) -> Element | None:
        target = next((one.target for one in self.links.values() if one.kind == kind and not one.outside), "")
        return optional(self.archive, target)

    def _notes(self) -> Mapping[tuple[str, str], Element]:
        """Return the footnotes and endnotes by kind and id."""
        found = {}
        for kind in _NOTES:
            for note in each(self._related(f"{kind}s"), f"w:{kind}"):
                if value(note, "w:type") not in ("separator", "continuationSeparator", "continuationNotice"):
                    found[kind, value(note, "w:id")] = note
        return found

    def html(self) -> str:
        """Return the whole document."""
        body = Body()
        self.blocks(below(self.root, "w:body"), body)
        self._add_notes(body)
        title, meta = properties(self.archive)
        lang = next((value(one, "w:val") for one in self.root.iter("w:lang")), "")
        return document([body.html()], title, lang, **meta)

    def _add_notes(self, body: Body) -> None:
        """Add the notes that the text refers to; one may refer to others."""
        written = 0
        items: list[str] = []
        while written < len(self.runs.noted):
            note = self.notes.get(self.runs.noted[written])
            written += 1
            inner = Body()
            if note is not None:
                self.blocks(note, inner)
            items.append(f"<li>{inner.html()}</li>")
        if items:
            body.add(f"<section><ol>{''.join(items)}</ol></section>")

    def blocks(self, element: Element | None, body: Body) -> None:
        """Add the blocks of a body, a cell, a note or a text box."""
        for child in element if element is not None else ():
            tag = child.tag
            if tag == "w:p":
                self.paragraph(child, body)
            elif tag == "w:tbl":
                body.add(table_html(child, self), "table")
            elif tag == "w:sdt":
                self.blocks(below(child, "w:sdtContent"), body)
            elif tag == "mc:AlternateContent":
                for inner in chosen(child):
                    self.blocks(inner, body)
            elif tag in ("m:oMathPara", "m:oMath"):
                body.add(f"<p>{self.runs.inline([child])}</p>")
            elif tag not in _SKIPPED and len(child):
                self.blocks(child, body)

    def paragraph(self, element: Element, body: Body) -> None:
        """Add a paragraph as what its style says that it is."""
        about = below(element, "w:pPr")
        style = self.styles.get(value(below(about, "w:pStyle"), "w:val") or self.styles.default)
        runs = self.runs
        inner = runs.inline(element, style)
        floating, runs.floating = runs.floating, []
        pictures, runs.pictures = runs.pictures, []
        text = inner.strip()
        number = number_of(about) or style.number
        label = self.numbering.count(*number) if number and (text or pictures) else None
        level = self._heading(about, style)
        if text and (level or style.title):
            printed = f"{escape(label[2], quote=False)} " if label and not label[0].bullet and label[2] else ""
            body.add(f"<h{level or 1}>{printed}{runs.plain(text)}</h{level or 1}>")
        elif text and label is not None:
            kind, at, _ = label
            depth = number[1] if number else 0
            body.item(text, depth, "ul" if kind.bullet else "ol", at, kind.kind)
        elif text and style.code:
            body.add(runs.raw(element), "code")
        elif text and style.caption:
            body.add(text, "caption")
        elif text:
            body.add(f"<blockquote><p>{text}</p></blockquote>" if style.quote else f"<p>{text}</p>")
        for picture in pictures:
            body.add(picture, "image")
        for box in floating:
            body.add(box, "table" if box.startswith("<table") else "block")

    def _heading(self, about: Element | None, style: WordStyle) -> int:
        """Return the level of a heading: what the paragraph says itself, else its style; 0 for none."""
        return heading_level(value(below(about, "w:outlineLvl"), "w:val"), style.heading)

    def relation(self, key: str) -> Relation | None:
        """Return a relation of the document by its id."""
        return self.links.get(key)
