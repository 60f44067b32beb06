"""The pages of web archives: read from WARC, WET and WACZ files, with what the crawler noted of each, and written."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from ..core.errors import BadPage, MissingExtra, OutsideFailed, one_line
from ..core.installation import pip_install
from ..core.text.numbers import bounded_int
from ..core.types import Page
from .door.decode import decoder, decompress

SUFFIXES: Final = (".warc", ".warc.gz", ".warc.zst", ".wet", ".wet.gz", ".wacz")
"""Endings of the names of web archives."""

_DAMAGE: Final = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)
"""What readers of archives raise at damaged, encrypted or unknown data."""

_BEGINNINGS: Final = (b"WARC/", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How a record begins: plain, gzip, Zstandard."""

_MIB: Final = 1 << 20
_PIECE: Final = 1 << 16
_LONGEST_HEADER: Final = 1 << 16
_WRITTEN: Final = ("date", "last-modified", "etag", "content-language", "link", "x-robots-tag")
"""Heads of a response that are written beside its type; the others are of the connection, or for its cache."""

_SKIP: Final = frozenset({"warcinfo", "request", "metadata", "revisit", "continuation", "unknown", "no_type"})


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One page of an archive, or why it cannot be read.

    :param place: bytes of the archive before this record, as stored; 0 within a WACZ file, and where it is not known.
    :param id: the record's id in the archive.
    :param page: the page; None where it cannot be read.
    :param error: why not, in one line.
    :param large: whether the page is over the limit of size.
    :param last: whether nothing after this record can be read.
    """

    place: int
    url: str = ""
    id: str = ""
    page: Page | None = None
    error: str = ""
    large: bool = False
    last: bool = False


class ArchiveFile(Protocol):
    """The file of an archive that is in no folder of this machine."""

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        ...

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open it for reading; errors are an OSError."""
        ...


@dataclass(slots=True)
class WarcArchive:
    """Reads a web archive one record at a time.

    ``skipped`` counts the records that are no pages: ``type`` by their media type, ``status`` by an HTTP status that
    is not 2xx, ``revisit`` where the archive only says that a page had not changed.

    :param path: the file.
    :param max_mb: size of a page at most, in MiB, compressed and decompressed.
    :param wanted: tells whether pages of a media type are read.
    """

    path: Path | ArchiveFile
    max_mb: int
    wanted: Callable[[str], bool]
    skipped: Counter[str] = field(default_factory=Counter)

    def records(self, place: int = 0) -> Iterator[WarcRecord]:
        """Yield the pages from a place on, in the order of the archive.

        :param place: the ``place`` of an earlier record; ignored for a WACZ file.
        :raises BadPage: the file cannot be opened, or is no archive.
        :raises MissingExtra: the package that reads archives is not installed.
        """
        check_package()
        with self._opened() as file:
            if self.path.suffix.lower() != ".wacz":
                yield from self._each(file, place)
                return
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    if name.startswith("archive/") and not name.endswith("/"):
                        try:
                            member = archive.open(name)
                        except _DAMAGE as error:
                            yield WarcRecord(0, error=f"damaged archive: {name}: {one_line(str(error))}")
                            continue
                        with member:
                            yield from self._each(member, 0, inside=True)

    def begins_at(self, place: int) -> bool:
        """Tell whether a record can be read from a place on; not in an archive that was packed as one stream."""
        with self._opened() as file:
            file.seek(place)
            return file.read(5).startswith(_BEGINNINGS)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except zipfile.BadZipFile as error:
            raise BadPage(f"{self.path}: not a whole WACZ file ({error})", subject=str(self.path)) from error
        except OSError as error:
            raise BadPage(f"{self.path}: cannot be read ({error.strerror})", subject=str(self.path)) from error

    def _each(self, file: Any, start: int, inside: bool = False) -> Iterator[WarcRecord]:
        if start:
            file.seek(start)
        records = iter(_iterator(_Rest(file)))
        while True:
            try:
                record = next(records, None)
            except _DAMAGE as error:  # the archive is damaged, and where the next record begins is not known
                yield WarcRecord(0, error=f"damaged archive: {one_line(str(error))}", last=True)
                return
            if record is None:
                return
            result = self._page_of(record, 0 if inside else start + record.stream_pos)
            if result is not None:
                yield result
                if result.last:
                    return

    def _page_of(self, record: Any, place: int) -> WarcRecord | None:
        """Return the page of a record; None for a record that is no page."""
        kind = str(record.record_type)
        url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
        name = record.record_id or ""
        cut = WarcRecord(place, url, name, error="damaged archive: it ends within this record", last=True)
        try:
            if not (record.headers.get("Content-Length") or "").strip():
                return cut
            if kind in _SKIP:
                whole = record.content_length
                if kind == "revisit":
                    self.skipped["revisit"] += 1
                return None if record.reader.consume() >= whole else cut
            http = kind == "response" and url.lower().startswith("http")
            if http:
                record.parse_http()
                if not record.is_http_parsed or record.http_headers is None:
                    whole = record.content_length
                    lost = WarcRecord(place, url, name, error="a response without HTTP headers")
                    return lost if record.reader.consume() >= whole else cut
            whole = record.content_length
            if not self._is_page(record, http):
                return None if record.reader.consume() >= whole else cut
            if whole > self.max_mb * _MIB:
                return self._over(WarcRecord(place, url, name), whole)
            content = record.reader.read(whole) if whole else b""
        except _DAMAGE as error:
            return WarcRecord(place, url, name, error=f"damaged archive: {one_line(str(error))}", last=True)
        if len(content) < whole:
            return cut
        return self._decoded(WarcRecord(place, url, name), record, http, content)

    def _is_page(self, record: Any, http: bool) -> bool:
        """Tell whether a record holds a page to read; count it where it does not."""
        if http and not 200 <= (record.http_headers.status_code or 0) < 300:
            self.skipped["status"] += 1
            return False
        kind = _type_of(record, http)
        if kind and not self.wanted(kind):
            self.skipped["type"] += 1
            return False
        return True

    def _over(self, at: WarcRecord, size: int) -> WarcRecord:
        reason = f"{at.url or 'page'}: {size // _MIB} MiB is over the limit of {self.max_mb} MiB"
        return WarcRecord(at.place, at.url, at.id, error=reason, large=True)

    def _decoded(self, at: WarcRecord, record: Any, http: bool, content: bytes) -> WarcRecord:
        """Return the page of a record with its transfer and content codings undone, in bounded memory."""
        headers = record.http_headers if http else {}
        if (headers.get("Transfer-Encoding") or "").strip().lower() == "chunked":
            content = _unchunked(content)
        try:
            coding = decoder(headers.get("Content-Encoding") or "", at.url)
            if coding is not None and content:
                pieces, size = [], 0
                for start in range(0, len(content), _PIECE):
                    for piece in decompress(coding, content[start : start + _PIECE], at.url):
                        pieces.append(piece)
                        size += len(piece)
                        if size > self.max_mb * _MIB:
                            return self._over(at, size)
                content = b"".join(pieces)
        except OutsideFailed as error:
            return WarcRecord(at.place, at.url, at.id, error=one_line(str(error)))
        charset = (record.http_charset or "") if http else "utf-8" if str(record.record_type) == "conversion" else ""
        date = record.headers.get("WARC-Date") or ""
        page = Page(content, at.url, media_type=_type_of(record, http), charset=charset, fetched_at=date)
        return WarcRecord(at.place, at.url, at.id, page)


