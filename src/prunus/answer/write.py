"""Write an answer from given pages or from the web: text, citations and cost (Internet-SAG §2.1, steps 6 and 7).

Where the model fails, takes too long, or would go over a limit, the pages are quoted without a model, and the answer's
``failures`` say so. There is no answer only where no page bears on the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, cast

from ..core.confidence import any_of, chosen_segments
from ..core.errors import BadBudget, Failures, NothingFound, OutsideFailed
from ..core.events import CitationEvent, DoneEvent, Event, ExtractedEvent, PageEvent, PlanEvent, TokenEvent, UsageEvent
from ..core.ports import NumberedSource, Segment, StreamingGenerator, TokenCounter
from ..core.text.words import guess_language
from ..core.types import Answer, CheckedClaim, Citation, Message, Passage
from ..evidence.documents import Documents
from ..evidence.passages import passages_of
from ..models.loops import repeats_itself
from ..models.meter import PICTURE_TOKENS
from ..pages.metadata import title_of
from .check import CheckedAnswer, check_support, split_claims
from .cite import cite, quote_lines
from .claims import check_statements
from .find_pages import FoundPages, Search, find_pages, plan_search
from .gather import gather_evidence, per_page
from .pictures import Pages
from .run import LEAST_ROOM, OVERHEAD, AnswerEngines, Asked, Run, start, tokens_for_evidence

_ANSWER_SHARE: Final = 0.9
"""Share of the remaining seconds that the model may write; the rest is for the check of the citations."""

UNREAD: Final = "No page that was read bears on this question. From memory, without any source:\n\n"
"""The lead of an answer that rests on no page."""

INSTEAD: Final = "No page bears out the model's answer. The pages say:"
"""The line above the quotes in place of an answer of which no page bears out anything."""

_ENDS: Final = (".", "!", "?", ":", "]", "\n", "\u3002", "\uff01", "\uff1f", "\u0964")
"""Where an answer may be checked while it is written: after a sentence, its mark, or a line."""


async def answer_from(
    documents: Documents, asked: Asked, engines: AnswerEngines, reading: Pages | None = None
) -> AsyncIterator[Event]:
    """Answer from the caller's documents, as a stream of events that ends in ``done``.

    :param reading: reads the pictures of the evidence; None: the model gets no pictures.
    :raises NothingFound: nothing in the documents bears on the question.
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
    """Answer from the first group of pages with evidence for the question; indexes are searched with the first group.

    :raises NothingFound: no group has evidence, and the options do not allow an answer without a page.
    """
    indexes = run.asked.indexes
    for index, documents in enumerate(groups):
        async for event in gather_evidence(run, documents, None if index else indexes):
            yield event
        if run.references:
            break
    else:
        if not (run.asked.options.web.unread and run.writer is not None):
            raise NothingFound(_nothing(run), subject=run.asked.question[:200])
        async for event in answer_unread(run, UNREAD):
            yield event
        return
    async for event in _answer(run):
        yield event


def _nothing(run: Run) -> str:
    """Return the line that says that nothing was found, and how to see what is not likely to answer."""
    indexes = run.asked.indexes
    if run.likeliest > 0:
        where = f"of the pages and of {indexes.location}" if indexes is not None else "of the pages"
        least = run.engines.min_confidence
        return f"no passage {where} is likely to answer: {run.likeliest:.2f} at best, min_confidence is {least:g}"
    where = f"{indexes.location}: nothing in the index, or in a" if indexes is not None else "no"
    return f"{where} page that was given bears on the question"


async def answer_again(run: Run) -> AsyncIterator[Event]:
    """Answer from the sources of earlier turns alone."""
    yield ExtractedEvent([passage for reference in run.references for passage in reference.passages])
    async for event in _answer(run):
        yield event


# --- the answer ----------------------------------------------------------------------------------


