"""Convert an EPUB book to HTML, chapter by chapter."""

from __future__ import annotations

import posixpath
import re
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from ....core.types import Page
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
    for chapter in chapters:
        if chapter in archive:
            content = archive.read(chapter)
            archive.allowance.spend("items", content.count(b"<") // 2)
            parts.append(_chapter(content, styles))
            size += len(parts[-1])
            if size > MAX_BYTES:
                raise archive.fault(f"its chapters are over the limit of {MAX_BYTES >> 20} MiB; split the book")
    shown = filter(str.strip, parts)
    body = [f"<section>{with_mark(part, f'chapter-{number}')}</section>" for number, part in enumerate(shown, 1)]
    if not body:
        raise archive.fault("the EPUB book has no chapters that can be read")
    metadata = _metadata(root)
    about = {"author": metadata.get("creator", ""), "published": metadata.get("date", "")}
    body[0] = f"<style>{''.join(styles)}</style>{body[0]}" if styles else body[0]
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


def _chapter(content: bytes, styles: dict[str, None]) -> str:
    """Return the body of a chapter, rewritten so that an HTML parser reads it as XHTML means it.

    :param styles: gets the style sheets inside the chapter; chapters repeat most of them.
    """
    text = html_of(decode(content))
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