def record_of(page: Page, packed: bool) -> bytes:
    """Return a page that was fetched as a record of a WARC file, a response without the codings of its transport.

    :param packed: as a member of gzip, so that the records of a file can be read one by one.
    :raises MissingExtra: the package that writes archives is not installed.
    """
    package = _package()
    content = page.content.encode("utf-8", "replace") if isinstance(page.content, str) else page.content
    kind = page.media_type + (f"; charset={page.charset}" if page.charset else "")
    kind = "text/html; charset=utf-8" if isinstance(page.content, str) else kind
    heads = {name: page.headers[name] for name in _WRITTEN if page.headers.get(name)}
    heads |= {"content-type": kind, "content-length": str(len(content))}
    lines = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in heads.items())
    record = package.WarcRecord()
    record.init_headers(record_type=package.response)
    record.headers["WARC-Target-URI"] = page.final_url or page.url
    if page.fetched_at:
        record.headers["WARC-Date"] = page.fetched_at
    record.headers["Content-Type"] = "application/http; msgtype=response"
    record.set_bytes_content(f"HTTP/1.1 {page.status} OK\r\n{lines}\r\n".encode("utf-8", "replace") + content)
    written = io.BytesIO()
    record.write(written, checksum_data=True)
    return gzip.compress(written.getvalue(), 6, mtime=0) if packed else written.getvalue()


class _Rest:
    """The rest of a file, whose places count from 0 at its start."""

    def __init__(self, file: Any) -> None:
        self._file, self._place = file, 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data: bytes = self._file.read(size)
        self._place += len(data)
        return data

    def tell(self) -> int:
        """Return the bytes that were read."""
        return self._place


def _type_of(record: Any, http: bool) -> str:
    """Return a record's media type, as ``text/html``; '' where none is given."""
    given = record.http_content_type if http else record.headers.get("Content-Type")
    return (given or "").split(";", 1)[0].strip().lower()


def check_package() -> None:
    """Check that the package that reads archives is installed.

    :raises MissingExtra: it is not.
    """
    _package()


def _package() -> Any:
    try:
        import fastwarc.warc
    except ImportError as error:
        raise MissingExtra(
            f"web archives need the package fastwarc; run: {pip_install('warc')}", subject="fastwarc"
        ) from error
    return fastwarc.warc


def _iterator(file: Any) -> Any:
    # codings are undone here, because one damaged page would end the iteration
    return _package().ArchiveIterator(file, parse_http=False, auto_decode="none", max_header_len=_LONGEST_HEADER)


def _unchunked(content: bytes) -> bytes:
    """Undo the transfer coding of chunks; many crawlers undo it and keep the header, so other content is returned."""
    pieces: list[bytes] = []
    position = 0
    while True:
        end = content.find(b"\r\n", position, position + 1000)
        written = content[position:end].split(b";", 1)[0].decode("latin-1") if end >= 0 else ""
        size = bounded_int(written, -1, most=1 << 40, base=16)
        if size < 0 or end + 2 + size > len(content):
            return b"".join(pieces) + content[position:] if pieces else content
        if not size:
            return b"".join(pieces)
        pieces.append(content[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
