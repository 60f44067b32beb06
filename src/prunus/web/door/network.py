"""Connections: resolve a name once, check every address, and connect to a checked address.

Each exchange has limits in time and bytes, which are enforced at every read of its connection, of asynchronous and of
blocking clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from typing import Any, Final, TypeAlias

import anyio
import httpcore

from .address_policy import Gate
from .addresses import Address
from .errors import FetchFailed, RefusedUrl
from .url import Url, parse_host

READ_SIZE: Final = 64 * 1024
"""Bytes of one read; an HTTP library may read this much ahead, so limits on the wire allow for it."""


class Exchange:
    """One request and its response, with a deadline and an allowance of bytes.

    :param url: for messages; without its query, which may hold a key.
    :param seconds: time limit of the whole exchange.
    :param wire: bytes that may be read, framing included.
    :param head: bytes that may be read before the response head is complete.
    """

    def __init__(self, url: str, seconds: float, wire: int, head: int) -> None:
        self.url = url
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self._wire = wire + head + READ_SIZE
        self._head = head + READ_SIZE
        self._in_head = True
        self._taken = 0

    def seconds_left(self) -> float:
        """Return the remaining seconds.

        :raises FetchFailed: the deadline has passed.
        """
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise self.timeout_error()
        return remaining

    def timeout_error(self) -> FetchFailed:
        """Return the error for an exchange past its deadline."""
        return FetchFailed(self.url, "timeout", f"not finished within {self.seconds:g} s")

    def count(self, size: int) -> None:
        """Count received bytes.

        :raises FetchFailed: the exchange is over its limit.
        """
        self._taken += size
        if self._in_head and self._taken > self._head:
            raise FetchFailed(self.url, "headers", "the response headers are over the limit")
        if self._taken > self._wire:
            raise FetchFailed(self.url, "too-large", "the response is over the limit of bytes on the wire")

    def note_head_complete(self) -> None:
        """Note that the response head is complete, which lifts the limit on its size."""
        self._in_head = False


class ByteAllowance(float):
    """The timeout of one operation with its exchange; a float, so that the HTTP library hands it to the connection."""

    exchange: Exchange

    def __new__(cls, seconds: float, exchange: Exchange) -> ByteAllowance:
        """Make the timeout of an operation of an exchange."""
        allowance = super().__new__(cls, seconds)
        allowance.exchange = exchange
        return allowance


def seconds_left(timeout: float | None) -> float | None:
    """Return the timeout of one operation, at most the remaining seconds of its exchange.

    :raises FetchFailed: the deadline of the exchange has passed.
    """
    return min(float(timeout), timeout.exchange.seconds_left()) if isinstance(timeout, ByteAllowance) else timeout


def count_bytes(timeout: float | None, count: int) -> None:
    """Count received bytes for the exchange of an operation.

    :raises FetchFailed: the exchange is over its limit.
    """
    if isinstance(timeout, ByteAllowance):
        timeout.exchange.count(count)


Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""``(host, port) -> addresses``; blocks; raises OSError if the name does not resolve."""

TRIES: Final = 4
"""Most addresses of one host that are tried."""


