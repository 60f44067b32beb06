"""What of the pages is shown to whoever answers: pruned to a budget, then chosen sentence by sentence."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, cast

from ..core.errors import BadBudget, BadInput, OutsideFailed
from ..core.events import Event, ExtractedEvent, KeptEvent, PageEvent
from ..core.ports import Tagged
from ..core.types import BlockRecord, Passage
from ..evidence.documents import Documents
from ..evidence.prune import prune
from ..evidence.segments import segments
from ..models.meter import PICTURE_TOKENS
from .baselines import gather
from .check import Reference
from .pictures import addresses, load
from .run import LEAST_ROOM, OVERHEAD, Finder, Run, tokens_for_evidence

BUDGET: Final = 4096
"""Tokens of evidence where nothing else says how many."""

MOST: Final = 32_000
"""Tokens of evidence at most where the model's window says how many: more is slower and dearer, hardly better."""

_OVERVIEW: Final = 5
"""Sentences that are quoted for a question about the whole, where no model writes."""

_REPLY: Final = 2_048
"""Tokens of an answer."""

_PER_PAGE: Final = 1_000
"""Tokens that asking about one page takes beside the page's own: instructions and reply."""

_AT_ONCE: Final = 4
_EXTRACT_SHARE: Final = 0.5
"""Of the seconds that are left."""


async def gather_evidence(run: Run, documents: Documents, indexes: Finder | None = None) -> AsyncIterator[Event]:
    """Choose what of the pages is shown to the generator; it goes into ``run.references``.

    :param indexes: are asked too; what they find stands beside the pages.
    """
    asked, engines = run.asked, run.engines
    budget = await _budget(run)
    if indexes is not None:
        given = len(documents)
        documents = await _with_indexes(run, documents, indexes, budget)
        for tree in documents.trees[given:]:
            if documents.origin(tree.document) is None:
                yield PageEvent(tree.url, tree.title)
    if not documents.trees:
        return
    if asked.options.mode != "default":
        with run.stages.stage("gather", mode=asked.options.mode, budget=budget) as detail:
            parts = (engines.counter, cast(Any, engines.embedder))
            whole = [tree for tree in documents.trees if documents.origin(tree.document) is None]
            found = await asyncio.to_thread(gather, asked.options.mode, whole, asked.sought, budget, parts)
            run.references = _numbered(run, documents, [(one.tree, one.passages, one.text) for one in found])
            detail["pages"] = [one.tree.url for one in found]
        yield ExtractedEvent([passage for one in found for passage in one.passages])
        return
    documents, budget = _affordable(run, documents, budget)
    if documents.own_scorer is not None:
        engines = replace(engines, scorer=documents.own_scorer)
    with run.stages.stage("prune", budget=budget) as detail:
        parted = (documents, asked.sought, budget, "html", asked.options, engines)
        context = await asyncio.to_thread(lambda: prune(*cast(Any, parted)))
        detail |= {"tokens": context.tokens, "kept": len(context.kept), "blocks": len(context.blocks)}
    run.warnings += [one for one in context.warnings if one not in run.warnings]
    run.names |= context.engines
    yield KeptEvent(context.tokens, len(context.kept), len(context.blocks), context.warnings)
    trees = {tree.document: tree for tree in documents.trees}
    tagged = segments(context.kept, trees)
    with run.stages.stage("extract", segments=len(tagged)) as detail:
        run.chosen = await _extracted(run, tagged, {tree.document: tree.url for tree in documents.trees})
        if not run.chosen and run.writer is None:  # "Summarize it" shares no word with what it asks for
            told = [one for one in tagged if one.span.document in documents.overview]
            run.chosen = sorted(told, key=lambda one: -one.score)[:_OVERVIEW]
        detail["chosen"] = [one.tag for one in run.chosen]
    if not run.chosen:
        return
    yield ExtractedEvent([passage_of(one) for one in run.chosen])
    order = {document: place for place, document in enumerate(trees)}
    by_page = sorted(run.chosen, key=lambda one: (order[one.span.document], one.span.start))
    pages = [
        (trees[document], list(several)) for document, several in groupby(by_page, key=lambda one: one.span.document)
    ]
    shown = [(tree, tuple(map(passage_of, own)), _shown(own)) for tree, own in pages]
    run.references = _numbered(run, documents, shown)
    if asked.options.web.pictures and run.writer is not None:
        await _pictures(run, context.kept)


async def _with_indexes(run: Run, documents: Documents, indexes: Finder, budget: int) -> Documents:
    """Return the pages with what indexes find beside them; where there are pages, an index may fail."""
    share = budget if run.asked.budget is not None else min(budget, BUDGET)
    with run.stages.stage("retrieve", indexes=indexes.place, budget=share) as detail:
        try:
            found = await asyncio.to_thread(indexes.find, run.asked.sought, documents, share)
        except OutsideFailed as error:
            if not documents.trees:
                raise
            run.failures.note(error, indexes.place)
            return documents
        detail["found"] = [tree.document for tree in found.trees[len(documents) :]]
    return found


async def _pictures(run: Run, kept: Sequence[BlockRecord]) -> None:
    """Read pictures of the evidence, as many as were asked for and can be paid."""
    payable = run.afford() * 0.3 // PICTURE_TOKENS
    most = int(min(run.asked.options.web.pictures, payable))
    if run.pages is None or run.engines.llm is None or not run.engines.llm.sees_pictures:
        run.failures["pictures"] = "no pictures were sent along: the model takes none, or nothing may be read"
        return
    with run.stages.stage("pictures") as detail:
        of = [(one.tree.document, url) for one in run.references for url in addresses(one.tree, kept)][:most]
        found = await load([url for _, url in of], run.pages, run.failures, run.seconds(0.2)) if of else {}
        for document, url in of:
            if url in found:
                run.pictures.setdefault(document, []).append(found[url])
        detail["sent"] = list(found)


