"""The HTTP fetcher over real sockets: pages, redirects, refusals, retries, limits."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import pytest
import trustme
from tests.web.fetch.server import Answer, Request, Server, door_to, in_turn, redirect_to, reply, respond, respond_bytes

from prunus.core.errors import PrunusError
from prunus.core.types import Page
from prunus.web.door.decode import accept_encoding
from prunus.web.door.egress import Egress, FetchFailed, RefusedUrl
from prunus.web.fetch.http import Clock, FetchRules, HttpFetcher


async def fetch_all(fetcher: HttpFetcher, urls: Iterable[str], limit: int = 0) -> list[Page | PrunusError]:
    """Return the page or error of every URL, in order."""
    async with aclosing(fetcher.fetch_many(urls, limit, ordered=True)) as results:
        return [page async for _, page in results]


class SleepClock:
    """A clock that advances only by sleeping, and records the pauses."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.naps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.naps.append(round(seconds, 3))
        self.at += seconds
        await asyncio.sleep(0)

    def clock(self) -> Clock:
        return Clock(lambda: self.at, lambda: 1_790_000_000.0, self.sleep, lambda: 0.5)


def fetch(door: Egress, url: str, rules: FetchRules | None = None, **others: Any) -> Page:
    others.setdefault("clock", SleepClock().clock())
    return asyncio.run(HttpFetcher(door, rules, **others).fetch(url))


def failing(door: Egress, url: str, rules: FetchRules | None = None, **others: Any) -> FetchFailed:
    with pytest.raises(FetchFailed) as failed:
        fetch(door, url, rules, **others)
    assert str(failed.value).isprintable()
    return failed.value


# --- a page --------------------------------------------------------------------------------------


def test_a_page_carries_what_its_answer_says() -> None:
    headers = ('Content-Type: Text/HTML; Charset="ISO-8859-1"', "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT", 'ETag: "x"',
               "X-Other: y", "Content-Language: de")  # fmt: skip
    with Server({"/a": respond("grüße".encode("latin-1"), *headers)}) as server:
        page = fetch(door_to(server), server.url("/a?b=c#d"))
    assert page.content == "grüße".encode("latin-1")
    assert (page.media_type, page.charset, page.status) == ("text/html", "iso-8859-1", 200)
    assert (page.url, page.final_url) == (server.url("/a?b=c#d"), server.url("/a?b=c"))
    assert page.published == "1994-11-15T12:45:26+00:00"
    assert page.fetched_at == "2026-09-21T14:13:20+00:00"
    assert len(page.snapshot) == 64
    assert page.headers["etag"] == '"x"' and page.headers["content-language"] == "de" and "x-other" not in page.headers


def test_every_request_says_honestly_who_asks() -> None:
    with Server() as server:
        fetch(door_to(server), server.url())
        fetch(door_to(server, user_agent="Reader/2 (+https://example.org/bot)"), server.url())
    first, second = (request.headers for request in server.requests)
    assert first["user-agent"].startswith("Prunus/")
    assert second["user-agent"] == "Reader/2 (+https://example.org/bot)"
    assert "cookie" not in first and "authorization" not in first and "referer" not in first


@pytest.mark.parametrize(
    "kind", ["", "text/html; charset=", "text/html; charset=\"'", "a b/c", ";;;", "text", "text/html;" + "x" * 5000]
)
def test_a_strange_content_type_is_no_error(kind: str) -> None:
    with Server({"/": respond("x", f"Content-Type: {kind}", "Last-Modified: yesterday")}) as server:
        page = fetch(door_to(server), server.url())
    assert page.charset == "" and page.published == ""


def test_a_name_is_resolved_once_for_each_connection_and_the_checked_address_is_dialled() -> None:
    asked = []
    with Server() as server:
        door = door_to(server, allow_hosts=(f"wiki.corp:{server.port}",))
        door._resolver = lambda host, port: asked.append((host, port)) or ["127.0.0.1"]  # type: ignore[func-returns-value]
        fetch(door, server.url(host="wiki.corp"))
        assert server.requests[0].headers["host"] == f"wiki.corp:{server.port}"
    assert asked == [("wiki.corp", server.port)]


