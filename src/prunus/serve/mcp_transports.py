"""The two ways to the tools of the Model Context Protocol: standard input, and HTTP beside the other routes."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fastapi import FastAPI
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from sse_starlette.sse import AppStatus
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ..core.settings import Settings
from .errors import RequestRefused
from .mcp import Tools
from .options import ServeOptions
from .server import Server, make_server

PATH: Final = "/mcp"
_MIB: Final = 1024 * 1024
_SESSIONS: Final = 1_000
"""Sessions of clients of older versions of the protocol at most; newer versions have none."""
_OF_ONE: Final = 100
"""Sessions of one key at most."""
_IDLE: Final = 300.0
"""Seconds without a request after which a session ends."""
_DRAIN: Final = 1.0
"""Seconds for threads to end when the client has gone."""


class Sessions:
    """The sessions that each key has open; the protocol's package only counts those of all keys together.

    :param clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: dict[str, dict[str, float]] = {}  # by caller and id of the session: when it was used last

    def begin(self, caller: str) -> str:
        """Count a session that a caller opens; return what stands for it until it has its id.

        :raises RequestRefused: 429; the caller has as many as it may have.
        """
        least = self._clock() - _IDLE
        used = self._used[caller] = {id: at for id, at in self._used.get(caller, {}).items() if at >= least}
        if len(used) >= _OF_ONE:
            wait = max(1, int(min(used.values()) - least) + 1)
            message = f"{_OF_ONE} sessions of this key are open; end one with DELETE, or wait until one is unused"
            raise RequestRefused(429, f"{message} for {_IDLE:g} seconds", retry_after=wait)
        mark = secrets.token_hex(16)
        used[mark] = self._clock()
        return mark

    def opened(self, caller: str, mark: str, id: str) -> None:
        """Give a session its id; '' where it was not opened."""
        if self._used[caller].pop(mark, None) is not None and id:
            self._used[caller][id] = self._clock()

    def use(self, caller: str, id: str) -> None:
        """Note that a session is used; nothing happens where the caller has no such session."""
        if id in self._used.get(caller, {}):
            self._used[caller][id] = self._clock()

    def end(self, caller: str, id: str) -> None:
        """Count a session no more."""
        self._used.get(caller, {}).pop(id, None)


class _Endpoint:
    """The protocol over HTTP, behind the guard, as an ASGI application."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager, self._sessions = manager, Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; tell the tools when its client leaves.

        :raises RequestRefused: it would open one session too many of its key.
        """
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

        await self._counted(scope, watched, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and count the session that it opens, uses or ends."""
        headers, caller = Headers(scope=scope), scope["state"]["caller"]
        session = headers.get(MCP_SESSION_ID_HEADER, "")
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if not session and version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._manager.handle_request(scope, receive, send)  # this version has no sessions
            return
        mark = "" if session else self._sessions.begin(caller)
        self._sessions.use(caller, session)
        status = 0

        async def seen(message: Message) -> None:
            nonlocal status, session
            if message["type"] == "http.response.start":
                status = message["status"]
                if mark and status < 400:
                    session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
                    self._sessions.opened(caller, mark, session)
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, seen)
        finally:
            self._sessions.end(caller, mark)  # where it was not opened
            if status == 404 or (scope["method"] == "DELETE" and status < 400):
                self._sessions.end(caller, session)
            else:
                self._sessions.use(caller, session)


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
        session_idle_timeout=_IDLE,
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
        sys.stdout.flush()  # what engines printed is still buffered, and standard output is the protocol's again below
    await server.workers.drain(_DRAIN)
    server.state.close()
