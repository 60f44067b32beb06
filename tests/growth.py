"""Documents that repeat one piece of their format, to find readers whose time grows faster than the document.

For each format :data:`FORMATS` holds the smallest documents around a text, and the pieces of the format. A piece with
``…`` opens and closes: it is repeated as it is, opened only, nested, and closed only. ``%d`` in a piece counts, so that
each copy differs.
"""

from __future__ import annotations

import io
import json
import sqlite3
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.clock import seconds_of
from tests.pages.formats.pdfs import Sheet, pdf

import prunus
from prunus.answer import check, cite
from prunus.answer.plan import rules
from prunus.core.errors import PrunusError
from prunus.core.registry import make_engine
from prunus.core.text import bm25, sentences, words
from prunus.core.types import Page
from prunus.models.json_reply import read_json
from prunus.pages import links, xpath
from prunus.pages.clean import parse
from prunus.pages.clean.walk import clean_tree
from prunus.pages.formats import _sniff
from prunus.pages.formats.docx.drawn_fields import drawn
from prunus.pages.formats.latex import bib
from prunus.pages.formats.latex import words as latex
from prunus.pages.formats.latex.commands import HANDLERS
from prunus.web.door.url import parse_url
from prunus.web.fetch import robots, walls
from prunus.web.search import _wire

Write = Callable[[str], Any]
Read = Callable[[Any], object]

FIRST, LAST = 4_000, 16_000
"""Letters of the first and of the largest document."""

LONG = 0.06
"""Seconds from which a time is compared with that of a shorter document; shorter times are mostly noise."""

MOST = 12.0
"""How many times longer four times the letters may take; quadratic work takes sixteen times longer."""


@dataclass(frozen=True)
class Format:
    """A format: its smallest documents around a text, and its pieces.

    :param read: reads a document; by default the engine of that name.
    :param most: letters of the largest document.
    """

    documents: tuple[Write, ...]
    pieces: tuple[str, ...]
    read: Read | None = None
    most: int = LAST