# --- rebinding and redirects ---------------------------------------------------------------------


def test_a_name_that_answers_differently_the_second_time_gains_nothing() -> None:
    """The door dials the checked address without a second resolution; a later connection is checked again."""
    with Server() as trap:
        answers = iter([["192.0.2.1"], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]])
        asked: list[list[str]] = []

        def rebinding(host: str, port: int) -> list[str]:
            asked.append(next(answers))
            return asked[-1]

        # the first answer is allowed, as a public one is, and nobody answers there; the second is the trap
        door = door_to(allow_hosts=("192.0.2.0/24",), ports=(trap.port,), connect_seconds=0.3)
        door._resolver = rebinding
        url = f"http://rebinding.org:{trap.port}/"
        with pytest.raises(FetchFailed) as failed:
            fetch(door, url, FetchRules(retries=0))
        assert failed.value.kind == "connect"
        assert asked == [["192.0.2.1"]]
        with pytest.raises(RefusedUrl) as refused:
            fetch(door, url)
        assert refused.value.kind == "loopback"
        assert trap.connections == 0


def test_rebinding_between_redirects_is_seen_too() -> None:
    with Server() as trap, Server({"/": redirect_to("/again")}) as server:
        turns = iter([["127.0.0.1"], ["127.0.0.2"]])

        # the operator allows one address; each redirect comes back to the same name, on a connection of its own
        def closing(request: Request, connection: Any) -> None:
            connection.sendall(reply(b"", "Location: /again", "Connection: close", status="302 Found"))
            connection.close()
            raise OSError

        server.routes = closing
        door = door_to(allow_hosts=("127.0.0.1/32",), ports=(server.port, trap.port))
        door._resolver = lambda host, port: next(turns)
        with pytest.raises(RefusedUrl) as refused:
            fetch(door, f"http://rebinding.org:{server.port}/")
        assert refused.value.kind == "loopback"
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 T", "308 P"])
def test_redirects_are_followed_to_the_page(status: str) -> None:
    with Server({"/a": redirect_to("b/../c?x=1#y", status), "/c": respond("there")}) as server:
        page = fetch(door_to(server), server.url("/a"))
    assert (page.content, page.final_url) == (b"there", server.url("/c?x=1"))


INSIDE = ["http://127.0.0.2:{p}/", "http://localhost:{p}/", "//127.0.0.2:{p}/", "http://[::1]:{p}/", "http://[::ffff:127.0.0.1]:{p}/",
          "http://2130706433:{p}/", "http://169.254.169.254/", "http://user@127.0.0.1:{p}/", "file:///etc/passwd", "http://127.0.0.1:22/",
          "http://public.org:{p}/", "http:/\\127.0.0.2:{p}/", "http://127。0。0。2:{p}/", "gopher://127.0.0.1:{p}/", "javascript:alert(1)"]  # fmt: skip


@pytest.mark.parametrize("location", INSIDE)
def test_a_redirect_into_the_inside_is_refused(location: str) -> None:
    with Server() as trap, Server() as server:
        server.routes = {"/": redirect_to(location.replace("{p}", str(trap.port)))}
        door = door_to(server, names={"public.org": ["127.0.0.1"]}, ports=(80, 443, trap.port))
        with pytest.raises(RefusedUrl) as refused:
            fetch(door, server.url())
        assert trap.connections == 0
    assert len(server.requests) == 1
    assert refused.value.kind in (
        "loopback",
        "name",
        "ambiguous",
        "metadata",
        "credentials",
        "scheme",
        "port",
        "ipv4-mapped",
        "syntax",
    )


def test_loops_and_endless_redirects_end() -> None:
    with Server({"/": redirect_to("/")}) as server:
        assert failing(door_to(server), server.url()).kind == "redirects"
        assert len(server.requests) == 2
    with Server({"/a": redirect_to("/b"), "/b": redirect_to("/a")}) as server:
        assert failing(door_to(server), server.url("/a")).kind == "redirects"
    with Server(lambda request, connection: redirect_to(request.target + "x")(request, connection)) as server:
        assert "more than 10 redirects" in str(failing(door_to(server), server.url("/")))
        assert len(server.requests) == 11


