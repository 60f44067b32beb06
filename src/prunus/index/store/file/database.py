"""The SQLite file of an index: schema, connections, one-line errors, and the checks that find damage.

SQLite's ``integrity_check`` finds what is wrong with the structure of the tables and their indexes, and so a missing
row and a changed edge. Checksums find a changed value: of each row, of the two full-text tables as a whole, of the
description, and of the schema. A document and a node have two: ``body`` covers the text, ``checksum`` the other columns
and ``body``, so that all rows can be checked without reading all texts. A node's ``words`` covers its row of the full
text. ``blocks`` holds a checksum for every :data:`BLOCK` rows of the matrix.
"""

from __future__ import annotations

import os
import re
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ....core.errors import BadInput, StoreFailed, one_line
from ....core.sqlite import ERRORS, check_files, checksum, is_damage, write_ahead, writing

FILE: Final = "index.sqlite3"
LAYOUT: Final = 3
"""Version of the schema; an index of another version is refused."""
BLOCK: Final = 256
"""Rows of the matrix under one checksum."""
_OURS: Final = 0x5052554E
"""SQLite's ``application_id`` of an index of Prunus."""

WORDS: Final = ("leaf_terms", "summary_terms")
"""The full-text tables."""
RECORD: Final = "number, id, title, url, digest, language, metadata, body"
"""The columns of a document under its checksum."""
NODE: Final = "id, layer, document, place, first, last, tokens, own, routing, body, words"
"""The columns of a node under its checksum."""

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, url TEXT NOT NULL,
    digest TEXT NOT NULL, language TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL, source BLOB NOT NULL,
    body BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, layer INTEGER NOT NULL, document INTEGER, place INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL, tokens INTEGER NOT NULL, above TEXT NOT NULL,
    own INTEGER NOT NULL, routing INTEGER NOT NULL, body INTEGER NOT NULL, words INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER NOT NULL DEFAULT 0);
CREATE INDEX nodes_by_document ON nodes (document, layer, place);
CREATE TABLE edges (parent INTEGER NOT NULL, child INTEGER NOT NULL, PRIMARY KEY (parent, child)) WITHOUT ROWID;
CREATE INDEX edges_by_child ON edges (child);
CREATE TABLE blocks (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL);
CREATE VIRTUAL TABLE leaf_terms USING fts5 (text, above, tokenize = 'unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE summary_terms USING fts5 (text, above, tokenize = 'unicode61 remove_diacritics 0');
"""
_STATEMENTS: Final = _SCHEMA.strip().removesuffix(";").split(";\n")
_OWN: Final = {re.findall(r"(?:TABLE|INDEX) (\w+)", statement)[0]: statement for statement in _STATEMENTS}
"""The statement of each table and index by its name."""
_OF_SQLITE: Final = re.compile(rf"sqlite_\w+|({'|'.join(WORDS)})_(data|idx|content|docsize|config)")
"""Tables and indexes that SQLite makes for ours."""


class Damaged(Exception):
    """A part of an index is damaged.

    :param what: the part, for a message.
    :param path: the damaged file; None for the database.
    """

    def __init__(self, what: str, path: Path | None = None) -> None:
        super().__init__(what)
        self.path = path


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
            for statement in _STATEMENTS:
                file.execute(statement)
            seal_words(file)
            put_meta(file, **meta, nodes=0, state=uuid.uuid4().hex, schema=_schema_checksum(file))
            file.execute(f"PRAGMA user_version = {LAYOUT}")
            file.execute(f"PRAGMA application_id = {_OURS}")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one call.

        :raises BadInput: the file is no index, is damaged, or has another layout.
        :raises StoreFailed: another process writes for too long, the disk is full, or the folder is read-only.
        """
        check_files(self.path)
        try:
            if not self._writable():
                with closing(self._connect_read_only()) as file:
                    self._check(file)
                    yield file
                return
            with closing(sqlite3.connect(self.path, timeout=self._wait, isolation_level=None)) as file:
                self._check(file)
                write_ahead(file, self._wait)
                file.execute("PRAGMA synchronous = FULL")  # an acknowledged change survives a power cut
                yield file
        except Damaged as error:
            raise self.damaged(str(error), error.path) from error
        except ERRORS as error:
            raise self._error_of(error) from error

    def damaged(self, what: str, path: Path | None = None) -> BadInput:
        """Return the error for a damaged file, by default the database, with the way out."""
        way_out = f"run prunus index rebuild {self.path.parent}"
        return BadInput(f"{path or self.path}: damaged ({what}); {way_out}", subject=str(path or self.path))

    def _error_of(self, error: Exception) -> BadInput | StoreFailed:
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
        return StoreFailed(f"{self.path.parent}: the index failed ({reason})", subject=str(self.path))

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

    def _check(self, file: sqlite3.Connection) -> None:
        # Another process may be creating the file in one transaction: without tables, the marks are not written yet.
        (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            return
        file.execute("PRAGMA trusted_schema = OFF")
        (mark,) = file.execute("PRAGMA application_id").fetchone()
        (layout,) = file.execute("PRAGMA user_version").fetchone()
        if mark != _OURS:
            raise BadInput(f"{self.path}: not an index of Prunus", subject=str(self.path))
        if layout != LAYOUT:
            folder = self.path.parent
            raise BadInput(
                f"{folder}: an index of layout {layout}, and this version reads {LAYOUT}; run prunus index rebuild "
                f"{folder}",
                subject=str(self.path),
            )
        # before anything is read: a view or a trigger of a stranger would run with each statement
        for kind, name, statement in file.execute("SELECT type, name, sql FROM sqlite_schema"):
            if kind not in ("table", "index") or not (_OWN.get(name) == statement or _OF_SQLITE.fullmatch(name)):
                raise Damaged(f"it holds the {kind} {one_line(str(name), longest=40)}, which is not of Prunus")


# --- writing -------------------------------------------------------------------------------------


def put_meta(file: sqlite3.Connection, **values: str | int) -> None:
    """Write values of the table ``meta``, and its checksum."""
    file.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))
    rows = file.execute("SELECT name, value FROM meta WHERE name <> 'checksum' ORDER BY name")
    file.execute("INSERT OR REPLACE INTO meta VALUES ('checksum', ?)", (checksum(*chain.from_iterable(rows)),))


