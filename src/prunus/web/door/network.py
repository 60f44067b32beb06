"""Connections: resolve a name once, check every address, and connect to a checked address."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from typing import Any, Final, TypeAlias

import anyio
import httpcore

from .addresses import Address
from .errors import FetchFailed, RefusedUrl
from .exchange import count_bytes, seconds_left
from .gate import Gate
from .url import Url, parse_host

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
