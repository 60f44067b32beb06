"""Connections of clients: how many there may be, and how long a client may take to send a request or read a reply.

What a client holds without sending or reading is bounded: the head of a request has ten seconds, each twenty seconds of
a reply must bring it 16 KiB nearer to its end, and where all connections are in use, a new one takes the place of the
one that has waited longest for its client.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_SECONDS: Final = 10.0
"""Seconds in which a client must have sent the head of a request."""
_SEND_SECONDS: Final = 20.0
_LEAST: Final = 16 * 1024
"""Bytes that a client must read within ``_SEND_SECONDS``, unless the reply ends before."""
_SHARE: Final = 4
"""One address may hold this part of all connections: a quarter."""
_THIS_MACHINE: Final = ("127.0.0.1", "::1")
_BUSY: Final = b'{"error": {"type": "busy", "message": "too many connections", "param": null, "code": "busy"}}'
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
) % (len(_BUSY), _BUSY)


class Connections:
    """The connections of one process.

    :param most: connections at most; one address may hold a quarter of them.
    :param proxies: addresses that are limited by ``most`` alone, beside those of this machine: behind a proxy all
        clients have its address.
    """

    def __init__(self, most: int, proxies: Iterable[str] = ()) -> None:
        self._most, self._most_each = most, max(1, most // _SHARE)
        self._shared = {_network(address) for address in (*_THIS_MACHINE, *proxies)}
        self._open: dict[Connection, str] = {}
        self._of: Counter[str] = Counter()
        self._idle: dict[Connection, None] = {}
        self._unread: dict[Connection, None] = {}

    def add(self, connection: Connection, address: str) -> bool:
        """Count a new connection; False where there is no place for it."""
        network = _network(address)
        if network not in self._shared and self._of[network] >= self._most_each:
            return False
        if len(self._open) >= self._most:
            oldest = next(iter(self._idle), None) or next(iter(self._unread), None)
            if oldest is None:
                return False
            self.remove(oldest)
            oldest.transport.abort()
        self._open[connection] = network
        self._of[network] += 1
        self._idle[connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        network = self._open.pop(connection, None)
        if network is not None:
            self._of -= Counter((network,))
        self._idle.pop(connection, None)
        self._unread.pop(connection, None)

    def note(self, connection: Connection, *, idle: bool, unread: bool) -> None:
        """Note what a connection waits for.

        :param idle: for a request.
        :param unread: for its client, to read what was sent.
        """
        for wanted, waiting in ((idle, self._idle), (unread and not idle, self._unread)):
            if not wanted:
                waiting.pop(connection, None)
            elif connection in self._open:
                waiting.setdefault(connection)


class Connection(H11Protocol):
    """One connection, which ends where its client sends or reads too slowly."""

    _head: asyncio.TimerHandle | None = None
    _send: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for the first request; refuse the connection where there are too many."""
        super().connection_made(transport)
        self._all: Connections = _app(self).state.server.connections
        if not self._all.add(self, self.client[0] if self.client else ""):
            transport.write(_REFUSAL)
            transport.close()
            return
        transport.set_write_buffer_limits(0)  # what is not with the system yet is noted at once
        self._head = self.loop.call_later(_HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read a piece; stop waiting once it completes the head of a request."""
        super().data_received(data)
        if self._at_work and self._head is not None:
            self._head.cancel()
            self._head = None
        elif not self._at_work and self._head is None:
            self._head = self.loop.call_later(_HEAD_SECONDS, self.transport.close)
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        """Wait for the client to read, for as long as it does."""
        super().pause_writing()
        self._watch()
        self._note()

    def resume_writing(self) -> None:
        """Go on: the client has read all."""
        super().resume_writing()
        self._end_watch()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._head is not None:
            self._head.cancel()
        self._end_watch()
        self._all.remove(self)
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _note(self) -> None:
        self._all.note(self, idle=not self._at_work, unread=self.flow.write_paused)

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._send = self.loop.call_later(_SEND_SECONDS, self._watched, left)

    def _watched(self, before: int) -> None:
        """End the connection where its client has read too little since the last look."""
        if before - self.transport.get_write_buffer_size() < _LEAST:
            self.transport.abort()
        else:
            self._watch()

    def _end_watch(self) -> None:
        if self._send is not None:
            self._send.cancel()
            self._send = None


def _app(connection: Connection) -> Any:
    """Return the application that a connection serves."""
    return connection.config.app


def _network(address: str) -> str:
    """Return the network of one client: the address, of IPv6 the /64, of which a client has all addresses."""
    try:
        known = ip_address(address)
    except ValueError:  # of a socket that is no network's
        return address
    if isinstance(known, IPv6Address):
        return str(known.ipv4_mapped) if known.ipv4_mapped else known.exploded[:19]
    return str(known)
