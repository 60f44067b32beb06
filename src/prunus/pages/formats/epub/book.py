"""An EPUB book as HTML, chapter by chapter."""

from __future__ import annotations

import posixpath
import re
from html import escape
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from ....core.types import Page
from ...clean.parse import MAX_BYTES, decode
from .._common.write import document
from .._common.zip import Archive

_CONTAINER: Final = "META-INF/container.xml"
_CHAPTERS: Final = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_FONTS: Final = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Ways to obscure fonts: no words are behind them."""

_BODY: Final = re.compile(r"<body\b[^<>]*+>(.*?)(?:</body\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSED: Final = re.compile(r"<([A-Za-z][\w:-]*+)([^<>]*)/>")
_VOID: Final = frozenset("area base br col embed hr img input link meta source track wbr".split())
_INSIDE: Final = re.compile(
    r"\s(?:href|src)\s*+=\s*+(?:\"(?!https?:|mailto:)[^\"]*+\"|'(?!https?:|mailto:)[^']*+')", re.IGNORECASE
)
_MAX_CHAPTERS: Final = 5_000


def book_html(page: Page) -> str:
    """Return the document as HTML.

    :raises BadPage: see the engine.
    """
    archive = Archive(page.content, page.url, "EPUB book")
    if _CONTAINER not in archive:
        raise archive.fault("this is no EPUB book")
    roots = archive.xml(_CONTAINER).iter()
    package = next((one.get("full-path", "") for one in roots if one.tag.endswith("rootfile")), "")
    root = archive.xml(package)
    folder = posixpath.dirname(package)
    chapters = _spine(root, folder)
    if len(chapters) > _MAX_CHAPTERS:
        raise archive.fault(f"{len(chapters)} chapters are over the limit of {_MAX_CHAPTERS}")
    _refuse_protected(archive, chapters)
    parts, size = [], 0
    for chapter in chapters:
        if chapter in archive:
            parts.append(_chapter(archive.read(chapter)))
            size += len(parts[-1])
            if size > MAX_BYTES:
                raise archive.fault(f"its chapters are over the limit of {MAX_BYTES >> 20} MiB; split the book")
    body = [f"<section>{part}</section>" for part in parts if part.strip()]
    if not body:
        raise archive.fault("the EPUB book has no chapters that can be read")
    said = _metadata(root)
    about = {"author": said.get("creator", ""), "published": said.get("date", "")}
    return document(body, said.get("title", ""), said.get("language", ""), **about)


def _part(root: Element, name: str) -> Element:
    """Return a part of the package, whatever name space an old book has it in; an empty one where it is missing."""
    return next((child for child in root if child.tag.rpartition(":")[2] == name), Element(name))


def _spine(root: Element, folder: str) -> list[str]:
    """Return the parts that hold the chapters, in reading order, each once, the table of contents left out."""
    manifest: dict[str, str] = {}
    for item in _part(root, "manifest"):
        kind, navigates = item.get("media-type", ""), "nav" in item.get("properties", "").split()
        target = unquote(item.get("href", "").partition("#")[0])
        if kind in _CHAPTERS and not navigates and target and "://" not in target:
            manifest[item.get("id", "")] = posixpath.normpath(posixpath.join(folder, target))
    named = (manifest.get(one.get("idref", ""), "") for one in _part(root, "spine"))
    return list(dict.fromkeys(target for target in named if target))


def _refuse_protected(archive: Archive, chapters: list[str]) -> None:
    """Raise BadPage where chapters are encrypted: obscured fonts do not matter."""
    if "META-INF/encryption.xml" not in archive:
        return
    known = set(chapters)
    for data in archive.xml("META-INF/encryption.xml").iter():
        if not data.tag.endswith("EncryptedData"):
            continue
        method = next((one.get("Algorithm", "") for one in data.iter() if one.tag.endswith("EncryptionMethod")), "")
        target = next((one.get("URI", "") for one in data.iter() if one.tag.endswith("CipherReference")), "")
        if method not in _FONTS and unquote(target) in known:
            raise archive.fault(
                "the EPUB book is copy-protected (DRM) and cannot be read; use a copy without protection"
            )


def _chapter(content: bytes) -> str:
    """Return what stands in the body of a chapter, as HTML that a browser's parser reads as XHTML was meant."""
    first, *others = decode(content).split("<![CDATA[")
    pieces = [other.partition("]]>") for other in others]
    text = first + "".join(escape(data, quote=False) + rest for data, _, rest in pieces)
    found = _BODY.search(text)
    inner = found[1] if found else text
    return _INSIDE.sub("", _CLOSED.sub(_opened, inner))


def _opened(match: re.Match[str]) -> str:
    """Write an empty element of XHTML with an end tag: in HTML it would stay open."""
    name, attributes = match[1], match[2]
    return match[0] if name.lower() in _VOID else f"<{name}{attributes}></{name}>"


def _metadata(root: Element) -> dict[str, str]:
    """Return what the package says of the book: the first of each."""
    said: dict[str, str] = {}
    for one in _part(root, "metadata").iter():
        name = one.tag.rpartition(":")[2]
        if name in ("title", "creator", "language", "date") and one.text and name not in said:
            said[name] = " ".join(one.text.split())
    return said
