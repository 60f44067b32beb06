"""From a question to the pages that may answer it: plan, search, read, rank (Internet-SAG §2.1, steps 1 to 3).

A single query or page may fail without ending the search: the failure is noted in ``FoundPages.failures``. An error is
raised only where no query was answered or no page could be read.
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
from ..pages.metadata import known_metadata
from ..pages.read import ToHtml, read_page
from ..pages.tree import Tree
from ..web.search._merge import fuse
from .pictures import Pages
from .rank_pages import Candidate, RankedPage, Scores, by_embedder, by_hybrid, by_reranker, rank
from .trace import StageTimer

_PLAN_SHARE: Final = 0.15
_SEARCH_SHARE: Final = 0.25
_READ_SHARE: Final = 0.4
"""Largest share of the remaining seconds that a stage may take, so that the later stages have time."""

_LEAST_TOKENS: Final = 3_000
"""Fewest affordable tokens for a plan by a model; with fewer, the plan would leave too little for the answer."""


def local_now() -> datetime:
    """Return the current time with its time zone."""
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True, slots=True)
class WebEngines:
    """The engines that find and read pages.

    :param provider: the search provider; several providers are merged into one.
    :param spare_planner: plans without a model, where the model's plan fails or is too expensive.
    :param pages: reads pages.
    :param rank_with: the embedder or reranker that ranks pages.
    :param price: about how many US dollars one query costs, as configured.
    :param meter: the cost of the whole call so far, and its limits.
    :param names: the specs of planner and search.
    :param clock: returns the current time, on which a plan depends.
    """

    provider: SearchProvider
    planner: Planner
    spare_planner: Planner
    pages: Pages
    to_html: ToHtml
    meter: Meter
    rank_with: Any = None
    price: float = 0.0
    names: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] = local_now


@dataclass(slots=True)
class FoundPages:
    """The result of a search for pages.

    :param trees: the pages that were read, best first.
    :param ranked: the same pages with their scores.
    :param failures: the reason of each failure, by query or page.
    """

    plan: Plan | None = None
    hits: list[Hit] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    ranked: list[RankedPage] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)

    @property
    def queries(self) -> str:
        """The queries of the plan, joined to one text."""
        return " ".join(dict.fromkeys(query.text for query in self.plan.queries)) if self.plan else ""


@dataclass(frozen=True, slots=True)
class Search:
    """One search for pages.

    :param conversation: earlier turns, then the question.
    """

    conversation: Sequence[Message]
    web: WebEngines
    options: WebOptions
    stages: StageTimer

    @property
    def meter(self) -> Meter:
        """The meter of the whole answer: its cost so far, and its limits."""
        return self.stages.meter

    def seconds(self, share: float) -> float | None:
        """Return a share of the remaining seconds; None without a limit."""
        left = self.meter.seconds_left
        return None if left == math.inf else left * share


async def plan_search(search: Search) -> tuple[Plan, str]:
    """Return the plan, and the reason why the first planner failed ('' where it did not).

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


async def find_pages(search: Search, result: FoundPages) -> AsyncIterator[Event]:
    """Search, read and rank as ``result.plan`` says, and put the pages into ``result``; yields events.

    :raises OutsideFailed: no query was answered, or no page could be read.
    :raises NothingFound: there is no hit.
    :raises BadBudget: the limit on money is below the price of one query.
    """
    assert result.plan is not None
    async for event in _search(search, result):
        yield event
    read: dict[str, Tree] = {}
    async with aclosing(_read(search, result, read)) as events:
        async for event in events:
            yield event
    if not read:
        first = result.failures.first
        raise OutsideFailed(f"no page that was found could be read; the first: {first}", subject="pages") from first
    with search.stages.stage("rank", candidates=len(read)) as detail:
        result.ranked = await asyncio.to_thread(_rank, search, result, read)
        result.trees = [read[page.hit.url] for page in result.ranked]
        detail["ranked"] = [(page.hit.url, round(page.score, 6), page.by) for page in result.ranked]


# --- searching -----------------------------------------------------------------------------------


