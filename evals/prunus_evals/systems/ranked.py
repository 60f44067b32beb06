"""The ranking of pages of Prunus: ``ranked:mixed``, by snippet and content together (Internet-SAG §3.2).

``snippet`` and ``content`` rank by one of them alone, ``given`` keeps the order of the search. ``@scorer=embed`` scores
by vectors alone. The evidence is the text of the documents, best first, cut at the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prunus.answer.rank_pages import Candidate, Scores, by_embedder, by_hybrid, rank
from prunus.core.registry import make_engine
from prunus.core.types import Hit
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import plain
from prunus_evals.systems._variants import read
from prunus_evals.tokens import Counter

VARIANTS = ("mixed", "snippet", "content", "given", "mixed@scorer=embed")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranks documents for a question.

    :param by: what they are ranked by.
    """

    name: str
    by: str
    scores: Scores
    counter: Counter
    documents: Sequence[Document] = ()

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Take the documents."""
        return replace(self, documents=documents)

    def ask(self, question: str, budget: int) -> Reply:
        """Return the documents, best first."""
        texts = {one.id: plain(one) for one in self.documents}
        order = [*texts]
        if self.by != "given":
            pages = [self._candidate(one, texts[one.id]) for one in self.documents]
            best = [page.hit.url for page in rank([question], pages, self.scores, top=len(pages))]
            order = list(dict.fromkeys([*best, *order]))  # a document without the ranked text comes last
        text = "\n".join(texts[name] for name in order)
        return Reply(self.counter.head(text, budget), "text", ranking=tuple(order))

    def _candidate(self, document: Document, text: str) -> Candidate:
        if self.by == "content":
            return Candidate(Hit(document.id, ""), text)
        hit = Hit(document.id, document.title, document.snippet)
        return Candidate(hit, "" if self.by == "snippet" else text)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    found = read("ranked", variant, {"scorer": ("hybrid", "embed")})
    engine = make_engine("embedder", "static")
    scores = by_embedder(engine) if found.options.get("scorer") == "embed" else by_hybrid(engine)
    return Ranked(f"ranked:{variant}", found.head, scores, counter)
