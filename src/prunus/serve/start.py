"""Run the server until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection as PipeEnd
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Final, Literal

import uvicorn
from fastapi import FastAPI

from ..core.errors import BadInput, OutsideFailed
from ..core.settings import Settings
from .app import create_app
from .background import Background
from .connections import Connection
from .guard import FrontGuard
from .options import ServeOptions
from .server import Server

log = logging.getLogger("prunus.serve")

_BACKLOG: Final = 2_048
"""Connections that wait to be accepted at most."""
_FILES: Final = 65_536
"""Files and connections that a process may have open, where the system allows it."""
_GRACE: Final = 30
"""Seconds that running requests have to end when the server stops."""
_LAST_WORDS: Final = 5
"""Seconds of these in which requests that still run are told that the server stops."""
_JOBS_END: Final = 15.0
"""Seconds for the background process to end after the requests: a job ends what it has begun."""
_NICE: Final = 10
"""How much lower the priority of the background process is."""
_ENDS: Final = 5
_ENDS_SECONDS: Final = 30.0
"""Where so many processes end within so many seconds, the server gives up."""
_Process: Final = get_context("spawn").Process
_SWITCH: Final = 0.0005
"""Seconds after which a computing thread lets the event loop go on; Python's own 5 ms delay every token of a stream."""


def serve(settings: Settings, options: ServeOptions, *, quiet: bool = False, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; then running requests may end, and new ones are refused.

    :param say: prints a line to the operator.
    :raises BadInput: the address cannot be listened on, or there is no key where one is needed.
    """
    app = create_app(settings, options, _background(settings, options, quiet) if options.workers == 1 else None)
    listening = _listen(options)
    if not quiet:
        port = listening.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        say(f"Prunus serves on http://{host}:{port}; Ctrl-C stops it")
    if options.workers == 1:
        _run(app, listening, quiet)
        return
    server = app.state.server
    server.state.close()  # the application was made to find mistakes before any process starts
    arguments = (settings, options, listening, quiet, server.closed)
    try:
        _supervise(lambda: _Process(target=_work, args=arguments), options.workers)
    finally:
        listening.close()


def _listen(options: ServeOptions) -> socket.socket:
    """Return the socket on which the server listens.

    :raises BadInput: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # the protocol is named: with 0, asyncio does not set TCP_NODELAY, and each reply on a kept connection waits 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((options.host.strip("[]"), options.port))
        listening.listen(_BACKLOG)  # now: who reads the line that says so can connect
    except OSError as error:
        listening.close()
        raise BadInput(
            f"cannot listen on {options.host}:{options.port} ({error.strerror or error}); choose another --port",
            subject="port",
        ) from error
    return listening


def _run(
    app: FastAPI, listening: socket.socket, quiet: bool, http: type[Connection] | Literal["h11"] = Connection
) -> None:
    """Serve an application in this process until a signal stops it.

    :param http: the class of connections.
    """
    sys.setswitchinterval(_SWITCH)
    _allow_files()
    os.umask(0o077)  # what the server keeps is for its own user
    if not quiet:
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("prunus.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=_GRACE,
        http=http,
        h11_max_incomplete_event_size=64 * 1024,
        proxy_headers=False,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignored)  # uvicorn stops at the signal, and then raises it again: the end is no error
    server = app.state.server
    try:
        _Program(config, server).run(sockets=[listening])
    finally:
        listening.close()
    if server.background is not None:
        server.background.end(_JOBS_END)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if server.workers.computing or server.runner.running:  # a computation that nothing can cancel: do not wait for it
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)


def _allow_files() -> None:
    """Let this process open as many files as it may: each connection is one, and many systems begin with 1,024."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _work(settings: Settings, options: ServeOptions, listening: socket.socket, quiet: bool, closed: bool) -> None:
    """Serve in one of several processes, which share the socket.

    :param closed: whether requests need a key, as it was when the server started: keys may be gone meanwhile.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    app = create_app(settings, options, _background(settings, options, quiet))
    app.state.server.closed = closed
    _run(app, listening, quiet)


def _background(settings: Settings, options: ServeOptions, quiet: bool) -> Background | None:
    """Return the background process of a server; None where the system has no Unix sockets."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    own = replace(options, host="127.0.0.1")  # the server has checked that it has keys
    return Background(lambda *ends: _Process(target=_work_behind, args=(settings, own, quiet, *ends)), options.seconds)


def _work_behind(
    settings: Settings, options: ServeOptions, quiet: bool, listening: socket.socket, pipe: PipeEnd
) -> None:
    """Be the background process of a server.

    :param pipe: tells of new jobs; it is closed where the server is gone.
    """
    os.nice(_NICE)
    app = create_app(settings, options, guard=FrontGuard)

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                pipe.recv_bytes()
                app.state.server.wake()
        os._exit(1)  # nobody waits for what it does; another server takes over its job

    threading.Thread(target=listen, daemon=True).start()
    logging.getLogger("prunus.serve.access").setLevel(logging.WARNING)  # the server logs its requests
    _run(app, listening, quiet, "h11")


def _end_with_parent() -> None:
    """Stop this process when the one that started it is gone: it would hold the port for ever."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _supervise(make: Callable[[], BaseProcess], count: int) -> None:
    """Keep processes running until a signal comes; then let them end.

    :raises OutsideFailed: they end again and again.
    """
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    running = [_begun(make()) for _ in range(count)]
    ends: deque[float] = deque(maxlen=_ENDS)
    try:
        while not stopping.is_set():
            wait([process.sentinel for process in running], timeout=0.2)
            for index, process in enumerate(running):
                if process.is_alive() or stopping.is_set():
                    continue
                log.error("a process of the server ended (%s); another one starts", process.exitcode)
                ends.append(time.monotonic())
                if len(ends) == _ENDS and ends[-1] - ends[0] < _ENDS_SECONDS:
                    raise OutsideFailed("the processes of the server end again and again; see its log", subject="serve")
                running[index] = _begun(make())
    finally:
        for process in running:
            process.terminate()
        until = time.monotonic() + _GRACE + 15
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()


def _begun(process: BaseProcess) -> BaseProcess:
    process.start()
    return process


class _Program(uvicorn.Server):
    """Tells running requests in time that the server stops."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: take no new requests, and let running ones end."""
        self._server.runner.begin_stop()
        self._server.workers.stop(_GRACE - _LAST_WORDS)
        if self._server.background is not None:
            self._server.background.stop()
        await super().shutdown(sockets)


def _ignored(*_: object) -> None:
    """Do nothing."""
