"""The routes of Prunus itself: clean, prune, search and ask."""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response, StreamingResponse

from ..api.answers import asearch
from ..api.async_api import aread
from ..api.check import acheck
from ..api.pages import Pruner, read_each
from ..api.plain import answer_record, context_record
from ..api.sites import amap_site
from ..core.confidence import unlikely
from ..core.errors import BadInput, NothingFound, PrunusError
from ..core.events import ErrorEvent, Event, answer_of
from ..core.sync import in_a_thread
from ..core.types import CheckedText, SearchRequest
from ..evidence.documents import Documents
from ..pages.metadata import known_metadata
from ..pages.sources import Source
from ..pages.tree import Tree
from ..pages.write.selection import main_part
from ..pages.write.style import Style
from ..pages.write.whole import write_tree
from ..web.site.scope import SiteRules
from .answering import answering, begun
from .background import LargeRoute
from .errors import RequestRefused, note_bug, status_of
from .inputs import (
    Caller,
    addresses_of,
    budget_of,
    fetched,
    judge_of,
    need_scope,
    pruning_of,
    reading_settings,
    source_of,
    sources_of,
)
from .page_cache import SECONDS, CachedPages
from .server import Server
from .snapshots import snapshot_id
from .wire import (
    AlsoWritten,
    AskRequest,
    AskResponse,
    CheckRequest,
    CheckResponse,
    CleanRequest,
    CleanResponse,
    ErrorResponse,
    MapRequest,
    MapResponse,
    PruneRequest,
    PruneResponse,
    SearchBody,
    SearchResponse,
)
from .work import unless_left

_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}
_LONGEST: Final = 300  # letters of a heading that are told


def outline_of(tree: Tree, starts: Sequence[int], first: int) -> list[dict[str, Any]]:
    """Return the page's headings in its order: level, text, and the number of the first block that is below each.

    A heading in the middle of a block is above the next block. Headings above no block are left out.

    :param starts: where each block of the page begins in its canonical text, ascending.
    :param first: the number of the page's first block.
    """
    result: list[dict[str, Any]] = []
    for node, tag in enumerate(tree.tag):
        level = _LEVELS.get(tag)
        if level is None:
            continue
        text = " ".join("".join(tree.text[node : tree.end[node]]).split())
        if not text:
            continue
        inside = next(part for part in range(node, tree.end[node]) if tree.text[part])
        block = bisect_right(starts, tree.starts[inside] - 1)
        if block < len(starts):
            result.append({"level": level, "text": text[:_LONGEST], "block": first + block})
    return result


REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ErrorResponse} for status in (400, 401, 403, 404, 413, 429, "4XX", 501, 502, 503, 504)
}
"""The errors that every route documents; without a range FastAPI would add 422, which is never sent."""


