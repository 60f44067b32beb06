"""Do the tasks of an index on Ray: actors make the function once, and the results come in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from ..core.errors import PrunusError
from ..core.executor import Make, Result, Task
from .on_ray import errors, package, started

_AHEAD: Final = 2
"""Tasks that each actor has or waits for; bounds the memory."""


class RayExecutor:
    """Workers on a cluster, for the attribute ``executor`` of an index; use it in a ``with`` block.

    A task goes to another actor where one dies.

    :param address: of a running cluster; '' starts Ray on this machine.
    :param workers: actors; 0 takes the cores of the cluster less one.
    :raises MissingExtra: Ray is not installed.
    :raises OutsideFailed: the cluster cannot be reached, or fails.
    """

    def __init__(self, address: str = "", workers: int = 0) -> None:
        self._ray = package()
        self._address, self._workers = address, workers
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(started(self._ray, self._address, max(1, self._workers)))
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self._workers = self._workers or max(1, cores - 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def __call__(self, make: Make[Task, Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the function's result for each task, in the order of the tasks."""
        actor = self._ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Actor)
        with errors(self._ray):
            actors = [actor.remote(make) for _ in range(self._workers)]
            pending: deque[Any] = deque()
            try:
                for number, task in enumerate(tasks):
                    pending.append(actors[number % len(actors)].do.remote(task))
                    if len(pending) >= _AHEAD * len(actors):
                        yield self._result(pending.popleft())
                while pending:
                    yield self._result(pending.popleft())
            finally:  # also after an error: the next call needs the cores
                for each in actors:
                    self._ray.kill(each)

    def _result(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PrunusError):
                raise error.cause from None
            raise


class _Actor:
    """A worker: it makes the function and calls it."""

    def __init__(self, make: Make[Any, Any]) -> None:
        self._function = make()

    def do(self, task: Any) -> Any:
        """Return the function's result for a task."""
        return self._function(task)
