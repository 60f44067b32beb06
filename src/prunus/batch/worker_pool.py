"""Worker processes that do the parts of a batch: a page that kills or hangs its process fails alone."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from ..core.errors import OutsideFailed, PrunusError
from ..core.settings import Settings
from .prefetch import Prefetch
from .rows import Part, Row
from .work import Task, Work, failed

Record = dict[str, Any]

TRIES: Final = 2
"""Times that a page is tried which kills or hangs its process."""
_START_SECONDS: Final = 300.0
"""Seconds for a process to load what it needs."""
_STARTS: Final = 3
"""Processes that may die in a row before one is ready."""
_TICK: Final = 0.25
"""Longest wait for news, in seconds: how late a page that hangs is noticed."""


@dataclass(slots=True)
class WorkerPool:
    """Does parts in several processes, which end with :meth:`run`.

    :param workers: number of processes.
    :param seconds: time for a page; after it the page hangs.
    """

    task: Task
    settings: Settings
    workers: int
    seconds: float

    def run(self, parts: Iterator[Part]) -> Iterator[tuple[Part, list[Record]]]:
        """Yield each part with its records, one for each row in the same order; parts as they end.

        The next parts are read while others are at work. Parts of all workers and two more are in memory.

        :raises OutsideFailed: processes die before they can work.
        """
        team = [_Member(self) for _ in range(self.workers)]
        try:
            with closing(Prefetch(parts, 2)) as ahead:
                done: list[tuple[Part, list[Record]]] = []
                while True:
                    for member in team:
                        if member.part is None and not ahead.ended:
                            busy = any(other.part is not None for other in team)
                            part = ahead.next(0.0 if busy else _TICK)
                            if part is not None and part.rows:
                                member.begin(part)
                            elif part is not None:
                                yield part, []
                    yield from done  # after the processes have got their next parts: the caller takes time to write
                    if ahead.ended and all(member.part is None for member in team):
                        return
                    done = list(self._news(team))
        finally:
            for member in team:
                member.stop()

    def _news(self, team: list[_Member]) -> Iterator[tuple[Part, list[Record]]]:
        """Take what the processes sent, replace those that died or hang, and yield the parts that ended."""
        working = {member.pipe: member for member in team if member.pipe is not None and member.part is not None}
        late = any(member.part is None for member in team)  # one has no work: look soon whether a part was read
        for pipe in wait(list(working), timeout=0.02 if late else _TICK):
            working[pipe].receive()  # type: ignore[index]
        for member in working.values():
            member.watch()
            if member.part is not None and len(member.records) == len(member.part.rows):
                yield member.part, member.end()


class Alone:
    """One process that does one part after the other, for a caller that shares parts out itself.

    :param seconds: time for a page; after it the page hangs.
    """

    def __init__(self, task: Task, settings: Settings, seconds: float) -> None:
        self._member = _Member(WorkerPool(task, settings, 1, seconds))

    def records(self, part: Part) -> list[Record]:
        """Return the records of a part, one for each row in the same order.

        :raises OutsideFailed: the process dies before it can work.
        """
        if not part.rows:
            return []
        member = self._member
        member.begin(part)
        while len(member.records) < len(part.rows):
            if member.pipe is not None and wait([member.pipe], timeout=_TICK):
                member.receive()
            member.watch()
        return member.end()

    def close(self) -> None:
        """End the process."""
        self._member.stop()


@dataclass(slots=True)
class _Member:
    """One process, and the part that it works on.

    :param records: those of the part's first rows.
    :param tried: times that the next row has killed or hung a process.
    """

    pool: WorkerPool
    process: BaseProcess | None = None
    pipe: Connection | None = None
    part: Part | None = None
    records: list[Record] = field(default_factory=list)
    since: float = 0.0
    ready: bool = False
    tried: int = 0
    starts: int = 0

    def begin(self, part: Part) -> None:
        """Work on a part from its first row."""
        self.part, self.records, self.tried = part, [], 0
        self._send()

    def end(self) -> list[Record]:
        """Return the records of the part that ended."""
        records, self.part, self.records = self.records, None, []
        return records

    def receive(self) -> None:
        """Take what the process has sent; note its death."""
        assert self.pipe is not None
        try:
            while self.pipe.poll():
                found = self.pipe.recv()
                if isinstance(found, PrunusError):
                    raise found
                self.since = time.monotonic()
                if found is None:
                    self.ready, self.starts = True, 0
                    self._send()
                else:
                    self.records.append(found)
                    self.tried = 0
        except (EOFError, OSError):
            self._died("crash", "the process died at this page")

    def watch(self) -> None:
        """End the process where its page takes too long."""
        if self.process is None:
            return
        seconds = self.pool.seconds if self.ready else _START_SECONDS
        if time.monotonic() - self.since > seconds:
            self._died("hang", f"this page took more than {seconds:g} seconds")

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None

    def _died(self, kind: str, reason: str) -> None:
        """Note the page at which the process ended; go on with it once more, then after it, in a new process."""
        code = self.process.exitcode if self.process is not None else None
        ready = self.ready
        self.stop()
        if not ready:
            self.starts += 1
            if self.starts >= _STARTS:
                raise OutsideFailed(
                    f"worker processes die before they can work (exit code {code}); is there enough memory?",
                    subject="worker",
                )
        else:
            self.tried += 1
            if self.tried >= TRIES:
                self._fail(kind, f"{reason}, in {TRIES} tries")
        self._send()

    def _fail(self, kind: str, reason: str) -> None:
        assert self.part is not None
        row = self.part.rows[len(self.records)]
        at = {"record": row.record, "id": row.id, "url": row.url or row.path}
        self.records.append(at | failed(reason, kind))
        self.tried = 0

    def _send(self) -> None:
        """Give the process the rows that have no record yet, when it is ready; start one where there is none."""
        assert self.part is not None
        left = self.part.rows[len(self.records) :]
        if not left:
            return
        self.since = time.monotonic()
        if self.process is None:
            self._start()
        if not self.ready or self.pipe is None:
            return
        try:
            self.pipe.send(left)
        except OSError:  # it died while it waited for work: receive() notes it
            return

    def _start(self) -> None:
        context = get_context("spawn")
        self.pipe, there = context.Pipe()
        arguments = (there, self.pool.task, self.pool.settings)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        there.close()
        self.ready = False


def _work(pipe: Connection, task: Task, settings: Settings) -> None:
    """Be a worker: answer each list of rows by one record a row. None says that the worker is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _end_with_parent()
    try:
        work = Work(task, settings)
        pipe.send(None)
        while True:
            rows: tuple[Row, ...] = pipe.recv()
            for row in rows:
                pipe.send(work.record(row))
    except PrunusError as error:
        pipe.send(OutsideFailed(str(error), subject="worker"))
    except (EOFError, OSError):  # the parent has closed the pipe
        return


def _end_with_parent() -> None:
    """End this process when its parent ends, even by a kill."""
    parent = parent_process()

    def wait_for_end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()
