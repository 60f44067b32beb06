"""Tavily's ``/search`` and ``/extract`` under ``/tavily``: ``TavilyClient(api_base_url="http://…/tavily")``.

``content`` is the evidence of a page for the query. Source: the client ``tavily-python`` 0.8.5. Fields that ask for
what Prunus lacks are refused by name.
"""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, FastAPI, Request
from pydantic import Field

from ...core.errors import BadInput, NothingFound, PrunusError
from ...core.sync import in_a_thread
from ...core.types import Hit, SearchRequest
from ..background import LargeRoute
from ..inputs import Caller, need_scope
from ..server import Server
from ..wire import MOST_PAGES, RequestBody, Short, Text
from .reading import EVIDENCE, REFUSED, LoadedPage, Shape

_CHUNK: Final = 130
"""Tokens of one of the ``chunks_per_source``, which Tavily bounds by 500 letters."""

Format = Literal["markdown", "text"]
Domains = Annotated[list[Short], Field(max_length=300, fail_fast=True)]


class TavilySearch(RequestBody):
    """A web search with the evidence of each page."""

    query: Annotated[Text, Field(min_length=1)]
    search_depth: Literal["basic", "advanced", "fast", "ultra-fast"] = Field(
        "basic", description="`fast` and `ultra-fast` read no pages: `content` is then the provider's snippet."
    )
    topic: Literal["general", "news"] = "general"
    time_range: Literal["day", "week", "month", "year", "d", "w", "m", "y"] | None = None
    max_results: Annotated[int, Field(ge=1, le=20)] = 5
    chunks_per_source: Annotated[int, Field(ge=1, le=10)] | None = None
    include_answer: bool | Literal["basic", "advanced"] = False
    include_raw_content: bool | Format = False
    include_domains: Domains = []
    exclude_domains: Domains = []
    include_images: Literal[False] = False
    include_image_descriptions: Literal[False] = False
    include_favicon: Literal[False] = False
    include_usage: bool = Field(False, description="Without effect.")
    auto_parameters: Literal[False] = False
    country: Short = Field("", description="A code of two letters; providers know no names.")
    language: Short = ""
    timeout: float | None = Field(None, description="Without effect: the operator sets it.")


class ExtractBody(RequestBody):
    """Pages to read."""

    urls: str | Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=MOST_PAGES, fail_fast=True)]
    query: Text = Field("", description="With it, `raw_content` is the evidence for it.")
    chunks_per_source: Annotated[int, Field(ge=1, le=10)] | None = None
    format: Format = "markdown"
    extract_depth: Literal["basic", "advanced"] = Field("basic", description="Without effect.")
    include_images: Literal[False] = False
    include_favicon: Literal[False] = False
    include_usage: bool = Field(False, description="Without effect.")
    timeout: float | None = Field(None, description="Without effect: the operator sets it.")


def add_tavily(app: FastAPI, server: Server) -> None:
    """Add both routes to an application."""
    shape = Shape(server)
    routes = APIRouter(prefix="/tavily", tags=["shapes"], responses=REFUSED)
    pages = APIRouter(prefix="/tavily", tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    @routes.post("/search")
    async def search(body: TavilySearch, request: Request, caller: Caller) -> dict[str, Any]:
        """Search the web, read the pages, and return the evidence of each."""
        started = time.perf_counter()
        if body.include_answer:
            need_scope(request, "ask")
        wanted = SearchRequest(
            body.query,
            count=body.max_results,
            topic="news" if body.topic == "news" else "",
            time_range={"d": "day", "w": "week", "m": "month", "y": "year"}.get(body.time_range or "", body.time_range)
            or "",
            country=_code(body.country),
            language=body.language,
            include_domains=tuple(body.include_domains),
            exclude_domains=tuple(body.exclude_domains),
        )
        reads = not body.search_depth.endswith("fast") or bool(body.include_raw_content or body.include_answer)

        async def work() -> tuple[list[Hit], list[LoadedPage | PrunusError]]:
            hits = await shape.hits(wanted)
            allowed = reads and server.options.fetch
            return hits, await shape.read([hit.url for hit in hits]) if allowed else []

        hits, read = await shape.during(request, caller, work)
        pages = {one.address: one for one in read if isinstance(one, LoadedPage)}

        async def told() -> list[dict[str, Any]]:
            return await in_a_thread(lambda: [_result(shape, body, hit, pages.get(hit.url)) for hit in hits])

        results = await shape.during(request, caller, told)
        answer = None
        if body.include_answer and pages:
            try:
                of = await shape.answered(request, caller, body.query, [one.page for one in pages.values()])
                answer = of.text
            except NothingFound:
                answer = None  # the shape says so: no answer
        return shape.safe({
            "query": body.query, "answer": answer, "images": [], "results": sorted(results, key=_by_score),
            "follow_up_questions": None, "response_time": round(time.perf_counter() - started, 2),
            "request_id": str(uuid.uuid4()),
        })  # fmt: skip

    @pages.post("/extract")
    async def extract(body: ExtractBody, request: Request, caller: Caller) -> dict[str, Any]:
        """Read pages: their main content, or with a query their evidence for it."""
        started = time.perf_counter()
        given = [body.urls] if isinstance(body.urls, str) else body.urls
        addresses = shape.check_addresses(given, "urls")
        budget = _CHUNK * (body.chunks_per_source or 3)

        async def work() -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
            read = await shape.read(addresses)

            def told() -> list[dict[str, Any]]:
                return [_extracted(shape, body, one, budget) for one in read if isinstance(one, LoadedPage)]

            failed = [
                {"url": address, "error": shape.line(one)}
                for address, one in zip(addresses, read, strict=True)
                if isinstance(one, PrunusError)
            ]
            return await in_a_thread(told), failed

        results, failed = await shape.during(request, caller, work)
        return shape.safe({
            "results": results, "failed_results": failed, "request_id": str(uuid.uuid4()),
            "response_time": round(time.perf_counter() - started, 2),
        })  # fmt: skip

    app.include_router(routes)
    app.include_router(pages)


def _result(shape: Shape, body: TavilySearch, hit: Hit, read: LoadedPage | None) -> dict[str, Any]:
    """Return one result of a search; of a page that was not read it has the provider's snippet."""
    content, score = hit.snippet, 0.0
    raw = None
    if read is not None:
        context = shape.pruned(read, body.query, _CHUNK * (body.chunks_per_source or 0) or EVIDENCE, "text")
        content, score = context.output or hit.snippet, context.confidence()
        if body.include_raw_content:
            raw = read.written("text" if body.include_raw_content == "text" else "markdown")
    result = {
        "url": hit.url, "title": hit.title or (read.metadata.title if read else ""), "content": content,
        "score": round(score, 5), "raw_content": raw,
    }  # fmt: skip
    published = hit.published or (read.metadata.published if read else "")
    return {**result, "published_date": published} if published else result


def _extracted(shape: Shape, body: ExtractBody, read: LoadedPage, budget: int) -> dict[str, Any]:
    text = shape.pruned(read, body.query, budget, body.format).output if body.query else read.written(body.format)
    return {"url": read.address, "title": read.metadata.title, "raw_content": text, "images": []}


def _by_score(result: dict[str, Any]) -> float:
    return -float(result["score"])


def _code(country: str) -> str:
    """Return the code of a country; Tavily takes names in English, which providers do not.

    :raises BadInput: it is no code.
    """
    if country and not (len(country) == 2 and country.isascii() and country.isalpha()):
        raise BadInput(f"country: {country!r}: this server takes codes of two letters, as FR", subject="country")
    return country.upper()
