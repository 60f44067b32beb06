"""The store of a server: its keys and its counts, in SQLite, or in PostgreSQL for several machines.

Every call is one short transaction. Callers run it in a thread: it may wait for the disk or the database. What only
reads has a connection of its own, so that it waits for no writer.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput, MissingExtra, StoreFailed, one_line
from ..core.installation import pip_install
from ..core.settings import Settings
from ..core.sqlite import write_ahead

log = logging.getLogger("prunus.serve")

_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS serve_keys (
        name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL, made TEXT NOT NULL,
        a_minute INTEGER NOT NULL, a_day INTEGER NOT NULL, revoked TEXT NOT NULL DEFAULT '')""",
    """CREATE TABLE IF NOT EXISTS serve_counts (
        name TEXT NOT NULL, span TEXT NOT NULL, start BIGINT NOT NULL, count BIGINT NOT NULL,
        PRIMARY KEY (name, span))""",
)
_SPANS: Final = {"minute": 60, "day": 86_400}
_WAIT: Final = 10.0
"""Seconds to wait for a database that another process or thread is writing."""
PATIENCE: Final[dict[str, int]] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Limits of a connection to PostgreSQL: a network that drops all packets ends it after some ten seconds."""


class StateFailed(StoreFailed):
    """The state cannot be read or written now."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is stored of a key.

    :param digest: SHA-256 of the key, hex; the key itself is not stored.
    :param scopes: what the key may do, from ``prunus.serve.keys.SCOPES``.
    :param made, revoked: UTC times, ISO 8601; ``revoked`` is '' while the key works.
    :param a_minute, a_day: requests at most; 0 is no limit.
    """

    name: str
    digest: str
    scopes: tuple[str, ...]
    made: str
    a_minute: int = 0
    a_day: int = 0
    revoked: str = ""


def state_place(settings: Settings, given: str | None = None) -> str:
    """Return the place of the state: as given, by the setting ``serve_state``, or ``serve.db`` in ``home``."""
    return given or settings.serve_state or str(settings.folder / "serve.db")


class ServerState:
    """Keys and counts of a server; threads and processes may share it.

    :param place: a file, or ``postgres:ADDRESS``.
    :raises BadInput: the file cannot be opened.
    :raises MissingExtra: PostgreSQL needs the extra ``postgres``.
    :raises StateFailed: the database does not answer.
    """

    def __init__(self, place: str) -> None:
        engine, _, address = place.partition(":")
        self._postgres = address if engine == "postgres" and address else ""
        self._path = Path(place).expanduser()
        if not self._postgres:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
            except OSError as error:
                raise BadInput(f"{place}: cannot be written ({error.strerror})", subject=place) from error
        self._writing = _Slot(self._connect())
        self._reading = _Slot(self._connect())
        self._opened = () if self._postgres else self._on_disk()
        with self._detailed(writes=True) as run:  # the operator must see where the state is; clients must not
            for statement in _SCHEMA:
                run(statement)

    def close(self) -> None:
        """Close the database."""
        for slot in (self._writing, self._reading):
            with slot.lock:
                slot.connection.close()

    def add(self, key: KeyRecord) -> None:
        """Store a new key.

        :raises BadInput: a key has this name already.
        """
        with self.transaction() as run:
            run("DELETE FROM serve_keys WHERE name = ? AND revoked <> ''", (key.name,))  # its name is free again
            if run("SELECT 1 FROM serve_keys WHERE name = ?", (key.name,)):
                raise BadInput(f"a key is called {key.name} already; choose another name", subject=key.name)
            row = (key.name, key.digest, " ".join(key.scopes), key.made, key.a_minute, key.a_day)
            run("INSERT INTO serve_keys (name, digest, scopes, made, a_minute, a_day) VALUES (?, ?, ?, ?, ?, ?)", row)

    def keys(self) -> list[KeyRecord]:
        """Return all keys in the order in which they were made, revoked ones too."""
        with self.transaction(writes=False) as run:
            rows = run(f"SELECT {_COLUMNS} FROM serve_keys ORDER BY made, name")  # noqa: S608 - a constant
        return [_record(row) for row in rows]

    def key(self, digest: str) -> KeyRecord | None:
        """Return the working key with this digest."""
        with self.transaction(writes=False) as run:
            rows = run(f"SELECT {_COLUMNS} FROM serve_keys WHERE digest = ? AND revoked = ''", (digest,))  # noqa: S608
        return _record(rows[0]) if rows else None

    def revoke(self, name: str, now: str) -> bool:
        """Stop a key; False where no working key has this name."""
        with self.transaction() as run:
            known = run("SELECT 1 FROM serve_keys WHERE name = ? AND revoked = ''", (name,))
            run("UPDATE serve_keys SET revoked = ? WHERE name = ? AND revoked = ''", (now, name))
        return bool(known)

    def count(self, name: str, limits: dict[str, int], now: float) -> int:
        """Count a request, unless a limit is reached.

        :param limits: requests at most by ``minute`` and ``day``.
        :param now: seconds since 1970.
        :returns: 0 where it was counted, else the seconds until the limit allows the next request.
        """
        wait = 0
        with self.transaction() as run:
            rows = run("SELECT span, start, count FROM serve_counts WHERE name = ?", (name,))
            known = {span: (start, count) for span, start, count in rows}
            current = {}
            for span, most in limits.items():
                start = int(now) // _SPANS[span] * _SPANS[span]
                count = known[span][1] if span in known and known[span][0] == start else 0
                current[span] = (start, count + 1)
                if count >= most:
                    wait = max(wait, start + _SPANS[span] - int(now))
            if not wait:
                for span, (start, count) in current.items():
                    run(
                        "INSERT INTO serve_counts (name, span, start, count) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (name, span) DO UPDATE SET start = excluded.start, count = excluded.count",
                        (name, span, start, count),
                    )
        return wait

    def try_writing(self) -> None:
        """Write something; raises StateFailed where that cannot be done, as on a full disk."""
        with self.transaction() as run:
            run(
                "INSERT INTO serve_counts (name, span, start, count) VALUES ('', 'tried', 0, 1) "
                "ON CONFLICT (name, span) DO UPDATE SET count = serve_counts.count + 1"
            )

    def time(self, run: Any) -> float:
        """Return the seconds since 1970 by a clock that all servers of this state share.

        :param run: from :meth:`transaction`.
        """
        if not self._postgres:
            return time.time()
        seconds: float = run("SELECT extract(epoch FROM clock_timestamp())::double precision")[0][0]
        return seconds

    def _connect(self) -> Any:
        if self._postgres:
            try:
                import psycopg
            except ImportError as error:
                raise MissingExtra(
                    f"a state in PostgreSQL needs psycopg; run: {pip_install('postgres')}", subject="state"
                ) from error
            try:
                return psycopg.connect(
                    self._postgres, autocommit=True, options="-c statement_timeout=10000", **PATIENCE
                )
            except psycopg.Error as error:
                raise StateFailed(f"the state's database: {one_line(str(error))}", subject="state") from error
        try:
            made = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            write_ahead(made, _WAIT)
        except sqlite3.Error as error:
            raise BadInput(f"{self._path}: {error}; name another file", subject=str(self._path)) from error
        return made

    def _on_disk(self) -> tuple[int, ...]:
        """Return which file stands at the path; () where there is none, or an empty one."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return (found.st_dev, found.st_ino) if found.st_size else ()

    @contextmanager
    def transaction(self, writes: bool = True) -> Iterator[Any]:
        """Yield a function that runs a statement and returns its rows; all statements hold, or none.

        :param writes: wait until no other process writes.
        :raises StateFailed: it cannot be done; the log alone has the details, for clients read the message.
        """
        try:
            with self._detailed(writes) as run:
                yield run
        except StateFailed as error:
            log.error("the state cannot be used: %s", error)
            message = "the server's state cannot be read or written; try again soon"
            raise StateFailed(message, subject="state") from error

    @contextmanager
    def _detailed(self, writes: bool) -> Iterator[Any]:
        """Do what ``transaction`` does, with errors that name the place of the state."""
        slot = self._writing if writes else self._reading
        if not slot.lock.acquire(timeout=_WAIT):
            raise StateFailed(f"other threads have used it for {_WAIT:g} seconds", subject="state")
        try:
            if self._postgres:
                if slot.connection.closed:
                    slot.connection = self._connect()
                with slot.connection.transaction():
                    # one writer at a time, as in SQLite: a count is read and then written
                    if writes:
                        slot.connection.execute("SELECT pg_advisory_xact_lock(7305812)")
                    yield slot.on_postgres
                return
            if (
                self._on_disk() != self._opened
            ):  # else keys that are gone would go on to work, and none could be revoked
                raise StateFailed(
                    f"{self._path}: removed, replaced or emptied; start the server again", subject="state"
                )
            slot.connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield slot.on_sqlite
            except BaseException:
                slot.connection.execute("ROLLBACK")
                raise
            slot.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StateFailed(f"{self._path}: {error}", subject="state") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "psycopg":
                raise
            raise StateFailed(f"the state's database: {one_line(str(error))}", subject="state") from error
        finally:
            slot.lock.release()


class _Slot:
    """A connection, which one thread at a time uses."""

    def __init__(self, connection: Any) -> None:
        self.lock = threading.Lock()
        self.connection = connection

    def on_sqlite(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement in SQLite; return its rows."""
        rows: list[Any] = self.connection.execute(statement, values).fetchall()
        return rows

    def on_postgres(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement in PostgreSQL; return its rows."""
        cursor = self.connection.execute(statement.replace("?", "%s"), values)
        return list(cursor.fetchall()) if cursor.description else []


_COLUMNS: Final = "name, digest, scopes, made, a_minute, a_day, revoked"


def _record(row: Sequence[Any]) -> KeyRecord:
    name, digest, scopes, made, a_minute, a_day, revoked = row
    return KeyRecord(name, digest, tuple(scopes.split()), made, a_minute, a_day, revoked)
