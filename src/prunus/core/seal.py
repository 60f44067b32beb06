"""Tell damaged data in SQLite's files from whole data: the checksum of a row, and errors that mean damage."""

from __future__ import annotations

import sqlite3
import zlib
from typing import Final

import msgspec

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


def seal(*fields: str | bytes | int | float | None, before: int = 0) -> int:
    """Return the CRC-32 of some values and their types, 0 to 2**32 - 1.

    It finds damage, not forgery: whoever can write a row can also write its seal.

    :param before: the seal of the values before these.
    """
    return zlib.crc32(msgspec.msgpack.encode(fields), before)


def is_damage(error: Exception) -> bool:
    """Tell whether an error of SQLite is about what a file holds, not about its lock, its disk or its permissions."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):  # of the caller
        return False
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGE
