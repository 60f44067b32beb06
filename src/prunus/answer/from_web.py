"""Answer a question from the web: search for pages, then answer from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from ..core.errors import BadBudget, NothingFound, OutsideFailed
from ..core.events import Event, PageEvent, PlanEvent
from ..core.types import Message
from ..evidence.documents import Documents
from .find_pages import FoundPages, Search, find_pages, plan_search
from .run import AnswerEngines, Asked, Run, start
from .write import answer_again, answer_in_groups, answer_unread


async def answer_from_web(
    asked: Asked, engines: AnswerEngines, documents: Documents | None = None
) -> AsyncIterator[Event]:
    """Answer a question from the web, as a stream of events that ends in ``done``.

    :param documents: the caller's documents; used in every case, and placed before the pages that are found.
    :raises NothingFound: no page bears on the question; or it needs no search, and there is no model to answer it.
    :raises OutsideFailed: no provider answered, or no page could be read.
    """
    assert engines.web is not None  # a caller that searches the web asks for its engines
    found, web = FoundPages(), engines.web
    run = start(asked, engines, found.failures)
    run.names.update(web.names)
    run.pages = web.pages
    turns = asked.chat.turns if asked.chat is not None else []
    search = Search([*turns, Message("user", asked.question)], web, asked.options.web, run.stages)
    found.plan, failed = await plan_search(search)
    if failed:
        found.failures["planner"] = failed
        run.names["planner"] = "rules"
    yield PlanEvent(found.plan)
    if documents is not None:
        for tree in documents.trees:
            yield PageEvent(tree.url, tree.title)
        for name, reason in documents.failures.items():
            found.failures[name] = reason
            yield PageEvent(name, failure=reason)
    kept = list(documents.trees) if documents is not None else []
    if not found.plan.needs_search and not kept and asked.indexes is None:
        async for event in _without_search(run, found):
            yield event
        return
    if found.plan.needs_search:
        async for event in _find(search, found, bool(kept) or asked.indexes is not None):
            yield event
    if turns:  # a follow-up question refers to earlier turns; the plan's queries are self-contained
        run.asked = replace(asked, about=found.about)
    best = asked.options.web.pages  # the next best pages are a second try, where the best hold no evidence
    groups = [[*kept, *found.trees[:best]], found.trees[best : 2 * best]]
    groups = [group for group in groups if group] or [[]]
    async for event in answer_in_groups(run, [Documents(group, found.failures) for group in groups]):
        yield event


async def _find(search: Search, found: FoundPages, optional: bool) -> AsyncIterator[Event]:
    """Find pages.

    :param optional: there are other documents to answer from, so a failed search is only noted.
    """
    try:
        async for event in find_pages(search, found):
            yield event
    except (OutsideFailed, NothingFound, BadBudget) as error:
        if not optional:
            raise
        found.failures.note(error, "search")


async def _without_search(run: Run, found: FoundPages) -> AsyncIterator[Event]:
    """Answer a question that needs no search, from the sources of earlier turns or from the model's memory.

    :raises NothingFound: there is no model.
    """
    reason = found.plan.reason if found.plan else ""
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