def stream_of(*fields: str, example: str) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a stream of server-sent events.

    :param fields: the fields of each event.
    """
    event = {"type": "object", "properties": {name: {"type": "string"} for name in fields}, "required": list(fields)}
    return {200: {"content": {"text/event-stream": {"schema": event, "example": example}}}}


ASKED: Final = stream_of("event", "data", example='event: token\ndata: {"text": "In"}')
"""The description of an answer that can be streamed, for OpenAPI."""


def add_routes(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    routes = APIRouter(prefix="/v1", tags=["prunus"], responses=REFUSALS, route_class=LargeRoute)

    @routes.post("/clean", response_model=CleanResponse, responses={200: {"content": {"text/markdown": {}}}})
    async def clean(body: CleanRequest, request: Request, caller: Caller) -> Response | CleanResponse:
        """Clean a page: keep what a reader sees, drop scripts, styles and hidden parts.

        With `Accept: text/markdown` the response is the page as Markdown, and its tokens are in `x-markdown-tokens`.
        """
        source = source_of(body.page, server.options, "page")
        bare = request.headers.get("accept", "").strip().startswith("text/markdown")
        format = "markdown" if bare else body.format

        def cleaned(page: Source) -> CleanResponse:
            [tree] = read_each([page], reading_settings(server.settings, body.shown_only), body.main)
            if isinstance(tree, PrunusError):
                raise tree
            style = Style(links=body.links, images=body.images, full=body.full)
            output = write_tree(tree, format, style, main_part(tree))
            known = asdict(known_metadata(tree))
            sure, warnings = tree.main_confidence, list(tree.warnings)
            return CleanResponse(format=format, output=output, metadata=known, main_confidence=sure, warnings=warnings)

        async def work() -> Response | CleanResponse:
            page = await fetched(source, server.settings) if isinstance(source, str) else source
            result = await in_a_thread(lambda: cleaned(page))
            return await in_a_thread(lambda: markdown_reply(result.output, server)) if bare else result

        return await unless_left(request.receive, server.workers.within(work, caller))

    @routes.post("/prune", response_model=PruneResponse)
    async def prune(body: PruneRequest, request: Request, caller: Caller) -> Response | PruneResponse:
        """Keep the evidence of pages for a question within a token budget.

        With `keep` the server keeps the pages for ten minutes: another budget or question then needs no new fetch.
        """
        if [bool(body.pages), bool(body.kept), body.snapshot is not None].count(True) != 1:
            raise BadInput("give one of pages, kept and snapshot", subject="pages")
        if server.background is not None and body.kept and body.kept not in server.kept:  # they were large
            return server.background.reply(request, await request.body())
        budget = budget_of(body.budget, server.options)
        sources = sources_of(body.pages, server.options)
        results = server.kept.find(body.kept, caller) if body.kept else None
        if body.snapshot is not None:
            id = snapshot_id(body.snapshot.document, body.snapshot.snapshot)
            tree = await asyncio.to_thread(server.snapshots.get, caller, id)
            if tree is None:
                raise RequestRefused(404, "this page is not kept; ask again with keep", param="snapshot")
            results = CachedPages(caller, Documents([tree]))

        async def work() -> PruneResponse:
            started = time.perf_counter()
            settings = reading_settings(server.settings, body.shown_only)
            kept = results or CachedPages(caller, await aread(sources, strict=False, settings=settings))
            reading = {} if results else {"read": time.perf_counter() - started}
            return await in_a_thread(lambda: _pruned(server, body, kept, reading, budget))

        result = await unless_left(request.receive, server.workers.within(work, caller))
        if result.kept:
            asyncio.get_running_loop().call_later(SECONDS + 1, server.kept.forget_old)
        return result

    @routes.post("/map")
    async def map_of(body: MapRequest, request: Request, caller: Caller) -> MapResponse:
        """List the addresses of a site: from robots.txt, sitemaps, feeds, llms.txt and links."""
        [url] = addresses_of([body.url], server.options, "url")
        rules = SiteRules(
            body.scope, tuple(body.include), tuple(body.exclude), body.depth, body.pages, body.question.strip(),
            latest=body.latest,
        )  # fmt: skip
        work = partial(amap_site, url, rules, server.settings)
        found = await unless_left(request.receive, server.workers.within(work, caller))
        return MapResponse(**server.mask.record(asdict(found)))

    @routes.post("/check")
    async def check_text(body: CheckRequest, request: Request, caller: Caller) -> CheckResponse:
        """Check the claims of a text against pages: a verdict for each, and the sentences that decide."""
        if body.judge:
            need_scope(request, "ask")
        llm = await in_a_thread(lambda: judge_of(server)) if body.judge else ""
        sources = sources_of(body.pages, server.options)

        async def work() -> CheckedText:
            settings = reading_settings(server.settings, body.shown_only)
            return await acheck(body.text, await aread(sources, strict=False, settings=settings), settings, llm=llm)

        result = await unless_left(request.receive, server.workers.within(work, caller))
        return CheckResponse(**server.mask.record(asdict(result)))

    @routes.post("/search")
    async def search_web(body: SearchBody, http: Request, caller: Caller) -> SearchResponse:
        """Search the web with the providers that the operator chose."""
        if not server.settings.search:
            raise BadInput("this server has no search provider; ask pages or an index")
        request = SearchRequest(**body.model_dump())
        work = partial(asearch, request, settings=server.settings)
        results = await unless_left(http.receive, server.workers.within(work, caller))
        return SearchResponse(hits=[asdict(hit) for hit in results.hits], warnings=list(results.warnings))

    @routes.post(
        "/ask",
        response_model=AskResponse,
        responses=ASKED,
    )
    async def ask(body: AskRequest, request: Request, caller: Caller) -> Response | AskResponse:
        """Answer a question with citations that are checked against the pages.

        With `stream` the response is server-sent events: `plan`, `search`, `page`, `kept`, `extracted`, `token`,
        `citation`, `usage`, and `done` or `error` at the end.
        """
        return await reply_to(server, body, caller, request)

    app.include_router(routes)


def markdown_reply(text: str, server: Server) -> Response:
    """Return Markdown with its tokens in a header, as sites do that serve Markdown; call this in a thread."""
    return Response(text, media_type="text/markdown", headers={"x-markdown-tokens": str(server.tokens(text))})


def _pruned(
    server: Server, body: PruneRequest, kept: CachedPages, reading: dict[str, float], budget: int | None
) -> PruneResponse:
    """Prune pages.

    :param reading: seconds that reading the pages took.
    """
    documents = kept.documents
    context = Pruner(pruning_of(body), server.settings).prune(documents, body.question, budget, body.format)
    sure = None if body.min_confidence is None else context.confidence()
    if sure is not None and sure < (body.min_confidence or 0):
        raise NothingFound(unlikely(sure), subject="question")
    if body.format not in kept.before:
        kept.before[body.format] = context.tokens_before()
    before = kept.before[body.format]
    seconds = {**reading, **context.seconds}
    record = context_record(context, documents.trees, before, seconds, documents.failures, body.all_blocks)
    if body.all_blocks:
        for number, blocks in groupby(record["blocks"], key=itemgetter("document")):
            of_page = list(blocks)
            starts = [block["span"]["start"] for block in of_page]
            record["documents"][number]["outline"] = outline_of(documents.trees[number], starts, of_page[0]["index"])
    id = server.kept.keep(kept) if body.keep and not body.kept else body.kept
    also = {name: AlsoWritten(output=context.render(name), tokens=context.tokens_of(name)) for name in body.also}
    blocks = record.pop("blocks")  # words of the pages and numbers: nothing in them is to be masked
    return PruneResponse(**server.mask.record(record), blocks=blocks, kept=id, confidence=sure, also=also)


SILENCE: Final = ": wait\n\n"
"""A line of a stream that says only that it lives."""

NO_BUFFER: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy keeps parts of it back."""