async def _search(search: Search, result: FoundPages) -> AsyncIterator[Event]:
    """Send all queries at once, and fuse their hits into ``result.hits``."""
    assert result.plan is not None
    queries = list(result.plan.queries)
    if search.web.price and search.meter.usd_left != math.inf:
        payable = int(search.meter.usd_left / search.web.price)
        if not payable:
            raise BadBudget("--max-usd is less than one search costs; raise it", subject="search")
        for query in queries[payable:]:
            result.failures[f"query {query.text}"] = f"query {query.text!r}: not sent, it would go over --max-usd"
        queries = queries[:payable]
    with search.stages.stage("search", queries=queries) as detail:
        answers = await _send(search, [request_of(query, search.options) for query in queries])
        lists: list[Sequence[Hit]] = []
        errors: list[PrunusError] = []
        for query, answer in zip(queries, answers, strict=True):
            if isinstance(answer, Results):
                search.meter.add(Usage(usd=answer.usd))
                lists.append(answer.hits)
                continue
            errors.append(answer)
            result.failures.note(answer, f"query {query.text}")
        result.hits = fuse(lists)[: search.options.read]
        detail["hits"] = [hit.url for hit in result.hits]
    for query, answer in zip(queries, answers, strict=True):
        if isinstance(answer, Results):
            yield SearchEvent(query.text, answer.hits, _shown_warnings(answer.warnings, search.options))
        else:
            yield SearchEvent(query.text, (), failure=str(answer))
    if errors and not lists:
        raise errors[0]
    if not result.hits:
        raise NothingFound("the search found nothing for this question", subject=result.queries[:200])


def _shown_warnings(warnings: Sequence[str], options: WebOptions) -> tuple[str, ...]:
    """Return a provider's warnings without "has no filter language", where only the plan chose a language."""
    return tuple(warning for warning in warnings if options.language or "has no filter language" not in warning)


def request_of(query: SearchQuery, options: WebOptions) -> SearchRequest:
    """Return the request to providers for a query; the caller's options win over the plan."""
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


async def _send(search: Search, requests: Sequence[SearchRequest]) -> list[Results | PrunusError]:
    """Send all requests at once; return the results or the error of each, in their order."""

    async def send(request: SearchRequest) -> Results | PrunusError:
        try:
            return await search.web.provider.search(request)
        except (OutsideFailed, BadInput) as error:
            return error

    tasks = [asyncio.create_task(send(request)) for request in requests]
    try:
        await asyncio.wait(tasks, timeout=search.seconds(_SEARCH_SHARE))
        late = OutsideFailed("search: no answer in the time that was left", subject="search")
        return [task.result() if task.done() else late for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- reading -------------------------------------------------------------------------------------


async def _read(search: Search, result: FoundPages, read: dict[str, Tree]) -> AsyncGenerator[Event, None]:
    """Read the pages of all hits into ``read``; a page that is missing, slow or empty is noted as a failure."""
    waiting = {hit.url: hit for hit in result.hits}
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
                    result.failures.note(error, url)
                    yield PageEvent(url, failure=str(error))
                    continue
                hit = waiting.pop(url)
                tree.published = tree.published or hit.published
                if tree.snapshot not in snapshots:  # the same page under two addresses counts once
                    snapshots.add(tree.snapshot)
                    read[url] = tree
                    yield PageEvent(url, tree.title)
        for url in waiting:
            late = OutsideFailed(f"{url}: not read in the time that was left", subject=url)
            result.failures.note(late, url)
            yield PageEvent(url, failure=str(late))
        detail["read"] = list(read)
        detail["failed"] = dict(result.failures)


async def _arrived(
    pages: AsyncGenerator[tuple[str, Page | PrunusError], None], end: float | None
) -> tuple[str, Page | PrunusError] | None:
    """Return the next page; None at the end of the pages or at the deadline ``end``."""
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
    tree = await asyncio.to_thread(read_page, page, to_html)
    tree.published = (await asyncio.to_thread(known_metadata, tree)).published or tree.published
    return tree


# --- ranking -------------------------------------------------------------------------------------


def _rank(search: Search, result: FoundPages, read: Mapping[str, Tree]) -> list[RankedPage]:
    """Return the read pages, best first."""
    hits = {hit.url: hit for hit in result.hits}
    candidates = [Candidate(hits[url], tree.canonical, tree.published) for url, tree in read.items()]
    queries = [query.text for query in result.plan.queries] if result.plan else []
    return rank(queries, candidates, scores_of(search.options.ranking, search.web.rank_with), top=len(candidates))


def scores_of(ranking: str, engine: Any) -> Scores:
    """Return the scoring function of a ranking.

    :param ranking: ``paper``, ``hybrid`` or ``reranker``.
    :param engine: an embedder for ``paper`` and ``hybrid``, a reranker for ``reranker``.
    :raises BadInput: the ranking is unknown.
    """
    if ranking == "reranker":
        return by_reranker(cast(Reranker, engine))
    if ranking not in ("hybrid", "paper"):
        raise BadInput(f"no ranking is called {ranking!r}; there are: hybrid, paper, reranker", subject="ranking")
    embedder = cast(Embedder, engine)
    return by_embedder(embedder) if ranking == "paper" else by_hybrid(embedder)
