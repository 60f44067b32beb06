"""Worker processes that do parts of a work: an item that kills or hangs its process is lost alone."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, TypeAlias, TypeVar

from .errors import OutsideFailed

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")

Make: TypeAlias = Callable[[], Callable[[Item], Result]]
"""Makes the function in a worker, once, which loads engines. It passes between processes, as items and results do."""

_START_SECONDS: Final = 300.0
"""Seconds for a process to load what it needs, where items have a limit at all."""
_STARTS: Final = 3
"""Processes that may die in a row before one is ready."""
_TICK: Final = 0.25
"""Longest wait for a result, in seconds: how late an item that hangs is noticed."""
_SOON: Final = 0.02
"""Seconds after which a worker without a part asks for one again."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Stands for the result of an item that killed or hung its process in every try.

    :param code: exit code of the last process; None where the item took too long.
    """

    code: int | None
    tries: int


@dataclass(frozen=True, slots=True)
class WorkerPool(Generic[Item, Result]):
    """Calls a function for the items of parts in several processes, which end with :meth:`run`.

    :param make: makes the function in each process.
    :param workers: number of processes.
    :param seconds: time for an item; after it the item hangs.
    :param tries: times that an item is tried which kills or hangs its process.
    """

    make: Make[Item, Result]
    workers: int
    seconds: float = float("inf")
    tries: int = 2

    def run(
        self, parts: Iterator[tuple[Key, Sequence[Item]] | None]
    ) -> Generator[tuple[Key, list[Result | Lost]], None, None]:
        """Yield the key of each part with a result for each item in order; parts as they end.

        Closing the generator ends the processes. A part is taken when a worker has none, so parts of all workers are
        in memory.

        :param parts: key and items of each part; None says that there is no part yet.
        :raises OutsideFailed: processes die before they can work.
        :raises Exception: what the function, or its making, raised.
        """
        team: list[_Worker[Key, Item, Result]] = [_Worker(self) for _ in range(self.workers)]
        done: list[tuple[Key, list[Result | Lost]]] = []
        more = True
        try:
            while True:
                for worker in team:
                    if more and worker.part is None:
                        try:
                            part = next(parts)
                        except StopIteration:
                            more = False
                            break
                        if part is None:
                            break
                        if part[1]:
                            worker.begin(part)
                        else:
                            done.append((part[0], []))
                yield from done  # after the processes have got their next parts: the caller takes time to write
                if not more and all(worker.part is None for worker in team):
                    return
                soon = _SOON if more else _TICK
                done = list(_ended(team, 0.0 if done else soon))
        finally:
            for worker in team:
                worker.stop()


def _ended(team: Sequence[_Worker[Key, Item, Result]], soon: float) -> Iterator[tuple[Key, list[Result | Lost]]]:
    """Take what the processes sent, replace those that died or hang, and yield the parts that ended.

    :param soon: seconds to wait at most where a worker has no part.
    """
    working = {worker.pipe: worker for worker in team if worker.part is not None}
    seconds = _TICK if len(working) == len(team) else soon
    if not working:
        time.sleep(seconds)
    for pipe in wait([pipe for pipe in working if pipe is not None], timeout=seconds) if working else ():
        working[pipe].receive()  # type: ignore[index]
    for worker in working.values():
        worker.watch()
        if worker.part is not None and len(worker.results) == len(worker.part[1]):
            key, results = worker.part[0], worker.results
            worker.part, worker.results = None, []
            yield key, results


@dataclass(slots=True)
class _Worker(Generic[Key, Item, Result]):
    """One process, and the part that it works on; it gets one part at a time, so no pipe is written from both ends.

    :param results: those of the part's first items.
    :param tried: times that the next item has killed or hung a process.
    """

    pool: WorkerPool[Item, Result]
    process: BaseProcess | None = None
    pipe: Connection | None = None
    part: tuple[Key, Sequence[Item]] | None = None
    results: list[Result | Lost] = field(default_factory=list)
    since: float = 0.0
    ready: bool = False
    tried: int = 0
    starts: int = 0

    def begin(self, part: tuple[Key, Sequence[Item]]) -> None:
        """Work on a part from its first item."""
        self.part, self.results, self.tried = part, [], 0
        self._send()

    def receive(self) -> None:
        """Take what the process has sent; note its death.

        :raises Exception: what the function, or its making, raised.
        """
        assert self.pipe is not None and self.process is not None
        messages = []
        try:
            while self.pipe.poll():
                messages.append(self.pipe.recv())
            died = False
        except (EOFError, OSError):
            died = True
        for message in messages:
            self.since = time.monotonic()
            if message is None:
                self.ready, self.starts = True, 0
                self._send()
                continue
            result, error = message
            if error is not None:
                raise error
            self.results.append(result)
            self.tried = 0
        if died:
            self.process.join(5)
            self._died(self.process.exitcode or 0)

    def watch(self) -> None:
        """End the process where its item takes too long."""
        seconds = self.pool.seconds if self.ready else max(self.pool.seconds, _START_SECONDS)
        if self.process is not None and time.monotonic() - self.since > seconds:
            self._died(None)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None

    def _died(self, code: int | None) -> None:
        """Go on with the item at which the process ended once more, then after it, in a new process."""
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
            if self.tried >= self.pool.tries:
                self.results.append(Lost(code, self.tried))
                self.tried = 0
        self._send()

    def _send(self) -> None:
        """Give the process the items that have no result yet, when it is ready; start one where there is none."""
        assert self.part is not None
        left = self.part[1][len(self.results) :]
        if not left:
            return
        self.since = time.monotonic()
        if self.process is None:
            context = get_context("spawn")
            self.pipe, there = context.Pipe()
            self.process = context.Process(target=_work, args=(there, self.pool.make), daemon=True)
            self.process.start()
            there.close()
            self.ready = False
        if self.ready and self.pipe is not None:
            try:
                self.pipe.send(left)
            except OSError:  # it died while it waited for work: receive() notes it
                return


def _work(pipe: Connection, make: Make[Any, Any]) -> None:
    """Be a worker: say None when the function is made, then answer each list of items by a result for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    message: tuple[Any, Exception | None]
    try:
        try:
            function = make()
        except Exception as error:
            pipe.send((None, error))
            return
        pipe.send(None)
        while True:
            for item in pipe.recv():
                try:
                    message = function(item), None
                except Exception as error:
                    message = None, error
                pipe.send(message)
    except (EOFError, OSError):  # the parent has closed the pipe
        return
