"""Read documents that are zip files. Every part is read within limits; nothing is unpacked to disk."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ....core.errors import BadPage
from .allowance import Allowance
from .xml import StopReading, XmlListener, count_marks, parse_xml, walk_xml

MAX_ENTRIES: Final = 10_000
MAX_TOTAL: Final = 512 * 1024 * 1024
"""Unpacked bytes of all parts together, as the zip directory states them."""

MAX_RATIO: Final = 500
"""Limit on unpacked size / packed size of a part over 1 MiB that is read.

A sheet of equal rows reaches 300, a bomb 1,000. Parts that nobody reads may have any ratio, as drawings of one colour.
"""

_SMALL: Final = 1024 * 1024
_CHUNK: Final = 1 << 16
_ENTRY: Final = b"PK\x01\x02"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FAULTS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    OverflowError,
    UnicodeError,
    KeyError,
    IndexError,
)
"""Exceptions that :mod:`zipfile` raises on damaged files."""


class Archive:
    """The parts of one document.

    A part is found by its exact name, or else by the same name in another letter case or with ``\\`` for ``/``:
    some programs write names that way.

    :param kind: the expected kind of document, for errors: ``Word document``.
    :param allowance: limits of the document; its ``bytes`` are the unpacked bytes of all parts that are read.
    :raises BadPage: the content is no zip file, is damaged or encrypted, or exceeds a limit.
    """

    def __init__(self, content: bytes | str, kind: str, allowance: Allowance) -> None:
        self.kind = kind
        self.allowance = allowance
        self._max = allowance.left["bytes"]
        if not content:
            raise self.fault(f"the page is empty; this is no {kind}")
        if isinstance(content, str) or not content.startswith((b"PK\x03\x04", _OLE)):
            raise self.fault(f"this is no {kind}")
        if content.startswith(_OLE):
            raise self.fault(
                f"this {kind} is encrypted or has an old format; save it again in a current format, without password"
            )
        self._check_count(content.count(_ENTRY))  # before zipfile reads a directory of millions of entries
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            entries = self._zip.infolist()
        except _FAULTS as error:
            raise self.fault(f"the {kind} is damaged or cut off; fetch or copy it again") from error
        self._check(entries)
        self._parts = {entry.filename: entry for entry in entries if not entry.is_dir()}
        self._folded = {_folded_name(name): entry for name, entry in self._parts.items()}

    def fault(self, reason: str) -> BadPage:
        """Return an error that names the document and the reason."""
        return self.allowance.fault(reason)

    def __contains__(self, part: str) -> bool:
        return part in self._parts or _folded_name(part) in self._folded

    def read(self, part: str) -> bytes:
        """Return the unpacked bytes of a part.

        :raises BadPage: the part is missing or damaged, or exceeds a limit.
        """
        return b"".join(self._chunks(part))

    def xml(self, part: str, *, doctype: bool = False) -> Element:
        """Return a part as an XML tree. Names carry the prefixes of :func:`.xml.parse_xml`.

        :param doctype: skip a document type that only names a file; the file is never read.
        :raises BadPage: the part is missing, is not XML, or exceeds a limit.
        """
        data = self.read(part)
        self.allowance.spend("marks", count_marks(data))
        return parse_xml(data, lambda reason: self._part_fault(part, reason), doctype=doctype)

    def walk(self, part: str, listener: XmlListener, enough: Callable[[], bool] = bool) -> None:
        """Send the XML of a part to a listener. This needs no memory for a tree, so it suits huge sheets.

        :param enough: tells whether reading may end where the limit of tags is reached; by default it may not.
        :raises BadPage: the part is missing, is not XML, or exceeds a limit.
        """

        def chunks() -> Iterator[bytes]:
            for chunk in self._chunks(part):
                tags = chunk.count(b"<")
                if enough() and tags > self.allowance.left["tags"]:
                    raise StopReading
                self.allowance.spend("tags", tags)
                yield chunk

        walk_xml(chunks(), listener, lambda reason: self._part_fault(part, reason))

    def _part_fault(self, part: str, reason: str) -> BadPage:
        return self.fault(f"its part {part[:80]!r} {reason}")

    def _chunks(self, part: str) -> Iterator[bytes]:
        """Yield the unpacked bytes of a part piece by piece, within the limits."""
        entry = self._parts.get(part) or self._folded.get(_folded_name(part))
        if entry is None:
            raise self.fault(f"the {self.kind} lacks its part {part[:80]!r}; save it again")
        if entry.file_size > _SMALL and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
            raise self.fault(
                f"a part of the {self.kind} ({part[:80]!r}) unpacks to over {MAX_RATIO} times its size; do not trust it"
            )
        if entry.file_size > self.allowance.left["bytes"]:
            raise self._too_large()
        try:
            with self._zip.open(entry) as file:
                while chunk := file.read(_CHUNK):
                    if not self.allowance.take("bytes", len(chunk)):
                        raise self._too_large()
                    if self.allowance.is_late():
                        raise self.fault(f"the {self.kind} took too long to read; split it")
                    yield chunk
        except _FAULTS as error:
            raise self.fault(f"the part {part[:80]!r} of the {self.kind} is damaged; fetch or save it again") from error

    def _too_large(self) -> BadPage:
        return self.fault(f"the {self.kind} unpacks to more than {self._max >> 20} MiB; split it")

    def _check_count(self, count: int) -> None:
        if count > MAX_ENTRIES:
            raise self.fault(f"the {self.kind} has {count} parts, over the limit of {MAX_ENTRIES}; split it")

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        """Refuse entries that no honest program writes: links, names that lead outside, duplicates, overlaps."""
        self._check_count(len(entries))
        if sum(entry.file_size for entry in entries) > MAX_TOTAL:
            raise self.fault(f"the {self.kind} unpacks to more than {MAX_TOTAL >> 20} MiB; split it")
        if len({entry.filename for entry in entries}) < len(entries):
            raise self.fault(f"the {self.kind} holds two parts of one name; save it again")
        end = 0
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            name = entry.filename[:80]
            if entry.filename.startswith(("/", "\\")) or ".." in entry.filename.replace("\\", "/").split("/"):
                raise self.fault(f"the {self.kind} holds a part whose name leads out of it ({name!r}); do not trust it")
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise self.fault(f"the {self.kind} holds a link to a file ({name!r}); do not trust it")
            if entry.flag_bits & 1:
                raise self.fault(f"the {self.kind} is encrypted; save it without its password")
            if entry.header_offset < end:
                raise self.fault(f"the {self.kind} holds parts that overlap; do not trust it")
            end = entry.header_offset + 30 + entry.compress_size  # 30 bytes: the least size of a local header


def _folded_name(name: str) -> str:
    return name.replace("\\", "/").lower()
