"""The routes of Prunus itself: clean, prune, search and ask."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import Response, StreamingResponse

from ..api.answers import search, stream
from ..api.pages import Pruner, read, read_each
from ..api.plain import answer_record, context_record
from ..core.errors import PrunusError
from ..core.events import ErrorEvent, Event, answer_of
from ..core.types import SearchRequest
from ..pages.metadata import known_metadata
from ..pages.write.kept import main_part
from ..pages.write.style import Style
from ..pages.write.whole import write_tree
from .errors import note_bug
from .given import budget_of, choices_of, conversation_of, pruning_of, sources_of
from .server import Server
from .wire import (
    AskRequest,
    AskResponse,
    CleanRequest,
    CleanResponse,
    ErrorResponse,
    PruneRequest,
    PruneResponse,
    SearchBody,
    SearchResponse,
)

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


def add_routes(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    routes = APIRouter(prefix="/v1", tags=["prunus"], responses=REFUSALS)

    @routes.post("/clean")
    async def clean(body: CleanRequest) -> CleanResponse:
        """Clean a page: keep what a reader sees, drop scripts, styles and hidden parts."""
        [source] = sources_of([body.page], server.options, "page")

        def work() -> CleanResponse:
            [tree] = read_each([source], server.settings, body.main)
            if isinstance(tree, PrunusError):
                raise tree
            style = Style(links=body.links, images=body.images, full=body.full)
            output = write_tree(tree, body.format, style, main_part(tree))
            return CleanResponse(format=body.format, output=output, metadata=asdict(known_metadata(tree)))

        return await server.workers.call(work)

    @routes.post("/prune")
    async def prune(body: PruneRequest) -> PruneResponse:
        """Keep the evidence of pages for a question within a token budget."""
        sources = sources_of(body.pages, server.options)
        budget = budget_of(body.budget, server.options)

        def work() -> PruneResponse:
            documents = read(sources, strict=False, settings=server.settings)
            pruner = Pruner(pruning_of(body), server.settings)
            context = pruner.prune(documents, body.question, budget, body.format)
            record = context_record(
                context,
                documents.trees,
                context.tokens_before(),
                context.seconds,
                documents.failures,
                body.all_blocks,
            )
            return PruneResponse(**server.mask.record(record))

        return await server.workers.call(work)

    @routes.post("/search")
    async def search_web(body: SearchBody) -> SearchResponse:
        """Search the web with the providers that the operator chose."""
        request = SearchRequest(**body.model_dump())
        found = await server.workers.call(partial(search, request, settings=server.settings))
        return SearchResponse(hits=[asdict(hit) for hit in found.hits], warnings=list(found.warnings))

    @routes.post(
        "/ask",
        response_model=AskResponse,
        responses=stream_of("event", "data", example='event: token\ndata: {"text": "In"}'),
    )
    async def ask(body: AskRequest) -> Response | AskResponse:
        """Answer a question with citations that are checked against the pages.

        With `stream` the response is server-sent events: `plan`, `search`, `page`, `kept`, `extracted`, `token`,
        `citation`, `usage`, and `done` or `error` at the end.
        """
        events = answering(server, body)
        if body.stream:
            first = await anext(events)  # an error before the first event has a status of its own
            return StreamingResponse(_sse(server, first, events), media_type="text/event-stream", headers=NO_BUFFER)
        return AskResponse(**server.mask.record(answer_record(body.question, await answer_of(events))))

    app.include_router(routes)


SILENCE: Final = ": wait\n\n"
"""A line of a stream that says only that it lives."""

NO_BUFFER: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy keeps parts of it back."""


def answering(server: Server, body: AskRequest) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer, None in long silences; the request is checked at once.

    :raises BadInput: the request asks for what is not enabled.
    """
    sources = sources_of(body.pages, server.options)
    choices = choices_of(body, server.settings, server.options)
    chat = conversation_of([(turn.role, turn.content) for turn in body.turns])
    return server.workers.stream(partial(stream, body.question, sources or None, choices, chat))


async def _sse(server: Server, first: Event | None, events: AsyncGenerator[Event | None, None]) -> AsyncIterator[str]:
    async with aclosing(events):
        try:
            yield _written(first, server)
            async for event in events:
                yield _written(event, server)
        except PrunusError as error:
            yield _written(ErrorEvent(str(error), error.subject), server)
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
