"""From evidence to an answer: text, citations, what it cost (Internet-SAG §2.1, steps 6 and 7).

Where the model fails, takes too long, or would go over a limit, what needs no model takes over, and the answer
says so. Only where no page bears on the question is there no answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, cast

from ..core.errors import BadBudget, Failures, NothingFound, OutsideFailed
from ..core.events import CitationEvent, DoneEvent, Event, ExtractedEvent, PageEvent, TokenEvent, UsageEvent
from ..core.ports import NumberedSource, StreamingGenerator
from ..core.types import Answer, Citation, Passage
from ..evidence.documents import Documents
from ..evidence.engines import Engines
from ..models.meter import PICTURE_TOKENS
from .baselines import cut_to
from .check import check, claims
from .cite import cite
from .gather import gather_evidence, passage_of, per_page
from .pictures import Pages
from .run import LEAST_ROOM, OVERHEAD, Asked, Run, start, tokens_for_evidence

_ANSWER_SHARE: Final = 0.9
"""Of the seconds that are left."""

_REPEATED: Final = re.compile(r"(.{6,200}?)\1{7,}\Z", re.S)
_TAIL: Final = 1_800

UNREAD: Final = "No page that was read bears on this question. From memory, without any source:\n\n"


async def answer_from(
    documents: Documents, asked: Asked, engines: Engines, reading: Pages | None = None
) -> AsyncIterator[Event]:
    """Answer from pages that were given, as a stream of events that ends in ``done``.

    :param reading: reads the pictures of the evidence, where they are to be sent along.
    :raises NothingFound: nothing in the pages bears on the question.
    """
    failures = documents.failures if isinstance(documents.failures, Failures) else Failures(documents.failures)
    run = start(asked, engines, failures)
    run.pages = reading
    for tree in documents.trees:
        yield PageEvent(tree.url, tree.title)
    for name, reason in documents.failures.items():
        yield PageEvent(name, failure=reason)
    async for event in answer_in_groups(run, [documents]):
        yield event


async def answer_in_groups(run: Run, groups: Sequence[Documents]) -> AsyncIterator[Event]:
    """Answer from the first group of pages in which anything bears on the question; indexes belong to the first.

    :raises NothingFound: nothing does, and no answer without a page was asked for.
    """
    indexes = run.asked.indexes
    for place, documents in enumerate(groups):
        async for event in gather_evidence(run, documents, None if place else indexes):
            yield event
        if run.references:
            break
    else:
        if not (run.asked.options.web.unread and run.writer is not None):
            where = f"{indexes.place}: nothing in the index, or in a" if indexes is not None else "no"
            raise NothingFound(f"{where} page that was given bears on the question", subject=run.asked.question[:200])
        async for event in answer_unread(run, UNREAD):
            yield event
        return
    async for event in _answered(run):
        yield event


async def answer_again(run: Run) -> AsyncIterator[Event]:
    """Answer from the sources of earlier turns alone."""
    yield ExtractedEvent([passage for one in run.references for passage in one.passages])
    async for event in _answered(run):
        yield event


# --- the answer ----------------------------------------------------------------------------------


async def _answered(run: Run) -> AsyncIterator[Event]:
    """Write the answer, locate what bears it out, and say what it cost."""
    citations: list[Citation] = []
    unsupported: list[str] = []
    written = False
    if run.writer is not None:
        async with aclosing(cast(Any, _written(run))) as events:
            async for event in events:
                yield event
        written = bool(run.text.strip())
    if written:
        with run.stages.stage("cite") as detail:
            checked = await asyncio.to_thread(check, run.text, run.references, run.engines.embedder)
            citations, unsupported, run.cited = checked.citations, checked.unsupported, checked.cited
            detail |= {"citations": len(citations), "unsupported": len(unsupported)}
        if not citations:
            run.failures["citations"] = "the model's answer cites no page that was read"
    else:
        with run.stages.stage("answer"):
            generator = run.engines.spare.generator if run.engines.spare and run.writer else run.engines.generator
            quoted = await asyncio.to_thread(_quoted, run, generator.verbatim)
            run.text = await generator.generate(run.asked.question, [one for one, _, _ in quoted])
        yield TokenEvent(run.text)
        with run.stages.stage("cite"):
            citations = [citation for _, own, _ in quoted for citation in own]
            unsupported = [said for _, _, doubts in quoted for said in doubts]
            unsupported += [citation.quote for citation in citations if not citation.found]
    for citation in citations:
        yield CitationEvent(citation)
    async for event in finish(run, citations, unsupported):
        yield event


def _quotable(run: Run) -> list[Passage]:
    """Return the passages that are quoted where no model writes: few, the best of each page first."""
    if run.chosen and not per_page(run):
        return [passage_of(one) for one in run.chosen]
    best = sorted(run.chosen, key=lambda one: -one.score)[:5] if run.chosen else []
    return [passage_of(one) for one in best] or [one.passages[0] for one in run.references[:5]]


def _quoted(run: Run, verbatim: bool) -> list[tuple[Passage, list[Citation], list[str]]]:
    """Return the passages that are quoted, each with its citations and what of it is doubted.

    :param verbatim: of what is no page, give the words of the page that it was made of.
    """
    known = {one.tree.document: one for one in run.references}
    found: list[tuple[Passage, list[Citation], list[str]]] = []
    for passage in _quotable(run):
        span, number = passage.spans[0], len(found) + 1
        reference = known[span.document]
        run.cited.add(reference.number)
        if reference.origin is None:
            found.append((passage, [cite(number, passage.text, reference.tree, span)], []))
            continue
        own = reference.origin.cite(number, span)
        if verbatim and own:
            passage = replace(passage, text=own[0].quote, spans=(own[0].span,))
        found.append((passage, own, reference.origin.doubts(span)))
    return found


async def finish(run: Run, citations: Sequence[Citation], unsupported: Sequence[str]) -> AsyncIterator[Event]:
    """End a run: what it cost, and the whole answer."""
    usage = run.stages.usage
    yield UsageEvent(usage)
    answer = Answer(
        run.text, list(citations), list(unsupported), run.names, usage, run.failures, run.stages.spent, run.warnings
    )
    if run.asked.chat is not None:
        run.asked.chat.take(run.asked.question, answer, run.references, run.cited)
    yield DoneEvent(answer)


async def _written(run: Run) -> AsyncIterator[Event]:
    """Stream the model's answer into ``run.text``; where it fails before a word, that is noted and nothing is left."""
    writer, asked = cast(StreamingGenerator, run.writer), run.asked
    turns = asked.chat.turns if asked.chat is not None else ()
    if run.afford() < LEAST_ROOM:
        run.failures["generator"] = "too few tokens are left for an answer by the model; the pages are quoted"
        run.names["generator"] = "quotes"
        return
    with run.stages.stage("answer", sources=[one.tree.url for one in run.references]) as detail:
        sources = await asyncio.to_thread(_sources, run)
        async with aclosing(cast(Any, _streamed(run, writer.stream(asked.question, sources, turns)))) as events:
            async for event in events:
                yield event
        detail["text"] = run.text


