"""Mutated documents of every format that Prunus reads, for the long run of the fuzzer.

Document ``number`` of a seed is always the same, so that a run can stop, go on, and name a document that fails. Half of
the documents are HTML, made by :mod:`tests.fuzz`. A mutation of a packed document changes the XML of one of its parts;
a mutation of another document changes its tokens and bytes.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from tests import fuzz
from tests.pages.formats import pdfs, test_docx, test_epub, test_ods, test_odt, test_pptx, test_xlsx
from tests.pages.formats.documents import unpacked

import prunus
from prunus.core.types import OutputFormat
from prunus.pages.write.whole import render_tree

NUMBERS: Final = (
    *("0", "1", "-1", "2", "7", "65535", "1048576", "4294967296", "1e9", "NaN", "0.5", "-0", "true", "", "x", "\u00b2"),
    "9" * 5_000,
)
"""Values that a mutation writes in the place of another."""

WEIGHTS: Final[Mapping[str, int]] = {
    "html": 80,
    "docx": 12,
    "odt": 12,
    "xlsx": 10,
    "ods": 10,
    "pptx": 8,
    "epub": 6,
    "fodt": 4,
    "rtf": 12,
    "tex": 12,
    "md": 12,
    "eml": 8,
    "ipynb": 6,
    "json": 5,
    "xml": 5,
    "ttl": 6,
    "jsonld": 5,
    "graphml": 3,
    "csv": 5,
    "txt": 4,
    "ics": 3,
    "vtt": 3,
    "db": 2,
    "pdf": 1,
}
"""Shares of the formats, by suffix. A PDF file and a database take longer than the others."""

_DOCX: Final = (
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>'
    '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:rPr><w:b/></w:rPr>'
    "<w:t>The harbour opened in 1932.</w:t><w:tab/><w:br/></w:r>"
    '<w:hyperlink r:id="web"><w:r><w:t>port</w:t></w:r></w:hyperlink><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    '<w:tbl><w:tblPr><w:tblLook w:firstRow="1"/></w:tblPr><w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc><w:tcPr>'
    '<w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>Zone</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:tcPr>'
    '<w:vMerge w:val="restart"/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>2</w:t></w:r>'
    "</w:p></w:tc></w:tr></w:tbl><w:p><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r>"
    "</m:den></m:f></m:oMath><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    '<w:r><w:sym w:char="F0B7"/></w:r></w:p><w:sdt><w:sdtContent><w:p><w:r><w:t>field</w:t></w:r></w:p></w:sdtContent></w:sdt>'
)
_NOTES: Final = (
    '<w:footnotes SPACES><w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>'
)
_NUMBERING: Final = (
    '<w:numbering SPACES><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt '
    'w:val="decimal"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
)
_ODT: Final = (
    '<text:h text:outline-level="1">Tides</text:h><text:p>Opened in <text:span text:style-name="B">1932</text:span>.'
    '<text:s text:c="3"/><text:tab/><text:line-break/><text:note><text:note-citation>1</text:note-citation><text:note-body>'
    '<text:p>A note.</text:p></text:note-body></text:note><text:a xlink:href="https://a.org/">port</text:a></text:p>'
    '<text:list text:style-name="N"><text:list-item text:start-value="3"><text:p>one</text:p><text:list><text:list-item>'
    "<text:p>two</text:p></text:list-item></text:list></text:list-item></text:list><table:table><table:table-column "
    'table:number-columns-repeated="2"/><table:table-header-rows><table:table-row><table:table-cell '
    'table:number-columns-spanned="2"><text:p>Zone</text:p></table:table-cell><table:covered-table-cell/></table:table-row>'
    '</table:table-header-rows><table:table-row table:number-rows-repeated="2"><table:table-cell '
    'table:number-columns-repeated="2" table:number-rows-spanned="2"><text:p>7</text:p></table:table-cell>'
    '</table:table-row></table:table><text:tracked-changes><text:changed-region text:id="c1"><text:deletion><text:p>gone'
    "</text:p></text:deletion></text:changed-region></text:tracked-changes><text:section><text:p>end</text:p></text:section>"
)
_SHEET: Final = (
    '<dimension ref="A1:C9"/><cols><col min="3" max="3" hidden="1"/></cols><sheetData><row r="1"><c r="A1" t="inlineStr">'
    '<is><t>Port</t></is></c><c r="B1" t="s"><v>0</v></c></row><row r="2" hidden="0"><c r="A2" s="1"><v>43.625</v></c>'
    '<c r="B2" t="b"><v>1</v></c><c r="C2" t="e"><v>#N/A</v></c></row><row r="4"><c r="A4"><f>A2</f><v>2</v></c></row>'
    '</sheetData><mergeCells><mergeCell ref="A1:B1"/></mergeCells><hyperlinks><hyperlink ref="A2" r:id="r9" location="x"/>'
    "</hyperlinks>"
)
_STRINGS: Final = f'<sst xmlns="{test_xlsx.MAIN}"><si><t>Depth</t></si><si><r><t>a</t></r><r><t>b</t></r></si></sst>'
_STYLES: Final = (
    f'<styleSheet xmlns="{test_xlsx.MAIN}"><numFmts><numFmt numFmtId="170" formatCode="[&gt;99]#,##0.00;yyyy-mm-dd"/></numFmts>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/><xf numFmtId="14"/></cellXfs></styleSheet>'
)
_SLIDE: Final = (
    test_pptx.shape("Tides", props='descr="a map"')
    + '<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/><a:tr><a:tc gridSpan="2"><a:txBody><a:p>'
    '<a:r><a:t>Zone</a:t></a:r></a:p></a:txBody></a:tc><a:tc hMerge="1"/></a:tr></a:tbl></a:graphicData></a:graphic>'
    '</p:graphicFrame><p:grpSp><p:sp><p:txBody><a:p><a:pPr lvl="2"><a:buAutoNum type="arabicPeriod" startAt="3"/></a:pPr>'
    "<a:r><a:t>one</a:t></a:r><a:br/><a:fld><a:t>2</a:t></a:fld></a:p></p:txBody></p:sp></p:grpSp>"
)

TEXTS: Final[Mapping[str, str]] = {
    "rtf": r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\stylesheet{\s1 heading 1;}}\pard\s1 Tides\par\pard Opened in \b 1932\b0 ."
    r"\~\'e9\u8217?{\*\bkmkstart x}{\field{\*\fldinst HYPERLINK "
    "https://a.org/"
    "}{\fldrslt port}}\\par{\footnote A note.}"
    r"{\listtext 1.}\ls1\ilvl0 one\par\trowd\trhdr\clmgf\cellx1000\clmrg\cellx2000\intbl Zone\cell 2\cell\row"
    r"\trowd\cellx1000\nesttableprops\itap2 x\nestcell\nestrow\pard\sect\page\line\tab\bin3 abc{\pict ffd8}\upr\ud end}",
    "tex": r"\documentclass{article}\newcommand{\port}[2][x]{the #1 harbour of #2}\def\a#1{#1}\begin{document}\title{Tides}\maketitle"
    r"\section{Opening}\label{s:one} It opened in \textbf{1932} \port[old]{Pell}.\footnote{A note.} See~\ref{s:one} \cite{key}"
    "\n"
    r"\begin{tabular}{|l|r|}\hline\multicolumn{2}{c}{Zone}\\\cline{1-2} a & 2\\\multirow{2}{*}{b} & 3\\\end{tabular}"
    r"\begin{itemize}\item one\begin{enumerate}\setcounter{enumi}{3}\item two\end{enumerate}\end{itemize} $x^2_i$ \[\frac{1}{2}\]"
    r"\verb|x| \begin{verbatim}a{}\end{verbatim}%comment"
    "\n"
    r"\appendix\section*{End}\'e \href{https://a.org/}{port}\begin{thebibliography}{9}\bibitem{key} Ito.\end{thebibliography}\end{document}",
    "md": "---\ntitle: Tides\n---\n# Tides #\n\nIt *opened* in **1932** [port](https://a.org/ 'x') ![map](a.png) `x` <b>b</b> &amp; \\*\n\n"
    "1. one\n   - two\n\n     ```py\n     x\n     ```\n\n> quote\n> > two\n\n| a | b |\n|:--|--:|\n| 1 | `|` |\n\nTitle\n===\n\n[ref]: https://b.org\n\n"
    "See [ref] and [^1] and <https://c.org>.\n\n[^1]: note\n\n***\n\n- [x] done\n\n    code\n\n~~old~~ $x$\n",
    "eml": 'From: "Ito, A." <a@b.org>\nTo: c@d.org\nSubject: =?utf-8?q?Tides_=C3=A9?= =?utf-8?b?w6k=?=\nDate: Mon, 1 May 2024 10:00:00 +0000\n'
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"; a*0=b; a*1=c\n\n--x\nContent-Type: multipart/alternative; boundary=y\n\n--y\n'
    "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nIt opened =E9 in 1932.=\n\n> quoted\n--y\n"
    "Content-Type: text/html; charset=utf-8\n\n<p>It opened in <b>1932</b>.</p>\n--y--\n--x\nContent-Type: message/rfc822\n\nSubject: inner\n\ntext\n"
    '--x\nContent-Disposition: attachment; filename="a.txt"\nContent-Transfer-Encoding: base64\n\nYWJj\n--x--\n',
    "ics": "BEGIN:VCALENDAR\nX-WR-CALNAME:Port\nBEGIN:VEVENT\nSUMMARY:It opened in 1932\nDTSTART;TZID=Europe/Berlin:20260801T100000\n"
    'DTEND;VALUE=DATE:20260802\nLOCATION:Quay 3\\, Old\n  Port\nORGANIZER;CN="Lee: A":mailto:a@b.org\nEND:VEVENT\nEND:VCALENDAR\n',
    "vtt": "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:04.000 align:start\n<v Ann Lee>It opened\n<00:02.000><c.red>in</c> 1932.\n\n"
    "2\n01:00:05.000 --> 01:00:08.000\n<v Bob>R&amp;D {\\an8}\nis here\n",
    "ipynb": json.dumps(
        {
            "nbformat": 4,
            "metadata": {"language_info": {"name": "python"}},
            "cells": [
                {
                    "cell_type": "markdown",
                    "source": ["# Tides\n", "It opened in *1932*.\n", "| a | b |\n|-|-|\n| 1 | 2 |"],
                },
                {
                    "cell_type": "code",
                    "execution_count": 3,
                    "source": "print(1)",
                    "outputs": [
                        {"output_type": "stream", "name": "stdout", "text": ["1\r2\n", "\u001b[31m3"]},
                        {
                            "output_type": "execute_result",
                            "data": {"text/html": "<table><tr><td>1</table>", "text/plain": "x"},
                        },
                        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[0;31mline"]},
                    ],
                },
                {"cell_type": "raw", "source": "raw"},
            ],
        }
    ),
    "json": '{"title": "Tides", "opened": 1932, "ports": [{"name": "Pell", "depth": 7.9}, {"name": "Ito", "depth": null}], '
    '"open": true, "deep": {"a": {"b": [1, [2, [3]]]}}, "html": "<p>x</p>", "e": 1e9, "u": "\\ud83d\\ude00"}',
    "xml": '<?xml version="1.0" encoding="utf-8"?><rss xmlns:a="urn:a"><channel><title>Tides</title>'
    "<item><title>Opening</title><description>&lt;p&gt;In 1932&lt;/p&gt;</description><a:n v='2'>x</a:n><![CDATA[<b>]]></item><!-- c --><?p i?>"
    "<item><link>https://a.org/</link><pubDate>1 May 2024</pubDate></item></channel></rss>",
    "ttl": "@prefix : <http://a.org/> .\n@base <http://b.org/c> .\nPREFIX s: <https://schema.org/>\n# ports\n"
    ':pell a s:Harbour ; s:name "Pell"@en, \'P\\u00e9ll\'@fr ; :depth 7.9, -1e3 ; :open true ; :by [ s:name """A\n"B" """ ; :in _:x ] ;\n'
    '  :stops ( :ito "Brin" ( 2 ) [] ) ; :when "1932"^^s:Date .\n_:x :near <../d#e>, _:x . :g { :ito :p\\~q%20r :pell . }\n'
    '<http://a.org/s> <http://a.org/p> "x" .\n',
    "jsonld": '{"@context": [{"@vocab": "http://v.org/", "@base": "http://a.org/", "ex": "http://e.org/", "knows": {"@id": "ex:knows", '
    '"@type": "@id", "@container": "@set"}, "stops": {"@id": "ex:stops", "@container": "@list"}, "label": {"@id": "ex:l", "@container": '
    '"@language"}, "of": {"@reverse": "ex:has"}, "T": {"@id": "ex:T", "@context": {"n": "ex:n"}}}, "http://c.org/d"], "@graph": [{"@id": '
    '"pell", "@type": ["T", "U"], "n": 7.90, "knows": ["ito", {"@id": "_:b", "name": "B"}], "stops": [1, ["x", true]], "label": '
    '{"en": "Pell", "de": ["P"]}, "of": {"@id": "ex:g", "@graph": {"a": {"@value": "1", "@type": "ex:t"}}}}, {"@reverse": {"knows": "x"}}]}',
    "graphml": '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" attr.name="name"/>'
    '<key id="d1" for="all" attr.name="depth"><default>5</default></key><key id="d2" for="edge" attr.name="label"/><graph id="G" '
    'edgedefault="directed"><data key="d0">Coast</data><node id="n0"><data key="d0">Pell</data><data key="d1">7.9</data><graph><node id="n2"/>'
    '</graph></node><node id="n1" labels=":Port"/><edge source="n0" target="n1"><data key="d2">near</data></edge><hyperedge><endpoint '
    'node="n0"/></hyperedge></graph></graphml>',
    "csv": 'Port,Depth,"Name, long"\nPell,7.9,"a ""b"" c"\nIto,,"two\nlines"\n\n1;2\t3|4,=1+1,x\n',
    "txt": "Tides\n=====\n\nThe harbour opened in 1932. It never closed!\n\n  - one\n  - two\n\nhttps://a.org/ x@b.org\n\n\tcode\n\u6f6e\u6c50\u7ad9\u3002\n",
    "fodt": test_odt.content(_ODT)
    .replace("office:document-content", "office:document")
    .replace("<office:document ", '<office:document office:mimetype="application/vnd.oasis.opendocument.text" ', 1),
}
"""A document of each format that is text."""


def _database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        made = sqlite3.connect(path)
        made.executescript(
            "pragma page_size=512; create table port (name text, depth real, note blob); "
            "insert into port values ('Pell', 7.9, null), ('Ito', 2, x'00ff'); create view deep as select * from port;"
        )
        made.close()
        return path.read_bytes()


def _stored(parts: Mapping[str, bytes]) -> bytes:
    """Return a package of parts, not compressed, with the same date in every run."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name, part in parts.items():
            package.writestr(zipfile.ZipInfo(name), part)
    return buffer.getvalue()


