"""Connections to PostgreSQL: psycopg's pool, time limits on both sides, and one-line reasons without the address."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ....core.errors import MissingExtra
from ....core.installation import pip_install

MOST: Final = 8
"""Most connections of one opened index, and so most questions that it answers at the same moment."""
PATIENCE: Final = 10
"""Time limit of one statement, as a multiple of ``wait``."""
_IDLE_SECONDS: Final = 300
"""Seconds after which the pool closes a connection that was idle."""
_GRACE: Final = 5.0
"""Seconds after the server's own time limit at which it is taken for frozen."""
_NETWORK: Final[dict[str, int]] = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A network that drops all packets ends a connection after some ten seconds."""

_REASONS: Final = {
    "28P01": "the password is refused",
    "28000": "this user is refused",
    "3D000": "there is no such database",
    "3F000": "there is no such schema",
    "0A000": "pgvector is not installed on the server",
    "58P01": "pgvector is not installed on the server",
    "42501": "this user may not do that",
    "25006": "the server is read-only",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
    "53300": "the server takes no more connections",
    "55P03": "another process has been writing for too long",
    "57014": "it took too long",
    "57P01": "the server was stopped; try again",
    "57P02": "the server has crashed; try again",
    "57P03": "the server is starting or stopping; try again",
}
"""Messages by SQLSTATE; the server's messages are not shown, because they may hold parts of the address."""

_REFUSALS: Final = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
    ("the database system is", "57P03"),
    ("no pg_hba.conf entry", "28000"),
)
"""Parts of the messages of refused connections, which carry no SQLSTATE."""


class Unanswered(Exception):
    """No connection came free in time, or the server keeps one open and does not answer; the text says which."""


class Pool:
    """Connections to one schema; threads may share it, and a forked process too.

    :param dsn: the address in libpq's form.
    :param wait: seconds to wait for a connection, the server's or the pool's, and for a lock of another writer.
    :param schema: the schema of the index, the first of the search path.
    :raises MissingExtra: psycopg is not installed.
    """

    def __init__(self, dsn: str, wait: float, schema: str) -> None:
        try:
            import psycopg
            import psycopg_pool
        except ImportError as error:
            raise MissingExtra(
                f"the store postgres needs psycopg ({error}); run: {pip_install('postgres')}", subject="postgres"
            ) from error
        self.psycopg: Any = psycopg
        self._pools: Any = psycopg_pool
        self._kind = _limited(psycopg.Connection, PATIENCE * wait + _GRACE)
        self._dsn, self._wait, self._schema = dsn, wait, schema
        self._process, self._pool = 0, None
        self._lock = threading.Lock()

    @contextmanager
    def patient(self, connection: Any, seconds: int) -> Iterator[None]:
        """Give the statements of a connection, outside a transaction, another time limit."""
        usual = connection.execute("SELECT current_setting('statement_timeout')").fetchone()[0]
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(1000 * seconds),))
        connection.seconds = seconds + _GRACE
        try:
            yield
        finally:
            del connection.seconds
            if not connection.closed:
                connection.execute("SELECT set_config('statement_timeout', %s, false)", (usual,))

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Lend a connection; one whose user failed is closed.

        :raises Unanswered: none came free in time.
        """
        pool = self._open()
        try:
            connection = pool.getconn(self._wait)
        except self._pools.PoolTimeout:
            self._refused()
            raise Unanswered(f"no connection came free in {self._wait:g} seconds; there are {MOST}") from None
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        """Close the idle connections; the next call opens a new pool."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.close()

    def _open(self) -> Any:
        """Return the pool of this process. The first connection is made here, so that a refusal is told at once."""
        with self._lock:
            if self._pool is None or self._process != os.getpid():  # after a fork, the connections are the parent's
                self._refused()
                # the pool logs each failed connection, with its address; the caller gets one error without the address
                logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
                self._process = os.getpid()
                self._pool = self._pools.ConnectionPool(
                    self._dsn,
                    kwargs=self._arguments(),
                    connection_class=self._kind,
                    min_size=0,
                    max_size=MOST,
                    max_idle=_IDLE_SECONDS,
                    check=self._pools.ConnectionPool.check_connection,
                    configure=self._configure,
                    reconnect_timeout=self._wait,
                    open=True,
                )
            return self._pool

    def _refused(self) -> None:
        """Raise the error with which the server refuses a connection; the pool itself does not tell it."""
        self._kind.connect(self._dsn, **self._arguments()).close()

    def _arguments(self) -> dict[str, Any]:
        return {"connect_timeout": max(2, int(self._wait)), "autocommit": True, **_NETWORK}  # libpq takes 1 for 2

    def _configure(self, connection: Any) -> None:
        limit = int(1000 * self._wait)
        settings = {
            "search_path": f"{self._schema}, public",
            "lock_timeout": str(limit),
            "statement_timeout": str(PATIENCE * limit),
            # a process that stops in the middle of a change must not hold the lock for ever
            "idle_in_transaction_session_timeout": str(PATIENCE * limit),
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def reason_of(error: Exception) -> str:
    """Return why psycopg or the pool failed, in words that hold no part of the address."""
    if isinstance(error, Unanswered):
        return str(error)
    state = str(getattr(error, "sqlstate", None) or "")
    if state:
        return _REASONS.get(state, f"SQLSTATE {state}")
    # libpq tells no SQLSTATE of a refused connection; only these words of its message are looked for
    told = str(error)
    for words, known in _REFUSALS:
        if words in told:
            return _REASONS[known]
    if "FATAL: " in told:
        if 'database "' in told:
            return _REASONS["3D000"]
        return _REASONS["28000"]
    if "server closed the connection" in told or "connection is lost" in told or "terminat" in told:
        return "the connection broke; the server may have stopped"
    return "no connection; is the address right?"


def _limited(kind: Any, limit: float) -> Any:
    """Return a class of connections that wait for the server at most so many seconds a statement."""

    class Limited(kind):  # type: ignore[misc]  # psycopg is optional
        seconds = limit

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().wait(_until(gen, time.monotonic() + self.seconds), *args, **kwargs)
            except Unanswered:
                self.pgconn.finish()  # its state is not known: it is not used again
                raise

    return Limited


def _until(gen: Any, deadline: float) -> Generator[Any, Any, Any]:
    """Do what a generator of psycopg does, until a time; psycopg wakes it every 0.1 seconds."""
    try:
        wants = next(gen)
        while True:
            ready = yield wants
            if not ready and time.monotonic() > deadline:
                raise Unanswered("the server does not answer")
            wants = gen.send(ready)
    except StopIteration as end:
        return end.value
