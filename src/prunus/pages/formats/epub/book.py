"""Convert an EPUB book to HTML, chapter by chapter."""

from __future__ import annotations

import posixpath
import re
from html import escape, unescape
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from ....core.errors import BadPage
from ....core.types import Page
from ...clean.cascade import MAX_CSS
from ...clean.parse import MAX_BYTES, decode
from ...clean.xhtml import html_of
from .._common.allowance import Allowance
from .._common.write import document, with_mark
from .._common.zip import Archive

_CONTAINER: Final = "META-INF/container.xml"
_CHAPTERS: Final = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "image/svg+xml")
_FONTS: Final = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Methods that obscure fonts. They protect no text, so they are no reason to refuse a book."""

_BODY: Final = re.compile(r"<body\b[^<>]*+>(.*?)(?:</body\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_DRAWN: Final = re.compile(r"<(?:[\w-]{1,20}:)?text[\s>]")
_DRAWING: Final = re.compile(r"<(/?)(?:[\w-]{1,20}:)?(svg|text|tspan|image)(?=[\s>/])([^<>]*+)>")
_NEW_LINE: Final = re.compile(r"\s(?:x|y|dy)=")
_INSTEAD: Final = {"svg": "div", "text": "p", "tspan": "span"}
_INTERNAL_LINK: Final = re.compile(
    r"\s(?:href|src)\s*+=\s*+(?:\"(?!https?:|mailto:)[^\"]*+\"|'(?!https?:|mailto:)[^']*+')", re.IGNORECASE
)
_NOTE_MARK: Final = re.compile(r"<a\b[^<>]*?\b(?:epub:type|role)\s*=\s*[\"'][\w\s-]*noteref[^<>]*>", re.IGNORECASE)
_STYLE: Final = re.compile(r"<style\b[^<>]*+>([^<]*+)</style", re.IGNORECASE)
_LINK: Final = re.compile(r"<link\b([^<>]*+)>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"\s(rel|href|media)\s{0,9}=\s{0,9}(?:\"([^\"]*+)\"|'([^']*+)')", re.IGNORECASE)
_CLASSED: Final = re.compile(r"\sclass\s{0,9}=", re.IGNORECASE)
_MAX_HEAD: Final = 100_000  # letters of a chapter before its body, where style sheets are linked
_MAX_CHAPTERS: Final = 5_000


def book_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: as :meth:`.engine.Engine.to_html`.
    """
    archive = Archive(page.content, "EPUB book", Allowance(page.url))
    if _CONTAINER not in archive:
        raise archive.fault("this is no EPUB book")
    roots = archive.xml(_CONTAINER).iter()
    package = next((element.get("full-path", "") for element in roots if element.tag.endswith("rootfile")), "")
    root = archive.xml(package)
    folder = posixpath.dirname(package)
    chapters = _spine(root, folder)
    if len(chapters) > _MAX_CHAPTERS:
        raise archive.fault(f"{len(chapters)} chapters are over the limit of {_MAX_CHAPTERS}; split the book")
    _refuse_protected(archive, chapters)
    parts, size = [], 0
    styles: dict[str, None] = {}  # what a chapter's style hides, no reader sees
    linked: list[dict[tuple[str, str], None]] = []  # of each chapter that may be styled
    for chapter in chapters:
        if chapter in archive:
            content = archive.read(chapter)
            archive.allowance.spend("items", content.count(b"<") // 2)
            text = html_of(decode(content))
            parts.append(_chapter(text, styles))
            if _CLASSED.search(text):
                linked.append(_linked_sheets(text, chapter))
            size += len(parts[-1])
            if size > MAX_BYTES:
                raise archive.fault(f"its chapters are over the limit of {MAX_BYTES >> 20} MiB; split the book")
    shown = filter(str.strip, parts)
    body = [f"<section>{with_mark(part, f'chapter-{number}')}</section>" for number, part in enumerate(shown, 1)]
    if not body:
        raise archive.fault("the EPUB book has no chapters that can be read")
    metadata = _metadata(root)
    about = {"author": metadata.get("creator", ""), "published": metadata.get("date", "")}
    inside = "".join(styles)
    sheets = _shared_sheets(archive, linked, MAX_CSS - len(inside))
    body[0] = f"{sheets}<style>{inside}</style>{body[0]}" if styles else sheets + body[0]
    return document(body, metadata.get("title", ""), metadata.get("language", ""), **about)


def _part(root: Element, name: str) -> Element:
    """Return a child of the package element; an empty element where it is missing.

    The prefix is ignored, because old books use other name spaces.
    """
    return next((child for child in root if child.tag.rpartition(":")[2] == name), Element(name))


def _spine(root: Element, folder: str) -> list[str]:
    """Return the parts that hold chapters, in reading order, each once, without the table of contents."""
    manifest: dict[str, str] = {}
    for item in _part(root, "manifest"):
        kind, navigates = item.get("media-type", ""), "nav" in item.get("properties", "").split()
        target = unquote(item.get("href", "").partition("#")[0])
        if kind in _CHAPTERS and not navigates and target and "://" not in target:
            manifest[item.get("id", "")] = posixpath.normpath(posixpath.join(folder, target))
    targets = (manifest.get(item.get("idref", ""), "") for item in _part(root, "spine"))
    return list(dict.fromkeys(target for target in targets if target))


def _refuse_protected(archive: Archive, chapters: list[str]) -> None:
    """Raise :class:`BadPage` where chapters are encrypted. Obscured fonts do not matter."""
    if "META-INF/encryption.xml" not in archive:
        return
    known = set(chapters)
    for data in archive.xml("META-INF/encryption.xml").iter():
        if not data.tag.endswith("EncryptedData"):
            continue
        method = next((part.get("Algorithm", "") for part in data.iter() if part.tag.endswith("EncryptionMethod")), "")
        target = next((part.get("URI", "") for part in data.iter() if part.tag.endswith("CipherReference")), "")
        if method not in _FONTS and unquote(target) in known:
            raise archive.fault(
                "the EPUB book is copy-protected (DRM) and cannot be read; use a copy without protection"
            )


def _linked_sheets(text: str, chapter: str) -> dict[tuple[str, str], None]:
    """Return the style sheets that a chapter links, in order, as (part, media)."""
    found: dict[tuple[str, str], None] = {}
    for link in _LINK.findall(text, 0, min(text.find("<body") % (len(text) + 1), _MAX_HEAD)):
        said = {name.lower(): double or single for name, double, single in _ATTRIBUTE.findall(link)}
        target = unquote(unescape(said.get("href", "")).partition("#")[0])
        if said.get("rel", "").strip().lower() == "stylesheet" and target and "://" not in target:
            part = posixpath.normpath(posixpath.join(posixpath.dirname(chapter), target))
            found[part, unescape(said.get("media", ""))] = None
    return found


def _shared_sheets(archive: Archive, linked: list[dict[tuple[str, str], None]], room: int) -> str:
    """Return the style sheets that all chapters link, since the same class may mean something else in another sheet.

    :param room: letters that they may have; of more, none is read.
    """
    shared = linked[0] if linked else {}
    styles = ""
    for part, media in shared:
        if part not in archive or not all((part, media) in sheets for sheets in linked):
            continue
        try:
            css = decode(archive.read(part))
        except BadPage:  # the chapters are whole without it
            continue
        room -= len(css)
        if room < 0:
            return ""
        if "<" not in css:
            styles += f'<style media="{escape(media)}">{css}</style>'
    return styles


def _chapter(text: str, styles: dict[str, None]) -> str:
    """Return the body of a chapter, rewritten so that an HTML parser reads it as XHTML means it.

    :param text: the chapter as HTML.
    :param styles: gets the style sheets inside the chapter; chapters repeat most of them.
    """
    body = _BODY.search(text)
    if body:
        styles.update(dict.fromkeys(_STYLE.findall(text, 0, body.start())))
    inner = body[1] if body else text
    if _DRAWN.search(inner):  # a page that is drawn: HTML cleaning drops drawings
        inner = _DRAWING.sub(_without_drawing, inner)
    return _NOTE_MARK.sub('<a role="doc-noteref" href="#note">', _INTERNAL_LINK.sub("", inner))


def _without_drawing(match: re.Match[str]) -> str:
    """Write a piece of text in a drawing as a paragraph. Its parts with a place of their own are words of their own."""
    name = _INSTEAD.get(match[2], "")
    apart = " " if name == "span" and _NEW_LINE.search(match[3]) else ""
    return f"{apart}<{match[1]}{name}>" if name else ""


def _metadata(root: Element) -> dict[str, str]:
    """Return title, creator, language and date of the book: the first value of each."""
    metadata: dict[str, str] = {}
    for element in _part(root, "metadata").iter():
        name = element.tag.rpartition(":")[2]
        if name in ("title", "creator", "language", "date") and element.text and name not in metadata:
            metadata[name] = " ".join(element.text.split())
    return metadata
