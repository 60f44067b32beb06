"""The HTML that Prunus cleans, cut at the budget: what block pruning must beat."""

from __future__ import annotations

from prunus_evals.records import Asker, Reply, System
from prunus_evals.tokens import Counter


class CleanCut:
    """Keeps the head of the cleaned HTML, whatever the question."""

    name = "clean_cut"

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def prepare(self, html: str) -> Asker:
        """Clean the page once."""
        import prunus  # here, because the other baselines must run without it

        return _Head(prunus.clean(html), self._counter)


class _Head:
    def __init__(self, html: str, counter: Counter) -> None:
        self._html = html
        self._counter = counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self._counter.head(self._html, budget), "html")


def make(counter: Counter, variant: str) -> System:
    """Return this file's system; it has no variants."""
    return CleanCut(counter)
