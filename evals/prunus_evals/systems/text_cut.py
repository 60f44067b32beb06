"""The plain text of the page, cut at the budget."""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.records import Asker, Document, System
from prunus_evals.systems._documents import Head, text_of
from prunus_evals.tokens import Counter


class TextCut:
    """Keeps the head of the visible text, whatever the question."""

    name = "text_cut"

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Extract the texts once."""
        return Head(text_of(documents), "text", self._counter)


def make(counter: Counter, variant: str) -> System:
    """Return the system; it has no variants."""
    return TextCut(counter)