async def _answer(run: Run) -> AsyncIterator[Event]:
    """Write the answer from ``run.references``, check its citations, and end the run."""
    citations: list[Citation] = []
    unsupported: list[str] = []
    claims: list[CheckedClaim] = []
    written = False
    held: list[Event] | None = []  # an answer is shown from where a page bears out any of it
    read = 0
    if run.writer is not None:
        async with aclosing(cast(Any, _write(run))) as events:
            async for event in events:
                if held is None or not isinstance(event, TokenEvent):
                    yield event
                    continue
                held.append(event)
                if event.text.rstrip(" ").endswith(_ENDS):
                    part, read = run.text[read:], len(run.text)
                    if (await _checked(run, part)).borne_out:
                        for earlier in held:
                            yield earlier
                        held = None
        written = bool(run.text.strip())
    if written:
        with run.stages.stage("cite") as detail:
            checked = await _checked(run, run.text)
            claims = await asyncio.to_thread(check_statements, checked.statements, run.references)
            sure = {claim.text for claim in claims if claim.verdict == "supported"}
            unsupported = [sentence for sentence in checked.unsupported if sentence not in sure]
            citations, run.cited = checked.citations, checked.cited
            borne_out = checked.borne_out or bool(sure)
            detail |= {"citations": len(citations), "unsupported": len(unsupported)}
        if not citations:
            run.failures["citations"] = "the model's answer cites no page that was read"
        if unsupported and not borne_out and not _reads_alike(run):
            run.failures["answer"] = "the model's answer cannot be checked: the pages are in another language"
        elif unsupported and not borne_out:
            run.failures["answer"] = "no page bears out the model's answer; the pages are quoted"
            await _choose_again(run)
            quoted = await asyncio.to_thread(_quoted, run, True, True)
            quoted = [part for part in quoted if part[1]]
            numbers = [cited[0].number for _, cited, _ in quoted]
            run.text = "\n\n".join([INSTEAD, *quote_lines([passage for passage, _, _ in quoted], numbers)])
            citations = [citation for _, cited, _ in quoted for citation in cited]
            claims = []
            held = [TokenEvent(run.text)]
        for event in held or ():
            yield event
    else:
        with run.stages.stage("answer"):
            generator = run.engines.spare.generator if run.engines.spare and run.writer else run.engines.generator
            await _choose_again(run)
            quoted = await asyncio.to_thread(_quoted, run, generator.verbatim)
            run.text = await generator.generate(run.asked.question, [passage for passage, _, _ in quoted])
        yield TokenEvent(run.text)
        with run.stages.stage("cite"):
            citations = [citation for _, cited, _ in quoted for citation in cited]
            unsupported = [sentence for _, _, sentences in quoted for sentence in sentences]
            unsupported += [citation.quote for citation in citations if not citation.found]
    for citation in citations:
        yield CitationEvent(citation)
    async for event in finish(run, citations, unsupported, claims):
        yield event


async def _checked(run: Run, text: str) -> CheckedAnswer:
    return await asyncio.to_thread(check_support, text, run.references, run.engines.embedder)


def _reads_alike(run: Run) -> bool:
    """Tell whether an answer is in the language of a page, so that one could bear it out word for word."""
    spoken = guess_language(run.text)
    return any(guess_language(reference.tree.canonical[:20_000]) == spoken for reference in run.references)


async def _choose_again(run: Run) -> None:
    """Choose without the model what is quoted in place of its answer: what it named may be wrong, too.

    Where no model was to write, what it named is quoted.
    """
    if not per_page(run):
        return
    again: list[Segment] = []
    if run.engines.spare is not None and run.writer is not None:
        shown = {reference.tree.document for reference in run.references}
        tagged = [segment for segment in run.tagged if segment.span.document in shown]
        choices = await run.engines.spare.extractor.extract(run.asked.full_question, tagged) if tagged else None
        again = chosen_segments(choices, tagged, 0.0)
    run.chosen = again or sorted(run.chosen, key=lambda segment: -segment.score)[:5]


def _quotable(run: Run) -> list[Passage]:
    """Return the few passages to quote where no model writes, the best first; summaries are quoted as they are."""
    best = run.chosen
    trees = {page.tree.document: page.tree for page in run.references if page.origin is None}
    return passages_of(best, trees) or [reference.passages[0] for reference in run.references[:5]]


