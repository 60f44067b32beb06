"""The two ways to the tools of the Model Context Protocol: standard input, and HTTP beside the other routes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fastapi import FastAPI
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ..core.settings import Settings
from .mcp import Tools
from .options import ServeOptions
from .server import Server, make_server

PATH: Final = "/mcp"
_MIB: Final = 1024 * 1024
_SESSIONS: Final = 1_000
"""Sessions of clients of older versions of the protocol at most; newer versions have none."""
_DRAIN: Final = 1.0
"""Seconds for threads to end when the client has gone."""


class _Endpoint:
    """The protocol over HTTP, behind the guard, as an ASGI application."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; tell the tools when its client leaves."""
        state = scope.setdefault("state", {})
        left = asyncio.Event()

        async def leaving() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        state["leaving"] = leaving
        key = state.get("key")
        if key is not None:  # a session belongs to the key that opened it
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=key.digest, scopes=[]))

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                left.set()
            return message

        await self._manager.handle_request(scope, watched, send)


def add_mcp(app: FastAPI, server: Server) -> StreamableHTTPSessionManager:
    """Add the route ``/mcp``; the application's lifespan enters ``run()`` of what this returns.

    GET is refused: the server has nothing to say that is no reply, and a stream that waits for nothing would hold up
    the end of the server.
    """
    # SIGTERM lets running calls end, as on all routes, instead of cutting their streams
    AppStatus.disable_automatic_graceful_drain()
    manager = StreamableHTTPSessionManager(
        Tools(server).protocol(),
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard's task
        max_request_body_size=server.options.body_mb * _MIB,
        max_sessions=_SESSIONS,
    )
    app.router.routes.append(Route(PATH, endpoint=_Endpoint(manager), methods=["POST", "DELETE"]))
    return manager


def serve_stdio(settings: Settings, options: ServeOptions, folders: Sequence[Path] = ()) -> None:
    """Serve on standard input and output until the input ends. Kept pages live as long as the process.

    :raises BadInput: an index is missing.
    """
    with TemporaryDirectory(prefix="prunus-mcp-") as folder:

        def ended(number: int, _: object) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(128 + number)  # a thread waits for input, and nothing else would end it

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, ended)
        server = make_server(settings, replace(options, host="127.0.0.1", state=str(Path(folder) / "state.db")))
        asyncio.run(_serve_stdio(server, folders))
    if server.workers.computing:  # a computation that nothing can cancel: the process would wait for it
        os._exit(0)


async def _serve_stdio(server: Server, folders: Sequence[Path]) -> None:
    server.workers.start()
    protocol = Tools(server, folders).protocol()
    async with stdio_server() as (incoming, outgoing):
        await protocol.run(incoming, outgoing, protocol.create_initialization_options())
    await server.workers.drain(_DRAIN)
    server.state.close()
