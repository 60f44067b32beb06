"""The cleaned HTML of Prunus, cut at the budget: the baseline that block pruning must beat.

Variant ``clean`` is the output of ``prunus.clean``, with the addresses of links and images; ``lean``, the stronger
one, writes no addresses, as pruned output does.
"""

from __future__ import annotations

from collections.abc import Sequence

import prunus
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import page_of
from prunus_evals.tokens import Counter

VARIANTS = {"clean": prunus.CLEAN, "lean": prunus.LEAN}


class CleanCut:
    """Keeps the head of the cleaned HTML, whatever the question."""

    def __init__(self, style: str, counter: Counter) -> None:
        self.name = f"clean_cut:{style}"
        self._style = VARIANTS[style]
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the page once."""
        return _Head(
            "\n".join(prunus.clean(page_of(document), style=self._style) for document in documents), self._counter
        )


class _Head:
    def __init__(self, html: str, counter: Counter) -> None:
        self._html = html
        self._counter = counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self._counter.head(self._html, budget), "html")


def make(counter: Counter, variant: str) -> System:
    """Return the system with this style."""
    return CleanCut(variant, counter)