def refreshing(content: str, before: str = "<!doctype html>") -> Answer:
    return respond(f'{before}<meta http-equiv="Refresh" content="{content}"><p>Moved</p>', "Content-Type: text/html")


@pytest.mark.parametrize(
    "content", ["0;url=/b", "0; URL='/b'", "3, /b#x", "0.5;url=b", " 1 url = b", "0;b", "5;&#117;rl=/b"]
)
def test_a_refresh_within_seconds_is_followed(content: str) -> None:
    with Server({"/a": refreshing(content), "/b": respond("there")}) as server:
        page = fetch(door_to(server), server.url("/a"))
    assert (page.content, page.final_url) == (b"there", server.url("/b"))


@pytest.mark.parametrize(
    ("content", "before"),
    [("300;url=/b", ""), ("6;url=/b", ""), ("0", ""), ("0;url=/a", ""), ("0;url=", ""), ("0;url=javascript:go()", ""),
     ("0;url=/b", "<noscript>"), ("0;url=/b", "<!--"), ("0;url=/b", "<template>"), ("now;url=/b", "")],
)  # fmt: skip
def test_other_pages_with_a_refresh_stay(content: str, before: str) -> None:
    with Server({"/a": refreshing(content, before), "/b": respond("there")}) as server:
        assert fetch(door_to(server), server.url("/a")).final_url == server.url("/a")


def test_a_refresh_is_checked_and_counted_as_a_redirect_is() -> None:
    with Server() as trap, Server({"/": refreshing(f"0;url=http://127.0.0.2:{trap.port}/")}) as server:
        with pytest.raises(RefusedUrl):
            fetch(door_to(server, ports=(80, 443, trap.port)), server.url())
        assert trap.connections == 0
    with Server({"/a": refreshing("0;/b"), "/b": redirect_to("/a")}) as server:
        assert failing(door_to(server), server.url("/a")).kind == "redirects"
    with Server(lambda request, connection: refreshing(f"0;{request.target}x")(request, connection)) as server:
        assert "more than 10 redirects" in str(failing(door_to(server), server.url("/")))


def test_a_redirect_without_a_place_is_no_page() -> None:
    with Server({"/": respond(b"", status="302 Found")}) as server:
        assert failing(door_to(server), server.url()).status == 302


def test_cookies_live_for_one_page_and_one_origin() -> None:
    def visit(request: Request, connection: Any) -> None:
        if "cookie" in request.headers:
            redirect_to(f"http://127.0.0.1:{other.port}/")(request, connection)
        else:
            respond(b"", "Set-Cookie: seen=yes", "Location: /", status="302 Found")(request, connection)

    with Server() as other, Server(visit) as server:
        door = door_to(server, other)
        assert fetch(door, server.url()).content == b"hello"
        assert [request.headers.get("cookie") for request in server.requests] == [None, "seen=yes"]
        assert "cookie" not in other.requests[0].headers
        fetch(door, server.url())
        assert "cookie" not in server.requests[2].headers


