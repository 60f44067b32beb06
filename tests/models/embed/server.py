"""A local HTTP server with prepared responses, and a minimal egress door to it."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.extras import need

httpx = need("httpx")

Answer = tuple[int, dict[str, str], bytes] | str
"""Status, headers and content; or ``hang``, ``drop``, ``drip``."""


class PlainDoor:
    """A door that checks nothing, for a server of the test itself."""

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        return httpx.Client(timeout=seconds or 5.0, trust_env=False)

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        raise NotImplementedError


class Server:
    """What was asked, and what is answered next."""

    def __init__(self, usual: Callable[[str, Any], Answer]) -> None:
        self.usual = usual
        self.first: list[Answer] = []
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.gone = threading.Event()
        self.url = ""

    def answer(self, path: str, headers: dict[str, str], body: Any) -> Answer:
        self.asked.append((path, headers, body))
        return self.first.pop(0) if self.first else self.usual(path, body)

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.asked]


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return status, {name.replace("_", "-"): said for name, said in headers.items()}, json.dumps(value).encode()


@contextmanager
def serve(usual: Callable[[str, Any], Answer]) -> Iterator[Server]:
    """Run a server for the length of a test."""
    state = Server(usual)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(size)) if size else None
            said = {name.lower(): value for name, value in self.headers.items()}
            found = state.answer(self.path, said, body)
            if found == "hang":
                state.gone.wait(5)
            elif found == "drip":
                self.send_response(200)
                self.end_headers()
                while not state.gone.wait(0.05):
                    try:
                        self.wfile.write(b" ")
                        self.wfile.flush()
                    except OSError:
                        return
            elif found != "drop":
                status, headers, content = found
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST

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


def letters(text: str, size: int = 8) -> list[float]:
    """A vector of hashed letters: the same for the same text, like for like; not of unit norm."""
    found = [0.0] * size
    for place in range(len(text) - 1):
        found[zlib.crc32(text[place : place + 2].encode()) % size] += 1.0
    return found if any(found) else [1.0] + [0.0] * (size - 1)


def embeddings(path: str, body: Any) -> Answer:
    """Answer as an embedding service of either shape; OpenAI's in an order of its own, as it may."""
    if path.endswith("/embed"):
        return as_json([letters(text) for text in body["inputs"]])
    data = [
        {"object": "embedding", "index": place, "embedding": letters(text)} for place, text in enumerate(body["input"])
    ]
    return as_json({"object": "list", "data": data[::-1], "model": body.get("model"), "usage": {"prompt_tokens": 1}})
