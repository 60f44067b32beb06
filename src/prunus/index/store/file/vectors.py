"""The matrix of an index: float32 rows in one append-only file, mapped into memory.

Rows are written and synced before the transaction that counts them. Rows of a killed writer lie after the counted rows,
and the next writer overwrites them. Counted rows never change: compaction writes a new file, so that readers of the old
file are not disturbed.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....core.errors import OutsideFailed
from ....core.ports import Ints, Vectors
from ...seals import BLOCK, Damaged, blocks, damaged_blocks, mapped, matrix_file


class MatrixRows:
    """The rows of a matrix in a file; a block is checked when it is first needed.

    :param sealed: the seals of the blocks by number.
    :param checked: those of blocks that were checked before; checked blocks are added.
    """

    def __init__(self, path: Path, matrix: Vectors, sealed: dict[int, int], checked: dict[int, int]) -> None:
        self._path, self._matrix, self._sealed, self._checked = path, matrix, sealed, checked
        self.dimension = matrix.shape[1]
        count = -(-len(matrix) // BLOCK)
        self._whole = np.asarray(
            [number in sealed and checked.get(number) == sealed[number] for number in range(count)], bool
        )

    def __call__(self, places: Ints) -> Vectors:
        """Return some rows, float32 [places, dimension].

        :raises Damaged: a block does not match its checksum.
        """
        numbers = np.unique(places // BLOCK)
        self._check(numbers[~self._whole[numbers]])
        return self._matrix[places]

    def dots(self, vector: Vectors) -> NDArray[np.float32]:
        """Return the inner products of all rows and a vector, float32 [rows]; see :meth:`__call__`."""
        self._check(np.flatnonzero(~self._whole))
        return np.asarray(self._matrix @ vector, np.float32)

    def _check(self, numbers: Ints) -> None:
        for number in numbers.tolist():
            first, last = number * BLOCK, min(len(self._matrix), (number + 1) * BLOCK) - 1
            if zlib.crc32(self._matrix[first : last + 1].data) != self._sealed.get(number):
                raise Damaged(f"its rows {first} to {last} do not match their checksum", self._path)
            self._checked[number] = self._sealed[number]
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
        return matrix_file(self.folder, generation)

    def append(self, generation: int, rows: int, vectors: Vectors) -> None:
        """Write vectors after the counted rows, and wait until they are on the disk.

        :raises OutsideFailed: the disk is full, or the file cannot be written.
        """
        self.write(generation, rows, [vectors])

    def write(self, generation: int, rows: int, parts: Sequence[Vectors] | Iterator[Vectors]) -> int:
        """Write parts after the counted rows; return the number of rows with them.

        :raises OutsideFailed: the disk is full, or the file cannot be written.
        """
        path = self.path(generation)
        new = not path.exists()
        try:
            with open(path, "w+b" if new else "r+b") as file:
                file.seek(rows * self.dimension * 4)
                for part in parts:
                    file.write(np.ascontiguousarray(part, "<f4").tobytes())
                    rows += len(part)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            if new:
                sync_folder(self.folder)
        except OSError as error:
            raise OutsideFailed(f"{path}: cannot be written ({error.strerror})", subject=str(path)) from error
        return rows

    def read(self, generation: int, rows: int, file: sqlite3.Connection) -> Vectors:
        """Return the counted rows, float32 [rows, dimension], mapped into memory; each block is checked once.

        :param file: the database, which holds the checksums of the blocks.
        :raises Damaged: the file is missing or too short, or a block does not match its checksum.
        """
        matrix = mapped(self.path(generation), rows, self.dimension)
        checked = self._checked[1] if self._checked[0] == generation else {}
        self._checked = (generation, checked)
        for number in damaged_blocks(matrix, blocks(file), checked):
            last = min(rows, (number + 1) * BLOCK) - 1
            path = self.path(generation)
            raise Damaged(f"its rows {number * BLOCK} to {last} do not match their checksum", path)
        return matrix

    def rows(self, generation: int, rows: int, file: sqlite3.Connection) -> MatrixRows:
        """Return the counted rows, of which a block is checked when it is first needed.

        :raises Damaged: the file is missing or too short.
        """
        checked = self._checked[1] if self._checked[0] == generation else {}
        self._checked = (generation, checked)
        return MatrixRows(
            self.path(generation),
            np.asarray(mapped(self.path(generation), rows, self.dimension)),
            blocks(file),
            checked,
        )

    def clear(self, generation: int) -> None:
        """Delete the files of other generations; the caller must hold the write transaction."""
        for path in self.folder.glob("vectors.*.f32"):
            if path != self.path(generation):
                path.unlink(missing_ok=True)


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
