"""The quotes of an answer without a model, as ``prunus ask`` gives them from its own budget of evidence.

The text is all quotes, cut at the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import prunus
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import page_of
from prunus_evals.tokens import Counter


def quotes_of(question: str, pages: Any) -> list[str]:
    """Return the quotes of an answer without a model, in their order; none where nothing answers."""
    try:
        answer = prunus.ask(question, pages)
    except prunus.NothingFound:
        return []
    return [citation.quote for citation in answer.citations]


class Quotes:
    """Keeps the quotes of an answer; none where the pages do not answer."""

    name = "prunus_quotes"

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read the pages once; empty ones are left out."""
        pages = [page_of(document) for document in documents if document.content.strip()]
        return _Asker(prunus.read(pages) if pages else None, self._counter)


class _Asker:
    def __init__(self, pages: prunus.Documents | None, counter: Counter) -> None:
        self._pages = pages
        self._counter = counter

    def ask(self, question: str, budget: int) -> Reply:
        found = quotes_of(question, self._pages) if self._pages is not None else []
        return Reply(self._counter.head("\n".join(found), budget), "text", quotes=tuple(found))


def make(counter: Counter, variant: str) -> System:
    """Return the system; it has no variants."""
    return Quotes(counter)