# --- statuses and retries ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "410 Gone",
        "451 Law",
        "206 Partial Content",
        "304 Not Modified",
    ],
)
def test_an_answer_that_is_no_page_fails_with_its_status_and_once(status: str) -> None:
    with Server(
        respond("no", status=status) if status[0] != "3" else respond_bytes(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    ) as server:
        failed = failing(door_to(server), server.url("/a?key=secret"))
        assert len(server.requests) == 1
    assert failed.status == int(status[:3]) and status[:3] in str(failed)


def test_a_busy_server_is_asked_again_with_growing_pauses() -> None:
    slept = SleepClock()
    with Server(in_turn(respond(status="503 Busy"), respond(status="502 Bad"), respond("at last"))) as server:
        assert fetch(door_to(server), server.url(), clock=slept.clock()).content == b"at last"
    assert slept.naps == [0.5, 1.0]


def test_a_server_that_stays_busy_is_given_up() -> None:
    with Server(respond(status="500 Broken")) as server:
        failed = failing(door_to(server), server.url(), FetchRules(retries=2))
        assert len(server.requests) == 3
    assert (failed.kind, failed.status) == ("status", 500)


@pytest.mark.parametrize("asks", ["2", "Mon, 21 Sep 2026 14:13:22 GMT"])
def test_retry_after_is_honoured(asks: str) -> None:
    slept = SleepClock()
    with Server(in_turn(respond(b"", f"Retry-After: {asks}", status="429 Slow down"), respond("thanks"))) as server:
        assert fetch(door_to(server), server.url(), clock=slept.clock()).content == b"thanks"
    assert slept.naps == [2.1]


def test_a_retry_after_beyond_the_cap_ends_at_once() -> None:
    slept = SleepClock()
    with Server(respond(b"", "Retry-After: 86400", status="429 Slow down")) as server:
        failed = failing(door_to(server), server.url(), clock=slept.clock())
        assert len(server.requests) == 1
    assert "asks to wait 86400 s" in str(failed) and slept.naps == []


@pytest.mark.parametrize("asks", ["", "soon", "-1", "1e9", "999999999999", "Mon, 99 Foo 2026", "0"])
def test_a_strange_retry_after_does_no_harm(asks: str) -> None:
    slept = SleepClock()
    with Server(in_turn(respond(b"", f"Retry-After: {asks}", status="503 Busy"), respond("ok"))) as server:
        assert fetch(door_to(server), server.url(), clock=slept.clock()).content == b"ok"
    assert sum(slept.naps) <= 0.5


def test_a_broken_connection_is_tried_again() -> None:
    def hangs_up(request: Request, connection: Any) -> None:
        connection.close()
        raise OSError

    with Server(in_turn(hangs_up, hangs_up, respond("ok"))) as server:
        assert fetch(door_to(server), server.url()).content == b"ok"


def test_a_port_where_nobody_listens() -> None:
    with Server() as server:
        url, door = server.url(), door_to(server)
    assert failing(door, url).kind == "connect"


def test_a_name_that_does_not_resolve() -> None:
    failed = failing(door_to(), "http://nowhere.example.org/a?key=secret")
    assert failed.kind == "dns" and "secret" not in str(failed)


def test_a_resolver_that_never_answers_is_not_waited_for() -> None:
    with Server() as server:
        door = door_to(server, connect_seconds=0.2)
        door._resolver = lambda host, port: server.wait(30) and []  # type: ignore[return-value]
        begun = time.monotonic()
        assert failing(door, "http://slow.example.org/").kind == "dns"
        with door.client() as client, pytest.raises(FetchFailed):
            client.get("http://slow.example.org/")
        assert time.monotonic() - begun < 5


# --- hostile servers -----------------------------------------------------------------------------


def dribbles(head: bytes, server: Callable[[], Server], pause: float = 0.05) -> Answer:
    """Send a head, then single bytes with pauses, for ever."""

    def answer(request: Request, connection: Any) -> None:
        connection.sendall(head)
        while not server().wait(pause):
            connection.sendall(b"x")

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
    ids=["status line", "headers", "body", "body without a length"],
)
def test_a_slow_loris_is_left_when_the_time_is_over(head: bytes) -> None:
    with Server() as server:
        server.routes = dribbles(head, lambda: server)
        door = door_to(server, total_seconds=0.4)
        begun = time.monotonic()
        assert failing(door, server.url()).kind == "timeout"
        assert time.monotonic() - begun < 3
        with door.client() as client, pytest.raises(FetchFailed) as failed:
            client.get(server.url())
        assert failed.value.kind == "timeout"
        assert time.monotonic() - begun < 6


def test_a_server_that_says_nothing_is_left_sooner() -> None:
    with Server() as server:
        server.routes = lambda request, connection: server.wait(30) and None  # type: ignore[func-returns-value]
        door = door_to(server, read_seconds=0.2)
        assert "nothing for too long" in str(failing(door, server.url()))
        with door.client() as client, pytest.raises(FetchFailed) as failed:
            client.get(server.url())
        assert failed.value.kind == "timeout"


