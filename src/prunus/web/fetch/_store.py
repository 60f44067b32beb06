"""Pages on disk in one SQLite file: the common storage of the cache and the snapshots.

A row has a name, a variant, and metadata as JSON. Rows with equal content share one stored copy. SQLite in
WAL mode makes every change atomic, with several processes and after a kill at any moment. A hash over each
row (its seal) and the sha256 of each content detect damage: damaged data is removed, never returned. When
the store is over its limit, it evicts the least recently used rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from ...core.errors import BadInput
from ...core.sqlite import ERRORS, is_damage, write_ahead
from ...core.types import Page

T = TypeVar("T")

_VERSION: Final = 1
_OVERHEAD: Final = 512  # bytes of a row beside its text: indexes and SQLite's own data
_USED_STEP: Final = 60.0  # seconds: precision of the time of last use, so that not every read causes a write
_BATCH: Final = 32  # rows that one step of eviction looks at
_SPARE: Final = 1024  # free pages of 4 KiB that stay in the file for reuse
_BUSY: Final = 10.0  # seconds to wait for another process that writes

_KNOWN: Final = ("url", "final_url", "media_type", "charset", "status", "fetched_at", "published")

_SCHEMA: Final = """
CREATE TABLE bodies (sha TEXT PRIMARY KEY, content BLOB NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, variant TEXT NOT NULL, meta TEXT NOT NULL, body TEXT NOT NULL,
    seal TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL, UNIQUE (name, variant));
CREATE INDEX rows_by_use ON rows (used, id);
CREATE INDEX rows_by_body ON rows (body);
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER row_in AFTER INSERT ON rows BEGIN UPDATE total SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER row_out AFTER DELETE ON rows BEGIN
    UPDATE total SET bytes = bytes - OLD.bytes;
    DELETE FROM bodies WHERE sha = OLD.body AND NOT EXISTS (SELECT 1 FROM rows WHERE body = OLD.body);
END;
CREATE TRIGGER row_resized AFTER UPDATE OF bytes ON rows BEGIN
    UPDATE total SET bytes = bytes + NEW.bytes - OLD.bytes;
END;
CREATE TRIGGER body_in AFTER INSERT ON bodies BEGIN UPDATE total SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER body_out AFTER DELETE ON bodies BEGIN UPDATE total SET bytes = bytes - OLD.bytes; END;
"""


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One entry without its content.

    :param meta: metadata, as stored by the cache or the snapshots.
    :param body: sha256 of the content, hexadecimal.
    :param used: time of last use, seconds since 1970, to about a minute.
    """

    name: str
    variant: str
    meta: Mapping[str, Any]
    body: str
    used: float


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Size and state of a store.

    :param entries: number of pages; variants of a page count separately.
    :param bytes: bytes that count against ``max_bytes``: content, metadata and indexes.
    :param disk_bytes: size of the files.
    :param failures: failed reads and writes of this process; each was skipped.
    :param last_failure: reason of the last failure; '' without a failure.
    """

    path: str
    entries: int
    bytes: int
    disk_bytes: int
    max_bytes: int
    failures: int
    last_failure: str


def page_fields(page: Page) -> dict[str, Any]:
    """Return the fields of a page without its content, for JSON."""
    fields = {name: getattr(page, name) for name in _KNOWN}
    return {**fields, "headers": dict(page.headers), "text": isinstance(page.content, str)}


def page_bytes(page: Page) -> bytes:
    """Return a page's content as the bytes to hash and store."""
    return page.content.encode("utf-8", "surrogatepass") if isinstance(page.content, str) else page.content


def restore_page(known: Mapping[str, Any], content: bytes, snapshot: str) -> Page:
    """Return the page for the results of :func:`page_fields` and :func:`page_bytes`."""
    fields = {name: known[name] for name in _KNOWN}
    text_or_bytes = content.decode("utf-8", "surrogatepass") if known["text"] else content
    return Page(text_or_bytes, **fields, snapshot=snapshot, headers=dict(known["headers"]))


