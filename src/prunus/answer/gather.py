"""Choose the evidence for an answer: prune the pages to a token budget, then extract single segments."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from ..core.confidence import chosen_segments, likeliest
from ..core.deadline import limited
from ..core.errors import BadBudget, BadInput, OutsideFailed
from ..core.events import Event, ExtractedEvent, KeptEvent, PageEvent
from ..core.ports import Chosen, Segment
from ..core.text.broad import is_broad
from ..core.types import BlockRecord, Passage
from ..evidence.context import Context
from ..evidence.documents import Documents
from ..evidence.prune import prune
from ..evidence.segments import segments
from ..evidence.whole import of_main_content
from ..models.meter import PICTURE_TOKENS
from ..pages.tree import Tree
from .check import Reference
from .pictures import addresses, load
from .run import LEAST_ROOM, OVERHEAD, Finder, Run

BUDGET: Final = 4096
"""Default budget of evidence in tokens, where neither the caller nor the model's window gives one."""

MOST: Final = 32_000
"""Most tokens of evidence where the model's window gives the budget: more is slower and dearer, hardly better."""

_OVERVIEW: Final = 5
"""Sentences that are quoted for a question about a whole document, where no model writes."""

_REPLY: Final = 2_048
"""Tokens reserved for the answer."""

_PER_PAGE: Final = 1_000
"""Tokens of one extraction call beside the page's tokens: instructions and reply."""

_AT_ONCE: Final = 4
"""Extraction calls that run at the same time."""

_EXTRACT_SHARE: Final = 0.5
"""Share of the remaining seconds that extraction may take."""

_LIKELY: Final = 0.5
"""Chance of answering from which on a segment is evidence although the model, which named others, did not name it."""

_LEAST_SECONDS: Final = 2.0
"""Seconds that pruning has at least, also where a slow search has used up the time: without it there is no answer."""


async def gather_evidence(run: Run, documents: Documents, indexes: Finder | None = None) -> AsyncIterator[Event]:
    """Choose the passages that the generator is shown, and put them into ``run.references``; yields events.

    :param indexes: searched too; their documents compete with the pages.
    """
    asked, engines = run.asked, run.engines
    budget = await _budget(run)
    if indexes is not None:
        before = len(documents)
        documents = await _with_indexes(run, documents, indexes, budget)
        for tree in documents.trees[before:]:
            if documents.origin(tree.document) is None:
                yield PageEvent(tree.url, tree.title)
    if not documents.trees:
        return
    documents, budget = _cut_to_limits(run, documents, budget)
    if documents.own_scorer is not None:
        engines = replace(engines, scorer=documents.own_scorer)
    with run.stages.stage("prune", budget=budget) as detail:
        # an answer may lie in a page that bears less on the question than another
        options = replace(asked.options, fill=True)
        arguments = (documents, asked.full_question, budget, "html", options, engines)
        trees = {tree.document: tree for tree in documents.trees}
        whole = {id: tree for id, tree in trees.items() if id not in documents.overview}  # others are parts of pages
        # one thread for all of it: beside others at work, each change of thread waits for them
        context, kept, tagged = await asyncio.to_thread(lambda: _tagged(arguments, run.seconds(1.0), trees, whole))
        detail |= {"tokens": context.tokens, "kept": len(kept), "blocks": len(context.blocks)}
    run.warnings += [warning for warning in context.warnings if warning not in run.warnings]
    run.names |= context.engines
    yield KeptEvent(context.tokens, len(kept), len(context.blocks), context.warnings)
    run.tagged = tagged
    with run.stages.stage("extract", segments=len(tagged)) as detail:
        urls = {tree.document: tree.url for tree in documents.trees}
        if run.stages.listened:
            detail["tagged"] = [{"tag": one.tag, "page": urls[one.span.document], "text": one.text} for one in tagged]
        overview = [segment for segment in tagged if segment.span.document in documents.overview]
        if overview and run.writer is None:  # an index has summaries, or knows the best leaves
            run.chosen = sorted(overview, key=lambda segment: -segment.score)[:_OVERVIEW]
            tagged = [segment for segment in tagged if segment.span.document not in documents.overview]
        run.chosen += await _extract(run, tagged, urls)
        detail["chosen"] = [segment.tag for segment in run.chosen]
    if not run.chosen:
        return
    yield ExtractedEvent([segment.passage for segment in run.chosen])
    order = {document: index for index, document in enumerate(trees)}
    by_page = sorted(run.chosen, key=lambda segment: (order[segment.span.document], segment.span.start))
    pages = [(trees[document], list(group)) for document, group in groupby(by_page, key=_document_of)]
    shown = [(tree, tuple(segment.passage for segment in group), _as_markdown(group)) for tree, group in pages]
    run.references = _number_pages(run, documents, shown)
    if asked.options.web.pictures and run.writer is not None:
        await _load_pictures(run, kept)


