"""Connections for the blocking client, like :mod:`.network`; no operation outlasts its exchange."""

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
