"""The checksum of stored values, by which a damaged row is told from a whole one."""

from __future__ import annotations

import zlib

import msgspec


def seal(*fields: str | bytes | int | float | None, before: int = 0) -> int:
    """Return the CRC-32 of some values and their types, 0 to 2**32 - 1.

    It finds damage, not forgery: whoever can write a row can also write its seal.

    :param before: the seal of the values before these.
    """
    return zlib.crc32(msgspec.msgpack.encode(fields), before)