def _tagged(
    arguments: Any, seconds: float | None, trees: Mapping[str, Tree], whole: Mapping[str, Tree]
) -> tuple[Context, Sequence[BlockRecord], list[Segment]]:
    """Prune, and return the kept blocks and their segments too.

    :param arguments: those of :func:`~prunus.evidence.prune.prune`; the question is the second.
    :param trees: the documents by id.
    :param whole: those of them that are whole pages; a broad question is about their main content.
    """
    with limited(None if seconds is None else max(seconds, _LEAST_SECONDS)):
        context = prune(*arguments)
    kept = context.kept  # once: each access makes the records anew
    tagged = segments(kept, trees)
    return context, kept, of_main_content(tagged, whole) if is_broad(arguments[1]) else tagged


def _document_of(segment: Segment) -> str:
    return segment.span.document


async def _with_indexes(run: Run, documents: Documents, indexes: Finder, budget: int) -> Documents:
    """Return the pages and the documents that the indexes find; a failed index is only noted where there are pages."""
    share = budget if run.asked.budget is not None else min(budget, BUDGET)
    with run.stages.stage("retrieve", indexes=indexes.location, budget=share) as detail:
        try:
            with_hits = await asyncio.to_thread(indexes.find, run.asked.full_question, documents, share)
        except OutsideFailed as error:
            if not documents.trees:
                raise
            run.failures.note(error, indexes.location)
            return documents
        detail["found"] = [tree.document for tree in with_hits.trees[len(documents) :]]
    return with_hits


async def _load_pictures(run: Run, kept: Sequence[BlockRecord]) -> None:
    """Load the pictures of the evidence into ``run.pictures``, as many as the options and the limits allow."""
    payable = run.afford() * 0.3 // PICTURE_TOKENS
    most = int(min(run.asked.options.web.pictures, payable))
    if run.pages is None or run.engines.llm is None or not run.engines.llm.sees_pictures:
        run.failures["pictures"] = "no pictures were sent along: the model takes none, or nothing may be read"
        return
    with run.stages.stage("pictures") as detail:
        wanted = [(page.tree.document, url) for page in run.references for url in addresses(page.tree, kept)][:most]
        result = await load([url for _, url in wanted], run.pages, run.failures, run.seconds(0.2)) if wanted else {}
        for document, url in wanted:
            if url in result:
                run.pictures.setdefault(document, []).append(result[url])
        detail["sent"] = list(result)


async def _budget(run: Run) -> int:
    """Return the budget of evidence in tokens: the caller's, else what the model's window allows."""
    asked, llm = run.asked, run.engines.llm
    window = 0
    if llm is not None and run.writer is not None:
        window = llm.context_window
        if not window:
            try:
                async with asyncio.timeout(run.seconds(0.1) or 20):
                    window = await llm.ask_window()
            except (OutsideFailed, BadInput, TimeoutError):
                window = 0  # the server does not report its window; the answer itself will show whether it works
    room = max(256, int((window - _REPLY - OVERHEAD) * 0.9)) if window else 0  # a tenth is left for miscounted tokens
    if asked.budget is not None:
        return asked.budget
    return min(room, MOST) if room else BUDGET


