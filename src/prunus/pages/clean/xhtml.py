"""Rewrites XHTML so that an HTML parser reads it as XML means it.

An HTML parser ignores the slash of ``<script/>`` or ``<div/>`` and puts what follows inside; it ends a document type at
the first ">" and takes CDATA for a comment. Rewriting works for malformed XHTML too, and expands no entity but those
of HTML.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

_HEAD: Final = 4096
_DECLARED: Final = re.compile(r"\ufeff?\s*<\?xml\s")
_ENCODING: Final = re.compile(r"\ufeff?\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
_HTML: Final = re.compile(r"<(?:[\w-]{1,40}:)?html\b", re.IGNORECASE)
_ROOT: Final = re.compile(r"<html\b[^<>]{0,2000}\bxmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml[\"']", re.IGNORECASE)
_SWALLOWS: Final = "script|style|title|textarea|iframe|noscript|noframes|noembed|xmp|video|audio|canvas|object|select"
_SWALLOWED: Final = re.compile(rf"<(?:{_SWALLOWS})(?:\s[^<>]*)?/>")
_VOID: Final = frozenset("area base br col embed hr img input link meta source track wbr".split())
_PREFIX: Final = re.compile(
    r"\sxmlns:([\w-]{1,40})\s*=\s*[\"']http://www\.w3\.org/(?:1999/xhtml|1998/Math/MathML|2000/svg)[\"']"
)
_SUBSET: Final = re.compile(r"(<!DOCTYPE[^<>\[]*+)\[(?:[^\]\"']++|\"[^\"]*+\"|'[^']*+')*+\]\s*+>", re.IGNORECASE)
"""A document type with declarations of its own: an HTML parser would show them."""

_DIFFERENT: Final = re.compile(
    r"<!--(?:[^-]++|-(?!->))*+"
    r"|<(?:script|style)\b(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+(?<!/)>(?:[^<]++|<(?!/(?:script|style)\b))*+"
    r"|<!\[CDATA\[(?P<data>(?:[^\]]++|\](?!\]>))*+)(?:\]\]>)?"
    r"|(?P<end></(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\s*+>)"
    r"|<(?P<name>[A-Za-z][\w:.-]*+)"
    r"(?P<attrs>(?:\s++[^\s\"'<>=/]++(?:\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))?+)*+)\s*+/>"
)
"""Comments, scripts and sheets, which stay as they are; and what XML and HTML read differently."""


def is_xhtml(page: str | bytes) -> bool:
    """Tell whether a page is XHTML by its beginning: an XML declaration, or the document type and an empty element.

    Of pages without declaration only those count in which an element like ``<script/>`` would swallow what follows.
    """
    head = page[:_HEAD] if isinstance(page, str) else page[:_HEAD].decode("latin-1").removeprefix("\xef\xbb\xbf")
    if _DECLARED.match(head):
        return _HTML.search(head) is not None
    if "XHTML" not in head or not _ROOT.search(head):
        return False
    return _SWALLOWED.search(page if isinstance(page, str) else page.decode("latin-1")) is not None


def declared_encoding(page: bytes) -> str:
    """Return the encoding that an XML declaration names; '' without one."""
    found = _ENCODING.match(page[:_HEAD].decode("latin-1"))
    return found[1] if found else ""


def html_of(text: str) -> str:
    """Return XHTML as HTML: the same words, elements and attributes."""
    start = text.find("<!DOCTYPE", 0, _HEAD)
    subset = _SUBSET.match(text, start) if start >= 0 else None
    if subset:
        text = f"{text[:start]}{subset[1]}>{text[subset.end() :]}"
    for prefix in set(_PREFIX.findall(text, 0, _HEAD)):
        text = text.replace(f"<{prefix}:", "<").replace(f"</{prefix}:", "</")
    return _DIFFERENT.sub(_as_html, text)


def _as_html(match: re.Match[str]) -> str:
    if match["name"]:
        name, attrs = match["name"], match["attrs"]
        return match[0] if name.lower() in _VOID else f"<{name}{attrs}></{name}>"
    if match["data"] is not None:
        return escape(match["data"], quote=False)
    return "" if match["end"] else match[0]
