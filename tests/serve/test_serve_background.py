"""The process beside the server: it answers large requests as the server answers small ones, and may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.answer.world import world
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, events_of, running
from tests.serve.test_serve_jobs import process, waited

pytestmark = pytest.mark.full

LARGE = BRIDGE + "<p>The council met and spoke of roads.</p>" * 5_000
PAGES = [{"html": LARGE, "url": "https://example.org/bridge"}]


def behind(pid: int) -> list[int]:
    """Return the background processes of a server; a test of a system without /proc is skipped."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        pytest.skip("this system does not tell the children of a process")
    found = []
    for child in map(int, children.read_text().split()):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


def test_a_large_request_is_answered_as_without_the_process(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/v1/clean", {"page": PAGES[0], "format": "text"}),
        ("/v1/clean", {"page": PAGES[0], "colour": "red"}),
        ("/v1/prune", {"question": QUESTION, "pages": PAGES, "budget": 100}),
        ("/v1/prune", {"question": QUESTION, "pages": PAGES, "budget": 10**9}),
        ("/v1/ask", {"question": QUESTION, "pages": PAGES}),
        ("/v1/chat/completions", {"model": "x", "messages": [{"role": "user", "content": QUESTION}], "pages": PAGES}),
    ]
    with running(tmp_path) as here, process(tmp_path, reranker="none") as (program, http):
        for path, body in asked:
            expected, got = here.post(path, body), http.post(path, json=body)
            assert got.status_code == expected.status_code, got.text
            for name in ("content-type", "x-content-type-options", "cache-control", "retry-after"):
                assert got.headers.get_list(name) == expected.headers.get_list(name)
            assert len(got.headers.get_list("x-request-id")) == 1
            results = [reply.json() for reply in (expected, got)]
            for result in results:
                for changing in ("seconds", "spent", "usage", "id", "created", "prunus"):
                    result.pop(changing, None)
            assert results[0] == results[1]
        assert len(behind(program.pid)) == 1, "one process answers them all"
        streamed = http.post("/v1/ask", json={"question": QUESTION, "pages": PAGES, "stream": True})
        assert [name for name, _ in events_of(streamed.text)][-1] == "done" and "1932" in streamed.text
        waited(lambda: "prunus_running 0.0" in http.get("/metrics").text)
        counted = http.get("/metrics").text
        assert 'prunus_requests_total{route="/v1/prune",status="200"} 1.0' in counted


def test_large_pages_that_are_fetched_are_read_there_only_beside_other_requests(tmp_path: Path) -> None:
    town = (
        "<title>The bridge</title><p>The bridge opened in 1932.</p>"
        + "<p>The council met and spoke of roads.</p>" * 30_000
    )
    with world() as web:
        web.pages = {"/large": town, "/slow": 60.0, "/small": BRIDGE}
        port = str(urlsplit(web.url).port)
        allowed = {"allow_hosts": "127.0.0.1", "ports": port, "browser": "never", "retries": "0", "read_seconds": "60"}
        asked = {"question": QUESTION, "pages": [{"url": f"{web.url}/large"}], "budget": 100}
        with (
            process(tmp_path, "--shapes", "jina", "--log", str(tmp_path / "log"), **allowed) as (_, http),
            ThreadPoolExecutor() as threads,
        ):
            alone = http.post("/v1/prune", json=asked)
            assert alone.status_code == 200 and web.requests.count("/large") == 1
            slow = threads.submit(http.post, "/v1/prune", json={**asked, "pages": [{"url": f"{web.url}/slow"}]})
            waited(lambda: "/slow" in web.requests)
            beside = http.post("/v1/prune", json=asked)
            assert beside.status_code == 200, beside.text
            assert beside.json()["output"] == alone.json()["output"] and web.requests.count("/large") == 3
            small = http.post("/v1/prune", json={**asked, "pages": [{"url": f"{web.url}/small"}]})
            assert small.status_code == 200 and web.requests.count("/small") == 1
            by_jina = http.get(f"/r/{web.url}/large", headers={"x-question": QUESTION, "x-token-budget": "100"})
            assert "1932" in by_jina.text and web.requests.count("/large") == 5
            page = {"question": QUESTION, "pages": [{"url": f"{web.url}/large"}]}
            whole = http.post("/v1/ask", json=page)
            assert "1932" in whole.json()["text"] and web.requests.count("/large") == 7
            streamed = http.post("/v1/ask", json={**page, "stream": True})  # passed on where its page comes soon
            assert "1932" in streamed.text
            assert [name for name, _ in events_of(streamed.text)].count("done") == 1
            assert not slow.done(), "the slow request ended too early to stand beside the others"
            web.ended.set()
            slow.result()

            def logged() -> int:
                return sum(file.read_text().count("\n") for file in (tmp_path / "log").iterdir())

            waited(lambda: logged() == 2)  # once each, wherever it was answered


