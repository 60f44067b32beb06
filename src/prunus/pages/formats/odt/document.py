"""Convert an OpenDocument text to HTML: blocks, lists, tables, notes, pictures and embedded objects."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from html import escape, unescape
from itertools import groupby
from operator import itemgetter
from typing import Final
from xml.etree.ElementTree import Element

from ....core.errors import BadPage
from ....core.types import Page
from ...asides import comment
from .._common.allowance import Allowance
from .._common.body import Body
from .._common.numerals import is_said
from .._common.symbols import is_symbol_font, symbols
from .._common.write import Cell, document, note, table, without_first_paragraph, without_paragraph
from .._common.xml import children, find_path, is_flat, parse_xml, whole_number
from .._common.zip import Archive
from .styles import MAX_LABEL, OUTLINE, OdtStyles

_GROUPS: Final = frozenset({"table:table-rows", "table:table-row-group", "table:table-header-rows"})
_MAX_REPEAT: Final = 50  # repetitions of a row or a cell; higher counts only fill a sheet to its edge


def table_html(element: Element, cell_html: Callable[[Element], str], allowance: Allowance) -> str:
    """Return a table as HTML.

    :param cell_html: returns the content of a cell as HTML.
    :raises BadPage: with its repetitions the table has more cells or letters than the document may have.
    """
    rows, header_rows = [], 0
    for row, is_head in _rows(element, False):
        cells = []
        down = min(_count(row, "table:number-rows-repeated"), _MAX_REPEAT)
        for cell in row:
            if cell.tag != "table:table-cell":  # a covered cell; the cell that spans it was written
                continue
            html = cell_html(cell)
            colspan, rowspan = (_count(cell, f"table:number-{name}-spanned") for name in ("columns", "rows"))
            written = Cell(html, colspan, rowspan, is_head)
            across = min(_count(cell, "table:number-columns-repeated"), _MAX_REPEAT)
            allowance.spend("cells", down * across)
            allowance.spend("letters", (down * across - 1) * len(html))
            cells += [written] * across
        if cells:
            rows += [cells] * down
            header_rows += down * is_head
    return table(rows, header_rows if header_rows < len(rows) else 0) if rows else ""


def _rows(element: Element, is_head: bool) -> Iterator[tuple[Element, bool]]:
    """Yield the visible rows of a table, and whether each is a header row."""
    for child in element:
        if child.tag == "table:table-row":
            if child.get("table:visibility") not in ("collapse", "filter"):
                yield child, is_head
        elif child.tag in _GROUPS:
            yield from _rows(child, is_head or child.tag == "table:table-header-rows")


def _count(element: Element, name: str) -> int:
    return max(1, whole_number(element.get(name), 1, most=1000))


_IGNORED: Final = frozenset(
    """office:annotation-end text:tracked-changes text:bookmark text:bookmark-start
    text:bookmark-end text:sequence-decls text:variable-decls text:user-field-decls text:change text:change-start
    text:change-end text:soft-page-break office:forms text:alphabetical-index-mark text:toc-mark
    text:hidden-text text:note-citation svg:title svg:desc office:event-listeners text:table-of-content-source
    text:alphabetical-index-source text:illustration-index-source text:bibliography-source table:named-expressions
    office:binary-data text:number""".split()
)
"""Elements that show nothing, or that other code writes."""

_CONTAINERS: Final = frozenset(
    """text:section text:table-of-content text:index-body text:index-title text:alphabetical-index
    text:illustration-index text:table-index text:bibliography text:user-index text:object-index draw:text-box
    text:numbered-paragraph office:text text:note-body""".split()
)
"""Elements that contain blocks without being a block."""

_SHAPES: Final = frozenset(
    """draw:frame draw:a draw:g draw:custom-shape draw:rect draw:ellipse draw:line draw:polygon draw:path
    draw:connector draw:caption draw:control""".split()
)
_STRIKE: Final = re.compile(r"</?s>")
_TAG: Final = re.compile(r"(<[^<>]*>)")
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_MAX_SPACES: Final = 200
_MANIFEST: Final = "META-INF/manifest.xml"


def document_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: as :meth:`.engine.Engine.to_html`.
    """
    content, allowance = page.content, Allowance(page.url)
    if is_flat(content):
        flat = parse_xml(content, lambda reason: allowance.fault(f"the document {reason}"))
        return _Document(None, [flat], allowance).html()
    archive = Archive(content, "OpenDocument text", allowance)
    listed = archive.xml(_MANIFEST, doctype=True).iter() if _MANIFEST in archive else ()
    if any(element.tag.endswith("encryption-data") for element in listed):
        raise archive.fault("the OpenDocument text is encrypted; save it without its password")
    roots = [archive.xml("content.xml")]
    roots += [archive.xml(part) for part in ("styles.xml", "meta.xml") if part in archive]
    return _Document(archive, roots, allowance).html()