def _cut_to_limits(run: Run, documents: Documents, budget: int) -> tuple[Documents, int]:
    """Return fewer pages and a smaller budget where the limits of the answer require it."""
    afford = run.afford()
    if afford == math.inf or (run.writer is None and not per_page(run)):
        return documents, budget
    if per_page(run) and afford >= 3 * LEAST_ROOM:
        pages = max(1, min(len(documents), int(afford * 0.35) // _PER_PAGE))
        if pages < len(documents):
            run.failures["limit"] = f"only {pages} of {len(documents)} pages are used, to stay inside the limits"
            documents = documents.first(pages)
        budget = min(budget, max(256, int(afford * 0.35) - (pages - 1) * _PER_PAGE // 2))
    else:
        budget = min(budget, max(256, int(afford * 0.6)))
    return documents, budget


def per_page(run: Run) -> bool:
    """Tell whether the extractor is called for each page alone."""
    return run.engines.extractor.per_page


async def _extract(run: Run, tagged: Sequence[Segment], urls: dict[str, str]) -> list[Segment]:
    """Return the segments that bear on the question.

    The spare extractor reads pages for which the model fails. Where a model names segments for the model that writes,
    what the spare one takes for likely to answer is evidence too: a small model names the wrong ones.
    """
    engines, by_tag = run.engines, {segment.tag: segment for segment in tagged}
    if not per_page(run):
        found = await engines.extractor.extract(run.asked.full_question, tagged)
        run.likeliest = max(run.likeliest, likeliest(found, tagged) or 0.0)
        return chosen_segments(found, tagged, engines.min_confidence)
    pages = {document: list(group) for document, group in groupby(tagged, key=_document_of)}
    if run.afford() < 3 * LEAST_ROOM:  # room for one extraction call, and for the answer
        failed: dict[str, str] = dict.fromkeys(pages, "too few tokens are left to ask the model about pages")
        result: dict[str, list[Chosen]] = {}
    else:
        result, failed = await _extract_pages(run, pages)
    if failed and engines.spare is not None:
        remaining = [segment for document in failed for segment in pages[document]]
        for choice in await engines.spare.extractor.extract(run.asked.full_question, remaining) or []:
            result.setdefault(by_tag[choice.tag].span.document, []).append(choice)
        reasons = list(dict.fromkeys(failed.values()))
        several = f"{len(failed)} of {len(pages)} pages" if len(failed) > 1 else urls[next(iter(failed))] or "a page"
        run.failures["extractor"] = f"{several}: extracted without the model: {'; '.join(reasons)[:300]}"
        if len(failed) == len(pages):
            run.names["extractor"] = "sentences"
    elif failed and not result:
        raise OutsideFailed(f"no page could be extracted: {next(iter(failed.values()))}", subject="extractor")
    elif engines.spare is not None and run.writer is not None and any(result.values()):
        named = {choice.tag for choices in result.values() for choice in choices}
        for choice in await engines.spare.extractor.extract(run.asked.full_question, tagged) or []:
            if choice.tag not in named and (choice.confidence or 0.0) >= _LIKELY:
                result.setdefault(by_tag[choice.tag].span.document, []).append(choice)
    ordered = [
        choice for document in pages for choice in sorted(result.get(document, ()), key=lambda choice: choice.tag)
    ]
    return chosen_segments(ordered, tagged, engines.min_confidence)


async def _extract_pages(run: Run, pages: dict[str, list[Segment]]) -> tuple[dict[str, list[Chosen]], dict[str, str]]:
    """Extract from each page alone, several at once; return the choices by page, and why pages failed."""
    gate = asyncio.Semaphore(_AT_ONCE)
    result: dict[str, list[Chosen]] = {}
    failed: dict[str, str] = {}

    async def extract(document: str, page: list[Segment]) -> None:
        async with gate:
            try:
                result[document] = await run.engines.extractor.extract(run.asked.full_question, page) or []
            except (OutsideFailed, BadBudget) as error:
                failed[document] = str(error)

    tasks = {document: asyncio.create_task(extract(document, page)) for document, page in pages.items()}
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=run.seconds(_EXTRACT_SHARE))
        for document, task in tasks.items():
            if not task.done():
                failed[document] = "the model took too long"
            elif task.exception() is not None:
                task.result()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return result, failed


def _as_markdown(tagged: Sequence[Segment]) -> str:
    """Return segments of a page as Markdown: one a line, each run of segments under its headings."""
    lines: list[str] = []
    above = ""
    for segment in tagged:
        if segment.above != above:
            above = segment.above
            heading = " › ".join(" ".join(line.split()) for line in above.split("\n") if line.strip())
            if heading:
                lines.append(f"\n# {heading}" if lines else f"# {heading}")
        label = f" ({' '.join(segment.label.split())})" if segment.label else ""
        lines.append(f"{segment.shown or segment.text.strip()}{label}")
    return "\n".join(lines)


def _number_pages(
    run: Run, documents: Documents, pages: Sequence[tuple[Any, tuple[Passage, ...], str]]
) -> list[Reference]:
    """Number the pages for citation; a page of an earlier turn keeps its number."""
    chat = run.asked.chat
    earlier = list(chat.references) if chat is not None and run.writer is not None else []
    unchanged = {reference.key: reference for reference in earlier}
    number = max((reference.number for reference in earlier), default=0)
    current: list[Reference] = []
    for tree, passages, text in pages:
        origin = documents.origin(tree.document)
        known = unchanged.pop((tree.document, tree.snapshot), None)
        if known is None:
            number += 1
            current.append(Reference(number, tree, passages, text, origin))
        else:
            spans = {passage.spans[0] for passage in passages}
            added = tuple(passage for passage in known.passages if passage.spans[0] not in spans)
            current.append(Reference(known.number, known.tree, (*passages, *added), text, known.origin))
    if not current:
        return []
    return [*(reference for reference in earlier if reference.key in unchanged), *current]
