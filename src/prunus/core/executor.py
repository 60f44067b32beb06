"""Share work out to processes: a function is called for many tasks, and the results come in the order of the tasks.

The result never depends on the number of workers: what a task is does not, and the order does not.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol, TypeVar

from .errors import OutsideFailed

Task = TypeVar("Task")
Result = TypeVar("Result")

Make = Callable[[], Callable[[Task], Result]]
"""Makes the function in a worker, once, which loads engines. It passes between processes, as tasks and results do."""

_AHEAD: Final = 2
"""Results for each worker that wait for an earlier one; bounds the memory."""


class Executor(Protocol):
    """Calls a function for many tasks, here or in workers."""

    def __call__(self, make: Make[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the function's result for each task, in the order of the tasks; few tasks are in memory.

        :raises OutsideFailed: a worker died.
        """
        ...


def in_process(make: Make[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Do the tasks one by one in this process."""
    return map(make(), tasks)


class ProcessExecutor:
    """Does tasks in several processes of this machine, which end with the last task.

    :param workers: number of processes.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, make: Make[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the function's result for each task; a lone task is done in this process."""
        left = iter(tasks)
        first = [*islice(left, 2)]
        if self.workers < 2 or len(first) < 2:
            yield from in_process(make, chain(first, left))
            return
        team = _Team(make, self.workers)
        try:
            yield from team.results(chain(first, left))
        finally:
            team.stop()


class _Team:
    """The processes of one call. Each has one task at a time, so that no pipe is written from both ends."""

    def __init__(self, make: Make[Any, Any], workers: int) -> None:
        context = get_context("spawn")
        self._idle: list[Connection] = []
        self._busy: dict[Connection, int] = {}
        self._members: dict[Connection, BaseProcess] = {}
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(make, theirs), daemon=True)
            process.start()
            theirs.close()
            self._members[ours] = process
            self._idle.append(ours)

    def results(self, tasks: Iterator[Any]) -> Iterator[Any]:
        """Yield the results in the order of the tasks."""
        waiting: dict[int, Any] = {}
        given = taken = 0
        more = True
        while more or self._busy or waiting:
            while more and self._idle and given < taken + _AHEAD * len(self._members):
                task = [*islice(tasks, 1)]
                more = bool(task)
                if task:
                    self._send(self._idle.pop(), given, task[0])
                    given += 1
            if taken in waiting:
                yield waiting.pop(taken)
                taken += 1
                continue
            for pipe in wait(list(self._busy)):
                waiting[self._busy.pop(pipe)] = self._received(pipe)  # type: ignore[arg-type, call-overload]
                self._idle.append(pipe)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End the processes."""
        for pipe, process in self._members.items():
            process.kill()
            process.join()
            pipe.close()

    def _send(self, pipe: Connection, number: int, task: Any) -> None:
        try:
            pipe.send(task)
        except OSError as error:
            raise self._died(pipe) from error
        self._busy[pipe] = number

    def _received(self, pipe: Connection) -> Any:
        try:
            result, error = pipe.recv()
        except (EOFError, OSError) as lost:
            raise self._died(pipe) from lost
        if error is not None:
            raise error
        return result

    def _died(self, pipe: Connection) -> OutsideFailed:
        process = self._members[pipe]
        process.join(5)
        return OutsideFailed(
            f"a worker process died (exit code {process.exitcode}); is there enough memory? What is stored stays: run "
            "the same again, with fewer workers",
            subject="worker",
        )


def _work(make: Make[Any, Any], pipe: Connection) -> None:
    """Do the tasks that come through a pipe, until it is closed: the worker ends when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    function: Callable[[Any], Any] | None = None
    found: tuple[Any, Exception | None]
    try:
        while True:
            task = pipe.recv()
            try:
                function = function or make()
                found = function(task), None
            except Exception as error:
                found = None, error
            pipe.send(found)
    except (EOFError, OSError):
        return
