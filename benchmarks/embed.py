"""Embedders without a GPU: passages per second by batch size and threads, sorted by length and unsorted.

python -m benchmarks.embed [--embedder minilm] [--embedder minilm:int8] [--passages N] [--quick]

The passages are those of `rank/nq_passages`, cut to the lengths of blocks: a quarter stays whole, the others have 12,
25 and 50 words. Their order is random with a fixed seed. Passages per second use wall time. The verdict uses the CPU
time of all threads, because it is also valid on a busy machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError

BATCHES = (1, 8, 32, 64)
LENGTHS = (12, 25, 50, 10_000)
TARGET = 2.0
"""CPU time of unsorted batches of 64 over that of sorted batches of 8, on one thread, at least."""


def passages(number: int) -> list[str]:
    """Return passages of mixed length, in a random order with a fixed seed."""
    from prunus_evals.data import rows

    found = [row["gold_text"] for row, _ in zip(rows("rank/nq_passages"), range(number), strict=False)]
    mixed = [" ".join(text.split()[: LENGTHS[place % len(LENGTHS)]]) for place, text in enumerate(found)]
    random.Random(7).shuffle(mixed)
    return mixed


def encoder(spec: str, batch: int, threads: int) -> Callable[[Sequence[str], bool], Any]:
    """Return a function of (texts, sorted) that embeds; only engines with their own graph can embed unsorted."""
    from prunus.core.registry import make_engine

    engine = make_engine("embedder", spec, batch=batch, threads=threads)
    engine.embed(["warm"])
    inner = getattr(engine, "_encoder", None)
    if hasattr(inner, "embed"):
        return lambda texts, ordered: inner.embed(texts, ordered)
    return lambda texts, ordered: engine.embed(texts)


def measure(call: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the least wall time and the least CPU time over the rounds."""
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        found = (time.perf_counter() - wall, time.process_time() - cpu)
        best = min(best[0], found[0]), min(best[1] or found[1], found[1])
    return best


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the target was met."""
    number = options.passages or (80 if options.quick else 400)
    rounds = 1 if options.quick else 2
    texts = passages(number)
    results: list[dict[str, Any]] = []
    for spec in options.embedder or ["static", "minilm", "minilm:int8"]:
        plain = spec.split(":")[0] == "static"
        for threads in (0,) if plain else options.threads:
            for batch in (0,) if plain else BATCHES:
                for ordered in (True,) if plain else (True, False):
                    call = encoder(spec, batch, threads)
                    wall, cpu = measure(lambda c=call, o=ordered: c(texts, o), rounds)  # type: ignore[misc]
                    results.append(
                        {"embedder": spec, "threads": threads, "batch": batch, "sorted": ordered}
                        | {"per_s": len(texts) / wall, "cpu_ms_each": 1000 * cpu / len(texts)}
                    )
                    say(f"{spec} threads {threads} batch {batch} sorted {ordered}: {len(texts) / wall:.0f} a second")
    head = ["embedder", "threads", "batch", "sorted", "passages/s", "CPU ms each"]
    table(f"Embedding {len(texts)} passages, best of {rounds} round(s)", head, [list(row.values()) for row in results])
    print()
    met = judge(results)
    json_line("embed", {"passages": len(texts), "rounds": rounds, "rows": results, "target": TARGET, "met": met})
    return met


def judge(results: Sequence[dict[str, Any]]) -> bool:
    """Return whether sorted small batches beat unsorted large batches by the target."""
    costs = {(row["embedder"], row["threads"], row["batch"], row["sorted"]): row["cpu_ms_each"] for row in results}
    met = True
    for spec in dict.fromkeys(row["embedder"] for row in results):
        small, large = costs.get((spec, 1, 8, True)), costs.get((spec, 1, 64, False))
        if small and large:
            text = f"{spec}: unsorted, 64 at once, costs {large / small:.1f} x sorted, 8 at once; target {TARGET:g} x"
            met = verdict(text, large / small >= TARGET) and met
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("embed", __doc__)
    options.add_argument("--embedder", action="append", help="a spec; may be given several times")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads of one call")
    options.add_argument("--passages", type=int, help="how many passages (400; quick 80)")
    return finish(guarded, options.parse_args(argv))


def guarded(options: argparse.Namespace) -> bool:
    """Run the benchmark; an error of Prunus or of the data becomes one line."""
    from prunus.core.errors import PrunusError
    from prunus_evals.errors import EvalError

    try:
        return run(options)
    except (PrunusError, EvalError) as error:
        raise BenchError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
