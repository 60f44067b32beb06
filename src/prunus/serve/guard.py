"""What every request passes first: origin, key, scope, quota and size; and what every response carries."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..core.errors import PrunusError
from .background import CALLER, REQUEST_ID
from .errors import RequestRefused, error_body, note_bug, refusal
from .keys import NO_KEY, digest_of
from .server import Server
from .work import BODY, RequestSize

log = logging.getLogger("prunus.serve.access")

_MIB: Final = 1024 * 1024
_BODY_SECONDS: Final = 30.0
"""Seconds in which a client must have sent its request."""
_SPARE: Final = 128
"""Requests at most besides those that are worked on or wait for their turn; each may hold a body."""
_BODIES: Final = 4
"""The bodies of all requests at hand may hold so many times what one may; those of one key half of it."""
STATE_SECONDS: Final = 10.0
"""Seconds in which the state must answer."""
_OPEN: Final = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})
_OPEN_FOLDER: Final = "/page/"
"""The files of the web page."""
_SCOPES: Final = {
    "/v1/clean": "read", "/v1/prune": "read", "/v1/check": "read", "/v1/map": "read",
    "/v1/search": "search", "/metrics": "read",
    "/v1/choices": "", "/mcp": "", "/v2/scrape": "read", "/v2/map": "read", "/v2/search": "search",
    "/tavily/search": "search", "/tavily/extract": "read", "/md": "read", "/openwebui/load": "read",
    "/openwebui/process": "read", "/openwebui/search": "search", "/v1/rerank": "read", "/v2/rerank": "read",
}  # fmt: skip
"""The scope of a route, '' for any: each tool of ``/mcp`` checks its own. Changes of indexes and all about jobs need
``index``, all others ``ask``. Shapes that answer a question need ``ask``, too."""
_SCOPES_BELOW: Final = {"/v2/crawl": "read", "/r/": "read", "/s/": "search"}
"""The scope of all routes whose paths begin so."""
_QUESTIONS: Final = ("/ask", "/retrieved")
"""Ends of the routes of an index that change nothing."""
_NOT_COUNTED: Final = ("/v1/models", "/v1/choices", "/v1/snapshots", "/v1/jobs", "/metrics")
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class RequestGuard:
    """Middleware around the whole application; plain ASGI, so that streams pass unbuffered."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self._server = app, server
        self._running = 0
        self._most = server.options.at_once + server.options.waiting + _SPARE
        self._bytes: Counter[str] = Counter()  # of the bodies at hand, by the key of their request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = self._id_of(headers)
        key = NO_KEY
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in _HEADERS if name not in own]
                message["headers"] = [*message["headers"], *extra, (b"x-request-id", request_id.encode())]
            await send(message)

        body = RequestSize()
        BODY.set(body)
        takes_place = not _is_open(scope["path"])
        self._running += takes_place
        try:
            if takes_place and self._running > self._most:
                raise RequestRefused(503, "the server is busy; try again soon", retry_after=2)
            self._check(headers, scope["path"])
            key = await self._admitted(scope, headers)
            scope.setdefault("state", {}).update(caller=key, request_id=request_id)
            await self._app(scope, self._limited(receive, key, body), answer)
        except RequestRefused as error:
            await refusal(error)(scope, receive, answer)
        except Exception as error:
            note_bug(error, request_id)
            if not status:
                await JSONResponse(error_body(error, self._server.mask), 500)(scope, receive, answer)
        finally:
            self._running -= takes_place
            self._bytes -= Counter({key: body.size})
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - started
            self._server.metrics.requests.labels(route, str(status)).inc()
            self._server.metrics.seconds.labels(route).observe(seconds)
            log.info("%s %s %s %d %.3f s key=%s", request_id, scope["method"], route, status, seconds, key)

    def _id_of(self, headers: dict[str, str]) -> str:
        """Return a new name of a request, by which the log and the client know it."""
        return secrets.token_hex(8)

    def _check(self, headers: dict[str, str], path: str) -> None:
        """Refuse what a browser sends from foreign pages, and what is too large.

        :raises RequestRefused: always with a status of its own.
        """
        options = self._server.options
        host = headers.get("host", "")
        if not self._server.closed and _name_of(f"//{host}") not in _LOCAL | {options.host.strip("[]")}:
            raise RequestRefused(403, "the Host header names another machine")  # a foreign name that leads here by DNS
        origin = headers.get("origin", "")
        # a picture or a link of a foreign page sends no Origin
        foreign = headers.get("sec-fetch-site") == "cross-site" and not origin and not _is_open(path)
        if foreign or (origin and origin not in options.origins and origin.partition("://")[2] != host):
            raise RequestRefused(403, "this origin may not call the server")
        size = headers.get("content-length", "0")
        if not size.isdecimal() or len(size) > 18 or int(size) > options.body_mb * _MIB:
            raise self._too_large()

    async def _admitted(self, scope: Scope, headers: dict[str, str]) -> str:
        """Return the name of the request's key, ``-`` where none is needed. Nothing of the body is read before.

        :raises RequestRefused: 401 without a working key, 403 without the scope, 429 above the quota.
        """
        path, state, lookup = scope["path"], self._server.state, self._server.workers.lookup
        preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if not self._server.closed or _is_open(path) or preflight:
            return NO_KEY
        kind, _, key = headers.get("authorization", "").partition(" ")
        try:
            digest = digest_of(key.strip()) if kind.lower() == "bearer" and key.strip() else ""
            result = await asyncio.wait_for(lookup(partial(state.key, digest)), STATE_SECONDS) if digest else None
            if result is None:
                why = "this key does not work" if digest else "this needs a key: send Authorization: Bearer KEY"
                raise RequestRefused(401, why)
            wanted = _wanted(path, scope["method"])
            if wanted and not set(wanted) & set(result.scopes):
                raise RequestRefused(403, f"the key {result.name} may not {wanted[0]}")
            limits = {span: most for span, most in (("minute", result.a_minute), ("day", result.a_day)) if most}
            if limits and not path.startswith(_NOT_COUNTED):
                count = partial(state.count, result.name, limits, time.time())
                wait = await asyncio.wait_for(lookup(count), STATE_SECONDS)
                if wait:
                    raise RequestRefused(429, f"the key {result.name} has used its quota", retry_after=wait)
        except (PrunusError, TimeoutError) as error:
            logging.getLogger("prunus.serve").error("the state cannot be read: %s", str(error) or "no answer in time")
            raise RequestRefused(503, "the server cannot check keys now; try again soon", retry_after=5) from None
        scope.setdefault("state", {})["key"] = result
        return result.name

    def _limited(self, receive: Receive, key: str, body: RequestSize) -> Receive:
        """Return ``receive`` with limits on the bytes of this body and of all at hand, and on the time to send it."""
        most = self._server.options.body_mb * _MIB
        ends = time.monotonic() + _BODY_SECONDS
        whole = False

        async def limited() -> Message:
            nonlocal whole
            if whole:  # what comes now is the client's leaving, which has no time limit
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, ends - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the request took over {_BODY_SECONDS:g} seconds to arrive") from None
            size = len(message.get("body", b""))
            body.size += size
            self._bytes[key] += size
            whole = not message.get("more_body", False)
            if body.size > most:
                raise HTTPException(413, self._too_large().message)  # the framework hides errors of any other class
            share = most * _BODIES if key == NO_KEY else most * _BODIES // 2
            if self._bytes[key] > share or self._bytes.total() > most * _BODIES:
                raise HTTPException(503, "the server is busy; try again soon", {"Retry-After": "2"})
            return message

        return limited

    def _too_large(self) -> RequestRefused:
        return RequestRefused(413, f"the request is over {self._server.options.body_mb} MiB")


