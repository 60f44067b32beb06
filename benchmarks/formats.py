"""Formats: conversion of documents to HTML in MB/s and pages/s, over documents that this file writes.

    python -m benchmarks.formats [--formats pdf,docx] [--rounds N] [--quick]

Every document is the same report; each of its sections has a heading, running text, a nested list and a table. A page
has 400 words. Each format is warmed up with a small document; the least time of the rounds counts. PDF files are read
by a separate process, whose start is part of the time.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError

PAGE_WORDS = 400
SECTION_WORDS = 130
PDF_TARGET = 10.0
"""Pages per second, at least."""

SENTENCE = "The tide at gauge {0} rose to {1} metres before noon, and the harbour of station {0} stayed open all day. "
ROWS = (("Station", "low", "high"), ("Pell", "2.1", "7.9"), ("Vor", "1.0", "4.4"), ("Ruhn", "0.7", "3.2"))
ITEMS = ((0, "pier"), (1, "north end"), (1, "south end"), (0, "lock"))


def sections(pages: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of the report: a title and paragraphs."""
    for number in range(pages * PAGE_WORDS // SECTION_WORDS):
        text = [SENTENCE.format(number, at) * 2 for at in range(3)]
        yield f"{number + 1} Section {number + 1}", text


# --- writers; they need no packages, so that every run reads the same documents ------------------------


def packed(parts: dict[str, str]) -> bytes:
    """Return a zip file of parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def docx(pages: int) -> bytes:
    """Return a Word document."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"

    def paragraph(text: str, about: str = "") -> str:
        runs = "".join(
            f"<w:r><w:rPr><w:lang w:val='en'/></w:rPr><w:t xml:space='preserve'>{p} </w:t></w:r>"
            for p in text.split(",")
        )
        return f"<w:p><w:pPr>{about}</w:pPr>{runs}</w:p>"

    cells = "".join(f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in ROWS)
    lists = "".join(
        paragraph(text, f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='1'/></w:numPr>") for level, text in ITEMS
    )
    body = "".join(
        paragraph(title, "<w:outlineLvl w:val='0'/>")
        + "".join(map(paragraph, text))
        + lists
        + f"<w:tbl>{cells}</w:tbl>"
        for title, text in sections(pages)
    )
    return packed({"word/document.xml": f"<w:document xmlns:w='{space}'><w:body>{body}</w:body></w:document>"})


def pptx(pages: int) -> bytes:
    """Return a presentation with a slide for each section."""
    root = "http://schemas.openxmlformats.org"
    spaces = f"xmlns:p='{root}/presentationml/2006/main' xmlns:a='{root}/drawingml/2006/main'"
    relate = f"{root}/officeDocument/2006/relationships"
    report = list(sections(pages))
    rels = "".join(
        f"<Relationship Id='r{n}' Type='{relate}/slide' Target='slides/slide{n}.xml'/>" for n in range(len(report))
    )
    ids = "".join(f"<p:sldId id='{256 + n}' r:id='r{n}'/>" for n in range(len(report)))
    head, package = f"<p:presentation {spaces} xmlns:r='{relate}'>", f"{root}/package/2006/relationships"
    parts = {
        "ppt/presentation.xml": f"{head}<p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": f"<Relationships xmlns='{package}'>{rels}</Relationships>",
    }
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    cells = "".join(f"<a:tr>{''.join(map(cell.format, row))}</a:tr>" for row in ROWS)
    for number, (title, text) in enumerate(report):
        lines = [(0, paragraph) for paragraph in text] + list(ITEMS)
        body = "".join(f"<a:p><a:pPr lvl='{level}'/><a:r><a:t>{line}</a:t></a:r></a:p>" for level, line in lines)
        shapes = "".join(
            f"<p:sp><p:nvSpPr><p:nvPr><p:ph type='{kind}'/></p:nvPr></p:nvSpPr><p:txBody>{inner}</p:txBody></p:sp>"
            for kind, inner in (("title", f"<a:p><a:r><a:t>{title}</a:t></a:r></a:p>"), ("body", body))
        )
        data = f"<a:graphicData><a:tbl>{cells}</a:tbl></a:graphicData>"
        shapes += f"<p:graphicFrame><a:graphic>{data}</a:graphic></p:graphicFrame>"
        parts[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {spaces}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    return packed(parts)


def epub(pages: int) -> bytes:
    """Return a book with a chapter for each section."""
    report = list(sections(pages))
    items = "".join(
        f"<item id='c{n}' href='c{n}.xhtml' media-type='application/xhtml+xml'/>" for n in range(len(report))
    )
    spine = "".join(f"<itemref idref='c{n}'/>" for n in range(len(report)))
    parts = {
        "META-INF/container.xml": "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>",
        "b.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    grid = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    for number, (title, text) in enumerate(report):
        inner = f"<h1>{title}</h1>{''.join(f'<p>{paragraph}</p>' for paragraph in text)}"
        inner += "<ul><li>pier<ul><li>north end</li></ul></li></ul>"
        parts[f"c{number}.xhtml"] = f"<html><body>{inner}<table>{grid}</table></body></html>"
    return packed(parts)


def odt(pages: int) -> bytes:
    """Return an OpenDocument text."""
    spaces = " ".join(
        f"xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'" for name in ("office", "text", "table")
    )
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in ROWS
    )
    lists = "<text:list><text:list-item><text:p>pier</text:p><text:list><text:list-item><text:p>north end</text:p>"
    lists += "</text:list-item></text:list></text:list-item></text:list>"
    body = "".join(
        f"<text:h text:outline-level='1'>{title}</text:h>{''.join(f'<text:p>{line}</text:p>' for line in text)}{lists}"
        f"<table:table>{cells}</table:table>"
        for title, text in sections(pages)
    )
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:document-content {spaces}>{text}</office:document-content>"
    return packed({"content.xml": content})


def rtf(pages: int) -> bytes:
    """Return a Rich Text document."""
    cells = "".join(
        r"\trowd\cellx2000\cellx4000\cellx6000\pard\intbl " + "".join(rf"{cell}\cell " for cell in row) + r"\row"
        for row in ROWS
    )
    lists = "".join(rf"\pard{{\listtext\'B7\tab}}\ls1\ilvl{level} {text}\par" for level, text in ITEMS)
    body = "".join(
        rf"\pard\outlinelevel0 {title}\par" + "".join(rf"\pard {paragraph}\par" for paragraph in text) + lists + cells
        for title, text in sections(pages)
    )
    return (r"{\rtf1\ansi " + body + r"\pard\par}").encode()


def pdf(pages: int) -> bytes:
    """Return a PDF file with two columns and a ruled table on each page."""
    lines = [
        part
        for title, text in sections(pages)
        for part in (f"*{title}", *(line for paragraph in text for line in wrapped(paragraph, 52)))
    ]
    sheets: list[list[str]] = []
    per_column = max(1, len(lines) // (2 * pages) + 1)
    for page in range(pages):
        out: list[str] = []
        for column in range(2):
            start = (2 * page + column) * per_column
            for at, line in enumerate(lines[start : start + per_column]):
                font = "/F2 11" if line[:1] == "*" else "/F1 9"
                out.append(f"BT {font} Tf {50 + 260 * column} {750 - 11 * at} Td ({line.lstrip('*')}) Tj ET")
        for row, cells in enumerate(ROWS):
            for column, cell in enumerate(cells):
                out.append(f"BT /F1 9 Tf {54 + 80 * column} {100 - 14 * row} Td ({cell}) Tj ET")
                out.append(f"{50 + 80 * column} {96 - 14 * row} 80 14 re S")
        sheets.append(out)
    return pdf_of(sheets)


def wrapped(text: str, width: int) -> list[str]:
    """Return text cut into lines of about `width` characters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word + " "
    return [line.strip() for line in lines]


def pdf_of(sheets: list[list[str]]) -> bytes:
    """Return a PDF file; each page is a list of drawing operators."""
    kids = " ".join(f"{5 + 2 * at} 0 R" for at in range(len(sheets)))
    font = "<< /Type /Font /Subtype /Type1 /Encoding /WinAnsiEncoding /BaseFont /Helvetica"
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(sheets)} /Kids [{kids}] >>".encode(),
        f"{font} >>".encode(),
        f"{font}-Bold >>".encode(),
    ]
    for at, sheet in enumerate(sheets):
        fonts = "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >>"
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] {fonts} /Contents {6 + 2 * at} 0 R >>".encode()
        )
        stream = zlib.compress("\n".join(sheet).encode())
        bodies.append(f"<< /Filter /FlateDecode /Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream")
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    return bytes(out) + f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


WRITERS: dict[str, Callable[[int], bytes]] = {
    "pdf": pdf, "docx": docx, "pptx": pptx, "epub": epub, "odt": odt, "rtf": rtf,
}  # fmt: skip


# --- the measured side -------------------------------------------------------------------------------


def measure(name: str, pages: int, rounds: int) -> dict[str, float]:
    """Convert one document several times; return seconds, pages per second and MB per second."""
    from prunus.core.registry import make_engine
    from prunus.core.types import Page
    from prunus.pages.clean.walk import clean_tree

    engine = make_engine("format", name)
    engine.to_html(Page(WRITERS[name](1), url=f"warm.{name}"))
    content = WRITERS[name](pages)
    times, made = [], ""
    for _ in range(rounds):
        start = time.perf_counter()
        made = engine.to_html(Page(content, url=f"report.{name}"))
        times.append(time.perf_counter() - start)
    tree = clean_tree(made)
    if tree.tag.count("table") < 0.9 * pages or sum(tree.tag.count(f"h{n}") for n in range(1, 7)) < 2 * pages:
        raise BenchError(f"{name}: the HTML lacks headings or tables of the document")
    least = min(times)
    return {
        "seconds": least,
        "median": statistics.median(times),
        "pages_s": pages / least,
        "file_mb": len(content) / 1e6,
        "text_mb": len(tree.canonical) / 1e6,
        "file_mb_s": len(content) / 1e6 / least,
        "text_mb_s": len(tree.canonical) / 1e6 / least,
    }


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the target was met."""
    names = options.formats.split(",") if options.formats else list(WRITERS)
    unknown = [name for name in names if name not in WRITERS]
    if unknown:
        raise BenchError(f"unknown format {unknown[0]!r}; the formats are: {', '.join(WRITERS)}")
    pages = options.pages or (20 if options.quick else 200)
    rounds = options.rounds or (1 if options.quick else 3)
    found: dict[str, Any] = {}
    for name in names:
        say(f"{name} …")
        found[name] = measure(name, pages, rounds)
    head = ["format", "pages/s", "s", "file MB", "file MB/s", "text MB/s"]
    rows = [
        [name, *(row[key] for key in ("pages_s", "seconds", "file_mb", "file_mb_s", "text_mb_s"))]
        for name, row in found.items()
    ]
    table(f"Documents of {pages} pages to HTML, least of {rounds}", head, rows)
    print()
    met = True
    if "pdf" in found:
        speed = found["pdf"]["pages_s"]
        met = verdict(f"PDF {speed:.0f} pages per second; target {PDF_TARGET:g}", speed >= PDF_TARGET)
    json_line(
        "formats", {"pages": pages, "rounds": rounds, "formats": found, "target_pdf_pages_s": PDF_TARGET, "met": met}
    )
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("formats", __doc__)
    options.add_argument("--formats", help=f"of {','.join(WRITERS)}; all by default")
    options.add_argument("--pages", type=int, help="pages of each document (200; quick 20)")
    options.add_argument("--rounds", type=int, help="rounds of each format (3; quick 1)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
