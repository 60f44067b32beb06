"""A file of named arrays, mapped into memory, with the SHA-256 of all that it holds.

    8 bytes "PRUNUS\\0" and the layout, 32 bytes SHA-256 of all after it, 8 bytes length of the description
    the description (JSON), and the arrays, one after the other, each at a multiple of 64

Such a file is derived: it can be deleted, and is made again. It is written under another name and renamed, so that a
killed writer leaves no half of one.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.files import open_regular
from .database import Damaged

_MARK: Final = b"PRUNUS\0\2"
_HEAD: Final = 48
_SUMMED: Final = 40
"""The checksum covers what lies after these bytes."""
_LEFT: Final = 86_400.0
"""Seconds after which a file that is half written has no writer any more."""
_LINE: Final = 64
"""Arrays begin at multiples of it."""


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of a file and its arrays, mapped into memory; the whole file is checked.

    :raises Damaged: the file is missing, or does not match its checksum.
    """
    try:
        with open_regular(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise Damaged("it is missing or empty", path) from error
    data = np.frombuffer(mapped, np.uint8)
    if mapped[:8] != _MARK or hashlib.sha256(data[_SUMMED:].data).digest() != mapped[8:_SUMMED]:
        raise Damaged("it does not match its checksum", path)
    length = int.from_bytes(mapped[_SUMMED:_HEAD], "little")
    description = json.loads(mapped[_HEAD : _HEAD + length])
    arrays = {}
    start = _aligned(_HEAD + length)
    for name, kind, shape in description["arrays"]:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        arrays[name] = data[start : start + size].view(kind).reshape(shape)
        start = _aligned(start + size)
    return description["state"], arrays


def write_arrays(path: Path, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays in place of the file; a process that has it open keeps the old one.

    :raises OSError: the disk is full, or the folder cannot be written.
    """
    whole = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    described = [(name, array.dtype.str, array.shape) for name, array in whole.items()]
    description = json.dumps({"state": dict(state), "arrays": described}).encode()
    _remove_left(path)
    passing = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    summed = hashlib.sha256()
    try:
        with open(passing, "wb") as file:
            file.seek(_SUMMED)
            parts: list[bytes | memoryview] = [len(description).to_bytes(8, "little") + description]
            parts += [array.data.cast("B") if array.nbytes else b"" for array in whole.values()]
            for part in parts:
                for data in (part, bytes(-(file.tell() + len(part)) % _LINE)):
                    file.write(data)
                    summed.update(data)
            file.seek(0)
            file.write(_MARK + summed.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(passing, path)
    finally:
        with suppress(OSError):
            passing.unlink(missing_ok=True)


def _remove_left(path: Path) -> None:
    """Remove what killed writers left of this file."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        with suppress(OSError):
            if left.stat().st_mtime < time.time() - _LEFT:
                left.unlink()


def _aligned(at: int) -> int:
    return -(-at // _LINE) * _LINE
