"""Find the format of a page: from its content first, then from its name, then from its media type.

For markup and text the order is that of browsers: a page sent as ``text/html`` is HTML unless its first bytes show
another format, and a page sent as ``text/plain`` is not searched for tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from ...core.errors import BadPage
from ..clean.parse import decode, is_binary
from ._kinds import kind_of_declared, kind_of_zip, refusal

_HEAD: Final = 1024
_LONG_HEAD: Final = 16_384
_PARSED: Final = 65_536  # characters; a shorter JSON text is parsed to be sure, a longer text is judged by its ends

_TAGS: Final = (
    r"<(?:!--|!doctype|/[a-z]|[a-z][\w:-]{0,40}\s[^<>]{0,200}=|(?:a|b|big|blockquote|body|br|center|code|dd|del|div|dl|dt|em"
    r"|font|h[1-6r]|head|html|i|img|ins|li|main|ol|p|pre|s|script|section|small|span|strong|style|sub|sup|table|tbody|td|tfoot"
    r"|th|thead|tr|tt|u|ul)\s{0,20}/?>)"
)
_MARKUP: Final = re.compile(_TAGS, re.I)
_MARKUP_BYTES: Final = re.compile(_TAGS.encode(), re.I)
"""A tag as pages hold it. An address or a word in angle brackets, as ``<file>`` in a manual, is none: it is text."""

_REFERENCE: Final = re.compile(r"&#?\w+;")
_REFERENCE_BYTES: Final = re.compile(rb"&#?\w+;")
_XML_ROOT: Final = re.compile(r"<(?![?!])([^\s/>]{1,200})")
_SKIPPED: Final = re.compile(
    r"\s+|<\?[^>]{0,2000}\?>|<!--.*?-->|<!doctype[^>\[]{0,2000}(?:\[.{0,8000}?\]\s*)?>", re.I | re.S
)
_FEED: Final = re.compile(r"<(?:rss|feed|rdf:rdf|opml|urlset|sitemapindex|graphml)[\s>]", re.I)
_FLAT: Final = re.compile(r"<(?:([\w.-]{1,40}):)?document\b")
_MEDIA_TYPE: Final = re.compile(r"[\s:]mimetype\s*=\s*[\"']([^\"'<>]{1,100})[\"']")
_TEX: Final = re.compile(r"^[ \t]*\\(?:documentclass|documentstyle|begin\{document\})", re.M)
_TEX_START: Final = re.compile(r"(?:[ \t]*(?:%[^\n]*)?\n)*[ \t]*\\[a-zA-Z@]")
_HEADER: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]?")
_MAIL: Final = frozenset({"received", "return-path", "message-id", "mime-version", "delivered-to", "dkim-signature"})
_LETTER: Final = frozenset({"from", "to", "subject", "date", "cc", "reply-to", "sender"})
_JSON_START: Final = re.compile(r'\{\s*(?:"|\})|\[\s*(?:[\[{"\]\d-]|true\b|false\b|null\b)')
_SUBRIP: Final = re.compile(r"1[ \t]*\r?\n[ \t]*\d\d:\d\d:\d\d[,.]\d\d\d[ \t]*-->")
_FULL: Final = r"<[a-z][a-z0-9+.-]{0,30}:[^\s<>\"{}|^`]{1,500}>"
_TURTLE: Final = re.compile(
    r"(?:\#[^\n]{0,1000}\n\s{0,100}){0,50}"
    r"(?:@(?:prefix\s{1,20}[\w.-]{0,50}:|base)\s{1,20}<"
    r"|(?i:prefix)\s{1,20}[\w.-]{0,50}:\s{1,20}<"
    r"|(?i:base)\s{1,20}<\w{1,20}:"
    rf"|(?:{_FULL}|_:\w{{1,100}})[ \t]{{1,20}}{_FULL}[ \t]{{1,20}}(?:[\"<]|_:))"
)
"""How a graph begins: the directives of Turtle, or a statement of N-Triples."""

_GRAPH_STARTS: Final = frozenset("@#<_PpBb")
_GRAPH_KEY: Final = ("@context", "@graph")
"""Keys of the outermost object of JSON that make it a graph."""

_DOCUMENTS: Final = frozenset({"pdf", "docx", "pptx", "xlsx", "odt", "ods", "epub", "sqlite"})


def sniff(content: bytes | str, name: str, media_type: str, known: Mapping[str, str] | None = None) -> str:
    """Return the name of the format engine that reads a page.

    :param content: the page's content; it decides first.
    :param name: path or address of the page, or ''; its suffix decides second.
    :param media_type: media type from the response, or ''.
    :param known: engine name by suffix (``.csv``) and by media type (``text/csv``);
        without it, names and media types are ignored.
    :raises BadPage: no format reads this kind of file; the message names the kind and the way out.
    """
    kind = media_type.split(";", 1)[0].strip().lower() if media_type else ""
    claims: Mapping[str, str] = known or {}
    if isinstance(content, bytes):
        format_name = _by_bytes(content, name)
    elif kind in claims:
        return claims[kind]  # the caller decoded the text and knows its media type
    else:
        format_name = ""
    if not format_name:
        format_name = _by_text(content, name, kind, claims)
    if format_name not in ("html", "text") and known is not None and format_name not in claims.values():
        raise _refused(name, f"this is binary data, a {format_name} file, which no format here reads")
    return format_name


def suffix_of(name: str) -> str:
    """Return the suffix of a path or an address, in lower case: ``.csv`` of ``https://host/a.csv?x=1``."""
    if "://" in name[:12]:
        name = name.split("?", 1)[0].split("#", 1)[0]
    last = name[max(name.rfind("/"), name.rfind("\\")) + 1 :]
    position = last.rfind(".")
    return last[position:].lower() if position >= 0 else ""


