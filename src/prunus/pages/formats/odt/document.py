"""An OpenDocument text as HTML: its blocks, its lists, what stands beside its words."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from html import escape
from typing import Final
from xml.etree.ElementTree import Element

from ....core.errors import BadPage
from ....core.types import Page
from .._common.body import Body
from .._common.write import alone, document, opened
from .._common.xml import below, each, parse_xml, whole
from .._common.zip import Archive
from .styles import OdtStyles
from .tables import table_html

_GONE: Final = frozenset(
    """office:annotation office:annotation-end text:tracked-changes text:bookmark text:bookmark-start
    text:bookmark-end text:sequence-decls text:variable-decls text:user-field-decls text:change text:change-start
    text:change-end text:soft-page-break office:forms text:alphabetical-index-mark text:toc-mark
    text:hidden-text text:note-citation svg:title svg:desc office:event-listeners text:table-of-content-source
    text:alphabetical-index-source text:illustration-index-source text:bibliography-source table:named-expressions
    office:binary-data text:number""".split()
)
"""What shows nowhere, or is written from elsewhere."""

_HOLDERS: Final = frozenset(
    """text:section text:table-of-content text:index-body text:index-title text:alphabetical-index
    text:illustration-index text:table-index text:bibliography text:user-index text:object-index draw:text-box
    text:numbered-paragraph office:text text:note-body""".split()
)
"""Elements that hold blocks and are none themselves."""

_SHAPES: Final = frozenset(
    """draw:frame draw:a draw:g draw:custom-shape draw:rect draw:ellipse draw:line draw:polygon draw:path
    draw:connector draw:caption draw:control""".split()
)
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_MAX_SPACES: Final = 200


def document_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: see the engine.
    """
    content = page.content
    if isinstance(content, bytes) and content.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<?xml"):
        flat = parse_xml(
            content, lambda reason: BadPage(f"{page.url or 'page'}: the document {reason}", subject=page.url)
        )
        return _Document(None, [flat], page.url).html()
    archive = Archive(content, page.url, "OpenDocument text")
    listed = archive.xml("META-INF/manifest.xml").iter() if "META-INF/manifest.xml" in archive else ()
    if any(one.tag.endswith("encryption-data") for one in listed):
        raise archive.fault("the OpenDocument text is encrypted; save it without its password")
    roots = [archive.xml("content.xml")]
    roots += [archive.xml(part) for part in ("styles.xml", "meta.xml") if part in archive]
    return _Document(archive, roots, page.url).html()


