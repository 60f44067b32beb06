"""Jina's Reader: ``/r/ADDRESS`` gives a page and ``/s/QUERY`` the pages of a search, as text or as JSON.

Source: Jina's published list of request headers for its Reader. Headers that ask for what Prunus lacks are refused by
name; ``x-question`` is our own and gives the evidence for a question instead of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from ...core.errors import BadInput, PrunusError
from ...core.sync import in_a_thread
from ...core.text.numbers import bounded_int
from ...core.types import Hit, OutputFormat, SearchRequest
from ...pages.links import links_of
from ..background import LargeRoute
from ..errors import RequestRefused
from ..inputs import Caller, budget_of
from ..server import Server
from .reading import REFUSED, LoadedPage, Shape

_LACKED: Final = (
    "x-target-selector",
    "x-remove-selector",
    "x-wait-for-selector",
    "x-set-cookie",
    "x-proxy-url",
    "x-proxy",
    "x-with-generated-alt",
    "x-locale",
    "x-user-agent",
    "x-instruction",
    "x-json-schema",
    "x-with-iframe",
    "x-with-images-summary",
    "x-keep-img-data-url",
)
_LINK_STYLES: Final = ("inlined", "discarded")
_IMAGES: Final = ("none", "all")
_FORMATS: Final[Mapping[str, OutputFormat]] = {
    "": "markdown", "content": "markdown", "markdown": "markdown", "html": "html", "text": "text",
}  # fmt: skip
_TEXT: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/plain": {}, "application/json": {}}}}
"""What the routes give, as ``Accept`` asks."""
_HITS: Final = 5
_MOST_TOKENS: Final = 10_000_000


class _Wanted:
    """What the headers of a request ask for.

    :raises BadInput: a header asks for what Prunus lacks, or cannot be read.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        for name in _LACKED:
            if headers.get(name):
                raise BadInput(f"{name}: this server cannot do that; leave the header out", subject=name)
        said = (headers.get("x-return-format") or headers.get("x-respond-with") or "").strip().lower()
        self.content = said != "no-content"
        if self.content and said not in _FORMATS:
            known = ", ".join(name for name in _FORMATS if name)
            raise BadInput(f"x-return-format: {said[:100]!r} is not one of {known}", subject="x-return-format")
        self.format = _FORMATS.get(said, "markdown")
        self.links = headers.get("x-with-links-summary", "").lower() in ("true", "all")
        self.images = _one_of(headers, "x-retain-images", _IMAGES) == "all"
        self.inline = _one_of(headers, "x-md-link-style", _LINK_STYLES) == "inlined"
        self.question = unquote(headers.get("x-question", "")).strip()
        self.site = headers.get("x-site", "").strip()
        self.as_json = "application/json" in headers.get("accept", "")
        budget = headers.get("x-token-budget", "").strip()
        self.budget = bounded_int(budget, None, least=1, most=_MOST_TOKENS) if budget else None
        if budget and self.budget is None:
            raise BadInput(f"x-token-budget: {budget[:20]!r} is no number of tokens", subject="x-token-budget")


