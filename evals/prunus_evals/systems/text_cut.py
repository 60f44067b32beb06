"""The plain text of the page, cut at the budget."""

from __future__ import annotations

from prunus_evals.records import Asker, Reply, System
from prunus_evals.tokens import Counter
from prunus_evals.visible import html_text


class TextCut:
    """Keeps the head of the visible text, whatever the question."""

    name = "text_cut"

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def prepare(self, html: str) -> Asker:
        """Extract the text once."""
        return _Head(html_text(html), self._counter)


class _Head:
    def __init__(self, text: str, counter: Counter) -> None:
        self._text = text
        self._counter = counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self._counter.head(self._text, budget), "text")


def make(counter: Counter, variant: str) -> System:
    """Return the system; it has no variants."""
    return TextCut(counter)