def texts(piece: str) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Yield ways to repeat a piece, each with a name, as functions of the number of letters."""
    opened, mark, closed = piece.partition("…")
    whole = f"{opened}x{closed}" if mark else piece
    yield f"{whole!r} repeated", lambda size: repeated(whole, size)
    if mark:
        yield f"{opened!r} opened", lambda size: repeated(opened, size)
        yield f"{piece!r} nested", lambda size: repeated(opened, size // 2) + "x" + repeated(closed, size // 2)
        yield f"{closed!r} closed", lambda size: repeated(closed, size)


def repeated(piece: str, size: int) -> str:
    """Return a piece as often as it goes into so many letters; ``%d`` counts."""
    count = size // len(piece) if piece else 0
    if "%d" in piece:
        return "".join(piece.replace("%d", str(number)) for number in range(count))
    return piece * count


def growth(read: Read, write: Callable[[int], Any], most: int = LAST) -> str:
    """Return how the time grows where it grows faster than the document; '' where it does not."""
    before, size = 0.0, FIRST
    while size <= most:
        taken = _seconds(read, write(size))
        if before and taken > max(MOST * before, LONG):
            before = min(before, _seconds(read, write(size // 4)), _seconds(read, write(size // 4)))
            taken = min(taken, _seconds(read, write(size)))
            # a limit that only the longer document reaches makes a single step; growth goes on
            if taken > max(MOST * before, LONG) and (taken > 5 or _seconds(read, write(4 * size)) > MOST * taken):
                return f"{size // 4:,} letters take {before:.3f} s, {size:,} take {taken:.3f} s"
        if taken > 10:
            return f"{size:,} letters take {taken:.1f} s"
        if taken * (most / size) ** 2 < LONG:  # even quadratic work would be short at the largest document
            return ""
        before, size = max(taken, LONG / 16), size * 4
    return ""


def _seconds(read: Read, document: Any) -> float:
    def use() -> None:
        with suppress(PrunusError):
            read(document)

    return seconds_of(use)


def slow(name: str, only: tuple[str, ...] = (), most: int = 0) -> list[str]:
    """Return the texts that make a reader slow, each with its times.

    :param only: the pieces to try; by default all of the format.
    """
    form = FORMATS[name]
    return [
        f"{name}, document {number}: {way}: {result}"
        for piece in only or form.pieces
        for way, text in texts(piece)
        for number, document in enumerate(form.documents)
        if (
            result := growth(
                reader(name), lambda size, text=text, document=document: document(text(size)), most or form.most
            )
        )  # type: ignore[misc]
    ]


def reader(name: str) -> Read:
    """Return the function that reads the documents of a format."""
    engine = name.partition(" ")[0]
    return FORMATS[name].read or (
        lambda content: make_engine("format", engine).to_html(Page(content, url=f"x.{engine}"))
    )


# --- documents around a text ---------------------------------------------------------------------


def _zip(parts: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


_W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)
_RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _rels(**targets: str) -> str:
    links = "".join(
        f'<Relationship Id="{key}" Type="{_RELS}/{target.split("|")[0]}" Target="{target.split("|")[1]}"/>'
        for key, target in targets.items()
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{links}</Relationships>'
    )


def _docx(body: str = "", styles: str = "", numbering: str = "", notes: str = "", chart: str = "") -> bytes:
    return _zip(
        {
            "word/document.xml": f"<w:document {_W}><w:body><w:p><w:r><w:t>Words</w:t></w:r></w:p>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {_W}>{styles}</w:styles>",
            "word/numbering.xml": f"<w:numbering {_W}>{numbering}</w:numbering>",
            "word/footnotes.xml": f"<w:footnotes {_W}>{notes}</w:footnotes>",
            "word/chart.xml": f"<c:chartSpace {_W}>{chart}</c:chartSpace>",
            "word/_rels/document.xml.rels": _rels(
                s="styles|styles.xml", n="numbering|numbering.xml", f="footnotes|footnotes.xml", c="chart|chart.xml"
            ),
        }
    )


_NOTE = '<w:footnote w:id="%d"><w:p><w:r><w:t>note</w:t></w:r></w:p></w:footnote>'
_REFERENCE = '<w:r><w:footnoteReference w:id="%d"/></w:r>'
_POINT = '<c:pt idx="%d"><c:v>1</c:v></c:pt>'
_LVL = '<w:lvl w:ilvl="%d"><w:numFmt w:val="decimal"/><w:lvlText w:val="%%1."/></w:lvl>'
_NUMBERED = '<w:p><w:pPr><w:pStyle w:val="H"/><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>'


def _noted(text: str) -> bytes:
    count = len(text) // 150
    return _docx(
        body=f"<w:p>{repeated(_REFERENCE, count * len(_REFERENCE))}</w:p>", notes=repeated(_NOTE, count * len(_NOTE))
    )


def _numbered_by(text: str) -> bytes:
    half = len(text) // 2
    levels = repeated(_LVL, half)
    nums = repeated('<w:num w:numId="%d"><w:abstractNumId w:val="0"/></w:num>', half)
    return _docx(body=_NUMBERED, numbering=f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>{nums}')


def _labelled(text: str) -> bytes:
    half = len(text) // 2
    label = f'<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="{"%1." * (half // 3)}"/></w:lvl>'
    return _docx(
        body=_NUMBERED * (half // len(_NUMBERED)),
        styles='<w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 1"/></w:style>',
        numbering=f'<w:abstractNum w:abstractNumId="0">{label}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>',
    )


def _charted(text: str) -> bytes:
    half = len(text) // 2
    points = repeated(_POINT, half)
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="c"/></w:drawing></w:r></w:p>'
    return _docx(
        body=drawing * (half // len(drawing)), chart=f"<c:chart><c:ser><c:val>{points}</c:val></c:ser></c:chart>"
    )


def _pptx(slide: str) -> bytes:
    return _zip(
        {
            "ppt/presentation.xml": f'<p:presentation {_W}><p:sldIdLst><p:sldId r:id="s"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": _rels(s="slide|slide.xml"),
            "ppt/slide.xml": f"<p:sld {_W}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>",
            "ppt/_rels/slide.xml.rels": _rels(c="chart|chart.xml"),
            "ppt/chart.xml": f"<c:chartSpace {_W}><c:ser><c:val>{repeated(_POINT, 4000)}</c:val></c:ser></c:chartSpace>",
        }
    )


def _slides(text: str) -> bytes:
    """A presentation with many slides of one large layout."""
    count = len(text) // 400
    shape = '<p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="%d"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="1" y="1"/></a:xfrm></p:spPr></p:sp>'
    slide = "<p:sp><p:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></p:txBody></p:sp>"
    ids = "".join(f'<p:sldId r:id="s{number}"/>' for number in range(count))
    parts = {
        "ppt/presentation.xml": f"<p:presentation {_W}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _rels(**{f"s{n}": f"slide|slide{n}.xml" for n in range(count)}),
        "ppt/layout.xml": f"<p:sldLayout {_W}>{repeated(shape, len(text) // 2)}</p:sldLayout>",
    }
    for number in range(count):
        parts[f"ppt/slide{number}.xml"] = f"<p:sld {_W}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
        parts[f"ppt/_rels/slide{number}.xml.rels"] = _rels(l="slideLayout|layout.xml")
    return _zip(parts)


_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def _xlsx(sheet: str = "", shared: str = "", styles: str = "", after: str = "") -> bytes:
    return _zip(
        {
            "xl/workbook.xml": f'<workbook {_S}><sheets><sheet name="S" sheetId="1" r:id="s"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": _rels(
                s="worksheet|sheet.xml", t="sharedStrings|shared.xml", y="styles|styles.xml"
            ),
            "xl/sheet.xml": f'<worksheet {_S}><sheetData><row r="1"><c r="A1"><v>1</v></c><c r="B1" t="inlineStr"><is><t>x</t></is></c></row>{sheet}</sheetData>{after}</worksheet>',
            "xl/shared.xml": f"<sst {_S}>{shared}</sst>",
            "xl/styles.xml": f"<styleSheet {_S}>{styles}</styleSheet>",
        }
    )


_O = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def _odt(body: str = "", styles: str = "") -> bytes:
    return _zip(
        {
            "content.xml": f"<office:document-content {_O}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:text><text:p>Words</text:p>{body}</office:text></office:body></office:document-content>"
        }
    )


def _ods(table: str) -> bytes:
    return _zip(
        {
            "content.xml": f"<office:document-content {_O}><office:body><office:spreadsheet>"
            f'<table:table table:name="S"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>{table}'
            "</table:table></office:spreadsheet></office:body></office:document-content>"
        }
    )


def _epub(chapter: str = "", manifest: str = "", spine: str = "", toc: str = "") -> bytes:
    return _zip(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
            "b.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
            f'<item id="n" href="n.xhtml" properties="nav" media-type="application/xhtml+xml"/>{manifest}</manifest><spine><itemref idref="c"/>{spine}</spine></package>',
            "c.xhtml": f"<html><body><p>Words</p>{chapter}</body></html>",
            "n.xhtml": f'<html xmlns:epub="http://www.idpf.org/2007/ops"><body><nav epub:type="toc"><ol>{toc}</ol></nav></body></html>',
        }
    )


def _notebook(make: Callable[[str], dict[str, Any]]) -> Write:
    return lambda text: json.dumps({"nbformat": 4, "metadata": {}, "cells": [make(text)]})


def _sqlite(kind: str) -> Write:
    def write(text: str) -> bytes:
        count = max(1, len(text) // 40)
        with sqlite3.connect(":memory:") as made:
            if kind == "tables":
                for number in range(min(count, 1000)):
                    made.execute(f"create table t{number} (a)")
            elif kind == "columns":
                made.execute(f"create table t ({', '.join(f'c{n}' for n in range(min(count, 1990)))})")
                made.execute("insert into t (c0) values (1)")
            else:
                made.execute("create table t (a, b)")
                made.executemany("insert into t values (?, ?)", [(n, text[:40]) for n in range(count)])
            made.commit()
            return made.serialize()

    return write


def _pdf(text: str) -> bytes:
    sheet = Sheet()
    sheet.lines(50, 50, ["The harbour opened in 1932."])
    sheet.content.append(text)
    return pdf(sheet)


def _pages(text: str) -> bytes:
    """A PDF of many pages."""
    return pdf(*[Sheet().text(50, 30, f"Chapter {n}").text(50, 400, "words") for n in range(len(text) // 400)])


def _laid_out(content: bytes) -> object:
    """Read a PDF in this process, so that its time counts."""
    import pypdfium2_raw

    from prunus.pages.formats.pdf.layout import html_of
    from prunus.pages.formats.pdf.pdfium import Pdfium
    from prunus.pages.formats.pdf.reader import PdfReader

    read = PdfReader(Pdfium(pypdfium2_raw.__path__[0]), content, 3000, 5_000_000, 600.0)
    pages = [read.page(number) for number in range(read.pages)]
    return html_of(read.metadata(), pages, time.monotonic() + 600, "x")


def _web(page: str) -> object:
    """Clean a page in every format, and prune it."""
    documents = prunus.read(page)
    for format in ("html", "markdown", "text"):
        prunus.clean(page, format)
        options = prunus.Options(max_words=12, tokenizer="approx", scorer="bm25")
        with suppress(prunus.BadBudget):
            prunus.prune(documents, "When did the harbour open?", 200, format, options)
    return documents


def _tree(page: str) -> object:
    """Read what else is read of a cleaned page: its links, places, walls, quotes."""
    tree = clean_tree(page)
    places = xpath.XPaths(page, "")
    last = len(tree) - 1
    found = walls.detect(Page(page, url="http://a.b", media_type="text/html", status=200), tree)
    return (
        links.links_of(tree),
        [places[node] for node in range(0, last, max(1, last // 50))],
        found,
        cite.locate("a b c", tree),
    )


# --- pieces ----------------------------------------------------------------------------------------

_TEX = (
    *(f"\\{name}{{…}}" for name in sorted({*HANDLERS, *latex.DROPPED, *latex.STYLES, *latex.HEADINGS, *latex.CITES, *latex.REFERENCES}) if name.isalpha()),
    *(f"\\begin{{{name}}}…\\end{{{name}}}" for name in sorted({*latex.MATH, *latex.VERBATIM, *latex.TABLES, *latex.QUOTES, *latex.SKIPPED, *latex.LISTS, *latex.FLOATS, *latex.THEOREMS, "document", "abstract", "minipage", "description", "frame", "nosuch"})),
)  # fmt: skip

SIGNS = ("a", "a ", " ", "\n", "\t", ".", ". ", ",", "!", "?", "(", "[", '"', "'", "1", "-", "_", "*", "`", "<", "&")

# fmt: off
FORMATS: dict[str, Format] = {
    "csv": Format(
        (lambda text: text, lambda text: f"a,b\n1,2\n{text}", lambda text: f'"a","b"\n"{text}'),
        (",", '"…"', '""', "\n", "\n\n", ";", "\t", "|", "a,", '"a",', '"a\n', "\r", "'", "a;b\n", "1,2\n", '"a"b,', "sep=;\n", "%d,x\n", " ,", '",\n"'),
    ),
    "json": Format(
        (lambda text: text, lambda text: f"[{text}1]", lambda text: f'{{"a":[{text}1]}}', lambda text: json.dumps([text]), lambda text: json.dumps({text: text})),
        ("[…]", '{"a":…}', '{"a":1}', '"a",', '{"a":1},', "[1],", '{"a":1}\n', '{"k%d":1},', '{"a":[…]},', "1,", "-", "\\u0041", '"', "\\", " ", "\n", '"http://a.b",', "[[1,2],[3,4]],", '{"a":{"b":1}},', "null,"),
    ),
    "xml": Format(
        (lambda text: text, lambda text: f"<root>{text}</root>", lambda text: f"<rss><channel>{text}</channel></rss>", lambda text: "<root a='" + text.translate({60: None, 38: None, 39: None}) + "'/>", lambda text: f"<feed><entry>{text}</entry></feed>"),
        ("<a>…</a>", "<a/>", '<a b="c"/>', '<a b%d="c"/>', "<a%d>x</a%d>", "<!--…-->", "<![CDATA[…]]>", "&amp;", "&nbsp;", "<p>…</p>", "<title>…</title>", "<item><title>…</title></item>", "<item><a>x</a><b>y</b></item>", "<item><a%d>x</a%d></item>", "<link>http://a.b</link>", '<link href="http://a.b"/>', "<description>&lt;p></description>", "<content><div>…</div></content>", "<author><name>…</name></author>", "<?a …?>", "x", "x<b/>", "\n", "&#65;", "<guid>x</guid>", "<entry/>", "<para/>", "<a>x</a><b/>"),
    ),
    "graph": Format(
        (lambda text: f"@prefix a: <http://a.b/> .\n{text}", lambda text: f"@prefix a: <http://a.b/> .\na:b a:c {text} .", lambda text: f"@prefix a: <http://a.b/> .\na:b a:c \"{text}\" .", lambda text: f"@prefix a: <http://a.b/> .\na:b a:c 1 {text} .", lambda text: f"<http://a.b/{text}> a <http://a.b/c> ."),
        ("a:b a:c a:d .\n", "a:b%d a:c%d a:d .\n", "a:b a:c a:b%d .\n", "[…]", "[ a:b …]", "(…)", "(a:b) a:c 1 .\n", "; a:b 1", ", 1", ", a:b%d", ", \"x\"@en", ", \"x\"^^a:b", ", [ a:b _:c ]", "; a:b%d 1", "#", "# x\n", "@prefix a%d: <http://a.b/> .\n", "@base <a/> .\n", "\\u0041", "\\", '"', "'", '"""', '\\"', "<", "<a", "a", "a.", "a:", ".", "-", "%41", "\\-", "1", "1.", "1e", "_:a a:b _:a .\n", "_:a%d a:b _:b%d .\n", "{…}", "a:g {…}\n", ";", ",", " ", "\n", "@en", "^^", "<<", "é", "水"),
    ),
    "graph json": Format(
        (lambda text: f'{{"@context": {{"@vocab": "http://a.b/"}}, "c": [{text}1]}}', lambda text: f'{{"@context": {{{text}"z": "http://a.b/"}}, "z": 1}}', lambda text: f'{{"@graph": [{text}{{"a:b": 1}}]}}', lambda text: f'{{"@context": [{text}{{}}], "a:b": 1}}', lambda text: json.dumps({"a:b": text})),
        ("[…],", '{"a":1},', '{"a":[…]},', '{"@id":"a%d"},', '{"@id":"a","b":"c"},', '{"@list":[…]},', '{"@value":"x"},', '"a",', '"a%d":"b%d",', '"a%d":"a:%d",', '"a%d":{"@id":"b","@context":{"c":"d"}},', '{"@context":{"a":"b"},"a":1},', '{"@type":"T%d"},', '{"@graph":[…]},', '{"@reverse":{"a":…1}},', '{"@set":[…]},', '"http://a.b/%d",', "1,", "null,", '{"@id":"_:a%d"},', '{"a":{"@id":"_:a"}},'),
        lambda text: make_engine("format", "graph").to_html(Page(text, url="x.jsonld")),
    ),
    "graph xml": Format(
        (lambda text: f"<graphml>{text}</graphml>", lambda text: f"<graphml><key id='d' attr.name='n'/><graph>{text}</graph></graphml>", lambda text: f"<graphml><graph><node id='a'>{text}</node></graph></graphml>"),
        ("<node id='a%d'/>", "<node/>", "<edge source='a' target='a'/>", "<edge source='a%d' target='a%d'/>", "<key id='k%d' attr.name='k%d'/>", "<key id='k%d' for='node' attr.name='k%d'><default>x</default></key>", "<data key='d'>x</data>", "<data key='d'>…</data>", "<node id='a%d'><data key='d'>x</data></node>", "<graph>…</graph>", "<node><graph>…</graph></node>", "<hyperedge><endpoint node='a'/></hyperedge>", "<data key='d'><NodeLabel>…</NodeLabel></data>", "x", "<desc>x</desc>", "<edge source='a' target='b'><data key='d'>x</data></edge>"),
        lambda text: make_engine("format", "graph").to_html(Page(text, url="x.graphml")),
    ),
    "markdown": Format(
        (lambda text: text, lambda text: f"Words {text}", lambda text: f"# Title\n\n{text}\n\nWords", lambda text: f"| a | b |\n|---|---|\n| {text} | b |", lambda text: f"---\ntitle: {text}\n---\nWords"),
        ("*", "_", "**…**", "`…`", "``", "[…](a)", "![…](a)", "[", "]", "](", "<", ">", "> ", "- ", "- a\n", "1. a\n", "  - a\n", "# a\n", "#", "|", "| a ", "|-", "\n", "\n\n", "\\", "~~…~~", "$…$", "$$…$$", "[^1]", "[^%d]: x\n\n", "x[^%d]\n\n", "^[…]", "[a%d]: b\n", "[a]: b\n", "[a][b]", ":", "- [ ] a\n", "<a>", "<!--", "<div>\n\n", "&amp;", "&", "http://a.b ", "\t", "```\n", "~~~\n", "a_", "*a ", "*a**", "a\n: b\n", "(", "a\n===\n", "    a\n", "> a\n> - b\n", "{", "\\(", "a | b\n", "\x00", "a\\\n", "a  \n", "a*b_", "***", "<a href='", "[a](<", "[a](b \"", "  ", "a\n", "---\n", "_a_*b*", "%d. a\n"),
    ),
    "notebook": Format(
        (
            _notebook(lambda text: {"cell_type": "markdown", "source": text}),
            _notebook(lambda text: {"cell_type": "markdown", "source": f"# a {text}\n"}),
            _notebook(lambda text: {"cell_type": "heading", "source": text}),
            _notebook(lambda text: {"cell_type": "code", "source": text, "outputs": [{"output_type": "stream", "text": text}]}),
            _notebook(lambda text: {"cell_type": "code", "source": "", "outputs": [{"output_type": "error", "ename": text, "evalue": text}]}),
            _notebook(lambda text: {"cell_type": "code", "source": "", "outputs": [{"data": {"text/html": text}}, {"data": {"text/latex": text}}, {"data": {"text/markdown": text}}]}),
        ),
        ("#", "# ", "# a\n", " ", "\t", "\r", "\r\n", "a\r", "\x1b[", "\x1b[0m", "\x1b[0;", "a", "\n", "attachment:", "](attachment:", "<script>", "<p>…</p>", "$", "-"),
    ),
    "notebook cells": Format(
        (
            lambda text: json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "# x"}] * (len(text) // 40)}),
            lambda text: json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [{"output_type": "stream", "text": "a"}] * (len(text) // 40)}]}),
            lambda text: json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": list(text)}]}),
        ),
        ("x",),
    ),
    "rtf": Format(
        (lambda text: "{\\rtf1 " + text, lambda text: "{\\rtf1 Words\\par " + text + "}", lambda text: "{\\rtf1{\\stylesheet{\\s1 code;}}\\trowd\\cellx100\\intbl " + text + "\\row}"),
        ("\\cell ", "\\~", "\\par ", "\\row ", "{…}", "\\u65 ?", "\\u-10179 ?\\u-8704 ?", "\\'41", "\\b ", "\\b x\\b0 ", "\\trowd", "\\cellx%d0 ", "\\trowd\\cellx%d00\\intbl x\\cell\\row ", "{\\footnote …}", '{\\field{\\*\\fldinst HYPERLINK "http://a"}{\\fldrslt …}}', "{\\shptxt …}", "\\intbl ", "\\tab ", "\\line ", "\\bin1 x", "{\\fonttbl{\\f%d x;}}", "{\\stylesheet{\\s%d …;}}", "\\ls1 x\\par ", "{\\listtext 1.}x\\par ", "{\\pntext …}", "\\s1 x\\par ", "{\\creatim\\yr1\\mo1}", "{\\creatim\\mo1", "\\mo1", "\\clmrg\\cellx%d ", "\\clvmgf\\cellx%d ", "\\clvmrg\\cellx%d ", "x\\cell ", "\\ilvl%d\\ls1 x\\par ", "{\\title …}", "{\\info{\\title x}}", "{\\sp{\\sn wzDescription}{\\sv x}}", "\\outlinelevel1 x\\par ", "{\\*\\x …}", "\\*", "\\_", "\\\\", "\\{", "\\-", "\\", "\n", "\\ansicpg1252 ", "\\plain ", "\\f%d x", "\\pard ", "\\s", "\\x", "\\sect ", "\\deleted ", "\\v ", "\\trhdr ", "{\\sn x", "\\nestcell ", "\\super x", "\\zwj "),
    ),
    "latex": Format(
        (lambda text: text, lambda text: "\\documentclass{article}\\begin{document}Words " + text + "\\end{document}", lambda text: "\\begin{tabular}{ll}a&b\\\\\n" + text + "\\end{tabular}", lambda text: "\\begin{tabular}{ll}a&b\\\\\n\\cline" + text + "\\end{tabular}", lambda text: "\\begin{align}" + text + "\\end{align}", lambda text: "\\begin{table}" + text + "\\end{table}"),
        (*_TEX, "{…}", "$…$", "$$…$$", "%", "%\n", "&", "\\\\", "~", "\\label{", "\\cline", "\\cline{1-2}", "\\cmidrule(", "\\begin{", "\\begin", "\\end{", " ", "[", "]", "\\item[", "\\item ", "\\def\\a%d{x}", "\\def\\a{\\a}", "\\def\\a{x}\\a ", "\\newcommand{\\a}[1]{#1}", "\\newcommand{\\a%d}{x}", "\\newenvironment{e%d}{a}{b}", "\\newtheorem{t%d}{T}", "\\verb|…|", "\\verb", "\\(…\\)", "\\[…\\]", "\\'e", "\\'", "\\iffalse …\\fi", "\n", "\n\n", "\t", "\\x ", "\\x[…]", "\\", "#", "^", "_", "\\hline", "\\multicolumn{2}{l}{x}&", "\\multirow{2}{*}{x}&", "\\multicolumn", "\\hline ", "\\cite{a%d}", "\\cite[…]{a}", "\\ref{a}", "\\footnote{…}", "\\bibitem{a%d} x", "\\bibitem[…]{a}", "\\caption{", "\\caption", "\\section{x}\\label{s%d}", "\\usepackage[", "\\let\\a\\b ", "---", "``", "\\begin{equation}\\label{e%d}\\end{equation}", "\\begin{align}a\\\\b\\label{e%d}\\end{align}", "\\chapter", "\\addlinespace[", "\\noalign{", "\\rowcolor[", "\\specialrule{", "\\author{x}\\title{y}"),
    ),
    "latex bibliography": Format(
        (lambda text: text, lambda text: "@article{a, title = {x}, " + text + "}", lambda text: "@article{a, title = {x}" + text),
        ("@a{k%d,x={…}}", "@a{k,", "@a{k,x={", "@string{a={…}}", "@string{a=", "x = {…},", 'x = "…",', "{", '"', "#", "x # ", "x=x # ", " ", ",", "@", "@a", "@a{", "\\"),
        bib.entries,
    ),
    "eml": Format(
        (
            lambda text: f"From: a@b.c\nTo: d@e.f\nSubject: x\n\nWords {text}",
            lambda text: f"From: a@b.c\nSubject: {text}\nTo: {text}\n\nWords",
            lambda text: f"From: a@b.c\nContent-Type: text/plain; charset=utf-8{text}\n\nWords",
            lambda text: f"From: a@b.c\nContent-Type: text/plain{text}\nContent-Disposition: attachment{text}\n\nWords",
            lambda text: f"From: a@b.c\nContent-Type: multipart/mixed; boundary=b\n\n{text}\n--b--",
            lambda text: f"From: a@b.c\n{text}\n\nWords",
            lambda text: f"From a@b.c x\nFrom: a\n\nWords\n\n{text}",
            lambda text: f"From: a@b.c\nContent-Type: text/html\n\n<p>Words {text}",
            lambda text: f"From: a@b.c\nContent-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n{text}",
            lambda text: f"From: a@b.c\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n{text}",
            lambda text: f"From: a@b.c\nContent-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\n\nbegin 1 a\n{text}",
        ),
        (";;;", ";", "; a=b", "; a*%d=b", "; a%d=b", "; a=\"…\"", "; filename=x", "; filename*%d*=utf-8''%41", ";a", '"', "\\", "=?utf-8?q?x?=", "=?utf-8?b?eA==?= ", "=?", "?=", "--b\n", "--b\n\nx\n", "--b--\n", "--b\nContent-Type: multipart/mixed; boundary=b\n\n", "--b\nContent-Type: message/rfc822\n\nFrom: a\n\n", "--b\nContent-Disposition: attachment; filename=a%d\n\nx\n", "--b\nContent-Type: multipart/alternative; boundary=b%d\n\n", "From a@b.c x\n", "From a@b.c x\nFrom: a\nSubject: s\n\nx\n\n", "\n", "\r\n", "X: y\n", "X%d: y\n", " y\n", "\tx", "<a@b>", "(", "()", ",", "a@b, ", "=41", "=\n", "x\n", "  x\n", "> x\n", "M", "QUJD", "\r", "="),
    ),
    "calendar": Format(
        (lambda text: f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\n{text}\nEND:VEVENT", lambda text: f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x{text}\nEND:VEVENT"),
        ("BEGIN:VEVENT\n", "END:VEVENT\n", "BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\n", "ATTENDEE:x\n", "DTSTART:20260101\n", "DESCRIPTION:\\n\n", "\n ", '"', '";', "\\", "\\n", ":", ";", "x", "\n"),
    ),
    "subtitles": Format(
        (lambda text: f"WEBVTT\n\n00:01.000 --> 00:02.000\nx {text}", lambda text: f"WEBVTT\n\n{text}"),
        ("00:01.000 --> 00:02.000\nx\n\n", "00:%d.000 --> 00:02.000\nx%d\n\n", "<v a>", "<v a>x\n", "<v b%d>x\n", "<b>", "<", "{\\an8}", "{\\", "&amp;", "&", "x\n", "x ", "\n", " "),
    ),
    "text": Format(
        (lambda text: text, lambda text: f"Words\n\n{text}", lambda text: f"Words {text}"),
        ("a", " ", "\n", "\t", "\r", "\r\n", "\n\n", "a  \n", "a   b\n", "    a\n", " \n", "\n \n", "<", "&", "a\n\n", "   ", "\t\n"),
    ),
    "docx": Format(
        (lambda text: _docx(body=text), lambda text: _docx(body=f"<w:p>{text}</w:p>"), lambda text: _docx(body=f"<w:p><w:r>{text}</w:r></w:p>"), lambda text: _docx(body=f"<w:tbl>{text}</w:tbl>")),
        ("<w:p/>", "<w:p><w:r><w:t>…</w:t></w:r></w:p>", "<w:r><w:t>x</w:t></w:r>", "<w:r><w:rPr><w:b/></w:rPr><w:t>x</w:t></w:r>", "<w:t>x</w:t>", "<w:br/>", "<w:tab/>", '<w:fldChar w:fldCharType="begin"/>', '<w:fldChar w:fldCharType="begin"/><w:fldChar w:fldCharType="separate"/>', "<w:instrText>x</w:instrText>", '<w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK "http://a.b"</w:instrText><w:fldChar w:fldCharType="separate"/>', '<w:hyperlink r:id="x">…</w:hyperlink>', '<w:fldSimple w:instr="HYPERLINK http://a.b">…</w:fldSimple>', "<w:tbl><w:tr><w:tc>…</w:tc></w:tr></w:tbl>", "<w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr>", "<w:tc><w:p/></w:tc>", '<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc></w:tr>', '<w:tc><w:tcPr><w:gridSpan w:val="9"/></w:tcPr></w:tc>', "<w:sdt><w:sdtContent>…</w:sdtContent></w:sdt>", "<w:ins>…</w:ins>", "<w:drawing>…</w:drawing>", '<w:drawing><wp:docPr descr="a"/></w:drawing>', "<w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>x</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r>", "<w:drawing><w:txbxContent><w:p><w:r>…</w:r></w:p></w:txbxContent></w:drawing>", "<mc:AlternateContent><mc:Choice>…</mc:Choice></mc:AlternateContent>", "<w:p><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></w:p>", "<m:oMath><m:f><m:num>…</m:num></m:f></m:oMath>", "<w:ruby><w:rubyBase><w:r>…</w:r></w:rubyBase></w:ruby>", '<w:p><w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>', '<w:sym w:char="F0B7"/>', "<w:txbxContent/>", "<w:pict/>"),
    ),
    "docx parts": Format(
        (lambda text: _docx(styles=text, body=text), lambda text: _docx(numbering=text), lambda text: _docx(notes=text)),
        ('<w:style w:type="paragraph" w:styleId="s%d"><w:basedOn w:val="s%d"/></w:style>', '<w:num w:numId="%d"><w:abstractNumId w:val="0"/></w:num>', '<w:footnote w:id="%d"/>', '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="%d"/></w:abstractNum>'),
    ),
    "docx drawn fields": Format(
        (lambda text: f"EQ {text}", lambda text: f"EQ \\f({text})"),
        ("\\f(…,2)", "\\f(", "(…)", "(", ",", ")", "\\s\\up 9(x)", "\\up", "\\b\\lc\\[(…)", "\\o(a,b)", "\\*", '\\* "', "\\* a ", " ", "9", "\\", "a"),
        drawn,
    ),
    "docx crossed": Format((_noted, _numbered_by, _labelled, _charted), ("x",), most=1_024_000),
    "pptx": Format(
        (_pptx, lambda text: _pptx(f"<p:sp><p:txBody>{text}</p:txBody></p:sp>"), lambda text: _pptx(f"<p:sp><p:txBody><a:p>{text}</a:p></p:txBody></p:sp>"), lambda text: _pptx(f"<p:graphicFrame><a:tbl>{text}</a:tbl></p:graphicFrame>")),
        ("<p:sp/>", "<p:sp><p:txBody><a:p><a:r><a:t>…</a:t></a:r></a:p></p:txBody></p:sp>", "<a:p><a:r><a:t>x</a:t></a:r></a:p>", '<a:p><a:pPr lvl="8"><a:buAutoNum type="x"/></a:pPr><a:r><a:t>x</a:t></a:r></a:p>', '<a:p><a:pPr lvl="%d"><a:buChar/></a:pPr><a:r><a:t>x</a:t></a:r></a:p>', "<a:r><a:t>x</a:t></a:r>", "<a:r><a:rPr b='1'/><a:t>x</a:t></a:r>", "<a:br/>", "<p:grpSp>…</p:grpSp>", '<p:graphicFrame><c:chart r:id="c"/></p:graphicFrame>', "<p:graphicFrame>…</p:graphicFrame>", '<p:sp><p:nvSpPr><p:cNvPr descr="x"/></p:nvSpPr><p:spPr><a:xfrm><a:off x="1" y="%d"/></a:xfrm></p:spPr></p:sp>', '<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></p:txBody></p:sp>', "<a:tr><a:tc>…</a:tc></a:tr>", "<a:tr><a:tc/></a:tr>", "<a:tc/>", '<a:tc gridSpan="9"/>', '<a:tc rowSpan="9"/>', '<a:tr><a:tc vMerge="1"/></a:tr>', "<mc:AlternateContent><mc:Choice>…</mc:Choice></mc:AlternateContent>", "<a:p/>", "<p:pic/>", "<p:graphicFrame><a:tbl><a:tr><a:tc>…</a:tc></a:tr></a:tbl></p:graphicFrame>"),
    ),
    "pptx crossed": Format((_slides, lambda text: _pptx('<p:graphicFrame><c:chart r:id="c"/></p:graphicFrame>' * (len(text) // 60))), ("x",), most=1_024_000),
    "xlsx": Format(
        (lambda text: _xlsx(sheet=text), lambda text: _xlsx(sheet=f'<row r="2">{text}</row>'), lambda text: _xlsx(after=text), lambda text: _xlsx(shared=text), lambda text: _xlsx(styles=f"<numFmts>{text}</numFmts><cellXfs>{text}</cellXfs>")),
        ("<row/>", '<row r="%d"/>', "<row><c><v>…</v></c></row>", "<c><v>1</v></c>", '<c t="inlineStr"><is><t>x</t></is></c>', '<c r="B%d"><v>1</v></c>', "<v>1</v>", "<t>x</t>", "<c t='s'><v>0</v></c>", '<row hidden="1"><c><v>1</v></c></row>', '<col min="1" max="16384" hidden="1"/>', '<mergeCell ref="A1:A%d"/>', '<mergeCell ref="A1:B2"/>', '<mergeCell ref="A%d:XFD%d"/>', '<hyperlink ref="A%d" id="x"/>', "<si><t>…</t></si>", "<si><r><t>x</t></r></si>", "<rPh><t>x</t></rPh>", '<numFmt numFmtId="%d" formatCode="0.00"/>', '<xf numFmtId="%d"/>', '<row><c><v>1</v></c></row><row/>', '<row r="%d0"><c r="A%d0"><v>1</v></c></row>', '<c r="A1"><v>1</v></c>', '<autoFilter ref="A1:B%d"/>', "<f>…</f>"),
    ),
    "odt": Format(
        (lambda text: _odt(body=text), lambda text: _odt(body=f"<text:p>{text}</text:p>"), lambda text: _odt(body=f"<table:table>{text}</table:table>"), lambda text: _odt(styles=text)),
        ("<text:p>…</text:p>", "<text:p/>", "<text:h>…</text:h>", '<text:h text:outline-level="%d">x</text:h>', "<text:span>…</text:span>", '<text:s text:c="9"/>', "<text:tab/>", "<text:line-break/>", "<text:note><text:note-body><text:p>…</text:p></text:note-body></text:note>", '<text:a xlink:href="http://a.b">…</text:a>', "<text:list><text:list-item>…</text:list-item></text:list>", "<text:list-item><text:p>x</text:p></text:list-item>", "<text:section>…</text:section>", "<table:table><table:table-row><table:table-cell>…</table:table-cell></table:table-row></table:table>", "<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>", "<table:table-cell/>", "<table:covered-table-cell/>", '<table:table-cell table:number-columns-spanned="9"/>', '<table:table-cell table:number-rows-spanned="9"/>', "<draw:frame>…</draw:frame>", "<draw:frame><draw:text-box>…</draw:text-box></draw:frame>", "<draw:frame><svg:title>x</svg:title></draw:frame>", "<text:ruby><text:ruby-base>…</text:ruby-base></text:ruby>", '<style:style style:name="s%d" style:parent-style-name="s%d"/>', '<text:list-style style:name="s%d"><text:list-level-style-number text:level="1"/></text:list-style>', "<draw:g>…</draw:g>", "<office:annotation>…</office:annotation>", "<text:x>…</text:x>"),
    ),
    "ods": Format(
        (_ods, lambda text: _ods(f"<table:table-row>{text}</table:table-row>"), lambda text: _ods(f"<table:table-row><table:table-cell>{text}</table:table-cell></table:table-row>")),
        ("<table:table-row><table:table-cell><text:p>…</text:p></table:table-cell></table:table-row>", "<table:table-row/>", "<table:table-cell><text:p>x</text:p></table:table-cell>", "<table:table-cell/>", '<table:table-row table:number-rows-repeated="2"><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>', '<table:table-cell table:number-columns-spanned="3" table:number-rows-spanned="3"><text:p>x</text:p></table:table-cell>', "<table:covered-table-cell/>", '<table:table-column table:visibility="collapse"/>', '<table:table-row table:visibility="collapse"/>', "<text:p>…</text:p>", "<text:span>…</text:span>", "<text:s/>", "<table:table-row-group>…</table:table-row-group>", "<table:table>…</table:table>", "<office:annotation>…</office:annotation>"),
    ),
    "epub": Format(
        (lambda text: _epub(chapter=text), lambda text: _epub(manifest=text), lambda text: _epub(spine=text), lambda text: _epub(toc=text)),
        ("<p>…</p>", "<a/>", "<a href='c.xhtml#%d'>…</a>", "<a href='#%d'>x</a>", "<br/>", "<div id='%d'/>", "<body>", "<body>…</body>", "<", "<a ", "</body", '<item id="i%d" href="i%d" media-type="a/b"/>', '<itemref idref="c"/>', '<itemref idref="c%d"/>', "<li><a href='c.xhtml'>…</a></li>", "<ol><li>…</li></ol>", "<li/>", "x", " ", "/>", "<a/b"),
    ),
    "sqlite": Format((_sqlite("tables"), _sqlite("columns"), _sqlite("rows")), ("words and more words",)),
    "pdf": Format(
        (_pdf,),
        ("BT /F1 10 Tf 50 %d Td (word) Tj ET\n", "BT /F1 10 Tf %d 50 Td (word) Tj ET\n", "BT /F2 8 Tf 50 50 Td (word) Tj ET\n", "0 %d m 600 %d l S\n", "%d 0 m %d 800 l S\n", "0 %d m 600 %d l S %d 0 m %d 800 l S\n", "%d %d 10 10 re f\n", "q …Q\n", "BT …ET\n", "(x) Tj ", "BT /F1 9 Tf 50 700 Td (______________) Tj ET ", "/Span <</MCID %d>> BDC EMC "),
        _laid_out, 128_000,
    ),
    "pdf pages": Format((_pages,), ("x",), _laid_out),
    "html": Format(
        (lambda text: text, lambda text: f"<p>Words {text}", lambda text: f"<table><tr><td>Words {text}"),
        tuple("<p>…</p>|<div>…</div>|<span>…</span>|<b>…</b>|<a href=x>…</a>|<ul><li>…</li></ul>|<li>x|<table><tr><td>…</td></tr></table>|<tr><td>x|<td>x|<th>x|<td colspan=9>x|<td rowspan=9>x|<td rowspan=0>x|<tr><td rowspan=9>x<td>y|<dl><dt>…</dt></dl>|<dd>x|<pre>…</pre>|<code>…</code>|<h1>…</h1>|<h2>x|<br>|<hr>|<img alt=x>|<img>|<select><option>…</option></select>|<option>x|<svg>…</svg>|<math><mi>…</mi></math>|<details><summary>…</summary></details>|<blockquote>…</blockquote>|<figure><figcaption>…</figcaption></figure>|<section><h3>…</h3></section>|<ruby>漢<rt>…</rt></ruby>|<form><label>…</label></form>|<input value=x>|<textarea>…</textarea>|<iframe>…</iframe>|<noscript>…</noscript>|<template>…</template>|<script>…</script>|<style>…</style>|<!--…-->|<![CDATA[…]]>|&amp;|&|&#65;|<|>|</p>|</x>|<x-%d>|<i id=%d>x|<p style='color:red;background:red'>x|<p style='display:none'>x|<p hidden>x|<p aria-hidden=true>x|<span aria-hidden=true>…</span>|<caption>x|<thead><tr><th>…</th></tr></thead>|<button>…</button>|<nav>…</nav>|x|x |x. |。|水|!|\\|`|*|_|[|](|![|\n|\t| |\u00a0|\u200b|1. |- |# ||a|http://a.b |<base href=x>|<meta charset=x>|<title>…</title>|<frameset>|<object>…</object>|<video>…</video>|<p>x<table>…</table>|<font color=%d>x|<nobr>x|<marquee>…</marquee>|<fieldset><legend>…</legend></fieldset>|<ol start=%d><li>x</ol>|<li value=%d>x|<td headers=a>x|<p id=a%d>x|<a name=x>|<sup>…</sup>|<sub>x</sub>|<q>…</q>|<del>…</del>|<ins>x</ins>|<abbr title=x>…</abbr>|<time>x</time>|<wbr>|<area>|<embed>|<link>|<address>…</address>|<dialog>…</dialog>|<menu>…</menu>|<audio>…</audio>|<canvas>…</canvas>|<data value=x>…</data>|Dr. |e.g. |(…)|“…”|1.2.|?!|...".split("|")),
        _web, 64_000,
    ),
    "html places": Format(
        (lambda text: f"<p>Words {text}",),
        ("<p>…</p>", "<div>…</div>", "<a href=x%d>…</a>", "<a href=x>x</a> ", "<a href=//a.b/../…>x</a>", "<li>x", "<td>x", "<button>…</button>", "<h1>x</h1>", "<title>x</title>", "<base href=%d>", "a b ", "<b>…</b>", "<nav><a href=a%d>x</a></nav>", "<i id=%d>x", "<noscript>…</noscript>", "<form>…</form>"),
        _tree, 64_000,
    ),
    "sentences": Format(
        (lambda text: text, lambda text: f"Words {text}. More.", lambda text: f"“{text}”"),
        (*SIGNS, "Dr. ", "e.g. ", "U.S. ", "A. ", "1. ", "1.2.", "a.b", "...", "…", "?! ", "a. ", "No. 1 ", "p.m. ", "(…)", "[…]", "“…”", '"…"', "'…'", "「…」", "。", "水。", "a) ", "• a\n", "- a\n", "\n\n", "A: b\n", "[1] ", ".[1]", "x.”", "St. "),
        lambda text: (sentences.sentence_spans(text), sentences.sentence_spans(text, wrapped=True)),
    ),
    "words": Format(
        (lambda text: text,),
        (*SIGNS, "1,", "1.", "1.2,3", "水", "ก", "a水", "é", "e\u0301", "\u0301", "\ufb01", "\u200b", "\U0001f600", "a'b-"),
        lambda text: (bm25.tokens(text), words.count_words(text), words.normalise(text), words.guess_language(text)),
    ),
    "sniff": Format(
        (lambda text: text, lambda text: text.encode("utf-8", "replace"), lambda text: f"<?xml version='1.0'?>{text}<a/>", lambda text: f"[{text}", lambda text: f"%{text}\n\\section"),
        (*SIGNS, "<!--…-->", "<?…?>", "<!doctype …>", "<!doctype [", "{\"a\":", "[1,", "% a\n", "\\a", "From: a\n", "X: y\n", "&a;", "&a", "PK\x03\x04", "PK\x01\x02"),
        lambda text: _sniff.sniff(text, "x", ""),
    ),
    "charset": Format(
        (lambda text: text.encode("utf-8", "replace"), lambda text: text.encode("latin-1", "replace"), lambda text: text.encode("utf-16"), lambda text: b"<meta charset=" + text.encode()),
        ("a", "é", "水", "\x80", "\xe9", "\xff\xfe", "\xc3", "\x00", "<meta charset=", "\x1b$B"),
        lambda content: (parse.is_binary(content), parse.decode(content)),
    ),
    "address": Format(
        (lambda text: f"http://a.{text}b/", lambda text: f"http://a.b/{text}", lambda text: f"http://a.b/?{text}"),
        ("a.", "../", "./", "%41", "%", "@", ":", "[", "?", "#", "a=b&", "utm_a=b&", "xn--", "é.", "1.", "0x", "\\", " ", "\t", "//", "-", "_"),
        lambda text: (links.canonical(text), links.page_key(text), parse_url(text)),
    ),
    "robots": Format(
        (lambda text: text, lambda text: f"User-agent: *\n{text}", lambda text: f"User-agent: *\nDisallow: /{text}"),
        ("User-agent: a%d\n", "User-agent: *\n", "Disallow: /a%d\n", "Disallow: /*a*b\n", "*", "*a", "$", "%41", "\n", "\r", "#", ":", "Allow: /\n", "Crawl-delay: 1\n", " "),
        lambda text: robots.read_policy(text, "prunus").allows("/" + "a" * 1000),
    ),
    "json reply": Format(
        (lambda text: text, lambda text: f"```json\n{text}\n```"),
        ("{", '{"a":', "[", '"', "\\", "}", "{}", " ", "```", '{"a":"b"}'),
        lambda text: read_json(text, dict),
    ),
    "question": Format(
        (lambda text: text, lambda text: f"What is {text} and where is it?"),
        (*SIGNS, "and who ", "compare ", "difference between a and ", "write a ", "best ", "best ways ", '"…"', "“", "2024 ", "Ab ", "? ", "it ", "水", "please ", "1+", "hi ", "a. "),
        lambda text: rules.keywords(text, datetime(2026, 1, 1, tzinfo=UTC)) if len(text) < 4100 else None,
    ),
    "claims": Format(
        (lambda text: text, lambda text: f"The harbour opened in 1932 [1]. {text} It is large [2]."),
        (*SIGNS, "[1]", "[1] ", "[…]", "“…”", "```\n", "| a ", "**…**", "# a\n", "- a\n", "A b c. ", "1. ", "1,234 ", " .", " ,", ">", "1,"),
        check.split_claims,
    ),
    "snippet": Format(
        (lambda text: text,),
        (*SIGNS, "<b>…</b>", "<", "</", "<a", "&amp;", "&lt;", "&", "\ud800"),
        lambda text: (_wire.plain_text(text, "snippet"), _wire.web_address(text)),
    ),
}
# fmt: on
