"""The HTML that Prunus cleans, cut at the budget: what block pruning must beat.

Variant ``clean`` is what ``prunus.clean`` returns, addresses of links and pictures
included; ``lean`` writes neither, as pruned output does, and is the stronger one.
"""

from __future__ import annotations

import prunus
from prunus_evals.records import Asker, Reply, System
from prunus_evals.tokens import Counter

VARIANTS = {"clean": prunus.CLEAN, "lean": prunus.LEAN}


class CleanCut:
    """Keeps the head of the cleaned HTML, whatever the question."""

    def __init__(self, style: str, counter: Counter) -> None:
        self.name = f"clean_cut:{style}"
        self._style = VARIANTS[style]
        self._counter = counter

    def prepare(self, html: str) -> Asker:
        """Clean the page once."""
        return _Head(prunus.clean(html, style=self._style), self._counter)


class _Head:
    def __init__(self, html: str, counter: Counter) -> None:
        self._html = html
        self._counter = counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self._counter.head(self._html, budget), "html")


def make(counter: Counter, variant: str) -> System:
    """Return the variant of this style."""
    return CleanCut(variant, counter)
