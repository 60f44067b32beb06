"""The SQLite file of an index: schema, connections, transactions, and one-line errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ..core.errors import BadInput, OutsideFailed, one_line
from ..core.seal import ERRORS, is_damage, write_ahead
from .seals import Damaged, add_seals, put_meta

FILE: Final = "index.sqlite3"
LAYOUT: Final = 2
"""Version of the schema; an index of another version is refused."""
_UNSEALED: Final = 1
"""The version without checksums; they are added where such an index is opened."""
_OURS: Final = 0x5052554E
"""SQLite's ``application_id`` of an index of Prunus."""

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, url TEXT NOT NULL,
    digest TEXT NOT NULL, language TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL, source BLOB NOT NULL);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, layer INTEGER NOT NULL, document INTEGER, place INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL, tokens INTEGER NOT NULL, above TEXT NOT NULL,
    own INTEGER NOT NULL, routing INTEGER NOT NULL);
CREATE INDEX nodes_by_document ON nodes (document, layer, place);
CREATE TABLE edges (parent INTEGER NOT NULL, child INTEGER NOT NULL, PRIMARY KEY (parent, child)) WITHOUT ROWID;
CREATE INDEX edges_by_child ON edges (child);
CREATE VIRTUAL TABLE leaf_terms USING fts5 (text, above, tokenize = 'unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE summary_terms USING fts5 (text, above, tokenize = 'unicode61 remove_diacritics 0');
"""


class Database:
    """One SQLite file, opened for each call, because threads and processes must not share a connection.

    In a read-only folder (a read-only disk, another user's folder) the index can be read and not changed.

    :param folder: the folder of the index.
    :param wait: seconds to wait for another writer.
    """

    def __init__(self, folder: Path, wait: float) -> None:
        self.path = folder / FILE
        self._wait = wait

    def create(self, meta: dict[str, str | int]) -> None:
        """Create the file where it is missing; of two processes that try at once, the second finds it made."""
        with self.opened() as file, writing(file):
            if file.execute("PRAGMA application_id").fetchone()[0] == _OURS:
                return
            for statement in _SCHEMA.strip().split(";\n"):
                file.execute(statement)
            put_meta(file, **meta)
            add_seals(file, self.path.parent)
            file.execute(f"PRAGMA user_version = {LAYOUT}")
            file.execute(f"PRAGMA application_id = {_OURS}")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one call.

        :raises BadInput: the file is no index, is damaged, or has another layout.
        :raises OutsideFailed: another process writes for too long, the disk is full, or the folder is read-only.
        """
        try:
            if not self._writable():
                with closing(self._connect_read_only()) as file:
                    self._check(file)
                    yield file
                return
            with closing(sqlite3.connect(self.path, timeout=self._wait, isolation_level=None)) as file:
                layout = self._check(file)
                write_ahead(file, self._wait)
                file.execute("PRAGMA synchronous = FULL")  # an acknowledged change survives a power cut
                if layout == _UNSEALED:
                    self._seal(file)
                yield file
        except Damaged as error:
            raise self.damaged(str(error), error.path) from error
        except ERRORS as error:
            raise self._told(error) from error

    def damaged(self, what: str, path: Path | None = None) -> BadInput:
        """Return the error for a damaged file, by default the database, with the way out."""
        way_out = f"run prunus index verify {self.path.parent} --mend"
        return BadInput(f"{path or self.path}: damaged ({what}); {way_out}", subject=str(path or self.path))

    def _told(self, error: Exception) -> BadInput | OutsideFailed:
        """Return SQLite's error in one line: the file is in use or out of reach, is no database, or is damaged."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        reason = one_line(str(error))
        if code == sqlite3.SQLITE_NOTADB:
            return BadInput(
                f"{self.path}: not an index of Prunus ({reason}); build it again in another folder",
                subject=str(self.path),
            )
        if is_damage(error):
            return self.damaged(reason)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            reason = f"another process has been writing for over {self._wait:g} seconds"
        elif code == sqlite3.SQLITE_READONLY:
            reason = "its folder is read-only"
        return OutsideFailed(f"{self.path.parent}: the index failed ({reason})", subject=str(self.path))

    def _writable(self) -> bool:
        return os.access(self.path.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))

    def _connect_read_only(self) -> sqlite3.Connection:
        """Open the file without writing anything beside it.

        SQLite reads beside a writer through the writer's ``-wal`` and ``-shm`` files. Where they are missing and cannot
        be created, nobody writes, and the file is opened as immutable.
        """
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        try:
            file = sqlite3.connect(address, timeout=self._wait, isolation_level=None, uri=True)
            try:
                file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except BaseException:
                file.close()
                raise
        except sqlite3.OperationalError:
            left = self.path.with_name(f"{self.path.name}-wal")
            if left.exists() and left.stat().st_size:  # left by a killed writer: it holds changes that the file lacks
                raise
            return sqlite3.connect(f"{address}&immutable=1", timeout=self._wait, isolation_level=None, uri=True)
        return file

    def _check(self, file: sqlite3.Connection) -> int:
        """Return the layout of the file; 0 where it has no tables yet."""
        # Another process may be creating the file in one transaction: without tables, the marks are not written yet.
        (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            return 0
        (mark,) = file.execute("PRAGMA application_id").fetchone()
        (layout,) = file.execute("PRAGMA user_version").fetchone()
        if mark != _OURS:
            raise BadInput(f"{self.path}: not an index of Prunus", subject=str(self.path))
        if layout == _UNSEALED and not self._writable():
            raise BadInput(
                f"{self.path.parent}: an index without checksums; open it once in a folder that can be written",
                subject=str(self.path),
            )
        if layout not in (LAYOUT, _UNSEALED):
            raise BadInput(
                f"{self.path.parent}: an index of layout {layout}, and this version reads {LAYOUT}; build it again",
                subject=str(self.path),
            )
        return int(layout)

    def _seal(self, file: sqlite3.Connection) -> None:
        """Add checksums to an index without any; another process may have done it since."""
        with writing(file):
            if file.execute("PRAGMA user_version").fetchone()[0] == _UNSEALED:
                add_seals(file, self.path.parent)
                file.execute(f"PRAGMA user_version = {LAYOUT}")


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
    """Hold a read transaction: all reads see one state of the index, whatever others write."""
    file.execute("BEGIN")
    try:
        yield
    finally:
        if file.in_transaction:  # SQLite ends it itself after some errors
            file.execute("ROLLBACK")
