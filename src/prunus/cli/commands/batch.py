"""``prunus batch``: run the jobs of a file, or do the same with every page, and resume after a stop."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from ...api.index import Index, cutting_new
from ...batch.into_index import IndexOutput, Skim
from ...batch.ledger import Ledger, earlier_fate
from ...batch.output import FORMS, Counts, Output, Writes
from ...batch.read import ROWS, STDIN
from ...batch.run import SECONDS, Batch
from ...batch.work import ACTIONS, FAILURES, Task
from ...core.errors import BadInput, PrunusError
from ...core.options import Options
from ...core.settings import Settings, load_settings
from ...index.nodes import NoIndex
from ..choices import FORMATS, Choice, budget, common, engines, options_from, question, shown_only
from ..output import DoneInPart, Interrupted, counted, emit, emit_json, one_line, progress, say

_EVERY: Final = 10.0
"""Seconds between two lines of progress."""
_OF_JOBS: Final = frozenset({"inputs", "output", "workers", "retry_failed", "on", "page_seconds", "as_json", "quiet"})
"""The parameters of a file of jobs; the others need ``--do``."""


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
@shown_only
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
    metavar="S",
    help=f"Time for a page or job, which is tried twice; by default {SECONDS:g} for a page.",
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
    settings = load_settings({"shown_only": flags["shown_only"] or None})
    if flags["on"]:  # before anything is written
        from ...batch.on_ray import address_of  # here: only this needs Ray

        address_of(flags["on"])
    flags |= {"output": output, "started": time.perf_counter()}
    if flags["do"] == "index":
        _do_index(inputs, flags, settings)
    elif flags["do"]:
        _do_pages(inputs, flags, settings)
    else:
        _check_of_jobs(context, inputs, flags)
        _do_jobs(inputs, flags, settings)


def _do_jobs(inputs: Sequence[str], flags: Mapping[str, Any], settings: Settings) -> None:
    """Run the jobs of a file.

    :raises DoneInPart: some jobs failed, in this run or before.
    :raises PrunusError: a job met a bug.
    """
    output, quiet = flags["output"], flags["quiet"]
    batch = Batch(inputs, Task("jobs"), settings, flags["workers"] or 1, seconds=flags["page_seconds"] or inf)
    batch.find()
    bugs = 0
    with Ledger(Path(output), flags["retry_failed"]) as ledger, progress(_count(inputs[0]), "jobs", quiet) as step:
        if ledger.repaired and not quiet:
            say(f"prunus: {output}: the last line was cut off; its job runs again")
        batch.skim = partial(earlier_fate, ledger.fates)

        def report(_: Counts, part: Counts) -> None:
            nonlocal bugs
            for _number in range(part.pages + part.skipped.total()):
                step()
            for line, traceback in ledger.bugs:
                say(f"prunus: line {line}: a bug; its traceback:\n{traceback.rstrip()}")
            bugs += len(ledger.bugs)
            ledger.bugs.clear()

        now = _work(batch, ledger, flags["on"], report, lambda now: f"{counted(now.pages, 'job')} of this run", output)
    failed, skipped, failed_before = now.failed.total(), now.skipped.total(), now.skipped["failed"]
    done, seconds = now.done + now.nothing, time.perf_counter() - flags["started"]
    if flags["as_json"]:
        emit_json(
            {"done": done, "nothing_found": now.nothing, "failed": failed, "skipped": skipped,
             "failed_before": failed_before, "output": output, "seconds": round(seconds, 3)}
        )  # fmt: skip
    elif not quiet:
        before = f", {skipped:,} skipped" if skipped else ""
        nothing = f" ({now.nothing:,} found nothing relevant)" if now.nothing else ""
        say(f"{counted(done, 'job')} done{nothing}, {failed:,} failed{before}; {seconds:.1f} s")
    if bugs:
        raise PrunusError(f"{counted(bugs, 'job')} met a bug; the traceback of each is printed above")
    if batch.failures.first:
        raise batch.failures.first
    if failed or failed_before:
        raise DoneInPart(
            f'{failed + failed_before:,} of {done + failed + skipped:,} jobs failed; see "error" in {output}'
        )


def _do_pages(inputs: Sequence[str], flags: Mapping[str, Any], settings: Settings) -> None:
    """Do the same with all pages of the inputs.

    :raises DoneInPart: some pages or inputs failed.
    """
    options = options_from(flags)
    task = Task(flags["do"], flags["question"], flags["budget"] or 0, flags["format_"], flags["main"], options)
    if task.do != "clean" and task.main:
        raise BadInput("--main is for --do clean", subject="--main")
    if task.do == "clean" and task.question:
        raise BadInput("-q is not for --do clean, which keeps everything; give --do prune", subject="-q")
    batch = _batch_of_pages(inputs, task, flags, settings)
    if flags["dry_run"]:
        _print_estimate(batch, flags)
        return
    with closing(Output(flags["output"], task, flags["to"])) as output:
        before = batch.begin(output, flags["retry_failed"])
        if output.store.warning:
            say(f"prunus: {output.store.warning}")
        if before.parts and not flags["quiet"]:
            say(f"{counted(before.parts, 'part')} ({counted(before.pages, 'page')}) done by earlier runs are skipped")
        try:
            now = _work(batch, output, flags["on"], _progress_of_pages(flags), _parts_of, output.folder)
        finally:
            output.finish()
    _settle(batch, now, before, flags, {"before": before.as_dict()})


def _parts_of(now: Counts) -> str:
    return f"{counted(now.parts, 'part')} of this run ({counted(now.pages, 'page')})"


def _do_index(inputs: Sequence[str], flags: Mapping[str, Any], settings: Settings) -> None:
    """Put all pages of the inputs into an index.

    :raises DoneInPart: some pages or inputs failed.
    """
    refused = {
        "--main": flags["main"], "-q": flags["question"], "--budget": flags["budget"], "--scorer": flags["scorer"],
        "--format": flags["format_"] != "html", "--to": flags["to"] != "jsonl", "--retry-failed": flags["retry_failed"],
    }  # fmt: skip
    for name, given in refused.items():
        if given:
            why = "; pages that the index lacks are always tried" if name == "--retry-failed" else ""
            raise BadInput(f"{name} is not for --do index{why}", subject=name)
    options = Options(embedder=flags["embedder"], tokenizer=flags["tokenizer"])
    name = flags["output"]
    try:
        cutting = Index.open(name, create=False, settings=settings, options=options).cutting()
    except NoIndex:
        cutting = cutting_new(settings, options)
    batch = _batch_of_pages(inputs, Task("index", cutting=cutting), flags, settings)  # before the index is made
    if flags["dry_run"]:
        _print_estimate(batch, flags)
        return
    index = Index.open(name, settings=settings, options=options)
    batch.skim = Skim(index.known(), settings)
    output = IndexOutput(index)

    def stored(now: Counts) -> str:
        return f"{counted(now.done, 'document')} of this run"

    now = _work(batch, output, flags["on"], _progress_of_pages(flags), stored, index.location)
    output.finish()
    more = {"unchanged": now.skipped.pop("unchanged", 0), "repeated": now.skipped.pop("repeated", 0),
            "chunks": output.chunks, "failures": dict(output.failures)}  # fmt: skip
    if not flags["quiet"] and not flags["as_json"]:
        repeated = f", {more['repeated']:,} left out whose address came before" if more["repeated"] else ""
        say(f"{now.done:,} added in {counted(output.chunks, 'chunk')}, {more['unchanged']:,} unchanged{repeated}")
        for line in output.failures.values():
            say(f"prunus: {one_line(line)}")
        if index.pays:
            say(f"summaries are missing: run prunus index summarize {index.location}")
    _settle(batch, now, Counts(), flags, more)


def _batch_of_pages(inputs: Sequence[str], task: Task, flags: Mapping[str, Any], settings: Settings) -> Batch:
    """Return the batch of a command line, its sources found."""
    seconds = flags["page_seconds"] or SECONDS
    batch = Batch(inputs, task, settings, flags["workers"] or _cores(), flags["part"], seconds)
    batch.find()
    return batch


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(
    batch: Batch,
    output: Writes,
    on: str,
    report: Callable[[Counts, Counts], None],
    what: Callable[[Counts], str],
    where: object,
) -> Counts:
    """Do the parts that are not done, here or on Ray, and return what came of them.

    :param report: called with what came of this run so far, and of the last part.
    :param what: says what of this run is stored, for a run that is interrupted.
    :raises Interrupted: by Ctrl-C.
    """
    if on:
        from ...batch.on_ray import address_of, run_on_ray  # here: only this needs Ray

        runner = run_on_ray(batch, output, address_of(on))
    else:
        runner = batch.run(output)
    now = Counts()
    try:
        for part in runner:
            now.add(part)
            report(now, part)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; whole in {where}: {what(now)}; run the same command again to go on") from None
    return now


def _progress_of_pages(flags: Mapping[str, Any]) -> Callable[[Counts, Counts], None]:
    """Return what says every few seconds how far the run is."""
    started = said = time.perf_counter()

    def report(now: Counts, _: Counts) -> None:
        nonlocal said
        moment = time.perf_counter()
        if moment - said > _EVERY and not flags["quiet"]:
            said = moment
            failed = f", {now.failed.total():,} failed" if now.failed else ""
            speed = now.pages / (moment - started)
            say(f"{counted(now.parts, 'part')}, {counted(now.pages, 'page')}{failed}; {speed:.0f} pages a second")

    return report


def _print_estimate(batch: Batch, flags: Mapping[str, Any]) -> None:
    """Print what a run would do."""
    estimate = batch.estimate()
    if flags["as_json"]:
        emit_json(estimate | {"failures": dict(batch.failures)})
        return
    for row in estimate["sources"]:
        pages = "? pages" if row["pages"] is None else f"about {counted(row['pages'], 'page')}"
        parts = "" if row["parts"] is None else f" in {counted(row['parts'], 'part')}"
        emit(f"{row['source']}: {row['kind']}, {pages}{parts}")
    for line in batch.failures.values():
        emit(f"cannot be used: {one_line(line)}")
    if estimate["seconds"] is None:
        emit("time: unknown; not every input tells how many pages it holds, or none could be tried")
    else:
        emit(
            f"time: about {estimate['seconds']:,.0f} s with {counted(estimate['workers'], 'worker')}; "
            f"{1000 * estimate['seconds_a_page']:.1f} ms a page in a sample of {estimate['sample']:,}"
        )


def _settle(batch: Batch, now: Counts, before: Counts, flags: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Print the totals, and the failures by kind.

    :param before: what came of the runs before.
    :param more: what the JSON holds besides.
    :raises DoneInPart: a page or an input failed, in this run or before.
    """
    seconds = time.perf_counter() - flags["started"]
    failed = now.failed + before.failed
    speed = now.pages / seconds if seconds else 0.0
    if flags["as_json"]:
        emit_json(
            now.as_dict()
            | dict(more)
            | {"inputs_failed": dict(batch.failures), "output": flags["output"],
               "seconds": round(seconds, 3), "pages_a_second": round(speed, 1)}
        )  # fmt: skip
    elif not flags["quiet"]:
        nothing = f", {now.nothing:,} of them with nothing relevant" if now.nothing else ""
        say(
            f"{counted(now.pages, 'page')} in {counted(now.parts, 'part')}{nothing}; {seconds:.1f} s, "
            f"{speed:.0f} pages a second; {flags['output']}"
        )
        if now.skipped:
            say("records that are no pages: " + ", ".join(f"{n:,} by {why}" for why, n in sorted(now.skipped.items())))
        for kind, number in sorted(failed.items()):
            say(f"failed: {counted(number, 'page')}: {FAILURES.get(kind, kind)}")
    for line in batch.failures.values():
        say(f"prunus: {one_line(line)}")
    if failed or batch.failures:
        of_all = f"{failed.total():,} of {now.pages + before.pages:,} pages failed"
        where = "" if flags["do"] == "index" else f', see "error" in {flags["output"]}'
        pages = f"{of_all}{where}" if failed else ""
        inputs = f"{counted(len(batch.failures), 'input')} could not be used" if batch.failures else ""
        raise DoneInPart("; ".join(filter(None, [pages, inputs])))


def _check_of_jobs(context: click.Context, inputs: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Refuse what only pages have, and files that cannot be used together.

    :raises BadInput: several inputs or an option of pages without --do; the output is the input or standard output.
    """
    jobs, output = inputs[0], flags["output"]
    if len(inputs) > 1:
        raise BadInput("several inputs need --do: clean, prune or ask; a file of jobs stands alone", subject="--do")
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _OF_JOBS:
            raise BadInput(f"{parameter.opts[-1]} is for pages, and needs --do: clean, prune or ask", subject="--do")
    if output == "-":
        raise BadInput("-o needs a file, not -: a later run resumes from the records in it", subject="-o")
    if jobs == STDIN and flags["on"]:
        raise BadInput("jobs from standard input cannot be read on Ray; name a file", subject="--on")
    if jobs != STDIN and Path(output).exists() and Path(jobs).exists() and Path(jobs).samefile(output):
        raise BadInput(f"{output}: this would overwrite the jobs; give another -o", subject=output)


def _count(jobs: str) -> int:
    """Count the lines of the jobs for the progress bar; 0 where there is no bar, or only reading tells."""
    path = Path(jobs)
    if not path.is_file() or path.suffix == ".gz" or not sys.stderr.isatty():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
