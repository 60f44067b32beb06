"""SQLite's files: the checksum of a row, errors that mean damage, transactions, and the write-ahead log."""

from __future__ import annotations

import sqlite3
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from .errors import BadInput

ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; where its message quotes damaged bytes, the message itself cannot be decoded."""

_DAMAGE: Final = (
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_TOOBIG,
)
"""SQLite's errors about what a file holds. A missing table is one: the statements of a program are always the same."""


def checksum(*fields: str | bytes | int | float | None, before: int = 0) -> int:
    """Return the CRC-32 of some values and their types, 0 to 2**32 - 1.

    It finds damage, not forgery: whoever can write a row can also write its checksum.

    :param before: the checksum of the values before these.
    """
    return zlib.crc32(msgspec.msgpack.encode(fields), before)


def is_damage(error: Exception) -> bool:
    """Tell whether an error of SQLite is about what a file holds, not about its lock, its disk or its permissions."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):  # of the caller
        return False
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGE


def check_files(path: Path) -> None:
    """Refuse a database that is a link or a pipe: SQLite would follow it, or wait for ever.

    :raises BadInput: it is one, or a file beside it is.
    """
    for beside in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + beside)
        try:
            mode = part.lstat().st_mode
        except OSError:  # missing, or out of reach: SQLite says so
            continue
        if not stat.S_ISREG(mode):
            raise BadInput(f"{part}: no file, but a link, a pipe or a folder; remove it", subject=str(part))


def write_ahead(file: sqlite3.Connection, wait: float) -> None:
    """Switch to the write-ahead log, so that readers do not wait for a writer.

    The switch is tried again until ``wait`` seconds have passed: where two processes switch a new file at once, SQLite
    fails at once instead of waiting.
    """
    end = time.monotonic() + wait
    while True:
        try:
            file.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.02)


@contextmanager
def writing(file: sqlite3.Connection) -> Iterator[None]:
    """Hold a write transaction; the lock is taken at its begin, so a second writer waits instead of failing later."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


@contextmanager
def reading(file: sqlite3.Connection) -> Iterator[None]:
    """Hold a read transaction: all reads see one state of the file, whatever others write."""
    file.execute("BEGIN")
    try:
        yield
    finally:
        if file.in_transaction:  # SQLite ends it itself after some errors
            file.execute("ROLLBACK")
