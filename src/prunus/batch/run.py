"""Run a batch over pages or jobs: read parts, do them in processes, write each whole, and count what came of it."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

from ..core.errors import BadInput, Failures, OutsideFailed
from ..core.settings import Settings
from ..core.worker_pool import Lost, WorkerPool
from .lance_form import check
from .output import Counts, Output, Writes
from .read import ROWS, Partitioner, Reader, check_packages, fetched, parquet_packages, rows_in_parquet
from .remote import Remote, is_remote
from .rows import START, BatchSource, Mark, Part, Row
from .sources import jobs_source, sources_of
from .work import Record, Task, Work, lost_record

T = TypeVar("T")

SECONDS: Final = 120.0
"""Seconds for a page, after which it hangs."""
_SAMPLED: Final = 5
"""Sources of which a sample is taken at most."""
_SAMPLE: Final = 60
"""Pages of each of them."""
_POLL: Final = 0.1
"""Seconds after which the thread looks whether it is still needed."""


@dataclass(slots=True)
class Batch:
    """A batch over pages.

    ``failures`` holds the inputs that cannot be used, each with the reason.

    :param inputs: paths of folders, documents, archives, rows and lists of addresses.
    :param rows: pages of a part at most.
    :param seconds: time for a page; after it the page hangs.
    :param skim: says why a row needs no work; '' for a row that does.
    """

    inputs: Sequence[str]
    task: Task
    settings: Settings
    workers: int = 1
    rows: int = ROWS
    seconds: float = SECONDS
    sources: dict[int, BatchSource] = field(default_factory=dict)
    ends: dict[int, dict[int, Mark | None]] = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)
    skim: Callable[[Row], str] | None = None

    def find(self) -> None:
        """Find the sources, and check what the whole run needs.

        :raises BadInput: no input can be used, an engine cannot be made, or a question is missing.
        :raises MissingExtra: a package that reads a source is not installed.
        """
        if self.task.do == "jobs":
            self.sources = {number: jobs_source(name) for number, name in enumerate(self.inputs)}
            return
        Work(self.task, self.settings)
        sources = sources_of(self.inputs, self.failures)
        if not sources:
            raise self.failures.first or BadInput("no input was given", subject="inputs")
        own = {"jsonl", "parquet"}  # whose rows may have a question
        if (
            self.task.do in ("prune", "ask")
            and not self.task.question.strip()
            and not {source.kind for source in sources} <= own
        ):
            raise BadInput(f"{self.task.do} needs a question; give -q", subject="question")
        check_packages(sources)
        self.sources = dict(enumerate(sources))

    def begin(self, output: Output, retry_failed: bool = False) -> Counts:
        """Open the output, and return what earlier runs have done.

        :raises BadInput: the output cannot be used for this batch.
        """
        identity = self.task.identity(self.settings) | {"rows": self.rows}
        if output.form != "jsonl":
            parquet_packages()
        if output.form == "lance":
            check(output.folder)
        self._keep_apart(output.folder)
        self.sources = output.open(identity, list(self.sources.values()), self.failures)
        self.ends, counts = output.finished(retry_failed)
        return counts

    def run(self, output: Writes) -> Iterator[Counts]:
        """Do the parts that are not done in processes of this machine; yield what came of each.

        :raises OutsideFailed: the output cannot be written, or no process can work.
        """
        with closing(Prefetch(self.parts(), 2)) as parts, closing(self.records(parts, self.workers)) as done:
            for part, records in done:
                yield output.write(part, records)

    def records(self, parts: Iterator[Part | None], workers: int) -> Generator[tuple[Part, list[Record]], None, None]:
        """Yield each part with its records, one for each row in the same order; parts as they end.

        :param parts: None says that there is no part yet.
        :raises OutsideFailed: no process can work.
        """
        pool = WorkerPool(partial(_record_maker, self.task, self.settings), workers, self.seconds)
        with closing(pool.run(None if part is None else (part, part.rows) for part in parts)) as done:
            for part, results in done:
                rows = zip(part.rows, results, strict=True)
                yield (
                    part,
                    [
                        lost_record(self.task, row, result, self.seconds) if isinstance(result, Lost) else result
                        for row, result in rows
                    ],
                )

    def parts(self, numbers: Sequence[int] | None = None) -> Iterator[Part]:
        """Yield the parts that are not done, with the pages that had to be fetched.

        :param numbers: the sources; by default all.
        """
        partitioner = Partitioner(self.settings, self.rows)
        for number in self.sources if numbers is None else numbers:
            source = self.sources[number]
            try:
                if source.kind == "jobs":
                    yield from self._jobs(number, source)
                    continue
                for part in partitioner.parts(number, source, self.ends.get(number, {})):
                    yield self._skimmed(fetched(part, self.settings))
            except (BadInput, OutsideFailed) as error:  # also a store that breaks off: a later run goes on there
                self.failures.note(error, source.name)

    def _jobs(self, number: int, source: BatchSource) -> Iterator[Part]:
        """Yield each job that is not done as a part, as soon as it is read; the others are counted with the next."""
        skipped: Counter[str] = Counter()
        for mark, row in Reader(source, self.settings).rows(START):
            part = self._skimmed(Part(number, mark.record, source.name, (row,), None))
            skipped.update(part.skipped)
            if part.rows:
                yield replace(part, skipped=dict(skipped))
                skipped.clear()
        if skipped:
            yield Part(number, 0, source.name, (), None, dict(skipped))

    def _skimmed(self, part: Part) -> Part:
        """Return a part without the rows that need no work; ``skipped`` counts them by reason."""
        if self.skim is None:
            return part
        skipped = Counter(part.skipped)
        rows: list[Row] = []
        for row in part.rows:
            if reason := self.skim(row):
                skipped[reason] += 1
            else:
                rows.append(row)
        return replace(part, rows=tuple(rows), skipped=dict(skipped))

    def estimate(self) -> dict[str, Any]:
        """Return how many pages and parts there are, and how long they take, from a sample, as plain data.

        The numbers are None where they cannot be known without reading everything, as for packed JSON lines.
        """
        partitioner = Partitioner(self.settings, self.rows)
        rows: list[dict[str, Any]] = []
        sample: list[Part] = []
        for number, source in self.sources.items():
            try:
                first = next(partitioner.parts(number, source, {}))
            except (BadInput, OutsideFailed) as error:
                self.failures.note(error, source.name)
                continue
            pages = _pages_in(source, first)
            parts = None if pages is None else max(1, -(-pages // max(1, len(first.rows))))
            rows.append({"source": source.name, "kind": source.kind, "pages": pages, "parts": parts})
            if len(sample) < _SAMPLED and first.rows and not any(row.fetch for row in first.rows):
                sample.append(replace(first, rows=first.rows[:_SAMPLE]))
        each, tried = self._seconds_a_page(sample)
        known = [row["pages"] for row in rows if row["pages"] is not None]
        seconds = each * sum(known) / self.workers if tried and len(known) == len(rows) else None
        return {
            "sources": rows, "pages": sum(known) if len(known) == len(rows) else None,
            "parts": sum(row["parts"] or 0 for row in rows) if len(known) == len(rows) else None,
            "sample": tried, "seconds_a_page": round(each, 6) if tried else None,
            "workers": self.workers, "seconds": None if seconds is None else round(seconds, 1),
        }  # fmt: skip

    def _seconds_a_page(self, sample: Sequence[Part]) -> tuple[float, int]:
        """Return the seconds that one process needs for a page, and the pages that were tried."""
        if not sample:
            return 0.0, 0
        warm = replace(sample[0], rows=sample[0].rows[:5])  # engines are loaded at the first pages
        tried, started = 0, 0.0
        for part, _ in self.records(iter([warm, *sample]), 1):
            if not started:
                started = time.perf_counter()
            else:
                tried += len(part.rows)
        return (time.perf_counter() - started) / max(1, tried), tried

    def _keep_apart(self, folder: Path | str) -> None:
        """Refuse an output within an input: the next run would read it.

        :raises BadInput: it is.
        """
        for given in self.inputs:
            if _is_within(str(folder), given):
                raise BadInput(f"{folder}: this is within the input {given}; give another -o", subject="-o")


class Prefetch(Generic[T]):
    """Reads an iterator in a thread while the caller works on earlier things; :meth:`close` ends it.

    :param things: read in the thread alone.
    :param size: things that wait at most; one more is held by the thread.
    """

    def __init__(self, things: Iterator[T], size: int) -> None:
        self._ended = False
        self._waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(size)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(things,), daemon=True)
        self._thread.start()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T | None:
        """Return the next thing; None where there is none yet.

        :raises Exception: what the iterator raised.
        """
        if self._ended:
            raise StopIteration
        try:
            thing, error = self._waiting.get_nowait()
        except queue.Empty:
            return None
        self._ended = thing is None
        if error is not None:
            raise error
        if thing is None:
            raise StopIteration
        return thing

    def close(self) -> None:
        """End the thread, after the thing that it reads now."""
        self._stopped.set()

    def _read(self, things: Iterator[T]) -> None:
        try:
            for thing in things:
                if not self._put(thing, None):
                    return
            self._put(None, None)
        except BaseException as error:  # the caller's thread raises it
            self._put(None, error)

    def _put(self, thing: T | None, error: BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._waiting.put((thing, error), timeout=_POLL)
                return True
            except queue.Full:
                continue
        return False


def _record_maker(task: Task, settings: Settings) -> Callable[[Row], Record]:
    """Return what makes the record of a row, with engines of its own."""
    return Work(task, settings).record


def _is_within(folder: str, given: str) -> bool:
    if is_remote(folder) or is_remote(given):
        return (
            is_remote(folder)
            and is_remote(given)
            and f"{Remote.of(folder).path}/".startswith(f"{Remote.of(given).path}/")
        )
    return Path(folder).resolve().is_relative_to(Path(given).resolve())


def _pages_in(source: BatchSource, first: Part) -> int | None:
    """Return the pages of a source: exact where it says so or is short, else by the bytes of its first part."""
    if source.kind == "files":
        return len(source.files)
    if source.kind == "parquet":
        return rows_in_parquet(source.name)
    if first.end is None:
        return len(first.rows)
    if not first.end.position:
        return None
    return round(source.size * len(first.rows) / first.end.position)
