"""``prunus batch INPUT... --do``: the same for all pages of documents, rows and archives, in parts that are resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from ..api.index import Index, cutting_new
from ..batch.into_index import IndexOutput, Skim
from ..batch.output import Counts, Output, Writes
from ..batch.run import Batch
from ..batch.work import FAILURES, Task
from ..core.errors import BadInput
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..index.nodes import NoIndex
from .choices import options_from
from .output import DoneInPart, Interrupted, counted, emit, emit_json, one_line, say

_EVERY: Final = 10.0
"""Seconds between two lines of progress."""


def run_pages(inputs: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Do the same with all pages of the inputs.

    :param flags: the options of ``prunus batch``.
    :raises BadInput: an argument, or every input, cannot be used.
    :raises DoneInPart: some pages or inputs failed.
    """
    settings = load_settings()
    if flags["on"]:  # before anything is written
        from ..batch.on_ray import address_of  # here: only this needs Ray

        address_of(flags["on"])
    if flags["do"] == "index":
        _index(inputs, flags, settings)
        return
    task = Task(
        flags["do"], flags["question"], flags["budget"] or 0, flags["format_"], flags["main"], options_from(flags)
    )
    if task.do != "clean" and task.main:
        raise BadInput("--main is for --do clean", subject="--main")
    if task.do == "clean" and task.question:
        raise BadInput("-q is not for --do clean, which keeps everything; give --do prune", subject="-q")
    batch = _batch(inputs, task, flags, settings)
    if flags["dry_run"]:
        _tell(batch, flags)
        return
    output = Output(flags["output"], task, flags["to"])
    with closing(output):
        before = batch.begin(output, flags["retry_failed"])
        if output.place.warning:
            say(f"prunus: {output.place.warning}")
        if before.parts and not flags["quiet"]:
            say(f"{counted(before.parts, 'part')} ({counted(before.pages, 'page')}) done by earlier runs are skipped")
        started = time.perf_counter()
        now = Counts()
        try:
            try:
                _follow(_runner(batch, output, flags["on"]), now, started, flags["quiet"])
            finally:
                output.finish()
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; {counted(now.parts, 'part')} of this run ({counted(now.pages, 'page')}) are whole in "
                f"{output.folder}; run the same command again to go on"
            ) from None
    _settle(batch, now, before, flags, time.perf_counter() - started, {"before": before.as_dict()})


def _index(inputs: Sequence[str], flags: Mapping[str, Any], settings: Settings) -> None:
    """Put all pages of the inputs into an index."""
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
        how = Index.open(name, create=False, settings=settings, options=options).cutting()
    except NoIndex:
        how = cutting_new(settings, options)
    batch = _batch(inputs, Task("index", cutting=how), flags, settings)  # before the index: inputs may be wrong
    if flags["dry_run"]:
        _tell(batch, flags)
        return
    index = Index.open(name, settings=settings, options=options)
    batch.skim = Skim(index.known(), settings)
    output = IndexOutput(index)
    started = time.perf_counter()
    now = Counts()
    try:
        _follow(_runner(batch, output, flags["on"]), now, started, flags["quiet"])
        output.finish()
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {counted(now.done, 'document')} of this run are stored in {index.location}; run the same "
            "command again to go on"
        ) from None
    told = {"unchanged": now.skipped.pop("unchanged", 0), "repeated": now.skipped.pop("repeated", 0),
            "chunks": output.chunks, "failures": dict(output.failures)}  # fmt: skip
    if not flags["quiet"] and not flags["as_json"]:
        repeated = f", {told['repeated']:,} left out whose address came before" if told["repeated"] else ""
        say(f"{now.done:,} added in {counted(output.chunks, 'chunk')}, {told['unchanged']:,} unchanged{repeated}")
        for line in output.failures.values():
            say(f"prunus: {one_line(line)}")
        if index.pays:
            say(f"summaries are missing: run prunus index summarize {index.location}")
    _settle(batch, now, Counts(), flags, time.perf_counter() - started, told)


def _batch(inputs: Sequence[str], task: Task, flags: Mapping[str, Any], settings: Settings) -> Batch:
    """Return the batch of a command line, its sources found."""
    batch = Batch(inputs, task, settings, flags["workers"] or cores(), flags["part"], flags["page_seconds"])
    batch.find()
    return batch


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _runner(batch: Batch, output: Writes, on: str) -> Iterator[Counts]:
    """Return what does the parts: processes of this machine, or Ray.

    :raises BadInput: there is no such place to run on.
    """
    if not on:
        return batch.run(output)
    from ..batch.on_ray import address_of, run_on_ray  # here: only this needs Ray

    return run_on_ray(batch, output, address_of(on))


def _follow(parts: Iterator[Counts], now: Counts, started: float, quiet: bool) -> None:
    """Add up what came of each part, and say every few seconds how far the run is."""
    said = started
    for counts in parts:
        now.add(counts)
        moment = time.perf_counter()
        if moment - said > _EVERY and not quiet:
            said = moment
            failed = f", {now.failed.total():,} failed" if now.failed else ""
            speed = now.pages / (moment - started)
            say(f"{counted(now.parts, 'part')}, {counted(now.pages, 'page')}{failed}; {speed:.0f} pages a second")


def _tell(batch: Batch, flags: Mapping[str, Any]) -> None:
    """Print what a run would do."""
    found = batch.estimate()
    if flags["as_json"]:
        emit_json(found | {"failures": dict(batch.failures)})
        return
    for row in found["sources"]:
        pages = "? pages" if row["pages"] is None else f"about {counted(row['pages'], 'page')}"
        parts = "" if row["parts"] is None else f" in {counted(row['parts'], 'part')}"
        emit(f"{row['source']}: {row['kind']}, {pages}{parts}")
    for line in batch.failures.values():
        emit(f"cannot be used: {one_line(line)}")
    if found["seconds"] is None:
        emit("time: unknown; not every input tells how many pages it holds, or none could be tried")
    else:
        emit(
            f"time: about {found['seconds']:,.0f} s with {counted(found['workers'], 'worker')}; "
            f"{1000 * found['seconds_a_page']:.1f} ms a page in a sample of {found['sample']:,}"
        )


def _settle(
    batch: Batch, now: Counts, before: Counts, flags: Mapping[str, Any], seconds: float, more: dict[str, Any]
) -> None:
    """Print the totals, and the failures by kind.

    :param before: what came of the runs before.
    :param more: what the JSON holds besides.
    :raises DoneInPart: a page or an input failed, in this run or before.
    """
    failed = now.failed + before.failed
    speed = now.pages / seconds if seconds else 0.0
    if flags["as_json"]:
        emit_json(
            now.as_dict()
            | more
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
