"""A file of named arrays that is mapped into memory and checked block by block, when a block is first used.

    8 bytes "PRUNUS\\0" and the layout, 8 bytes length of the description, 4 bytes its CRC-32, the description (JSON)
    the arrays, one after the other, each at a multiple of 64
    the CRC-32 of every block of :data:`BLOCK` bytes of the arrays, uint32; the description has the CRC-32 of these

Such a file is derived: it can be deleted, and is made again. It is written under another name and renamed, so that a
killed writer leaves no half of one.
"""

from __future__ import annotations

import json
import mmap
import os
import time
import uuid
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints
from ...seals import Damaged

BLOCK: Final = 1 << 16
"""Bytes under one checksum."""
_MARK: Final = b"PRUNUS\0\1"
_HEAD: Final = 20
_LEFT: Final = 86_400.0
"""Seconds after which a file that is half written has no writer any more."""
_LINE: Final = 64
"""Arrays begin at multiples of it."""


class Arrays:
    """The arrays of one file; threads may share it.

    :param path: the file.
    :raises Damaged: the file is missing, cut off, or its description does not match its checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._bytes = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        except (OSError, ValueError) as error:
            raise Damaged("it is missing or empty", path) from error
        head = self._bytes[:_HEAD].tobytes()
        length = int.from_bytes(head[8:16], "little")
        described = self._bytes[_HEAD : _HEAD + min(length, 1 << 26)].tobytes()
        if (
            head[:8] != _MARK
            or not length
            or len(described) != length
            or zlib.crc32(described) != int.from_bytes(head[16:20], "little")
        ):
            raise Damaged("its description does not match its checksum", path)
        about = json.loads(described)
        self.state: dict[str, Any] = about["state"]
        self._places: dict[str, tuple[str, list[int], int]] = {name: tuple(at) for name, at in about["arrays"].items()}
        self._start, self._end = _aligned(_HEAD + length), int(about["end"])
        seals = self._bytes[self._end :]
        if len(seals) != 4 * -(-(self._end - self._start) // BLOCK) or zlib.crc32(seals.data) != about["seals"]:
            raise Damaged("its checksums are damaged, or it is cut off", path)
        self._seals = np.frombuffer(seals.tobytes(), "<u4")
        self._whole = np.zeros(len(self._seals), bool)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, all of it checked.

        :raises Damaged: a block does not match its checksum.
        """
        found, at = self._array(name)
        self._check(np.arange((at - self._start) // BLOCK, -(-(at + found.nbytes - self._start) // BLOCK)))
        return found

    def part(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Return a slice along the first axis, checked."""
        found, at = self._array(name)
        row = found.nbytes // max(1, len(found))
        first = at - self._start + start * row
        self._check(np.arange(first // BLOCK, -(-(first + (stop - start) * row) // BLOCK)))
        return found[start:stop]

    def _array(self, name: str) -> tuple[NDArray[Any], int]:
        kind, shape, at = self._places[name]
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        return self._bytes[at : at + size].view(kind).reshape(shape), at

    def _check(self, blocks: Ints) -> None:
        for number in blocks[~self._whole[blocks]].tolist():
            first = self._start + number * BLOCK
            if zlib.crc32(self._bytes[first : min(self._end, first + BLOCK)].data) != int(self._seals[number]):
                raise Damaged(f"its block {number} does not match its checksum", self.path)
            self._whole[number] = True

    def check(self) -> None:
        """Check every block.

        :raises Damaged: a block does not match its checksum.
        """
        self._check(np.arange(len(self._seals)))


def write_arrays(path: Path, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays in place of the file; a process that has it open keeps the old one.

    :raises OSError: the disk is full, or the folder cannot be written.
    """
    kinds = {name: array.dtype.newbyteorder("<").str for name, array in arrays.items()}
    # the places are in the description, whose length moves them: a first description of zeros has at least its length
    blank = {name: [kinds[name], list(array.shape), 10**15] for name, array in arrays.items()}
    length = len(_described(state, blank, 10**15, 10**10))
    at = _aligned(_HEAD + length)
    start = at
    places: dict[str, tuple[str, list[int], int]] = {}
    for name, array in arrays.items():
        places[name] = (kinds[name], list(array.shape), at)
        at = _aligned(at + array.nbytes)
    _remove_left(path)
    passing = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    try:
        with open(passing, "w+b") as file:
            file.truncate(start)
            for name, array in arrays.items():
                file.seek(places[name][2])
                file.write(np.ascontiguousarray(array, kinds[name]).data.cast("B") if array.nbytes else b"")
            file.truncate(at)
            file.flush()
            seals = _sealed(file.fileno(), start, at)
            described = _described(state, places, at, zlib.crc32(seals)).ljust(length)
            file.seek(at)
            file.write(seals)
            file.seek(0)
            head = _MARK + length.to_bytes(8, "little") + zlib.crc32(described).to_bytes(4, "little")
            file.write(head + described)
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


def _described(state: Mapping[str, Any], places: Mapping[str, Any], end: int, seals: int) -> bytes:
    return json.dumps({"state": dict(state), "arrays": places, "end": end, "seals": seals}).encode()


def _sealed(file: int, start: int, end: int) -> bytes:
    """Return the checksums of the blocks of a file between two places."""
    if start == end:
        return b""
    with mmap.mmap(file, end, access=mmap.ACCESS_READ) as held:
        whole = np.frombuffer(held, np.uint8)
        found = [zlib.crc32(whole[at : min(end, at + BLOCK)].data) for at in range(start, end, BLOCK)]
        del whole
    return np.asarray(found, "<u4").tobytes()
