"""Parses HTML with turbohtml, and decodes bytes. No other module imports the parser.

turbohtml parses by the WHATWG algorithm, in time linear in hostile input. It caps the depth of the tree at 511 levels
and keeps the text below. ``docs/lab/log.md`` has the measurement behind the choice.

Unclosed formatting elements make a DOM quadratic in the page: the parser reopens each of them in every later block
(HTML, 13.2.4.3: the list of active formatting elements), so that ``<div><i id=1>x</div><div><i id=2>x</div>...`` turns
a hundred kilobytes into millions of elements. Where that could happen, formatting elements are renamed, so that the
parser does not reopen them; :mod:`prunus.pages.clean.walk` restores their names.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, TypeAlias

import turbohtml
from turbohtml import Axis, Comment, Document, Element, Namespace, SelectorSyntaxError, ShadowRoot, Text

from ...core.errors import BadPage, LargePage
from .xhtml import declared_encoding, html_of, is_xhtml

NAMES: Final = ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
"""Formatting elements that a parser reopens. ``a`` is left out: a parser reopens one of them at most."""

FORMER: Final = {f"{name}-": name for name in NAMES}
"""The name of each formatting element in a rewritten page, and its original name."""

MOST_COPIES: Final = 2_000_000
"""Elements that a parser may add to a page: as many as a page may have tags. They take some 320 MB."""

_DEPTH: Final = 511  # the parser's limit of nesting
_ALIKE: Final = 3  # equal formatting elements that a parser reopens at most (HTML, 13.2.4.3: the Noah's Ark clause)
_NAME: Final = rf"(?i:{'|'.join(NAMES)})(?=[\s/>])"
_PLAIN_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+(?:=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+))?)*\s*"""
_START: Final = rf"(?a)<(?=[BCEFINSTUbcefinstu]){_NAME}(?:{_PLAIN_ATTRIBUTES}>)?"
_RENAMED: Final = rf"(?a)</?{_NAME}"


@cache
def _pattern(source: str, of_text: bool) -> re.Pattern[Any]:
    """Return a pattern for text or for bytes, compiled on first use."""
    return re.compile(source if of_text else source.encode())


