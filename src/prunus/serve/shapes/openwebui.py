"""Open WebUI 0.12: its external web loader, document loader and web search, as its settings "Documents" and "Web
Search" take them. Its external reranker is the shape ``rerank``.

Source: the loaders and the search of the package ``open-webui`` 0.12.4.
"""

from __future__ import annotations

from pathlib import PureWindowsPath
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, FastAPI, Request
from pydantic import Field

from ...core.errors import BadInput, PrunusError
from ...core.sync import in_a_thread
from ...core.types import Page, SearchRequest
from ...engines import formats
from ..background import LargeRoute
from ..inputs import Caller
from ..server import Server
from ..wire import MOST_PAGES, RequestBody, Text
from .reading import REFUSED, LoadedPage, Shape

_NO_TYPE = ("", "application/octet-stream")


class LoadBody(RequestBody):
    """The pages to load."""

    urls: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(min_length=1, max_length=MOST_PAGES)]


class WebuiSearch(RequestBody):
    """A web search."""

    query: Text
    count: Annotated[int, Field(ge=1, le=50)] = 5


def add_openwebui(app: FastAPI, server: Server) -> None:
    """Add ``POST /openwebui/load``, ``PUT /openwebui/process`` and ``POST /openwebui/search``."""
    shape = Shape(server)
    routes = APIRouter(prefix="/openwebui", tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    @routes.post("/load")
    async def load(body: LoadBody, request: Request, caller: Caller) -> list[dict[str, Any]]:
        """Load pages; those that cannot be read are left out, because the shape has no place for an error."""
        addresses = shape.check_addresses(body.urls, "urls")

        async def work() -> list[dict[str, Any]]:
            results = await shape.read(addresses)
            read = [one for one in results if isinstance(one, LoadedPage)]
            if not read:
                raise next(one for one in results if isinstance(one, PrunusError))
            return await in_a_thread(lambda: [_document(shape, one) for one in read])

        return await shape.during(request, caller, work)

    @routes.put("/process")
    async def process(request: Request, caller: Caller) -> dict[str, Any]:
        """Read one document, whose bytes are the body and whose name is in ``X-Filename``."""
        content = await request.body()
        name = PureWindowsPath(unquote(request.headers.get("x-filename", ""))).name[:300]
        if not content:
            raise BadInput("the body is empty: send the bytes of the document", subject="body")
        page = Page(content, url=name or "document", media_type=_media_type(request.headers.get("content-type", "")))

        async def work() -> dict[str, Any]:
            read = await in_a_thread(lambda: shape.cleaned(name, page, main=False))
            if isinstance(read, PrunusError):
                raise read
            return await in_a_thread(lambda: _document(shape, read))

        return await shape.during(request, caller, work)

    @routes.post("/search")
    async def search(body: WebuiSearch, request: Request, caller: Caller) -> list[dict[str, str]]:
        """Search the web."""
        wanted = SearchRequest(body.query, count=body.count)
        hits = await shape.during(request, caller, lambda: shape.hits(wanted))
        return [{"link": hit.url, "title": hit.title, "snippet": hit.snippet} for hit in hits]

    app.include_router(routes)


def _document(shape: Shape, read: LoadedPage) -> dict[str, Any]:
    """Return a page as Open WebUI keeps it; its store takes metadata that are plain values."""
    known = read.metadata
    metadata = {
        "source": read.address,
        "title": known.title,
        "author": ", ".join(known.authors),
        "published": known.published,
        "language": known.language,
        "description": known.description,
    }
    text = read.written("markdown")
    return shape.safe({"page_content": text, "metadata": {name: value for name, value in metadata.items() if value}})


def _media_type(said: str) -> str:
    """Return the media type that a document is read by; '' where the client does not know it: it is found out."""
    kind = said.partition(";")[0].strip().lower()
    if kind in _NO_TYPE:
        return ""
    try:
        return formats().media_type(kind)
    except BadInput:
        return ""