@cache
def seeds() -> Mapping[str, bytes]:
    """Return a document of each format, by suffix; HTML has seeds of its own."""
    packed = {
        "docx": test_docx.document(_DOCX, footnotes=_NOTES, numbering=_NUMBERING),
        "odt": test_odt.document(_ODT),
        "xlsx": test_xlsx.workbook({"Ports": _SHEET, "Two": test_xlsx.PORTS}, sharedStrings=_STRINGS, styles=_STYLES),
        "ods": test_ods.spreadsheet(test_ods.BODY, test_ods.STYLES),
        "pptx": test_pptx.presentation(f"|{_SLIDE}", f'show="0"|{_SLIDE}'),
        "epub": test_epub.book(),
    }
    sheet = pdfs.Sheet().text(50, 60, "Tides", 18, "F2").text(50, 90, "It opened in 1932.").rule(50, 99, 300, 99)
    return {
        **{suffix: _stored(unpacked(content)) for suffix, content in packed.items()},
        "pdf": pdfs.pdf(sheet),
        "db": _database(),
        **{suffix: text.encode() for suffix, text in TEXTS.items()},
    }


# --- mutations -----------------------------------------------------------------------------------

_TAG: Final = re.compile(rb"<[^!?/][^<>]*>")
_VALUE: Final = re.compile(rb"""(?<==)(?:"[^"<>]*"|'[^'<>]*')|(?<=>)[^<>]+(?=<)""")
_TOKEN: Final = re.compile(rb"\\[a-z*~']+-?\d*|[\w.]+|\s+|[^\w\s]{1,3}")


