"""Shared by the studies: baselines of the papers, as systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prunus_evals import systems
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.tokens import Counter


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


def VectorDB(embedder: str, counter: Counter) -> System:
    """Return VectorDB-RAG of Internet-SAG (section 5.1); the paper embeds with BGE-m3.

    :param embedder: short name or spec of an embedder.
    """
    return systems.make(f"vectors:{embedder}@tokens=512@overlap=128@beside=1", counter)
