"""A small web on loopback: pages, and a search service in the shape of SearXNG, over real sockets."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from prunus.answer.chat import Conversation
from prunus.answer.run import Asked, Finder
from prunus.answer.write import answer_from, answer_from_web
from prunus.core.events import DoneEvent, Event
from prunus.core.options import Options
from prunus.core.settings import load_settings
from prunus.core.types import Answer, Message
from prunus.engines import answer_engines
from prunus.evidence.documents import Documents
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply


@dataclass
class World:
    """Pages by path, and the results of the search.

    :param pages: by path: HTML, or (status, HTML), or the seconds of delay before a reply.
    :param hits: results by a word of the query; '' is for any query.
    :param requests: paths, with their queries, that were requested.
    """

    url: str = ""
    pages: dict[str, Any] = field(default_factory=dict)
    hits: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    answer: Callable[[dict[str, str]], tuple[int, bytes]] | None = None
    requests: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def hit(self, path: str, title: str = "", snippet: str = "") -> dict[str, str]:
        """Return a result that leads to a page of this world, or to any address."""
        return {"url": path if "://" in path else f"{self.url}{path}", "title": title or path, "content": snippet}

    def found(self, params: Mapping[str, str]) -> tuple[int, bytes]:
        if self.answer is not None:
            return self.answer(dict(params))
        words = params.get("q", "").lower()
        rows = next((rows for word, rows in self.hits.items() if word and word in words), self.hits.get("", []))
        return 200, json.dumps({"query": words, "results": rows}).encode()

    @property
    def searches(self) -> list[dict[str, str]]:
        """The parameters of each search request."""
        found = [urlsplit(path) for path in self.requests if path.startswith("/search?")]
        return [{name: values[0] for name, values in parse_qs(url.query).items()} for url in found]


@contextmanager
def world() -> Iterator[World]:
    """Run a world for the length of a test."""
    state = World()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            parts = urlsplit(self.path)
            if parts.path == "/search":
                params = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self._give(*state.found(params), "application/json")
                return
            page = state.pages.get(parts.path, (404, "<p>nothing here</p>"))
            if isinstance(page, int | float):
                state.ended.wait(page)
                page = "<p>late</p>"
            status, text = page if isinstance(page, tuple) else (200, page)
            kind = "image/png" if parts.path.endswith(".png") else "text/html; charset=utf-8"
            self._give(status, text if isinstance(text, bytes) else text.encode(), kind)

        def _give(self, status: int, content: bytes, kind: str) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                return  # the client has gone

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
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def let_in(monkeypatch: pytest.MonkeyPatch, *worlds: World, search: World | None = None) -> None:
    """Let pages come from these worlds; the operator's search is the first, or the one that is named."""
    ports = ",".join(str(urlsplit(world.url).port) for world in worlds)
    for name, value in {
        "ALLOW_HOSTS": "127.0.0.1",
        "PORTS": ports,
        "SEARCH": f"searxng:{(search or worlds[0]).url}",
        "BROWSER": "never",
        "RETRIES": "0",
    }.items():
        monkeypatch.setenv(f"PRUNUS_{name}", value)


Script = Callable[[str, str, Sequence[Message]], "str | ScriptedReply"]
"""Task (``plan``, ``extract``, ``answer``, ``direct``), the user's part of the prompt, all messages: the reply."""


class Model(Scripted):
    """A scripted model that tells its script the task of each prompt."""

    def __init__(self, script: Script, window: int = 100_000) -> None:
        self.tasks: list[str] = []

        def reply(messages: Sequence[Message], options: Any) -> str | ScriptedReply:
            system = messages[0].content
            task = next(
                name
                for name, mark in (
                    ("plan", "You plan web searches"),
                    ("extract", "You choose the segments"),
                    ("answer", "from numbered sources"),
                    ("direct", "Nothing was looked up"),
                )
                if mark in system
            )
            self.tasks.append(task)
            return script(task, messages[-1].content, messages)

        super().__init__(script=reply, window=window)


@dataclass
class Outcome:
    """The events and the answer of a run."""

    events: list[Event]
    answer: Answer
    seconds: float

    def of(self, name: str) -> list[Any]:
        """Return the events of a name."""
        return [event for event in self.events if event.event == name]


def ask(
    question: str,
    model: Model | None = None,
    options: Options | None = None,
    *,
    budget: int | None = None,
    chat: Conversation | None = None,
    pages: Documents | None = None,
    indexes: Finder | None = None,
    web: bool = False,
) -> Outcome:
    """Answer a question with the settings of the environment, and the scripted model where there is one.

    :param web: search the web besides the pages and indexes.
    """
    settings, options = load_settings(), options or Options()
    if model is not None:
        options = replace(options, llm=model)
    asked = Asked(question, budget, options, chat=chat, indexes=indexes)
    by_search = web or (pages is None and indexes is None)
    engines = answer_engines(settings, options, web=by_search)
    if by_search:
        events = answer_from_web(asked, engines, pages)
    else:
        events = answer_from(Documents([]) if pages is None else pages, asked, engines)
    seen: list[Event] = []

    async def follow() -> Answer:
        async for event in events:
            seen.append(event)
            if isinstance(event, DoneEvent):
                return event.answer
        raise AssertionError("no answer")

    started = time.monotonic()
    answer = asyncio.run(follow())
    return Outcome(seen, answer, time.monotonic() - started)


def plan(*queries: str, needs: bool = True) -> str:
    """Return a plan as a model writes it."""
    rows = [{"text": query, "language": "en", "time_range": ""} for query in queries]
    return json.dumps({"needs_search": needs, "reason": "it asks for a fact", "queries": rows})


def tags_of(prompt: str, *words: str) -> str:
    """Name the tags of the segments that hold a word, as an extractor model does."""
    import re

    found = re.findall(r"<TAG-(\d+)>(.*?)</TAG-\1>", prompt, re.S)
    chosen = [f"<TAG-{tag}>" for tag, text in found if any(word.lower() in text.lower() for word in words)]
    return ", ".join(chosen) or "None"


__all__ = ["Model", "Outcome", "World", "ask", "let_in", "plan", "tags_of", "world"]
