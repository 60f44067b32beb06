"""A local search service on real sockets with scripted responses, and a door to it without checks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.extras import need

httpx = need("httpx")

REPLIES = Path(__file__).parent / "replies"


def documented(name: str) -> dict[str, Any]:
    """Return the sample responses from a provider's documentation."""
    replies: dict[str, Any] = json.loads((REPLIES / f"{name}.json").read_text("utf-8"))
    return replies


class PlainDoor:
    """A door without checks, for the local service."""

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        raise NotImplementedError

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        return httpx.AsyncClient(timeout=seconds or 5.0, trust_env=False)


class ReceivedRequest:
    """One request that the service received."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: Any) -> None:
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.path = urlsplit(target).path
        self.params = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON body, or else the query parameters."""
        return self.body if self.body is not None else self.params


class Service:
    """The scripted responses, used in turn; the last one stays: (status, headers, content), ``drip`` or ``drop``."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.requests: list[ReceivedRequest] = []
        self.gone = threading.Event()
        self.url = ""

    def respond(self, body: Any, status: int = 200, **headers: str) -> Service:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.append((status, {name.replace("_", "-"): value for name, value in headers.items()}, content))
        return self


@contextmanager
def serving() -> Iterator[Service]:
    """Run a service for the duration of a test."""
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(size)) if size else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append(ReceivedRequest(self.command, self.path, headers, body))
            answer = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            if answer == "drop":
                return
            status, response_headers, content = (200, {}, b"") if answer == "drip" else answer
            self.send_response(status)
            for name, value in response_headers.items():
                self.send_header(name, value)
            self.end_headers()
            if answer == "drip":
                self._drip()
            else:
                self.wfile.write(content)

        do_POST = do_GET

        def _drip(self) -> None:
            while not state.gone.wait(0.02):
                try:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                except OSError:
                    return

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        state.gone.set()
        server.shutdown()
        server.server_close()
        thread.join()
