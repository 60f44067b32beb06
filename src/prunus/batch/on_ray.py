"""Run a batch, or the tasks of an index, on Ray.

For a batch Ray Data reads the sources, shares the parts out to actors, and holds back what is read too fast. Each actor
gives its parts to a process of its own, so that a page which kills or hangs it fails alone, as on one machine. It
writes its parts itself: the inputs and the output must be at the same path on every machine.
"""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from ..core.errors import BadInput, Failures, MissingExtra, OutsideFailed, PrunusError, one_line
from ..core.executor import Result, Task
from ..core.installation import pip_install
from ..core.worker_pool import Make
from .output import Counts, Output, Writes
from .rows import Part
from .run import Batch

_STORE: Final = 1 << 30
"""Bytes for parts on their way, where Ray is started here."""
_AHEAD: Final = 2
"""Tasks that each actor of an executor has or waits for; bounds the memory."""
_REACH: Final = 10.0
"""Seconds for a cluster to accept a connection. Ray itself tries for four minutes."""


def run_on_ray(batch: Batch, output: Writes, address: str = "") -> Iterator[Counts]:
    """Do the parts that are not done on a cluster; yield what came of each.

    Actors write the files of an :class:`.Output` themselves. For any other output their records come here.

    :param address: of a running cluster, as ``auto``, ``HOST:6379`` or ``ray://HOST:10001``; '' starts Ray here, with
        the batch's number of workers.
    :raises MissingExtra: Ray is not installed.
    :raises OutsideFailed: the cluster cannot be reached, or fails.
    """
    ray = package()
    with started(ray, address, batch.workers), errors(ray):
        cores = int(ray.cluster_resources().get("CPU", 1))
        workers = max(1, min(batch.workers, cores - 1)) if not address else max(1, cores - 1)
        share = 1.0 if cores > 1 else 0.5
        data = ray.data.from_items([{"sources": numbers} for numbers in _readers(batch)])
        most = 2 if batch.skim is None else 1  # what one reader has seen, another does not know
        folder = (str(output.folder), output.form) if isinstance(output, Output) else ("", "")
        parts = data.map_batches(
            _Cut, fn_constructor_args=(batch,), batch_size=1, batch_format="numpy", num_cpus=share / 2,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
        )  # fmt: skip
        done = parts.map_batches(
            _Do, fn_constructor_args=(_lean(batch), *folder), batch_size=1, batch_format="numpy",
            num_cpus=share if share < 1 else 1, compute=ray.data.ActorPoolStrategy(size=workers),
        )  # fmt: skip
        for row in done.iter_rows():
            message = row["message"].content
            if isinstance(message, dict):
                batch.failures.update(message)
            elif isinstance(message, Counts):
                yield message
            else:
                yield output.write(*message)


def _lean(batch: Batch) -> Batch:
    """Return a batch without what only its readers need."""
    return replace(batch, sources={}, ends={}, skim=None)


@dataclass(frozen=True, slots=True)
class _Message:
    """A part, what came of one, or failures of sources, as one object that Ray passes on."""

    content: Any

    def batch(self) -> dict[str, Any]:
        """Return a batch of Ray Data with this message alone."""
        column = np.empty(1, object)
        column[0] = self
        return {"message": column}


class _Cut:
    """An actor that reads sources.

    :param batch: what is to be done.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield each part of the sources, and the failures of those that cannot be read."""
        self.batch.failures = Failures()
        for numbers in batch["sources"]:
            for part in self.batch.parts([int(number) for number in numbers]):
                yield _Message(part).batch()
        if self.batch.failures:
            yield _Message(dict(self.batch.failures)).batch()


class _Do:
    """An actor that does parts, and writes them where there is a folder for them."""

    def __init__(self, batch: Batch, folder: str, form: Any) -> None:
        self.output = Output(folder, batch.task, form) if folder else None
        self._parts: deque[Part] = deque()
        self._done = batch.records(self._next_part(), 1)

    def _next_part(self) -> Iterator[Part | None]:
        while True:
            yield self._parts.popleft() if self._parts else None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the counts of a part that was written, else the part without its rows, and its records."""
        message = batch["message"][0].content
        if isinstance(message, dict):
            return batch
        self._parts.append(message)
        part, records = next(self._done)
        if self.output is not None:
            return _Message(self.output.write(part, records)).batch()
        return _Message((replace(part, rows=()), records)).batch()


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
        actor = self._ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_FunctionActor)
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


class _FunctionActor:
    """A worker: it makes the function and calls it."""

    def __init__(self, make: Make[Any, Any]) -> None:
        self._function = make()

    def do(self, task: Any) -> Any:
        """Return the function's result for a task."""
        return self._function(task)


def _readers(batch: Batch) -> list[list[int]]:
    """Return which sources are read together: all lists of addresses, so that each host gets its pauses."""
    addresses = [number for number, source in batch.sources.items() if source.kind == "urls"]
    others = [[number] for number in batch.sources if number not in addresses]
    return [*others, addresses] if addresses else others


def package() -> Any:
    """Return Ray.

    :raises MissingExtra: it is not installed.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtra(f"--on ray needs Ray; run: {pip_install('ray')}", subject="ray") from error
    return ray


def address_of(on: str) -> str:
    """Return the cluster's address of ``ray`` or ``ray:ADDRESS``; '' for ``ray``, which starts Ray on this machine.

    :raises BadInput: ``on`` is neither.
    """
    name, colon, address = on.partition(":")
    if name != "ray":
        raise BadInput(f"--on {on}: the work runs on this machine, or on ray or ray:ADDRESS", subject="--on")
    if colon and not address.strip():
        raise BadInput(f"--on {on}: the address is missing; give ray:HOST:PORT, or ray alone", subject="--on")
    return address.strip()


def _reach(address: str) -> None:
    """Connect to a cluster's port, and close the connection.

    :raises BadInput: the address has no host or no port.
    :raises OutsideFailed: nothing accepts a connection there.
    """
    if address == "auto":  # Ray finds the cluster of this machine by its files
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise BadInput(
            f"ray at {address}: no address of a cluster; give HOST:PORT, ray://HOST:PORT or auto", subject="--on"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH).close()
    except OSError as error:
        raise OutsideFailed(f"ray at {address}: cannot be reached ({one_line(str(error))})", subject="ray") from error


@contextmanager
def started(ray: Any, address: str, workers: int) -> Iterator[None]:
    """Connect to a cluster, or start Ray here; leave it at the end.

    :raises BadInput: the address has no host or no port.
    :raises OutsideFailed: the cluster cannot be reached, or Ray does not start.
    """
    if address:
        _reach(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        if address:
            ray.init(address=address, **quiet)
        else:  # one core more, for those that read
            ray.init(
                address="local", num_cpus=workers + 1, object_store_memory=_STORE, include_dashboard=False, **quiet
            )
    except Exception as error:  # Ray raises bare exceptions where a node does not start
        where = f"ray at {address}: cannot be reached" if address else "ray: cannot be started"
        raise OutsideFailed(f"{where} ({one_line(str(error))})", subject="ray") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # each part goes on as soon as it is read
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def errors(ray: Any) -> Iterator[None]:
    """Make what Ray raises an error of one line."""
    try:
        yield
    except ray.exceptions.RayError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise OutsideFailed(f"ray: {one_line(lines[-1] if lines else repr(error))}", subject="ray") from error
