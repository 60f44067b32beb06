"""A server on loopback in a thread, as clients meet it: real sockets, uvicorn, the whole application."""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from tests.extras import need

from prunus.core.settings import load_settings

BRIDGE = (
    "<title>The bridge</title><h1>Bridge</h1><p>The bridge opened in 1932.</p><p>Trams run daily from six.</p>"
    "<table><tr><th>Class<th>Toll<tr><td>car<td>4 coins<tr><td>lorry<td>9 coins</table>"
)
QUESTION = "When did the bridge open?"


@dataclass
class Running:
    """A running server.

    :param url: its address without a path.
    :param http: a client of it.
    :param app: the application; its ``state`` is not used.
    """

    url: str
    http: httpx.Client
    server: Any

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(path, json=body, headers=headers)


@contextmanager
def running(folder: Path, settings: Mapping[str, Any] | None = None, **options: Any) -> Iterator[Running]:
    """Run a server with its home in a folder."""
    need("fastapi")
    uvicorn = need("uvicorn")
    from prunus.serve.app import create_app
    from prunus.serve.connections import Connection
    from prunus.serve.options import ServeOptions
    from prunus.serve.start import _listen

    chosen = ServeOptions(**options)
    app = create_app(load_settings({"home": str(folder / "home"), **(settings or {})}), chosen)
    listening = _listen(replace(chosen, host="127.0.0.1", port=0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=5, http=Connection)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        until = time.monotonic() + 20
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            yield Running(url, http, server)
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
    assert not thread.is_alive(), "the server did not stop"


def model(folder: Path, reply: str, pause: float = 0.0) -> str:
    """Write a language model that gives one reply word by word; return its spec.

    :param pause: seconds before each word.
    """
    path = folder / "model.py"
    path.write_text(
        textwrap.dedent(f"""
        from prunus.models.llm.scripted import Engine as Scripted, ScriptedReply

        def reply(messages, options):
            return ScriptedReply({reply!r}, pause={pause})

        class Model(Scripted):
            def __init__(self, model="", **rest):
                super().__init__(script=reply)
        """),
        "utf-8",
    )
    return f"{path}:Model"


def events_of(text: str) -> list[tuple[str, str]]:
    """Return name and data of each server-sent event."""
    found = []
    for part in filter(None, text.split("\n\n")):
        lines = dict(line.split(": ", 1) for line in part.splitlines() if ": " in line)
        found.append((lines.get("event", ""), lines["data"]))
    return found
