"""Small hostile documents: each asks for far more memory or time than it is long. The largest has half a MiB."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.pages.formats.documents import packed
from tests.pages.formats.pdfs import assembled

_OFFICE = "http://schemas.openxmlformats.org"
_KIND = f"{_OFFICE}/officeDocument/2006/relationships"
_SPACES = (
    f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main" xmlns:r="{_KIND}" xmlns:a="{_OFFICE}/drawingml/2006/main" '
    f'xmlns:c="{_OFFICE}/drawingml/2006/chart" xmlns:m="{_OFFICE}/officeDocument/2006/math" '
    f'xmlns:p="{_OFFICE}/presentationml/2006/main"'
)
_ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "style")
)
LONG: Final = "a" * 60_000
"""A text that a document holds once and shows often."""


# --- Word and PowerPoint -----------------------------------------------------------------------------


def word(body: str, links: str = "", **parts: str) -> bytes:
    """Return a Word document. ``links`` holds further relations, ``parts`` related parts by kind."""
    links += "".join(f'<Relationship Id="{kind}" Type="{_KIND}/{kind}" Target="{kind}.xml"/>' for kind in parts)
    return packed(
        {
            "word/document.xml": f"<w:document {_SPACES}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": f"<Relationships>{links}</Relationships>",
            **{f"word/{kind}.xml": part.replace("SPACES", _SPACES) for kind, part in parts.items()},
        }
    )


def _chart(series: int, points: int) -> str:
    point = "".join(f'<c:pt idx="{number}"><c:v>1</c:v></c:pt>' for number in range(points))
    return f"<c:chartSpace SPACES><c:ser><c:val>{point}</c:val></c:ser>" + "<c:ser/>" * series + "</c:chartSpace>"


def word_chart() -> bytes:
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart"/></w:drawing></w:r></w:p>'
    return word(drawing, chart=_chart(20_000, 5_000))


def word_charts() -> bytes:
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart"/></w:drawing></w:r></w:p>'
    return word(drawing * 5_000, chart=_chart(100, 100))


def word_paragraphs() -> bytes:
    return word(_mixed("<w:p/>", 5_900))  # just under the limit of marks


def word_attributes() -> bytes:
    return word(_run('<w:p w:a="" w:b=""/>', 60))


def word_cells() -> bytes:
    return word("<w:tbl><w:tr>" + _mixed("<w:tc/>", 5_000) + "</w:tr></w:tbl>")


def word_words() -> bytes:
    return word(_run("<w:p><w:r><w:t>a</w:t></w:r></w:p>", 60))


def word_links() -> bytes:
    link = f'<Relationship Id="web" Type="{_KIND}/hyperlink" Target="https://{LONG}" TargetMode="External"/>'
    return word('<w:p><w:hyperlink r:id="web"><w:r><w:t>a</w:t></w:r></w:hyperlink></w:p>' * 50_000, link)


def word_labels() -> bytes:
    level = f'<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="{LONG}"/></w:lvl>'
    numbering = (
        f'<w:numbering SPACES><w:abstractNum w:abstractNumId="1">{level}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )
    props = '<w:pPr><w:outlineLvl w:val="0"/><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    return word(f"<w:p>{props}<w:r><w:t>a</w:t></w:r></w:p>" * 50_000, numbering=numbering)


def word_fences() -> bytes:
    separator = f'<m:dPr><m:sepChr m:val="{LONG}"/></m:dPr>'
    return word("<w:p><m:oMath><m:d>" + separator + "<m:e/>" * 50_000 + "</m:d></m:oMath></w:p>")


def _slides(slide: str, count: int, links: str = "") -> bytes:
    listed = '<p:sldId r:id="one"/>' * count
    return packed(
        {
            "ppt/presentation.xml": f"<p:presentation {_SPACES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": "<Relationships>"
            f'<Relationship Id="one" Type="{_KIND}/slide" Target="slides/slide1.xml"/></Relationships>',
            "ppt/slides/slide1.xml": f"<p:sld {_SPACES}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": f"<Relationships>{links}</Relationships>",
        }
    )


def slides_links() -> bytes:
    link = f'<Relationship Id="web" Type="{_KIND}/hyperlink" Target="https://{LONG}" TargetMode="External"/>'
    run = '<a:r><a:rPr><a:hlinkClick r:id="web"/></a:rPr><a:t>a</a:t></a:r>'
    return _slides(f"<p:sp><p:txBody><a:p>{run * 50_000}</a:p></p:txBody></p:sp>", 1, link)


def slides_repeated() -> bytes:
    paragraph = "<a:p><a:r><a:t>a</a:t></a:r></a:p>"
    return _slides(f"<p:sp><p:txBody>{paragraph * 25_000}</p:txBody></p:sp>", 5_000)


# --- OpenDocument --------------------------------------------------------------------------------------


def open_document(kind: str, body: str) -> bytes:
    """Return an OpenDocument file of a kind (``text``, ``spreadsheet``)."""
    inner = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr(ZipInfo("mimetype"), f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", f"<office:document-content {_ODF}>{inner}</office:document-content>")
    return buffer.getvalue()


def text_tables() -> bytes:
    inner = "<text:p>a</text:p>"
    for _ in range(5):
        inner = (
            '<table:table><table:table-row table:number-rows-repeated="50">'
            f'<table:table-cell table:number-columns-repeated="50">{inner}</table:table-cell></table:table-row></table:table>'
        )
    return open_document("text", inner)


def text_empty_tables() -> bytes:
    inner = ""
    for _ in range(4):
        inner = (
            '<table:table><table:table-row table:number-rows-repeated="50">'
            f'<table:table-cell table:number-columns-repeated="50">{inner}</table:table-cell></table:table-row></table:table>'
        )
    return open_document("text", inner)


def text_spaces() -> bytes:
    return open_document("text", "<text:p>a" + _run('<text:s text:c="200"/>', 60) + "b</text:p>")


def _sheet(rows: str, columns: str = "") -> str:
    return f'<table:table table:name="S">{columns}{rows}</table:table>'


def _row(cells: str, times: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{times}">{cells}</table:table-row>'


def _cell(text: str, times: int = 1, attrs: str = "") -> str:
    return (
        f'<table:table-cell table:number-columns-repeated="{times}"{attrs}><text:p>{text}</text:p></table:table-cell>'
    )


def sheet_hidden_columns() -> bytes:
    hidden = '<table:table-column table:visibility="collapse" table:number-columns-repeated="16384"/>'
    return open_document("spreadsheet", _sheet(_row(_cell("a", 16_384), 1_048_576) * 20_000, hidden))


def sheet_empty_places() -> bytes:
    corner = _row(_cell("a", 1000)) + _row(_cell("a"), 999) + _row("<table:table-cell/>", 1)
    return open_document("spreadsheet", _sheet(corner * 150))


def sheet_wide_areas() -> bytes:
    corner = _row(_cell("a", 16_000)) + _row(_cell("a"), 200) + _row("<table:table-cell/>", 1)
    return open_document("spreadsheet", _sheet(corner * 18))


def sheet_small_areas() -> bytes:
    corner = _row(_cell("a", 1000)) + _row(_cell("a"), 1000) + _row("<table:table-cell/>", 1)
    return open_document("spreadsheet", _sheet(corner + _row(_cell("a", 2)) + _row("<table:table-cell/>")) * 70_000)


def sheet_sheets() -> bytes:
    return open_document("spreadsheet", _mixed("<table:table/>", 2_000))


def sheet_spaces() -> bytes:
    return open_document("spreadsheet", _sheet(_row(_cell(_run('<text:s text:c="1000"/>', 60)))))


def sheet_links() -> bytes:
    link = f'<text:a xmlns:x="http://www.w3.org/1999/xlink" x:href="https://{LONG}">a</text:a>'
    return open_document("spreadsheet", _sheet(_row(_cell(link, 500), 500)))


def sheet_merges() -> bytes:
    merged = ' table:number-rows-spanned="2" table:number-columns-spanned="2"'
    pair = _row(_cell("a", 1, merged) + _cell("b")) + _row("<table:table-cell/>", 3)
    return open_document("spreadsheet", _sheet(pair * 40_000))


def _workbook(sheet: str, listed: int = 1, sheet_links: str = "", **parts: str) -> bytes:
    main = f'xmlns="{_OFFICE}/spreadsheetml/2006/main" xmlns:r="{_KIND}"'
    links = "".join(f'<Relationship Id="{kind}" Type="{_KIND}/{kind}" Target="{kind}.xml"/>' for kind in parts)
    return packed(
        {
            "xl/workbook.xml": f"<workbook {main}><sheets>"
            + '<sheet name="S" r:id="one"/>' * listed
            + "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": "<Relationships>"
            f'<Relationship Id="one" Type="{_KIND}/worksheet" Target="sheet1.xml"/>{links}</Relationships>',
            "xl/sheet1.xml": f"<worksheet {main}>{sheet}</worksheet>",
            "xl/_rels/sheet1.xml.rels": f"<Relationships>{sheet_links}</Relationships>",
            **{f"xl/{kind}.xml": part for kind, part in parts.items()},
        }
    )


def workbook_shared_text() -> bytes:
    rows = "<row>" + '<c t="s"><v>0</v></c>' * 1000 + "</row>"
    texts = f"<sst><si><t>{LONG[:30_000]}</t></si></sst>"
    return _workbook(f"<sheetData>{rows * 300}</sheetData>", sharedStrings=texts)


def workbook_hidden_rows() -> bytes:
    return _workbook("<sheetData>" + _run('<row hidden="1"/>', 200) + "</sheetData>")


def workbook_sheets() -> bytes:
    return _workbook("<sheetData><row><c><v>1</v></c></row></sheetData>", 300_000)


def workbook_filters() -> bytes:
    cells = "<sheetData><row><c r='A1'><v>1</v></c><c r='XFD1'><v>1</v></c></row></sheetData>"
    return _workbook(cells + '<autoFilter ref="A1:XFD1"/>' * 500, 500)


def workbook_merges() -> bytes:
    merges = "".join(f'<mergeCell ref="A{row}:B{row}"/>' for row in range(1, 50_001))
    rows = "".join(f'<row r="{row}"><c r="A{row}"><v>1</v></c></row>' for row in range(1, 50_001, 2))
    return _workbook(f"<sheetData>{rows}</sheetData><mergeCells>{merges}</mergeCells>", 2)


def workbook_dates() -> bytes:
    code = "m " * 150
    formats = f'<numFmts><numFmt numFmtId="99" formatCode="{code}"/></numFmts><cellXfs><xf numFmtId="99"/></cellXfs>'
    rows = "<row>" + "<c><v>1</v></c>" * 1000 + "</row>"
    return _workbook(f"<sheetData>{rows * 300}</sheetData>", styles=f"<styleSheet>{formats}</styleSheet>")


def workbook_merged_sheets() -> bytes:
    cells = '<sheetData><row><c r="A1"><v>1</v></c></row><row r="60"><c r="XFD60"><v>1</v></c></row></sheetData>'
    return _workbook(f'{cells}<mergeCells><mergeCell ref="A1:XFD60"/></mergeCells>', 2_000)


def workbook_links() -> bytes:
    link = f'<Relationship Id="web" Type="{_KIND}/hyperlink" Target="https://{LONG}" TargetMode="External"/>'
    cells = "".join(f'<row r="{row}"><c r="A{row}"><v>1</v></c></row>' for row in range(1, 40_001))
    links = "".join(f'<hyperlink ref="A{row}" r:id="web"/>' for row in range(1, 40_001))
    return _workbook(f"<sheetData>{cells}</sheetData><hyperlinks>{links}</hyperlinks>", 1, link)


def workbook_tables() -> bytes:
    link = f'<Relationship Id="t" Type="{_KIND}/table" Target="table.xml"/>'
    tables = "<tables>" + _run('<table ref="A1:B2"/>', 200) + "</tables>"
    return _workbook("<sheetData><row><c><v>1</v></c></row></sheetData>", 1, link, table=tables)


# --- databases -------------------------------------------------------------------------------------------


def _database(*statements: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return path.read_bytes()


def database_functions() -> bytes:
    columns = ", ".join(f"b{number} AS (printf('%.*c', 000000002, a))" for number in range(10))
    content = _database(f"CREATE TABLE t (a TEXT, {columns})", "INSERT INTO t (a) VALUES ('x')")
    return content.replace(b"000000002", b"200000000")  # inserting a row computes the columns


def database_doubling() -> bytes:
    columns = ", ".join(f"b{number} AS (b{number - 1} || b{number - 1})" for number in range(1, 28))
    return _database(f"CREATE TABLE t (b0 TEXT, {columns})", "INSERT INTO t (b0) VALUES ('xx')")


def database_blobs() -> bytes:
    columns = ", ".join(f"b{number} AS (zeroblob(000000001))" for number in range(20))
    content = _database(f"CREATE TABLE t (a TEXT, {columns})", "INSERT INTO t (a) VALUES ('x')")
    return content.replace(b"000000001", b"100000000")


# --- texts -----------------------------------------------------------------------------------------------


def markdown_columns() -> bytes:
    return (b"|a" * 20_000 + b"|\n" + b"|-" * 20_000 + b"|\n" + b"|b|\n" * 20_000).replace(b"\r", b"")


def markdown_references() -> bytes:
    return f"[a]: https://{LONG}\n\n{'[a] ' * 50_000}".encode()


def notebook_references() -> bytes:
    text = f"[a]: https://{LONG}\\n\\n{'[a] ' * 1_000}"
    cell = f'{{"cell_type": "markdown", "source": "{text}"}}'
    return f'{{"nbformat": 4, "cells": [{",".join([cell] * 8)}]}}'.encode()


def latex_macros() -> bytes:
    chain = "".join(rf"\newcommand\{chr(98 + n)}{{{(chr(92) + chr(97 + n)) * 20}}}" for n in range(20))
    return rf"\documentclass{{article}}\newcommand\a{{{'a' * 100}}}{chain}\begin{{document}}\u\end{{document}}".encode()


def latex_theorems() -> bytes:
    theorem = r"\begin{t}a\end{t}" * 20_000
    return rf"\documentclass{{article}}\newtheorem{{t}}{{{LONG}}}\begin{{document}}{theorem}\end{{document}}".encode()


def latex_environments() -> bytes:
    use = r"\begin{e}\end{e}" * 20_000
    return (
        rf"\documentclass{{article}}\newenvironment{{e}}{{}}{{{LONG}}}\begin{{document}}{use}\end{{document}}".encode()
    )


def latex_columns() -> bytes:
    cell = r"\multicolumn{1000}{c}{\multirow{2}{*}{a}}&" * 12_000
    return rf"\documentclass{{article}}\begin{{document}}\begin{{tabular}}{{l}}{cell}\end{{tabular}}\end{{document}}".encode()


def latex_labels() -> bytes:
    item = rf"\bibitem[{LONG}]{{k}} a"
    body = rf"\begin{{thebibliography}}{{9}}{item}\end{{thebibliography}}" + r"\cite{k}" * 20_000
    return rf"\documentclass{{article}}\begin{{document}}{body}\end{{document}}".encode()


def rich_text_links() -> bytes:
    runs = rb"{\b a}{\i a}" * 20_000
    return rb'{\rtf1{\field{\*\fldinst HYPERLINK "https://' + LONG.encode() + rb'"}{\fldrslt ' + runs + rb"}}}"


def rich_text_cells() -> bytes:
    row = rb"\trowd" + b"".join(rb"\cellx%d" % (at * 40) for at in range(2_000)) + rb"\intbl a\cell" * 2_000 + rb"\row"
    return rb"{\rtf1 " + row * 12 + rb"\pard a\par}"


def mail_parts() -> bytes:
    inner = b"From: a\nSubject: b\nContent-Type: text/plain\n\nwords\n"
    for level in range(90):
        mark = b"b%d" % level
        part = b"--" + mark + b"\nContent-Type: text/plain\n\na\n"
        inner = (
            b"From: a\nTo: b\nSubject: c\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=" + mark
            + b"\n\n" + part * 50 + b"--" + mark + b"\nContent-Type: message/rfc822\n\n" + inner + b"\n--" + mark + b"--\n"
        )  # fmt: skip
    return inner


def mail_empty_parts() -> bytes:
    head = b"From: a\nTo: b\nSubject: c\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\nwords\n"
    return head + b"--b\n\n" * 80_000


def json_lists() -> bytes:
    return b'{"a": [' + b"[]," * 160_000 + b"[]]}"


def json_wide() -> bytes:
    first = "{" + ",".join(f'"k{number}":1' for number in range(1000)) + "}"
    rows = ",".join(f'{{"k{number}":1}}' for number in range(20_000))
    return f"[{first},{rows}]".encode()


def xml_nested() -> bytes:
    return b"<?xml version='1.0'?><a>" + (b"<b>" * 100 + b"x" + b"</b>" * 100) * 500 + b"</a>"


def xml_columns() -> bytes:
    row = "<r>" + "".join(f"<c{number}>1</c{number}>" for number in range(480)) + "</r>"
    return f"<?xml version='1.0'?><a>{row * 60}</a>".encode()


def text_paragraphs() -> bytes:
    return b"ab\n\n" * 120_000


def csv_wide() -> bytes:
    return b"a," * 200_000 + b"\n" + b"a\n" * 20_000


def html_spans() -> bytes:
    return b"<table>" + (b"<tr>" + b"<td colspan=1000 rowspan=65534>a" * 20) * 500 + b"</table>"


def html_row_spans() -> bytes:
    return b"<table>" + b"<tr><td rowspan=0>a" * 10_000 + b"</table>"


def html_numbers() -> bytes:
    return b"<ol start=999999999>" + b"<li value=-999999999>a" * 20_000 + b"</ol>"


# --- books and PDF -------------------------------------------------------------------------------------


def book_chapters() -> bytes:
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body>" + "<p>a</p>" * 120_000 + "</body></html>"
    names = [f"{number:010b}".translate({48: "a", 49: "A"}) + ".xhtml" for number in range(1000)]
    items = "".join(
        f'<item id="i{at}" href="{name}" media-type="application/xhtml+xml"/>' for at, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="i{at}"/>' for at in range(1000))
    return packed(
        {
            "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
            "p.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
            names[0]: chapter,
        }
    )


def pdf_forms() -> bytes:
    """Forms that show each other ten times: 10,000 times the same words."""
    count = 5
    resources = "/Resources << /Font << /F1 4 0 R >> /XObject << /X {} 0 R >> >>"
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] {resources.format(6)} /Contents 5 0 R >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    streams: dict[int, bytes] = {}
    shown = b"".join(b"1 0 0 1 0.1 0.07 cm /X Do " for _ in range(10))
    for level in range(count):
        last = level == count - 1
        content = b"BT /F1 8 Tf 5 700 Td " + b"(a b c d e) Tj 12 0 Td " * 10 + b"ET" if last else shown
        packed_content = zlib.compress(content, 9)
        streams[5 + level] = packed_content
        form = "" if level == 0 else f"/Type /XObject /Subtype /Form /BBox [0 0 600 800] {resources.format(6 + level)} "
        bodies.append(f"<< {form}/Filter /FlateDecode /Length {len(packed_content)} >>")
    return assembled(bodies, streams)


def graph_prefixes() -> bytes:
    """A prefix of 100 KB under 100,000 names."""
    return f"@prefix p: <http://a.org/{'x' * 100_000}> .\n{'p:a p:b p:c . ' * 30_000}".encode()


def graph_labels() -> bytes:
    """A node with a long name that 90,000 statements name."""
    values = ",:b" * 90_000
    return f'@prefix : <http://a.org/> .\n:b :name "{"long " * 20_000}" .\n:a :c :b{values} .\n'.encode()


def graph_nodes() -> bytes:
    """Many nodes without address that name each other in circles."""
    return "".join(f"_:a{n} <b:c> _:b{n} . _:b{n} <b:c> _:a{n} .\n" for n in range(12_000)).encode()


def graph_defaults() -> bytes:
    """Fields with a default for many nodes: 4,000,000 statements."""
    keys = "".join(f"<key id='k{n}' for='node' attr.name='k{n}'><default>x</default></key>" for n in range(2_000))
    nodes = "<node id='a'/>" * 2_000
    return f"<graphml>{keys}<graph>{nodes}</graph></graphml>".encode()


def graph_contexts() -> bytes:
    """A large context under which each object has its own."""
    terms = {f"t{n}": f"http://a.org/{n}" for n in range(4_000)}
    return json.dumps(
        {"@context": terms, "@graph": [{"@context": {"x": str(n)}, "x": 1} for n in range(9_000)]}
    ).encode()


def _mixed(piece: str, count: int) -> str:
    """Return 500 * ``count`` pieces with random words between them, which keep the ratio of sizes under its limit."""
    chance = Random(7)
    return "".join(piece * 500 + f"<x{chance.getrandbits(32):x}/>" for _ in range(count))


def _run(piece: str, mib: int) -> str:
    """Return a piece repeated over so many MiB, which compress to a few hundred KiB."""
    return piece * ((mib << 20) // len(piece))


_MAKERS: tuple[tuple[str, tuple[Callable[[], bytes], ...]], ...] = (
    ("docx", (word_chart, word_charts, word_paragraphs, word_attributes, word_cells, word_words, word_links, word_labels, word_fences)),
    ("pptx", (slides_links, slides_repeated)),
    ("odt", (text_tables, text_empty_tables, text_spaces)),
    (
        "ods",
        (
            sheet_hidden_columns, sheet_empty_places, sheet_wide_areas, sheet_small_areas, sheet_sheets, sheet_spaces,
            sheet_links, sheet_merges,
        ),
    ),
    (
        "xlsx",
        (
            workbook_shared_text, workbook_hidden_rows, workbook_sheets, workbook_filters, workbook_merges, workbook_dates,
            workbook_merged_sheets, workbook_links, workbook_tables,
        ),
    ),
    ("sqlite", (database_functions, database_doubling, database_blobs)),
    ("md", (markdown_columns, markdown_references)),
    ("ipynb", (notebook_references,)),
    ("tex", (latex_macros, latex_theorems, latex_environments, latex_columns, latex_labels)),
    ("rtf", (rich_text_links, rich_text_cells)),
    ("eml", (mail_parts, mail_empty_parts)),
    ("json", (json_lists, json_wide)),
    ("ttl", (graph_prefixes, graph_labels, graph_nodes)),
    ("graphml", (graph_defaults,)),
    ("jsonld", (graph_contexts,)),
    ("xml", (xml_nested, xml_columns)),
    ("txt", (text_paragraphs,)),
    ("csv", (csv_wide,)),
    ("html", (html_spans, html_row_spans, html_numbers)),
    ("epub", (book_chapters,)),
    ("pdf", (pdf_forms,)),
)  # fmt: skip

HOSTILE: Final = {
    f"{maker.__name__.replace('_', '-')}.{suffix}": maker for suffix, makers in _MAKERS for maker in makers
}
"""Makers of the documents, by file name."""
