"""Numbers that no writer would write, in the place of every number of documents of each format."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator

import pytest
from tests.pages.formats import test_docx, test_latex, test_ods, test_odt, test_pptx, test_rtf, test_xlsx
from tests.pages.formats.documents import unpacked

import prunus
from prunus.core.types import Page

ODD = ("²", "٣", "9" * 5_000, "-9" + "0" * 5_000, "0", "-1", "1e999", "nan", "2147483648", "")

W = f'xmlns:w="{test_docx.W}"'
DOCX = test_docx.document(
    '<w:p><w:pPr><w:pStyle w:val="heading 2"/><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Ports</w:t></w:r></w:p>'
    '<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="7"/></w:numPr></w:pPr><w:r><w:t>one</w:t></w:r></w:p>'
    '<w:tbl><w:tblPr><w:tblLook w:val="0020"/></w:tblPr><w:tr><w:trPr><w:gridBefore w:val="1"/><w:gridAfter w:val="1"/>'
    '</w:trPr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>'
    '<w:p><w:r><w:sym w:font="Wingdings" w:char="F0E0"/><w:t>end</w:t><w:footnoteReference w:id="2"/></w:r></w:p>',
    numbering=f'<w:numbering {W}><w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="1"><w:start w:val="4"/>'
    '<w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2."/></w:lvl></w:abstractNum><w:num w:numId="7">'
    '<w:abstractNumId w:val="3"/><w:lvlOverride w:ilvl="1"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    "</w:numbering>",
    styles=f'<w:styles {W}><w:style w:styleId="heading 2"><w:name w:val="heading 2"/><w:pPr><w:outlineLvl w:val="1"/>'
    "</w:pPr></w:style></w:styles>",
    footnotes=f'<w:footnotes {W}><w:footnote w:id="2"><w:p><w:r><w:t>note</w:t></w:r></w:p></w:footnote></w:footnotes>',
)
XLSX = test_xlsx.workbook(
    {
        "S": '<cols><col min="3" max="4" hidden="1"/></cols><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c>'
        '<c r="B1" s="1"><v>45000.5</v></c></row><row r="3"><c r="A3" s="0"><v>2.5</v></c><c r="B3" s="1"><v>60</v></c>'
        '</row></sheetData><mergeCells><mergeCell ref="A3:B4"/></mergeCells><autoFilter ref="A1:B3"/>'
    },
    sharedStrings=f'<sst xmlns="{test_xlsx.MAIN}"><si><t>Port _x0041_</t></si></sst>',
    styles=f'<styleSheet xmlns="{test_xlsx.MAIN}"><numFmts><numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd hh:mm 0.00"/>'
    '</numFmts><cellXfs><xf numFmtId="2"/><xf numFmtId="165"/></cellXfs></styleSheet>',
)
PPTX = test_pptx.presentation(
    "|"
    + test_pptx.shape("words", 10, 20)
    + '<p:sp><p:nvSpPr><p:cNvPr id="3" name="t"/><p:nvPr><p:ph type="title" idx="1"/></p:nvPr></p:nvSpPr><p:txBody>'
    '<a:p><a:pPr lvl="1"><a:buAutoNum type="arabicPeriod" startAt="3"/></a:pPr><a:r><a:t>item</a:t></a:r></a:p>'
    "</p:txBody></p:sp>"
)
MAIL = (
    b"Date: Mon, 21 Sep 2026 14:13:22 +0200\r\nSubject: =?utf-8?q?a=20b?=\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: text/plain; charset=iso-8859-1; x*0=a; x*1=b\r\nContent-Length: 12\r\n\r\nThe words 1\r\n"
)
NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": 3,
                "metadata": {},
                "source": "a = 1",
                "outputs": [
                    {"output_type": "execute_result", "execution_count": 3, "data": {"text/plain": "1"}, "metadata": {}}
                ],
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
).encode()
HTML = (
    b"<title>t</title><ol start=3 reversed><li value=7>one<li>two</ol><select size=2><option>a<option>b</select>"
    b"<table><tr><td colspan=2 rowspan=3>c<td>d<tr><td>e</table><progress value=1 max=2></progress>&#65;&#x42;"
    b"<img width=1 height=1 src=a><img src=a width=2 alt=b><p style='opacity:0.5;width:3px;font-size:12px'>f</p>"
    b"<meter value=1 min=0 max=2>g</meter><h2>h</h2>"
)
PDF_LIST = rb"\setcounter{section}{4}\setcounter{enumi}{2}\rule{1cm}{2pt}\char65 \symbol{66}\hspace{3em}"

DOCUMENTS = {
    "a.docx": DOCX,
    "a.xlsx": XLSX,
    "a.pptx": PPTX,
    "a.ods": test_ods.spreadsheet(test_ods.BODY),
    "a.odt": test_odt.document(
        '<text:h text:outline-level="2">h</text:h><text:p>a<text:s text:c="3"/>b</text:p><text:list><text:list-item '
        'text:start-value="4"><text:p>c</text:p></text:list-item></text:list><table:table><table:table-row '
        'table:number-rows-repeated="2"><table:table-cell table:number-columns-spanned="2" '
        'table:number-columns-repeated="2"><text:p>d</text:p></table:table-cell></table:table-row></table:table>'
    ),
    "a.rtf": test_rtf.REPORT + rb"\par\u8364 ?\bin3 abc\uc2\'41",
    "a.tex": test_latex.PAPER.replace(r"\maketitle", r"\maketitle" + PDF_LIST.decode()).encode(),
    "a.eml": MAIL,
    "a.ipynb": NOTEBOOK,
    "a.json": b'{"a": 12, "b": [1.5, -3e7], "c": "4"}',
    "a.csv": b"port,depth\ninner,2.5\nouter,31\n",
    "a.md": b"# a\n\n7. b\n8. c\n\n| d | 2 |\n|---|--:|\n| e | 31 |\n\n&#65; [x][1]\n\n[1]: https://a.org/2020/01/02\n",
    "a.html": HTML,
    "a.xml": b'<?xml version="1.0"?><a n="1"><b>2</b>&#65;</a>',
}
ZIPPED = (".docx", ".xlsx", ".pptx", ".ods", ".odt")
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?![\w])|\d+(?=[a-z]{0,2}[\s\\\"'>};,])|F0E0|0041")


def stored(parts: dict[str, bytes]) -> bytes:
    """Return a zip file of parts without compression, as the first part of an OpenDocument must be."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def with_odd_numbers(content: bytes, odd: str) -> Iterator[bytes]:
    """Yield copies of a document, in each of which one number is replaced."""
    for number in NUMBER.finditer(content):
        yield content[: number.start()] + odd.encode() + content[number.end() :]


def copies(name: str, content: bytes, odd: str) -> Iterator[bytes]:
    """Yield the copies of a document; of a zipped one, those of its parts."""
    if not name.endswith(ZIPPED):
        yield from with_odd_numbers(content, odd)
        return
    parts = unpacked(content)
    for part, inner in parts.items():
        if part.endswith(".xml") and "Types" not in part:
            for changed in with_odd_numbers(inner, odd):
                yield stored({**parts, part: changed})


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_each_format_has_numbers_and_is_read(name: str) -> None:
    content = DOCUMENTS[name]
    assert prunus.clean(Page(stored(unpacked(content)) if name.endswith(ZIPPED) else content, url=name))
    assert sum(1 for _ in copies(name, content, "7")) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD, ids=[odd[:12] or "none" for odd in ODD])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_odd_number_in_any_place_is_read_or_refused_in_one_line(name: str, odd: str) -> None:
    for content in copies(name, DOCUMENTS[name], odd):
        try:
            prunus.read(Page(content, url=name))
        except prunus.BadPage as error:
            assert "\n" not in str(error)  # noqa: PT017 - an error is a valid result of an odd number
            continue
        for format in ("markdown", "html", "text"):
            prunus.clean(Page(content, url=name), format)
