"""The measured process with Prunus, which several benchmarks use.

python -m benchmarks.subject
"""

from __future__ import annotations

import importlib.metadata
import resource
from typing import Any

import prunus
from benchmarks.hostile_cases import CASES, FIRST, LAST
from benchmarks.protocol import Clock, forget_peak, serve
from prunus.core.types import Format

WARM_UP = "<html><body><h1>Warm</h1><p>One small page, so that first calls are over.</p></body>"
REPEATS = 3
SHORT = 0.5  # seconds; a shorter call is repeated, because its time is mostly noise


def op_clean(clock: Clock, html: str, format: Format = "html") -> dict[str, Any]:
    """Clean one page."""
    return {"chars": len(clock.timed(lambda: prunus.clean(html, format=format)))}


def op_prune(clock: Clock, pages: list[str], question: str, budget: int) -> dict[str, Any]:
    """Clean, cut, score and prune some pages for a question."""
    context = clock.timed(lambda: prunus.prune(list(pages), question, budget=budget))
    return {"tokens": context.tokens, "html": context.html}


def op_warm(clock: Clock) -> None:
    """Prune once, so that everything is loaded."""
    prunus.prune([WARM_UP], "warm?", budget=512)


def _hostile_page(name: str, size: int) -> tuple[str | bytes, float]:
    """Return the page of a case and its size in MB."""
    page = CASES[name].make(size)
    data = page.encode("utf-8", "surrogatepass") if isinstance(page, str) else page
    return page, len(data) / 1e6


def op_hostile(clock: Clock, name: str, size: int, format: Format, prune: bool, memory_gb: float) -> dict[str, Any]:
    """Make a hostile page, clean or prune it, and return whether its first and last word are in the output."""
    limit = int(memory_gb * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    page, megabytes = _hostile_page(name, size)
    forget_peak()  # making the page used memory, too

    def call() -> str:
        if prune:
            return str(prunus.prune([page], f"{FIRST} {LAST}", budget=4096).html)
        return str(prunus.clean(page, format=format))

    best, output = float("inf"), ""
    for _ in range(REPEATS):
        before = clock.cpu
        output = clock.timed(call)
        best = min(best, clock.cpu - before)
        if best > SHORT:
            break
    words = CASES[name].words
    kept = all(word in output for word in words)
    return {"cpu": best, "mb": megabytes, "chars": len(output), "kept": kept}


if __name__ == "__main__":
    prunus.clean(WARM_UP)
    serve(
        {"clean": op_clean, "prune": op_prune, "warm": op_warm, "hostile": op_hostile},
        {"tool": "prunus", "version": importlib.metadata.version("prunus")},
    )
