"""A process of low priority beside the server: it answers large requests, and does the jobs of indexes.

All threads of a process share one interpreter, and the event loop waits for it at every system call. What computes for
long therefore has an interpreter of its own. The process runs the same application behind a Unix socket. It gets a
request as it arrived, once the server has admitted it, and its reply is passed on as it comes. It is ended where a
reply is overdue or its memory grows too large, and another one starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ..core.deadline import TooLong
from ..core.errors import PrunusError
from .work import BODY, LARGE, LONGEST_TURN, Busy, Left, PassedOn, Stopping, unless_left

log = logging.getLogger("prunus.serve")

CALLER: Final = "x-prunus-caller"
"""The header in which the process is told the name of a request's key."""
REQUEST_ID: Final = "x-request-id"
_GRACE: Final = 10.0
"""Seconds that a reply may be overdue."""
_MOST_MB: Final = 1024
"""Memory of the process at most, where the system tells it."""
_LOOK: Final = 1.0
"""Seconds between two looks at the process, and so between its end and another start."""
_PASSED: Final = frozenset({b"accept", b"content-type"})
"""Headers of a request that the process gets, beside those of its own that begin with ``x-``."""
_KEPT_BACK: Final = (b"x-prunus-", b"x-request-", b"x-forwarded-", b"x-real-")
_OWN: Final = frozenset({b"connection", b"transfer-encoding", b"x-request-id"})
"""Headers that each of the two connections has for itself."""

Start = Callable[[socket.socket, Connection], BaseProcess]
"""Makes the process, from the socket on which it listens and the end of a pipe by which it is told of new jobs."""


class Background:
    """The process, and the requests that it answers.

    :param make: makes the process, which is then started.
    :param seconds: wall time of a request at most, once its turn has come.
    """

    def __init__(self, make: Start, seconds: float) -> None:
        self._make, self._seconds = make, seconds
        self._folder = TemporaryDirectory(prefix="prunus-")  # only this user can open it
        place = str(Path(self._folder.name) / "socket")
        # it stays when the process ends: what connects meanwhile waits for the next one
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(place)
        self._listening.listen(1024)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        transport = httpx.AsyncHTTPTransport(uds=place, limits=limits, verify=False)
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=None,  # noqa: S113  # a reply has a deadline
        )
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._stopping = False
        self.running = 0
        """Requests that the process answers."""

    def start(self) -> BaseProcess:
        """Return the process; start it where it does not run."""
        if self._process is None:
            self._pipe, there = Pipe()
            process = self._make(self._listening, there)
            process.start()
            there.close()
            self._process = process
        return self._process

    def wake(self) -> None:
        """Tell the process that there is a new job."""
        if self._pipe is not None:
            with suppress(OSError):  # it has ended; the next one looks for jobs at its start
                self._pipe.send_bytes(b"")

    async def watch(self) -> None:
        """Start the process again where it has ended, and end it where it has grown too large; never returns."""
        while True:
            await asyncio.sleep(_LOOK)
            process = self._process
            if process is None or self._stopping:
                continue
            if process.is_alive() and memory_mb(process.pid) > _MOST_MB:
                log.error("the background process takes over %d MB; it is ended", _MOST_MB)
                self._kill(process)
            if not process.is_alive():
                log.error("the background process ended (%s); another one starts", process.exitcode)
                self._process = None
                with suppress(OSError):  # the system has no room for it; the next request tries again
                    self.start()

    def stop(self) -> None:
        """Let the process end what it does, and take no more."""
        self._stopping = True
        if self._process is not None:
            self._process.terminate()

    def end(self, seconds: float) -> None:
        """End the process, which was told to stop before, after some seconds at most."""
        if self._process is not None:
            self._process.join(seconds)
            self._kill(self._process)
        self._listening.close()
        self._folder.cleanup()

    def reply(self, request: Request, body: bytes) -> Response:
        """Return the reply of the process to a request."""
        return _Relayed(self, request, body)

    async def relay(self, request: Request, body: bytes, send: Send) -> None:
        """Let the process answer a request, and send its reply.

        Where the process ends before its reply begins, another one is asked once.

        :raises TooLong: the reply is overdue; the process was ended.
        :raises Busy: the process ended.
        :raises Stopping: the server stops.
        """
        ends = time.monotonic() + LONGEST_TURN + self._seconds + _GRACE
        for last in (False, True):
            if self._stopping:
                break
            process = self.start()
            begun = False

            async def passed(message: Any) -> None:
                nonlocal begun
                begun = True
                await send(message)

            try:
                async with asyncio.timeout(ends - time.monotonic()):
                    await self._exchange(request, body, passed)
                return
            except TimeoutError:
                log.error("a reply of the background process is overdue; it is ended")
                self._kill(process)
                error: PrunusError = TooLong(self._seconds)
            except httpx.TransportError:
                error = Busy()
            if begun:  # uvicorn closes the connection where a reply does not come to its end
                return
            if last or isinstance(error, TooLong):
                raise error
            await asyncio.sleep(_LOOK)
        raise Stopping

    async def _exchange(self, request: Request, body: bytes, send: Send) -> None:
        given = request.scope
        headers = [
            (name, value)
            for name, value in given["headers"]
            if name in _PASSED or (name.startswith(b"x-") and not name.startswith(_KEPT_BACK))
        ]
        headers += [(CALLER.encode(), request.state.caller.encode())]
        headers += [(REQUEST_ID.encode(), request.state.request_id.encode())]
        url = httpx.URL("http://background", raw_path=given["raw_path"] + b"?" + given["query_string"])
        async with self._client.stream(request.method, url, content=body, headers=headers) as reply:
            head = [(name.lower(), value) for name, value in reply.headers.raw if name.lower() not in _OWN]
            start = {"type": "http.response.start", "status": reply.status_code, "headers": head}
            if reply.headers.get("content-type", "").startswith("text/event-stream"):
                await send(start)
                async for piece in reply.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            else:
                content = await reply.aread()  # whole, so that nobody gets a part of it
                await send(start)
                await send({"type": "http.response.body", "body": content})

    @staticmethod
    def _kill(process: BaseProcess) -> None:
        process.kill()
        process.join()


