"""The cost of an answer from the web without network and model: twenty real pages and one question.

    python -m benchmarks.answer [--pages N] [--rounds N] [--quick]

Search, pages and model are stand-ins that answer at once, so that only Prunus' own work is measured, from the plan to
the citations: by stage in wall seconds, in all in CPU seconds of all threads. The process is warm before the clock
starts; its peak of memory is compared with its memory when it was warm.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from benchmarks.data import load, stamped
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError, Reply, Worker

QUESTION = "How much does a subscription to Google Stadia cost a month?"
TARGET_SECONDS = 2.0
TARGET_FACTOR = 20
TARGET_MB = 100.0
STAGES = ("plan", "search", "read", "rank", "prune", "extract", "answer", "cite")


def _call(worker: Worker, op: str, **arguments: Any) -> Reply:
    """Send one command, which must succeed."""
    reply = worker.ask(op, **arguments)
    if not reply.ok:
        raise BenchError(f"{worker.name}: {reply.error}")
    return reply


def measure(html: list[str], rounds: int, worker: Worker) -> dict[str, list[Reply]]:
    """Answer with quotes and with the stand-in of a model, in turns."""
    found: dict[str, list[Reply]] = {"quotes": [], "model": []}
    for turn in range(rounds):
        for way, replies in found.items():
            pages = [stamped(page, turn) for page in html]
            replies.append(_call(worker, "answer", pages=pages, question=QUESTION, model=way == "model"))
        say(
            f"round {turn + 1}/{rounds}: "
            + ", ".join(f"{way} {replies[-1].cpu:.2f} s" for way, replies in found.items())
        )
    return found


def summary(found: dict[str, list[Reply]], worker: Worker, warm: float) -> dict[str, Any]:
    """Return the seconds by stage of the quickest round, and the memory."""
    ways = {}
    for way, replies in found.items():
        best = min(replies, key=lambda reply: reply.cpu)
        ways[way] = {
            "cpu_s": best.cpu,
            "cpu_s_median": statistics.median(reply.cpu for reply in replies),
            "wall_s": best.wall,
            "stages_s": best.value["stages"],
            "citations": best.value["citations"],
            "peak_mb": max(reply.peak_mb for reply in replies),
        }
    return {"version": worker.about["version"], "warm_mb": warm, "ways": ways}


def show(result: dict[str, Any], pages: int) -> None:
    """Print the table."""
    ways = result["ways"]
    rows: list[list[object]] = [[stage, *(way["stages_s"].get(stage) for way in ways.values())] for stage in STAGES]
    rows.append(["whole answer, CPU s", *(way["cpu_s"] for way in ways.values())])
    rows.append(["  median of rounds", *(way["cpu_s_median"] for way in ways.values())])
    rows.append(["  wall s", *(way["wall_s"] for way in ways.values())])
    rows.append(["warm MB", *(result["warm_mb"] for _ in ways)])
    rows.append(["peak MB", *(way["peak_mb"] for way in ways.values())])
    title = f"an answer from {pages} real pages, without network and model, seconds"
    table(title, ["", *(f"with {way}" for way in ways)], rows)


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the targets were met."""
    number = options.pages or (5 if options.quick else 20)
    html = [page.html for page in load(("articles",), number)]
    megabytes = sum(len(page.encode("utf-8", "replace")) for page in html) / 1e6
    with Worker("prunus", [sys.executable, "-m", "benchmarks.answer_subject"], 120.0) as worker:
        warm = _call(worker, "warm").peak_mb
        found = measure(html, options.rounds or (1 if options.quick else 3), worker)
        result = summary(found, worker, warm)
    show(result, number)
    slowest = max(way["cpu_s"] for way in result["ways"].values())
    above = max(way["peak_mb"] for way in result["ways"].values()) - result["warm_mb"]
    most = TARGET_FACTOR * megabytes + TARGET_MB
    met = [
        verdict(f"{slowest:.2f} s of CPU, at most {TARGET_SECONDS}", slowest <= TARGET_SECONDS),
        verdict(f"{above:.0f} MB above the warm process, at most {most:.0f} for {megabytes:.1f} MB", above <= most),
    ]
    json_line("answer", {"pages": number, "input_mb": megabytes, **result})
    return all(met)


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("answer", __doc__)
    options.add_argument("--pages", type=int, default=None, help="real pages (20)")
    options.add_argument("--rounds", type=int, default=None, help="rounds (3)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
