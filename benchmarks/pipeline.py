"""The main job: prune twenty real pages for a question to 4,096 tokens, against the reference with MiniLM.

    python -m benchmarks.pipeline [--pages N] [--rounds N] [--budget N] [--quick] [--make-env]

Prunus runs `prunus.prune(pages, question, budget)` with its defaults. The reference runs its own functions in its
documented order (clean_html of each page, the pages joined, build_block_tree with 256 words, EmbedHTMLPruner with
MiniLM on one CPU thread, prune_HTML); its tokens are counted with the same Llama-2 tokenizer. Both load their models
before the clock starts, and they run in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from benchmarks.data import load, stamped
from benchmarks.reference.worker import MAX_NODE_WORDS
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError, Reply, Worker, prunus_worker, reference_worker

QUESTION = "How much does a subscription to Google Stadia cost a month?"
TARGET_RATIO = 50.0
TARGET_SECONDS = 1.0
LIMIT = 900.0  # seconds for one call: the reference needs about 35 for twenty pages


def _call(worker: Worker, op: str, **arguments: Any) -> Reply:
    """Send one command, which must succeed."""
    reply = worker.ask(op, **arguments)
    if not reply.ok:
        raise BenchError(f"{worker.name}: {reply.error}")
    return reply


def measure(
    html: list[str], rounds: int, budget: int, subject: Worker, reference: Worker
) -> tuple[list[Reply], list[Reply], list[float]]:
    """Run both sides in turns; return the replies of Prunus and of the reference, and Prunus' seconds of cleaning."""
    ours: list[Reply] = []
    theirs: list[Reply] = []
    cleaning: list[float] = []
    job = {"question": QUESTION, "budget": budget}
    for turn in range(rounds):
        pages = [stamped(page, turn) for page in html]
        ours.append(_call(subject, "prune", pages=pages, **job))
        theirs.append(_call(reference, "prune", pages=pages, max_words=MAX_NODE_WORDS, **job))
        again = [stamped(page, rounds + turn) for page in html]
        cleaning.append(sum(_call(subject, "clean", html=page).cpu for page in again))
        say(f"round {turn + 1}/{rounds}: {ours[-1].cpu:.2f} s against {theirs[-1].cpu:.1f} s")
    return ours, theirs, cleaning


def summary(
    ours: list[Reply], theirs: list[Reply], cleaning: list[float], workers: tuple[Worker, Worker]
) -> dict[str, Any]:
    """Return the seconds by side and stage (the least of the rounds), the tokens and the memory."""
    mine, other = min(ours, key=lambda r: r.cpu), min(theirs, key=lambda r: r.cpu)
    subject, reference = workers
    counted = max(_call(reference, "count", text=reply.value["html"]).value for reply in ours)
    return {
        "prunus": {
            "version": subject.about["version"],
            "cpu_s": mine.cpu,
            "cpu_s_median": statistics.median(r.cpu for r in ours),
            "wall_s": mine.wall,
            "clean_alone_s": min(cleaning),
            "tokens": mine.value["tokens"],
            "tokens_counted": counted,
            "warm_mb": subject.warm_mb,
            "peak_mb": max(r.peak_mb for r in ours),
        },
        "reference": {
            "version": reference.about["version"],
            "cpu_s": other.cpu,
            "cpu_s_median": statistics.median(r.cpu for r in theirs),
            "wall_s": other.wall,
            "stages_s": other.value["stages"],
            "blocks": other.value["blocks"],
            "tokens": other.value["tokens"],
            "warm_mb": reference.warm_mb,
            "peak_mb": max(r.peak_mb for r in theirs),
        },
        "ratio": other.cpu / mine.cpu,
    }


def show(result: dict[str, Any], pages: int, budget: int) -> None:
    """Print the table."""
    mine, other = result["prunus"], result["reference"]
    stages = other["stages_s"]
    rows: list[list[object]] = [
        [name, mine["clean_alone_s"] if name == "clean" else None, seconds, 1000 * seconds / pages]
        for name, seconds in stages.items()
    ]
    whole = 1000 * other["cpu_s"] / pages
    rows.append(["whole job, CPU s", mine["cpu_s"], other["cpu_s"], whole])
    rows.append(["  median of rounds", mine["cpu_s_median"], other["cpu_s_median"], None])
    rows.append(["  wall s", mine["wall_s"], other["wall_s"], None])
    rows.append(["tokens of the result", mine["tokens"], other["tokens"], None])
    rows.append(["  counted by the reference", mine["tokens_counted"], None, None])
    rows.append(["warm MB", mine["warm_mb"], other["warm_mb"], None])
    rows.append(["peak MB", mine["peak_mb"], other["peak_mb"], None])
    head = ["", f"prunus {mine['version']}", f"htmlrag {other['version']} + MiniLM", "ms per page"]
    table(f"{pages} real pages and one question to {budget} tokens, one core", head, rows)


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the targets were met."""
    number = options.pages or (5 if options.quick else 20)
    html = [page.html for page in load(("articles",), number)]
    rounds = options.rounds or (1 if options.quick else 3)
    with (
        prunus_worker(LIMIT) as subject,
        reference_worker("htmlrag+minilm", options.env, LIMIT) as reference,
    ):
        _call(subject, "warm")
        reference.start()
        answers = measure(html, rounds, options.budget, subject, reference)
        result = summary(*answers, (subject, reference))
    show(result, len(html), options.budget)
    mine = result["prunus"]
    counted = mine["tokens_counted"]
    print()
    met = [
        verdict(
            f"{result['ratio']:.0f} x the reference; target {TARGET_RATIO:g} x",
            result["ratio"] >= TARGET_RATIO,
        ),
        verdict(
            f"{mine['cpu_s']:.2f} s of CPU; target {TARGET_SECONDS:g} s for twenty pages",
            mine["cpu_s"] <= TARGET_SECONDS,
        ),
        verdict(
            f"{counted} tokens, counted by the other side; budget {options.budget}",
            counted <= options.budget,
        ),
    ]
    about = {"pages": len(html), "rounds": rounds, "budget": options.budget, "question": QUESTION}
    json_line("pipeline", about | result | {"target": TARGET_RATIO, "met": all(met)})
    return all(met)


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("pipeline", __doc__, reference=True)
    options.add_argument("--pages", type=int, help="number of pages (20; quick 5)")
    options.add_argument("--rounds", type=int, help="rounds of each side (3; quick 1)")
    options.add_argument("--budget", type=int, default=4096, help="tokens of the output (4096)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
