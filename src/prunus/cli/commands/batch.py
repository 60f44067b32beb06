"""``prunus batch``: run the jobs of a file, or do the same with every page, and resume after a stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import click
from click.core import ParameterSource

from ...batch.jobs import JobLine, answer, as_bytes, each_line
from ...batch.ledger import Fate, Ledger
from ...batch.output import FORMS
from ...batch.read import ROWS
from ...batch.run import SECONDS
from ...batch.work import ACTIONS
from ...core.errors import BadInput, PrunusError
from ...core.settings import load_settings
from ..choices import FORMATS, Choice, budget, common, engines, question
from ..output import DoneInPart, Interrupted, counted, emit_json, progress, say
from ..pages_batch import run_pages

_WAITING: Final = 2
"""Jobs in the pool for each worker: one at work and one waiting, so that no worker idles."""

_OF_JOBS: Final = frozenset({"inputs", "output", "workers", "retry_failed", "as_json", "quiet"})
"""The parameters of a file of jobs; the others need ``--do``."""

Answered: TypeAlias = "tuple[bytes, Fate, str]"
"""A job's record as JSON, how the job ended, and the traceback of a bug."""


@dataclass(slots=True)
class _Run:
    """The progress of one run: its ledger and its counts.

    :param step: advances the progress bar.
    :param done: jobs that this run did.
    :param nothing: those of them whose pages hold nothing relevant.
    :param failed: jobs that failed in this run.
    :param skipped: jobs that an earlier run answered.
    :param failed_before: those of the skipped jobs that failed.
    :param bugs: failures of this run with a traceback.
    """

    ledger: Ledger
    step: Callable[[], None]
    done: int = 0
    nothing: int = 0
    failed: int = 0
    skipped: int = 0
    failed_before: int = 0
    bugs: int = 0

    def todo(self, lines: Iterator[JobLine]) -> Iterator[JobLine]:
        """Yield the jobs that have no record yet; write a record with the error for each line that is not a job."""
        for line in lines:
            if line.key in self.ledger.answered:
                self.skipped += 1
                self.failed_before += line.key in self.ledger.failed
                self.step()
            elif line.error:
                self.note(line, (as_bytes(line.refused()), "failed", ""))
            else:
                yield line

    def note(self, line: JobLine, answered: Answered) -> None:
        """Write the record of a line, and count it."""
        record, fate, bug = answered
        self.ledger.add(record, line.key, fate == "failed")
        self.failed += fate == "failed"
        self.nothing += fate == "nothing found"
        self.done += fate != "failed"
        if bug:
            self.bugs += 1
            say(f"prunus: line {line.number}: a bug; its traceback:\n{bug.rstrip()}")
        self.step()


@click.command("batch")
@click.argument("inputs", nargs=-1, required=True, type=click.Path(), metavar="JOBS | INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(readable=False),
    metavar="OUT",
    help="File for the records of jobs; folder for those of pages; name of an index.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Processes to use; by default 1 for jobs, and all cores for pages.",
)
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@click.option("--do", type=Choice(list(ACTIONS)), help="Do this with every page of INPUT.")
@question("Question for the pages that bring none.")
@budget("each page's evidence")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="Format of the output.")
@click.option("--main", is_flag=True, help="Clean only the page's own content.")
@engines
@click.option("--llm", default="", metavar="SPEC", help="The language model, as http://host/v1#model.")
@click.option("--to", type=Choice(list(FORMS)), default="jsonl", show_default=True, help="How records are written.")
@click.option("--on", default="", metavar="PLACE", help="Where to work: ray, or ray:ADDRESS; by default here.")
@click.option(
    "--part", type=click.IntRange(1, 100_000), default=ROWS, show_default=True, metavar="N", help="Pages of a part."
)
@click.option(
    "--page-seconds",
    type=click.FloatRange(min=0.1),
    default=SECONDS,
    show_default=True,
    metavar="S",
    help="Time for a page; it is tried twice.",
)
@click.option("--dry-run", is_flag=True, help="Tell parts and time, and write nothing.")
@common
@click.pass_context
def command(context: click.Context, /, inputs: tuple[str, ...], output: str, **flags: Any) -> None:
    """Run many jobs from a file, or do the same with every page of INPUT, and resume after a stop.

    JOBS is a file of JSON lines, or - for standard input. Each line is one job with a unique id, as
    {"id": 1, "command": "prune", "page": "a.html", "question": "When does it open?"}. OUT receives one JSON line per
    job, in the order in which the jobs end. Jobs that have a record in OUT already are skipped.

    With --do, INPUT is a folder, a document, an archive (WARC, WET, WACZ), rows (JSON lines, Parquet) or a .txt file
    of addresses. OUT is a folder with a file for each part of an input. Parts that are done already are skipped.
    With --do index, OUT is an index, and pages that it has already are skipped.

    \b
    Examples:
      prunus batch jobs.jsonl -o answers.jsonl
      prunus batch jobs.jsonl -o answers.jsonl --workers 4 --json
      prunus batch jobs.jsonl -o answers.jsonl --retry-failed
      prunus batch examples/site -o clean --do clean --main --format markdown
      prunus batch examples/site -o evidence --do prune -q "What does one Pell 2 cost?"
      prunus batch examples/site -o clean --do clean --dry-run
      prunus batch examples/site -o handbook --do index
    """
    if flags["do"]:
        run_pages(inputs, flags | {"output": output})
        return
    _check_of_jobs(context, inputs)
    jobs = inputs[0]
    workers = flags["workers"] or 1
    started = time.perf_counter()
    settings = load_settings()
    _check(jobs, output)
    with _opened(jobs) as file, Ledger(Path(output), flags["retry_failed"]) as ledger:
        total = _count(jobs)
        if ledger.repaired and not flags["quiet"]:
            say(f"prunus: {output}: the last line was cut off; its job runs again")
        with progress(total, "jobs", flags["quiet"]) as step:
            run = _Run(ledger, step)
            try:
                work(run, each_line(file), workers, settings.budget)
            except KeyboardInterrupt:
                raise Interrupted(
                    f"interrupted; {run.done + run.failed:,} jobs of this run are done, with whole records in "
                    f"{output}; run the same command again to resume"
                ) from None
    _settle(run, output, flags, time.perf_counter() - started)


