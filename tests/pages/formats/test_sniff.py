"""The format of a page: its content decides first, then its name, then its media type."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import within
from tests.pages.formats.documents import packed

from prunus.core.errors import BadPage
from prunus.pages.formats._sniff import sniff, suffix_of

KNOWN = {
    ".html": "html", ".htm": "html", "text/html": "html", "application/xhtml+xml": "html",
    ".txt": "text", "text/plain": "text", ".md": "markdown", "text/markdown": "markdown", ".csv": "csv",
    "text/csv": "csv", ".json": "json", "application/json": "json", ".ipynb": "notebook", ".tex": "latex",
    ".xml": "xml", "text/xml": "xml", ".eml": "eml", "message/rfc822": "eml", ".pdf": "pdf",
    "application/pdf": "pdf", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".odt": "odt", ".ods": "ods",
    ".epub": "epub", ".rtf": "rtf", ".db": "sqlite", ".ttl": "graph", ".jsonld": "graph", "text/turtle": "graph",
    "application/ld+json": "graph",
}  # fmt: skip


def zipped(*names: str, mimetype: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if mimetype:
            archive.writestr(zipfile.ZipInfo("mimetype"), mimetype)
        for name in names:
            archive.writestr(name, "<x/>" * 50)
    return buffer.getvalue()


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a)")
    content = connection.serialize()
    connection.close()
    return content


def ole(stream: str) -> bytes:
    head = bytearray(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504)
    struct.pack_into("<H", head, 30, 9)
    return bytes(head) + b"\0" * 64 + stream.encode("utf-16-le") + b"\0" * 400


NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
MAIL = "Received: from a by b\nFrom: ann@example.org\nTo: ben@example.org\nSubject: Tides\n\nHello"

BY_CONTENT = {
    "html": ("<!DOCTYPE html><p>x", "html"),
    "html after blanks and a mark": ("\ufeff \n<html><p>x", "html"),
    "xhtml": ('<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0">\n<html xmlns="x"><p>a', "html"),
    "xml": ('<?xml version="1.0"?><!-- x --><catalogue><book/></catalogue>', "xml"),
    "rss": ("<rss version='2.0'><channel/></rss>", "xml"),
    "feed with a style sheet": ('<?xml version="1.0"?><?xml-stylesheet href="a.xsl"?><feed xmlns="x"/>', "xml"),
    "json": ('{"a": [1, 2]}', "json"),
    "json lines": ('{"a": 1}\n{"a": 2}\n', "json"),
    "notebook": (NOTEBOOK, "notebook"),
    "latex": ("% a paper\n\\documentclass{article}\n\\begin{document}x\\end{document}", "latex"),
    "turtle": ("# ports\n@prefix ex: <http://a.org/> .\nex:a ex:b 1 .", "graph"),
    "sparql's prefixes": ("PREFIX ex: <http://a.org/>\nex:a ex:b 1 .", "graph"),
    "n-triples": ('<http://a.org/s> <http://a.org/p> "x" .\n', "graph"),
    "n-triples of a node without address": ("_:a <http://a.org/p> _:b .\n", "graph"),
    "json-ld": ('{"@context": {"a": "http://a.org/"}, "a": 1}', "graph"),
    "json-ld in a list": ('[{"name": "x", "@graph": []}]', "graph"),
    "graphml": ('<?xml version="1.0"?><graphml xmlns="x"><graph/></graphml>', "graph"),
    "graphml without a declaration": ('<graphml xmlns="x"><graph/></graphml>', "graph"),
    "json that speaks of a context": ('{"page": {"@context": "x"}, "b": "@context"}', "json"),
    "rtf": ("{\\rtf1\\ansi x}", "rtf"),
    "message": (MAIL, "eml"),
    "pdf": ("%PDF-1.7\n...", "pdf"),
}

BYTES = {
    "docx": (zipped("[Content_Types].xml", "word/document.xml"), "docx"),
    "pptx": (zipped("[Content_Types].xml", "ppt/presentation.xml"), "pptx"),
    "xlsx": (zipped("[Content_Types].xml", "xl/workbook.xml"), "xlsx"),
    "docx, cut off": (zipped("[Content_Types].xml", "word/document.xml")[:-90], "docx"),
    "xlsx with other slashes": (zipped("[Content_Types].xml", "xl\\workbook.xml"), "xlsx"),
    "odt": (zipped("content.xml", mimetype="application/vnd.oasis.opendocument.text"), "odt"),
    "ods": (zipped("content.xml", mimetype="application/vnd.oasis.opendocument.spreadsheet"), "ods"),
    "epub": (zipped("META-INF/container.xml", mimetype="application/epub+zip"), "epub"),
    "epub without a mimetype": (zipped("META-INF/container.xml"), "epub"),
    "sqlite": (database(), "sqlite"),
    "utf-16 html": ("<!doctype html><p>x".encode("utf-16"), "html"),
    "utf-16 json": ('{"a": 1}'.encode("utf-16"), "json"),
}


@pytest.mark.parametrize("suffix", ["", ".html", ".txt", ".dat", ".pdf"])
@pytest.mark.parametrize(("content", "expected"), BY_CONTENT.values(), ids=BY_CONTENT)
def test_content_decides_whatever_the_name_says(content: str, expected: str, suffix: str) -> None:
    if expected == "eml" and suffix == ".html":
        expected = "html"  # a page may begin with words that end in a colon
    assert sniff(content.encode(), f"a{suffix}", "", KNOWN) == expected


@pytest.mark.parametrize("suffix", ["", ".html", ".txt", ".docx", ".csv"])
@pytest.mark.parametrize(("content", "expected"), BYTES.values(), ids=BYTES)
def test_first_bytes_and_parts_decide_whatever_the_name_says(content: bytes, expected: str, suffix: str) -> None:
    if "json" in expected and suffix == ".csv":
        expected = "csv"  # a table may begin with a bracket
    assert sniff(content, f"a{suffix}", "application/octet-stream", {**KNOWN, ".x": expected}) == expected


REFUSED = {
    "zip": (zipped("notes/a.txt"), "zip archive; archives are not read; unpack it and give the folder"),
    "gzip": (b"\x1f\x8b\x08\0" + b"\0" * 30, "gzip"),
    "tar": (b"a.txt" + b"\0" * 252 + b"ustar\x0000" + b"\0" * 300, "tar archive; archives are not read"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "7z"),
    "rar": (b"Rar!\x1a\x07\x01\0", "RAR"),
    "xz": (b"\xfd7zXZ\0\0", "xz"),
    "bzip2": (b"BZh91AY&SY", "bzip2"),
    "zstd": (b"\x28\xb5\x2f\xfd\0", "Zstandard"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\0", "PNG picture, which holds no text to read"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
    "webp": (b"RIFF\0\0\0\0WEBPVP8 ", "WEBP"),
    "heic": (b"\0\0\0\x18ftypheic", "HEIC"),
    "mp4": (b"\0\0\0\x18ftypisom", "MP4"),
    "mp3": (b"ID3\4\0\0", "MP3"),
    "elf": (b"\x7fELF\2\1", "ELF program; programs are not read"),
    "exe": (b"MZ\x90\0\3\0\0\0", "Windows program"),
    "doc": (ole("WordDocument"), r"old Word document \(.doc\); save it as .docx"),
    "xls": (ole("Workbook"), r"\(.xls\); save it as .xlsx"),
    "ppt": (ole("PowerPoint Document"), r"\(.ppt\)"),
    "msg": (ole("__properties_version1.0"), r"\(.msg\)"),
    "locked": (ole("EncryptedPackage"), "password-protected Office document; save it"),
    "xlsb": (zipped("xl/workbook.bin"), "xlsb"),
    "odp": (zipped("content.xml", mimetype="application/vnd.oasis.opendocument.presentation"), "presentation"),
    "apk": (zipped("AndroidManifest.xml"), "Android"),
    "pages": (zipped("Index/Document.iwa"), "export it"),
    "parquet": (b"PAR1\x15\0", "Parquet"),
}


@pytest.mark.parametrize("name", ["a", "a.html", "a.txt", "a.docx"])
@pytest.mark.parametrize(("content", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refused_kind_of_file_is_named_with_the_way_out(content: bytes, reason: str, name: str) -> None:
    with pytest.raises(BadPage, match=reason) as caught:
        sniff(content, name, "text/html", KNOWN)
    assert str(caught.value).startswith(f"{name}: this is binary data, ")


BY_NAME = {
    "a.md": "markdown", "a.MD": "markdown", "a.csv": "csv", "b/a.json": "json", "a.tex": "latex", "a.txt": "text",
    "a.html": "html", "a": "text", "a.unknown": "text", "https://host.org/a.csv?x=1.json#y": "csv", "a.pdf": "text",
}  # fmt: skip


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@pytest.mark.parametrize(
    ("root", "expected"), [("w:document", "docx"), ("p:presentation", "pptx"), ("workbook", "xlsx"), ("x", "")]
)
def test_a_package_is_known_by_the_part_that_its_relations_name(root: str, expected: str) -> None:
    rels = f'<Relationships><Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="a/b.xml"/></Relationships>'
    content = packed({"_rels/.rels": rels, "a/b.xml": f'<{root} xmlns:w="w" xmlns:p="p"/>'})
    if expected:
        assert sniff(content, "", "", KNOWN) == expected
        return
    with pytest.raises(BadPage, match="archives are not read"):
        sniff(content, "", "", KNOWN)


@pytest.mark.parametrize("kind", ["text", "spreadsheet", "presentation"])
def test_opendocument_is_known_by_its_mimetype_wherever_it_stands_in_the_zip(kind: str) -> None:
    content = packed({"content.xml": "<x/>", "mimetype": f"application/vnd.oasis.opendocument.{kind}"})
    if kind == "presentation":
        with pytest.raises(BadPage, match=r"an OpenDocument presentation; save it as \.pdf"):
            sniff(content, "", "", KNOWN)
        return
    assert sniff(content, "", "", KNOWN) == {"text": "odt", "spreadsheet": "ods"}[kind]


@pytest.mark.parametrize(("name", "expected"), BY_NAME.items())
@pytest.mark.parametrize("kind", ["", "application/octet-stream", "text/plain; charset=utf-8"])
def test_the_name_decides_the_format_of_plain_words(name: str, expected: str, kind: str) -> None:
    if (name, kind[:10]) == ("a.html", "text/plain"):
        expected = "html"
    assert sniff(b"Tides,\nand what they do.", name, kind, KNOWN) == expected


@pytest.mark.parametrize(
    ("content", "name", "kind", "expected"),
    [
        (b"plain words", "https://host.org/README.md", "text/html", "html"),
        (b"plain words", "", "text/html", "html"),
        (b"a,b", "https://host.org/export.php", "text/csv;charset=utf-8", "csv"),
        (b"a,b", "https://host.org/a.txt", "text/csv", "csv"),
        (b"a;b", "a.csv", "application/vnd.ms-excel", "csv"),
        (b"<p>shown as written", "", "text/plain", "text"),
        (b"<p>a fragment", "", "", "html"),
        (b"<p>a fragment", "a.unknown", "", "html"),
        (b"See <http://example.org/a>, or\n<mailto:a@b.org> and <a.b@c.org>, where x < 3.", "a.unknown", "", "text"),
        (b"<https://example.org/>\nis the address", "a.unknown", "", "text"),
        (b"See <http://example.org/a>,\n<b>really</b>.", "a.unknown", "", "html"),
        (b"copy <file> <output>\nwhere <file> is a path", "a.unknown", "", "text"),
        (b"<file> is a path,\n<input> another", "a.unknown", "", "text"),
        (b"a list of type List<String>,\nand x <!> y", "a.unknown", "", "text"),
        (b"words in\n<x-card>a card</x-card>", "a.unknown", "", "html"),
        (b"words beside\n<img src=a.png>", "a.unknown", "", "html"),
        (b"words,\n<br>words", "a.unknown", "", "html"),
        (b"fish &amp; chips", "", "", "html"),
        (b"<h1 align=center>A project</h1>", "README.md", "", "markdown"),
        (b"<!-- a badge --> # A project", "README.md", "", "markdown"),
        (b"<!doctype html><p>x", "README.md", "", "html"),
        (b"<!-- a page -->", "a.txt", "", "html"),
        (b"# How to begin\n\\documentclass{article}", "a.md", "", "markdown"),
        (b"From: Ann\nSubject: Tides\n\nHello", "a.txt", "", "text"),
        (b"From: Ann\nSubject: Tides\n\nHello", "a.eml", "", "eml"),
        (b"[1] A first reference\n[2] another", "", "", "text"),
        (b"{not\njson}", "", "", "text"),
        (b"one line is HTML, as cleaning writes it", "", "", "html"),
        (b"{curly} and &amp;", "", "", "html"),
        (b"@prefix is a word\nof Turtle", "", "", "text"),
        (b"Prefix codes are codes\nwithout", "a.txt", "", "text"),
        (b"<http://example.org/a> and\n<http://example.org/b>", "a.txt", "", "text"),
        (b"<> a <T> .", "a.ttl", "", "graph"),
        (b"ex:a ex:b ex:c .", "", "text/turtle", "graph"),
        (b'[{"@id": "a"}]', "a.jsonld", "", "graph"),
        (b'{"@id": "a"}', "", "application/ld+json", "graph"),
        (b"<!doctype html><p>x", "a.ttl", "", "html"),
        (b"@prefix a: <http://a.org/> .", "a.md", "", "markdown"),
        (b"Date: today\nNote: that is all\n", "", "", "text"),
    ],
)
def test_markup_and_words_keep_the_order_of_browsers(content: bytes, name: str, kind: str, expected: str) -> None:
    assert sniff(content, name, kind, KNOWN) == expected


@pytest.mark.parametrize("text", ['{"a":\n1}', "\\documentclass{article}\nx", MAIL, "two\nlines"])
def test_a_string_without_a_name_is_html_or_plain_text(text: str) -> None:
    assert sniff(text, "", "", KNOWN) == "text"
    assert sniff(text, "", "text/html", KNOWN) == "html"
    assert sniff(f"<p>{text}", "", "", KNOWN) == "html"


def test_the_media_type_decides_the_format_of_a_string() -> None:
    assert sniff("a,b", "", "text/csv", KNOWN) == "csv"
    assert sniff("<p>x", "", "text/plain", KNOWN) == "text"


def test_a_format_without_an_engine_is_refused() -> None:
    with pytest.raises(BadPage, match="a pdf file, which no format here reads"):
        sniff(b"%PDF-1.7", "a.pdf", "", {".html": "html"})
    assert sniff(b"%PDF-1.7", "a.pdf", "") == "pdf"


@pytest.mark.parametrize(
    "name", ["a.tar.gz", "/x.d/a", ".hidden", "C:\\x.y\\a.TXT", "https://a.b/", "https://a.b/c.D#e.f", ""]
)
def test_the_suffix_of_a_name(name: str) -> None:
    expected = {"a.tar.gz": ".gz", "C:\\x.y\\a.TXT": ".txt", ".hidden": ".hidden", "https://a.b/c.D#e.f": ".d"}
    assert suffix_of(name) == expected.get(name, "")


HEADS = [content for content, _ in [*BYTES.values(), *REFUSED.values()]]
HEADS += [content.encode() for content, _ in BY_CONTENT.values()]


@given(
    st.one_of(st.binary(max_size=400), st.text(max_size=300).map(lambda t: t.encode("utf-8", "surrogatepass"))),
    st.sampled_from([b"", *HEADS]),
    st.integers(0, 600),
    st.sampled_from(["", "a.html", "a.json", "a.eml", "a.tex", "a.docx", "a.md"]),
    st.sampled_from(["", "text/html", "text/plain", "application/json", "x/y", ";;"]),
)
def test_any_bytes_are_named_or_refused_at_once(tail: bytes, head: bytes, cut: int, name: str, kind: str) -> None:
    content = head[:cut] + tail

    def use() -> None:
        try:
            assert sniff(content, name, kind, KNOWN) in KNOWN.values()
        except BadPage as error:
            assert "\n" not in str(error), error  # noqa: PT017 - a refusal is a valid result

    assert within(0.5, use)


HOSTILE = {
    "brackets": b"[" * 2_000_000,
    "objects": b'{"a":' * 400_000,
    "closed": b"[" * 30_000 + b"]" * 30_000,
    "comments": b"<?xml?>" + b"<!--" * 500_000,
    "declarations": b"<?xml?><!doctype x [" + b"<!ENTITY a 'b'>" * 100_000,
    "blank": b" " * 4_000_000 + b"x",
    "percent": b"%\n" * 1_000_000,
    "zip": b"PK\x03\x04" * 500_000,
    "directory": zipped(*[f"{number}.txt" for number in range(3000)]),
    "headers": b"From: a\n" * 300_000,
    "markup": b"&" * 4_000_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["", "a.xml", "a.json", "a.tex"])
def test_hostile_bytes_are_named_in_milliseconds(content: bytes, name: str) -> None:
    def use() -> None:
        with suppress(BadPage):
            sniff(content, name, "", KNOWN)

    assert within(0.25, use)


def test_html_costs_microseconds() -> None:
    page = b"<!DOCTYPE html><html><body>" + b"<p>words</p>" * 100_000
    assert within(50e-6, lambda: sniff(page, "https://example.org/a/b", "text/html; charset=utf-8", KNOWN), tries=20)
