"""The HTTP transports of every client: they check each request, and bound and decompress each response.

A transport sends every request of its client, redirects included, so no option of a client bypasses the
checks. It turns the errors of the HTTP library into errors of Prunus.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
import httpcore
import httpx

from .address_policy import EgressRules, Gate
from .decode import Decoder, decoder, decompress
from .errors import FetchFailed, RefusedUrl
from .network import ByteAllowance, Exchange
from .url import DEFAULT_PORTS, Url, parse_host

Raw = list[tuple[bytes, bytes]]

_ENCODED_BODY_HEADERS: Final = frozenset((b"content-encoding", b"content-length"))
"""Headers that are wrong for a decompressed body."""

LOCATION: Final = "location"
"""Key of a response's extensions for its Location header, which is removed from the headers: the HTTP library would
parse it with another URL parser."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The checks and limits of all requests of one client.

    :param endpoint: scheme, host and port that the operator allows.
    :param total: seconds of a whole exchange.
    :param read: seconds between two bytes.
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
        """Parse and check the URL of a request.

        :raises RefusedUrl: a check fails, or the HTTP library and our parser disagree about the host.
        """
        text = str(request.url)
        try:
            url = self.gate.url(text, self.endpoint)
        except RefusedUrl as error:  # without the query, which may hold a key
            raise RefusedUrl(text.partition("?")[0], error.kind, error.why, error.way_out) from None
        theirs = request.url.raw_host.decode("ascii", "replace")
        if parse_host(f"[{theirs}]" if ":" in theirs else theirs)[0] != url.host:
            raise RefusedUrl(
                text.partition("?")[0], "ambiguous", "parsers disagree about its host", "write the host plainly"
            )
        return url

    def begin(self, request: httpx.Request, url: Url) -> tuple[Exchange, httpcore.Request]:
        """Return the exchange of a request, and the request for the connection pool."""
        exchange = Exchange(url.bare, self.total, self.rules.max_wire_bytes, self.rules.max_header_bytes)
        read = ByteAllowance(self.read, exchange)
        timeout = {
            "connect": ByteAllowance(self.rules.connect_seconds, exchange),
            "read": read,
            "write": read,
            "pool": self.total,
        }
        port = None if url.port == DEFAULT_PORTS[url.scheme] else url.port
        target_url = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=port, target=url.target.encode()
        )
        extensions = {**request.extensions, "timeout": timeout}
        sent = httpcore.Request(
            request.method, target_url, headers=request.headers.raw, content=request.stream, extensions=extensions
        )
        return exchange, sent

    def check_head(self, exchange: Exchange, headers: Raw) -> tuple[_BodyReader, Raw]:
        """Check the head of a response; return the reader of its body, and the headers for the client.

        :raises FetchFailed: the headers are over their limit, or the content coding is not supported.
        """
        exchange.note_head_complete()
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self.rules.max_header_bytes:
            limit = self.rules.max_header_bytes
            raise FetchFailed(exchange.url, "headers", f"the response headers are over the limit of {limit} bytes")
        coding = b", ".join(value for name, value in headers if name.lower() == b"content-encoding")
        body_decoder = decoder(coding.decode("latin-1"), exchange.url)
        body_reader = _BodyReader(exchange, body_decoder, self.rules.max_wire_bytes, self.rules.max_bytes)
        dropped = {b"location"} if body_decoder is None else {b"location", *_ENCODED_BODY_HEADERS}
        return body_reader, [(name, value) for name, value in headers if name.lower() not in dropped]


class _BodyReader:
    """Counts and decompresses the body of one response.

    :param max_wire: bytes of the body as sent.
    :param max_size: bytes of the body after decompression.
    """

    def __init__(self, exchange: Exchange, body_decoder: Decoder | None, max_wire: int, max_size: int) -> None:
        self.exchange = exchange
        self._decoder = body_decoder
        self._max_wire, self._max_size = max_wire, max_size
        self._wire_bytes = self._bytes = 0

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of received data.

        :raises FetchFailed: the body is over a limit, or damaged.
        """
        self._wire_bytes += len(data)
        if self._wire_bytes > self._max_wire:
            raise FetchFailed(self.exchange.url, "too-large", f"more than {self._max_wire} bytes on the wire")
        for piece in [data] if self._decoder is None else decompress(self._decoder, data, self.exchange.url):
            self._bytes += len(piece)
            if self._bytes > self._max_size:
                raise FetchFailed(
                    self.exchange.url, "too-large", f"more than {self._max_size} bytes after decompression"
                )
            yield piece

    def finish(self) -> None:
        """Check that the body is complete.

        :raises FetchFailed: the compressed body ended early.
        """
        if self._decoder is not None and not self._decoder.whole():
            raise FetchFailed(self.exchange.url, "cut", "the compressed response ended early")


class AsyncTransport(httpx.AsyncBaseTransport):
    """Sends requests directly or through the operator's proxy.

    :param direct, proxied: the connection pools; ``proxied`` is None without a proxy.
    """

    def __init__(
        self, terms: Terms, direct: httpcore.AsyncConnectionPool, proxied: httpcore.AsyncConnectionPool | None
    ) -> None:
        self._terms = terms
        self._direct, self._proxied = direct, proxied

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Check and send a request; return the response with its body unread."""
        url = self._terms.checked(request)
        exchange, sent = self._terms.begin(request, url)
        is_direct = self._proxied is None or self._terms.gate.direct(url, self._terms.endpoint)
        pool = self._direct if is_direct else self._proxied
        assert pool is not None
        with _named_errors(exchange):
            with anyio.fail_after(exchange.seconds_left()):
                response = await pool.handle_async_request(sent)
            try:
                body_reader, headers = self._terms.check_head(exchange, response.headers)
            except FetchFailed:
                await response.aclose()
                raise
        return httpx.Response(
            response.status, headers=headers, stream=_AsyncBody(response, body_reader), extensions=_extensions(response)
        )

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in (self._direct, self._proxied):
            if pool is not None:
                await pool.aclose()