def _settle(run: _Run, output: str, flags: dict[str, Any], seconds: float) -> None:
    """Print the totals.

    :raises DoneInPart: some jobs failed, in this run or before.
    :raises PrunusError: a job met a bug.
    """
    failed = run.failed + run.failed_before
    if flags["as_json"]:
        emit_json(
            {"done": run.done, "nothing_found": run.nothing, "failed": run.failed, "skipped": run.skipped,
             "failed_before": run.failed_before, "output": output, "seconds": round(seconds, 3)}
        )  # fmt: skip
    elif not flags["quiet"]:
        skipped = f", {run.skipped:,} skipped" if run.skipped else ""
        nothing = f" ({run.nothing:,} found nothing relevant)" if run.nothing else ""
        say(f"{counted(run.done, 'job')} done{nothing}, {run.failed:,} failed{skipped}; {seconds:.1f} s")
    if run.bugs:
        raise PrunusError(f"{counted(run.bugs, 'job')} met a bug; the traceback of each is printed above")
    if failed:
        raise DoneInPart(f'{failed:,} of {run.done + run.failed + run.skipped:,} jobs failed; see "error" in {output}')


def work(run: _Run, lines: Iterator[JobLine], workers: int, budget: int) -> None:
    """Run all jobs; only the jobs in the pool are in memory, two for each worker.

    :param budget: tokens of evidence for a job that sets no budget.
    """
    todo = run.todo(lines)
    if workers == 1:
        for line in todo:
            run.note(line, answer(line.text, line.number, budget))
        return
    left: deque[JobLine] = deque()
    while True:
        pool = _pool(workers)
        try:
            _share(run, pool, todo, left, workers, budget)
            pool.shutdown()
            return
        except BrokenProcessPool:  # a worker died: run its unanswered jobs one by one to find the culprit
            pool.shutdown(wait=False, cancel_futures=True)
            while left:
                _alone(run, left.popleft(), budget)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise


def _share(
    run: _Run, pool: ProcessPoolExecutor, todo: Iterator[JobLine], left: deque[JobLine], workers: int, budget: int
) -> None:
    """Give jobs to the pool. ``left`` holds the jobs without a record, also when this raises."""
    at_work: dict[Future[Answered], JobLine] = {}
    more = True
    while more or at_work:
        while more and len(at_work) < workers * _WAITING:
            line = next(todo, None)
            if line is None:
                more = False
                break
            left.append(line)
            at_work[pool.submit(answer, line.text, line.number, budget)] = line
        for future in wait(at_work, return_when=FIRST_COMPLETED).done:
            line = at_work[future]
            run.note(line, future.result())
            del at_work[future]
            left.remove(line)


def _alone(run: _Run, line: JobLine, budget: int) -> None:
    """Run one job in its own process, so that only this job fails where the process dies."""
    with _pool(1) as pool:
        try:
            answered = pool.submit(answer, line.text, line.number, budget).result()
        except BrokenProcessPool:
            why = "the process that did this job died, perhaps for lack of memory"
            record = {"id": line.id, "line": line.number, "error": why, "code": 3}
            answered = (as_bytes(record), "failed", "")
    run.note(line, answered)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context("spawn"), _prepare)


def _prepare() -> None:
    """Prepare a worker: its parent handles Ctrl-C, and the worker ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _check_of_jobs(context: click.Context, inputs: tuple[str, ...]) -> None:
    """Refuse what only pages have.

    :raises BadInput: several inputs, or an option of pages, without --do.
    """
    if len(inputs) > 1:
        raise BadInput("several inputs need --do: clean, prune or ask; a file of jobs stands alone", subject="--do")
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _OF_JOBS:
            raise BadInput(f"{parameter.opts[-1]} is for pages, and needs --do: clean, prune or ask", subject="--do")


def _check(jobs: str, output: str) -> None:
    """Check that the two files can be used together.

    :raises BadInput: the output is the file of jobs, or standard output.
    """
    if output == "-":
        raise BadInput("-o needs a file, not -: a later run resumes from the records in it", subject="-o")
    if jobs != "-" and Path(output).exists() and Path(jobs).exists() and Path(jobs).samefile(output):
        raise BadInput(f"{output}: this would overwrite the jobs; give another -o", subject=output)


@contextmanager
def _opened(jobs: str) -> Iterator[BinaryIO]:
    """Open the file of jobs.

    :raises BadInput: the file cannot be read.
    """
    if jobs == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(jobs).open("rb")  # noqa: SIM115 - closed below, so that this `except` catches only the opening
    except FileNotFoundError as error:
        raise BadInput(f"{jobs}: no such file", subject=jobs) from error
    except IsADirectoryError as error:
        raise BadInput(
            f"{jobs}: a folder holds no jobs; say what to do with its pages, as --do clean", subject=jobs
        ) from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{jobs}: cannot be read ({error})", subject=jobs) from error
    with file:
        yield file


def _count(jobs: str) -> int:
    """Count the lines of the jobs for the progress bar; 0 where there is no bar, or the jobs come through a pipe."""
    path = Path(jobs)
    if jobs == "-" or not path.is_file() or not sys.stderr.isatty():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
