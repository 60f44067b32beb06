"""Clients that hold connections: they never read, never ask, or open too many."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.extras import need
from tests.serve.running import BRIDGE, Running, running

pytestmark = pytest.mark.full

PAGE = b"GET /page/prune.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
READY = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@contextmanager
def sockets(server: Running, count: int, sent: bytes = b"", source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Open connections that read nothing, with the smallest window there is.

    :param source: the address of the client.
    """
    port = int(server.url.rpartition(":")[2])
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            one.settimeout(10)
            one.bind((source, 0))
            one.connect(("127.0.0.1", port))
            one.setblocking(False)
            with suppress(BlockingIOError):  # the server reads no more
                one.send(sent)
            one.settimeout(10)
            made.append(one)
        yield made


def is_open(one: socket.socket) -> bool:
    """Tell whether the server still holds a connection that has sent nothing."""
    one.settimeout(0.2)
    try:
        return one.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_clients_that_read_nothing_take_no_place_of_others(tmp_path: Path) -> None:
    with running(tmp_path, at_once=1, waiting=0) as server, sockets(server, 200, PAGE * 2_000):
        time.sleep(1)
        assert server.http.get("/page/prune.js").status_code == 200
        assert server.post("/v1/clean", {"page": {"html": BRIDGE}}).status_code == 200


def test_a_client_that_reads_nothing_is_left_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import connections

    monkeypatch.setattr(connections, "_SEND_SECONDS", 0.5)
    with running(tmp_path) as server, sockets(server, 3, PAGE * 2_000):
        state = server.server.server_state
        until = time.monotonic() + 10
        while len(state.connections) and time.monotonic() < until:
            time.sleep(0.05)
        assert not state.connections and not state.tasks


def test_a_client_that_reads_slowly_gets_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import connections

    monkeypatch.setattr(connections, "_SEND_SECONDS", 0.5)
    monkeypatch.setattr(connections, "_LEAST", 1024)
    asked = 40
    with (
        running(tmp_path) as server,
        sockets(server, 1, PAGE * (asked - 1) + PAGE[:-2] + b"Connection: close\r\n\r\n") as [one],
    ):
        got, began = b"", time.monotonic()
        while piece := one.recv(65_536):
            got += piece
            time.sleep(0.03)
        assert got.count(b"HTTP/1.1 200 OK") == asked and time.monotonic() - began > 1


def test_a_new_connection_takes_the_place_of_the_one_that_is_idle_longest(tmp_path: Path) -> None:
    with running(tmp_path, connections=8) as server, sockets(server, 8) as idle:
        assert server.http.get("/healthz").status_code == 200
        assert [is_open(one) for one in idle] == [False] + 7 * [True]
        with sockets(server, 30), sockets(server, 1, READY) as [last]:
            assert last.recv(100).startswith(b"HTTP/1.1 200 ")


def test_one_address_holds_a_quarter_of_all_connections(tmp_path: Path) -> None:
    with running(tmp_path, connections=8) as server, sockets(server, 2, source="127.0.0.2"):
        with sockets(server, 1, READY, "127.0.0.2") as [third]:
            assert third.recv(100).startswith(b"HTTP/1.1 503 ")
        with sockets(server, 1, READY, "127.0.0.3") as [other]:
            assert other.recv(100).startswith(b"HTTP/1.1 200 ")
    with (
        running(tmp_path, connections=8, proxies=("127.0.0.2",)) as server,
        sockets(server, 6, source="127.0.0.2"),
        sockets(server, 1, READY, "127.0.0.2") as [seventh],
    ):
        assert seventh.recv(100).startswith(b"HTTP/1.1 200 ")


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    need("fastapi")
    from prunus.serve.connections import _network

    assert _network("2001:db8::1") == _network("2001:db8::2:3") != _network("2001:db8:0:1::1")
    assert _network("::ffff:192.0.2.1") == _network("192.0.2.1") != _network("::ffff:192.0.2.2")