def _one_of(headers: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """Return the value of a header, the first of the known ones where it is missing.

    :raises BadInput: it is none of them.
    """
    said = headers.get(name, "").strip().lower() or known[0]
    if said not in known:
        raise BadInput(f"{name}: {said[:100]!r} is not one of {', '.join(known)}", subject=name)
    return said


def add_jina(app: FastAPI, server: Server) -> None:
    """Add ``/r/``, ``/r/ADDRESS``, ``/s/`` and ``/s/QUERY`` to an application."""
    shape = Shape(server)
    routes = APIRouter(tags=["shapes"], responses=REFUSED)
    pages = APIRouter(tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    @pages.get("/r/{address:path}", responses=_TEXT)
    async def read(address: str, request: Request, caller: Caller) -> Response:
        """Read the page whose address follows, with its own query."""
        return await _read(shape, _address_of(request), request, caller)

    @pages.post("/r/", responses=_TEXT)
    async def read_posted(request: Request, caller: Caller) -> Response:
        """Read the page that the field `url` of the body names."""
        return await _read(shape, await _field(request, "url"), request, caller)

    @routes.get("/s/{query:path}", responses=_TEXT)
    async def search(query: str, request: Request, caller: Caller) -> Response:
        """Search the web, and read the pages."""
        return await _search(shape, query or request.query_params.get("q", ""), request, caller)

    @routes.post("/s/", responses=_TEXT)
    async def search_posted(request: Request, caller: Caller) -> Response:
        """Search for the field `q` of the body."""
        return await _search(shape, await _field(request, "q"), request, caller)

    app.include_router(routes)
    app.include_router(pages)


def _address_of(request: Request) -> str:
    """Return the address after ``/r/`` as it was sent. Some proxies make one slash of two."""
    raw: bytes = request.scope["raw_path"]
    path = raw.decode("latin-1").partition("/r/")[2]
    address = f"{path}?{request.url.query}" if request.url.query else path
    for scheme in ("https:/", "http:/"):
        if address.startswith(scheme) and not address.startswith(f"{scheme}/"):
            return f"{scheme}/{address.removeprefix(scheme)}"
    return address


async def _field(request: Request, name: str) -> str:
    """Return a field of a JSON body.

    :raises BadInput: the body is no JSON object with this text, or has other fields.
    """
    try:
        body = await request.json()
    except ValueError:
        raise BadInput("the body is not valid JSON", subject="body") from None
    if not isinstance(body, dict) or not isinstance(body.get(name), str):
        raise BadInput(f"send {{{name!r}: …}} as JSON", subject=name)
    if other := [str(field) for field in body if field != name]:
        raise BadInput(f"{other[0][:100]}: this server knows no such field; there is: {name}", subject=other[0][:100])
    return str(body[name])


async def _read(shape: Shape, address: str, request: Request, caller: str) -> Response:
    wanted = _Wanted(request.headers)
    if not address.strip():
        raise BadInput("write the address of the page after /r/", subject="url")
    [checked] = shape.check_addresses([address], "url")
    budget = _budget(shape, wanted)

    async def work() -> dict[str, Any]:
        [read] = await shape.read([checked])
        if isinstance(read, PrunusError):
            raise read
        return await in_a_thread(lambda: _page(shape, wanted, read, budget))

    data = await shape.during(request, caller, work)
    tokens = data["usage"]["tokens"]
    if wanted.budget is not None and tokens > wanted.budget:
        raise RequestRefused(
            413,
            f"the page has {tokens} tokens, and x-token-budget allows {wanted.budget}: ask for the evidence with "
            "x-question",
            param="x-token-budget",
        )
    if wanted.as_json:
        return JSONResponse(shape.safe({"code": 200, "status": 20_000, "data": data}))
    return PlainTextResponse(_text(shape.safe(data), wanted, ""))


async def _search(shape: Shape, query: str, request: Request, caller: str) -> Response:
    wanted = _Wanted(request.headers)
    if not query.strip():
        raise BadInput("write the words to search for after /s/", subject="q")
    sites = (wanted.site.removeprefix("https://").removeprefix("http://").strip("/"),) if wanted.site else ()
    sought = SearchRequest(query.strip(), count=_HITS, include_domains=sites)
    budget = _budget(shape, wanted)

    async def work() -> list[dict[str, Any]]:
        hits = await shape.hits(sought)
        reads = wanted.content and shape.server.options.fetch
        read = await shape.read([hit.url for hit in hits]) if reads else []
        pages = {one.address: one for one in read if isinstance(one, LoadedPage)}

        def told() -> list[dict[str, Any]]:
            each = None if budget is None else max(1, budget // max(1, len(hits)))
            return [_hit(shape, wanted, hit, pages.get(hit.url), each) for hit in hits]

        return await in_a_thread(told)

    results = await shape.during(request, caller, work)
    total = sum(result["usage"]["tokens"] for result in results)
    if wanted.as_json:
        reply = {"code": 200, "status": 20_000, "data": results, "meta": {"usage": {"tokens": total}}}
        return JSONResponse(shape.safe(reply))
    texts = [_text(shape.safe(result), wanted, f"[{number}] ") for number, result in enumerate(results, 1)]
    return PlainTextResponse("\n\n".join(texts) or "No results.")


def _budget(shape: Shape, wanted: _Wanted) -> int | None:
    """Return the budget of the evidence; that of a page is compared when the page is written."""
    return budget_of(wanted.budget, shape.server.options) if wanted.question else None


def _hit(shape: Shape, wanted: _Wanted, hit: Hit, read: LoadedPage | None, budget: int | None) -> dict[str, Any]:
    """Return a result of a search; of a page that was not read it has the provider's snippet."""
    if read is None:
        found = {"title": hit.title, "url": hit.url, "description": hit.snippet, "content": "", "usage": {"tokens": 0}}
        return {**found, "publishedTime": hit.published} if hit.published else found
    return {**_page(shape, wanted, read, budget), "description": hit.snippet or read.metadata.description}


def _page(shape: Shape, wanted: _Wanted, read: LoadedPage, budget: int | None) -> dict[str, Any]:
    """Return a page as the fields of the JSON reply."""
    known = read.metadata
    if wanted.question:
        text = shape.pruned(read, wanted.question, budget, wanted.format).output
    else:
        text = read.written(wanted.format, links=wanted.inline, images=wanted.images)
    page: dict[str, Any] = {
        "title": known.title, "url": read.tree.url, "description": known.description, "content": text,
    }  # fmt: skip
    if known.published:
        page["publishedTime"] = known.published
    if wanted.links:
        page["links"] = {link.text or link.target: link.target for link in links_of(read.tree)}
    warnings = list(read.tree.warnings)
    return {
        **page,
        **({"warning": "; ".join(warnings)} if warnings else {}),
        "usage": {"tokens": shape.server.tokens(text)},
    }


def _text(page: Mapping[str, Any], wanted: _Wanted, mark: str) -> str:
    """Return a page as text with its title, address and date before it.

    :param mark: stands before the lines about one of several pages.
    """
    lines = [f"{mark}Title: {page['title']}", f"{mark}URL Source: {page['url']}"]
    if page.get("publishedTime"):
        lines.append(f"{mark}Published Time: {page['publishedTime']}")
    if mark:
        lines.append(f"{mark}Description: {page['description']}")
    if page.get("warning"):
        lines.append(f"{mark}Warning: {page['warning']}")
    if page["content"]:
        name = "Markdown Content" if wanted.format == "markdown" else "Content"
        lines.append(f"{mark}{name}:\n{page['content']}")
    if page.get("links"):
        lines.append("Links/Buttons:\n" + "\n".join(f"- [{text}]({to})" for text, to in page["links"].items()))
    return "\n\n".join(lines)
