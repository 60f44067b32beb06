"""The SQLite file of an index: layout, opening, transactions, and one-line errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ..core.errors import BadInput, OutsideFailed

FILE: Final = "index.sqlite3"
LAYOUT: Final = 1
_OURS: Final = 0x5052554E
"""Marks a SQLite file as an index of Prunus."""

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
    """One SQLite file, opened anew for each call: threads and processes never share a connection.

    Where the folder may only be read (a read-only disk, another user's folder), so is the index.

    :param folder: of the index.
    :param wait: seconds to wait for another process that writes.
    """

    def __init__(self, folder: Path, wait: float) -> None:
        self.path = folder / FILE
        self._wait = wait

    def create(self, meta: dict[str, str | int]) -> None:
        """Make the file where it is missing; two processes that try at once make one."""
        with self.opened() as file, writing(file):
            if file.execute("PRAGMA application_id").fetchone()[0] == _OURS:
                return
            for statement in _SCHEMA.strip().split(";\n"):
                file.execute(statement)
            file.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
            file.execute(f"PRAGMA user_version = {LAYOUT}")
            file.execute(f"PRAGMA application_id = {_OURS}")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one call.

        :raises BadInput: it is no index, or one of another version.
        :raises OutsideFailed: another process holds it for too long, or the disk is full.
        """
        try:
            if not self._writable():
                with closing(self._only_read()) as file:
                    self._check(file)
                    yield file
                return
            with closing(sqlite3.connect(self.path, timeout=self._wait, isolation_level=None)) as file:
                self._check(file)
                write_ahead(file, self._wait)
                file.execute("PRAGMA synchronous = FULL")  # what is acknowledged outlives a cut of power
                yield file
        except sqlite3.OperationalError as error:
            said = str(error)
            if "locked" in said or "busy" in said:
                said = f"another process has been writing for over {self._wait:g} seconds"
            elif "readonly" in said:
                said = "it may only be read here"
            raise OutsideFailed(f"{self.path.parent}: the index failed ({said})", subject=str(self.path)) from error
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{self.path}: not an index of Prunus ({error})", subject=str(self.path)) from error

    def _writable(self) -> bool:
        return os.access(self.path.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))

    def _only_read(self) -> sqlite3.Connection:
        """Open the file without writing beside it.

        SQLite reads along with a writer through files of that writer. Where there are none and none can be
        made, nobody writes, and the file is read as one that does not change.
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
            if left.exists() and left.stat().st_size:  # of one who was killed: it has to be taken in first
                raise
            return sqlite3.connect(f"{address}&immutable=1", timeout=self._wait, isolation_level=None, uri=True)
        return file

    def _check(self, file: sqlite3.Connection) -> None:
        # first of all: another process may be making the file, and all that it writes is there at once
        (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            return
        (mark,) = file.execute("PRAGMA application_id").fetchone()
        (layout,) = file.execute("PRAGMA user_version").fetchone()
        if mark != _OURS:
            raise BadInput(f"{self.path}: not an index of Prunus", subject=str(self.path))
        if layout != LAYOUT:
            raise BadInput(
                f"{self.path.parent}: an index of layout {layout}, and this version reads {LAYOUT}; build it anew",
                subject=str(self.path),
            )


def write_ahead(file: sqlite3.Connection, wait: float) -> None:
    """Let readers read while another writes; where two switch a new file at once, SQLite waits for neither."""
    end = time.monotonic() + wait
    while True:
        try:
            file.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.02)


@contextmanager
def writing(file: sqlite3.Connection) -> Iterator[None]:
    """Hold the right to write for one transaction; taken at once, so that two writers wait and never clash."""
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
    """See one state of the index, whatever others write meanwhile."""
    file.execute("BEGIN")
    try:
        yield
    finally:
        file.execute("ROLLBACK")
