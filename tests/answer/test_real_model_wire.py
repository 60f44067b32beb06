"""Answers over real sockets: pages, a search service, and a chat-completions server that misbehaves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.answer.world import World, let_in, plan, tags_of, world

import prunus
from prunus.core.options import Limits, Options

pytestmark = pytest.mark.slow  # silent servers are really waited for
QUESTION = "When did the Orrel bridge open?"


def chunk(text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()


Behaviour = Callable[[Any, str], None]
"""Given the handler, whose ``wfile`` takes the stream, and what a good model would say."""


def well(handler: Any, text: str) -> None:
    handler.wfile.write(chunk(text) + b"data: [DONE]\n\n")


def hangs(handler: Any, text: str) -> None:
    handler.wfile.write(chunk(text[:30]))
    handler.wfile.flush()
    handler.server.ended.wait(20)


def junk(handler: Any, text: str) -> None:
    handler.wfile.write(b"data: {{{{ not json\n\n" * 3)


def drops(handler: Any, text: str) -> None:
    handler.wfile.write(chunk(text[:40]))
    handler.wfile.flush()
    handler.connection.close()


def repeats(handler: Any, text: str) -> None:
    while not handler.server.ended.is_set():
        handler.wfile.write(chunk("The bridge is a bridge. "))
        time.sleep(0.001)


@contextmanager
def serving(answer: Behaviour) -> Iterator[str]:
    """Serve a model that plans and extracts well, and answers as it is told."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
            system, prompt = said[0]["content"], said[-1]["content"]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            try:
                if "plan web searches" in system:
                    well(self, plan("Orrel bridge opened"))
                elif "choose the segments" in system:
                    well(self, tags_of(prompt, "1932"))
                else:
                    answer(self, "The Orrel bridge opened in 1932 [1]. It took four years.")
            except OSError:
                return  # the client has gone

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.ended = True, threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#small"
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as state:
        state.pages = {
            "/bridge": "<title>Bridge</title><p>The Orrel bridge opened in 1932 after four years of work.</p>"
        }
        state.hits = {"": [state.hit("/bridge", "Bridge", "opened in 1932")]}
        let_in(monkeypatch, state)
        monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")  # the model is the test's own server
        yield state


def test_a_whole_answer(web: World) -> None:
    with serving(well) as llm:
        answer = prunus.ask(QUESTION, options=Options(llm=llm))
    assert answer.text == "The Orrel bridge opened in 1932 [1]. It took four years."
    assert [citation.url for citation in answer.citations] == [f"{web.url}/bridge"]
    assert dict(answer.failures) == {} and answer.usage.completion_tokens > 0


@pytest.mark.parametrize(("behaviour", "begins"), [(hangs, "The Orrel bridge"), (drops, "The Orrel bridge")])
def test_a_stream_that_stops_in_the_middle(web: World, behaviour: Behaviour, begins: str) -> None:
    started = time.monotonic()
    with serving(behaviour) as llm:
        answer = prunus.ask(QUESTION, options=Options(llm=llm, limits=Limits(seconds=6)))
    assert time.monotonic() - started < 12, "the model hangs for 20 seconds, and is not waited for"
    assert answer.text.startswith(begins) and "generator" in answer.failures


def test_a_stream_that_is_junk_is_replaced_by_quotes(web: World) -> None:
    with serving(junk) as llm:
        answer = prunus.ask(QUESTION, options=Options(llm=llm, limits=Limits(seconds=10)))
    assert answer.text.startswith("The pages say:") and "1932" in answer.text
    assert answer.engines["generator"] == "quotes"


def test_a_stream_that_never_ends_is_stopped(web: World) -> None:
    with serving(repeats) as llm:
        answer = prunus.ask(QUESTION, options=Options(llm=llm, limits=Limits(seconds=10)))
    assert "repeats itself" in answer.failures["generator"] and len(answer.text) < 3_000


def test_no_model_at_that_address(web: World) -> None:
    """Rules plan, sentences are chosen without it, and the page is quoted; each failure is named."""
    answer = prunus.ask(QUESTION, options=Options(llm="http://127.0.0.1:9/v1#none", limits=Limits(seconds=10)))
    assert "1932" in answer.text and answer.engines["generator"] == "quotes"
    assert {"extractor", "generator"} <= set(answer.failures)