def _refused(name: str, reason: str) -> BadPage:
    return BadPage(f"{name or 'page'}: {reason}", subject=name)


def _by_bytes(content: bytes, name: str) -> str:
    """Return the format that the first bytes identify, or '' where the content may be text.

    :raises BadPage: no format reads this kind of file.
    """
    first = content[:1]
    if first == b"<":
        return ""
    if first == b"%" and content.startswith(b"%PDF-"):
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        format_name, reason = kind_of_zip(content)
        if reason:
            raise _refused(name, f"this is {reason}")
        return format_name
    if content.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if content.startswith(b"{\\rtf"):
        return "rtf"
    head = content[:_HEAD]
    reason = refusal(head, content)
    if reason:
        raise _refused(name, f"this is {reason}")
    return "pdf" if b"%PDF-" in head and (b"\0" in head or is_binary(content)) else ""


def _by_text(content: bytes | str, name: str, kind: str, claims: Mapping[str, str]) -> str:
    """Return the format of a page that may be text: from its beginning, its name, its media type, its tags."""
    head = _head_of(content, _HEAD)
    start = head.lstrip("\ufeff \t\r\n")
    named, header = claims.get(suffix_of(name), ""), claims.get(kind, "")
    if named in _DOCUMENTS and not _binary(content):
        named = ""  # the first bytes show no such document: mostly an error page about a missing file
    if start[:1] in _GRAPH_STARTS and _is_turtle(start, content, named, header):
        return "graph"
    if start.startswith("<"):
        format_name = _by_tag(start, content, named, header, name)
        if format_name:
            return format_name
    elif isinstance(content, bytes) or named or header:
        format_name = _by_syntax(start, content, named, header)
        if format_name:
            return format_name
    if header == "html":
        return header
    chosen = header if header and named in ("", "text") else named
    if chosen in _DOCUMENTS and not _binary(content):
        chosen = ""
    if chosen and chosen != "html":
        return chosen
    if _binary(content):
        return "html" if chosen else "text"  # the engine then raises an error that names the fault
    return "text" if not chosen and _has_no_markup(content) else "html"


def _binary(content: bytes | str) -> bool:
    return isinstance(content, bytes) and is_binary(content)


def _head_of(content: bytes | str, size: int) -> str:
    """Return the beginning as text, good enough in any encoding to find tags and keywords."""
    if isinstance(content, str):
        return content[:size]
    head = content[:size]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) & ~1].decode("utf-16", "replace")
    return head.decode("latin-1").removeprefix("\u00ef\u00bb\u00bf")


def _is_turtle(start: str, content: bytes | str, named: str, header: str) -> bool:
    """Tell whether a page begins as a graph. A string that has neither name nor media type is HTML or plain text."""
    may_be = (
        named in ("", "text", "html", "graph") and header != "html" and (isinstance(content, bytes) or named or header)
    )
    return bool(may_be and _TURTLE.match(start))


def _by_tag(start: str, content: bytes | str, named: str, header: str, name: str) -> str:
    """Return the format of a page that begins with a tag, or '' where its name must decide."""
    low = start[:16].lower()
    if header == "text" and not low.startswith("<?xml"):
        return ""
    if low.startswith(("<!doctype html", "<html")):
        return "html"
    if low.startswith("<?xml") or _is_flat(start) or (named == "xml" and low.startswith("<!")) or _FEED.match(start):
        if low.startswith("<?xml-stylesheet") and named == "html":
            return "html"
        return _by_root(_head_of(content, _LONG_HEAD).lstrip("\ufeff \t\r\n"), named, name)
    if low.startswith("<svg"):
        return "html" if "html" in (header, named) or _goes_on(content) else _by_root(start, named, name)
    if named in ("", "text", "csv", "json", "html") and low.startswith(("<head", "<body", "<!--")):
        return "html"
    return ""


def _goes_on(content: bytes | str) -> bool:
    """Tell whether something follows the last drawing of a page that begins with one."""
    text = content if isinstance(content, str) else content.decode("latin-1")
    return bool(text.lower().rpartition("</svg>")[2].strip() and "</svg>" in text.lower())


def _is_flat(text: str, place: int = 0) -> bool:
    """Tell whether the root element at a place is that of OpenDocument in one XML file."""
    root = _FLAT.match(text, place)
    return root is not None and "opendocument:xmlns:office:" in text[root.end() :].partition(">")[0]


