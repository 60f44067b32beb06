"""Share work out to processes: a function is called for many tasks, and the results come in the order of the tasks.

The result never depends on the number of workers: what a task is does not, and the order does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any, Final, Protocol, TypeVar

from .errors import OutsideFailed
from .worker_pool import Lost, Make, WorkerPool

Task = TypeVar("Task")
Result = TypeVar("Result")

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
        waiting: dict[int, Result] = {}
        taken = 0

        def parts() -> Iterator[tuple[int, list[Any]] | None]:
            for number, task in enumerate(chain(first, left)):
                while number >= taken + _AHEAD * self.workers:
                    yield None
                yield number, [task]

        with closing(WorkerPool(make, self.workers, tries=1).run(parts())) as results:
            for number, [result] in results:
                if isinstance(result, Lost):
                    raise OutsideFailed(
                        f"a worker process died (exit code {result.code}); is there enough memory? What is stored "
                        "stays: run the same again, with fewer workers",
                        subject="worker",
                    )
                waiting[number] = result
                while taken in waiting:
                    yield waiting.pop(taken)
                    taken += 1