def _quoted(run: Run, verbatim: bool, by_page: bool = False) -> list[tuple[Passage, list[Citation], list[str]]]:
    """Return the passages to quote, each with its citations and its unsupported sentences.

    :param verbatim: replace a summary's words by the words of the nearest page below it.
    :param by_page: cite the numbers of the pages, as an answer of the model does; otherwise quotes are counted.
    """
    known = {reference.tree.document: reference for reference in run.references}
    quoted: list[tuple[Passage, list[Citation], list[str]]] = []
    for passage in _quotable(run):
        span = passage.spans[0]
        reference = known[span.document]
        number = reference.number if by_page else len(quoted) + 1
        run.cited.add(reference.number)
        if reference.origin is None:
            citation = cite(number, passage.text, reference.tree, span, passage.marks)
            sure = replace(citation, confidence=passage.confidence, how=passage.how)
            quoted.append((passage, [sure], []))
            continue
        citations = reference.origin.cite(number, span)
        if verbatim and citations:
            passage = replace(passage, text=citations[0].quote, spans=(citations[0].span,))
        quoted.append((passage, citations, reference.origin.unsupported(span)))
    return quoted


async def finish(
    run: Run, citations: Sequence[Citation], unsupported: Sequence[str], claims: Sequence[CheckedClaim] = ()
) -> AsyncIterator[Event]:
    """End a run: yield its usage and the whole answer, and add the turn to the conversation."""
    usage = run.stages.usage
    yield UsageEvent(usage)
    cited = list(citations)
    spent, sure = run.stages.spent, any_of([citation.confidence for citation in cited])
    answer = Answer(
        run.text, cited, list(unsupported), run.names, usage, run.failures, spent, run.warnings, sure, list(claims)
    )
    if run.asked.chat is not None:
        run.asked.chat.take(run.asked.question, answer, run.references, run.cited)
    yield DoneEvent(answer)


async def _write(run: Run) -> AsyncIterator[Event]:
    """Stream the model's answer into ``run.text``; the text is '' where the model cannot write, and a failure noted."""
    writer, asked = cast(StreamingGenerator, run.writer), run.asked
    turns = asked.chat.turns if asked.chat is not None else ()
    if run.afford() < LEAST_ROOM:
        run.failures["generator"] = "too few tokens are left for an answer by the model; the pages are quoted"
        run.names["generator"] = "quotes"
        return
    with run.stages.stage("answer", sources=[reference.tree.url for reference in run.references]) as detail:
        sources = await asyncio.to_thread(_sources, run)
        async with aclosing(cast(Any, _watched(run, writer.stream(asked.question, sources, turns)))) as events:
            async for event in events:
                yield event
        detail["text"] = run.text


async def answer_unread(run: Run, lead: str = "") -> AsyncIterator[Event]:
    """Answer from the model's memory, without any page.

    :param lead: text before the answer; with a lead, every sentence counts as unsupported.
    :raises OutsideFailed: the model fails or writes nothing.
    """
    writer, asked = cast(StreamingGenerator, run.writer), run.asked
    turns = asked.chat.turns if asked.chat is not None else ()
    if lead:
        yield TokenEvent(lead)
    with run.stages.stage("answer", sources=[]):
        async with aclosing(cast(Any, _watched(run, writer.unsourced(asked.question, turns)))) as events:
            async for event in events:
                yield event
    if not run.text.strip():
        raise run.failures.first or OutsideFailed("the model wrote no answer", subject="llm")
    unsupported = [claim.text for claim in split_claims(run.text)] if lead else []
    run.text = lead + run.text
    async for event in finish(run, (), unsupported):
        yield event