class FrontGuard(RequestGuard):
    """What a request passes in the background process: the server has admitted it, and says for whom."""

    def _id_of(self, headers: dict[str, str]) -> str:
        return headers[REQUEST_ID]

    def _check(self, headers: dict[str, str], path: str) -> None:
        """Check nothing again."""

    async def _admitted(self, scope: Scope, headers: dict[str, str]) -> str:
        return headers[CALLER]


def _is_open(path: str) -> bool:
    """Tell whether a route needs no key. Its replies are small and at hand, so that it takes no place either."""
    return path in _OPEN or path.startswith(_OPEN_FOLDER)


def _wanted(path: str, method: str) -> tuple[str, ...]:
    """Return the scopes of which a request needs one; () where any key will do."""
    if path.startswith("/v1/jobs"):
        return ("index",)
    asks = method == "POST" and path.endswith(_QUESTIONS)
    if path.startswith("/v1/indexes") and not asks:
        return ("ask", "index") if method in ("GET", "HEAD") else ("index",)
    below = (scope for start, scope in _SCOPES_BELOW.items() if path.startswith(start))
    scope = _SCOPES.get(path) if path in _SCOPES else next(below, "ask")
    return (scope,) if scope else ()


def _name_of(address: str) -> str:
    """Return the host name of an address, '' where it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
