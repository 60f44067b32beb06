"""The local proxy between a browser and the network: the egress door resolves, checks and dials every host.

The proxy serves one page, on a free loopback port. A random password that only the browser gets keeps other
programs of this machine from using it as a tunnel. TLS connections pass through end to end; plain HTTP is
forwarded one request at a time. The proxy counts the bytes of both directions and closes every connection
when the allowance is used up.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import secrets
from collections.abc import Coroutine
from typing import Final, Protocol

from ...core.errors import BadInput, OutsideFailed, PrunusError
from ...core.text.numbers import bounded_int
from .url import Url

_HEAD_BYTES: Final = 64 * 1024
_HEAD_SECONDS: Final = 15.0  # for the browser to send the head of a request
_IDLE_SECONDS: Final = 60.0  # of silence before a connection is closed
_CHUNK: Final = 64 * 1024
_DIGITS: Final = re.compile(r"[0-9]+")  # of a port or a length; no sign and no space
_MOST_BODY: Final = 10**15  # bytes
_MOST_CONNECTIONS: Final = 128
_MOST_REFUSED: Final = 200  # hosts of a page that are recorded, in refused and in failed
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_HOP: Final = frozenset(
    """connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade host""".split()
)
_BAD, _LOGIN, _REFUSED, _LENGTH, _BUSY, _FAILED = 400, 407, 403, 411, 503, 502
_REASONS: Final = {
    _BAD: "Bad Request",
    _LOGIN: 'Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="prunus"',
    _REFUSED: "Forbidden",
    _LENGTH: "Length Required",
    _BUSY: "Service Unavailable",
    _FAILED: "Bad Gateway",
}

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class CheckingDoor(Protocol):
    """The part of the egress door that the proxy uses."""

    def check_url(self, url: str) -> Url:
        """Parse and check a URL, or raise RefusedUrl."""
        ...

    async def dial(self, host: str, port: int, *, seconds: float = 0.0) -> Streams:
        """Open a connection to a checked address, or raise RefusedUrl or FetchFailed."""
        ...


class _RefusedRequest(Exception):
    """Ends a request with an HTTP status of the proxy itself.

    :param tunnel: the request was a CONNECT.
    """

    def __init__(self, status: int, *, tunnel: bool = False) -> None:
        super().__init__(str(status))
        self.status = status
        self.tunnel = tunnel


class PinningProxy:
    """A proxy for one page; an async context manager.

    :param door: resolves, checks and dials.
    :param max_bytes: bytes that may pass, both directions together.
    :ivar refused: hosts that the door refused, each with the reason.
    :ivar failed: hosts that could not be reached, each with the reason.
    :ivar bytes: bytes that have passed.
    """

    def __init__(self, door: CheckingDoor, max_bytes: int) -> None:
        self._door = door
        self.max_bytes = max_bytes
        self.username = "prunus"
        self.password = secrets.token_urlsafe(32)
        self.refused: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.bytes = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        token = base64.b64encode(f"{self.username}:{self.password}".encode())
        self._expected = b"basic " + token

    @property
    def url(self) -> str:
        """The proxy's own URL."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    @property
    def exhausted(self) -> bool:
        """Whether the allowance of bytes is used up."""
        return self.bytes > self.max_bytes

    async def __aenter__(self) -> PinningProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._server.wait_closed(), 5.0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the browser: one request, or one tunnel."""
        try:
            if len(self._tasks) > _MOST_CONNECTIONS or self.exhausted:
                raise _RefusedRequest(_BUSY)
            await self._request(reader, writer)
        except _RefusedRequest as refusal:
            if refusal.status in (_REFUSED, _FAILED) and not refusal.tunnel:
                return  # without a response every script sees an error; a status of ours would look like the site's
            writer.write(f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}\r\n".encode())
            writer.write(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), 5.0)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a side closed or stayed silent: closing the connection tells the browser
        finally:
            await _close(writer)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read a request, check its password and its target, and forward it."""
        method, target, headers = await _read_head(reader)
        credentials = next((value for name, value in headers if name == "proxy-authorization"), "")
        if not secrets.compare_digest(_scheme_lowered(credentials), self._expected):
            raise _RefusedRequest(_LOGIN)
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            number = bounded_int(port, 0, most=65_536)
            if not _DIGITS.fullmatch(port) or number > 65_535:
                raise _RefusedRequest(_BAD)
            upstream = await self._dial(target, host, number, tunnel=True)
            await self._closing_after(upstream, self._tunnel(reader, writer, upstream))
            return
        if method not in _METHODS or not target.lower().startswith("http://"):
            raise _RefusedRequest(_BAD)
        if any(name == "transfer-encoding" for name, _ in headers):
            raise _RefusedRequest(_LENGTH)
        length = _length(headers)
        try:
            url = self._door.check_url(target)
        except BadInput as error:
            raise self._refuse(_host_of(target), error) from error
        upstream = await self._dial(url.netloc, url.host, url.port)
        head = [f"{method} {url.target} HTTP/1.1", f"Host: {url.netloc}", "Connection: close"]
        head += [f"{name}: {value}" for name, value in headers if name not in _HOP]
        start = "\r\n".join([*head, "", ""]).encode("latin-1")
        await self._closing_after(upstream, self._exchange(reader, writer, upstream, start, length))

    async def _dial(self, host_and_port: str, host: str, port: int, *, tunnel: bool = False) -> Streams:
        """Open a connection through the door, or refuse the request as the door does."""
        try:
            return await self._door.dial(host, port)
        except BadInput as error:
            raise self._refuse(host_and_port, error, tunnel=tunnel) from error
        except OutsideFailed as error:
            if len(self.failed) < _MOST_REFUSED:
                self.failed[host_and_port] = str(error)
            raise _RefusedRequest(_FAILED, tunnel=tunnel) from error

    def _refuse(self, host_and_port: str, error: PrunusError, *, tunnel: bool = False) -> _RefusedRequest:
        if len(self.refused) < _MOST_REFUSED:
            self.refused[host_and_port] = str(error)
        return _RefusedRequest(_REFUSED, tunnel=tunnel)

    async def _closing_after(self, upstream: Streams, work: Coroutine[object, object, None]) -> None:
        """Await work that uses an upstream connection, then close the connection, also after an error."""
        try:
            await work
        finally:
            await _close(upstream[1])

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Streams) -> None:
        """Forward bytes in both directions until one side closes."""
        writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        upward = asyncio.ensure_future(self._pump(reader, upstream[1]))
        downward = asyncio.ensure_future(self._pump(upstream[0], writer))
        try:
            await asyncio.wait((upward, downward), return_when=asyncio.FIRST_COMPLETED)
            # the browser has sent everything, but the response may still be arriving
            if upward.done() and not downward.done():
                await asyncio.wait((downward,), timeout=_IDLE_SECONDS)
        finally:
            upward.cancel()
            downward.cancel()
            await asyncio.gather(upward, downward, return_exceptions=True)

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Streams, start: bytes, length: int
    ) -> None:
        """Forward one request with its body, and return its response; the connection serves no other request."""
        upstream[1].write(start)
        self.bytes += len(start)
        sending = asyncio.ensure_future(self._pump(reader, upstream[1], length))
        try:
            await self._forward_response(upstream[0], writer)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _forward_response(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a response with the header ``Connection: close``."""
        while True:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _IDLE_SECONDS)
            self.bytes += len(head)
            first, *lines = head[:-4].split(b"\r\n")
            status_line = first.split()
            if len(status_line) < 2 or not status_line[0].startswith(b"HTTP/1") or status_line[1] == b"101":
                raise _RefusedRequest(_FAILED)
            if not status_line[1].startswith(b"1"):
                break  # 1xx responses are interim: the final one follows
        ours = (b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"alt-svc")
        kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in ours]
        writer.write(b"\r\n".join([first, *kept, b"Connection: close", b"", b""]))
        await self._pump(reader, writer, _body_length(status_line[1], lines))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int = -1) -> None:
        """Forward bytes until the sender closes, ``length`` bytes have passed, a timeout, or the allowance is used up.

        :param length: -1 for no bound.
        """
        try:
            while length and not self.exhausted:
                size = _CHUNK if length < 0 else min(_CHUNK, length)
                data = await asyncio.wait_for(reader.read(size), _IDLE_SECONDS)
                if not data:
                    break
                self.bytes += len(data)
                length -= len(data) if length > 0 else 0
                writer.write(data)
                await asyncio.wait_for(writer.drain(), _IDLE_SECONDS)
        except (OSError, TimeoutError):
            return  # ends the tunnel like a broken connection
        if length < 0 and writer.can_write_eof() and not writer.is_closing():
            with contextlib.suppress(OSError):
                writer.write_eof()


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, list[tuple[str, str]]]:
    """Read a request's method, target and headers (lower-case names)."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    request_line = first.split(" ")
    if len(request_line) != 3 or not request_line[2].startswith("HTTP/1."):
        raise _RefusedRequest(_BAD)
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or not name or any(letter in value for letter in "\r\n\0"):
            raise _RefusedRequest(_BAD)
        headers.append((name.lower(), value.strip()))
    return request_line[0], request_line[1], headers


def _length(headers: list[tuple[str, str]]) -> int:
    """Return the length of a request's body in bytes."""
    values = {value for name, value in headers if name == "content-length"}
    if not values:
        return 0
    text = values.pop()
    length = bounded_int(text, 0, most=_MOST_BODY)
    if values or not _DIGITS.fullmatch(text) or length == _MOST_BODY:
        raise _RefusedRequest(_BAD)
    return length


def _body_length(status: bytes, lines: list[bytes]) -> int:
    """Return the length of a response's body by its head; -1 if the body ends with the connection."""
    if status in (b"204", b"304"):
        return 0
    fields = [line.partition(b":") for line in lines]
    values = {value.strip() for name, _, value in fields if name.strip().lower() == b"content-length"}
    has_transfer_encoding = any(name.strip().lower() == b"transfer-encoding" for name, _, _ in fields)
    text = values.pop().decode("latin-1") if len(values) == 1 and not has_transfer_encoding else ""
    length = bounded_int(text, 0, most=_MOST_BODY)
    return length if _DIGITS.fullmatch(text) and length < _MOST_BODY else -1


def _scheme_lowered(value: str) -> bytes:
    """Return credentials with their scheme in lower case."""
    scheme, _, rest = value.partition(" ")
    return f"{scheme.lower()} {rest.strip()}".encode("latin-1", "replace")


def _host_of(target: str) -> str:
    """Return the host part of a request's target, for a message."""
    return target.partition("//")[2].partition("/")[0][:300]


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; wait at most a second for the peer."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 1.0)