def test_a_tls_handshake_that_never_ends_is_left() -> None:
    with Server() as server:
        server.routes = dribbles(b"", lambda: server)  # reads the client's hello as no request, and stays silent
        door = door_to(server, connect_seconds=0.3, total_seconds=1.0)
        url = server.url().replace("http:", "https:")
        begun = time.monotonic()
        assert failing(door, url, FetchRules(retries=0)).kind == "timeout"
        with door.client() as client, pytest.raises(FetchFailed) as failed:
            client.get(url)
        assert failed.value.kind == "timeout"
        assert time.monotonic() - begun < 5


def endless(head: bytes, chunk: bytes) -> Answer:
    def answer(request: Request, connection: Any) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(chunk)

    return answer


@pytest.mark.parametrize(
    ("head", "chunk", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "too-large"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", b"x" * 65536, "too-large"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n", "too-large"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"e" * 4000 + b"\r\nx\r\n", "too-large"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: " + b"y" * 1000 + b"\r\n", "headers"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 65536, "headers"),
        (b"HTTP/1.1 200 O", b"K" * 65536, "headers"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "headers"),
    ],
    ids=[
        "endless",
        "a huge length",
        "chunks",
        "chunk extensions",
        "headers",
        "one header",
        "status line",
        "early hints",
    ],
)
def test_an_endless_answer_is_left_at_the_limit(head: bytes, chunk: bytes, kind: str) -> None:
    with Server(endless(head, chunk)) as server:
        door = door_to(server, max_wire_bytes=1_000_000, max_bytes=2_000_000, max_header_bytes=16_384)
        assert failing(door, server.url(), FetchRules(retries=0)).kind in (kind, "protocol")
        with door.client() as client, pytest.raises(FetchFailed) as failed:
            client.get(server.url())
        assert failed.value.kind in (kind, "protocol")


def test_headers_over_the_limit_that_end_are_refused_too() -> None:
    with Server({"/": respond("x", *(f"X-{number}: {'y' * 100}" for number in range(100)))}) as server:
        assert failing(door_to(server, max_header_bytes=8192), server.url()).kind == "headers"
        assert fetch(door_to(server), server.url()).content == b"x"


def bomb(coding: str, size: int = 50_000_000) -> bytes:
    plain = b"\0" * size
    if coding == "gzip":
        return gzip.compress(plain, 9, mtime=0)
    if coding == "deflate":
        return zlib.compress(plain, 9)
    if coding == "br":
        return bytes(brotli.compress(plain, quality=1))
    zstd = pytest.importorskip("backports.zstd")
    return bytes(zstd.compress(plain))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_left_at_the_limit_without_being_unpacked(coding: str) -> None:
    import tracemalloc

    with Server({"/": respond(bomb(coding), f"Content-Encoding: {coding}")}) as server:
        door = door_to(server, max_bytes=5_000_000)
        tracemalloc.start()
        failed = failing(door, server.url())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        with door.client() as client, pytest.raises(FetchFailed):
            client.get(server.url())
    assert failed.kind == "too-large" and "after decompression" in str(failed)
    assert peak < 20_000_000


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate", "br", "zstd", "two members", "identity"])
def test_every_coding_that_is_asked_for_is_undone(coding: str) -> None:
    text = "".join(f"line {number} of a page\n" for number in range(20_000)).encode()
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": lambda: gzip.compress(text, mtime=0), "deflate": lambda: zlib.compress(text), "raw deflate": lambda: raw.compress(text) + raw.flush(),
        "two members": lambda: gzip.compress(text[:1000], mtime=0) + gzip.compress(text[1000:]) + b"\0\0", "identity": lambda: text,
        "br": lambda: brotli.compress(text), "zstd": lambda: pytest.importorskip("backports.zstd").compress(text),
    }[coding]()  # fmt: skip
    name = {"raw deflate": "deflate", "two members": "gzip"}.get(coding, coding)
    with Server({"/": respond(packed, f"Content-Encoding: {name}")}) as server:
        door = door_to(server)
        assert fetch(door, server.url()).content == text
        with door.client() as client:
            assert client.get(server.url()).content == text
        offered = server.requests[0].headers["accept-encoding"]
    assert name == "identity" or name in offered


