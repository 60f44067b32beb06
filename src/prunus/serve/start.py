"""Run the server until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..core.errors import BadInput
from ..core.settings import Settings
from .app import create_app
from .options import ServeOptions
from .server import Server

_BACKLOG: Final = 2_048
"""Connections that wait to be accepted at most."""
_GRACE: Final = 30
"""Seconds that running requests have to end when the server stops."""
_LAST_WORDS: Final = 5
"""Seconds of these in which requests that still run are told that the server stops."""
_HEAD_SECONDS: Final = 10.0
"""Seconds in which a client must have sent the head of a request."""
_SWITCH: Final = 0.0005
"""Seconds after which a computing thread lets the event loop go on; Python's own 5 ms delay every token of a stream."""


def serve(settings: Settings, options: ServeOptions, *, quiet: bool = False, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; then running requests may end, and new ones are refused.

    :param say: prints a line to the operator.
    :raises BadInput: the address cannot be listened on, or there is no key where one is needed.
    """
    app = create_app(settings, options)
    sys.setswitchinterval(_SWITCH)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((options.host.strip("[]"), options.port))
        listening.listen(_BACKLOG)  # now: who reads the line below can connect
    except OSError as error:
        listening.close()
        raise BadInput(
            f"cannot listen on {options.host}:{options.port} ({error.strerror or error}); choose another --port",
            subject="port",
        ) from error
    if not quiet:
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("prunus.serve").setLevel(logging.INFO)
        port = listening.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        say(f"Prunus serves on http://{host}:{port}; Ctrl-C stops it")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=_GRACE,
        http=_Connection,
        h11_max_incomplete_event_size=64 * 1024,
        proxy_headers=False,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignored)  # uvicorn stops at the signal, and then raises it again: the end is no error
    try:
        _Program(config, app.state.server).run(sockets=[listening])
    finally:
        listening.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    server = app.state.server
    if server.workers.computing or server.runner.running:  # a computation that nothing can cancel: do not wait for it
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)


class _Program(uvicorn.Server):
    """Tells running requests in time that the server stops."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: take no new requests, and let running ones end."""
        self._server.workers.stop(_GRACE - _LAST_WORDS)
        await super().shutdown(sockets)


class _Connection(H11Protocol):
    """A connection that is closed where the head of a request does not arrive in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read a piece; stop waiting once it completes the head of a request."""
        super().data_received(data)
        at_work = self.cycle is not None and not self.cycle.response_complete
        if at_work and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif not at_work and self._timer is None:
            self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)


def _ignored(*_: object) -> None:
    """Do nothing."""