def system_resolver(host: str, port: int) -> list[str]:
    """Resolve a name with the system's resolver.

    :raises OSError: the name does not resolve.
    """
    answers = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class Dialler:
    """Resolves hosts, checks their addresses and orders them, for one client.

    :param endpoint: host and port that the operator allows for this client.
    :param only: the operator's proxy; if set, no other host and port is dialled.
    """

    def __init__(self, gate: Gate, resolver: Resolver, endpoint: Url | None = None, only: Url | None = None) -> None:
        self._gate = gate
        self._resolver = resolver
        self._endpoint = only or endpoint
        self.only = only

    def checked(self, host: str, port: int, answers: Sequence[str]) -> list[Address]:
        """Check resolved addresses and return those to dial, in order.

        :raises RefusedUrl: one of them is internal.
        :raises FetchFailed: the name has no address.
        """
        addresses = self._gate.addresses(host, port, answers, self._endpoint)
        if not addresses:
            raise FetchFailed(host, "dns", "the name has no address")
        return _dialling_order(addresses)[:TRIES]

    def literal(self, host: str, port: int) -> list[str]:
        """Return the address of a host that is written as an address; an empty list for a name.

        :raises RefusedUrl: the host is not in the parser's canonical form, or this client may not dial it.
        """
        if self.only is not None and (host, port) != (self.only.host, self.only.port):
            raise RefusedUrl(host, "host", "this connection is for the proxy alone", "use another client")
        name, address = parse_host(f"[{host}]" if ":" in host else host)
        if name != host:
            raise RefusedUrl(host, "ambiguous", f"this is another spelling of {name}", f"write {name}")
        return [str(address)] if address is not None else []

    async def addresses(self, host: str, port: int, seconds: float | None) -> list[Address]:
        """Resolve a host once and check all its addresses, like :meth:`checked`."""
        answers: Sequence[str] = self.literal(host, port)
        if not answers:
            loop = asyncio.get_running_loop()
            outcome: asyncio.Future[Sequence[str] | Exception] = loop.create_future()

            def set_outcome(answers_or_error: Sequence[str] | Exception) -> None:
                if not outcome.done():
                    outcome.set_result(answers_or_error)

            def report(answers_or_error: Sequence[str] | Exception) -> None:
                with contextlib.suppress(RuntimeError):  # the event loop has ended; nobody waits
                    loop.call_soon_threadsafe(set_outcome, answers_or_error)

            self._resolve_in_thread(host, port, report)
            try:
                async with asyncio.timeout(seconds):
                    answers = _answers_or_raise(host, await outcome)
            except TimeoutError as error:
                raise _resolver_timeout(host, seconds) from error
        return self.checked(host, port, answers)

    def addresses_blocking(self, host: str, port: int, seconds: float | None) -> list[Address]:
        """The blocking form of :meth:`addresses`."""
        answers: Sequence[str] = self.literal(host, port)
        if not answers:
            outcome: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()
            self._resolve_in_thread(host, port, outcome.put)
            try:
                answers = _answers_or_raise(host, outcome.get(timeout=seconds))
            except queue.Empty as error:
                raise _resolver_timeout(host, seconds) from error
        return self.checked(host, port, answers)

    def _resolve_in_thread(self, host: str, port: int, report: Callable[[Sequence[str] | Exception], None]) -> None:
        """Call the resolver in a daemon thread, because the system's resolver has no timeout."""

        def run() -> None:
            try:
                answers_or_error: Sequence[str] | Exception = self._resolver(host, port)
            except Exception as error:  # raised by the waiting caller
                answers_or_error = error
            report(answers_or_error)

        threading.Thread(target=run, name=f"resolve {host}", daemon=True).start()


def _answers_or_raise(host: str, answers_or_error: Sequence[str] | Exception) -> Sequence[str]:
    """Return the resolver's addresses, or raise its error."""
    if isinstance(answers_or_error, OSError):
        reason = answers_or_error.strerror or answers_or_error
        raise FetchFailed(host, "dns", f"the name does not resolve ({reason})") from answers_or_error
    if isinstance(answers_or_error, Exception):
        raise answers_or_error
    return answers_or_error


def _resolver_timeout(host: str, seconds: float | None) -> FetchFailed:
    """Return the error for a resolver that exceeded its time limit."""
    return FetchFailed(host, "dns", f"the name did not resolve within {seconds or 0:g} s")


def _dialling_order(addresses: list[Address]) -> list[Address]:
    """Order addresses for dialling: an IPv4 address second, because broken IPv6 fails only after a timeout."""
    ipv4 = [address for address in addresses if isinstance(address, IPv4Address)]
    ipv6 = [address for address in addresses if not isinstance(address, IPv4Address)]
    if not ipv6 or not ipv4 or isinstance(addresses[0], IPv4Address):
        return addresses
    return [ipv6[0], *ipv4[:1], *ipv6[1:], *ipv4[1:]]


def share(left: float | None, tries: int) -> float | None:
    """Return the timeout of the next attempt, so that a silent address leaves time for the others.

    :param left: remaining seconds of all attempts; None without a limit.
    :param tries: remaining attempts.
    """
    return None if left is None else max(left / tries, min(left, 2.0))


