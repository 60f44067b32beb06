"""The matrix of an index: float32 rows in one append-only file, mapped into memory.

Rows are written and synced before the transaction that counts them. Rows of a killed writer lie after the counted rows,
and the next writer overwrites them. Counted rows never change: compaction writes a new file, so that readers of the old
file are not disturbed. The database has a checksum for every block of rows; a block is checked when it is first read.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....core.errors import StoreFailed
from ....core.files import open_regular
from ....core.ports import Ints, Vectors
from .database import BLOCK, Damaged


class MatrixRows:
    """The rows of a matrix in a file; a block is checked when it is first needed.

    :param known: the checksums of the blocks by number.
    :param checked: those of blocks that were checked before; checked blocks are added.
    :raises Damaged: the file is missing or too short.
    """

    def __init__(self, path: Path, shape: tuple[int, int], known: dict[int, int], checked: dict[int, int]) -> None:
        self._path, self._known, self._checked = path, known, checked
        self.dimension = shape[1]
        try:
            if shape[0]:
                with open_regular(path, "rb") as file:
                    matrix: Vectors = np.memmap(file, "<f4", "r", shape=shape)
            else:
                matrix = np.zeros(shape, "<f4")
        except (OSError, ValueError) as error:
            raise Damaged("it is missing or too short", path) from error
        self._matrix: Vectors = np.asarray(matrix)
        numbers = range(-(-shape[0] // BLOCK))
        self._whole = np.asarray([number in known and checked.get(number) == known[number] for number in numbers], bool)

    def __call__(self, places: Ints) -> Vectors:
        """Return some rows, float32 [places, dimension].

        :raises Damaged: a block does not match its checksum.
        """
        numbers = np.unique(places // BLOCK)
        self._check(numbers[~self._whole[numbers]])
        return self._matrix[places]

    def all(self) -> Vectors:
        """Return all rows, float32 [rows, dimension], mapped into memory; see :meth:`__call__`."""
        self._check(np.flatnonzero(~self._whole))
        return self._matrix

    def _check(self, numbers: NDArray[np.int64]) -> None:
        for number in numbers.tolist():
            first, last = number * BLOCK, min(len(self._matrix), (number + 1) * BLOCK) - 1
            part = np.ascontiguousarray(self._matrix[first : last + 1])
            if zlib.crc32(part.data) != self._known.get(number):
                raise Damaged(f"its rows {first} to {last} do not match their checksum", self._path)
            self._checked[number] = self._known[number]
            self._whole[number] = True


class VectorFiles:
    """The files ``vectors.<generation>.f32`` of one folder.

    :param dimension: numbers of a row.
    """

    def __init__(self, folder: Path, dimension: int) -> None:
        self.folder, self.dimension = folder, dimension
        self._checked: tuple[int, dict[int, int]] = (0, {})

    def path(self, generation: int) -> Path:
        """Return the file of a generation."""
        return self.folder / f"vectors.{generation}.f32"

    def write(self, file: sqlite3.Connection, generation: int, rows: int, parts: Iterable[Vectors]) -> None:
        """Write vectors and their checksums after the counted rows, and wait until they are on the disk.

        :raises StoreFailed: the disk is full, or the file cannot be written.
        """
        path = self.path(generation)
        new = not path.exists()
        try:
            with open_regular(path, "w+b" if new else "r+b") as matrix:
                matrix.seek(rows * self.dimension * 4)
                for part in parts:
                    matrix.write(np.ascontiguousarray(part, "<f4").tobytes())
                    _put_blocks(file, rows, part)
                    rows += len(part)
                matrix.truncate()
                matrix.flush()
                os.fsync(matrix.fileno())
            if new:
                sync_folder(self.folder)
        except OSError as error:
            raise StoreFailed(f"{path}: cannot be written ({error.strerror})", subject=str(path)) from error

    def rows(self, file: sqlite3.Connection, generation: int, rows: int) -> MatrixRows:
        """Return the counted rows.

        :param file: the database, which holds the checksums of the blocks.
        :raises Damaged: the file is missing or too short.
        """
        checked = self._checked[1] if self._checked[0] == generation else {}
        self._checked = (generation, checked)
        known = dict(file.execute("SELECT number, checksum FROM blocks"))
        return MatrixRows(self.path(generation), (rows, self.dimension), known, checked)

    def clear(self, generation: int) -> None:
        """Delete the files of other generations; the caller must hold the write transaction."""
        for path in self.folder.glob("vectors.*.f32"):
            if path != self.path(generation):
                path.unlink(missing_ok=True)


def _put_blocks(file: sqlite3.Connection, row: int, vectors: Vectors) -> None:
    """Write the checksums of vectors that are written from ``row`` on; the rows before it keep theirs."""
    start = 0
    while start < len(vectors):
        number, used = divmod(row + start, BLOCK)
        part = np.ascontiguousarray(vectors[start : start + BLOCK - used], "<f4")
        (before,) = file.execute("SELECT max(checksum) FROM blocks WHERE number = ?", (number,)).fetchone()
        result = zlib.crc32(part.data, before if used and before else 0)
        file.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?)", (number, result))
        start += len(part)


def sync_folder(folder: Path) -> None:
    """Wait until the file names of a folder are on the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders, and needs no sync of them
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
