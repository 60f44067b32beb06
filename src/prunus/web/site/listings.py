"""The files in which a site lists its pages: sitemaps, feeds, llms.txt."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import urljoin

from ...core.errors import BadPage
from ...core.types import Page
from ...pages.formats._common.xml import cut_bytes, walk_xml

MOST_BYTES: Final = 50 * 1024 * 1024
"""Bytes of a file at most, unpacked, as the protocol of sitemaps says; what is behind them is not read."""

MOST_ENTRIES: Final = 50_000
"""Addresses of a file at most, as the protocol says."""

_GZIP: Final = b"\x1f\x8b"
_MARKDOWN_LINK: Final = re.compile(r"\]\(\s*<?([^\s<>()]+)")
_ADDRESS: Final = re.compile(r"^[ \t]*(https?://\S+)", re.IGNORECASE | re.MULTILINE)
_ENTRIES: Final = frozenset({"url", "sitemap", "item", "entry"})
_DATES: Final = frozenset({"lastmod", "updated", "modified"})
"""Dates of a page's last change. That of its publication (`pubDate`) says nothing about changes."""


@dataclass(slots=True)
class Listing:
    """What a file lists.

    :param pages: when each page was changed last (ISO 8601, '' where the file does not say), by address.
    :param sitemaps: further files.
    """

    pages: dict[str, str] = field(default_factory=dict)
    sitemaps: dict[str, str] = field(default_factory=dict)


def read_listing(file: Page) -> Listing:
    """Return what a sitemap (XML, text, an index of others, gzip), a feed (RSS, Atom) or an llms.txt lists.

    A file that is none of these lists nothing; of a damaged one the whole entries count.
    """
    content = file.content if isinstance(file.content, bytes) else file.content.encode("utf-8", "replace")
    if content.startswith(_GZIP):
        content = _unpacked(content)
    content = content[:MOST_BYTES]
    url = file.final_url or file.url
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):  # a page of HTML has no entries
        reader = _Entries(url)
        with suppress(BadPage):
            walk_xml(cut_bytes(content), reader, lambda fault: BadPage(f"{url}: {fault}", subject=url), doctype=True)
        return reader.listing
    text = content.decode("utf-8", "replace")
    found = [urljoin(url, target) for target in _MARKDOWN_LINK.findall(text)] or _ADDRESS.findall(text)
    return Listing(dict.fromkeys(found[:MOST_ENTRIES], ""))


def _unpacked(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(content, MOST_BYTES)
    except zlib.error:
        return b""


class _Entries:
    """Collects the entries of XML: addresses with their dates."""

    def __init__(self, base: str) -> None:
        self.listing = Listing()
        self._base = base
        self._entry = ""
        self._depth = 0
        self._address, self._date = "", ""
        self._words: list[str] = []

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        name = name.lower()
        if self._entry:
            self._depth += 1
        elif name in _ENTRIES:
            self._entry, self._depth, self._address, self._date = name, 0, "", ""
        self._words = []
        of_atom = self._entry == "entry" and name == "link" and self._depth == 1  # `content` may hold others
        if of_atom and attrs.get("rel", "alternate") == "alternate" and not self._address:
            self._address = attrs.get("href", "")

    def data(self, text: str) -> None:
        if self._entry:
            self._words.append(text)

    def end(self, name: str) -> None:
        name = name.lower()
        if not self._entry:
            return
        if self._depth == 0:
            self._close()
            return
        text = "".join(self._words).strip()
        if self._depth == 1 and name == ("link" if self._entry == "item" else "loc") and self._entry != "entry":
            self._address = self._address or text
        elif name in _DATES:
            self._date = _iso(text)
        self._depth -= 1
        self._words = []

    def _close(self) -> None:
        target = self.listing.sitemaps if self._entry == "sitemap" else self.listing.pages
        self._entry = ""
        try:
            address = urljoin(self._base, self._address.strip()) if self._address.strip() else ""
        except ValueError:
            return
        if address and len(target) < MOST_ENTRIES:
            target.setdefault(address, self._date)


def _iso(text: str) -> str:
    """Return a date of ISO 8601 as it is; '' where it is none."""
    try:
        datetime.fromisoformat(text[:40])
    except ValueError:
        return ""
    return text[:40]
