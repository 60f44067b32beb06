"""Task ``survival``: run systems on questions and score the evidence; used by the reports and the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prunus_evals import harness
from prunus_evals.harness import BUDGETS as BUDGETS
from prunus_evals.records import Outcome, Question, System
from prunus_evals.tokens import Counter


def run(
    pages: Sequence[Sequence[Question]],
    systems: Sequence[System],
    budgets: Sequence[int],
    counter: Counter,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Run every system on every question of every page at every budget, and score the evidence."""
    outcomes: list[Outcome] = []
    for done, page in enumerate(pages, 1):
        outcomes.extend(harness.run_page(page, harness.Engines(counter, list(systems)), budgets))
        if progress is not None:
            progress(done, len(pages))
    return outcomes
