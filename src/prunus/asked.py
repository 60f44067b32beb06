"""Questions to indexes: what they find becomes evidence beside given pages; answers cite leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import pipeline
from .errors import NothingFound
from .events import CitationEvent, DoneEvent, Event
from .html.documents import Documents
from .html.parse import without_surrogates
from .types import Citation, Options, Passage

if TYPE_CHECKING:
    from .index.evidence import Evidence
    from .index.terms import Retrieval
    from .indexed import Index


def evidence_of(
    question: str, indexes: Sequence[Index], pages: Documents | None, budget: int, retrieval: Retrieval | None = None
) -> Evidence:
    """Return what indexes find for a question, beside pages that were given.

    :param budget: tokens of the texts that each index may bring.
    :raises NothingFound: no page was given, and the indexes hold nothing.
    """
    from .index.evidence import Evidence, Found

    found = [
        Found(one.retrieved(question, budget, retrieval), one.retriever, one.pages, one.way(retrieval) == "hybrid")
        for one in indexes
    ]
    if pages is None and not any(one.retrieved.nodes for one in found):
        places = ", ".join(one.place for one in indexes)
        raise NothingFound(f"{places}: nothing is in the index, or nothing fits the budget", subject=places)
    return Evidence(pages.trees if pages else [], found, pages.failures if pages else None)


async def answer(
    question: str,
    evidence: Evidence,
    budget: int,
    options: Options,
    engines: pipeline.Engines,
) -> AsyncIterator[Event]:
    """Answer as :func:`prunus.pipeline.answer` does; citations of summaries go on to the leaves below them.

    One index alone is trusted with its own scores; with pages, or with another index, all blocks are scored alike.

    :raises NothingFound: nothing that was found bears on the question.
    """
    if evidence.alone:
        engines = replace(engines, scorer=evidence)
    if getattr(engines.generator, "verbatim", False):
        engines = replace(engines, generator=_Grounded(engines.generator, evidence))
    cited: list[Citation] = []
    async for event in pipeline.answer(evidence, without_surrogates(question), budget, options, engines):
        if isinstance(event, CitationEvent):
            own = [event.citation]
            if evidence.is_summary(event.citation.document):
                own = evidence.cite(event.citation.number, event.citation.span)
            cited += own
            for one in own:
                yield CitationEvent(one)
        elif isinstance(event, DoneEvent):
            said = event.answer
            doubted = [one for one in said.unsupported if one not in evidence.doubted]
            unsupported = [*doubted, *evidence.doubted, *(one.quote for one in cited if not one.found)]
            yield DoneEvent(replace(said, citations=cited, unsupported=list(dict.fromkeys(unsupported))))
        else:
            yield event


class _Grounded:
    """A generator that quotes: of a summary it is given the leaf's words instead."""

    def __init__(self, generator: Any, evidence: Evidence) -> None:
        self._generator, self._evidence = generator, evidence

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the answer's text."""
        return str(await self._generator.generate(query, [self._page(one) for one in passages]))

    def _page(self, passage: Passage) -> Passage:
        span = passage.spans[0]
        if not self._evidence.is_summary(span.document):
            return passage
        cited = self._evidence.cite(1, span)
        return replace(passage, text=cited[0].quote, spans=(cited[0].span,)) if cited else passage
