"""Fetching of 1,000 pages from a local server, cold and from the cache: pages per second and memory.

python -m benchmarks.fetch [--pages N] [--at-once N] [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.fetch_server import PAGES, page
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import ROOT, BenchError, Reply, Worker

TARGET_MB = 100.0
"""Memory above that of the warm process, at most."""


@contextmanager
def server() -> Iterator[int]:
    """Start the server in a separate process; yield its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.fetch_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None  # a pipe
        line = process.stdout.readline()
        if not line.strip().isdigit():
            raise BenchError("the local server did not start")
        yield int(line)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def measured(op: str, expected: int, **arguments: Any) -> tuple[Reply, float]:
    """Run once in a fresh process; return the reply, and the peak of memory above that of the warm process."""
    with Worker(op, [sys.executable, "-m", "benchmarks.fetch_subject"]) as worker:
        reply = worker.ask(op, **arguments)
        if not reply.ok:
            raise BenchError(f"{op}: {reply.error}")
        if reply.value != {"bytes": expected, "failed": 0}:
            raise BenchError(f"{op}: {reply.value}; expected {expected} bytes without a failure")
        return reply, reply.peak_mb - worker.warm_mb


def has_cache() -> bool:
    """Return whether this version of Prunus has a disk cache to measure."""
    with Worker("probe", [sys.executable, "-m", "benchmarks.fetch_subject"]) as worker:
        worker.start()
        return bool(worker.about["cache"])


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the targets were met."""
    count = min(options.pages or (100 if options.quick else PAGES), PAGES)
    rounds = options.rounds or (1 if options.quick else 3)
    expected = sum(len(page(number)) for number in range(count))
    names = ["cold", "httpx alone", *(["cold, kept", "cached"] if has_cache() else [])]
    if "cached" not in names:
        say("this version has no prunus.web.fetch.cache: the cached columns are left out")
    best: dict[str, tuple[Reply, float]] = {}
    with server() as port:
        common = {"port": port, "count": count, "at_once": options.at_once}
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            with tempfile.TemporaryDirectory() as folder:
                for name in names:
                    more = {"folder": folder} if name in ("cold, kept", "cached") else {}
                    found = measured("httpx" if name == "httpx alone" else "fetch", expected, **common, **more)
                    if name not in best or found[0].wall < best[name][0].wall:
                        best[name] = found
    result = {
        name: {"pages_s": count / reply.wall, "wall_s": reply.wall, "cpu_s": reply.cpu, "peak_mb": memory}
        for name, (reply, memory) in best.items()
    }
    rows = [[name, r["pages_s"], r["wall_s"], 1000 * r["cpu_s"] / count, r["peak_mb"]] for name, r in result.items()]
    title = f"{count} pages, {expected / 1e6:.0f} MB unpacked, {options.at_once} at once, best of {rounds}"
    table(title, ["", "pages/s", "wall s", "CPU ms/page", "MB above warm"], rows)
    print()
    most = max(r["peak_mb"] for name, r in result.items() if name != "httpx alone")
    met = verdict(f"at most {most:.0f} MB above the warm process; target {TARGET_MB:g}", most < TARGET_MB)
    json_line("fetch", {"pages": count, "bytes": expected, "at_once": options.at_once, "runs": result, "met": met})
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("fetch", __doc__)
    options.add_argument("--pages", type=int, help=f"number of pages, at most {PAGES} ({PAGES}; quick 100)")
    options.add_argument("--at-once", type=int, default=16, help="pages to fetch at the same time (16)")
    options.add_argument("--rounds", type=int, help="rounds, each in a fresh process; the best counts (3; quick 1)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