async def _budget(run: Run) -> int:
    """Return the tokens of evidence: as asked for, else as the model's window allows."""
    asked, llm = run.asked, run.engines.llm
    window = 0
    if llm is not None and run.writer is not None:
        window = llm.context_window
        if not window:
            try:
                async with asyncio.timeout(run.seconds(0.1) or 20):
                    window = await llm.ask_window()
            except (OutsideFailed, BadInput, TimeoutError):
                window = 0  # a server that does not say; the answer itself will show whether it works
    room = max(256, int((window - _REPLY - OVERHEAD) * 0.9)) if window else 0
    if asked.options.mode != "default":  # the window alone bounds what they give the model
        return min(asked.budget or 10**9, room or 10**9, tokens_for_evidence(run.afford()))
    if asked.budget is not None:
        return asked.budget
    return min(room, MOST) if room else BUDGET


def _affordable(run: Run, documents: Documents, budget: int) -> tuple[Documents, int]:
    """Return fewer pages and a smaller budget where the limits of the answer want it."""
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
    """Tell whether the extractor is asked about each page alone."""
    return run.engines.extractor.per_page


async def _extracted(run: Run, tagged: Sequence[Tagged], urls: dict[str, str]) -> list[Tagged]:
    """Return the segments that bear on the question; pages about which a model cannot be asked go without it."""
    engines, by_tag = run.engines, {one.tag: one for one in tagged}
    if not per_page(run):
        chosen = await engines.extractor.extract(run.asked.sought, tagged) or []
        return [by_tag[tag] for tag in chosen if tag in by_tag]
    pages = {document: list(own) for document, own in groupby(tagged, key=lambda one: one.span.document)}
    if run.afford() < 3 * LEAST_ROOM:
        failed: dict[str, str] = dict.fromkeys(pages, "too few tokens are left to ask the model about pages")
        found: dict[str, list[int]] = {}
    else:
        found, failed = await _asked_of_pages(run, pages)
    if failed and engines.spare is not None:
        left = [one for document in failed for one in pages[document]]
        instead = await engines.spare.extractor.extract(run.asked.sought, left) or []
        for tag in instead:
            found.setdefault(by_tag[tag].span.document, []).append(tag)
        reasons = list(dict.fromkeys(failed.values()))
        several = f"{len(failed)} of {len(pages)} pages" if len(failed) > 1 else urls[next(iter(failed))] or "a page"
        run.failures["extractor"] = f"{several}: extracted without the model: {'; '.join(reasons)[:300]}"
        if len(failed) == len(pages):
            run.names["extractor"] = "sentences"
    elif failed and not found:
        raise OutsideFailed(f"no page could be extracted: {next(iter(failed.values()))}", subject="extractor")
    return [by_tag[tag] for document in pages for tag in sorted(found.get(document, ())) if tag in by_tag]


async def _asked_of_pages(run: Run, pages: dict[str, list[Tagged]]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Ask about each page alone, several at once; return the tags by page, and why others have none."""
    gate = asyncio.Semaphore(_AT_ONCE)
    found: dict[str, list[int]] = {}
    failed: dict[str, str] = {}

    async def one(document: str, own: list[Tagged]) -> None:
        async with gate:
            try:
                tags = await run.engines.extractor.extract(run.asked.sought, own)
                found[document] = list(tags or ())
            except (OutsideFailed, BadBudget) as error:
                failed[document] = str(error)

    tasks = {document: asyncio.create_task(one(document, own)) for document, own in pages.items()}
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
    return found, failed


def passage_of(one: Tagged) -> Passage:
    """Return a segment as a passage."""
    return Passage(one.text, (one.span,), one.score, one.label)


def _shown(tagged: Sequence[Tagged]) -> str:
    """Return segments of a page as Markdown: what stands above them once, each on a line."""
    lines: list[str] = []
    above = ""
    for one in tagged:
        if one.above != above:
            above = one.above
            heading = " › ".join(" ".join(line.split()) for line in above.split("\n") if line.strip())
            if heading:
                lines.append(f"\n# {heading}" if lines else f"# {heading}")
        label = f" ({' '.join(one.label.split())})" if one.label else ""
        lines.append(f"{one.text.strip()}{label}")
    return "\n".join(lines)


def _numbered(run: Run, documents: Documents, pages: Sequence[tuple[Any, tuple[Passage, ...], str]]) -> list[Reference]:
    """Number pages as they will be cited; those of earlier turns keep their numbers."""
    chat = run.asked.chat
    earlier = list(chat.references) if chat is not None and run.writer is not None else []
    known = {one.key: one for one in earlier}
    number = max((one.number for one in earlier), default=0)
    own: list[Reference] = []
    for tree, passages, text in pages:
        origin = documents.origin(tree.document)
        before = known.pop((tree.document, tree.snapshot), None)
        if before is None:
            number += 1
            own.append(Reference(number, tree, passages, text, origin))
        else:
            spans = {passage.spans[0] for passage in passages}
            added = tuple(one for one in before.passages if one.spans[0] not in spans)
            own.append(Reference(before.number, before.tree, (*passages, *added), text, before.origin))
    if not own:
        return []
    return [*(one for one in earlier if one.key in known), *own]