def unreachable(host: str, port: int, error: BaseException) -> FetchFailed:
    """Return the error for a host that accepts no connection."""
    reason = "no answer" if isinstance(error, httpcore.TimeoutException | TimeoutError) else str(error)
    return FetchFailed(host, "connect", f"cannot connect to port {port} ({reason})")


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that a :class:`Dialler` has checked."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *rest: Any, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a checked address of a host."""
        addresses = await self._dialler.addresses(host, port, seconds_left(timeout))
        last_error: Exception = OSError("no address")
        with anyio.move_on_after(seconds_left(timeout)) as scope:
            for number, address in enumerate(addresses):
                remaining = scope.deadline - anyio.current_time()
                try:
                    seconds = share(remaining, len(addresses) - number)
                    return AsyncStream(await self._inner.connect_tcp(str(address), port, seconds))
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    last_error = error
        raise unreachable(host, port, last_error) from last_error

    async def connect_unix_socket(self, path: str, *rest: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        """Refuse: a Unix socket reaches services of this machine."""
        raise RefusedUrl(path, "scheme", "Unix sockets are not allowed", "use http")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


class AsyncStream(httpcore.AsyncNetworkStream):
    """An async connection; no operation outlasts its exchange.

    :param counts: whether bytes are counted; False if several exchanges share the connection (HTTP/2).
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream, counts: bool = True) -> None:
        self._inner = inner
        self._counts = counts

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return received bytes, at most ``max_bytes``."""
        data = await self._inner.read(max_bytes, seconds_left(timeout))
        if self._counts:
            count_bytes(timeout, len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send the whole buffer."""
        await self._inner.write(buffer, seconds_left(timeout))

    async def aclose(self) -> None:
        """Close."""
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Start TLS and verify the host name, not the dialled address."""
        try:
            inner = await self._inner.start_tls(ssl_context, server_hostname, seconds_left(timeout))
        except (httpcore.ConnectError, ssl.SSLError) as error:
            raise untrusted(server_hostname or "", error) from error
        return AsyncStream(inner, counts=not _is_http2(inner))

    def get_extra_info(self, info: str) -> Any:
        """Return connection information by its httpcore name."""
        return self._inner.get_extra_info(info)


def untrusted(host: str, error: BaseException) -> FetchFailed:
    """Return the error for failed TLS, in OpenSSL's words without its source lines."""
    cause = error.__cause__ if isinstance(error.__cause__, ssl.SSLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return FetchFailed(host, "tls", f"its certificate is not trusted ({cause.verify_message})")
    reason = getattr(cause, "reason", "") or str(cause) or "the connection was closed"
    return FetchFailed(host, "tls", f"TLS failed ({str(reason).replace('_', ' ').lower()})")


def _is_http2(stream: httpcore.AsyncNetworkStream) -> bool:
    """Tell whether TLS agreed on HTTP/2."""
    tls = stream.get_extra_info("ssl_object")
    return tls is not None and tls.selected_alpn_protocol() == "h2"


def connect_blocking(dialler: Dialler, host: str, port: int, timeout: float | None) -> socket.socket:
    """Connect to a checked address of a host, blocking.

    :raises FetchFailed: no address accepts the connection.
    """
    addresses = dialler.addresses_blocking(host, port, seconds_left(timeout))
    last_error: Exception = OSError("no address")
    for number, address in enumerate(addresses):
        try:
            connection = socket.create_connection(
                (str(address), port), share(seconds_left(timeout), len(addresses) - number)
            )
        except OSError as error:
            last_error = error
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    raise unreachable(host, port, last_error) from last_error


class Backend(httpcore.NetworkBackend):
    """Connects only to addresses that a :class:`Dialler` has checked."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *rest: Any, **options: Any
    ) -> httpcore.NetworkStream:
        """Connect to a checked address of a host."""
        return Stream(connect_blocking(self._dialler, host, port, timeout))

    def connect_unix_socket(self, path: str, *rest: Any, **options: Any) -> httpcore.NetworkStream:
        """Refuse: a Unix socket reaches services of this machine."""
        raise RefusedUrl(path, "scheme", "Unix sockets are not allowed", "use http")

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Stream(httpcore.NetworkStream):
    """A blocking connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return received bytes, at most ``max_bytes``."""
        try:
            self._sock.settimeout(seconds_left(timeout))
            data = self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(error) from error
        except OSError as error:
            raise httpcore.ReadError(error) from error
        count_bytes(timeout, len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send the whole buffer."""
        try:
            while buffer:
                self._sock.settimeout(seconds_left(timeout))
                buffer = buffer[self._sock.send(buffer) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(error) from error
        except OSError as error:
            raise httpcore.WriteError(error) from error

    def close(self) -> None:
        """Close."""
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Start TLS and verify the host name, not the dialled address."""
        deadline = time.monotonic() + (seconds_left(timeout) or 3600.0)
        tls_socket: socket.socket = self._sock
        try:
            tls_socket = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            # non-blocking: a peer that sends the handshake byte by byte would renew a socket timeout for ever
            tls_socket.setblocking(False)
            _shake_hands(tls_socket, deadline)
        except TimeoutError as error:
            tls_socket.close()
            raise httpcore.ConnectTimeout(error) from error
        except OSError as error:
            tls_socket.close()
            raise untrusted(server_hostname or "", error) from error
        return Stream(tls_socket)

    def get_extra_info(self, info: str) -> Any:
        """Return connection information by its httpcore name."""
        if info == "socket":
            return self._sock
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        if info == "is_readable":
            return _ready(self._sock, selectors.EVENT_READ, 0.0)
        return None


def _shake_hands(sock: ssl.SSLSocket, deadline: float) -> None:
    """Finish a TLS handshake before a deadline.

    :param deadline: monotonic seconds.
    :raises TimeoutError: the handshake did not finish in time.
    """
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            event = selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            event = selectors.EVENT_WRITE
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not _ready(sock, event, remaining):
            raise TimeoutError("the TLS handshake took too long")


def _ready(sock: socket.socket, event: int, seconds: float) -> bool:
    """Tell whether a socket becomes readable or writable within some seconds."""
    with selectors.DefaultSelector() as selector:  # select() accepts no file descriptor above 1023
        selector.register(sock, event)
        return bool(selector.select(seconds))
