"""Which format a page is of: by what it holds first, then by its name, then by what the transport said.

Markup and text keep the order that browsers keep: what was sent as ``text/html`` is HTML unless its first
bytes are those of something else, and what was sent as ``text/plain`` is not searched for tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from ...core.errors import BadPage
from ..clean.parse import decode, is_binary
from ._kinds import kind_of_zip, refusal

_HEAD: Final = 1024
_LONG_HEAD: Final = 16_384
_PARSED: Final = 65_536  # a JSON text up to this size is parsed to be sure, a longer one is judged by its ends

_REFERENCE: Final = re.compile(r"&#?\w+;")
_REFERENCE_BYTES: Final = re.compile(rb"&#?\w+;")
_XML_ROOT: Final = re.compile(r"<(?![?!])([^\s/>]{1,200})")
_SKIPPED: Final = re.compile(
    r"\s+|<\?[^>]{0,2000}\?>|<!--.*?-->|<!doctype[^>\[]{0,2000}(?:\[.{0,8000}?\]\s*)?>", re.I | re.S
)
_FEED: Final = re.compile(r"<(?:rss|feed|rdf:rdf|opml|urlset|sitemapindex)[\s>]", re.I)
_TEX: Final = re.compile(r"^[ \t]*\\(?:documentclass|documentstyle|begin\{document\})", re.M)
_TEX_START: Final = re.compile(r"(?:[ \t]*(?:%[^\n]*)?\n)*[ \t]*\\[a-zA-Z@]")
_HEADER: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]?")
_MAIL: Final = frozenset({"received", "return-path", "message-id", "mime-version", "delivered-to", "dkim-signature"})
_LETTER: Final = frozenset({"from", "to", "subject", "date", "cc", "reply-to", "sender"})
_JSON_START: Final = re.compile(r'\{\s*(?:"|\})|\[\s*(?:[\[{"\]\d-]|true\b|false\b|null\b)')
_DOCUMENTS: Final = frozenset({"pdf", "docx", "pptx", "xlsx", "odt", "ods", "epub", "sqlite"})


def sniff(content: bytes | str, name: str, media_type: str, known: Mapping[str, str] | None = None) -> str:
    """Return the name of the format engine that reads a page.

    :param content: the page; what it holds decides first.
    :param name: its path or address, '' when it has none; its suffix decides second.
    :param media_type: what the transport said, '' when it said nothing.
    :param known: engine by suffix (``.csv``) and by media type (``text/csv``), as the engines claim them;
        without it, names and media types decide nothing.
    :raises BadPage: a kind of file that no format reads; the message names it and the way out.
    """
    kind = media_type.split(";", 1)[0].strip().lower() if media_type else ""
    claims: Mapping[str, str] = known or {}
    if isinstance(content, bytes):
        found = _by_bytes(content, name)
    elif kind in claims:
        return claims[kind]  # decoded by somebody who knows what it is
    else:
        found = ""
    if not found:
        found = _by_text(content, suffix_of(name), kind, claims)
    if found not in ("html", "text") and known is not None and found not in claims.values():
        raise _refused(name, f"this is binary data, a {found} file, which no format here reads")
    return found


def suffix_of(name: str) -> str:
    """Return the suffix of a path or an address, in lower case: ``.csv`` of ``https://host/a.csv?x=1``."""
    if "://" in name[:12]:
        name = name.split("?", 1)[0].split("#", 1)[0]
    last = name[max(name.rfind("/"), name.rfind("\\")) + 1 :]
    place = last.rfind(".")
    return last[place:].lower() if place >= 0 else ""


def _refused(name: str, why: str) -> BadPage:
    return BadPage(f"{name or 'page'}: {why}", subject=name)


def _by_bytes(content: bytes, name: str) -> str:
    """Return the format that the first bytes name, '' where they may be text.

    :raises BadPage: a kind that is not read.
    """
    first = content[:1]
    if first == b"<":
        return ""
    if first == b"%" and content.startswith(b"%PDF-"):
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        found, why = kind_of_zip(content)
        if why:
            raise _refused(name, f"this is {why}")
        return found
    if content.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if content.startswith(b"{\\rtf"):
        return "rtf"
    head = content[:_HEAD]
    why = refusal(head, content)
    if why:
        raise _refused(name, f"this is {why}")
    return "pdf" if b"%PDF-" in head and (b"\0" in head or is_binary(content)) else ""