async def _watched(run: Run, stream: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Pass a model's answer on until it ends, fails, runs out of time, or repeats itself."""
    size, limit = 0, run.seconds(_ANSWER_SHARE)
    end = None if limit is None else asyncio.get_running_loop().time() + limit
    try:
        async with aclosing(cast(Any, stream)) as events:
            while (event := await _next(events, end)) is not None:
                if isinstance(event, TokenEvent):
                    run.text += event.text
                    yield event
                    if len(run.text) - size > 200:  # the search costs time: not at every token
                        size = len(run.text)
                        if repeats_itself(run.text):
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
    """Return the next event; None at the end of the stream.

    :param end: deadline on the event loop's clock; None: no limit.
    :raises OutsideFailed: no event came before the deadline.
    """
    try:
        async with asyncio.timeout_at(end) as watch:
            return await anext(events, None)
    except TimeoutError:
        if not watch.expired():
            raise
        raise OutsideFailed("the model did not finish in the time that was left", subject="llm") from None


def _sources(run: Run) -> list[NumberedSource]:
    """Return the numbered sources, cut so that sources and answer fit the limits and the model's window.

    A reference that does not fit leaves ``run.references``.
    """
    llm, counter = run.engines.llm, run.engines.counter
    window = llm.context_window if llm is not None else 0
    pictures = PICTURE_TOKENS * sum(map(len, run.pictures.values()))
    room = min(
        tokens_for_evidence(run.afford() - pictures), int((window - OVERHEAD - pictures) * 0.85) if window else 10**9
    )
    sources: list[NumberedSource] = []
    for reference in run.references:
        size = int(counter.count([reference.text])[0])
        text = reference.text if size <= room else _cut_to(reference.text, max(0, room), counter)
        room -= min(size, room)
        if text.strip():
            tree, seen = reference.tree, tuple(run.pictures.get(reference.tree.document, ()))
            sources.append(NumberedSource(text, title_of(tree), tree.url, tree.published, reference.number, seen))
        elif "limit" not in run.failures:
            run.failures["limit"] = "not all sources could be shown to the model inside the limits"
    numbers = {source.number for source in sources}
    run.references = [reference for reference in run.references if reference.number in numbers]
    return sources


def _cut_to(text: str, budget: int, counter: TokenCounter) -> str:
    """Return the longest beginning of a text that has at most ``budget`` tokens, by binary search."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if int(counter.count([text[:middle]])[0]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


async def answer_from_web(
    asked: Asked, engines: AnswerEngines, documents: Documents | None = None
) -> AsyncIterator[Event]:
    """Answer a question from the web, as a stream of events that ends in ``done``.

    :param documents: the caller's documents; used in every case, and placed before the pages that are found.
    :raises NothingFound: no page bears on the question; or it needs no search, and there is no model to answer it.
    :raises OutsideFailed: no provider answered, or no page could be read.
    """
    assert engines.web is not None  # a caller that searches the web asks for its engines
    result, web = FoundPages(), engines.web
    run = start(asked, engines, result.failures)
    run.names.update(web.names)
    run.pages = web.pages
    turns = asked.chat.turns if asked.chat is not None else []
    search = Search([*turns, Message("user", asked.question)], web, asked.options.web, run.stages)
    result.plan, failed = await plan_search(search)
    if failed:
        result.failures["planner"] = failed
        run.names["planner"] = "rules"
    yield PlanEvent(result.plan)
    if documents is not None:
        for tree in documents.trees:
            yield PageEvent(tree.url, tree.title)
        for name, reason in documents.failures.items():
            result.failures[name] = reason
            yield PageEvent(name, failure=reason)
    kept = list(documents.trees) if documents is not None else []
    if not result.plan.needs_search and not kept and asked.indexes is None:
        async for event in _without_search(run, result):
            yield event
        return
    if result.plan.needs_search:
        async for event in _find(search, result, bool(kept) or asked.indexes is not None):
            yield event
    if turns:  # a follow-up question refers to earlier turns; the plan's queries are self-contained
        run.asked = replace(asked, rewritten=result.queries)
    best = asked.options.web.pages  # the next best pages are a second try, where the best hold no evidence
    groups = [[*kept, *result.trees[:best]], result.trees[best : 2 * best]]
    groups = [group for group in groups if group] or [[]]
    async for event in answer_in_groups(run, [Documents(group, result.failures) for group in groups]):
        yield event


async def _find(search: Search, result: FoundPages, optional: bool) -> AsyncIterator[Event]:
    """Find pages.

    :param optional: there are other documents to answer from, so a failed search is only noted.
    """
    try:
        async for event in find_pages(search, result):
            yield event
    except (OutsideFailed, NothingFound, BadBudget) as error:
        if not optional:
            raise
        result.failures.note(error, "search")


async def _without_search(run: Run, result: FoundPages) -> AsyncIterator[Event]:
    """Answer a question that needs no search, from the sources of earlier turns or from the model's memory.

    :raises NothingFound: there is no model.
    """
    reason = result.plan.reason if result.plan else ""
    if run.asked.chat is not None and run.asked.chat.references and run.writer is not None:
        run.references = list(run.asked.chat.references)  # the pages cited before may hold the answer
        async for event in answer_again(run):
            yield event
        return
    if run.writer is None:
        raise NothingFound(
            f"this needs no search ({reason}), and without a model nothing else can answer it; name one with --llm, or "
            "search all the same with --always",
            subject=run.asked.question[:200],
        )
    async for event in answer_unread(run):
        yield event
