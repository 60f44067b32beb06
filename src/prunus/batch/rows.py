"""The pages of a batch on their way: a row is one page of a source, a part is a run of rows that is done as one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["files", "jobs", "jsonl", "parquet", "urls", "warc"]
"""What a source is: documents, lines with a job each, rows of JSON lines or Parquet, addresses, a web archive."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where in a source reading can begin.

    :param record: number of the row that comes next, from 1.
    :param position: the bytes, or rows, of the source before it, as its reader counts.
    """

    record: int = 1
    position: int = 0


START = Mark()


@dataclass(frozen=True, slots=True)
class BatchSource:
    """One input of a batch, read by one reader from its beginning to its end.

    :param name: how messages and records name it: its path.
    :param stamp: digest of the size and the time of change of its files; another stamp means another content.
    :param size: bytes in all.
    :param files: the documents of a source of the kind ``files``; else empty.
    """

    name: str
    kind: Kind
    stamp: str
    size: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One page or job to work on.

    :param record: its number in the source, from 1: the line, the row, the page.
    :param id: the page's own name; of a job its id as JSON.
    :param content: the page, or the line of a job; None where ``path`` or ``fetch`` says where it is.
    :param path: the file that holds the page.
    :param fetch: whether the page is to be fetched from ``url``.
    :param question: a question of its own; '' for that of the batch.
    :param error: why there is no page, in one line; ``kind`` is then the kind of failure.
    """

    record: int
    url: str = ""
    id: str = ""
    content: bytes | str | None = None
    media_type: str = ""
    charset: str = ""
    path: str = ""
    fetch: bool = False
    question: str = ""
    error: str = ""
    kind: str = ""

    @property
    def size(self) -> int:
        """Bytes or letters in memory."""
        return len(self.content or "")

    def named(self) -> dict[str, Any]:
        """Return what a record says of its row."""
        return {"record": self.record, "id": self.id, "url": self.url or self.path}


@dataclass(frozen=True, slots=True)
class Part:
    """A run of rows of one source, the unit that is written, and skipped by a later run, as a whole.

    :param source: number of the source in the batch, from 0.
    :param number: number of the part in its source, from 0.
    :param end: where the next part begins; None after the last one.
    :param skipped: records between these rows that are no pages, by reason.
    """

    source: int
    number: int
    name: str
    rows: tuple[Row, ...]
    end: Mark | None
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, int]:
        """Number of the source, and of the part in it."""
        return self.source, self.number


def digest_of(data: bytes) -> bytes:
    """Return the BLAKE2 digest of bytes, 16 bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()