def _value(rng: random.Random, text: bytes) -> bytes:
    """Write another number or text in the place of an attribute's value, or of a text."""
    found = list(_VALUE.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    new = rng.choice(NUMBERS).encode()
    quoted = place[0][:1] in (b'"', b"'")
    return text[: place.start()] + (b'"' + new + b'"' if quoted else new) + text[place.end() :]


def _element(rng: random.Random, text: bytes) -> bytes:
    """Repeat, nest, move, rename or remove an element."""
    tags = list(_TAG.finditer(text))
    if not tags:
        return text
    start = rng.choice(tags)
    name = re.split(rb"[\s/>]", start[0][1:], maxsplit=1)[0]
    end = text.find(b"</" + name + b">", start.end())
    stop = start.end() if start[0].endswith(b"/>") or end < 0 else end + len(name) + 3
    whole = text[start.start() : stop]
    change = rng.randrange(6)
    if change == 0:
        return text[: start.start()] + whole * rng.choice((2, 3, 40)) + text[stop:]
    if change == 1:
        return text[: start.start()] + text[stop:]
    if change == 2:
        times = rng.choice((1, 5, 60))
        return (
            text[: start.start()]
            + start[0].replace(b"/>", b">") * times
            + whole
            + (b"</" + name + b">") * times
            + text[stop:]
        )
    if change == 3:
        other = rng.choice(tags)
        return text[: other.start()] + whole + text[other.start() :]
    if change == 4:
        other = rng.choice(tags)
        new = re.split(rb"[\s/>]", other[0][1:], maxsplit=1)[0]
        return (
            text[: start.start()] + re.sub(rb"(?<![\w:])" + re.escape(name) + rb"(?![\w:])", new, whole) + text[stop:]
        )
    return text[: start.end()] + rng.choice(fuzz.ODD) * rng.choice((1, 30)) + text[start.end() :]


def _token(rng: random.Random, text: bytes) -> bytes:
    """Repeat, move or change a token."""
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    token, other = rng.choice(tokens), rng.choice(tokens)
    change = rng.randrange(5)
    if change == 0:
        return text[: token.start()] + token[0] * rng.choice((2, 10, 300)) + text[token.end() :]
    if change == 1:
        return text[: token.start()] + other[0] + text[token.start() :]
    if change == 2:
        return text[: token.start()] + text[token.end() :]
    if change == 3:
        return (
            text[: token.start()]
            + re.sub(rb"\d+", lambda _: rng.choice(NUMBERS).encode(), token[0])
            + text[token.end() :]
        )
    first, last = sorted((token.start(), other.end()))
    return text[:last] + text[first:last] * rng.choice((1, 2, 8)) + text[last:]


def _bytes(rng: random.Random, text: bytes) -> bytes:
    return rng.choice(fuzz.MUTATIONS)(rng, text, [text])


_XML: Final = (*(_value, _element) * 8, _bytes)
_PLAIN: Final = (_token, _token, _token, _bytes)


def _changed(rng: random.Random, text: bytes, mutations: tuple[Callable[[random.Random, bytes], bytes], ...]) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        text = rng.choice(mutations)(rng, text[:60_000])
    return text


def _packed(rng: random.Random, content: bytes) -> bytes:
    """Change parts of a packed document, and now and then the bytes of the package."""
    if rng.random() < 0.03:
        return _changed(rng, content, (_bytes,))
    parts = unpacked(content)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice([name for name in parts for _ in range(1 + len(parts[name]) // 500)])
        parts[name] = _changed(rng, parts[name], _XML)
    return _stored(parts)


def document(seed: int, number: int) -> tuple[str, bytes]:
    """Return the suffix and the content of a mutated document."""
    rng = random.Random(f"{seed} {number}")
    (suffix,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    if suffix == "html":
        return suffix, next(fuzz.documents(rng.randrange(2**40)))
    content = seeds()[suffix]
    if content.startswith(b"PK"):
        return suffix, _packed(rng, content)
    mutations = _XML if suffix in ("xml", "fodt", "graphml") else (_bytes,) if suffix in ("pdf", "db") else _PLAIN
    return suffix, _changed(rng, content, mutations)


_FORMATS: Final[tuple[OutputFormat, ...]] = ("markdown", "text")


# --- what must hold ------------------------------------------------------------------------------


def check(suffix: str, content: bytes) -> str:
    """Read, clean and prune a document; return 'answered' or the name of the deliberate error.

    :raises fuzz.Failure: a promise is broken. Any other exception is a crash.
    """
    if suffix == "html":
        return fuzz.check(content)
    page = prunus.Page(content, url=f"x.{suffix}")
    try:
        read = prunus.read(page)
    except prunus.PrunusError as error:
        if "\n" in str(error):
            raise fuzz.Failure(content, "an error of several lines") from error
        return type(error).__name__
    (tree,) = read.trees
    once = render_tree(tree)
    if prunus.clean(prunus.Page(once, media_type="text/html")) != once:
        raise fuzz.Failure(content, "cleaning twice changes something")
    for format in _FORMATS:
        render_tree(tree, format)
    options = prunus.Options(max_words=len(content) % 60 + 1, tokenizer="approx", scorer="bm25")
    budget = len(content) % 300 + 20
    try:
        context = prunus.prune(read, fuzz.QUESTION, budget, "html", options)
    except prunus.BadBudget as error:
        return type(error).__name__
    if context.tokens > budget:
        raise fuzz.Failure(content, f"{context.tokens} tokens at a budget of {budget}")
    return "answered"
