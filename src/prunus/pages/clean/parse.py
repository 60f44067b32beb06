"""The only file that knows the HTML parser.

turbohtml parses by the WHATWG algorithm, in time linear in hostile input, and caps the depth of the
tree at 511 levels while keeping the text; see ``docs/lab/log.md`` for the measurement behind the choice.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence
from importlib import import_module
from typing import Final, TypeAlias

import turbohtml
from turbohtml import Axis, Document, Element, Text

from ...core.errors import BadPage
from .formatting import multiplies, renamed

Node: TypeAlias = turbohtml.Node
MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of markup that is read, in bytes or code points."""

MAX_TAGS: Final = 2_000_000
"""Tags that are read, counted as "<". The worst page found, one-letter elements with an attribute each, takes
1.4 GB to clean; one of half as many takes 1.6 GB to prune and mark."""

CHILDREN: Final = Axis.CHILDREN

_SNIFF: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_WIDE_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_MAGIC: Final = (
    b"%PDF-",
    b"PK\x03\x04",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"\x1f\x8b",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
    b"SQLite format 3",
    b"BZh",
    b"7z\xbc\xaf",
    b"\xfd7zXZ",
    b"RIFF",
    b"OggS",
    b"ID3",
)
_CONTROLS: Final = bytes(byte for byte in [*range(32), 127] if byte not in b"\b\t\n\f\r\x0e\x0f\x1b")
"""Bytes that no text holds in any encoding but UTF-16: a tenth of random data. The others stand in
logs, in typescripts, or switch between the letters of ISO-2022."""

_ODD: Final = frozenset({"Cc", "Cn", "Co", "Cs"})  # Unicode categories that text hardly ever holds
_PLAIN_CODEC: Final = re.compile(r"(?:big5|cp|euc|gb|hz|iso|johab|koi8|latin|mac|shift|utf)[-_a-z0-9]*", re.IGNORECASE)
_PRESCAN: Final = 1024  # bytes in which a page may name its charset
_STRAY: Final = re.compile("[\udc80-\udcff]")
_LINE_END: Final = re.compile(r"\r\n?|\n")
_TAG_NAME: Final = re.compile(r"<([A-Za-z][^\t\n\f\r />]*)")

__all__ = [
    "CHILDREN", "MAX_BYTES", "MAX_TAGS", "Document", "Element", "Node", "Text", "check_size", "decode", "is_binary",
    "line_starts", "parse", "parse_with_places", "source_text", "tag_place", "without_surrogates",
]  # fmt: skip


def is_binary(content: bytes, charset: str = "") -> bool:
    """Tell whether ``content`` is no text at all: a known binary format, or bytes that no encoding puts into text."""
    head = content[:_SNIFF]
    wide = charset.lower().startswith("utf-16")
    if wide or head.startswith(_WIDE_BOMS):
        big = head.startswith(_WIDE_BOMS[1]) or (wide and charset.lower().endswith("be"))
        text = head[: len(head) & ~1].decode("utf-16-be" if big else "utf-16-le", "replace")
        odd = sum(letter == "\ufffd" or (letter > "\x1f" and unicodedata.category(letter) in _ODD) for letter in text)
        if head.startswith(_WIDE_BOMS) or odd * 20 <= len(text) + 40:
            return odd * 20 > len(text) + 40  # else the transport was wrong, and the bytes are looked at as they are
    if head.startswith(_MAGIC):
        return True
    odd_bytes = len(head) - len(head.translate(None, _CONTROLS))
    if odd_bytes * 20 > len(head) + 40:
        return True
    # what is no UTF-8 either gets less patience: a tenth of random bytes are controls, of legacy text hardly any
    return odd_bytes * 50 > len(head) + 100 and not _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    """Tell whether the beginning of some bytes is UTF-8; its last letter may be cut in two."""
    try:
        codecs.utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return False
    return True