class _Relayed(Response):
    """A reply that comes from the background process."""

    def __init__(self, background: Background, request: Request, body: bytes) -> None:
        self._background, self._request, self._body = background, request, body
        self.background = None  # of the framework: a task after the reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply, for as long as its client stays."""
        begun = False

        async def passed(message: Any) -> None:
            nonlocal begun
            begun = True
            await send(message)

        self._background.running += 1
        try:
            await unless_left(receive, self._background.relay(self._request, self._body, passed))
        except Left:
            if not begun:
                raise
        finally:
            self._background.running -= 1


async def background_reply(request: Request) -> Response | None:
    """Return the reply of the background process, where there is one and the request is large."""
    background: Background | None = request.app.state.server.background
    if background is None or request.method not in ("POST", "PUT"):
        return None
    try:
        body = await request.body()
    except ClientDisconnect:
        raise Left from None
    return background.reply(request, body) if len(body) > LARGE else None


class LargeRoute(APIRoute):
    """A route whose large requests are answered in the background, where the server has such a process.

    So are those whose pages turn out to be large, where others are at work.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request: before its body is parsed, it is known to be small."""
        here = super().get_route_handler()

        async def answered(request: Request) -> Response:
            if (reply := await background_reply(request)) is not None:
                return reply
            background: Background | None = request.app.state.server.background
            if background is None:
                return await here(request)
            if (size := BODY.get()) is not None:
                size.may_pass = True
            try:
                return await here(request)
            except PassedOn:
                # the body of a GET was not read, and whoever waited for its client to leave has taken it
                return background.reply(request, b"" if request.method == "GET" else await request.body())

        return answered


def memory_mb(pid: int | None) -> float:
    """Return the resident size of a process in MB; 0 where the system does not tell it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
