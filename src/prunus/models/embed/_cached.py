"""A cache of vectors on disk around any embedder: each text is embedded once for all processes.

The cache is one SQLite file that several processes may share. A killed process loses at most the vectors
that it was writing. The size is bounded: the vectors that were not read for longest are dropped first.
A vector that does not match its checksum is embedded again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, OutsideFailed, one_line
from ...core.ports import Embedder
from ...core.seal import ERRORS, is_damage, seal, write_ahead

FILE: Final = "vectors.sqlite3"
_LAYOUT: Final = 2
_UNSEALED: Final = 1
"""The layout without checksums; its vectors are dropped."""
_SLICE: Final = 500
"""Keys per SQL statement, and texts per call of the embedder; each call's vectors are written before the next."""
_OVERHEAD: Final = 120
"""Bytes of a row beside its vector: key, turn, page and index."""
_WAIT: Final = 30.0
"""Seconds to wait for another process that is writing."""

_SCHEMA: Final = """
DROP TABLE IF EXISTS vectors;
CREATE TABLE vectors (
    key BLOB PRIMARY KEY, turn INTEGER NOT NULL, vector BLOB NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_turn ON vectors (turn);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR REPLACE INTO state VALUES ('turn', 0), ('bytes', 0);
"""


class CachedEmbedder:
    """An embedder that keeps its vectors on disk.

    :param inner: the embedder for texts that the cache lacks.
    :param folder: folder of the file; it is made if it is missing.
    :param name: engine and model, as in the spec. The ``identity`` of the embedder, which changes with the
        model's file, is part of each key, too.
    :param max_mb: bound of the kept vectors in MiB; the file is about a tenth larger.
    :raises BadInput: the bound is not positive.
    """

    def __init__(self, inner: Embedder, folder: str | Path, name: str, max_mb: int = 512) -> None:
        if max_mb < 1:
            raise BadInput(f"a cache of {max_mb} MiB holds nothing; give 1 or more", subject="max_mb")
        self.inner = inner
        self.name = name
        self._path = Path(folder).expanduser() / FILE
        self._bound = max_mb << 20

    @property
    def identity(self) -> str:
        """The name and the identity of the inner embedder, on which the vectors depend."""
        return f"{self.name} {self.inner.identity}".strip()

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 where the inner embedder does not state it."""
        return self.inner.dimension

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm; only texts that the cache lacks are embedded.

        :raises BadInput: the file is no cache of vectors, or cannot be written.
        :raises OutsideFailed: another process locks it for more than 30 seconds, or the disk is full.
        """
        keys = self._keys(texts, kind)
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        todo = list(missing)
        for start in range(0, len(todo), _SLICE):
            part = todo[start : start + _SLICE]
            vectors = self.inner.embed([missing[key] for key in part], kind)
            new = dict(zip(part, np.asarray(vectors, np.float32), strict=True))
            self._write(new)
            known |= new
        if not keys:
            return self.inner.embed([], kind)
        return np.stack([known[key] for key in keys])

    def size(self) -> tuple[int, int]:
        """Return the number of kept vectors, and their bytes."""
        with self._open() as file:
            (count,) = file.execute("SELECT count(*) FROM vectors").fetchone()
            return int(count), _state(file, "bytes")

    def clear(self) -> None:
        """Delete all vectors."""
        with self._open() as file, _writing(file):
            file.execute("DELETE FROM vectors")
            file.execute("UPDATE state SET value = 0")

    def _keys(self, texts: Sequence[str], kind: str) -> list[bytes]:
        head = sha256(f"{self.identity}\0{kind}\0".encode("utf-8", "surrogatepass"))
        keys = []
        for text in texts:
            digest = head.copy()
            digest.update(text.encode("utf-8", "surrogatepass"))
            keys.append(digest.digest())
        return keys

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the kept vectors of some keys, and note that they were read.

        A vector's turn is updated only when it lags by half of all turns: most reads then write nothing.
        """
        vectors: dict[bytes, NDArray[np.float32]] = {}
        stale: list[bytes] = []
        damaged: list[bytes] = []
        wanted = list(dict.fromkeys(keys))
        with self._open() as file:
            turn = _state(file, "turn")
            for start in range(0, len(wanted), _SLICE):
                part = wanted[start : start + _SLICE]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, CAST(turn AS INTEGER), vector, seal FROM vectors WHERE key IN ({marks})"  # noqa: S608 - question marks
                for key, last_read, vector, sealed in file.execute(query, part):
                    if seal(key, vector) != sealed:
                        damaged.append(key)
                        continue
                    vectors[key] = np.frombuffer(vector, np.float32)
                    if (last_read or 0) < turn - turn // 2:
                        stale.append(key)
            if damaged:
                with _writing(file):
                    file.executemany("DELETE FROM vectors WHERE key = ?", [(key,) for key in damaged])
            if stale:
                with _writing(file):
                    turn = _next_turn(file)
                    file.executemany("UPDATE vectors SET turn = ? WHERE key = ?", [(turn, key) for key in stale])
        return vectors

    def _write(self, new: dict[bytes, NDArray[np.float32]]) -> None:
        """Add vectors; then drop the vectors that were not read for longest until the rest is within the bound."""
        with self._open() as file, _writing(file):
            turn, total = _next_turn(file), _state(file, "bytes")
            for key, vector in new.items():
                data = vector.tobytes()
                row = (key, turn, data, seal(key, data))
                if file.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", row).rowcount:
                    total += vector.nbytes + _OVERHEAD
            while total > self._bound:
                rows = file.execute("SELECT key, length(vector) FROM vectors ORDER BY turn LIMIT 256").fetchall()
                if not rows:
                    break
                for key, length in rows:
                    file.execute("DELETE FROM vectors WHERE key = ?", (key,))
                    total -= length + _OVERHEAD
                    if total <= self._bound:
                        break
            file.execute("UPDATE state SET value = ? WHERE name = 'bytes'", (max(0, total),))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one call; threads and processes never share a connection."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as file:
                (layout,) = file.execute("PRAGMA user_version").fetchone()
                if layout not in (0, _UNSEALED, _LAYOUT):
                    raise BadInput(f"{self._path}: made by another version; delete it", subject=str(self._path))
                write_ahead(file, _WAIT)
                file.execute("PRAGMA synchronous = NORMAL")  # a power cut loses at most the last writes
                if layout != _LAYOUT:
                    self._create(file)
                yield file
        except ERRORS as error:
            if is_damage(error):
                raise BadInput(
                    f"{self._path}: not a cache of vectors ({one_line(str(error))}); delete it", subject=str(self._path)
                ) from error
            raise OutsideFailed(
                f"{self._path}: the cache of vectors failed ({error})", subject=str(self._path)
            ) from error
        except OSError as error:
            raise BadInput(
                f"{self._path.parent}: the cache of vectors cannot be kept there ({error.strerror})",
                subject=str(self._path),
            ) from error

    def _create(self, file: sqlite3.Connection) -> None:
        """Make the tables, unless another process has made them since.

        :raises sqlite3.DatabaseError: the file holds the tables of another program.
        """
        with _writing(file):
            (layout,) = file.execute("PRAGMA user_version").fetchone()
            (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if layout == 0 and tables:
                raise sqlite3.DatabaseError("it holds other tables")
            if layout != _LAYOUT:
                for statement in _SCHEMA.strip().split(";\n"):
                    file.execute(statement)
                file.execute(f"PRAGMA user_version = {_LAYOUT}")


@contextmanager
def _writing(file: sqlite3.Connection) -> Iterator[None]:
    """Run one write transaction; the lock is taken at its start, so that a second writer waits and does not fail."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if file.in_transaction:  # SQLite ends it itself after some errors
            file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


def _state(file: sqlite3.Connection, name: str) -> int:
    row = file.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise sqlite3.DatabaseError(f"its {name} is damaged")
    return row[0]


def _next_turn(file: sqlite3.Connection) -> int:
    file.execute("UPDATE state SET value = value + 1 WHERE name = 'turn'")
    return _state(file, "turn")