class Store:
    """Rows and contents in one SQLite file, bounded in bytes.

    :param path: the file; its folder is created with access for its owner only.
    :param max_bytes: most bytes to store.
    :param clock: returns seconds since 1970.
    :param setting: the setting to change if the folder cannot be used, for the error message.
    :raises BadInput: the folder cannot be created or written.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Callable[[], float], setting: str = "home") -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.failures = 0
        self.last_failure = ""
        self._clock = clock
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        self._process = 0
        self._file = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock:
                self._open()
        except (OSError, *ERRORS) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise BadInput(
                f"{path}: cannot store pages here ({reason}); set {setting} to a writable folder",
                subject=str(path),
            ) from error

    # --- reading ---------------------------------------------------------------------------------

    def rows(self, name: str) -> list[CacheRow]:
        """Return every variant of a name, the last stored first; remove and omit damaged rows."""
        query = (
            "SELECT id, name, variant, meta, body, seal, CAST(used AS REAL) FROM rows WHERE name = ? ORDER BY id DESC"
        )
        nothing: list[Any] = []
        stored = self._run(lambda connection: connection.execute(query, (_storable_name(name),)).fetchall(), nothing)
        rows = []
        for id, *fields, seal, used in stored:
            if all(isinstance(field, str) for field in fields) and seal == _seal(*fields):
                rows.append(CacheRow(fields[0], fields[1], json.loads(fields[2]), fields[3], used or 0.0))
            else:
                self._note(f"{name}: a damaged entry was removed")
                self._change("DELETE FROM rows WHERE id = ?", id)
        return rows

    def content(self, row: CacheRow) -> bytes | None:
        """Return a row's content, checked against its hash; None if it is missing or damaged (and then removed)."""
        query = "SELECT content FROM bodies WHERE sha = ?"
        stored = self._run(lambda connection: connection.execute(query, (row.body,)).fetchone(), None)
        if stored is None:  # another process removed it, or the read failed
            return None
        (content,) = stored
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != row.body:
            self._note(f"{row.name}: damaged content was removed")
            self._change("DELETE FROM rows WHERE body = ?", row.body)
            self._change("DELETE FROM bodies WHERE sha = ?", row.body)
            return None
        now = self._clock()
        if abs(now - row.used) > _USED_STEP:
            self._change("UPDATE rows SET used = ? WHERE name = ? AND variant = ?", now, row.name, row.variant)
        return content

    # --- writing ---------------------------------------------------------------------------------

    def put(self, name: str, variant: str, meta: Mapping[str, Any], content: bytes) -> bool:
        """Store or replace one row, and evict others to make room.

        :returns: False if the entry is larger than ``max_bytes`` or could not be written.
        """
        name, variant = _storable_name(name), _storable_name(variant)
        meta_json = json.dumps(meta, sort_keys=True)
        body = hashlib.sha256(content).hexdigest()
        # names count twice: an index holds them too
        size = 2 * (len(name.encode()) + len(variant.encode())) + len(meta_json) + _OVERHEAD
        if size + len(content) + _OVERHEAD > self.max_bytes:
            self._note(f"{name}: larger than the limit of the store ({self.max_bytes} bytes)")
            return False
        seal, now = _seal(name, variant, meta_json, body), self._clock()
        row = (name, variant, meta_json, body, seal, size, now)
        update_same_content = (
            "UPDATE rows SET id = (SELECT max(id) + 1 FROM rows), meta = ?, seal = ?, bytes = ?, used = ?"
            " WHERE name = ? AND variant = ? AND body = ?"
        )

        def write(connection: sqlite3.Connection) -> bool:
            if connection.execute(update_same_content, (meta_json, seal, size, now, name, variant, body)).rowcount:
                self._evict(connection)
                return True
            connection.execute("DELETE FROM rows WHERE name = ? AND variant = ?", (name, variant))
            connection.execute(
                "INSERT OR IGNORE INTO bodies VALUES (?, ?, ?)", (body, content, len(content) + _OVERHEAD)
            )
            connection.execute(
                "INSERT INTO rows (name, variant, meta, body, seal, bytes, used) VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
            self._evict(connection)
            return True

        stored = self._run(write, False, write=True)
        self._run(_shrink, None)
        return stored

    def annotate(self, row: CacheRow, meta: Mapping[str, Any]) -> bool:
        """Replace the metadata of a row; tell whether the row still has the content that was read."""
        meta_json = json.dumps(meta, sort_keys=True)
        seal = _seal(row.name, row.variant, meta_json, row.body)
        statement = "UPDATE rows SET meta = ?, seal = ?, used = ? WHERE name = ? AND variant = ? AND body = ?"
        return self._change(statement, meta_json, seal, self._clock(), row.name, row.variant, row.body) > 0

    def remove(self, name: str, variant: str | None = None) -> None:
        """Remove a name, or one variant of it."""
        if variant is None:
            self._change("DELETE FROM rows WHERE name = ?", _storable_name(name))
        else:
            self._change("DELETE FROM rows WHERE name = ? AND variant = ?", _storable_name(name), variant)

    def clear(self) -> int:
        """Remove all rows and return the disk space; return the number of removed rows.

        :raises BadInput: another process kept the file locked, or it cannot be written.
        """
        count = self._change("DELETE FROM rows")
        if count < 0:
            raise BadInput(f"{self.path}: cannot be cleared ({self.last_failure})", subject=str(self.path))

        def shrink(connection: sqlite3.Connection) -> None:
            connection.executescript("PRAGMA incremental_vacuum")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self._run(shrink, None)
        return count

    def info(self) -> StoreInfo:
        """Return the size and state of the store."""
        query = "SELECT (SELECT count(*) FROM rows), coalesce(sum(CAST(bytes AS INTEGER)), 0) FROM total"
        entries, size = self._run(lambda connection: connection.execute(query).fetchone(), (0, 0))
        files = (self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm")))
        disk = sum(file.stat().st_size for file in files if file.exists())
        return StoreInfo(str(self.path), entries, size, disk, self.max_bytes, self.failures, self.last_failure)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    # --- the file --------------------------------------------------------------------------------

    def _evict(self, connection: sqlite3.Connection) -> None:
        """Remove the least recently used rows until the rest fits the limit."""
        while _total(connection) > self.max_bytes:
            oldest = connection.execute("SELECT id FROM rows ORDER BY used, id LIMIT ?", (_BATCH,)).fetchall()
            if not oldest:  # nothing is left: the sum is damaged
                connection.execute("UPDATE total SET bytes = 0")
            for (row,) in oldest:
                connection.execute("DELETE FROM rows WHERE id = ?", (row,))
                if _total(connection) <= self.max_bytes:
                    break

    def _change(self, statement: str, *values: str | float) -> int:
        """Run one writing statement; return the number of changed rows, -1 after a failure."""
        return self._run(lambda connection: connection.execute(statement, values).rowcount, -1, write=True)

    def _run(self, work: Callable[[sqlite3.Connection], T], default: T, *, write: bool = False) -> T:
        """Run work on the connection, in a transaction if it writes.

        An SQLite error is noted and ``default`` is returned: a broken store must not make a page fail.
        """
        with self._lock:
            try:
                connection = self._open()
                if not write:
                    return work(connection)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(connection)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                return result
            except ERRORS as error:
                self._note(f"{self.path}: {error}")
                if is_damage(error):
                    self._rename_damaged()
                return default

    def _open(self) -> sqlite3.Connection:
        """Return this process's connection; a forked child opens a new one."""
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        self._inherited = self._connection  # never closed here: that would release the parent process's locks
        try:
            connection = self._connect()
        except ERRORS as error:
            if not is_damage(error):
                raise
            self._note(f"{self.path}: {error}")
            self._rename_damaged()
            connection = self._connect()
        self._connection, self._process = connection, os.getpid()
        weakref.finalize(self, _close, connection, self._process)
        return connection

    def _connect(self) -> sqlite3.Connection:
        """Open the file, and create the tables in a new file."""
        self._file = self.path.stat().st_ino if self.path.exists() else 0
        connection = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            write_ahead(connection, _BUSY)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 67108864").fetchall()
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if version == 0 and tables:
                raise sqlite3.DatabaseError("it holds the tables of another program")
            if version == 0:
                for statement in _statements(_SCHEMA):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
            self._file = self.path.stat().st_ino
            if version not in (0, _VERSION):
                error = sqlite3.OperationalError(f"written by another version of Prunus (layout {version})")
                error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # it is no damage
                raise error
        except BaseException:
            connection.close()
            raise
        return connection

    def _rename_damaged(self) -> None:
        """Rename a damaged file, so that the next call creates a new one; do nothing if another process already did."""
        self.close()
        if not self.path.exists() or self.path.stat().st_ino != self._file:
            return
        for end in ("", "-wal", "-shm"):
            file = self.path.with_name(self.path.name + end)
            if file.exists():
                file.replace(file.with_name(f"{self.path.name}.damaged{end}"))

    def _note(self, failure: str) -> None:
        self.failures += 1
        self.last_failure = failure


def _seal(*fields: str) -> str:
    """Return the hash over the fields of a row, which detects damage."""
    return hashlib.sha256("\0".join(fields).encode()).hexdigest()


def _shrink(connection: sqlite3.Connection) -> None:
    """Return the disk space of removed rows if it is large; the rest is reused."""
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    if free > 2 * _SPARE:
        connection.executescript(f"PRAGMA incremental_vacuum({free - _SPARE})")  # execute() would free only one page


def _close(connection: sqlite3.Connection, process: int) -> None:
    """Close a connection only in the process that opened it; a child would release its parent's locks."""
    if process == os.getpid():
        connection.close()


def _storable_name(name: str) -> str:
    """Return a name without lone surrogates, which SQLite cannot store."""
    return name.encode("utf-8", "replace").decode()


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements, because ``executescript`` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _total(connection: sqlite3.Connection) -> int:
    """Return the bytes that are stored, as the triggers counted them."""
    (size,) = connection.execute("SELECT coalesce(sum(CAST(bytes AS INTEGER)), 0) FROM total").fetchone()
    return int(size)