def _by_root(start: str, named: str, name: str) -> str:
    """Return the format of XML by its root element.

    :raises BadPage: no format reads this kind of OpenDocument file.
    """
    position = 0
    while (skipped := _SKIPPED.match(start, position)) and skipped.end() > position:
        position = skipped.end()
    if _is_flat(start, position):  # OpenDocument in one XML file
        declared = _MEDIA_TYPE.search(start, position)
        format_name, reason = kind_of_declared(declared[1]) if declared else ("", "")
        if reason:
            raise _refused(name, f"this is {reason}")
        return format_name or "xml"
    root = _XML_ROOT.match(start, position)
    tag = root[1].lower() if root else ""
    if tag.rpartition(":")[2] == "html" or (not tag and named == "html"):
        return "html"
    return "graph" if tag == "graphml" else "xml"


def _by_syntax(start: str, content: bytes | str, named: str, header: str) -> str:
    """Return the format of a page without a tag at its beginning: JSON, LaTeX or a message; '' for plain text."""
    first = start[:1]
    if first in "{[" and first and header != "html" and named not in ("markdown", "latex", "csv", "notebook"):
        graph = named == "graph" or header == "graph"
        format_name = _json_kind(start, content, sure=graph or named == "json" or header == "json")
        if format_name == "json" and (graph or _is_linked_data(_head_of(content, _LONG_HEAD))):
            return "graph"
        if format_name:
            return format_name
    if first in "\\%" and first and named in ("", "text", "html", "latex"):
        head = _head_of(content, _LONG_HEAD)
        if _TEX_START.match(head.lstrip("\ufeff \r")) and _TEX.search(head):
            return "latex"
    if first in "WB1" and first and header in ("", "text"):
        if start.startswith("BEGIN:VCALENDAR"):
            return "calendar"
        if "-->" in start and (start.startswith("WEBVTT") or _SUBRIP.match(start)):
            return "subtitles"
    if first.isalpha() and (named in ("", "text", "eml") or header == "eml") and _is_message(start, named):
        return "eml"
    return ""


def _json_kind(start: str, content: bytes | str, sure: bool) -> str:
    """Return ``notebook``, ``json``, or '' for text that only begins with a bracket."""
    if not _JSON_START.match(start):
        return ""
    tail = content[-4096:]
    last = tail.rstrip()[-1:] if isinstance(tail, str) else tail.replace(b"\0", b"").rstrip()[-1:].decode("latin-1")
    closed = last in "}]" and last
    if start[0] == "{" and closed:
        ends = _head_of(content, _LONG_HEAD) + (tail if isinstance(tail, str) else tail.decode("latin-1"))
        if '"nbformat"' in ends and '"cells"' in ends:
            return "notebook"
    if sure:
        return "json"
    if not closed:
        return ""
    if len(content) > _PARSED:
        return "json" if start[0] == "{" or start[1:].lstrip()[:1] in ("{", "[", '"') else ""
    return "json" if _parses(content) else ""


def _is_linked_data(head: str) -> bool:
    """Tell whether the outermost object of JSON, or the first of its outermost list, has a key of JSON-LD."""
    if not any(key in head for key in _GRAPH_KEY):
        return False
    start = head.lstrip("\ufeff \t\r\n")
    outer, depth, position = 2 if start.startswith("[") else 1, 0, 0
    while position < len(start):
        letter = start[position]
        if letter == '"':
            end = position + 1
            while end < len(start) and start[end] != '"':
                end += 2 if start[end] == "\\" else 1
            if depth == outer and start[position + 1 : end] in _GRAPH_KEY and start[end + 1 :].lstrip()[:1] == ":":
                return True
            position = end
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            depth -= 1
            if depth < outer:
                return False
        position += 1
    return False


def _parses(content: bytes | str) -> bool:
    """Tell whether a short text is JSON, or JSON Lines."""
    try:
        text = content if isinstance(content, str) else decode(content)
        if text.lstrip().startswith("{") and "\n" in text.strip():
            first, _, rest = text.strip().partition("\n")
            if first.rstrip().endswith("}") and rest.lstrip().startswith("{"):
                json.loads(first)
                return True
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_message(start: str, named: str) -> bool:
    """Tell whether a text begins with the header of an e-mail message."""
    fields: set[str] = set()
    for number, line in enumerate(start.splitlines()):
        if not line.strip() or number > 60:
            break
        if line[0] in " \t" and number:
            continue
        if number == 0 and line.startswith("From ") and "@" in line:
            continue
        match = _HEADER.match(line)
        if not match:
            break
        fields.add(match[1].lower())
    if named == "eml":
        return bool(fields & (_MAIL | _LETTER))
    return len(fields & _MAIL) >= 1 and bool(fields & _LETTER) and len(fields & (_MAIL | _LETTER)) >= 3


def _has_no_markup(content: str | bytes) -> bool:
    """Tell whether content is several lines with neither a tag nor a character reference.

    A single line does not count: it may be HTML without tags.
    """
    if isinstance(content, str):
        return not _MARKUP.search(content) and "\n" in content.strip() and not _REFERENCE.search(content)
    return not _MARKUP_BYTES.search(content) and b"\n" in content.strip() and not _REFERENCE_BYTES.search(content)