class _Document:
    """One document, and what was seen of it so far."""

    def __init__(self, archive: Archive | None, roots: list[Element], name: str) -> None:
        self.archive = archive
        self.roots = roots
        self.text = below(roots[0], "office:body", "office:text")
        if self.text is None:
            raise BadPage(f"{name or 'page'}: this is no OpenDocument text", subject=name)
        self.styles = OdtStyles(roots)
        self.notes: list[str] = []

    def html(self) -> str:
        """Return the whole document."""
        body = Body()
        self.blocks(self.text, body)
        if self.notes:
            body.add(f"<section><ol>{''.join(f'<li>{note}</li>' for note in self.notes)}</ol></section>")
        meta = next((found for root in self.roots for found in [below(root, "office:meta")] if found is not None), None)
        said = {child.tag: " ".join((child.text or "").split()) for child in (meta if meta is not None else ())}
        about = {
            "author": said.get("dc:creator") or said.get("meta:initial-creator", ""),
            "published": said.get("meta:creation-date", ""),
            "modified": said.get("dc:date", ""),
        }
        return document(
            [body.html()], said.get("dc:title", ""), said.get("dc:language", "") or self.styles.lang, **about
        )

    def blocks(self, element: Iterable[Element] | None, body: Body) -> None:
        """Add the blocks of a body, a cell, a list item, a note or a text box."""
        for child in element if element is not None else ():
            tag = child.tag
            if tag in ("text:p", "text:h"):
                self._paragraph(child, body)
            elif tag == "text:list":
                body.add(self._list(child, "", 1))
            elif tag == "table:table":
                body.add(table_html(child, self.cell), "table")
            elif tag in _HOLDERS:
                if child.get("text:display") not in ("none", "condition"):
                    self.blocks(child, body)
            elif tag in _SHAPES:
                self._shape(child, body)

    def cell(self, element: Element) -> str:
        """Return what a table cell holds; a single paragraph stands in it without its element."""
        body = Body()
        self.blocks(element, body)
        return alone(body.html())

    def _paragraph(self, element: Element, body: Body) -> None:
        style = self.styles.get(element.get("text:style-name", ""))
        if style.hidden or any(one.tag == "text:hidden-paragraph" for one in element):
            return
        beside = Body()
        text = self._inline(element, beside).strip()
        level = element.get("text:outline-level", "1") if element.tag == "text:h" else ""
        if text and (level or style.title):
            depth = max(1, whole(level, 1, most=6))
            number = next((one.text or "" for one in each(element, "text:number")), "")
            printed = f"{escape(number, quote=False)} " if number else ""
            body.add(f"<h{depth}>{printed}{text.replace('<b>', '').replace('</b>', '')}</h{depth}>")
        elif text and style.code:
            body.add(escape(_raw(element), quote=False), "code")
        elif text and style.caption:
            body.add(text, "caption")
        elif text:
            body.add(f"<blockquote><p>{text}</p></blockquote>" if style.quote else f"<p>{text}</p>")
        body.parts += beside.parts

    def _list(self, element: Element, inherited: str, level: int) -> str:
        """Return a list with the lists in it."""
        name = element.get("text:style-name", "") or inherited
        form = self.styles.list_level(name, level)
        items = []
        number = form.start
        for item in element:
            if item.tag not in ("text:list-item", "text:list-header"):
                continue
            start = whole(item.get("text:start-value"), number)
            value_of = f' value="{start}"' if start != number else ""
            number = start + 1
            inner = Body()
            for child in item:
                if child.tag == "text:list":
                    inner.add(self._list(child, name, level + 1))
                else:
                    self.blocks([child], inner)
            html = opened(inner.html())
            items.append(f"<li{value_of if form.tag == 'ol' else ''}>{html}</li>" if html else "")
        inside = "".join(items)
        if not inside:
            return ""
        attributes = f' start="{form.start}"' if form.tag == "ol" and form.start != 1 else ""
        attributes += f' type="{form.kind}"' if form.tag == "ol" and form.kind not in ("", "1") else ""
        return f"<{form.tag}{attributes}>{inside}</{form.tag}>"

    # --- inline ----------------------------------------------------------------------------------

    def _inline(self, element: Element, beside: Body) -> str:
        """Return the text of an element as HTML; what stands beside its words goes into ``beside``."""
        done = [escape(_flat(element.text), quote=False)]
        for child in element:
            done.append(self._piece(child, beside))
            done.append(escape(_flat(child.tail), quote=False))
        return "".join(done)

    def _piece(self, child: Element, beside: Body) -> str:
        tag = child.tag
        if tag == "text:s":
            return " " * whole(child.get("text:c"), 1, most=_MAX_SPACES)
        if tag == "text:tab":
            return "\t"
        if tag == "text:line-break":
            return "<br>"
        if tag == "text:note":
            return self._note(child)
        if tag == "text:a":
            return self._link(child, beside)
        if tag == "text:span":
            return self._span(child, beside)
        if tag == "text:ruby":
            base, above = below(child, "text:ruby-base"), below(child, "text:ruby-text")
            parts = [self._inline(one, beside) if one is not None else "" for one in (base, above)]
            return f"<ruby>{parts[0]}<rt>{parts[1]}</rt></ruby>"
        if tag in _SHAPES:
            self._shape(child, beside)
            return ""
        return "" if tag in _GONE else self._inline(child, beside)

    def _span(self, child: Element, beside: Body) -> str:
        style = self.styles.get(child.get("text:style-name", ""))
        if style.hidden:
            return ""
        made = self._inline(child, beside)
        core = made.strip()
        if not core:
            return made
        before, after = made[: len(made) - len(made.lstrip())], made[len(made.rstrip()) :]
        for tag, wanted in ((style.raised, bool(style.raised)), ("i", style.italic), ("b", style.bold)):
            if wanted:
                core = f"<{tag}>{core}</{tag}>"
        return before + core + after

    def _link(self, child: Element, beside: Body) -> str:
        inner, address = self._inline(child, beside), child.get("xlink:href", "")
        if not inner.strip() or not address.lower().startswith(_WEB):
            return inner
        return f'<a href="{escape(address)}">{inner}</a>'

    def _note(self, note: Element) -> str:
        """Write a note behind the text, and return its reference."""
        self.notes.append("")
        number = len(self.notes)
        inner = Body()
        self.blocks(below(note, "text:note-body"), inner)
        self.notes[number - 1] = inner.html()
        return f"<sup>[{number}]</sup>"

    # --- pictures, boxes, objects ----------------------------------------------------------------

    def _shape(self, shape: Element, body: Body) -> None:
        """Add a picture by its alt text, the text of a box or a shape, an equation, the data of a chart."""
        said = [below(shape, name) for name in ("svg:title", "svg:desc")]
        alt = " ".join(" ".join((one.text or "").split()) for one in said if one is not None).strip()
        if alt:
            body.add(f'<img alt="{escape(alt)}">', "image")
        paragraphs = [one for one in shape if one.tag in ("text:p", "text:h", "text:list")]
        self.blocks(paragraphs, body)
        for child in shape:
            if child.tag in _SHAPES:
                self._shape(child, body)
            elif child.tag == "draw:text-box":
                self.blocks(child, body)
            elif child.tag == "draw:object":
                self._object(child, body)

    def _object(self, shown: Element, body: Body) -> None:
        """Add an embedded equation or the table behind a chart; other objects are never opened."""
        root: Element | None = next(iter(shown), None)
        target = posixpath.normpath(shown.get("xlink:href", "").removeprefix("./") or "-") + "/content.xml"
        if root is None and self.archive is not None and target in self.archive:
            root = self.archive.xml(target)
        if root is None:
            return
        for formula in (root, *root.iter("math:math")):
            if formula.tag == "math:math":
                note = next(formula.iter("math:annotation"), None)
                said = note.text if note is not None and note.text else " ".join(_words(formula))
                body.add(f'<p><code class="math">{escape(" ".join(said.split()), quote=False)}</code></p>')
                return
        for table in root.iter("table:table"):
            body.add(table_html(table, self.cell), "table")


def _flat(text: str | None) -> str:
    """Return text with its line ends as spaces: in OpenDocument they mean no more."""
    return (text or "").replace("\n", " ")


def _words(element: Element) -> Iterable[str]:
    return (one.text for one in element.iter() if one.text and one.text.strip())


def _raw(element: Element) -> str:
    """Return the text of a line of code, its spaces kept."""
    done = [_flat(element.text)]
    for child in element:
        if child.tag == "text:s":
            done.append(" " * whole(child.get("text:c"), 1, most=_MAX_SPACES))
        elif child.tag == "text:tab":
            done.append("\t")
        elif child.tag == "text:line-break":
            done.append("\n")
        elif child.tag not in _GONE and child.tag != "text:note":
            done.append(_raw(child))
        done.append(_flat(child.tail))
    return "".join(done)
