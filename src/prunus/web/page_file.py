"""One file that holds many fetched pages: a web archive (WARC) or JSON lines, with one record a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any, Final

from ..core.errors import BadInput, BadPage
from ..core.text.numbers import bounded_int
from ..core.types import Page
from ..pages.clean.parse import decode, is_binary
from .site.queue import SiteQueue
from .warc import check_package, record_of

SUFFIXES: Final = (".warc.gz", ".warc", ".jsonl")
"""Endings of the names of such files."""

_SHOWN: Final = ("url", "status", "media_type", "fetched_at", "published")
_END: Final = "end of the file"


class PageFile:
    """Writes pages one after the other; each is on the disk before the next.

    :param queue: of a site: a run that was stopped goes on behind the last whole record that it knows.
    :raises BadInput: the file cannot be written.
    :raises MissingExtra: it is a web archive, and the package that writes them is not installed.
    """

    def __init__(self, path: Path, queue: SiteQueue | None = None) -> None:
        self._path, self._queue = path, queue
        self._lines = path.name.lower().endswith(".jsonl")
        if not self._lines:
            check_package()
        known = queue.fact(_END) if queue else ""
        end, _, self._last = known.partition(" ")
        if queue and end and not path.exists():
            told = f"{path}: missing, though a run that was stopped wrote to it; to begin anew, remove {queue.path}"
            raise BadInput(told, subject=str(path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[Any] = path.open("r+b" if end else "wb")
            if end:
                self._file.truncate(bounded_int(end, 0, most=1 << 62))
                self._file.seek(0, 2)
        except OSError as error:
            raise self._error(error) from error

    def record(self, page: Page) -> bytes:
        """Return a page as a record of the file.

        :raises BadPage: the file holds text, and the page is none.
        """
        return self._line(page) if self._lines else record_of(page, self._path.name.lower().endswith(".gz"))

    def add(self, url: str, record: bytes) -> None:
        """Write the record of a page, unless it was the last one before the run was stopped.

        :raises BadInput: the file cannot be written.
        """
        if url == self._last:
            return
        try:
            self._file.write(record)
            self._file.flush()
        except OSError as error:
            raise self._error(error) from error
        if self._queue is not None:
            self._queue.put_fact(_END, f"{self._file.tell()} {url}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _line(self, page: Page) -> bytes:
        content = page.content
        if isinstance(content, bytes):
            if is_binary(content, page.charset):
                raise BadPage(
                    f"{page.url}: no text, which JSON lines cannot hold; write a web archive: -o NAME.warc.gz",
                    subject=page.url,
                )
            content = decode(content, page.charset)
        record = {name: getattr(page, name) for name in _SHOWN} | {"content": content}
        return f"{json.dumps(record, ensure_ascii=False)}\n".encode("utf-8", "replace")

    def _error(self, error: OSError) -> BadInput:
        return BadInput(f"{self._path}: cannot be written ({error.strerror})", subject=str(self._path))
