"""Questions to indexes: what they find becomes evidence beside the pages that were given and found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..core.errors import NothingFound
from ..evidence.documents import Documents

if TYPE_CHECKING:
    from .found import Evidence, Pages
    from .retrieve import Retrieved, Retriever
    from .terms import Retrieval


class AskedIndex(Protocol):
    """What is asked of one index; see :class:`prunus.Index`."""

    place: str
    """How messages call it."""

    @property
    def retriever(self) -> Retriever:
        """What retrieves nodes."""
        ...

    @property
    def pages(self) -> Pages:
        """The pages of its documents."""
        ...

    def retrieved(self, query: str, budget: int = ..., retrieval: Retrieval | None = ...) -> Retrieved:
        """Return the nodes that a question retrieves."""
        ...

    def way(self, retrieval: Retrieval | None) -> str:
        """Return the way in which it is asked."""
        ...


class Indexes:
    """Indexes that are asked along with pages.

    :param retrieval: how they are asked.
    """

    def __init__(self, indexes: Sequence[AskedIndex], retrieval: Retrieval | None = None) -> None:
        self._indexes, self._retrieval = list(indexes), retrieval
        self.place = ", ".join(one.place for one in self._indexes)

    def find(self, question: str, pages: Documents, budget: int) -> Evidence:
        """Return the pages, and after them what the indexes find.

        Leaves are parts of their pages; a page that is among those given is not told twice.

        :param budget: tokens of the texts that each index may bring.
        :raises BadInput: a document that is asked for is not in an index.
        """
        from .found import Evidence, IndexFindings

        how = self._retrieval
        found = [
            IndexFindings(one.retrieved(question, budget, how), one.retriever, one.pages, one.way(how) == "hybrid")
            for one in self._indexes
        ]
        return Evidence(pages.trees, found, pages.failures)


def evidence_of(question: str, index: AskedIndex, budget: int, retrieval: Retrieval | None = None) -> Evidence:
    """Return what one index finds for a question.

    :raises NothingFound: it holds nothing.
    """
    evidence = Indexes([index], retrieval).find(question, Documents([]), budget)
    if not evidence.trees:
        raise NothingFound(f"{index.place}: nothing is in the index, or nothing fits the budget", subject=index.place)
    return evidence