class _Document:
    """One document while it is converted."""

    def __init__(self, archive: Archive | None, roots: list[Element], allowance: Allowance) -> None:
        self.archive = archive
        self.roots = roots
        self.allowance = allowance
        self.text = find_path(roots[0], "office:body", "office:text")
        if self.text is None:
            raise allowance.fault("this is no OpenDocument text")
        self.styles = OdtStyles(roots)
        self.notes: list[str] = []
        self._counts: dict[str, dict[int, int]] = {}  # of lists: by their style, the latest, and by # and their id
        self._outline: dict[int, int] = {}  # latest numbers of headings by level
        self._shown: set[str] = set()  # parts of embedded objects

    def html(self) -> str:
        """Return the whole document."""
        body = Body()
        self.blocks(self.text, body)
        if self.notes:
            body.add(f"<section><ol>{''.join(f'<li>{note}</li>' for note in self.notes)}</ol></section>")
        meta = next(
            (result for root in self.roots for result in [find_path(root, "office:meta")] if result is not None), None
        )
        fields = {child.tag: " ".join((child.text or "").split()) for child in (meta if meta is not None else ())}
        metadata = {
            "author": fields.get("dc:creator") or fields.get("meta:initial-creator", ""),
            "published": fields.get("meta:creation-date", ""),
            "modified": fields.get("dc:date", ""),
        }
        return document(
            [body.html()], fields.get("dc:title", ""), fields.get("dc:language", "") or self.styles.lang, **metadata
        )

    def blocks(self, element: Iterable[Element] | None, body: Body) -> None:
        """Add the blocks of a body, a cell, a list item, a note or a text box."""
        for child in element if element is not None else ():
            self.allowance.spend("items")
            tag = child.tag
            if tag in ("text:p", "text:h"):
                self._add_paragraph(child, body)
            elif tag == "text:list":
                name = child.get("text:style-name", "")
                body.add(self._list_html(child, name, (), self._counts_of(child, name)))
            elif tag == "table:table":
                body.add(table_html(child, self.cell, self.allowance), "table")
            elif tag in _CONTAINERS:
                if child.get("text:display") not in ("none", "condition"):
                    self.blocks(child, body)
            elif tag in _SHAPES:
                formula = self._add_shape(child, body)
                body.add(f"<p>{formula}</p>" if formula else "")

    def cell(self, element: Element) -> str:
        """Return the content of a table cell as HTML; a single paragraph loses its ``<p>``."""
        body = Body()
        self.blocks(element, body)
        return without_paragraph(body.html())

    def _add_paragraph(self, element: Element, body: Body) -> None:
        style = self.styles.get(element.get("text:style-name", ""))
        if style.hidden or any(child.tag == "text:hidden-paragraph" for child in element):
            return
        beside = Body()
        text = (self._struck_html if style.struck else self._inline_html)(element, beside).strip()
        level = element.get("text:outline-level", "1") if element.tag == "text:h" else ""
        if text and (level or style.title):
            depth = max(1, whole_number(level, 1, most=6))
            number = self._heading_label(element, depth) if level else ""
            self.allowance.spend("letters", len(number))
            printed = f"{escape(number, quote=False)} " if is_said(number) else ""
            body.add(f"<h{depth}>{printed}{text.replace('<b>', '').replace('</b>', '')}</h{depth}>")
        elif text and style.code:
            body.add(escape(_code_text(element), quote=False), "code")
        elif text and style.caption:
            body.add(text, "caption")
        elif text:
            body.add(f"<blockquote><p>{text}</p></blockquote>" if style.quote else f"<p>{text}</p>")
        body.parts += beside.parts

    def _list_html(self, element: Element, name: str, above: tuple[int, ...], counts: dict[int, int]) -> str:
        """Return a list with its nested lists.

        :param name: name of the style of the list.
        :param above: numbers of the items around the list, the outermost first.
        :param counts: latest numbers by level; an item clears those of the levels below it.
        """
        level = len(above) + 1
        start = self.styles.list_level(name, level).start
        body = Body()
        for item in element:
            self.allowance.spend("items")
            if item.tag not in ("text:list-item", "text:list-header"):
                continue
            inner, label = Body(), ""
            # an item that begins with a list has no number; it only holds what goes on a level below
            is_counted = item.tag == "text:list-item" and next((child.tag for child in item), "") != "text:list"
            if is_counted:
                counts[level] = whole_number(item.get("text:start-value"), counts.get(level, start - 1) + 1)
                for deeper in [at for at in counts if at > level]:
                    del counts[deeper]
                label = self._label(item, name, (*above, counts[level]))
                self.allowance.spend("letters", len(label))
            for child in item:
                if child.tag == "text:list":
                    style = child.get("text:style-name", "") or name
                    inner.add(self._list_html(child, style, (*above, counts.get(level, start)), counts))
                else:
                    self.blocks([child], inner)
            html = inner.html()
            if not is_counted:
                body.inside(html)
            elif html.startswith("<h"):
                printed = f"{escape(label, quote=False)} " if is_said(label) else ""
                body.add(f"{html[:4]}{printed}{html[4:]}")
            elif html:
                body.labelled(without_first_paragraph(html), 0, label)
        return body.html()

    def _counts_of(self, element: Element, name: str) -> dict[int, int]:
        """Return the numbers that a list goes on from: those of an earlier list, or none."""
        counts = self._counts.get(f"#{element.get('text:continue-list', '')}")
        if counts is None and element.get("text:continue-numbering") == "true":
            counts = self._counts.get(name)
        counts = {} if counts is None else counts
        self._counts[name] = counts
        if identity := element.get("xml:id", ""):
            self._counts[f"#{identity}"] = counts
        return counts

    def _heading_label(self, element: Element, level: int) -> str:
        """Count a heading; return its number, as the file states it or else as the outline makes it."""
        stated = next(children(element, "text:number"), None)
        marking = self.styles.list_level(OUTLINE, level)
        if element.get("text:is-list-header") == "true" or not (marking.kind or stated is not None):
            return "" if stated is None else stated.text or ""
        restarts = element.get("text:restart-numbering") == "true"
        number = self._outline.get(level, marking.start - 1) + 1
        number = whole_number(element.get("text:start-value"), marking.start) if restarts else number
        self._outline = {at: count for at, count in self._outline.items() if at < level} | {level: number}
        if stated is not None:
            return stated.text or ""
        above = (self._outline.get(at, self.styles.list_level(OUTLINE, at).start) for at in range(1, level + 1))
        return self._label(element, OUTLINE, tuple(above))

    def _label(self, item: Element, name: str, numbers: tuple[int, ...]) -> str:
        """Return the label of an item: as the file states it, or else as the style of the list makes it."""
        stated = next(children(item, "text:number"), None)
        if stated is not None:
            return (stated.text or "")[:MAX_LABEL]
        own = self.styles.list_level(name, len(numbers))
        if not own.kind:
            return f"{own.before}{own.after}" or own.bullet
        first = max(len(numbers) - own.shown, 0)
        levels = (self.styles.list_level(name, at + 1) for at in range(first, len(numbers)))
        shown = ".".join(
            level.number(count) for level, count in zip(levels, numbers[first:], strict=True) if level.kind
        )
        return f"{own.before}{shown}{own.after}"

    # --- inline ----------------------------------------------------------------------------------

    def _inline_html(self, element: Element, beside: Body) -> str:
        """Return the text of an element as HTML; its pictures, boxes and objects go into ``beside``."""
        parts = [escape(_one_line(element.text), quote=False)]
        for child in element:
            self.allowance.spend("items")
            parts.append(self._part_html(child, beside))
            parts.append(escape(_one_line(child.tail), quote=False))
        return "".join(parts)

    def _struck_html(self, element: Element, beside: Body) -> str:
        """Return the text of a paragraph whose style strikes it through, but for the spans that say otherwise."""
        parts = [(escape(_one_line(element.text), quote=False), True)]
        for child in element:
            self.allowance.spend("items")
            is_struck = not self.styles.get(child.get("text:style-name", "")).unstruck
            parts += [(self._part_html(child, beside), is_struck), (escape(_one_line(child.tail), quote=False), True)]
        html = ""
        for is_struck, pieces in groupby((part for part in parts if part[0]), key=itemgetter(1)):
            joined = "".join(piece for piece, _ in pieces)
            if is_struck and (core := _STRIKE.sub("", joined.strip())):
                before = len(joined) - len(joined.lstrip())
                joined = f"{joined[:before]}<s>{core}</s>{joined[len(joined.rstrip()) :]}"
            html += joined
        return html

    def _part_html(self, child: Element, beside: Body) -> str:
        tag = child.tag
        if tag == "text:s":
            return " " * whole_number(child.get("text:c"), 1, most=_MAX_SPACES)
        if tag == "text:tab":
            return "\t"
        if tag == "text:line-break":
            return "<br>"
        if tag == "text:note":
            return self._note_reference(child)
        if tag == "office:annotation":
            beside.add(self._comment_html(child))
            return ""
        if tag == "text:a":
            return self._link_html(child, beside)
        if tag == "text:span":
            return self._span_html(child, beside)
        if tag == "text:ruby":
            base, above = find_path(child, "text:ruby-base"), find_path(child, "text:ruby-text")
            parts = [self._inline_html(part, beside) if part is not None else "" for part in (base, above)]
            return f"<ruby>{parts[0]}<rt>{parts[1]}</rt></ruby>"
        if tag in _SHAPES:
            return self._add_shape(child, beside)
        return "" if tag in _IGNORED else self._inline_html(child, beside)

    def _span_html(self, child: Element, beside: Body) -> str:
        style = self.styles.get(child.get("text:style-name", ""))
        if style.hidden:
            return ""
        html = self._inline_html(child, beside)
        if is_symbol_font(style.font):
            parts = _TAG.split(html)
            parts[::2] = [escape(symbols(style.font, unescape(part)), quote=False) for part in parts[::2]]
            html = "".join(parts)
        core = html.strip()
        if not core:
            return html
        before, after = html[: len(html) - len(html.lstrip())], html[len(html.rstrip()) :]
        for tag, wanted in (
            (style.raised, bool(style.raised)),
            ("s", style.struck),
            ("i", style.italic),
            ("b", style.bold),
        ):
            if wanted:
                core = f"<{tag}>{core}</{tag}>"
        return before + core + after

    def _link_html(self, child: Element, beside: Body) -> str:
        inner, address = self._inline_html(child, beside), child.get("xlink:href", "")
        if not inner.strip() or not address.lower().startswith(_WEB):
            return inner
        return f'<a href="{escape(address)}">{inner}</a>'

    def _comment_html(self, annotation: Element) -> str:
        said = Body()
        self.blocks(annotation, said)
        author = find_path(annotation, "dc:creator")
        name = escape(_one_line(author.text), quote=False) if author is not None else ""
        return comment(said.html(), name)

    def _note_reference(self, note: Element) -> str:
        """Add a note to the list of notes, and return its reference."""
        self.notes.append("")  # take the number before the text, which may hold notes itself
        number = len(self.notes)
        inner = Body()
        self.blocks(find_path(note, "text:note-body"), inner)
        self.notes[number - 1] = inner.html()
        return f"<sup>[{number}]</sup>"

    # --- pictures, boxes, objects ----------------------------------------------------------------

    def _add_shape(self, shape: Element, body: Body) -> str:
        """Add the alt text of a picture, the text of a box or a shape, or the data of a chart.

        :returns: its equations as HTML, for the line in which the shape stands.
        """
        labels = [find_path(shape, name) for name in ("svg:title", "svg:desc")]
        alt = " ".join(" ".join((label.text or "").split()) for label in labels if label is not None).strip()
        if alt:
            body.add(f'<img alt="{escape(alt)}">', "image")
        paragraphs = [child for child in shape if child.tag in ("text:p", "text:h", "text:list")]
        self.blocks(paragraphs, body)
        formulas = ""
        for child in shape:
            if child.tag in _SHAPES:
                formulas += self._add_shape(child, body)
            elif child.tag == "draw:text-box":
                self.blocks(child, body)
            elif child.tag == "draw:object":
                formulas += self._add_object(child, body)
        return formulas

    def _add_object(self, frame: Element, body: Body) -> str:
        """Return an embedded equation as HTML, or add the table behind a chart. Other objects are never opened."""
        root: Element | None = next(iter(frame), None)
        target = posixpath.normpath(frame.get("xlink:href", "").removeprefix("./") or "-") + "/content.xml"
        if root is None and self.archive is not None and target in self.archive and target not in self._shown:
            self._shown.add(target)
            try:
                root = self.archive.xml(target, doctype=True)
            except BadPage:  # the text around a damaged object is whole
                body.add(note("An embedded object is damaged."))
        if root is None:
            return ""
        for formula in (root, *root.iter("math:math")):
            if formula.tag == "math:math":
                annotation = next(formula.iter("math:annotation"), None)
                text = annotation.text if annotation is not None and annotation.text else " ".join(_texts(formula))
                return f'<code class="math">{escape(" ".join(text.split()), quote=False)}</code>'
        for element in root.iter("table:table"):
            body.add(table_html(element, self.cell, self.allowance), "table")
        return ""


def _one_line(text: str | None) -> str:
    """Return text with line ends as spaces: OpenDocument gives them no other meaning."""
    return (text or "").replace("\n", " ")


def _texts(element: Element) -> Iterable[str]:
    return (child.text for child in element.iter() if child.text and child.text.strip())


def _code_text(element: Element) -> str:
    """Return the text of a line of code with its white space."""
    parts = [_one_line(element.text)]
    for child in element:
        if child.tag == "text:s":
            parts.append(" " * whole_number(child.get("text:c"), 1, most=_MAX_SPACES))
        elif child.tag == "text:tab":
            parts.append("\t")
        elif child.tag == "text:line-break":
            parts.append("\n")
        elif child.tag not in _IGNORED and child.tag != "text:note":
            parts.append(_code_text(child))
        parts.append(_one_line(child.tail))
    return "".join(parts)
