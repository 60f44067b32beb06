"""Embedders on the processor: passages a second by batch size and threads, sorted by length and not.

python -m benchmarks.embed [--embedder minilm] [--embedder minilm:int8] [--passages N] [--quick]

The passages are those of `rank/nq_passages`, cut to lengths as blocks of pages have them: a quarter
whole, the others to 12, 25 and 50 words. Order is random with a fixed seed. Passages a second are by
wall time; CPU time is that of all threads together, and what the verdict goes by, because it holds on
a busy machine too.
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
"""Sorted batches of 8 against unsorted batches of 64, on one thread, by CPU time."""


def passages(number: int) -> list[str]:
    """Passages of mixed length, in a random order that is always the same."""
    from prunus_evals.data import rows

    found = [row["gold_text"] for row, _ in zip(rows("rank/nq_passages"), range(number), strict=False)]
    mixed = [" ".join(text.split()[: LENGTHS[place % len(LENGTHS)]]) for place, text in enumerate(found)]
    random.Random(7).shuffle(mixed)
    return mixed


def encoder(spec: str, batch: int, threads: int) -> Callable[[Sequence[str], bool], Any]:
    """How an embedder is called, sorted or not; only engines with a graph of their own can be unsorted."""
    from prunus.core.registry import make_engine

    engine = make_engine("embedder", spec, batch=batch, threads=threads)
    engine.embed(["warm"])
    inner = getattr(engine, "_encoder", None)
    if hasattr(inner, "embed"):
        return lambda texts, ordered: inner.embed(texts, ordered)
    return lambda texts, ordered: engine.embed(texts)


def measure(call: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Least wall time and least CPU time."""
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        found = (time.perf_counter() - wall, time.process_time() - cpu)
        best = min(best[0], found[0]), min(best[1] or found[1], found[1])
    return best


def run(options: argparse.Namespace) -> bool:
    """The whole benchmark; whether the target was met."""
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
    table(f"Embedding {len(texts)} passages, best of {rounds} round(s)", head, [list(one.values()) for one in results])
    print()
    met = judge(results)
    json_line("embed", {"passages": len(texts), "rounds": rounds, "rows": results, "target": TARGET, "met": met})
    return met


def judge(results: Sequence[dict[str, Any]]) -> bool:
    """Whether sorted small batches beat unsorted large ones by as much as they should."""
    costs = {(one["embedder"], one["threads"], one["batch"], one["sorted"]): one["cpu_ms_each"] for one in results}
    met = True
    for spec in dict.fromkeys(one["embedder"] for one in results):
        small, large = costs.get((spec, 1, 8, True)), costs.get((spec, 1, 64, False))
        if small and large:
            text = f"{spec}: unsorted, 64 at once, costs {large / small:.1f} x sorted, 8 at once; target {TARGET:g} x"
            met = verdict(text, large / small >= TARGET) and met
    return met


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = parser("embed", __doc__)
    options.add_argument("--embedder", action="append", help="a spec; may be given several times")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads of one call")
    options.add_argument("--passages", type=int, help="how many passages (400; quick 80)")
    return finish(guarded, options.parse_args(argv))


def guarded(options: argparse.Namespace) -> bool:
    """Run, with what is missing as one line."""
    from prunus.core.errors import PrunusError
    from prunus_evals.errors import EvalError

    try:
        return run(options)
    except (PrunusError, EvalError) as error:
        raise BenchError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
