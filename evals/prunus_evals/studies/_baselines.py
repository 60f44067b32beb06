"""Shared by the studies: baselines of the papers, as systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prunus_evals.records import Asker, Document, Reply


@dataclass(frozen=True, slots=True)
class Nothing:
    """No evidence: for questions that a reader answers from their words alone."""

    name: str = "nothing"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read nothing."""
        return self

    def ask(self, question: str, budget: int) -> Reply:
        """Return no evidence."""
        return Reply("", "text")
