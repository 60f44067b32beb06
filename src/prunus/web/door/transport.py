"""The transports under every client: each request is checked, each answer is bounded and unpacked.

A transport sees every hop of whatever its client does, so nothing that a client is told can go round
the checks. The errors of the HTTP library become errors of Prunus here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
import httpcore
import httpx

from .decode import Decoder, decoder, unpacked
from .errors import FetchFailed, RefusedUrl
from .exchange import Allowance, Exchange
from .gate import EgressRules, Gate
from .url import DEFAULT_PORTS, Url, parse_host

Raw = list[tuple[bytes, bytes]]

_UNTRUE: Final = frozenset((b"content-encoding", b"content-length"))
"""Headers that say nothing true about an unpacked body."""

LOCATION: Final = "location"
"""Where an answer's extensions hold its Location header: the HTTP library would read it with a parser of its own."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all requests of one client.

    :param endpoint: scheme, host and port that the operator allows.
    :param seconds: for a whole exchange, and between two bytes.
    """

    gate: Gate
    endpoint: Url | None
    total: float
    read: float

    @property
    def rules(self) -> EgressRules:
        """The operator's rules."""
        return self.gate.rules

    def checked(self, request: httpx.Request) -> Url:
        """Return the URL of a request as our parser reads it.

        :raises RefusedUrl: it is refused, or the client reads it in another way.
        """
        text = str(request.url)
        try:
            url = self.gate.url(text, self.endpoint)
        except RefusedUrl as error:  # a query may hold a key, which belongs in no message
            raise RefusedUrl(text.partition("?")[0], error.kind, error.why, error.way_out) from None
        theirs = request.url.raw_host.decode("ascii", "replace")
        if parse_host(f"[{theirs}]" if ":" in theirs else theirs)[0] != url.host:
            raise RefusedUrl(
                text.partition("?")[0], "ambiguous", "its host is read in two ways", "write the host plainly"
            )
        return url

    def begin(self, request: httpx.Request, url: Url) -> tuple[Exchange, httpcore.Request]:
        """Return the exchange of a request and the request as it is sent."""
        exchange = Exchange(url.bare, self.total, self.rules.max_wire_bytes, self.rules.max_header_bytes)
        read = Allowance(self.read, exchange)
        timeout = {
            "connect": Allowance(self.rules.connect_seconds, exchange),
            "read": read,
            "write": read,
            "pool": self.total,
        }
        port = None if url.port == DEFAULT_PORTS[url.scheme] else url.port
        place = httpcore.URL(scheme=url.scheme.encode(), host=url.host.encode(), port=port, target=url.target.encode())
        extensions = {**request.extensions, "timeout": timeout}
        sent = httpcore.Request(
            request.method, place, headers=request.headers.raw, content=request.stream, extensions=extensions
        )
        return exchange, sent

    def answered(self, exchange: Exchange, headers: Raw) -> tuple[_Counter, Raw]:
        """Look at the head of an answer; return what counts its body, and the headers to hand on.

        :raises FetchFailed: too many headers, or a coding that is not read.
        """
        exchange.head_is_whole()
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self.rules.max_header_bytes:
            limit = self.rules.max_header_bytes
            raise FetchFailed(exchange.url, "headers", f"the headers of the answer are over the limit of {limit} bytes")
        coding = b", ".join(value for name, value in headers if name.lower() == b"content-encoding")
        undo = decoder(coding.decode("latin-1"), exchange.url)
        counter = _Counter(exchange, undo, self.rules.max_wire_bytes, self.rules.max_bytes)
        dropped = {b"location"} if undo is None else {b"location", *_UNTRUE}
        return counter, [(name, value) for name, value in headers if name.lower() not in dropped]


