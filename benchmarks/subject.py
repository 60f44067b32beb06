"""The measured process with Prunus, which several benchmarks use.

python -m benchmarks.subject
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

import prunus
from benchmarks.protocol import Clock, serve
from prunus.core.types import OutputFormat

WARM_UP = "<html><body><h1>Warm</h1><p>One small page, so that first calls are over.</p></body>"


def op_clean(clock: Clock, html: str, format: OutputFormat = "html") -> dict[str, Any]:
    """Clean one page."""
    return {"chars": len(clock.timed(lambda: prunus.clean(html, format=format)))}


def op_prune(clock: Clock, pages: list[str], question: str, budget: int) -> dict[str, Any]:
    """Clean, cut, score and prune some pages for a question."""
    context = clock.timed(lambda: prunus.prune(list(pages), question, budget=budget))
    return {"tokens": context.tokens, "html": context.html}


def op_warm(clock: Clock) -> None:
    """Prune once, so that everything is loaded."""
    prunus.prune([WARM_UP], "warm?", budget=512)


if __name__ == "__main__":
    prunus.clean(WARM_UP)
    serve(
        {"clean": op_clean, "prune": op_prune, "warm": op_warm},
        {"tool": "prunus", "version": importlib.metadata.version("prunus")},
    )
