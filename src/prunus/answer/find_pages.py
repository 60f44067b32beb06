"""From a question to the pages that may answer it: plan, search, read, rank (Internet-SAG §2.1, steps 1 to 3).

Sees ports only. Each part of the outside may fail alone: a provider, a query, a page. What failed is said, and
the rest goes on; only where nothing is left is that an error.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from ..core.errors import BadBudget, BadInput, Failures, NothingFound, OutsideFailed, PrunusError
from ..core.events import Event, PageEvent, SearchEvent
from ..core.options import WebOptions
from ..core.ports import Embedder, Planner, Reranker, SearchProvider
from ..core.types import Hit, Message, Page, Plan, Results, SearchQuery, SearchRequest, Usage
from ..models.meter import Meter
from ..pages.read import ToHtml, read_page
from ..pages.tree import Tree
from ..web.search._merge import fuse
from .pictures import Pages
from .rank_pages import Candidate, RankedPage, Scores, by_embedder, by_hybrid, by_reranker, rank
from .trace import Stages

_PLAN_SHARE: Final = 0.15
_SEARCH_SHARE: Final = 0.25
_READ_SHARE: Final = 0.4
"""Of the seconds that are left, what a stage may take at most, so that the stages behind it have theirs."""

_LEAST_TOKENS: Final = 3_000
"""Tokens below which a plan by a model would leave too little for the answer."""


def local_now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True, slots=True)
class WebEngines:
    """What finds and reads pages.

    :param provider: the search; several are one.
    :param spare_planner: plans without a model, where the model's plan cannot be paid or fails.
    :param pages: reads pages.
    :param rank_with: embeds texts, or scores pairs, for the ranking.
    :param price: US dollars for one query, about, as configured.
    :param names: specs by port, of these and of the answer's engines.
    :param clock: says what time it is; a plan depends on it.
    """

    provider: SearchProvider
    planner: Planner
    spare_planner: Planner
    pages: Pages
    to_html: ToHtml
    rank_with: Any = None
    price: float = 0.0
    names: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] = local_now


@dataclass(slots=True)
class FoundPages:
    """What a search for pages came to.

    :param trees: the pages that were read, best first.
    :param ranked: the same pages with their scores.
    :param failures: queries and pages that failed, with the reason.
    """

    plan: Plan | None = None
    hits: list[Hit] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    ranked: list[RankedPage] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)

    @property
    def about(self) -> str:
        """The queries of the plan in one text."""
        return " ".join(dict.fromkeys(query.text for query in self.plan.queries)) if self.plan else ""


@dataclass(frozen=True, slots=True)
class Search:
    """One search for pages.

    :param conversation: earlier turns, then the question.
    """

    conversation: Sequence[Message]
    web: WebEngines
    options: WebOptions
    stages: Stages

    @property
    def meter(self) -> Meter:
        """What the whole answer has cost so far, and may cost."""
        return self.stages.meter

    def seconds(self, share: float) -> float | None:
        """Return a share of the seconds that are left; None without a limit."""
        left = self.meter.seconds_left
        return None if left == math.inf else left * share


async def plan_search(search: Search) -> tuple[Plan, str]:
    """Return the plan, and why the first planner failed; '' where it did not.

    :raises BadInput: there is no question.
    """
    web, now = search.web, search.web.clock()
    afford = search.meter.tokens_left
    reason = ""
    with search.stages.stage("plan", now=now.isoformat()) as detail:
        try:
            if afford < _LEAST_TOKENS and web.planner is not web.spare_planner:
                raise BadBudget(f"{afford:.0f} tokens are too few for a plan by the model", subject="planner")
            async with asyncio.timeout(search.seconds(_PLAN_SHARE)):
                plan = await web.planner.plan(search.conversation, now)
        except TimeoutError:
            reason = "planner: it took too long"
        except (OutsideFailed, BadBudget) as error:
            reason = str(error)
        if reason:
            plan = await web.spare_planner.plan(search.conversation, now)
            plan = replace(plan, reason=f"planned by rules ({reason}): {plan.reason}")
        if search.options.always and not plan.queries:
            question = search.conversation[-1].content
            plan = Plan(True, f"{plan.reason}; a search was asked for", (SearchQuery(question[:300]),))
        detail["plan"] = plan
    return plan, reason


async def find_pages(search: Search, found: FoundPages) -> AsyncIterator[Event]:
    """Search, read and rank; what is found goes into ``found``, whose plan stands.

    :raises OutsideFailed: no query was answered, or no page could be read.
    :raises NothingFound: there is no hit.
    """
    assert found.plan is not None
    async for event in _searched(search, found):
        yield event
    read: dict[str, Tree] = {}
    async with aclosing(_read(search, found, read)) as events:
        async for event in events:
            yield event
    if not read:
        first = found.failures.first
        raise OutsideFailed(f"no page that was found could be read; the first: {first}", subject="pages") from first
    with search.stages.stage("rank", candidates=len(read)) as detail:
        found.ranked = await asyncio.to_thread(_ranked, search, found, read)
        found.trees = [read[one.hit.url] for one in found.ranked]
        detail["ranked"] = [(one.hit.url, round(one.score, 6), one.by) for one in found.ranked]


# --- searching -----------------------------------------------------------------------------------


async def _searched(search: Search, found: FoundPages) -> AsyncIterator[Event]:
    """Ask every query at once, and fuse what comes."""
    assert found.plan is not None
    queries = list(found.plan.queries)
    if search.web.price and search.meter.usd_left != math.inf:
        payable = int(search.meter.usd_left / search.web.price)
        if not payable:
            raise BadBudget("--max-usd is less than one search costs; raise it", subject="search")
        for query in queries[payable:]:
            found.failures[f"query {query.text}"] = f"query {query.text!r}: not asked, it would go over --max-usd"
        queries = queries[:payable]
    with search.stages.stage("search", queries=queries) as detail:
        answers = await _asked(search, [request_of(query, search.options) for query in queries])
        lists: list[Sequence[Hit]] = []
        errors: list[PrunusError] = []
        for query, answer in zip(queries, answers, strict=True):
            if isinstance(answer, Results):
                search.meter.add(Usage(usd=answer.usd))
                lists.append(answer.hits)
                continue
            errors.append(answer)
            found.failures.note(answer, f"query {query.text}")
        found.hits = fuse(lists)[: search.options.read]
        detail["hits"] = [hit.url for hit in found.hits]
    for query, answer in zip(queries, answers, strict=True):
        if isinstance(answer, Results):
            yield SearchEvent(query.text, answer.hits, _worth_saying(answer.warnings, search.options))
        else:
            yield SearchEvent(query.text, (), failure=str(answer))
    if errors and not lists:
        raise errors[0]
    if not found.hits:
        raise NothingFound("the search found nothing for this question", subject=found.about[:200])


def _worth_saying(warnings: Sequence[str], options: WebOptions) -> tuple[str, ...]:
    """Return what a provider warns of, less that it has no filter for a language that only the plan named."""
    return tuple(one for one in warnings if options.language or not one.endswith("has no filter language"))


def request_of(query: SearchQuery, options: WebOptions) -> SearchRequest:
    """Return what providers are asked; what the caller chose wins over the plan."""
    return SearchRequest(
        query=query.text,
        count=options.count,
        language=options.language or query.language,
        country=options.country,
        time_range=options.time_range or query.time_range,
        include_domains=tuple(options.include_domains),
        exclude_domains=tuple(options.exclude_domains),
        safe_search=options.safe_search,
        topic=options.topic,
    )


async def _asked(search: Search, requests: Sequence[SearchRequest]) -> list[Results | PrunusError]:
    """Ask all at once; each fails alone, and what is not there in time is given up."""

    async def one(request: SearchRequest) -> Results | PrunusError:
        try:
            return await search.web.provider.search(request)
        except (OutsideFailed, BadInput) as error:
            return error

    tasks = [asyncio.create_task(one(request)) for request in requests]
    try:
        await asyncio.wait(tasks, timeout=search.seconds(_SEARCH_SHARE))
        late = OutsideFailed("search: no answer in the time that was left", subject="search")
        return [task.result() if task.done() else late for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- reading -------------------------------------------------------------------------------------


async def _read(search: Search, found: FoundPages, read: dict[str, Tree]) -> AsyncGenerator[Event, None]:
    """Read the pages of all hits; one that is missing, slow or no content fails alone."""
    waiting = {hit.url: hit for hit in found.hits}
    snapshots: set[str] = set()
    limit = search.seconds(_READ_SHARE)
    end = None if limit is None else asyncio.get_running_loop().time() + limit
    with search.stages.stage("read", asked=len(waiting)) as detail:
        async with aclosing(search.web.pages(list(waiting))) as pages:
            while waiting:
                arrived = await _arrived(pages, end)
                if arrived is None:
                    break
                url, page = arrived
                try:
                    tree = await _tree(page, search.web.to_html)
                except PrunusError as error:
                    del waiting[url]
                    found.failures.note(error, url)
                    yield PageEvent(url, failure=str(error))
                    continue
                hit = waiting.pop(url)
                tree.published = tree.published or hit.published
                if tree.snapshot not in snapshots:
                    snapshots.add(tree.snapshot)
                    read[url] = tree
                    yield PageEvent(url, tree.title)
        for url in waiting:
            late = OutsideFailed(f"{url}: not read in the time that was left", subject=url)
            found.failures.note(late, url)
            yield PageEvent(url, failure=str(late))
        detail["read"] = list(read)
        detail["failed"] = dict(found.failures)


async def _arrived(
    pages: AsyncGenerator[tuple[str, Page | PrunusError], None], end: float | None
) -> tuple[str, Page | PrunusError] | None:
    """Return the page that comes next; None where none does in time."""
    try:
        async with asyncio.timeout_at(end) as watch:
            return await anext(pages, None)
    except TimeoutError:
        if not watch.expired():
            raise
        return None


async def _tree(page: Page | PrunusError, to_html: ToHtml) -> Tree:
    if isinstance(page, PrunusError):
        raise page
    return await asyncio.to_thread(read_page, page, to_html)


# --- ranking -------------------------------------------------------------------------------------


def _ranked(search: Search, found: FoundPages, read: Mapping[str, Tree]) -> list[RankedPage]:
    """Return all pages that were read, best first."""
    hits = {hit.url: hit for hit in found.hits}
    candidates = [Candidate(hits[url], tree.canonical, tree.published) for url, tree in read.items()]
    queries = [query.text for query in found.plan.queries] if found.plan else []
    return rank(queries, candidates, scores_of(search.options.ranking, search.web.rank_with), top=len(candidates))


def scores_of(ranking: str, engine: Any) -> Scores:
    """Return how items are scored: ``paper`` and ``hybrid`` with an embedder, ``reranker`` with one.

    :raises BadInput: no such ranking.
    """
    if ranking == "reranker":
        return by_reranker(cast(Reranker, engine))
    if ranking not in ("hybrid", "paper"):
        raise BadInput(f"no ranking is called {ranking!r}; there are: hybrid, paper, reranker", subject="ranking")
    embedder = cast(Embedder, engine)
    return by_embedder(embedder) if ranking == "paper" else by_hybrid(embedder)