async def answer_unread(run: Run, lead: str = "") -> AsyncIterator[Event]:
    """Answer from what the model knows, without any page.

    :param lead: what is said before.
    :raises OutsideFailed: the model fails, and nothing else can answer.
    """
    writer, asked = cast(StreamingGenerator, run.writer), run.asked
    turns = asked.chat.turns if asked.chat is not None else ()
    if lead:
        yield TokenEvent(lead)
    with run.stages.stage("answer", sources=[]):
        async with aclosing(cast(Any, _streamed(run, writer.unsourced(asked.question, turns)))) as events:
            async for event in events:
                yield event
    if not run.text.strip():
        raise run.failures.first or OutsideFailed("the model wrote no answer", subject="llm")
    unsupported = [claim.text for claim in claims(run.text)] if lead else []
    run.text = lead + run.text
    async for event in finish(run, (), unsupported):
        yield event


async def _streamed(run: Run, stream: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Pass a model's answer on until it ends, fails, is late, or goes round in a circle."""
    size, limit = 0, run.seconds(_ANSWER_SHARE)
    end = None if limit is None else asyncio.get_running_loop().time() + limit
    try:
        async with aclosing(cast(Any, stream)) as events:
            while (event := await _next(events, end)) is not None:
                if isinstance(event, TokenEvent):
                    run.text += event.text
                    yield event
                    if len(run.text) - size > 200:
                        size = len(run.text)
                        if _REPEATED.search(run.text[-_TAIL:]):
                            raise OutsideFailed("the model repeats itself; it was stopped", subject="llm")
    except (OutsideFailed, BadBudget) as error:
        run.failures.note(error, "generator")
    if run.text.strip():
        return
    run.text = ""
    if "generator" not in run.failures:
        run.failures.note(OutsideFailed("the model wrote no answer", subject="llm"), "generator")
    run.names["generator"] = "quotes"


async def _next(events: AsyncIterator[Event], end: float | None) -> Event | None:
    """Return the next event; None at the end.

    :raises OutsideFailed: it is not there in time.
    """
    try:
        async with asyncio.timeout_at(end) as watch:
            return await anext(events, None)
    except TimeoutError:
        if not watch.expired():
            raise
        raise OutsideFailed("the model did not finish in the time that was left", subject="llm") from None


def _sources(run: Run) -> list[NumberedSource]:
    """Return the numbered sources, cut so that they and an answer fit the limits and the window."""
    llm, counter = run.engines.llm, run.engines.counter
    window = llm.context_window if llm is not None else 0
    pictures = PICTURE_TOKENS * sum(map(len, run.pictures.values()))
    room = min(
        tokens_for_evidence(run.afford() - pictures), int((window - OVERHEAD - pictures) * 0.85) if window else 10**9
    )
    found: list[NumberedSource] = []
    for one in run.references:
        size = int(counter.count([one.text])[0])
        text = one.text if size <= room else cut_to(one.text, max(0, room), counter)
        room -= min(size, room)
        if text.strip():
            tree, seen = one.tree, tuple(run.pictures.get(one.tree.document, ()))
            found.append(NumberedSource(text, tree.title, tree.url, tree.published, one.number, seen))
        elif "limit" not in run.failures:
            run.failures["limit"] = "not all sources could be shown to the model inside the limits"
    run.references = [one for one in run.references if any(one.number == source.number for source in found)]
    return found