def seal_words(file: sqlite3.Connection, tables: Sequence[str] = WORDS) -> None:
    """Write the checksums of the full-text tables that this transaction has changed."""
    file.execute("SAVEPOINT words")  # SQLite writes the words that it still holds in memory
    file.execute("RELEASE words")
    put_meta(file, **{table: _words_checksum(file, table) for table in tables})


# --- checking ------------------------------------------------------------------------------------


def meta(file: sqlite3.Connection) -> dict[str, Any]:
    """Return the table ``meta``.

    It holds embedder, dimension, generation and rows of the matrix, version, ``state`` (a random name of the present
    state), the number of nodes, and the checksums of the schema and of the full-text tables.

    :raises Damaged: it does not match its checksum.
    """
    rows = dict(file.execute("SELECT name, value FROM meta ORDER BY name"))
    if rows.pop("checksum", None) != checksum(*chain.from_iterable(rows.items())):
        raise Damaged("its description does not match its checksum")
    return rows


def check(what: str, known: object, *fields: str | bytes | int | None) -> None:
    """Check values that were read against their checksum.

    :raises Damaged: naming ``what``.
    """
    if checksum(*fields) != known:
        raise Damaged(f"{what} does not match its checksum")


def check_schema(file: sqlite3.Connection, about: dict[str, Any]) -> None:
    """Check the schema against its checksum; raises Damaged."""
    if _schema_checksum(file) != about.get("schema"):
        raise Damaged("its schema does not match its checksum")


def check_structure(file: sqlite3.Connection, *tables: str) -> None:
    """Check SQLite's own structure of some tables, by default of the whole file; an index must match its table.

    :raises Damaged: with SQLite's first finding.
    """
    for table in tables or ("1",):
        (first,) = file.execute(f"PRAGMA integrity_check({table})").fetchone()
        if first != "ok":
            raise Damaged(" ".join(str(first).split()))


def check_words(file: sqlite3.Connection, about: dict[str, Any]) -> None:
    """Check the full-text tables against their checksums; raises Damaged."""
    for table in WORDS:
        if _words_checksum(file, table) != about.get(table):
            raise Damaged(f"its full text ({table}) does not match its checksum")


_BATCH: Final = 50_000
_COLUMNS: Final = {"documents": RECORD, "notes": "name, text", "nodes": NODE}
_ORDER: Final = {"documents": "number", "notes": "name", "nodes": "id"}


def checked_batches(file: sqlite3.Connection, table: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yield every row of ``documents``, ``notes`` or ``nodes`` with its checksum, in batches that bound the memory.

    :raises Damaged: a row does not match its checksum.
    """
    rows = file.execute(f"SELECT {_COLUMNS[table]}, checksum FROM {table} ORDER BY {_ORDER[table]}")  # noqa: S608 - ours
    while batch := rows.fetchmany(_BATCH):
        for row in batch:
            check(f"a row of its {table}", row[-1], *row[:-1])
        yield batch


def checked_rows(file: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of :func:`checked_batches`."""
    return [row for batch in checked_batches(file, table) for row in batch]


def _schema_checksum(file: sqlite3.Connection) -> int:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name"
    return checksum(*chain.from_iterable(file.execute(query)))


def _words_checksum(file: sqlite3.Connection, table: str) -> int:
    """Return the checksum of a full-text index and of the sizes of its rows."""
    result = 0
    for part in ("config", "data", "idx"):
        for row in file.execute(f"SELECT * FROM {table}_{part}"):  # noqa: S608 - ours
            result = checksum(*row, before=result)
    # one text of all sizes: a row is small, and there are as many as nodes
    query = f"SELECT count(*), group_concat(id || ' ' || hex(sz)) FROM {table}_docsize"  # noqa: S608 - ours
    return checksum(*file.execute(query).fetchone(), before=result)
