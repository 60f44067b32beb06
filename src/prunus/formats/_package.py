"""Office packages of data: a zip and its XML read under limits; no entity, no link out, nothing unpacked to disk."""

from __future__ import annotations

import io
import posixpath
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final, Protocol
from xml.parsers import expat

from ..types import Page
from ._write import bad

_MAX_MEMBERS: Final = 10_000
_CHUNK: Final = 1 << 16
_MAX_DEPTH: Final = 200
_LOCKED: Final = re.compile(r"encrypted|password", re.I)
_FAULTS: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, OSError, EOFError, ValueError, LookupError,
    OverflowError,
)  # fmt: skip
"""What reading a damaged zip raises."""


class Enough(Exception):
    """Ends the reading of a part before its end."""


class Reader(Protocol):
    """What hears the elements of a part."""

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Enter an element; its name and its attributes are without prefix."""
        ...

    def end(self, name: str) -> None:
        """Leave an element."""
        ...

    def data(self, text: str) -> None:
        """Read words."""
        ...


class Package:
    """A zip that holds a document.

    :param max_bytes: unpacked bytes of all parts that are read, together.
    :param seconds: time to read them.
    :raises BadPage: it is no zip, damaged, or holds too many members.
    """

    def __init__(self, page: Page, what: str, max_bytes: int, seconds: float) -> None:
        self._page, self._what = page, what
        self._left, self._max = max_bytes, max_bytes
        self._deadline = time.monotonic() + seconds
        content = page.content if isinstance(page.content, bytes) else b""
        if not content:
            raise bad(page, f"this is text, not {what}" if page.content else "the page is empty")
        if content.count(b"PK\x01\x02") > _MAX_MEMBERS:
            raise bad(page, f"{what} of more than {_MAX_MEMBERS:,} parts is not read")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _FAULTS as error:
            raise bad(page, f"this is not {what}, or it is damaged ({error})") from error
        self.names = {name.lstrip("/").lower(): name for name in self._zip.namelist()}

    def has(self, name: str) -> bool:
        """Tell whether a part is there; case does not matter."""
        return name.lower() in self.names

    def walk(self, name: str, reader: Reader) -> None:
        """Read a part's XML to its end, or until the reader has enough.

        :raises BadPage: it is missing, damaged, over a limit, or declares a document type.
        """
        parser = expat.ParserCreate()
        parser.buffer_text = True
        depth = 0

        def start(tag: str, attrs: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > _MAX_DEPTH:
                raise bad(self._page, f"{self._what} nested more than {_MAX_DEPTH} deep is not read")
            reader.start(tag.rpartition(":")[2], {key.rpartition(":")[2]: text for key, text in attrs.items()})

        def end(tag: str) -> None:
            nonlocal depth
            depth -= 1
            reader.end(tag.rpartition(":")[2])

        def refuse(*_: Any) -> None:
            raise bad(self._page, f"{self._what} with a document type declaration is not read")

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = reader.data, refuse
        try:
            with self._zip.open(self.names[name.lower()]) as part:
                while chunk := part.read(_CHUNK):
                    self._spend(len(chunk))
                    parser.Parse(chunk, False)
                parser.Parse(b"", True)
        except Enough:
            return
        except KeyError as error:
            raise bad(self._page, f"this is not {self._what}: it has no part {name}") from error
        except RuntimeError as error:  # how zipfile says that a part is encrypted
            why = "it is under a password" if _LOCKED.search(str(error)) else f"it cannot be unpacked ({error})"
            raise bad(self._page, f"the part {name} cannot be read: {why}") from error
        except (expat.ExpatError, *_FAULTS) as error:
            raise bad(self._page, f"the part {name} is damaged ({error})") from error

    def links(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the relationships of a part: id → (type's last word, target)."""
        folder, _, file = part.rpartition("/")
        name = f"{folder}/_rels/{file}.rels".lstrip("/")
        reader = _Links(folder)
        if self.has(name):
            self.walk(name, reader)
        return reader.found

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise bad(self._page, f"{self._what} of more than {self._max >> 20} MiB unpacked is not read")
        if time.monotonic() > self._deadline:
            raise bad(self._page, f"{self._what} took too long to read; save it in smaller parts")


class _Links:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.found: dict[str, tuple[str, str]] = {}

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        if name == "Relationship" and len(self.found) < _MAX_MEMBERS:
            target = attrs.get("Target", "")
            if attrs.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/" + self._folder, target)).lstrip("/")
            self.found[attrs.get("Id", "")] = (attrs.get("Type", "").rpartition("/")[2], target)

    def end(self, name: str) -> None: ...

    def data(self, text: str) -> None: ...