class Transport(httpx.BaseTransport):
    """The blocking form of :class:`AsyncTransport`."""

    def __init__(self, terms: Terms, direct: httpcore.ConnectionPool, proxied: httpcore.ConnectionPool | None) -> None:
        self._terms = terms
        self._direct, self._proxied = direct, proxied

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Check and send a request; return the response with its body unread."""
        url = self._terms.checked(request)
        exchange, sent = self._terms.begin(request, url)
        is_direct = self._proxied is None or self._terms.gate.direct(url, self._terms.endpoint)
        pool = self._direct if is_direct else self._proxied
        assert pool is not None
        with _named_errors(exchange):
            response = pool.handle_request(sent)
            try:
                body_reader, headers = self._terms.check_head(exchange, response.headers)
            except FetchFailed:
                response.close()
                raise
        return httpx.Response(
            response.status, headers=headers, stream=_Body(response, body_reader), extensions=_extensions(response)
        )

    def close(self) -> None:
        """Close every connection."""
        for pool in (self._direct, self._proxied):
            if pool is not None:
                pool.close()


class _AsyncBody(httpx.AsyncByteStream):
    """A response body: counted, decompressed, and bounded in time."""

    def __init__(self, response: httpcore.Response, body_reader: _BodyReader) -> None:
        self._response, self._body_reader = response, body_reader

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._body_reader.exchange
        stream = self._response.aiter_stream()
        with _named_errors(exchange):
            while True:
                with anyio.fail_after(exchange.seconds_left()):
                    data = await anext(stream, None)
                if data is None:
                    break
                for piece in self._body_reader.take(data):
                    yield piece
            self._body_reader.finish()

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it if part of the body is unread."""
        await self._response.aclose()


class _Body(httpx.SyncByteStream):
    """The blocking form of :class:`_AsyncBody`."""

    def __init__(self, response: httpcore.Response, body_reader: _BodyReader) -> None:
        self._response, self._body_reader = response, body_reader

    def __iter__(self) -> Iterator[bytes]:
        with _named_errors(self._body_reader.exchange):
            for data in self._response.iter_stream():
                self._body_reader.exchange.seconds_left()
                yield from self._body_reader.take(data)
            self._body_reader.finish()

    def close(self) -> None:
        """Return the connection to the pool, or close it if part of the body is unread."""
        self._response.close()


def _extensions(response: httpcore.Response) -> dict[str, Any]:
    """Return the extensions of a response that a client may see; never the connection itself."""
    known = {
        name: response.extensions[name] for name in ("http_version", "reason_phrase") if name in response.extensions
    }
    location = next((value for name, value in response.headers if name.lower() == b"location"), None)
    return known if location is None else {**known, LOCATION: location.decode("utf-8", "replace")}


@contextmanager
def _named_errors(exchange: Exchange) -> Iterator[None]:
    """Turn the errors of the HTTP library into Prunus errors that name the URL."""
    url = exchange.url
    try:
        yield
    except FetchFailed as error:
        if error.subject == url:
            raise
        raise FetchFailed(url, error.kind, error.why) from error  # a connection names only its host
    except RefusedUrl as error:
        raise RefusedUrl(
            url, error.kind, error.why, "the operator may allow it with the setting allow_hosts"
        ) from error
    except (httpcore.TimeoutException, TimeoutError) as error:
        raise _timeout_error(exchange, error) from error
    except httpcore.ProxyError as error:
        raise FetchFailed(url, "proxy", f"the proxy refused ({str(error)[:80]})") from error
    except httpcore.RemoteProtocolError as error:
        cut = "closed connection" in str(error) or "disconnected" in str(error)
        kind, why = ("cut", "the response ended early") if cut else ("protocol", "the response is not valid HTTP")
        raise FetchFailed(url, kind, f"{why} ({str(error)[:80]})") from error
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise FetchFailed(url, "protocol", f"the request cannot be sent ({str(error)[:80]})") from error
    except httpcore.NetworkError as error:
        raise FetchFailed(url, "cut", f"the connection broke ({str(error)[:80]})") from error


def _timeout_error(exchange: Exchange, error: Exception) -> FetchFailed:
    """Return the error for a timeout: the limit of the whole exchange, or of one read."""
    if isinstance(error, httpcore.PoolTimeout) or not isinstance(error, httpcore.TimeoutException):
        return exchange.timeout_error()
    return FetchFailed(exchange.url, "timeout", "the server sent nothing for too long")
