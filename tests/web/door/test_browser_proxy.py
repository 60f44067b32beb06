"""The proxy between a browser and the egress door, with real sockets and without a browser."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable

from tests.web.fetch.server import Server, door_to, in_turn, redirect_to, reply, respond, respond_bytes

from prunus.web.door.proxy import PinningProxy

Talk = Callable[[PinningProxy], Awaitable[bytes]]


def login(proxy: PinningProxy, password: str = "") -> str:
    secret = base64.b64encode(f"{proxy.username}:{password or proxy.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {secret}\r\n"


async def send(proxy: PinningProxy, data: str | bytes, wait: float = 5.0) -> bytes:
    """Send bytes to the proxy, and return its whole response."""
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data.encode() if isinstance(data, str) else data)
    try:
        return await asyncio.wait_for(reader.read(-1), wait)
    except ConnectionResetError:
        return b"reset"
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def talk(server: Server, work: Talk, max_bytes: int = 10_000_000) -> tuple[bytes, PinningProxy]:
    """Run a client against a proxy whose door allows ``server`` and no other internal host."""

    async def run() -> tuple[bytes, PinningProxy]:
        async with PinningProxy(
            door_to(server, names={"site.velmar.org": ["127.0.0.1"], "out.velmar.org": []}), max_bytes
        ) as proxy:
            return await work(proxy), proxy

    return asyncio.run(run())


def get(url: str, more: str = "", password: str = "") -> Talk:
    async def work(proxy: PinningProxy) -> bytes:
        return await send(proxy, f"GET {url} HTTP/1.1\r\nHost: liar.example\r\n{login(proxy, password)}{more}\r\n")

    return work


def test_a_request_goes_where_its_address_says_and_the_connection_ends_with_it() -> None:
    with Server(respond("Tides.", "Keep-Alive: timeout=9", "Set-Cookie: a=b", 'Alt-Svc: h3=":443"')) as server:
        answer, proxy = talk(
            server, get(server.url("/a?b=c"), "Connection: keep-alive\r\nX-Own: 1\r\nUpgrade: websocket\r\n")
        )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"Tides." and head.startswith(b"HTTP/1.1 200 OK")
    assert b"Connection: close" in head and b"Keep-Alive" not in head and b"Alt-Svc" not in head
    (request,) = server.requests
    assert (request.method, request.target, request.headers["host"]) == ("GET", "/a?b=c", f"127.0.0.1:{server.port}")
    assert request.headers["x-own"] == "1" and request.headers["connection"] == "close"
    assert not {"proxy-authorization", "upgrade"} & request.headers.keys()
    assert proxy.bytes > 0 and not proxy.refused


def test_who_does_not_know_the_password_gets_nowhere() -> None:
    with Server() as server:
        for work in (
            get(server.url(), password="wrong"),
            lambda proxy: send(proxy, f"GET {server.url()} HTTP/1.1\r\n\r\n"),
        ):
            answer, _ = talk(server, work)
            assert answer.startswith(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic")
        connect = f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n"
        answer, _ = talk(server, lambda proxy: send(proxy, connect))
        assert answer.startswith(b"HTTP/1.1 407")
    assert server.connections == 0


def test_every_run_has_a_password_of_its_own() -> None:
    door = door_to()
    assert PinningProxy(door, 1).password != PinningProxy(door, 1).password


def test_what_the_door_refuses_is_refused_and_remembered() -> None:
    with Server() as inside, Server() as server:
        for place in (
            f"127.0.0.1:{inside.port}",
            "169.254.169.254",
            "[::1]:80",
            "localhost:80",
            "user@site.velmar.org",
        ):
            answer, proxy = talk(server, get(f"http://{place}/"))
            assert answer == b"", place
            assert len(proxy.refused) == 1 and "\n" not in next(iter(proxy.refused.values()))
        for place in (
            f"127.0.0.1:{inside.port}",
            "[::ffff:127.0.0.1]:443",
            "site.velmar.org:443",
            "127.1:443",
            "0x7f000001:443",
        ):
            connect = f"CONNECT {place} HTTP/1.1\r\n"
            answer, proxy = talk(server, lambda proxy, connect=connect: send(proxy, f"{connect}{login(proxy)}\r\n"))  # type: ignore[misc]
            assert answer.startswith(b"HTTP/1.1 403"), place
            assert list(proxy.refused) == [place]
    assert inside.connections == server.connections == 0


def test_a_name_that_does_not_resolve_is_a_failure_and_no_refusal() -> None:
    with Server() as server:
        answer, proxy = talk(server, get("http://out.velmar.org/"))
    assert answer == b"" and list(proxy.failed) == ["out.velmar.org"] and not proxy.refused


def test_a_tunnel_carries_bytes_both_ways_unchanged() -> None:
    with Server(lambda request, connection: connection.sendall(bytes(range(256)) * 40)) as server:

        async def work(proxy: PinningProxy) -> bytes:
            host, port = proxy.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n{login(proxy)}\r\n".encode())
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection Established\r\n\r\n"
            writer.write(b"GET /in-the-tunnel HTTP/1.1\r\n\r\n")
            data = await asyncio.wait_for(reader.readexactly(256 * 40), 5)
            writer.close()
            return data

        answer, proxy = talk(server, work)
    assert answer == bytes(range(256)) * 40 and server.targets() == ["/in-the-tunnel"]
    assert proxy.bytes == 256 * 40 + len("GET /in-the-tunnel HTTP/1.1\r\n\r\n")


def test_a_second_request_in_the_same_bytes_goes_nowhere() -> None:
    """A connection serves one request: a second one after the body, or after a head without a body, is ignored."""
    with Server() as inside, Server() as server:
        second = f"GET http://127.0.0.1:{inside.port}/ HTTP/1.1\r\n\r\n"
        for method, body in (("GET", ""), ("POST", "ab")):

            async def work(proxy: PinningProxy, method: str = method, body: str = body) -> bytes:
                length = f"Content-Length: {len(body)}\r\n" if body else ""
                return await send(
                    proxy, f"{method} {server.url()} HTTP/1.1\r\n{login(proxy)}{length}\r\n{body}{second}"
                )

            answer, _ = talk(server, work)
            assert answer.count(b"HTTP/1.1") == 1
    assert [request.method for request in server.requests] == ["GET", "POST"] and inside.connections == 0


BAD_HEADS = (
    "GET / HTTP/1.1\r\n{login}\r\n",
    "GET https://example.org/ HTTP/1.1\r\n{login}\r\n",
    "GET ftp://example.org/ HTTP/1.1\r\n{login}\r\n",
    "TRACE {url} HTTP/1.1\r\n{login}\r\n",
    "GET {url}\r\n{login}\r\n",
    "GET {url} HTTP/1.1\r\n{login}no colon\r\n\r\n",
    "GET {url} HTTP/1.1\r\n{login}Folded: a\r\n b: c\r\n\r\n",
    "POST {url} HTTP/1.1\r\n{login}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST {url} HTTP/1.1\r\n{login}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "POST {url} HTTP/1.1\r\n{login}Content-Length: -1\r\n\r\n",
    "CONNECT example.org HTTP/1.1\r\n{login}\r\n",
    "CONNECT example.org:99999999 HTTP/1.1\r\n{login}\r\n",
)


def test_what_is_no_request_is_answered_and_not_passed_on() -> None:
    with Server() as server:
        for head in BAD_HEADS:
            filled = head.replace("{url}", server.url())
            answer, _ = talk(server, lambda proxy, head=filled: send(proxy, head.replace("{login}", login(proxy))))  # type: ignore[misc]
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 411")), head
        answer, _ = talk(server, lambda proxy: send(proxy, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 30_000))
        assert answer in (b"", b"reset"), "a head without end is cut off"
    assert server.requests == []


def test_an_answer_that_is_no_http_is_not_passed_on() -> None:
    with Server(respond_bytes(b"SSH-2.0-x\r\n\r\n")) as server:
        answer, _ = talk(server, get(server.url()))
    assert answer == b""


def test_an_announcement_before_the_answer_is_passed_over() -> None:
    with Server(respond_bytes(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + reply("Tides."))) as server:
        answer, _ = talk(server, get(server.url()))
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"Tides.")


def test_redirects_are_the_browsers_and_come_back_to_the_door() -> None:
    with Server() as inside, Server(in_turn(redirect_to(inside.url()))) as server:
        answer, _ = talk(server, get(server.url()))
        assert b"302 Found" in answer and inside.url().encode() in answer
    assert inside.connections == 0


def test_the_allowance_of_bytes_ends_every_connection() -> None:
    def endless(request: object, connection: object) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")  # type: ignore[attr-defined]
        while True:
            connection.sendall(b"x" * 65_536)  # type: ignore[attr-defined]

    with Server(endless) as server:

        async def work(proxy: PinningProxy) -> bytes:
            first = await get(server.url())(proxy)
            return first + await get(server.url())(proxy)

        answer, proxy = talk(server, work, max_bytes=1_000_000)
    assert 1_000_000 < len(answer) < 1_200_000 and answer.endswith(b"Connection: close\r\n\r\n")
    assert b"HTTP/1.1 503" in answer and proxy.exhausted and server.connections == 1


def test_closing_the_proxy_ends_what_is_open() -> None:
    with Server(lambda request, connection: server.wait(30)) as server:  # type: ignore[func-returns-value]

        async def run() -> bytes:
            async with PinningProxy(door_to(server), 1_000) as proxy:
                waiting = asyncio.ensure_future(get(server.url())(proxy))
                while not server.requests:
                    await asyncio.sleep(0.01)
            return await asyncio.wait_for(waiting, 5)

        assert asyncio.run(run()) == b""
