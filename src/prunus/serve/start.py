"""Run the server until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final

import uvicorn

from ..core.errors import BadInput
from ..core.settings import Settings
from .app import create_app
from .options import ServeOptions

_BACKLOG: Final = 2_048
"""Connections that wait to be accepted at most."""
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
        timeout_graceful_shutdown=30,
        limit_concurrency=1_000,
        h11_max_incomplete_event_size=64 * 1024,
        proxy_headers=False,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignored)  # uvicorn stops at the signal, and then raises it again: the end is no error
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    server = app.state.server
    if server.workers.computing or server.runner.running:  # a computation that nothing can cancel: do not wait for it
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)


def _ignored(*_: object) -> None:
    """Do nothing."""