async def reply_to(server: Server, body: AskRequest, caller: str, request: Request) -> Response | AskResponse:
    """Answer a question, whole or as a stream, for as long as the client of the request stays."""
    events = await answering(server, body, caller)
    if body.stream:
        events = await begun(events, request.receive)
        return StreamingResponse(_sse(server, events), media_type="text/event-stream", headers=NO_BUFFER)
    answer = await unless_left(request.receive, answer_of(events))
    return AskResponse(**server.mask.record(answer_record(body.question, answer)))


async def _sse(server: Server, events: AsyncGenerator[Event | None, None]) -> AsyncIterator[str]:
    async with aclosing(events):
        try:
            async for event in events:
                yield _written(event, server)
        except PrunusError as error:
            yield _written(ErrorEvent(str(error), error.subject, status_of(error)[1]), server)
        except Exception as error:  # a bug: the stream has begun, so that no status can tell
            note_bug(error, "a streamed answer")
            yield _written(ErrorEvent("an internal error; the server's log has the details"), server)


def _written(event: Event | None, server: Server) -> str:
    """Return an event as the lines of a server-sent event; a comment for a silence."""
    if event is None:
        return SILENCE
    record = server.mask.record(asdict(event))
    name = record.pop("event")
    return f"event: {name}\ndata: {json.dumps(record, ensure_ascii=False)}\n\n"
