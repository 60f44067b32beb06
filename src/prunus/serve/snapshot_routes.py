"""The routes by which the page shows kept snapshots, and learns what it may offer."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import Response

from .errors import RequestRefused
from .inputs import Caller, index_names
from .server import Server
from .snapshots import POLICY, snapshot_id
from .wire import ChoicesResponse, ErrorResponse, ShowRequest, ShowResponse, SnapshotsResponse

_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "SAMEORIGIN",
    "Cache-Control": "private, no-store",
}


def add_snapshots(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    routes = APIRouter(
        prefix="/v1", tags=["prunus"], responses={status: {"model": ErrorResponse} for status in (400, 401, 403, 404)}
    )

    @routes.get("/choices")
    async def choices(caller: Caller) -> ChoicesResponse:
        """Tell what a question may use here: addresses, a search, indexes, and how much."""
        options, settings = server.options, server.settings
        return ChoicesResponse(
            fetch=options.fetch,
            search=bool(settings.search),
            model=bool(settings.llm),
            indexes=await index_names(server, caller),
            budget=options.budget,
            pages=options.pages,
            body_mb=options.body_mb,
        )

    @routes.get("/snapshots")
    async def snapshots(caller: Caller) -> SnapshotsResponse:
        """List the pages that are kept for this key: those that answers with `keep` cited."""
        result = await asyncio.to_thread(server.snapshots.list, caller)
        return SnapshotsResponse(snapshots=[asdict(snapshot) for snapshot in result])

    @routes.post("/snapshots/show")
    async def show(body: ShowRequest, caller: Caller) -> ShowResponse:
        """Return an address at which a browser can open a kept page in a frame, with places marked."""
        id = snapshot_id(body.document, body.snapshot)
        spans = [(place.start, place.end) for place in body.places]
        ticket = await asyncio.to_thread(server.snapshots.ticket, caller, id, spans)
        if not ticket:
            raise RequestRefused(404, "this page is not kept; ask again with keep", param="document")
        return ShowResponse(id=id, address=f"page/snapshot/{ticket}")

    app.include_router(routes)

    @app.get("/page/snapshot/{ticket}", include_in_schema=False)
    async def shown(ticket: str) -> Response:
        """Show a kept page to a browser that has a ticket for it."""
        html = await asyncio.to_thread(server.snapshots.shown, ticket)
        if html is None:
            return Response("This address is no longer good. Click the citation again.", 404, _HEADERS)
        return Response(html.encode("utf-8", "replace"), headers=_HEADERS)
