"""Search indexes for a question; the nodes that they find become evidence beside pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..core.errors import NothingFound
from ..evidence.documents import Documents

if TYPE_CHECKING:
    from .evidence import IndexEvidence, Pages
    from .retrieve import Retrieved, Retriever
    from .terms import Retrieval


class SearchableIndex(Protocol):
    """The part of :class:`prunus.Index` that a search needs."""

    location: str
    """The name of the index in messages."""

    @property
    def retriever(self) -> Retriever:
        """The retriever of its nodes."""
        ...

    @property
    def pages(self) -> Pages:
        """The pages of its documents."""
        ...

    def retrieved(self, query: str, budget: int = ..., retrieval: Retrieval | None = ...) -> Retrieved:
        """Return the nodes that a question retrieves within a budget of tokens."""
        ...

    def way(self, retrieval: Retrieval | None) -> str:
        """Return the way of retrieval, with the index's default filled in."""
        ...


class Indexes:
    """Indexes that are searched along with pages.

    :param retrieval: how nodes are retrieved from each index.
    """

    def __init__(self, indexes: Sequence[SearchableIndex], retrieval: Retrieval | None = None) -> None:
        self._indexes, self._retrieval = list(indexes), retrieval
        self.location = ", ".join(index.location for index in self._indexes)

    def find(self, question: str, pages: Documents, budget: int) -> IndexEvidence:
        """Return the pages, followed by the documents that the indexes find.

        Retrieved leaves become parts of their pages; a page that is already in ``pages`` is not added again.

        :param budget: most tokens of the nodes of each index.
        :raises BadInput: an index lacks a document that ``retrieval`` names.
        """
        from .evidence import IndexEvidence, IndexFindings

        retrieval = self._retrieval
        found = [
            IndexFindings(
                index.retrieved(question, budget, retrieval),
                index.retriever,
                index.pages,
                index.way(retrieval) == "hybrid",
            )
            for index in self._indexes
        ]
        return IndexEvidence(pages.trees, found, pages.failures)


def evidence_of(
    question: str, index: SearchableIndex, budget: int, retrieval: Retrieval | None = None
) -> IndexEvidence:
    """Return the evidence that one index finds for a question.

    :raises NothingFound: the index is empty, or no node fits the budget.
    """
    evidence = Indexes([index], retrieval).find(question, Documents([]), budget)
    if not evidence.trees:
        raise NothingFound(
            f"{index.location}: nothing is in the index, or nothing fits the budget", subject=index.location
        )
    return evidence
