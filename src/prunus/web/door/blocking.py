"""Connections for the blocking client: as ``_network``, and every operation ends with its exchange."""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from typing import Any

import httpcore

from .errors import RefusedUrl
from .exchange import count_bytes, seconds_left
from .network import Dialler, connect_blocking, untrusted


class Backend(httpcore.NetworkBackend):
    """Dials only what a :class:`Dialler` has checked."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *rest: Any, **options: Any
    ) -> httpcore.NetworkStream:
        """Connect to a checked address of a host."""
        return Stream(connect_blocking(self._dialler, host, port, timeout))

    def connect_unix_socket(self, path: str, *rest: Any, **options: Any) -> httpcore.NetworkStream:
        """Refuse."""
        raise RefusedUrl(path, "scheme", "sockets of this machine are not read", "use http")

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Stream(httpcore.NetworkStream):
    """A connection of a thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, at most ``max_bytes``."""
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
        """Send all."""
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
        """Begin TLS; the name is verified, whatever address was dialled."""
        ends = time.monotonic() + (seconds_left(timeout) or 3600.0)
        made: socket.socket = self._sock
        try:
            made = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=False)
            made.setblocking(False)  # a handshake that comes byte by byte would renew a time-out for ever
            _shake_hands(made, ends)
        except TimeoutError as error:
            made.close()
            raise httpcore.ConnectTimeout(error) from error
        except OSError as error:
            made.close()
            raise untrusted(server_hostname or "", error) from error
        return Stream(made)

    def get_extra_info(self, info: str) -> Any:
        """Return a fact of the connection."""
        if info == "socket":
            return self._sock
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        if info == "is_readable":
            return _ready(self._sock, selectors.EVENT_READ, 0.0)
        return None


def _shake_hands(sock: ssl.SSLSocket, ends: float) -> None:
    """Finish a handshake before a moment.

    :raises TimeoutError: it did not finish.
    """
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            event = selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            event = selectors.EVENT_WRITE
        left = ends - time.monotonic()
        if left <= 0 or not _ready(sock, event, left):
            raise TimeoutError("the TLS handshake took too long")


def _ready(sock: socket.socket, event: int, seconds: float) -> bool:
    """Tell whether a socket can be read or written within some seconds."""
    with selectors.DefaultSelector() as selector:  # select() takes no file number above 1023
        selector.register(sock, event)
        return bool(selector.select(seconds))
