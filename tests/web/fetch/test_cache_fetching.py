"""The fetcher with its cache, against a real server: which pages are requested again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.web.fetch.server import Answer, Request, Server, door_to, redirect_to, reply, respond

from prunus.core.types import Page
from prunus.web.fetch.cache import Cache
from prunus.web.fetch.http import FetchRules, HttpFetcher


class Clock:
    """A clock that only the test moves."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def fetch(server: Server, cache: Cache, path: str = "/") -> Page:
    fetcher = HttpFetcher(door_to(server), FetchRules(retries=0), cache=cache, robots=None)
    return asyncio.run(fetcher.fetch(server.url(path)))


def test_a_fresh_page_is_not_asked_for_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with Server(respond("<p>Tides.", "Content-Type: text/html; charset=utf-8", "Cache-Control: max-age=600")) as server:
        first, second = fetch(server, cache), fetch(server, cache)
        assert len(server.requests) == 1
    assert (first.content, first.media_type, first.charset, first.final_url) == (
        second.content,
        second.media_type,
        second.charset,
        second.final_url,
    )
    assert second.headers["cache-status"].startswith("prunus; hit")


def test_a_stale_page_is_confirmed_and_its_content_not_sent_again(tmp_path: Path) -> None:
    def answer(request: Request, connection: object) -> None:
        same = request.headers.get("if-none-match") == '"1"'
        data = (
            reply(b"", 'ETag: "1"', status="304 Not Modified")
            if same
            else reply("<p>Tides.", 'ETag: "1"', "Cache-Control: no-cache")
        )
        connection.sendall(data)  # type: ignore[attr-defined]

    cache = Cache(tmp_path)
    with Server(answer) as server:
        pages = [fetch(server, cache) for _ in range(3)]
        assert [request.headers.get("if-none-match") for request in server.requests] == [None, '"1"', '"1"']
    assert [(page.status, page.content) for page in pages] == [(200, b"<p>Tides.")] * 3


def test_an_old_page_stands_in_for_a_server_that_fails(tmp_path: Path) -> None:
    clock = Clock()
    cache = Cache(tmp_path, clock=clock)
    routes: dict[str, Answer] = {"/": respond("<p>Tides.", "Cache-Control: max-age=60")}
    with Server(routes) as server:
        fetch(server, cache)
        clock.now = time.time() + 3_600
        routes["/"] = respond("<p>Sorry.", status="503 Service Unavailable")
        page = fetch(server, cache)
        assert page.content == b"<p>Tides." and len(server.requests) == 2
        assert int(page.headers["cache-status"].rpartition("=")[2]) < 0


def test_a_redirect_is_asked_for_again_where_it_may_not_be_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    routes = {
        "/": redirect_to("/there"),
        "/old": redirect_to("/there", "301 Moved Permanently"),
        "/there": respond("<p>There.", "Cache-Control: max-age=600"),
    }
    with Server(routes) as server:
        for path in ("/", "/", "/old", "/old"):
            page = fetch(server, cache, path)
            assert (page.content, page.final_url) == (b"<p>There.", server.url("/there"))
        assert server.targets().count("/") == 2 and server.targets().count("/there") == 1