def multiplies(page: str | bytes, tags: int) -> bool:
    """Tell whether a parser could add more than ``MOST_COPIES`` elements that are not in the page.

    Each tag may reopen three elements for each different start tag of formatting. End tags are not counted, because
    a page may hide them in comments. So a large page with hundreds of different formatting elements counts as hostile
    even if it closes them all. Renaming its elements then only changes where misnested formatting ends.

    :param page: text, or bytes in an encoding that contains ASCII.
    :param tags: number of "<" in the page.
    """
    most = min(tags // 2, _DEPTH)  # each other tag may end a block, and so reopen them once
    if most * (tags - most) <= MOST_COPIES:
        return False
    of_text = isinstance(page, str)
    starts = Counter(_pattern(_START, of_text).findall(page))
    plain = ">" if of_text else b">"  # the pattern read only the name: the attributes may differ
    # an upper bound of the elements on the parser's list
    reopened = sum(min(count, _ALIKE) if start.endswith(plain) else count for start, count in starts.items())
    return min(reopened, _DEPTH) * tags > MOST_COPIES


def renamed(page: str | bytes) -> tuple[Any, list[int]]:
    """Return a page with its formatting elements renamed, and the offsets of the hyphens that were added."""
    content: Any = page
    hyphen = "-" if isinstance(page, str) else b"-"
    parts: list[Any] = []
    places: list[int] = []
    done = 0  # end of the page's part that is copied
    for tag in _pattern(_RENAMED, isinstance(page, str)).finditer(content):
        parts += (content[done : tag.end()], hyphen)
        done = tag.end()
        places.append(done + len(places))
    return content[:0].join([*parts, content[done:]]), places


_parse: Final = partial(turbohtml.parse, allow_declarative_shadow_roots=False)  # shown by shadow.py, closed ones too
Node: TypeAlias = turbohtml.Node
MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of a page, in bytes or code points."""

MAX_TAGS: Final = 2_000_000
"""Limit of tags in a page, counted as "<". The worst page found, of one-letter elements with an attribute each, takes
1.4 GB of memory to clean; half as many tags take 1.6 GB to prune and mark."""

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
"""Control bytes that no text holds in any encoding but UTF-16: a tenth of random data. The other control bytes occur in
logs and typescripts, or switch the letters of ISO-2022."""

_ODD: Final = frozenset({"Cc", "Cn", "Co", "Cs"})  # Unicode categories that text hardly ever holds
_PLAIN_CODEC: Final = re.compile(r"(?:big5|cp|euc|gb|hz|iso|johab|koi8|latin|mac|shift|utf)[-_a-z0-9]*", re.IGNORECASE)
_PRESCAN: Final = 1024  # bytes at a page's start in which a parser looks for its charset
_SURROGATES: Final = r"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]"
_AS_MANY: Final = 1  # letters of UTF-8 for each bad byte; of Japanese and Chinese charsets at most half look so
_OTHER_NAMED: Final = 8  # where another charset is named
_WESTERN: Final = "windows-1252"
"""The charset in which letters of UTF-8 are never words: where it is detected, the page is a mixture of both."""

_STRAY: Final = re.compile("[\udc80-\udcff]")
_BAD: Final = re.compile(
    "([\udce0-\udcef][\udc80-\udcbf]|[\udcf0-\udcf4][\udc80-\udcbf]{1,2}"  # the beginning of a letter
    "|(?<![A-Z])[\udcc2-\udcd6\udcd8-\udcde](?![A-Za-z]))|[\udc80-\udcff]"
)
"""Bytes that are no UTF-8, decoded as surrogates. The group matches letters that were cut off: the first byte of one
would be a capital letter of windows-1252, which hardly ever stands alone."""

_IN_NOSCRIPT: Final = re.compile(r"<(?:/?noscript|iframe)(?=[\s/>])", re.IGNORECASE)
_LINE_END: Final = re.compile(r"\r\n?|\n")
_TAG_NAME: Final = re.compile(r"<([A-Za-z][^\t\n\f\r />]*)")

__all__ = [
    "CHILDREN", "MAX_BYTES", "MAX_TAGS", "Comment", "Document", "Element", "Namespace", "Node", "SelectorSyntaxError",
    "ShadowRoot", "Text", "check_size", "decode", "is_binary", "line_starts", "parse", "parse_with_places",
    "source_text", "tag_place", "without_surrogates",
]  # fmt: skip


def is_binary(content: bytes, charset: str = "") -> bool:
    """Tell whether ``content`` is binary data: a known binary format, or too many bytes that no text holds.

    :param charset: encoding by the transport; '' when unknown.
    """
    head = content[:_SNIFF]
    wide = charset.lower().startswith("utf-16")
    if wide or head.startswith(_WIDE_BOMS):
        big = head.startswith(_WIDE_BOMS[1]) or (wide and charset.lower().endswith("be"))
        text = head[: len(head) & ~1].decode("utf-16-be" if big else "utf-16-le", "replace")
        odd = sum(letter == "\ufffd" or (letter > "\x1f" and unicodedata.category(letter) in _ODD) for letter in text)
        if head.startswith(_WIDE_BOMS) or odd * 20 <= len(text) + 40:
            return odd * 20 > len(text) + 40  # else the transport named a wrong charset: judge the bytes
    if head.startswith(_MAGIC):
        return True
    odd_bytes = len(head) - len(head.translate(None, _CONTROLS))
    if odd_bytes * 20 > len(head) + 40:
        return True
    # stricter where it is not UTF-8: a tenth of random bytes are controls, hardly any of legacy text
    return odd_bytes * 50 > len(head) + 100 and not _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    """Tell whether the first bytes of a page are UTF-8; the last letter may be incomplete."""
    try:
        codecs.utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return False
    return True


def without_surrogates(text: str) -> str:
    """Replace surrogates, which no encoding can write: pairs by their letter, single ones by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-16-le")  # the fastest encoding that refuses surrogates
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def decode(content: bytes, charset: str = "") -> str:
    """Decode plain text: as UTF-8 where its letters are, else by BOM, the named charset, then detection."""
    if content.startswith(_WIDE_BOMS):
        return content.decode("utf-16", "replace")
    if _is_no_utf16(content, charset) or _is_called_utf8(charset):
        charset = ""
    return (
        _decode_utf8(content, _OTHER_NAMED if charset else _AS_MANY)
        or (_decode_named(content, charset) if charset else "")
        or (content.decode() if content.isascii() else _decode_utf8(content, _AS_MANY) or _decode_detected(content))
    )


def _is_no_utf16(content: bytes, charset: str) -> bool:
    """Tell whether a charset of UTF-16 is named for bytes that hold no zero, as every tag and digit would."""
    return charset.lower().startswith(("utf-16", "utf16")) and b"\0" not in content


def _is_called_utf8(charset: str) -> bool:
    """Tell whether a charset is UTF-8, by one of the names in use."""
    return charset.lower().replace("-", "").replace("_", "") in ("utf8", "utf8mb4", "unicode11utf8")


def _decode_named(content: bytes, charset: str) -> str:
    """Decode by a named charset; '' where the charset is unknown or does not fit the bytes."""
    # registers the web's charset names, by which latin-1 means windows-1252; loaded late, as few pages need it
    import_module("turbohtml.detect")
    for name in (f"whatwg-{charset}", charset):
        try:
            text = content.decode(name) if name != charset or _PLAIN_CODEC.fullmatch(name) else ""
        except (LookupError, ValueError):
            continue
        if name == charset or "\ufffd" not in text:
            return text.removeprefix("\ufeff")
    return ""


def _decode_utf8(content: bytes, share: float) -> str:
    """Decode UTF-8 with letters beyond ASCII, whatever charset is named; '' where the content is other text.

    A few bad bytes cost themselves and not the page: a stray byte of windows-1252 becomes its letter, a cut letter
    U+FFFD.

    :param share: letters beyond ASCII for each bad byte, from which on the content is UTF-8.
    """
    if content.isascii():
        return ""
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        pass
    # an emoji as two surrogates of three bytes each, as Java and MySQL write it
    content = _pattern(_SURROGATES, False).sub(
        lambda pair: (
            pair[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()
        ),
        content,
    )
    text = content.decode("utf-8", "surrogateescape")
    bad = len(_BAD.findall(text))
    letters = _STRAY.sub("", text).encode()
    weight = len(letters) - len(_STRAY.sub("", text))  # a letter of three bytes is hardly ever an accident
    if not weight or weight < share * bad:
        return ""
    return _BAD.sub(_letter_of_bad, text).removeprefix("\ufeff")


def _letter_of_bad(bad: re.Match[str]) -> str:
    """Return the letter of windows-1252 for a stray byte, and U+FFFD for a cut letter."""
    return "\ufffd" if bad[1] else bytes([ord(bad[0]) - 0xDC00]).decode("cp1252", "replace")


def _decode_detected(content: bytes) -> str:
    """Decode bytes that are not UTF-8: by another charset that the page names, else by detection from its letters."""
    from turbohtml.detect import detect  # imported here: few pages need it

    guess = detect(content)
    if guess.codec is None or guess.encoding in ("UTF-8", "UTF-8-SIG", "replacement"):
        guess = detect(b" " * _PRESCAN + content)  # out of reach of the page's wrong <meta charset>
    mixed = _decode_utf8(content, 0) if guess.encoding == _WESTERN else ""
    return mixed or content.decode(guess.codec or "latin-1")


def check_size(content: str | bytes, name: str = "page") -> None:
    """Refuse a page that is larger than ``MAX_BYTES``, before any work on it.

    :raises BadPage: the page is larger.
    """
    if len(content) > MAX_BYTES:
        size = len(content) / 1048576
        raise LargePage(
            f"{name}: {size:.0f} MiB is over the limit of {MAX_BYTES // 1048576} MiB; split the page", subject=name
        )


def parse(markup: str | bytes, charset: str = "", name: str = "page") -> Document:
    """Parse a page into a DOM; treat the DOM as immutable.

    Where unclosed formatting would make far more elements than the page holds, formatting elements are renamed; see
    :data:`prunus.pages.clean.parse.FORMER`.

    :param markup: the page; bytes are decoded by BOM, ``charset``, ``<meta>``, then detection.
    :param charset: encoding by the transport; '' when unknown.
    :param name: the page's name in errors.
    :raises BadPage: the page is empty, binary, larger than ``MAX_BYTES``, or holds more than ``MAX_TAGS`` tags.
    """
    check_size(markup, name)
    if not markup or markup.isspace():
        raise BadPage(f"{name}: the page is empty", subject=name)
    if isinstance(markup, bytes) and is_binary(markup, charset):
        raise BadPage(f"{name}: this is binary data, not an HTML page", subject=name)
    page = _searchable(markup, charset)
    if is_xhtml(page):
        markup = page = source_text(markup, charset)
    tags = _count_tags(page)
    if tags > MAX_TAGS:
        raise LargePage(f"{name}: {tags:,} tags are over the limit of {MAX_TAGS:,}; split the page", subject=name)
    if multiplies(page, tags):
        markup = renamed(page)[0]
    parsed = markup if isinstance(markup, str) else _parse_bytes(markup, charset)
    document = _parse(parsed, positions=False) if isinstance(parsed, str) else parsed
    if _has_open_frame(document):
        document = _parse(_without_frames(_decoded(markup, charset)), positions=False)
    return _with_one_root(document)


def _has_open_frame(document: Document) -> bool:
    """Tell whether an <iframe> in a <noscript> has no end, as in ``<noscript><iframe src=x /></noscript>``.

    A browser with scripts reads the noscript as one text; to this parser, the rest of the page is the frame's text.
    """
    return any("</noscript" in frame.text.lower() for frame in document.select("noscript iframe"))


def _without_frames(text: str) -> str:
    """Call the frames of noscripts ``embed``, which holds nothing; no place in the text changes."""
    inside = False

    def renamed(tag: re.Match[str]) -> str:
        nonlocal inside
        name = tag[0].lower()
        if name == "<iframe":
            return "<embed " if inside else tag[0]
        inside = name == "<noscript"
        return tag[0]

    return _IN_NOSCRIPT.sub(renamed, text)


def _with_one_root(document: Document) -> Document:
    """Move what follows ``<html>`` into its last element, where the standard puts it.

    After ``<svg><template><title></template>`` the parser has closed every element and adds the rest to the document.
    """
    result = [node for node in document.children if isinstance(node, Element | Text)]
    if len(result) > 1 and isinstance(result[0], Element):
        last = [result[0], *(child for child in result[0].children if isinstance(child, Element))][-1]
        for node in result[1:]:
            last.append(node)
    return document


def _count_tags(page: str | bytes) -> int:
    """Return the number of "<" in a page, an upper bound of its tags."""
    return page.count("<") if isinstance(page, str) else page.count(b"<")


def _searchable(markup: str | bytes, charset: str) -> str | bytes:
    """Return a page in which "<" can be searched for: decoded where it may be UTF-16."""
    return decode(markup, charset) if isinstance(markup, bytes) and b"\0" in markup else markup


def source_text(markup: str | bytes, charset: str = "") -> str:
    """Return the text of a page as the parser reads it, without byte-order mark; parsing it gives the same DOM.

    :param markup, charset: a page that :func:`parse` has accepted.
    """
    if is_xhtml(_searchable(markup, charset)):
        return html_of(_decoded(markup, charset or (declared_encoding(markup) if isinstance(markup, bytes) else "")))
    return _decoded(markup, charset)


def _decoded(markup: str | bytes, charset: str) -> str:
    if isinstance(markup, str):
        return without_surrogates(markup)
    parsed = _parse_bytes(markup, charset)
    if isinstance(parsed, str):
        return parsed
    import_module("turbohtml.detect")  # registers the web's charset names
    return markup.decode(f"whatwg-{parsed.encoding}", "replace").removeprefix("\ufeff")


def parse_with_places(text: str) -> tuple[Document, str, Sequence[int]]:
    """Parse text from :func:`source_text` with the places of its tags; formatting is renamed as in :func:`parse`.

    :returns: the document; the text that was parsed, in which :func:`tag_place` finds its elements; the offsets of the
        letters that renaming added to this text.
    """
    added: Sequence[int] = ()
    if multiplies(text, _count_tags(text)):
        text, added = renamed(text)
    document = _parse(text, positions=True)
    if _has_open_frame(document):
        text = _without_frames(text)
        document = _parse(text, positions=True)
    return _with_one_root(document), text, added


def line_starts(text: str) -> Sequence[int]:
    """Return the offset of each line of a page, as the parser counts lines."""
    return [0, *(line_end.end() for line_end in _LINE_END.finditer(text))]


def tag_place(element: Element, text: str, lines: Sequence[int]) -> int:
    """Return the end of the name in an element's start tag; -1 for an element that the parser added.

    :param text, lines: the text that was parsed, and :func:`line_starts` of it.
    """
    line, column = element.source_line, element.source_col
    if line is None or column is None or line > len(lines):
        return -1
    name = _TAG_NAME.match(text, lines[line - 1] + column)
    # the parser calls <image> img, and replaces a zero byte in a name
    if not name or name[1].lower().replace("\0", "\ufffd") not in (element.tag.lower(), "image"):
        return -1
    return name.end()


def _parse_bytes(markup: bytes, charset: str) -> Document | str:
    """Parse bytes by the charset that fits them; return their text, for parsing, where it has to be decoded before."""
    if b"\0" not in markup and not markup.isascii():
        with suppress(UnicodeDecodeError):
            return markup.decode().removeprefix("\ufeff")
    if _is_no_utf16(markup, charset):
        charset = ""
    try:
        document = _parse(markup, encoding=charset or None, detect_encoding=True, positions=False)
    except (LookupError, ValueError):  # the transport's charset is unknown: use the page's own
        document = _parse(markup, detect_encoding=True, positions=False)
    if document.encoding == "replacement":  # an encoding that browsers refuse to read
        return decode(markup, charset)
    if markup.isascii() or markup.startswith(_WIDE_BOMS):
        return document
    if document.encoding == "UTF-8":
        return _decode_utf8(markup, _AS_MANY) or _decode_detected(markup)
    guessed = document.encoding_confidence == "tentative"
    share = 0 if guessed and document.encoding == _WESTERN else _AS_MANY if guessed else _OTHER_NAMED
    text = _decode_utf8(markup, share)
    if not text and charset and not _decode_named(markup, document.encoding or ""):
        detected = _parse(markup, detect_encoding=True, positions=False)  # without the transport's charset
        if _decode_named(markup, detected.encoding or ""):
            return detected
    return text or document
