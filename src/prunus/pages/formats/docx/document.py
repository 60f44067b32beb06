"""Convert a Word document to HTML. Styles decide which paragraph is a heading, a list item, code and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Final
from xml.etree.ElementTree import Element

from ....core.errors import BadPage
from ....core.types import Page
from ...asides import comment
from ...clean.parse import decode
from .._common.allowance import Allowance
from .._common.body import Body
from .._common.numerals import is_said
from .._common.ooxml import Relation, chosen_branch, main_part, properties, relations
from .._common.write import document, fragment, note
from .._common.xml import attribute, children, find_path
from .._common.zip import Archive
from ..eml import Engine as Message
from ..rtf.engine import Engine as RichText
from ..text import Engine as PlainText
from .runs import WordRuns
from .styles import Numbering, WordStyle, WordStyles, heading_level, is_on, number_of, optional
from .tables import table_html

_SKIPPED: Final = frozenset({"w:del", "w:moveFrom", "w:sectPr", "w:permStart", "w:permEnd"})
_MESSAGE: Final = re.compile(rb"\s{0,20}(?:MIME-Version|From|Content-Type|Message-ID|Date|Subject)[ \t]{0,5}:", re.I)
_NOTES: Final = ("footnote", "endnote")


def document_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: as :meth:`.engine.Engine.to_html`.
    """
    archive = Archive(page.content, "Word document", Allowance(page.url))
    part = main_part(archive, "word/document.xml")
    return _Document(archive, part).html()


def _chunk_page(content: bytes, allowance: Allowance) -> str:
    """Return the HTML of an embedded document: Word, Rich Text, a web archive, HTML or plain text.

    :raises BadPage: it is damaged.
    """
    if content.startswith(b"PK"):
        archive = Archive(content, "Word document", allowance)
        return _Document(archive, main_part(archive, "word/document.xml"), is_chunk=True).html()
    page = Page(content, url=allowance.name)
    if content.startswith(b"{\\rtf"):
        return RichText().to_html(page)
    if _MESSAGE.match(content):
        return Message().to_html(page)
    text = decode(content)
    return text if "<" in text else PlainText().to_html(Page(text))


def _vanishes(props: Element | None) -> bool:
    """Tell whether an empty paragraph is not there at all: its end is deleted or hidden. Others are counted."""
    end = find_path(props, "w:rPr")
    return any(find_path(end, key) is not None for key in ("w:del", "w:moveFrom")) or is_on(find_path(end, "w:vanish"))


