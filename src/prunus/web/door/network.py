"""Connections: a name is resolved once, every address is checked, and the checked address is dialled."""

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
"""``(host, port) -> addresses``; blocks; raises OSError where the name does not resolve."""

TRIES: Final = 4
"""Addresses of one host that are dialled."""


def system_resolver(host: str, port: int) -> list[str]:
    """Resolve a name as the system does.

    :raises OSError: it does not resolve.
    """
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in found))


class Dialler:
    """Resolves, checks and picks the addresses for a client.

    :param endpoint: what the operator allows for this client.
    :param only: where set, nothing but this host and port is dialled: the operator's proxy.
    """

    def __init__(self, gate: Gate, resolver: Resolver, endpoint: Url | None = None, only: Url | None = None) -> None:
        self._gate = gate
        self._resolver = resolver
        self._endpoint = only or endpoint
        self.only = only

    def checked(self, host: str, port: int, answers: Sequence[str]) -> list[Address]:
        """Return the addresses to dial.

        :raises RefusedUrl: one of them lies inside.
        :raises FetchFailed: there are none.
        """
        addresses = self._gate.addresses(host, port, answers, self._endpoint)
        if not addresses:
            raise FetchFailed(host, "dns", "the name has no address")
        return _in_order(addresses)[:TRIES]

    def literal(self, host: str, port: int) -> list[str]:
        """Return a host that is an address; an empty list for a name. Both as the parser reads them.

        :raises RefusedUrl: it is not in the parser's own form, or not what this client may dial.
        """
        if self.only is not None and (host, port) != (self.only.host, self.only.port):
            raise RefusedUrl(host, "host", "this connection is for the proxy alone", "use another client")
        name, address = parse_host(f"[{host}]" if ":" in host else host)
        if name != host:
            raise RefusedUrl(host, "ambiguous", f"this is another spelling of {name}", f"write {name}")
        return [str(address)] if address is not None else []

    async def addresses(self, host: str, port: int, seconds: float | None) -> list[Address]:
        """Resolve a host once and check all its addresses, as :meth:`checked`."""
        answers: Sequence[str] = self.literal(host, port)
        if not answers:
            loop = asyncio.get_running_loop()
            said: asyncio.Future[Sequence[str] | Exception] = loop.create_future()

            def hand_over(found: Sequence[str] | Exception) -> None:
                if not said.done():
                    said.set_result(found)

            def tell(found: Sequence[str] | Exception) -> None:
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile: nobody waits
                    loop.call_soon_threadsafe(hand_over, found)

            self._ask(host, port, tell)
            try:
                async with asyncio.timeout(seconds):
                    answers = _said(host, await said)
            except TimeoutError as error:
                raise _unanswered(host, seconds) from error
        return self.checked(host, port, answers)

    def addresses_blocking(self, host: str, port: int, seconds: float | None) -> list[Address]:
        """The same for a thread."""
        answers: Sequence[str] = self.literal(host, port)
        if not answers:
            said: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()
            self._ask(host, port, said.put)
            try:
                answers = _said(host, said.get(timeout=seconds))
            except queue.Empty as error:
                raise _unanswered(host, seconds) from error
        return self.checked(host, port, answers)

    def _ask(self, host: str, port: int, tell: Callable[[Sequence[str] | Exception], None]) -> None:
        """Ask the resolver in a thread that nobody has to wait for: the system's knows no time-out."""

        def run() -> None:
            try:
                found: Sequence[str] | Exception = self._resolver(host, port)
            except Exception as error:  # handed to whoever waits, who raises it
                found = error
            tell(found)

        threading.Thread(target=run, name=f"resolve {host}", daemon=True).start()


def _said(host: str, found: Sequence[str] | Exception) -> Sequence[str]:
    """Return what a resolver said, or raise what it raised."""
    if isinstance(found, OSError):
        raise FetchFailed(host, "dns", f"the name does not resolve ({found.strerror or found})") from found
    if isinstance(found, Exception):
        raise found
    return found


def _unanswered(host: str, seconds: float | None) -> FetchFailed:
    """Return the error for a resolver that does not answer."""
    return FetchFailed(host, "dns", f"the name did not resolve within {seconds or 0:g} s")


def _in_order(addresses: list[Address]) -> list[Address]:
    """Return addresses in the order in which to dial them: an IPv4 one second, for broken IPv6 answers late."""
    four = [address for address in addresses if isinstance(address, IPv4Address)]
    six = [address for address in addresses if not isinstance(address, IPv4Address)]
    if not six or not four or isinstance(addresses[0], IPv4Address):
        return addresses
    return [six[0], *four[:1], *six[1:], *four[1:]]


def share(left: float | None, tries: int) -> float | None:
    """Return the seconds for the next of some tries, so that a silent address leaves time for the others."""
    return None if left is None else max(left / tries, min(left, 2.0))


def unreachable(host: str, port: int, error: BaseException) -> FetchFailed:
    """Return the error for a host that cannot be connected to."""
    reason = "no answer" if isinstance(error, httpcore.TimeoutException | TimeoutError) else str(error)
    return FetchFailed(host, "connect", f"cannot connect to port {port} ({reason})")


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Dials only what a :class:`Dialler` has checked."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *rest: Any, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a checked address of a host."""
        addresses = await self._dialler.addresses(host, port, seconds_left(timeout))
        last: Exception = OSError("no address")
        with anyio.move_on_after(seconds_left(timeout)) as scope:
            for number, address in enumerate(addresses):
                left = scope.deadline - anyio.current_time()
                try:
                    seconds = share(left, len(addresses) - number)
                    return AsyncStream(await self._inner.connect_tcp(str(address), port, seconds))
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    last = error
        raise unreachable(host, port, last) from last

    async def connect_unix_socket(self, path: str, *rest: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        """Refuse."""
        raise RefusedUrl(path, "scheme", "sockets of this machine are not read", "use http")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


class AsyncStream(httpcore.AsyncNetworkStream):
    """A connection whose every operation ends with its exchange.

    :param counts: whether bytes are counted; not where several exchanges share a connection (HTTP/2).
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream, counts: bool = True) -> None:
        self._inner = inner
        self._counts = counts

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, at most ``max_bytes``."""
        data = await self._inner.read(max_bytes, seconds_left(timeout))
        if self._counts:
            count_bytes(timeout, len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all."""
        await self._inner.write(buffer, seconds_left(timeout))

    async def aclose(self) -> None:
        """Close."""
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Begin TLS; the name is verified, whatever address was dialled."""
        try:
            inner = await self._inner.start_tls(ssl_context, server_hostname, seconds_left(timeout))
        except (httpcore.ConnectError, ssl.SSLError) as error:
            raise untrusted(server_hostname or "", error) from error
        return AsyncStream(inner, counts=not _is_http2(inner))

    def get_extra_info(self, info: str) -> Any:
        """Return a fact of the connection."""
        return self._inner.get_extra_info(info)


def untrusted(host: str, error: BaseException) -> FetchFailed:
    """Return the error for TLS that failed, in the library's words without its source lines."""
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
    """Connect to a checked address of a host, in a thread.

    :raises FetchFailed: none of them answers.
    """
    addresses = dialler.addresses_blocking(host, port, seconds_left(timeout))
    last: Exception = OSError("no address")
    for number, address in enumerate(addresses):
        try:
            made = socket.create_connection((str(address), port), share(seconds_left(timeout), len(addresses) - number))
        except OSError as error:
            last = error
            continue
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    raise unreachable(host, port, last) from last
