"""Cleaning of real pages: Prunus, the reference and other tools, page by page in one run.

    python -m benchmarks.clean [--pages N] [--rounds N] [--tools a,b] [--quick] [--make-env]

Every tool is one process on one thread. Each page goes through all tools, in an order that rotates with the page,
before the next page. A page's time is its least CPU time over the rounds. Ratios compare the total CPU time over the
pages that both tools finished.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.data import RealPage, load, stamped
from benchmarks.reference.worker import CLEANERS
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError, Worker, prunus_worker, reference_worker

SUBJECT, REFERENCE = "prunus", "htmlrag"
TARGET = 20.0
"""The least speed of cleaning, as a multiple of the reference's."""


@dataclass(slots=True)
class Record:
    """The results of one tool, by page."""

    cpu: dict[str, float] = field(default_factory=dict)
    chars: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    peak_mb: float = 0.0

    def add(self, key: str, worker: Worker, html: str) -> None:
        """Clean one page and add the result."""
        reply = worker.ask("clean", html=html)
        self.peak_mb = max(self.peak_mb, reply.peak_mb)
        if not reply.ok:
            self.errors[key] = str(reply.error)
            return
        self.cpu[key] = min(self.cpu.get(key, float("inf")), reply.cpu)
        self.chars[key] = reply.value["chars"]

    def good(self) -> set[str]:
        """Return the pages that the tool finished in every round."""
        return self.cpu.keys() - self.errors.keys()


def measure(pages: Sequence[RealPage], workers: Sequence[Worker], rounds: int) -> dict[str, Record]:
    """Clean every page with every tool, interleaved; return the records by tool."""
    records = {worker.name: Record() for worker in workers}
    for turn in range(rounds):
        for number, page in enumerate(pages):
            html = stamped(page.html, turn)
            shift = (number + turn) % len(workers)
            for worker in (*workers[shift:], *workers[:shift]):
                records[worker.name].add(page.key, worker, html)
            if (number + 1) % 50 == 0:
                say(f"round {turn + 1}/{rounds}: {number + 1}/{len(pages)} pages")
    return records


def ratio(reference: Record, tool: Record) -> float | None:
    """Return a tool's speed as a multiple of the reference's, on the pages that both finished."""
    both = reference.good() & tool.good()
    seconds = sum(tool.cpu[key] for key in both)
    return sum(reference.cpu[key] for key in both) / seconds if seconds else None


def summary(worker: Worker, record: Record, reference: Record | None, sizes: dict[str, int]) -> dict[str, Any]:
    """Return the numbers of one tool for the table."""
    good = sorted(record.good())
    times = [1000 * record.cpu[key] for key in good] or [float("nan")]
    size_in = sum(sizes[key] for key in good)
    return {
        "version": worker.about.get("version"),
        "pages": len(good),
        "failed": len(record.errors),
        "ms_mean": statistics.fmean(times),
        "ms_median": statistics.median(times),
        "ms_max": max(times),
        "times_reference": ratio(reference, record) if reference else None,
        "warm_mb": worker.warm_mb,
        "peak_above_warm_mb": max(0.0, record.peak_mb - worker.warm_mb),
        "output_share": sum(record.chars[key] for key in good) / size_in if size_in else None,
    }


def show(tools: dict[str, dict[str, Any]], pages: int, rounds: int) -> None:
    """Print the table."""
    head = "tool|pages|failed|ms mean|median|max|x reference|warm MB|peak above|chars out/in"
    rows = [[f"{name} {s['version']}", *(s[key] for key in list(s) if key != "version")] for name, s in tools.items()]
    title = f"Cleaning {pages} real pages, CPU time on one thread, least of {rounds} round(s)"
    table(title, head.split("|"), rows)


def large_page() -> str:
    """Return a page of 11 MB of ordinary blocks."""
    prose = "The plum harvest of the valley was late again, and nobody minded. "
    block = f'<div class="c"><h2>Part</h2><p>{prose}<a href="/x">more</a></p><ul><li>a<li>b</ul></div>\n'
    return f"<!doctype html><title>t</title><body>{block * (11_000_000 // len(block))}"


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the target was met."""
    pages = load(number=options.pages or (30 if options.quick else None))
    rounds = options.rounds or (1 if options.quick else 3)
    names = [SUBJECT, *CLEANERS] if options.tools is None else options.tools.split(",")
    unknown = set(names) - {SUBJECT, *CLEANERS}
    if unknown:
        raise BenchError(f"unknown tool {sorted(unknown)[0]!r}; the tools are: {SUBJECT}, " + ", ".join(CLEANERS))
    with ExitStack() as stack:
        workers = []
        for name in names:
            worker = prunus_worker() if name == SUBJECT else reference_worker(name, options.env)
            workers.append(stack.enter_context(worker))
            worker.start()
        records = measure(pages, workers, rounds)
        large = {w.name: w.ask("clean", html=large_page()).cpu for w in workers if w.name == SUBJECT}
    sizes = {page.key: len(page.html) for page in pages}
    reference = records.get(REFERENCE)
    tools = {w.name: summary(w, records[w.name], reference, sizes) for w in workers}
    show(tools, len(pages), rounds)
    print(*(f"\n{name}: a page of 11 MB in {cpu:.2f} s of CPU" for name, cpu in large.items()))
    for name, record in records.items():
        for key, error in list(record.errors.items())[:3]:
            print(f"failed  {name} on {key}: {error}")
    speed = tools.get(SUBJECT, {}).get("times_reference")
    met = True
    if speed is not None:
        print()
        met = verdict(f"cleaning at {speed:.1f} x the reference; target {TARGET:g} x", speed >= TARGET)
        met = met and not tools[SUBJECT]["failed"]
    result = {"pages": len(pages), "rounds": rounds, "tools": tools}
    json_line("clean", result | {"ratio": speed, "target": TARGET, "met": met, "large_page_s": large.get(SUBJECT)})
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("clean", __doc__, reference=True)
    options.add_argument("--pages", type=int, help="an even sample of this many pages")
    options.add_argument("--rounds", type=int, help="visits to every page (3; quick 1)")
    options.add_argument("--tools", help="comma-separated; without it, all of them")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
