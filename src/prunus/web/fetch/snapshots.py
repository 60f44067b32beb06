"""Every page that was read, kept by the sha256 of its content, so that citations can be checked later.

Local files are kept like fetched pages. The same content read from several addresses is kept once.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...core.errors import BadPage
from ...core.types import Page
from ._store import CacheRow, Store, StoreInfo, bytes_of, known_of, page_of

DEFAULT_MAX_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Bytes that the snapshots may hold."""

_ID: Final = re.compile(r"[0-9a-f]{64}")


class Snapshots:
    """Pages by snapshot id. Safe to use from several threads and processes.

    :param folder: where the file lies; made if it is not there.
    :param max_bytes: what may be kept; the least recently used goes first.
    :param clock: seconds since 1970.
    :raises BadInput: the folder cannot be made or written.
    """

    def __init__(
        self, folder: Path, *, max_bytes: int = DEFAULT_MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = Store(folder / "snapshots.sqlite", max_bytes, clock)

    def put(self, page: Page) -> str:
        """Keep a page as it was read; return its snapshot id.

        What cannot be kept (the disk is full, the page larger than the limit) is counted in
        :meth:`info`, and :meth:`get` will say that it is not there.
        """
        content = bytes_of(page)
        snapshot = hashlib.sha256(content).hexdigest()
        self._store.put(snapshot, page.url, known_of(page), content)
        return snapshot

    def get(self, snapshot: str, url: str = "") -> Page:
        """Return a page as it was read.

        :param snapshot: the id, as in ``Citation.snapshot``.
        :param url: which of the addresses that gave this content; '' the one read last.
        :raises BadPage: it is no snapshot id, or the page is not kept any more, or damaged.
        """
        row = self._row(snapshot, url)
        content = self._store.content(row)
        if content is None:
            raise _gone(snapshot, "damaged or just evicted")
        return page_of(row.meta, content, snapshot)

    def verify(self, snapshot: str) -> bool:
        """Tell whether a page is kept and whole."""
        try:
            return self._store.content(self._row(snapshot, "")) is not None
        except BadPage:
            return False

    def info(self) -> StoreInfo:
        """Return what is kept now, where, and how much may be."""
        return self._store.info()

    def clear(self) -> int:
        """Remove everything; return how many pages there were.

        :raises BadInput: the file is busy or cannot be written.
        """
        return self._store.clear()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _row(self, snapshot: str, url: str) -> CacheRow:
        if not _ID.fullmatch(snapshot):
            raise BadPage(f"{snapshot[:80]!r}: a snapshot is 64 hexadecimal digits", subject=snapshot[:80])
        rows = self._store.rows(snapshot)
        for row in rows:
            if not url or row.variant == url:
                return row
        raise _gone(snapshot, f"not kept for {url}" if rows else "not kept")


def _gone(snapshot: str, how: str) -> BadPage:
    return BadPage(f"snapshot {snapshot[:12]}…: {how}; read the page again, or raise the limit", subject=snapshot)
