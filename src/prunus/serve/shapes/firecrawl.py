"""Firecrawl's ``/v2/scrape``, ``/v2/map``, ``/v2/crawl`` and ``/v2/search``: ``Firecrawl(api_url="http://…")``.

Source: the client ``firecrawl-py`` 4.55. Formats that Prunus lacks are refused by name. ``highlights`` is the evidence
of a page, ``question`` the answer with its sources, and ``json`` the fields of a schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, FastAPI, Request
from pydantic import Field

from ...api.sites import amap_site
from ...core.errors import BadInput, NothingFound, PrunusError
from ...core.sync import in_a_thread
from ...core.types import Hit, SearchRequest
from ...pages.links import links_of
from ...pages.sources import source_text
from ...web.site.scope import Scope, SiteRules
from ..background import LargeRoute
from ..inputs import Caller, need_scope
from ..server import Server
from ..wire import Bounded, RequestBody, Short, Text
from .crawls import MOST_PAGES, Crawls
from .reading import EVIDENCE, REFUSED, LoadedPage, Shape

_PLAIN: Final = ("markdown", "html", "rawHtml", "links")
_ASKING: Final = {"question": "question", "highlights": "query", "json": "schema"}
"""Formats that ask something of the page, by the field that says what."""
_SPANS: Final = {"qdr:d": "day", "qdr:w": "week", "qdr:m": "month", "qdr:y": "year"}
_MOST_ADDRESSES: Final = 30_000
_HTML: Final = ("", "text/html", "application/xhtml+xml")
_CODES: Final = {"web": "", "news": "news"}


Formats = Mapping[str, Mapping[str, Any]]
"""The fields of each format that was asked for, by its name."""
Patterns = Annotated[list[Short], Field(max_length=50, fail_fast=True)]


class ScrapeOptions(RequestBody):
    """How a page is written. What cannot change the result is taken without effect."""

    formats: Annotated[list[str | dict[str, Any]], Field(max_length=10)] = ["markdown"]
    onlyMainContent: bool = True
    timeout: int | None = Field(None, description="Without effect: the operator sets it.")
    mobile: Literal[False] = False
    waitFor: Literal[0] = Field(0, description="Pages that scripts fill are opened as the operator chose.")
    skipTlsVerification: bool = Field(False, description="Without effect: certificates are always checked.")
    removeBase64Images: bool = Field(True, description="Without effect: such pictures are never written.")
    blockAds: bool = Field(True, description="Without effect.")
    fastMode: bool = Field(False, description="Without effect.")
    proxy: Literal["basic", "auto"] = "auto"
    maxAge: int | None = Field(None, description="Without effect: the cache follows the pages' own headers.")
    minAge: int | None = Field(None, description="Without effect.")
    storeInCache: bool = Field(True, description="Without effect.")


class _Named(Bounded):
    """Who calls; nothing follows from it."""

    origin: Short = ""
    integration: Short | None = None


class ScrapeBody(ScrapeOptions, _Named):
    """A page to read."""

    url: Annotated[str, Field(min_length=1, max_length=4096)]


class FirecrawlSearch(RequestBody, _Named):
    """A web search; with `scrapeOptions` the pages are read."""

    query: Annotated[Text, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    sources: Annotated[list[str | dict[str, str]], Field(max_length=5)] = ["web"]
    includeDomains: Annotated[list[Short], Field(max_length=300, fail_fast=True)] = []
    excludeDomains: Annotated[list[Short], Field(max_length=300, fail_fast=True)] = []
    tbs: Short = ""
    country: Annotated[str, Field(pattern="^([A-Za-z]{2})?$")] = Field("", description="A code of two letters.")
    timeout: int | None = Field(None, description="Without effect: the operator sets it.")
    ignoreInvalidURLs: bool = Field(False, description="Without effect.")
    scrapeOptions: ScrapeOptions | None = None


class MapBody(RequestBody, _Named):
    """A site whose addresses are wanted."""

    url: Annotated[str, Field(min_length=1, max_length=4096)]
    search: Text = Field("", description="The addresses whose links or paths promise most for it come first.")
    limit: Annotated[int, Field(ge=1, le=_MOST_ADDRESSES)] = 5_000
    includeSubdomains: bool = True
    ignoreQueryParameters: bool = False
    sitemap: Literal["include"] = "include"
    timeout: int | None = Field(None, description="Without effect: the operator sets it.")


class CrawlBody(RequestBody, _Named):
    """A site to be read."""

    url: Annotated[str, Field(min_length=1, max_length=4096)]
    limit: Annotated[int, Field(ge=1, le=MOST_PAGES)] = 100
    includePaths: Patterns = Field([], description="Texts in paths: `.*` is any text, `^` and `$` begin and end.")
    excludePaths: Patterns = []
    maxDiscoveryDepth: Annotated[int, Field(ge=0, le=50)] | None = None
    crawlEntireDomain: bool = False
    allowSubdomains: bool = False
    allowExternalLinks: Literal[False] = False
    ignoreRobotsTxt: Literal[False] = False
    ignoreQueryParameters: Literal[False] = Field(False, description="Parameters of sessions are always left out.")
    deduplicateSimilarURLs: bool = Field(True, description="Without effect: each page is read once.")
    regexOnFullURL: Literal[False] = False
    sitemap: Literal["include"] = "include"
    maxConcurrency: int | None = Field(None, description="Without effect: the operator sets it.")
    zeroDataRetention: Literal[False] = Field(False, description="Results are kept for ten minutes.")
    scrapeOptions: ScrapeOptions = Field(default_factory=ScrapeOptions)


def add_firecrawl(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    shape = Shape(server)
    crawls = Crawls(shape)
    routes = APIRouter(prefix="/v2", tags=["shapes"], responses=REFUSED)
    pages = APIRouter(prefix="/v2", tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    @pages.post("/scrape")
    async def scrape(body: ScrapeBody, request: Request, caller: Caller) -> dict[str, Any]:
        """Read a page in the formats that were asked for."""
        formats = _formats(body, request)
        addresses = shape.check_addresses([body.url], "url")

        async def work() -> LoadedPage:
            [read] = await shape.read(addresses, main=body.onlyMainContent)
            if isinstance(read, PrunusError):
                raise read
            return read

        read = await shape.during(request, caller, work)
        return {"success": True, "data": await _document(shape, read, formats, request, caller)}

    @routes.post("/map")
    async def map_of(body: MapBody, request: Request, caller: Caller) -> dict[str, Any]:
        """List the addresses of a site."""
        [address] = shape.check_addresses([body.url], "url")
        rules = SiteRules(scope="domain" if body.includeSubdomains else "host", pages=body.limit, question=body.search)
        found = await shape.during(request, caller, lambda: amap_site(address, rules, server.settings))
        urls = found.urls
        if body.ignoreQueryParameters:
            urls = list(dict.fromkeys(url.partition("?")[0] for url in urls))
        return {"success": True, "links": [{"url": url} for url in urls]}

    @routes.post("/crawl")
    async def crawl(body: CrawlBody, request: Request, caller: Caller) -> dict[str, Any]:
        """Start to read a site; ask after it at the address of the reply."""
        formats = _formats(body.scrapeOptions, request, _PLAIN)
        [address] = shape.check_addresses([body.url], "url")
        scope: Scope = "domain" if body.allowSubdomains else "host" if body.crawlEntireDomain else "prefix"
        rules = SiteRules(
            scope, tuple(map(_pattern, body.includePaths)), tuple(map(_pattern, body.excludePaths)),
            body.maxDiscoveryDepth, body.limit,
        )  # fmt: skip
        begun = crawls.start(
            caller, address, rules, body.scrapeOptions.onlyMainContent, lambda read: _written(shape, read, formats)
        )
        return {"success": True, "id": begun.id, "url": f"/v2/crawl/{begun.id}"}

    @routes.get("/crawl/{id}")
    async def crawl_status(id: str, caller: Caller) -> dict[str, Any]:
        """Tell how far a crawl is, with the pages that it has read."""
        found = crawls.find(id, caller)
        done, failed = len(found.documents), len(found.errors)
        reply = {
            "success": True, "status": found.status, "total": done + failed, "completed": done, "creditsUsed": 0,
            "expiresAt": found.expires, "data": [shape.safe(document) for document in found.documents],
        }  # fmt: skip
        return {**reply, "warning": found.warning} if found.warning else reply

    @routes.get("/crawl/{id}/errors")
    async def crawl_errors(id: str, caller: Caller) -> dict[str, Any]:
        """Tell which pages of a crawl could not be read, and why."""
        return {"errors": crawls.find(id, caller).errors, "robotsBlocked": []}

    @routes.delete("/crawl/{id}")
    async def cancel_crawl(id: str, caller: Caller) -> dict[str, Any]:
        """End a crawl."""
        crawls.cancel(crawls.find(id, caller))
        return {"status": "cancelled"}

    @routes.post("/search")
    async def search(body: FirecrawlSearch, request: Request, caller: Caller) -> dict[str, Any]:
        """Search the web."""
        options = body.scrapeOptions
        formats = _formats(options, request, (*_PLAIN, "highlights")) if options else {}
        data: dict[str, list[dict[str, Any]]] = {}
        for source in _sources(body.sources):
            wanted = SearchRequest(
                body.query, count=body.limit, topic=_CODES[source], time_range=_span(body.tbs),
                country=body.country.upper(),
                include_domains=tuple(body.includeDomains), exclude_domains=tuple(body.excludeDomains),
            )  # fmt: skip
            data[source] = await shape.during(request, caller, partial(_results, shape, wanted, options, formats))
        return {"success": True, "data": data, "creditsUsed": 0}

    app.include_router(pages)
    app.include_router(routes)


def _formats(options: ScrapeOptions, request: Request, known: Sequence[str] = (*_PLAIN, *_ASKING)) -> Formats:
    """Return the formats of a request by name, each with its fields.

    :param known: those that the route has: answers are given page by page, and not for many pages at once.
    :raises BadInput: the route lacks a format, or one lacks a field.
    :raises RequestRefused: the key may not ask.
    """
    result: dict[str, Mapping[str, Any]] = {}
    for given in options.formats:
        fields: Mapping[str, Any] = {"type": given} if isinstance(given, str) else given
        name = str(fields.get("type", ""))[:100]
        if name not in known:
            raise BadInput(
                f"formats: there is no {name or 'format without a type'!r} here; there is {', '.join(known)}",
                subject="formats",
            )
        needed = _ASKING.get(name, "")
        if needed and not fields.get(needed):
            raise BadInput(f"formats: {name} needs the field {needed}", subject="formats")
        if not isinstance(fields.get(needed, ""), dict if name == "json" else str):
            raise BadInput(f"formats: {needed} of {name} is of the wrong type", subject="formats")
        result[name] = fields
    if {"question", "json"} & result.keys():
        need_scope(request, "ask")
    return result


async def _document(shape: Shape, read: LoadedPage, formats: Formats, request: Request, caller: str) -> dict[str, Any]:
    """Return a page in the formats that were asked for."""
    answer: dict[str, Any] = {}
    if "question" in formats:
        try:
            of = await shape.answered(request, caller, formats["question"]["question"], [read.page])
            answer["answer"] = of.text
        except NothingFound as error:
            answer = {"answer": "", "warning": shape.line(error)}
    if "json" in formats:
        prompt = str(formats["json"].get("prompt") or "")
        answer["json"] = await shape.filled(request, caller, formats["json"]["schema"], prompt, read.page)

    async def work() -> dict[str, Any]:
        return await in_a_thread(lambda: _written(shape, read, formats))

    return shape.safe({**await shape.during(request, caller, work), **answer})


def _written(shape: Shape, read: LoadedPage, formats: Formats) -> dict[str, Any]:
    page, known = read.page, read.metadata
    result: dict[str, Any] = {}
    for name in formats:
        if name in ("markdown", "html"):
            result[name] = read.written("html" if name == "html" else "markdown", images=True)
        elif name == "rawHtml" and page.media_type in _HTML:
            result[name] = source_text(page)
        elif name == "links":
            result[name] = list(dict.fromkeys(link.target for link in links_of(read.tree)))
        elif name == "highlights":
            result[name] = shape.pruned(read, formats[name]["query"], EVIDENCE, "markdown").output
    metadata = {
        "title": known.title, "description": known.description, "language": known.language,
        "publishedTime": known.published, "modifiedTime": known.modified, "ogSiteName": known.site,
        "author": ", ".join(known.authors), "contentType": page.media_type, "sourceURL": read.address,
        "url": page.final_url or page.url, "statusCode": page.status,
    }  # fmt: skip
    result["metadata"] = {name: value for name, value in metadata.items() if value}
    if read.tree.warnings:
        result["warning"] = "; ".join(read.tree.warnings)
    return result


async def _results(
    shape: Shape, wanted: SearchRequest, options: ScrapeOptions | None, formats: Formats
) -> list[dict[str, Any]]:
    """Return the hits of a search; with options each with its page, or with the error that prevented it."""
    hits = await shape.hits(wanted)
    read: Sequence[LoadedPage | PrunusError | None] = [None] * len(hits)
    if options is not None:
        addresses = shape.check_addresses([hit.url for hit in hits], "scrapeOptions")
        read = await shape.read(addresses, main=options.onlyMainContent)
    return await in_a_thread(lambda: [_result(shape, hit, page, formats) for hit, page in zip(hits, read, strict=True)])


def _result(shape: Shape, hit: Hit, page: LoadedPage | PrunusError | None, formats: Formats) -> dict[str, Any]:
    result: dict[str, Any] = {"url": hit.url, "title": hit.title, "description": hit.snippet}
    if hit.published:
        result["date"] = hit.published
    if isinstance(page, LoadedPage):
        document = _written(shape, page, formats)
        result |= document | {"metadata": {**document["metadata"], "sourceURL": hit.url}}
    elif page is not None:
        result |= {"markdown": "", "metadata": {"sourceURL": hit.url, "error": shape.line(page)}}
    return shape.safe(result)


def _sources(given: Sequence[str | Mapping[str, str]]) -> list[str]:
    """Return the names of the sources of a search.

    :raises BadInput: Prunus has no such source.
    """
    names = [source if isinstance(source, str) else str(source.get("type", "")) for source in given]
    for name in names:
        if name not in _CODES:
            raise BadInput(f"sources: this server has no {name[:100]!r}; it has {', '.join(_CODES)}", subject="sources")
    return list(dict.fromkeys(names)) or ["web"]


def _pattern(text: str) -> str:
    """Return a pattern of a site for one of Firecrawl's, which are regular expressions: those of clients are not run.

    :raises BadInput: it is more than a text with ``.*``, ``^`` and ``$``.
    """
    plain = text.removeprefix("^").replace(".*", "*").replace("\\.", ".").replace("\\/", "/")
    if any(letter in plain.removesuffix("$") for letter in "[](){}|+?^$\\"):
        raise BadInput(f"paths: {text!r}: patterns have .*, ^ and $ here, and nothing else", subject="includePaths")
    return plain if text.startswith("^") or plain.startswith(("/", "*")) else f"*{plain}"


def _span(tbs: str) -> str:
    """Return the time range of a search.

    :raises BadInput: it is none that Prunus has.
    """
    if tbs and tbs not in _SPANS:
        raise BadInput(f"tbs: {tbs[:100]!r} is not one of {', '.join(_SPANS)}", subject="tbs")
    return _SPANS.get(tbs, "")
