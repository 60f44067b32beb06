"""The only file that knows the HTML parser.

turbohtml parses by the WHATWG algorithm, in time linear in hostile input, and caps the depth of the
tree at 511 levels while keeping the text; see ``docs/log.md`` for the measurement behind the choice.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import turbohtml
from turbohtml import Document, Element, Text

from ..errors import BadPage

Node: TypeAlias = turbohtml.Node

MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of markup that is accepted, in bytes or code points."""

_SNIFF: Final = 4096
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
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

__all__ = ["MAX_BYTES", "Document", "Element", "Node", "Text", "is_binary", "parse"]


def is_binary(content: bytes) -> bool:
    """Tell whether ``content`` is no text at all: a known binary format, or full of NUL bytes."""
    head = content[:_SNIFF]
    if head.startswith(_BOMS):
        return False
    return head.startswith(_MAGIC) or head.count(0) * 20 > len(head)


def parse(markup: str | bytes, charset: str = "", name: str = "page") -> Document:
    """Parse a page into a DOM that nothing here ever changes.

    :param markup: the page; bytes are decoded by BOM, ``charset``, ``<meta>``, then detection.
    :param charset: what the transport said of the encoding, if anything.
    :param name: how errors call the page.
    :raises BadPage: empty, binary, or larger than ``MAX_BYTES``.
    """
    if len(markup) > MAX_BYTES:
        size = len(markup) / 1048576
        raise BadPage(
            f"{name}: {size:.0f} MiB is over the limit of {MAX_BYTES // 1048576} MiB; split the page", subject=name
        )
    if not markup or markup.isspace():
        raise BadPage(f"{name}: the page is empty", subject=name)
    if isinstance(markup, bytes):
        if is_binary(markup):
            raise BadPage(f"{name}: this is binary data, not an HTML page", subject=name)
        try:
            return turbohtml.parse(markup, encoding=charset or None, detect_encoding=True, positions=False)
        except LookupError:  # a transport may name any encoding; the page itself still says more
            return turbohtml.parse(markup, detect_encoding=True, positions=False)
    return turbohtml.parse(markup, positions=False)
