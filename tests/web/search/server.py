"""A local search service over real sockets that answers as it is told, and the plainest door to it."""

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
    """The replies of a provider, as its documentation shows them."""
    found: dict[str, Any] = json.loads((REPLIES / f"{name}.json").read_text("utf-8"))
    return found


class PlainDoor:
    """A door that checks nothing, for a server of the test itself."""

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        raise NotImplementedError

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        return httpx.AsyncClient(timeout=seconds or 5.0, trust_env=False)


class Asked:
    """One request that came."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: Any) -> None:
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.path = urlsplit(target).path
        self.params = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}

    @property
    def said(self) -> dict[str, Any]:
        """What was asked, in the address or in the body."""
        return self.body if self.body is not None else self.params


class Service:
    """Answers with what is put in, the last of it for ever: (status, headers, content), or ``drip`` or ``drop``."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[Asked] = []
        self.gone = threading.Event()
        self.url = ""

    def say(self, value: Any, status: int = 200, **headers: str) -> Service:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.answers.append((status, {name.replace("_", "-"): said for name, said in headers.items()}, content))
        return self


@contextmanager
def serving() -> Iterator[Service]:
    """Run a service for the length of a test."""
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(size)) if size else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.asked.append(Asked(self.command, self.path, headers, body))
            answer = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            if answer == "drop":
                return
            status, said, content = (200, {}, b"") if answer == "drip" else answer
            self.send_response(status)
            for name, value in said.items():
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
