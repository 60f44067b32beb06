"""What every request passes first: size, origin, key, scope and quota; and what every response carries."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import Refused, refusal
from .keys import digest_of
from .server import Server

log = logging.getLogger("prunus.serve.access")

_MIB: Final = 1024 * 1024
_OPEN: Final = frozenset({"/healthz", "/readyz"})
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def needs(server: Server, scope: str) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that lets a request pass if its key has a scope and a quota left.

    :raises Refused: 401 without a working key, 403 without the scope, 429 above the quota.
    """

    async def check(request: Request) -> None:
        if not server.closed:
            return
        header = request.headers.get("authorization", "")
        kind, _, key = header.partition(" ")
        found = None
        if kind.lower() == "bearer" and key.strip():
            digest = digest_of(key.strip())
            found = await asyncio.to_thread(server.state.key, digest)
        if found is None:
            raise Refused(401, "this needs a key: send Authorization: Bearer KEY")
        request.state.key = found.name
        if scope not in found.scopes:
            raise Refused(403, f"the key {found.name} may not {scope}")
        limits = {"minute": found.a_minute, "day": found.a_day}
        limits = {span: most for span, most in limits.items() if most}
        if limits:
            wait = await asyncio.to_thread(server.state.count, found.name, limits, time.time())
            if wait:
                raise Refused(429, f"the key {found.name} has used its quota", retry_after=wait)

    return check


class Guard:
    """Middleware around the whole application; plain ASGI, so that streams pass unbuffered."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = secrets.token_hex(8)
        status = 500
        begun = False

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                own = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in _HEADERS if name not in own]
                message["headers"] = [*message["headers"], *extra, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            self._check(scope, headers)
            await self._app(scope, self._limited(receive), answer)
        except Refused as error:
            if not begun:
                await refusal(error)(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - started
            self._server.metrics.requests.labels(route, str(status)).inc()
            self._server.metrics.seconds.labels(route).observe(seconds)
            key = scope.get("state", {}).get("key", "-")
            log.info("%s %s %s %d %.3f s key=%s", request_id, scope["method"], route, status, seconds, key)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse what a browser sends from foreign pages, and what is too large.

        :raises Refused: always with a status of its own.
        """
        if self._server.stopping and scope["path"] not in _OPEN:
            raise Refused(503, "the server is stopping", retry_after=5)
        host = _name_of(f"//{headers.get('host', '')}")
        if self._server.options.is_local and host not in _LOCAL:
            raise Refused(403, "the Host header names another machine")  # a foreign name that leads here by DNS
        origin = headers.get("origin", "")
        if origin and origin not in self._server.options.origins and _name_of(origin) != host:
            raise Refused(403, "this origin may not call the server")
        size = headers.get("content-length", "0")
        if size.isdecimal() and len(size) < 19 and int(size) > self._server.options.body_mb * _MIB:
            raise self._too_large()

    def _limited(self, receive: Receive) -> Receive:
        """Return ``receive`` with a limit on the bytes of the body, whatever its length was said to be."""
        left = self._server.options.body_mb * _MIB

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, self._too_large().message)  # the framework hides errors of any other class
            return message

        return limited

    def _too_large(self) -> Refused:
        return Refused(413, f"the request is over {self._server.options.body_mb} MiB")


def _name_of(address: str) -> str:
    """Return the host name of an address, '' where it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
