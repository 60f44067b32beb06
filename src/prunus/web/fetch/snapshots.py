"""Snapshots: every page read, stored by the sha256 of its content, so that citations can be checked later.

Local files are stored like fetched pages. Equal content from several URLs is stored once.
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
from ._store import CacheRow, Store, StoreInfo, page_bytes, page_fields, restore_page

DEFAULT_MAX_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Most bytes that the snapshots hold, unless configured otherwise."""

_ID: Final = re.compile(r"[0-9a-f]{64}")


class Snapshots:
    """Pages by snapshot id. Safe to use from several threads and processes.

    :param folder: folder of the file; created if missing.
    :param max_bytes: most bytes to store; the least recently used page is evicted first.
    :param clock: returns seconds since 1970.
    :raises BadInput: the folder cannot be created or written.
    """

    def __init__(
        self, folder: Path, *, max_bytes: int = DEFAULT_MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = Store(folder / "snapshots.sqlite", max_bytes, clock)

    def put(self, page: Page) -> str:
        """Store a page; return its snapshot id.

        A failure to store it (full disk, page over the limit) raises nothing: :meth:`info` counts it, and
        :meth:`get` raises for that id.
        """
        content = page_bytes(page)
        snapshot = hashlib.sha256(content).hexdigest()
        self._store.put(snapshot, page.url, page_fields(page), content)
        return snapshot

    def get(self, snapshot: str, url: str = "") -> Page:
        """Return a stored page.

        :param snapshot: the id, as in ``Citation.snapshot``.
        :param url: which of several URLs with this content; '' for the last read.
        :raises BadPage: the id is malformed, or the page is no longer stored, or damaged.
        """
        row = self._row(snapshot, url)
        content = self._store.content(row)
        if content is None:
            raise _missing(snapshot, "damaged or just evicted")
        return restore_page(row.meta, content, snapshot)

    def verify(self, snapshot: str) -> bool:
        """Tell whether a page is stored and undamaged."""
        try:
            return self._store.content(self._row(snapshot, "")) is not None
        except BadPage:
            return False

    def info(self) -> StoreInfo:
        """Return the size, path and limit of the store."""
        return self._store.info()

    def clear(self) -> int:
        """Remove all pages; return their number.

        :raises BadInput: the file is locked or cannot be written.
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
        raise _missing(snapshot, f"not stored for {url}" if rows else "not stored")


def _missing(snapshot: str, reason: str) -> BadPage:
    message = f"snapshot {snapshot[:12]}…: {reason}; read the page again, or raise the limit snapshots_mb"
    return BadPage(message, subject=snapshot)