def test_odd_addresses_and_headers_pass_as_they_are(tmp_path: Path) -> None:
    with running(tmp_path) as here, process(tmp_path) as (_, http):
        for path in ("/v1/indexes/a%01%2Fb%3Fc/ask", "/v1/clean?x=%01", "/v1/clean"):
            for kind in ({"content-type": b"application/json; x=\xe9"}, {"content-type": b"text/plain"}, {}):
                replies = [
                    of.post(path, content=b'{"page": 1}' + b" " * 200_000, headers=kind) for of in (here.http, http)
                ]
                assert replies[0].status_code == replies[1].status_code and replies[0].json() == replies[1].json()


def test_large_pages_are_kept_for_another_budget(tmp_path: Path) -> None:
    with process(tmp_path) as (_, http):
        first = http.post("/v1/prune", json={"question": QUESTION, "pages": PAGES, "budget": 100, "keep": True}).json()
        again = http.post("/v1/prune", json={"question": QUESTION, "kept": first["kept"], "budget": 50})
        assert again.status_code == 200 and again.json()["tokens"] <= 50 and "1932" in again.json()["output"]
        gone = http.post("/v1/prune", json={"question": QUESTION, "kept": "unknown"})
        assert gone.status_code == 404 and gone.json()["error"]["param"] == "kept"


def test_a_killed_process_is_replaced_and_ends_with_its_server(tmp_path: Path) -> None:
    asked = {"question": QUESTION, "pages": PAGES}
    with process(tmp_path) as (program, http):
        assert http.post("/v1/prune", json=asked).status_code == 200
        [first] = behind(program.pid)
        os.kill(first, signal.SIGKILL)
        assert http.post("/v1/prune", json=asked).status_code == 200
        [second] = behind(program.pid)
        assert second != first
        program.kill()
        program.wait(30)
        waited(lambda: not Path(f"/proc/{second}").exists())


def _never(listening: socket.socket, pipe: Connection) -> None:
    time.sleep(600)


def _dies(listening: socket.socket, pipe: Connection) -> None:
    connection, _ = listening.accept()
    connection.recv(1)
    os._exit(1)


def relayed(target: Callable[..., None], scene: Callable[[Any, Callable[[], Any]], Any]) -> Any:
    """Run a scene with a process that does not answer as it should, and a function that asks it."""
    need("fastapi")
    from fastapi import Request

    from prunus.serve.background import Background

    scope = {
        "type": "http", "method": "POST", "path": "/v1/clean", "query_string": b"", "headers": [], "raw_path": b"/v1/clean",
        "scheme": "http", "server": ("127.0.0.1", 80), "state": {"caller": "-", "request_id": "1"},
    }  # fmt: skip

    async def send(message: Any) -> None:
        raise AssertionError("there is no reply")

    async def run() -> Any:
        make = get_context("spawn").Process
        background = Background(lambda *ends: make(target=target, args=ends), seconds=3)
        watching = asyncio.create_task(background.watch())
        try:
            return await scene(background, lambda: background.relay(Request(scope), b"{}", send))
        finally:
            watching.cancel()
            background.stop()
            background.end(5)

    return asyncio.run(run())


def test_an_overdue_reply_ends_the_process_and_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.core.deadline import TooLong
    from prunus.serve import background

    monkeypatch.setattr(background, "LONGEST_TURN", 0.0)
    monkeypatch.setattr(background, "_GRACE", 0.0)

    async def scene(process: Any, ask: Callable[[], Any]) -> None:
        first = process.start()
        with pytest.raises(TooLong):
            await ask()
        assert not first.is_alive()

    relayed(_never, scene)


def test_a_request_that_ends_the_process_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import background
    from prunus.serve.work import Busy

    monkeypatch.setattr(background, "LONGEST_TURN", 60.0)

    async def scene(process: Any, ask: Callable[[], Any]) -> None:
        with pytest.raises(Busy):
            await ask()

    relayed(_dies, scene)


def test_a_process_that_grows_too_large_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import background

    async def scene(process: Any, ask: Callable[[], Any]) -> None:
        first = process.start()
        monkeypatch.setattr(background, "memory_mb", lambda pid: 9_999.0 if pid == first.pid else 1.0)
        while process.start() is first:
            await asyncio.sleep(0.05)
        assert not first.is_alive() and process.start().is_alive()

    relayed(_never, scene)


def test_the_memory_of_a_process_is_told() -> None:
    need("fastapi")
    from prunus.serve.background import memory_mb

    assert memory_mb(None) == 0.0 and (not Path("/proc/self").exists() or memory_mb(os.getpid()) > 10)