def _by_text(content: bytes | str, suffix: str, kind: str, claims: Mapping[str, str]) -> str:
    """Return the format of what may be text: by its beginning, its name, its media type, its tags."""
    head = _head_of(content, _HEAD)
    start = head.lstrip("\ufeff \t\r\n")
    named, header = claims.get(suffix, ""), claims.get(kind, "")
    if named in _DOCUMENTS and not _binary(content):
        named = ""  # its first bytes would have said so: a page about a missing file, most of the time
    if start.startswith("<"):
        found = _by_tag(start, content, named, header)
        if found:
            return found
    elif isinstance(content, bytes) or named or header:
        found = _by_syntax(start, content, named, header)
        if found:
            return found
    if header == "html":
        return header
    chosen = header if header and named in ("", "text") else named
    if chosen in _DOCUMENTS and not _binary(content):
        chosen = ""
    if chosen and chosen != "html":
        return chosen
    if _binary(content):
        return "html" if chosen else "text"  # whose engine says what is wrong with it
    return "text" if not chosen and _has_no_markup(content) else "html"


def _binary(content: bytes | str) -> bool:
    return isinstance(content, bytes) and is_binary(content)


def _head_of(content: bytes | str, size: int) -> str:
    """Return the beginning as text, whatever its encoding; enough to see tags and keywords."""
    if isinstance(content, str):
        return content[:size]
    head = content[:size]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) & ~1].decode("utf-16", "replace")
    return head.decode("latin-1").removeprefix("\u00ef\u00bb\u00bf")


def _by_tag(start: str, content: bytes | str, named: str, header: str) -> str:
    """Return the format of what begins with a tag, '' where its name must decide."""
    low = start[:16].lower()
    if header == "text" and not low.startswith("<?xml"):
        return ""
    if low.startswith(("<!doctype html", "<html")):
        return "html"
    if low.startswith("<?xml") or (named == "xml" and low.startswith("<!")) or _FEED.match(start):
        if low.startswith("<?xml-stylesheet") and named == "html":
            return "html"
        return _by_root(_head_of(content, _LONG_HEAD).lstrip("\ufeff \t\r\n"), named)
    if low.startswith("<svg"):
        return "html" if header == "html" else _by_root(start, named)
    if named in ("", "text", "csv", "json", "html") and low.startswith(("<head", "<body", "<!--")):
        return "html"
    return ""


def _by_root(start: str, named: str) -> str:
    """Return the format of XML by its root element."""
    place = 0
    while (skipped := _SKIPPED.match(start, place)) and skipped.end() > place:
        place = skipped.end()
    root = _XML_ROOT.match(start, place)
    tag = root[1].lower() if root else ""
    if tag == "html" or (not tag and named == "html"):
        return "html"
    return "xml"


def _by_syntax(start: str, content: bytes | str, named: str, header: str) -> str:
    """Return the format of what holds no tag at its beginning: JSON, LaTeX, a message; '' for plain text."""
    first = start[:1]
    if first in "{[" and first and header != "html" and named not in ("markdown", "latex", "csv", "notebook"):
        found = _json_kind(start, content, sure=named == "json" or header == "json")
        if found:
            return found
    if first in "\\%" and first and named in ("", "text", "html", "latex"):
        head = _head_of(content, _LONG_HEAD)
        if _TEX_START.match(head.lstrip("\ufeff \r")) and _TEX.search(head):
            return "latex"
    if first.isalpha() and (named in ("", "text", "eml") or header == "eml") and _is_message(start, named):
        return "eml"
    return ""


def _json_kind(start: str, content: bytes | str, sure: bool) -> str:
    """Tell JSON from text that begins with a bracket, and a notebook from other JSON."""
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


def _parses(content: bytes | str) -> bool:
    """Tell whether a short text is JSON, or one JSON object a line."""
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
    """Tell whether a text begins with the header of a message."""
    seen: set[str] = set()
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
        seen.add(match[1].lower())
    if named == "eml":
        return bool(seen & (_MAIL | _LETTER))
    return len(seen & _MAIL) >= 1 and bool(seen & _LETTER) and len(seen & (_MAIL | _LETTER)) >= 3


def _has_no_markup(content: str | bytes) -> bool:
    """Tell whether content is lines with neither a tag nor a character reference: plain text without a name.

    One line may as well be HTML, as cleaning writes it.
    """
    if isinstance(content, str):
        return "<" not in content and "\n" in content.strip() and not _REFERENCE.search(content)
    return b"<" not in content and b"\n" in content.strip() and not _REFERENCE_BYTES.search(content)