class _Counter:
    """Counts and unpacks the body of one answer."""

    def __init__(self, exchange: Exchange, undo: Decoder | None, wire: int, most: int) -> None:
        self.exchange = exchange
        self._undo = undo
        self._wire, self._most = wire, most
        self._came = self._made = 0

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the unpacked pieces of what came.

        :raises FetchFailed: over a limit, or damaged.
        """
        self._came += len(data)
        if self._came > self._wire:
            raise FetchFailed(self.exchange.url, "too-large", f"more than {self._wire} bytes on the wire")
        for piece in [data] if self._undo is None else unpacked(self._undo, data, self.exchange.url):
            self._made += len(piece)
            if self._made > self._most:
                raise FetchFailed(self.exchange.url, "too-large", f"more than {self._most} bytes after decompression")
            yield piece

    def finish(self) -> None:
        """Check that nothing is missing at the end.

        :raises FetchFailed: the compressed answer ended early.
        """
        if self._undo is not None and not self._undo.whole():
            raise FetchFailed(self.exchange.url, "cut", "the compressed answer ended early")


class AsyncTransport(httpx.AsyncBaseTransport):
    """Sends through a pool, or through the operator's proxy.

    :param direct, proxied: the pools; ``proxied`` is None without a proxy.
    """

    def __init__(
        self, terms: Terms, direct: httpcore.AsyncConnectionPool, proxied: httpcore.AsyncConnectionPool | None
    ) -> None:
        self._terms = terms
        self._direct, self._proxied = direct, proxied

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Check, send, and return the answer with its body still to come."""
        url = self._terms.checked(request)
        exchange, sent = self._terms.begin(request, url)
        straight = self._proxied is None or self._terms.gate.direct(url, self._terms.endpoint)
        pool = self._direct if straight else self._proxied
        assert pool is not None
        with _named(exchange):
            with anyio.fail_after(exchange.left()):
                answer = await pool.handle_async_request(sent)
            try:
                counter, headers = self._terms.answered(exchange, answer.headers)
            except FetchFailed:
                await answer.aclose()
                raise
        return httpx.Response(
            answer.status, headers=headers, stream=_AsyncBody(answer, counter), extensions=_extensions(answer)
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in (self._direct, self._proxied):
            if pool is not None:
                await pool.aclose()


class Transport(httpx.BaseTransport):
    """The same for threads."""

    def __init__(self, terms: Terms, direct: httpcore.ConnectionPool, proxied: httpcore.ConnectionPool | None) -> None:
        self._terms = terms
        self._direct, self._proxied = direct, proxied

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Check, send, and return the answer with its body still to come."""
        url = self._terms.checked(request)
        exchange, sent = self._terms.begin(request, url)
        straight = self._proxied is None or self._terms.gate.direct(url, self._terms.endpoint)
        pool = self._direct if straight else self._proxied
        assert pool is not None
        with _named(exchange):
            answer = pool.handle_request(sent)
            try:
                counter, headers = self._terms.answered(exchange, answer.headers)
            except FetchFailed:
                answer.close()
                raise
        return httpx.Response(
            answer.status, headers=headers, stream=_Body(answer, counter), extensions=_extensions(answer)
        )

    def close(self) -> None:
        """Close every connection."""
        for pool in (self._direct, self._proxied):
            if pool is not None:
                pool.close()


class _AsyncBody(httpx.AsyncByteStream):
    """A body that is counted, unpacked and ended in time."""

    def __init__(self, answer: httpcore.Response, counter: _Counter) -> None:
        self._answer, self._counter = answer, counter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._counter.exchange
        coming = self._answer.aiter_stream()
        with _named(exchange):
            while True:
                with anyio.fail_after(exchange.left()):
                    data = await anext(coming, None)
                if data is None:
                    break
                for piece in self._counter.take(data):
                    yield piece
            self._counter.finish()

    async def aclose(self) -> None:
        """Give the connection back, or close it where something is still to come."""
        await self._answer.aclose()


class _Body(httpx.SyncByteStream):
    """The same for threads."""

    def __init__(self, answer: httpcore.Response, counter: _Counter) -> None:
        self._answer, self._counter = answer, counter

    def __iter__(self) -> Iterator[bytes]:
        with _named(self._counter.exchange):
            for data in self._answer.iter_stream():
                self._counter.exchange.left()
                yield from self._counter.take(data)
            self._counter.finish()

    def close(self) -> None:
        """Give the connection back, or close it where something is still to come."""
        self._answer.close()


def _extensions(answer: httpcore.Response) -> dict[str, Any]:
    """Return what a client may know of an answer; never the connection itself."""
    known = {name: answer.extensions[name] for name in ("http_version", "reason_phrase") if name in answer.extensions}
    location = next((value for name, value in answer.headers if name.lower() == b"location"), None)
    return known if location is None else {**known, LOCATION: location.decode("utf-8", "replace")}


@contextmanager
def _named(exchange: Exchange) -> Iterator[None]:
    """Turn the errors of the HTTP library into ours, which name the URL."""
    url = exchange.url
    try:
        yield
    except FetchFailed as error:
        if error.subject == url:
            raise
        raise FetchFailed(url, error.kind, error.why) from error  # a connection knows its host only
    except RefusedUrl as error:
        raise RefusedUrl(
            url, error.kind, error.why, "the operator may allow it with the setting allow_hosts"
        ) from error
    except (httpcore.TimeoutException, TimeoutError) as error:
        raise _late(exchange, error) from error
    except httpcore.ProxyError as error:
        raise FetchFailed(url, "proxy", f"the proxy refused ({str(error)[:80]})") from error
    except httpcore.RemoteProtocolError as error:
        cut = "closed connection" in str(error) or "disconnected" in str(error)
        kind, why = ("cut", "the answer ended early") if cut else ("protocol", "the answer is no proper HTTP")
        raise FetchFailed(url, kind, f"{why} ({str(error)[:80]})") from error
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise FetchFailed(url, "protocol", f"the request cannot be sent ({str(error)[:80]})") from error
    except httpcore.NetworkError as error:
        raise FetchFailed(url, "cut", f"the connection broke ({str(error)[:80]})") from error


def _late(exchange: Exchange, error: Exception) -> FetchFailed:
    """Return the error for an answer that came too slowly."""
    if isinstance(error, httpcore.PoolTimeout) or not isinstance(error, httpcore.TimeoutException):
        return exchange.late()
    return FetchFailed(exchange.url, "timeout", "it sent nothing for too long")