class _Document:
    """One document while it is converted."""

    def __init__(self, archive: Archive, part: str, is_chunk: bool = False) -> None:
        self.archive = archive
        self._is_chunk = is_chunk
        self.root = archive.xml(part)
        if self.root.tag != "w:document":
            raise archive.fault("this is no Word document")
        self.links = relations(archive, part)
        self.styles = WordStyles(self._related_part("styles"))
        self.numbering = Numbering(self._related_part("numbering"))
        self.notes = self._notes()
        said = children(self._related_part("comments"), "w:comment")
        self.comments = {attribute(element, "w:id"): element for element in said}
        self.runs = WordRuns(self)

    def _related_part(self, kind: str) -> Element | None:
        target = next((link.target for link in self.links.values() if link.kind == kind and not link.outside), "")
        return optional(self.archive, target)

    def _notes(self) -> Mapping[tuple[str, str], Element]:
        """Return the footnotes and endnotes by kind and id."""
        notes = {}
        for kind in _NOTES:
            for result in children(self._related_part(f"{kind}s"), f"w:{kind}"):
                if attribute(result, "w:type") not in ("separator", "continuationSeparator", "continuationNotice"):
                    notes[kind, attribute(result, "w:id")] = result
        return notes

    def html(self) -> str:
        """Return the whole document."""
        body = Body()
        self.blocks(find_path(self.root, "w:body"), body)
        self._add_notes(body)
        title, meta = properties(self.archive)
        lang = next((attribute(element, "w:val") for element in self.root.iter("w:lang")), "")
        return document([body.html()], title, lang, **meta)

    def _add_notes(self, body: Body) -> None:
        """Add the notes that the text refers to. A note may refer to further notes, so the list grows meanwhile."""
        written = 0
        items: list[str] = []
        while written < len(self.runs.noted):
            result = self.notes.get(self.runs.noted[written])
            written += 1
            inner = Body()
            if result is not None:
                self.blocks(result, inner)
            items.append(f"<li>{inner.html()}</li>")
        if items:
            body.add(f"<section><ol>{''.join(items)}</ol></section>")

    def blocks(self, element: Element | None, body: Body) -> None:
        """Add the blocks of a body, a cell, a note or a text box."""
        for child in element if element is not None else ():
            self.archive.allowance.spend("items")
            tag = child.tag
            if tag == "w:p":
                self.paragraph(child, body)
            elif tag == "w:tbl":
                body.add(table_html(child, self), "table")
            elif tag == "w:sdt":
                self.blocks(find_path(child, "w:sdtContent"), body)
            elif tag == "mc:AlternateContent":
                for inner in chosen_branch(child):
                    self.blocks(inner, body)
            elif tag in ("m:oMathPara", "m:oMath"):
                body.add(f"<p>{self.runs.inline([child])}</p>")
            elif tag == "w:altChunk":
                body.add(self._chunk_html(attribute(child, "r:id")))
            elif tag not in _SKIPPED and len(child):
                self.blocks(child, body)

    def _chunk_html(self, key: str) -> str:
        """Return a document that another format wrote, and that Word shows in this place."""
        link = self.links.get(key)
        if link is None or link.outside or self._is_chunk or link.target not in self.archive:
            return ""
        self._is_chunk = True  # a chunk shows no chunks: a document may hold itself
        allowance = self.archive.allowance
        content = self.archive.read(link.target)
        allowance.spend("items", content.count(b"<"))
        try:
            return fragment(_chunk_page(content, allowance))
        except BadPage:  # the text around it is whole
            return note("An embedded document is damaged or of a kind that is not read.")
        finally:
            self._is_chunk = False

    def paragraph(self, element: Element, body: Body) -> None:
        """Add a paragraph as the block that its style asks for: heading, list item, code, caption, quote or text."""
        props = find_path(element, "w:pPr")
        style = self.styles.get(attribute(find_path(props, "w:pStyle"), "w:val") or self.styles.default)
        runs = self.runs
        html = runs.inline(element, style)
        floating, runs.floating = runs.floating, []
        pictures, runs.pictures = runs.pictures, []
        text = html.strip()
        label = self._label(props, style) if text or pictures or not _vanishes(props) else None
        level = self._heading(props, style)
        depth, printed = label or (0, "")
        self.archive.allowance.spend("letters", len(printed))
        if text and (level or style.title):
            printed = f"{escape(printed, quote=False)} " if is_said(printed) else ""
            body.add(f"<h{level or 1}>{printed}{runs.plain(text)}</h{level or 1}>")
        elif text and label is not None:
            body.labelled(text, depth, printed)
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
        said, runs.commented = runs.commented, []
        for key in said:
            body.inside(self._comment_html(key))

    def _label(self, props: Element | None, style: WordStyle) -> tuple[int, str] | None:
        """Count a paragraph in its list; return its depth and the label that Word prints, None outside a list."""
        number = number_of(props, style.number)
        if number is None:
            return None
        key, level = number
        if level < 0:
            level = self.numbering.level_of(key, style.numbered_by)
        label = self.numbering.count(key, level)
        return None if label is None else (level, label)

    def _comment_html(self, key: str) -> str:
        """Return a comment, the first time that the text refers to it."""
        element = self.comments.pop(key, None)
        if element is None:
            return ""
        lines = (self.runs.inline(paragraph).strip() for paragraph in element.iter("w:p"))
        return comment("<br>".join(filter(None, lines)), escape(attribute(element, "w:author"), quote=False))

    def _heading(self, props: Element | None, style: WordStyle) -> int:
        """Return the heading level, from the paragraph itself or else from its style; 0 where it is no heading."""
        return heading_level(attribute(find_path(props, "w:outlineLvl"), "w:val"), style.heading)

    def relation(self, key: str) -> Relation | None:
        """Return a relation of the document by its id."""
        return self.links.get(key)
