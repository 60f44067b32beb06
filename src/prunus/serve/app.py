"""The application: all routes, the guard around them, and what operators look at (health, metrics, OpenAPI)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ..core.errors import PrunusError
from ..core.settings import Settings
from ..core.version import __version__
from .background import Background
from .errors import handle_errors
from .guard import STATE_SECONDS, RequestGuard
from .indexes import add_indexes
from .jobs import add_jobs
from .mcp_transports import add_mcp
from .openai import add_openai
from .options import ServeOptions
from .page.files import add_page
from .responses import add_responses
from .routes import REFUSALS, add_routes
from .server import Server, make_server
from .shapes.add import ShapedErrors, add_shapes
from .snapshot_routes import add_snapshots
from .trees import add_trees

_DRAIN: Final = 1.0
"""Seconds for threads to end when the server stops; before that, requests had their time to end."""
_JOBS_DRAIN: Final = 10.0
"""Seconds for a job to end what it has begun, so that another server can go on with it at once."""


async def _tidy(server: Server) -> None:
    """Delete old files of the request log, every hour."""
    while server.requests is not None:
        await server.workers.lookup(server.requests.delete_old)
        await asyncio.sleep(3600)


class _Ready:
    """Tells whether the state can be written, at most once a second: everyone may ask."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = asyncio.Lock()
        self._known, self._until = False, 0.0

    async def now(self) -> bool:
        """Return what was found within the last second, or try again."""
        async with self._lock:
            if time.monotonic() > self._until:
                try:
                    work = self._server.workers.lookup(self._server.state.try_writing)
                    await asyncio.wait_for(work, STATE_SECONDS)
                    self._known = True
                except (PrunusError, TimeoutError):
                    self._known = False
                self._until = time.monotonic() + 1
            return self._known


def create_app(
    settings: Settings,
    options: ServeOptions | None = None,
    background: Background | None = None,
    guard: type[RequestGuard] = RequestGuard,
) -> FastAPI:
    """Make the application.

    :param settings: the operator's settings: engines, keys of services, limits of fetching.
    :param background: the process that answers large requests and does the jobs; by default this one does both.
    :param guard: what each request passes first.
    :raises BadInput: the address can be reached from other machines, and there are no keys.
    """
    options = options or ServeOptions()
    server = make_server(settings, options, background)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        server.workers.start()
        tasks = [asyncio.create_task(_tidy(server))]
        if background is None:
            server.runner.start()
        else:
            tasks.append(asyncio.create_task(background.watch()))
            if server.runner.needed:
                background.start()
        async with mcp.run():
            yield
        for task in tasks:
            task.cancel()
        await server.runner.stop(_JOBS_DRAIN)
        await server.workers.drain(_DRAIN)
        server.state.close()

    app = FastAPI(
        title="Prunus",
        version=__version__,
        description="Evidence from web pages and documents, and answers with citations that can be checked.",
        lifespan=lifespan,
        openapi_url=None,  # it would be written anew for everyone who asks
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # such a redirect leads to whatever host the request names
    )
    app.state.server = server
    handle_errors(app, server.mask)
    add_routes(app, server)
    add_openai(app, server)
    add_responses(app, server)
    add_indexes(app, server)
    add_jobs(app, server)
    add_trees(app, server)
    add_snapshots(app, server)
    add_page(app, server)
    add_shapes(app, server, options.shapes)
    mcp = add_mcp(app, server)

    @cache
    def described() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False).encode()

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(described(), media_type="application/json")

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> dict[str, str]:
        """Tell that the process lives."""
        return {"status": "ok"}

    ready = _Ready(server)

    @app.get("/readyz", tags=["operation"], responses={503: {"description": "The state cannot be written"}})
    async def readyz() -> JSONResponse:
        """Tell whether requests can be served: whether the state can be written."""
        if not await ready.now():
            return JSONResponse({"status": "the state cannot be written"}, 503)
        return JSONResponse({"status": "ok"})

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse, responses=REFUSALS)
    async def metrics() -> Response:
        """Counts and times in Prometheus's format."""
        return Response(generate_latest(server.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    app.add_middleware(guard, server=server)
    if options.shapes:
        app.add_middleware(ShapedErrors)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["x-request-id", "retry-after", "mcp-session-id"],
        )
    return app
