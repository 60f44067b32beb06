"""The jobs of a server, in its state: what waits, who works on what, and how far it has come.

A job that is worked on is leased to one worker. The worker renews the lease; when it dies, the lease runs out and
another takes the job over, on this server or another one with the same state. Jobs of one index run one after the
other, in the order in which they came; of different indexes, those of the key that waited longest go first. The content
of documents is kept until the document is done, or the job ends.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from ..core.errors import BadInput
from .keys import now
from .state import ServerState
from .user_indexes import CreatedIndex

Kind: TypeAlias = Literal["add", "remove", "delete"]
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
Told: TypeAlias = Literal["", "cancel", "lost"]
"""What a worker is told: to go on, to end the job early, or that the job is no longer its own."""

_KEPT: Final = 7 * 86_400
"""Seconds for which ended jobs can be looked up."""
_ENDED: Final = 100
"""Ended jobs of a key that can be looked up: the newest."""
_TRIES: Final = 3
"""Times that a job may end its server without getting any further, before it is given up; a deletion never is."""
_PAUSES: Final = (5, 3_600)
"""Seconds before the second try of a deletion that failed, which double with each try; and at most."""
_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS serve_jobs (
        id TEXT PRIMARY KEY, number BIGINT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, place TEXT NOT NULL,
        name TEXT NOT NULL, state TEXT NOT NULL, made TEXT NOT NULL, started TEXT NOT NULL DEFAULT '',
        ended TEXT NOT NULL DEFAULT '', ended_at BIGINT NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
        cancel INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
        until DOUBLE PRECISION NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS serve_documents (
        job TEXT NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, url TEXT NOT NULL, type TEXT NOT NULL,
        is_text INTEGER NOT NULL, content BYTEA, fate TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (job, place))""",
    "CREATE TABLE IF NOT EXISTS serve_left (job TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS serve_jobs_ended ON serve_jobs (ended, number)",
    "CREATE INDEX IF NOT EXISTS serve_jobs_owner ON serve_jobs (owner)",
)
_DROP: Final = (
    "DELETE FROM serve_documents WHERE job = ?",
    "DELETE FROM serve_left WHERE job = ?",
    "DELETE FROM serve_jobs WHERE id = ?",
)
_COLUMNS: Final = "id, owner, kind, place, name, state, made, started, ended, error, cancel"


@dataclass(frozen=True, slots=True)
class InputDocument:
    """A document that a job adds or removes.

    :param id: its name in the index.
    :param content: None for a document that is fetched from ``url``, or removed.
    :param type: media type of the content; '' where it is found out.
    """

    id: str
    url: str = ""
    type: str = ""
    content: str | bytes | None = None


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a document.

    :param fate: ``added``, ``unchanged``, ``removed`` or ``failed``; ``left`` where the job failed before.
    :param failure: why it failed.
    """

    place: int
    id: str
    fate: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job.

    :param owner: name of the key that gave it.
    :param place: the index: the id of a created one, or ``=NAME`` of one of the operator's.
    :param name: the index, as its owner calls it.
    :param cancelled: 1 where its owner wants it to end early.
    :param counts: documents by fate; '' are those to do. Of a cancelled job those that are left are only counted.
    """

    id: str
    owner: str
    kind: Kind
    place: str
    name: str
    state: JobState
    made: str
    started: str
    ended: str
    error: str
    cancelled: int
    counts: dict[str, int] = field(default_factory=dict)


class ManyJobs(BadInput):
    """The key has as many unfinished jobs as it may have."""


class NoSuchIndex(BadInput):
    """The index was deleted meanwhile."""


