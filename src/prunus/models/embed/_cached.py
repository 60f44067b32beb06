"""A cache of vectors on disk around any embedder: the same text is embedded once, by whichever process.

One SQLite file. Several processes may share it, and one that is killed loses at most what it was
writing. It is bounded: what was not read for longest goes first.
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

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import Embedder

FILE: Final = "vectors.sqlite3"
_LAYOUT: Final = 1
_SLICE: Final = 500
"""Keys of one SQL statement, and texts that are embedded before their vectors are kept."""
_OVERHEAD: Final = 120
"""Bytes that a row takes beside its vector: key, turn, page and index."""
_WAIT: Final = 30.0
"""Seconds to wait for another process that writes."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, turn INTEGER NOT NULL, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_turn ON vectors (turn);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO state VALUES ('turn', 0), ('bytes', 0);
"""


class CachedEmbedder:
    """An embedder that remembers.

    :param inner: the embedder that is asked for what is not known.
    :param folder: where the file lies; made where it is missing.
    :param name: engine and model, as its spec says them. An engine with an ``identity``, which changes
        with the model's file, is known by that as well.
    :param max_mb: bound of the kept vectors in MiB; the file itself is about a tenth larger.
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
        """What the vectors depend on: that of the inner embedder."""
        return f"{self.name} {self.inner.identity}".strip()

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 where the inner embedder does not say."""
        return self.inner.dimension

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm, asking the inner embedder only for what is not kept.

        :raises BadInput: the file is no cache, or cannot be written.
        :raises OutsideFailed: another process holds it for longer than 30 seconds, or the disk is full.
        """
        keys = self._keys(texts, kind)
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        todo = list(missing)
        for start in range(0, len(todo), _SLICE):
            part = todo[start : start + _SLICE]
            vectors = self.inner.embed([missing[key] for key in part], kind)
            made = dict(zip(part, np.asarray(vectors, np.float32), strict=True))
            self._write(made)
            known |= made
        if not keys:
            return self.inner.embed([], kind)
        return np.stack([known[key] for key in keys])

    def size(self) -> tuple[int, int]:
        """Return how many vectors are kept, and their bytes."""
        with self._open() as file:
            (count,) = file.execute("SELECT count(*) FROM vectors").fetchone()
            return int(count), _state(file, "bytes")

    def clear(self) -> None:
        """Forget everything."""
        with self._open() as file, _writing(file):
            file.execute("DELETE FROM vectors")
            file.execute("UPDATE state SET value = 0")

    def _keys(self, texts: Sequence[str], kind: str) -> list[bytes]:
        head = sha256(f"{self.identity}\0{kind}\0".encode("utf-8", "surrogatepass"))
        found = []
        for text in texts:
            digest = head.copy()
            digest.update(text.encode("utf-8", "surrogatepass"))
            found.append(digest.digest())
        return found

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return what is kept; what was not read for half of all turns is marked as read now."""
        found: dict[bytes, NDArray[np.float32]] = {}
        stale: list[bytes] = []
        wanted = list(dict.fromkeys(keys))
        with self._open() as file:
            turn = _state(file, "turn")
            for start in range(0, len(wanted), _SLICE):
                part = wanted[start : start + _SLICE]
                marks = ",".join("?" * len(part))
                asked = f"SELECT key, turn, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - question marks
                for key, read, vector in file.execute(asked, part):
                    found[key] = np.frombuffer(vector, np.float32)
                    if read < turn - turn // 2:
                        stale.append(key)
            if stale:
                with _writing(file):
                    turn = _next_turn(file)
                    file.executemany("UPDATE vectors SET turn = ? WHERE key = ?", [(turn, key) for key in stale])
        return found

    def _write(self, made: dict[bytes, NDArray[np.float32]]) -> None:
        """Keep vectors, then drop what was not read for longest until the rest is within the bound."""
        with self._open() as file, _writing(file):
            turn, total = _next_turn(file), _state(file, "bytes")
            for key, vector in made.items():
                given = (key, turn, vector.tobytes())
                if file.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", given).rowcount:
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
                if layout not in (0, _LAYOUT):
                    raise BadInput(f"{self._path}: made by another version; delete it", subject=str(self._path))
                file.execute("PRAGMA journal_mode = WAL")
                file.execute("PRAGMA synchronous = NORMAL")  # a cut of power may lose the last writes, never more
                if layout == 0:
                    with _writing(file):
                        for statement in _SCHEMA.strip().split(";\n"):
                            file.execute(statement)
                        file.execute(f"PRAGMA user_version = {_LAYOUT}")
                yield file
        except sqlite3.OperationalError as error:
            raise OutsideFailed(
                f"{self._path}: the cache of vectors failed ({error})", subject=str(self._path)
            ) from error
        except sqlite3.DatabaseError as error:
            raise BadInput(
                f"{self._path}: not a cache of vectors ({error}); delete it", subject=str(self._path)
            ) from error
        except OSError as error:
            raise BadInput(
                f"{self._path.parent}: the cache of vectors cannot be kept there ({error.strerror})",
                subject=str(self._path),
            ) from error


@contextmanager
def _writing(file: sqlite3.Connection) -> Iterator[None]:
    """Hold the right to write for one transaction; taken at once, so that two writers wait and never fail."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


def _state(file: sqlite3.Connection, name: str) -> int:
    (value,) = file.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return int(value)


def _next_turn(file: sqlite3.Connection) -> int:
    file.execute("UPDATE state SET value = value + 1 WHERE name = 'turn'")
    return _state(file, "turn")