@pytest.mark.parametrize(
    ("coding", "body", "kind"),
    [("gzip", b"\x1f\x8b no gzip at all", "encoding"), ("gzip", gzip.compress(b"x" * 9999, mtime=0)[:-20], "cut"), ("compress", b"x", "encoding"),
     ("gzip, br", b"x", "encoding"), ("deflate", b"\x78\x9cgarbage", "encoding"), ("br", b"\xff" * 99, "encoding"), ("zstd", b"y" * 99 + b"\1", "encoding")],
)  # fmt: skip
def test_a_coding_that_is_damaged_or_unknown_is_an_error(coding: str, body: bytes, kind: str) -> None:
    with Server({"/": respond(body, f"Content-Encoding: {coding}")}) as server:
        assert failing(door_to(server), server.url(), FetchRules(retries=0)).kind == kind


@pytest.mark.parametrize("coding", [*accept_encoding().split(", "), "utf-8", "none", "UTF-8, none", "binary", ""])
@pytest.mark.parametrize("body", [b"<!doctype html><p>Gr\xf6\xdfe", b'{"tide": "Gr\xc3\xb6\xc3\x9fe"}'])
def test_a_plain_body_is_read_whatever_coding_is_named(coding: str, body: bytes) -> None:
    with Server({"/": respond(body, f"Content-Encoding: {coding}")}) as server:
        assert fetch(door_to(server), server.url()).content == body


def test_a_coding_named_twice_or_beside_a_charset_is_undone_once() -> None:
    for coding in ("gzip, gzip", "utf-8, gzip", "x-gzip"):
        with Server({"/": respond(gzip.compress(b"hello"), f"Content-Encoding: {coding}")}) as server:
            assert fetch(door_to(server), server.url()).content == b"hello"


def test_an_empty_body_with_a_coding_is_an_empty_page() -> None:
    with Server({"/": respond(b"", "Content-Encoding: gzip")}) as server:
        assert fetch(door_to(server), server.url()).content == b""


def test_a_body_shorter_than_its_length_is_an_error_and_not_a_page() -> None:
    def short(request: Request, connection: Any) -> None:
        connection.sendall(reply("half a pa", length=100))
        connection.close()
        raise OSError

    with Server(short) as server:
        failed = failing(door_to(server), server.url(), FetchRules(retries=1))
        assert len(server.requests) == 2
    assert failed.kind == "cut"


@pytest.mark.parametrize(
    "data",
    [b"\0" * 100 + b"\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"<html>no headers</html>\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
     b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\nx", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: what\r\n\r\nhello"],
)  # fmt: skip
def test_what_is_no_http_is_one_clear_error(data: bytes) -> None:
    def answer(request: Request, connection: Any) -> None:
        connection.sendall(data)
        connection.close()
        raise OSError

    with Server(answer) as server:
        assert failing(door_to(server), server.url(), FetchRules(retries=0)).kind in ("protocol", "cut")


def test_a_longer_body_than_its_length_says_does_not_leak_into_the_next_page() -> None:
    with Server({"/a": respond("hello and more", length=5), "/b": respond("next")}) as server:
        fetcher = HttpFetcher(door_to(server))

        async def both() -> list[Page | PrunusError]:
            return await fetch_all(fetcher, [server.url("/a"), server.url("/b")], 1)

        first, second = asyncio.run(both())
    assert isinstance(first, Page) and first.content == b"hello"
    assert isinstance(second, Page) and second.content == b"next"


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    made = trustme.CA()
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    made.cert_pem.write_to_path(str(path))
    return made, path


def tls_server(authority: trustme.CA, *names: str) -> Server:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return Server(tls=context)


def test_a_certificate_of_nobody_known_is_refused(authority: tuple[trustme.CA, Path]) -> None:
    with tls_server(authority[0], "127.0.0.1") as server:
        failed = failing(door_to(server), server.url())
        assert failed.kind == "tls" and "not trusted" in str(failed)
        with door_to(server).client() as client, pytest.raises(FetchFailed):
            client.get(server.url())
        assert server.requests == []


