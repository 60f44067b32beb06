"""Shared by the systems that keep the head of a text, whatever the question."""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.records import OutputFormat, Reply, Stage
from prunus_evals.tokens import Counter


class Head:
    """A text that is cut at the budget.

    :param stages: what it cost to make the text.
    """

    def __init__(self, text: str, format: OutputFormat, counter: Counter, stages: Sequence[Stage] = ()) -> None:
        self._text = text
        self._format: OutputFormat = format
        self._counter = counter
        self._stages = tuple(stages)

    def ask(self, question: str, budget: int) -> Reply:
        """Return the head of the text within the budget."""
        return Reply(self._counter.head(self._text, budget), self._format, stages=self._stages)