def without_surrogates(text: str) -> str:
    """Replace what no encoding can write: pairs of surrogates by their letter, lone ones by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-16-le")  # the quickest that refuses surrogates
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def decode(content: bytes, charset: str = "") -> str:
    """Decode plain text by BOM, the named charset, UTF-8, then by what letters it seems to hold."""
    if content.startswith(_WIDE_BOMS):
        return content.decode("utf-16", "replace")
    text = _named(content, charset) if charset else ""
    if text:
        return text
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return _mended(content) or _guessed(content)


def _named(content: bytes, charset: str) -> str:
    """Decode by a named charset; '' where that is unknown or cannot be the one of these bytes."""
    import_module(
        "turbohtml.detect"
    )  # knows the web's names, to which latin-1 is windows-1252; hardly any page needs it
    for name in (f"whatwg-{charset}", charset):
        try:
            text = content.decode(name) if name != charset or _PLAIN_CODEC.fullmatch(name) else ""
        except (LookupError, ValueError):
            continue
        if name == charset or "\ufffd" not in text:
            return text.removeprefix("\ufeff")
    return ""


def _mended(content: bytes) -> str:
    """Decode UTF-8 with stray bytes, each of them as in windows-1252; '' where the strays are more than the letters."""
    text, used = codecs.utf_8_decode(content, "surrogateescape", False)
    strays = len(_STRAY.findall(text))
    if len(text) - len(text.encode("ascii", "ignore")) <= 2 * strays or not used:
        return ""
    text = _STRAY.sub(lambda found: bytes([ord(found[0]) - 0xDC00]).decode("cp1252", "replace"), text)
    return text.removeprefix("\ufeff") + "\ufffd" * (used < len(content))  # the last letter was cut in two


def _guessed(content: bytes) -> str:
    """Decode bytes that are no UTF-8: by another charset that the page names, or by what letters it seems to hold."""
    from turbohtml.detect import detect  # here: hardly any page needs it

    found = detect(content)
    if found.codec is None or found.encoding in ("UTF-8", "UTF-8-SIG", "replacement"):
        found = detect(b" " * _PRESCAN + content)  # moved past the place where a page names its charset
    return content.decode(found.codec or "latin-1")


def check_size(content: str | bytes, name: str = "page") -> None:
    """Refuse what is larger than ``MAX_BYTES``, before any work on it.

    :raises BadPage: it is.
    """
    if len(content) > MAX_BYTES:
        size = len(content) / 1048576
        raise BadPage(
            f"{name}: {size:.0f} MiB is over the limit of {MAX_BYTES // 1048576} MiB; split the page", subject=name
        )


def parse(markup: str | bytes, charset: str = "", name: str = "page") -> Document:
    """Parse a page into a DOM that nothing here ever changes.

    Where that would make far more elements than the page holds, its formatting elements are called as
    :data:`prunus.pages.clean.formatting.FORMER` says.

    :param markup: the page; bytes are decoded by BOM, ``charset``, ``<meta>``, then detection.
    :param charset: what the transport said of the encoding, if anything.
    :param name: how errors call the page.
    :raises BadPage: empty, binary, larger than ``MAX_BYTES``, or of more than ``MAX_TAGS`` tags.
    """
    check_size(markup, name)
    if not markup or markup.isspace():
        raise BadPage(f"{name}: the page is empty", subject=name)
    if isinstance(markup, bytes) and is_binary(markup, charset):
        raise BadPage(f"{name}: this is binary data, not an HTML page", subject=name)
    page = _searchable(markup, charset)
    tags = _tags(page)
    if tags > MAX_TAGS:
        raise BadPage(f"{name}: {tags:,} tags are over the limit of {MAX_TAGS:,}; split the page", subject=name)
    if multiplies(page, tags):
        markup = renamed(page)[0]
    if isinstance(markup, str):
        return turbohtml.parse(markup, positions=False)
    document, text = _read(markup, charset)
    return turbohtml.parse(text, positions=False) if text else document


def _tags(page: str | bytes) -> int:
    """Return how many "<" a page holds."""
    return page.count("<") if isinstance(page, str) else page.count(b"<")


def _searchable(markup: str | bytes, charset: str) -> str | bytes:
    """Return a page in which tags can be looked for: decoded where it may be UTF-16."""
    return decode(markup, charset) if isinstance(markup, bytes) and b"\0" in markup else markup


def source_text(markup: str | bytes, charset: str = "") -> str:
    """Return a page as the parser reads it: decoded, without byte-order mark; parsed, it gives the same DOM.

    :param markup, charset: as for :func:`parse`, which has accepted them.
    """
    if isinstance(markup, str):
        return without_surrogates(markup)
    document, text = _read(markup, charset)
    if text:
        return text
    import_module("turbohtml.detect")  # knows the web's names
    return markup.decode(f"whatwg-{document.encoding}", "replace").removeprefix("\ufeff")


def parse_with_places(text: str) -> tuple[Document, str, Sequence[int]]:
    """Parse text that :func:`source_text` returned, by the same names as :func:`parse`.

    :returns: the document, the text that was parsed, in which :func:`tag_place` finds its elements, and where the
        letters stand that this text has more than the page.
    """
    added: Sequence[int] = ()
    if multiplies(text, _tags(text)):
        text, added = renamed(text)
    return turbohtml.parse(text, positions=True), text, added


def line_starts(text: str) -> Sequence[int]:
    """Return where each line of a page begins, as the parser counts them."""
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def tag_place(element: Element, text: str, lines: Sequence[int]) -> int:
    """Return where the name in an element's start tag ends in the text; -1 where the parser made it up.

    :param lines: what :func:`line_starts` says of the text.
    """
    line, column = element.source_line, element.source_col
    if line is None or column is None or line > len(lines):
        return -1
    found = _TAG_NAME.match(text, lines[line - 1] + column)
    if not found or found[1].lower().replace("\0", "\ufffd") not in (element.tag.lower(), "image"):
        return -1
    return found.end()


def _read(markup: bytes, charset: str) -> tuple[Document, str]:
    """Parse bytes; where they cannot be in the charset that was named, what they hold decides.

    :returns: the document, and the text that must be parsed instead of it, '' where it is right.
    """
    try:
        document = turbohtml.parse(markup, encoding=charset or None, detect_encoding=True, positions=False)
    except (LookupError, ValueError):  # a transport may name any encoding; the page itself still says more
        document = turbohtml.parse(markup, detect_encoding=True, positions=False)
    text = ""
    if document.encoding == "replacement":  # what browsers refuse to read
        text = decode(markup, charset)
    elif document.encoding == "UTF-8" and not markup.isascii():
        try:
            markup.decode()
        except UnicodeDecodeError:
            text = _mended(markup) or _guessed(markup)
    elif document.encoding_confidence == "tentative" and not markup.isascii():
        text = _mended(markup)
    elif charset and not markup.isascii() and not _named(markup, document.encoding or ""):
        other = turbohtml.parse(markup, detect_encoding=True, positions=False)  # without what the transport named
        if _named(markup, other.encoding or ""):
            return other, ""
    return document, text