def test_a_certificate_of_the_operators_authority_is_trusted_for_its_name_alone(
    authority: tuple[trustme.CA, Path],
) -> None:
    with tls_server(authority[0], "wiki.corp") as server:
        door = door_to(server, names={"wiki.corp": ["127.0.0.1"], "other.corp": ["127.0.0.1"]}, ca_file=str(authority[1]),
                       allow_hosts=(f"wiki.corp:{server.port}", f"other.corp:{server.port}"))  # fmt: skip
        assert fetch(door, server.url(host="wiki.corp")).content == b"hello"
        with door.client() as client:
            assert client.get(server.url(host="wiki.corp")).text == "hello"
        for host in ("other.corp", "127.0.0.1"):
            assert failing(door, server.url(host=host)).kind == "tls"
    assert len(server.requests) == 2


def test_tls_to_a_server_that_speaks_none() -> None:
    with Server(respond("hello")) as server:
        server.routes = respond_bytes(b"HTTP/1.1 400 Bad\r\n\r\n")
        door = door_to(server, connect_seconds=1.0)
        failed = failing(door, server.url().replace("http:", "https:"), FetchRules(retries=0))
    assert failed.kind in ("tls", "timeout")


def test_an_unreadable_authority_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.pem"
    with Server() as server, pytest.raises(PrunusError, match="ca_file"):
        fetch(door_to(server, ca_file=str(path)), server.url())


# --- the cache as the fetcher uses it ------------------------------------------------------------