class Queue:
    """The jobs in the server's state. Every call may wait for the disk or the database.

    :param lease: seconds after which a worker that does not renew its lease loses the job.
    """

    def __init__(self, state: ServerState, lease: float) -> None:
        self._state, self.lease = state, lease
        with state.transaction() as run:
            for statement in _SCHEMA:
                run(statement)

    # --- for clients -------------------------------------------------------------------------

    def add(
        self, owner: str, kind: Kind, place: str, name: str, documents: Sequence[InputDocument], most: int
    ) -> JobRecord:
        """Note a new job.

        :param most: unfinished jobs of a key at most.
        :raises ManyJobs: the key has that many.
        :raises NoSuchIndex: the index was deleted meanwhile.
        """
        with self._state.transaction() as run:
            self._forget(run)
            [(count,)] = run("SELECT count(*) FROM serve_jobs WHERE owner = ? AND ended = ''", (owner,))
            if count >= most:
                raise ManyJobs(f"{count} jobs of this key wait or run; wait for one to end", subject="jobs")
            if not place.startswith("=") and not run("SELECT 1 FROM serve_indexes WHERE id = ?", (place,)):
                raise NoSuchIndex(f"no index is called {name}", subject="name")
            id = self._put(run, owner, kind, place, name)
            for number, document in enumerate(documents):
                content = document.content
                is_text = isinstance(content, str)
                data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
                row = (id, number, document.id, document.url, document.type, int(is_text), data)
                run(
                    "INSERT INTO serve_documents (job, place, id, url, type, is_text, content) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            return self._found(run, "id = ?", id)[0]

    def delete_index(self, index: CreatedIndex, most: int = 0) -> JobRecord | None:
        """Forget an index at once, end its jobs, and note the job that removes its data; None where it is gone.

        :param most: unfinished deletions of a key at most; 0 is no limit.
        :raises ManyJobs: the key has that many.
        """
        with self._state.transaction() as run:
            self._forget(run)
            deletions = "SELECT count(*) FROM serve_jobs WHERE owner = ? AND ended = '' AND kind = 'delete'"
            [(count,)] = run(deletions, (index.owner,))
            if most and count >= most:
                raise ManyJobs(f"{count} deletions of this key wait or run; wait for one to end", subject="jobs")
            if not run("SELECT 1 FROM serve_indexes WHERE id = ?", (index.id,)):
                return None
            run("DELETE FROM serve_indexes WHERE id = ?", (index.id,))
            for job in self._found(run, "place = ? AND ended = ''", index.id):
                self._cancel(run, job)
            return self._found(run, "id = ?", self._put(run, index.owner, "delete", index.id, index.name))[0]

    def of(self, owner: str) -> list[JobRecord]:
        """Return the newest hundred jobs of a key, the newest first."""
        with self._state.transaction(writes=False) as run:
            return self._found(run, "owner = ? ORDER BY number DESC LIMIT 100", owner)

    def find(self, owner: str, id: str) -> JobRecord | None:
        """Return a job of a key."""
        with self._state.transaction(writes=False) as run:
            return next(iter(self._found(run, "owner = ? AND id = ?", owner, id)), None)

    def fates(self, job: str) -> list[Fate]:
        """Return the documents of a job, in their order."""
        with self._state.transaction(writes=False) as run:
            rows = run("SELECT place, id, fate, failure FROM serve_documents WHERE job = ? ORDER BY place", (job,))
        return [Fate(*row) for row in rows]

    def cancel(self, owner: str, id: str) -> JobRecord | None:
        """End a job early: at once where it waits, else after the documents that its worker has begun.

        The job that removes a deleted index goes on.
        """
        with self._state.transaction() as run:
            for job in self._found(run, "owner = ? AND id = ? AND ended = '' AND kind <> 'delete'", owner, id):
                self._cancel(run, job)
            return next(iter(self._found(run, "owner = ? AND id = ?", owner, id)), None)

    # --- for workers -------------------------------------------------------------------------

    def claim(self, worker: str, can: Callable[[str], bool], living: Collection[str] = ()) -> JobRecord | None:
        """Lease the next job to a worker; None where there is none.

        :param can: whether the worker can reach the index at a place.
        :param living: workers of this process: a lease of theirs that ran out ended no server.
        """
        find = partial(self._next, worker=worker, can=can, living=living)
        return find(writes=True) if find(writes=False) else None  # most calls find nothing, and then nobody waits

    def renew(self, job: str, worker: str) -> Told:
        """Renew the lease of a job."""
        with self._state.transaction() as run:
            return self._told(run, job, worker)

    def pending(self, job: str, most: int) -> list[tuple[int, InputDocument]]:
        """Return the next documents of a job that have no fate yet, each with its place."""
        with self._state.transaction(writes=False) as run:
            rows = run(
                "SELECT place, id, url, type, is_text, content FROM serve_documents WHERE job = ? AND fate = '' "
                "ORDER BY place LIMIT ?",
                (job, most),
            )
        result = []
        for place, id, url, media_type, is_text, data in rows:
            content: str | bytes | None = None if data is None else bytes(data)
            if is_text and isinstance(content, bytes):
                content = content.decode("utf-8", "surrogatepass")
            result.append((place, InputDocument(id, url, media_type, content)))
        return result

    def note(self, job: str, worker: str, fates: Iterable[Fate]) -> Told:
        """Note what became of documents, drop their content, and renew the lease."""
        with self._state.transaction() as run:
            told = self._told(run, job, worker)
            if told != "lost":
                for fate in fates:
                    run(
                        "UPDATE serve_documents SET fate = ?, failure = ?, content = NULL WHERE job = ? AND place = ?",
                        (fate.fate, fate.failure, job, fate.place),
                    )
                run("UPDATE serve_jobs SET tries = 1 WHERE id = ?", (job,))
        return told

    def end(self, job: str, worker: str, state: JobState, error: str = "") -> None:
        """End a job, and drop the content of documents that are left; nothing happens where the lease is lost."""
        with self._state.transaction() as run:
            if self._told(run, job, worker) != "lost":
                self._end(run, job, state, error)

    def postpone(self, job: str, worker: str) -> float:
        """Give a deletion back that could not be done; return the seconds until a worker tries it again."""
        with self._state.transaction() as run:
            rows = run("SELECT tries FROM serve_jobs WHERE id = ? AND worker = ?", (job, worker))
            first, most = _PAUSES
            pause = float(min(most, first * 2 ** min(rows[0][0] - 1, 20))) if rows else 0.0
            run(
                "UPDATE serve_jobs SET state = 'waiting', worker = '', until = ? WHERE id = ? AND worker = ?",
                (self._state.time(run) + pause, job, worker),
            )
        return pause

    def release(self, job: str, worker: str, pause: float = 0.0) -> None:
        """Give a job back, so that another worker takes it.

        :param pause: seconds before one does.
        """
        with self._state.transaction() as run:
            run(
                "UPDATE serve_jobs SET state = 'waiting', worker = '', until = ?, "
                "tries = CASE WHEN tries > 0 THEN tries - 1 ELSE 0 END WHERE id = ? AND worker = ?",
                (self._state.time(run) + pause, job, worker),
            )

    # --- inside ------------------------------------------------------------------------------

    def _next(self, writes: bool, worker: str, can: Callable[[str], bool], living: Collection[str]) -> JobRecord | None:
        """Return the job whose turn it is: deletions first, then the job of the owner who waited longest for one."""
        with self._state.transaction(writes) as run:
            at = self._state.time(run)
            longest = max(self.lease, *_PAUSES)  # later than this was written before the clock was set back
            busy: set[str] = set()
            working: set[str] = set()
            ready = []
            rows = run(
                "SELECT id, owner, kind, place, state, until, tries, worker FROM serve_jobs WHERE ended = '' "
                "ORDER BY number"
            )
            for id, owner, kind, place, state, until, tries, before in rows:
                deletes = kind == "delete"
                later = at < until <= at + longest
                if later and state == "running" and not deletes:
                    working.add(owner)
                if place in busy or not can(place) or later:
                    busy.add(place)  # the later jobs of an index wait for the earlier ones
                elif writes and tries >= _TRIES and not deletes and before not in living:
                    self._end(run, id, "failed", f"given up: it ended its server {tries} times")
                else:
                    busy.add(place)
                    ready.append((not deletes, owner, id, before not in living))
            if not ready:
                return None
            served = dict(run(
                "SELECT owner, max(until) FROM serve_jobs WHERE kind <> 'delete' AND owner IN "
                "(SELECT owner FROM serve_jobs WHERE ended = '') GROUP BY owner"
            ))  # fmt: skip
            # until: about when a worker was last at work for the owner; the oldest of equal jobs stands first
            *_, id, counts = min(ready, key=lambda job: (job[0], job[1] in working, served.get(job[1], 0.0)))
            if writes:
                run(
                    "UPDATE serve_jobs SET state = 'running', worker = ?, until = ?, tries = tries + ?, "
                    "started = CASE started WHEN '' THEN ? ELSE started END WHERE id = ?",
                    (worker, at + self.lease, int(counts), now(), id),
                )
            return self._found(run, "id = ?", id)[0]

    def _told(self, run: Any, job: str, worker: str) -> Told:
        rows = run("SELECT cancel FROM serve_jobs WHERE id = ? AND worker = ? AND ended = ''", (job, worker))
        if not rows:
            return "lost"
        run("UPDATE serve_jobs SET until = ? WHERE id = ?", (self._state.time(run) + self.lease, job))
        return "cancel" if rows[0][0] else ""

    def _put(self, run: Any, owner: str, kind: Kind, place: str, name: str) -> str:
        id = secrets.token_hex(16)
        [(last,)] = run("SELECT coalesce(max(number), 0) FROM serve_jobs")
        row = (id, last + 1, owner, kind, place, name, now())
        run(
            "INSERT INTO serve_jobs (id, number, owner, kind, place, name, state, made) "
            "VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?)",
            row,
        )
        return id

    def _cancel(self, run: Any, job: JobRecord) -> None:
        if job.state == "waiting":
            self._end(run, job.id, "cancelled", "")
        else:
            run("UPDATE serve_jobs SET cancel = 1 WHERE id = ?", (job.id,))

    def _end(self, run: Any, job: str, state: JobState, error: str) -> None:
        run(
            "UPDATE serve_jobs SET state = ?, error = ?, ended = ?, ended_at = ?, worker = '' WHERE id = ?",
            (state, error, now(), int(time.time()), job),
        )
        if state == "cancelled":  # the client knows what it gave; many large jobs can be made and cancelled fast
            [(left,)] = run("SELECT count(*) FROM serve_documents WHERE job = ? AND fate = ''", (job,))
            run("DELETE FROM serve_documents WHERE job = ? AND fate = ''", (job,))
            run("INSERT INTO serve_left (job, count) VALUES (?, ?)", (job, left))
        run("UPDATE serve_documents SET fate = 'left' WHERE job = ? AND fate = ''", (job,))
        run("UPDATE serve_documents SET content = NULL, url = '' WHERE job = ?", (job,))
        [(owner,)] = run("SELECT owner FROM serve_jobs WHERE id = ?", (job,))
        newest = "ended <> '' ORDER BY ended_at DESC, number DESC"
        many = f"SELECT id FROM serve_jobs WHERE owner = ? AND {newest} LIMIT 1000 OFFSET {_ENDED}"  # noqa: S608
        for (old,) in run(many, (owner,)):
            self._drop(run, old)

    def _forget(self, run: Any) -> None:
        before = int(time.time()) - _KEPT
        for (old,) in run("SELECT id FROM serve_jobs WHERE ended <> '' AND ended_at < ?", (before,)):
            self._drop(run, old)

    def _drop(self, run: Any, job: str) -> None:
        for statement in _DROP:
            run(statement, (job,))

    def _found(self, run: Any, condition: str, *values: Any) -> list[JobRecord]:
        rows = run(f"SELECT {_COLUMNS} FROM serve_jobs WHERE {condition}", values)  # noqa: S608 - from constants
        result = []
        for row in rows:
            counts = run("SELECT fate, count(*) FROM serve_documents WHERE job = ? GROUP BY fate", (row[0],))
            left = run("SELECT 'left', count FROM serve_left WHERE job = ? AND count > 0", (row[0],))
            result.append(JobRecord(*(*row, dict([*counts, *left]))))
        return result