class FakeCache:
    """A cache that stores every success; its pages are fresh only while ``fresh_now`` is set."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.fresh_now = False
        self.gone = False

    def fresh(self, url: str) -> Page | None:
        return self.pages.get(url) if self.fresh_now else None

    def validators(self, url: str) -> dict[str, str]:
        page = self.pages.get(url)
        return {"if-none-match": page.headers["etag"]} if page and "etag" in page.headers else {}

    def store(
        self,
        url: str,
        page: Page,
        response_headers: Any,
        request_time: float,
        response_time: float,
        *,
        authorised: bool = False,
    ) -> None:
        if not authorised and page.status < 400:
            self.pages[url] = page

    def revalidate(self, url: str, response_headers: Any, now: float) -> Page | None:
        return None if self.gone else replace(self.pages[url], fetched_at="confirmed")

    def stale(self, url: str) -> Page | None:
        return self.pages.get(url)


def with_etag(request: Request, connection: Any) -> None:
    if request.headers.get("if-none-match") == '"1"':
        connection.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n')
    else:
        connection.sendall(reply("page", 'ETag: "1"'))


def test_a_page_is_asked_for_again_only_if_it_changed() -> None:
    cache = FakeCache()
    with Server(with_etag) as server:
        door = door_to(server)
        fetch(door, server.url(), cache=cache)
        again = fetch(door, server.url(), cache=cache)
        assert (again.content, again.fetched_at) == (b"page", "confirmed")
        cache.gone = True
        assert fetch(door, server.url(), cache=cache).content == b"page"
        assert [request.headers.get("if-none-match") for request in server.requests] == [None, '"1"', '"1"', None]
        cache.fresh_now = True
        fetch(door, server.url(), cache=cache)
        assert len(server.requests) == 4


def test_an_old_page_stands_in_for_a_server_that_fails() -> None:
    cache = FakeCache()
    with Server(
        {
            "/": in_turn(respond("old"), respond(status="503 Busy")),
            "/gone": in_turn(respond("x"), respond(status="404 No")),
        }
    ) as server:
        door = door_to(server)
        fetch(door, server.url(), cache=cache)
        fetch(door, server.url("/gone"), cache=cache)
        assert fetch(door, server.url(), cache=cache).content == b"old"
        assert failing(door, server.url("/gone"), cache=cache).status == 404
    assert fetch(door, server.url(), cache=cache).content == b"old"


def test_each_step_of_a_redirect_is_kept_on_its_own() -> None:
    cache = FakeCache()
    with Server({"/a": redirect_to("/b", "301 Moved"), "/b": respond("there")}) as server:
        door = door_to(server)
        fetch(door, server.url("/a"), cache=cache)
        cache.fresh_now = True
        page = fetch(door, server.url("/a"), cache=cache)
        assert len(server.requests) == 2
    assert {url.rpartition("/")[2]: page.status for url, page in cache.pages.items()} == {"a": 301, "b": 200}
    assert (page.content, page.final_url) == (b"there", server.url("/b"))


# --- many at once --------------------------------------------------------------------------------


def many_routes() -> dict[str, Answer]:
    return {"/ok": respond("fine"), "/missing": respond(status="404 No"), "/loop": redirect_to("/loop")}


def test_many_pages_fail_alone_and_come_in_the_order_of_the_urls() -> None:
    with Server(many_routes()) as server:
        urls = [server.url(path) for path in ("/ok", "/missing", "/loop")] + [
            "http://127.0.0.1/",
            "nonsense",
            server.url("/ok"),
        ]

        async def run() -> list[Page | PrunusError]:
            async with HttpFetcher(door_to(server), clock=SleepClock().clock()) as fetcher:
                return await fetch_all(fetcher, urls, 3)

        outcomes = asyncio.run(run())
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Page",
        "FetchFailed",
        "FetchFailed",
        "RefusedUrl",
        "RefusedUrl",
        "Page",
    ]
    assert [outcome.url for outcome in outcomes if isinstance(outcome, Page)] == [urls[0], urls[5]]


def test_pages_come_as_they_are_done_unless_an_order_is_asked_for() -> None:
    with Server() as server:
        slow = lambda request, connection: (server.wait(0.3), connection.sendall(reply("slow")))  # noqa: E731
        server.routes = {"/slow": slow, "/ok": respond("fine")}  # type: ignore[dict-item]
        urls = [server.url("/slow"), server.url("/ok")]

        async def run(ordered: bool) -> list[int]:
            async with HttpFetcher(door_to(server)) as fetcher:
                return [position async for position, _ in fetcher.fetch_many(urls, ordered=ordered)]

        assert asyncio.run(run(False)) == [1, 0]
        assert asyncio.run(run(True)) == [0, 1]


def test_no_more_than_so_many_at_once_and_at_one_host() -> None:
    now, most = [0], [0]

    def count(request: Request, connection: Any) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        server.wait(0.02)
        now[0] -= 1
        connection.sendall(reply("x"))

    async def run(rules: FetchRules) -> int:
        most[0] = 0
        async with HttpFetcher(door_to(server), rules) as fetcher:
            assert len(await fetch_all(fetcher, [server.url(f"/{number}") for number in range(20)])) == 20
        return most[0]

    with Server(count) as server:
        assert asyncio.run(run(FetchRules(at_once=8, per_host=3))) <= 3
        assert asyncio.run(run(FetchRules(at_once=2, per_host=8))) <= 2
        connections = server.connections
    assert connections <= 5  # connections are used again


def test_a_pause_between_two_requests_to_a_host() -> None:
    slept = SleepClock()
    with Server() as server:

        async def run() -> None:
            async with HttpFetcher(door_to(server), FetchRules(delay=2.0, at_once=1), clock=slept.clock()) as fetcher:
                await fetch_all(fetcher, [server.url()] * 3)
            await HttpFetcher(door_to(server), FetchRules(delay=2.0), clock=slept.clock()).fetch(server.url())

        asyncio.run(run())
    assert slept.naps == [2.0, 2.0]


def test_urls_are_taken_as_slots_get_free() -> None:
    taken = []

    def urls() -> Iterator[str]:
        for number in range(10_000):
            taken.append(number)
            yield server.url("/ok")

    async def run() -> None:
        async with HttpFetcher(door_to(server)) as fetcher:
            results = fetcher.fetch_many(urls(), 4)
            async for _ in results:
                break
            await results.aclose()

    with Server(many_routes()) as server:
        asyncio.run(run())
    assert len(taken) <= 8


def test_cancelling_stops_at_once_and_leaves_nothing_behind() -> None:
    with Server() as server:
        server.routes = lambda request, connection: server.wait(30) and None  # type: ignore[func-returns-value]

        async def run() -> None:
            async with HttpFetcher(door_to(server)) as fetcher:
                task = asyncio.create_task(fetch_all(fetcher, [server.url(f"/{number}") for number in range(50)]))
                while len(server.requests) < 4:
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert asyncio.all_tasks() == {asyncio.current_task()}

        begun = time.monotonic()
        asyncio.run(run())
        assert time.monotonic() - begun < 3
