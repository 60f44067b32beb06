"""Many requests at once: turns, refusals, time limits, clients that leave, and the end of the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.answer.world import world
from tests.cli.command import PROGRAM, Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, events_of, model, running

from prunus.core.errors import OutsideFailed
from prunus.core.events import Event, TokenEvent
from prunus.core.settings import load_settings
from prunus.core.sync import in_a_thread

pytestmark = pytest.mark.full

ASK = {"question": QUESTION, "pages": [{"html": BRIDGE}], "stream": True}

CHAT = {"model": "prunus", "messages": [{"role": "user", "content": QUESTION}], "pages": [{"html": BRIDGE}]}


async def slow(words: int, pause: float, ended: list[str]) -> AsyncIterator[Event]:
    try:
        for number in range(words):
            await asyncio.sleep(pause)
            yield TokenEvent(str(number))
    finally:
        ended.append("closed")


@pytest.mark.parametrize(("others", "may_pass", "passed"), [(1, True, True), (0, True, False), (1, False, False)])
def test_a_stream_of_large_pages_passes_on_beside_others_until_it_has_begun(
    others: int, may_pass: bool, passed: bool
) -> None:
    need("fastapi")
    from prunus.serve.work import BODY, PassedOn, RequestSize, Workers
    from prunus.web.reader import FETCHED

    async def events() -> AsyncIterator[Event]:
        fetched = FETCHED.get()
        assert fetched is not None
        fetched.add(2**20)
        yield TokenEvent("here")

    async def scene() -> list[Event | None]:
        workers = Workers(at_once=2, waiting=0, seconds=10)
        BODY.set(RequestSize(may_pass=may_pass))
        beside = [asyncio.create_task(workers.within(lambda: asyncio.sleep(5))) for _ in range(others)]
        await asyncio.sleep(0)
        try:
            return [event async for event in workers.stream(events)]
        finally:
            for task in beside:
                task.cancel()

    if passed:
        with pytest.raises(PassedOn):
            asyncio.run(scene())
    else:
        assert asyncio.run(scene()) == [None, TokenEvent("here")]


def test_more_requests_than_may_wait_are_refused() -> None:
    need("fastapi")
    from prunus.serve.work import Busy, Workers

    async def scene() -> tuple[int, int]:
        workers = Workers(at_once=1, waiting=1, seconds=10)
        replies = await asyncio.gather(
            *(workers.call(lambda: time.sleep(0.2)) for _ in range(4)), return_exceptions=True
        )
        await workers.drain(1)
        return sum(isinstance(reply, Busy) for reply in replies), workers.running

    assert asyncio.run(scene()) == (2, 0)


def test_an_answer_that_takes_too_long_ends_with_an_error() -> None:
    need("fastapi")
    from prunus.serve.work import Busy, Workers

    ended: list[str] = []

    async def scene() -> list[Event]:
        workers = Workers(at_once=1, waiting=0, seconds=0.3)
        found: list[Event] = []

        async def follow() -> None:
            async for event in workers.stream(lambda: slow(100, 0.05, ended)):
                found.append(event)

        with pytest.raises(OutsideFailed, match=r"longer than 0\.3 seconds"):
            await follow()
        while workers.running:  # until the thread has ended
            await asyncio.sleep(0.01)
        with pytest.raises(OutsideFailed, match="longer than"):
            await workers.call(lambda: time.sleep(0.8))
        with pytest.raises(Busy):  # the thread is at work still, so that its place is not free
            await workers.call(lambda: None)
        await workers.drain(2)
        assert workers.running == 0
        return found

    assert 2 <= len(asyncio.run(scene())) <= 6 and ended == ["closed"]


def test_an_answer_whose_client_leaves_is_cancelled() -> None:
    need("fastapi")
    from prunus.serve.work import Workers

    ended: list[str] = []

    async def scene() -> int:
        workers = Workers(at_once=1, waiting=0, seconds=60)
        events = workers.stream(lambda: slow(10_000, 0.01, ended))
        assert await anext(events) is None and isinstance(await anext(events), TokenEvent)
        await events.aclose()
        await workers.drain(5)
        return workers.running

    started = time.monotonic()
    assert asyncio.run(scene()) == 0 and ended == ["closed"] and time.monotonic() - started < 10


def test_a_free_turn_goes_to_the_caller_that_has_the_fewest() -> None:
    need("fastapi")
    from prunus.serve.work import Busy, Workers

    order: list[str] = []

    async def scene() -> int:
        workers = Workers(at_once=1, waiting=10, seconds=10)

        async def ask(caller: str) -> None:
            await workers.call(lambda: order.append(caller) or time.sleep(0.01), caller)  # type: ignore[func-returns-value]

        asked = [asyncio.create_task(ask(caller)) for caller in ("greedy",) * 8 + ("modest",)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        await workers.drain(1)
        return sum(isinstance(outcome, Busy) for outcome in outcomes)

    refused = asyncio.run(scene())
    assert refused == 2, "one caller may fill half of the places that wait"
    assert order.index("modest") <= 2, "the caller with one question does not wait for all of the other's"


def test_one_key_takes_half_of_the_turns_and_leaves_the_rest() -> None:
    need("fastapi")
    from prunus.serve.work import Workers

    async def scene() -> tuple[int, bool]:
        workers = Workers(at_once=6, waiting=20, seconds=10)
        greedy = [asyncio.create_task(workers.within(lambda: asyncio.sleep(1), "greedy")) for _ in range(8)]
        await asyncio.sleep(0.05)
        taken = workers._turns.taken
        modest = asyncio.create_task(workers.within(lambda: asyncio.sleep(0), "modest"))
        await asyncio.sleep(0.05)
        served = modest.done()
        await asyncio.gather(*greedy, modest)
        await workers.drain(1)
        return taken, served

    assert asyncio.run(scene()) == (3, True)


def test_a_turn_lasts_until_the_threads_of_its_request_have_ended() -> None:
    need("fastapi")
    from prunus.serve.work import Busy, Workers

    over = threading.Event()

    async def compute() -> None:
        await in_a_thread(lambda: over.wait(20))

    async def scene() -> None:
        workers = Workers(at_once=1, waiting=0, seconds=30)
        workers.start()
        leaves = asyncio.create_task(workers.within(compute))
        await asyncio.sleep(0.1)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        with pytest.raises(Busy):
            await workers.within(compute)
        over.set()
        while workers.running:
            await asyncio.sleep(0.01)
        await workers.call(lambda: None)
        await workers.drain(1)

    asyncio.run(scene())


def test_a_computation_ends_where_nobody_waits_for_it_or_its_time_is_up() -> None:
    need("fastapi")
    from prunus.core.deadline import checked
    from prunus.serve.work import TooLong, Workers

    ended: list[str] = []

    def compute() -> None:
        try:
            for _ in checked(count()):
                pass
        except TooLong as error:
            ended.append(str(error))
            raise

    async def scene() -> None:
        workers = Workers(at_once=1, waiting=0, seconds=1)
        workers.start()
        leaves = asyncio.create_task(workers.within(lambda: in_a_thread(compute)))
        await asyncio.sleep(0.1)
        leaves.cancel()
        while workers.running:
            await asyncio.sleep(0.01)
        assert len(ended) == 1
        with pytest.raises(TooLong):
            await workers.call(compute)
        while workers.running:
            await asyncio.sleep(0.01)
        await workers.drain(1)

    asyncio.run(scene())
    assert ended[1:] == ["this took longer than 1 seconds, the limit here"]


@pytest.mark.parametrize("sent", [True, False], ids=["sent", "fetched"])
def test_large_requests_are_computed_one_after_another_and_callers_take_turns(sent: bool) -> None:
    """Large are those whose bodies are, and those whose pages are when they were fetched."""
    need("fastapi")
    from prunus.serve.work import BODY, RequestSize, Workers
    from prunus.web.reader import FETCHED

    order: list[str] = []
    at_work, most = 0, 0
    lock, go_on = threading.Lock(), threading.Event()

    def compute(name: str) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
            order.append(name)
        go_on.wait(60)
        with lock:
            at_work -= 1

    async def scene() -> None:
        workers = Workers(at_once=20, waiting=20, seconds=60)
        workers.start()

        async def ask(caller: str, size: int) -> None:
            BODY.set(RequestSize(size if sent else 10))

            async def work() -> None:
                fetched = FETCHED.get()
                assert fetched is not None
                fetched.size += 0 if sent else size
                await in_a_thread(lambda: compute(caller))

            await workers.within(work, caller)

        tasks = [asyncio.create_task(ask(caller, 3_000_000)) for caller in ["greedy"] * 6 + ["modest"]]
        while workers.computing < 7:
            await asyncio.sleep(0.01)
        await workers.call(lambda: None, "small")  # does not wait for them: they wait for it
        go_on.set()
        await asyncio.gather(*tasks)
        await workers.drain(1)

    asyncio.run(scene())
    assert most == 1 and len(order) == 7 and order.index("modest") <= 2


def test_the_bytes_of_fetched_pages_are_counted() -> None:
    from prunus.web.reader import FETCHED, FetchedSize, PageReader

    async def scene(addresses: list[str], rules: dict[str, Any]) -> int:
        counted = FetchedSize()
        FETCHED.set(counted)
        async with aclosing(PageReader(load_settings(rules)).fetch_many(addresses)) as pages:
            async for _ in pages:
                pass
        return counted.size

    with world() as web:
        web.pages = {"/a": BRIDGE, "/b": BRIDGE * 3}
        rules = {"allow_hosts": ("127.0.0.1",), "ports": (urlsplit(web.url).port,), "browser": "never"}
        size = asyncio.run(scene([f"{web.url}/a", f"{web.url}/b", f"{web.url}/gone"], rules))
    assert 4 * len(BRIDGE) <= size < 5 * len(BRIDGE)


def test_a_key_computes_two_small_things_at_a_time_and_another_does_not_wait_for_them() -> None:
    need("fastapi")
    from prunus.serve.keys import NO_KEY
    from prunus.serve.work import Workers

    go_on = threading.Event()
    at_work: list[str] = []

    def compute(name: str) -> None:
        at_work.append(name)
        go_on.wait(60)

    async def scene() -> None:
        workers = Workers(at_once=40, waiting=20, seconds=60)
        workers.start()
        greedy = [asyncio.create_task(workers.call(lambda: compute("greedy"), "greedy")) for _ in range(6)]
        nobody = [asyncio.create_task(workers.call(lambda: compute(NO_KEY), NO_KEY)) for _ in range(6)]
        while len(at_work) < 8:
            await asyncio.sleep(0.01)
        await workers.call(lambda: None, "modest")
        assert sorted(at_work) == [NO_KEY] * 6 + ["greedy"] * 2, "without keys there are no others to wait for"
        go_on.set()
        await asyncio.gather(*greedy, *nobody)
        await workers.drain(1)

    asyncio.run(scene())
    assert at_work.count("greedy") == 6


def test_waiting_for_pages_takes_no_thread_from_what_computes() -> None:
    need("fastapi")
    from prunus.serve.work import Workers

    async def scene() -> float:
        workers = Workers(at_once=100, waiting=0, seconds=10)
        workers.start()
        slow = [asyncio.create_task(workers.within(lambda: asyncio.sleep(3))) for _ in range(90)]
        await asyncio.sleep(0)
        started = time.monotonic()
        await workers.call(lambda: None)
        took = time.monotonic() - started
        for task in slow:
            task.cancel()
        await workers.drain(1)
        assert workers.running == 0
        return took

    assert asyncio.run(scene()) < 1


def test_a_stopping_server_tells_what_still_runs() -> None:
    need("fastapi")
    from prunus.serve.work import Stopping, Workers

    ended: list[str] = []

    async def scene() -> int:
        workers = Workers(at_once=3, waiting=1, seconds=60)
        workers.stop(0.1)

        async def follow() -> None:
            async for _ in workers.stream(lambda: slow(10_000, 0.01, ended)):
                pass

        waits = [follow(), workers.within(lambda: asyncio.sleep(30)), workers.call(lambda: time.sleep(0.5))]
        waits += [workers.call(lambda: None)]  # there is no turn left for it
        outcomes = await asyncio.gather(*waits, return_exceptions=True)
        await workers.drain(2)
        assert workers.running == 0
        return sum(isinstance(outcome, Stopping) for outcome in outcomes)

    started = time.monotonic()
    assert asyncio.run(scene()) == 4 and ended == ["closed"] and time.monotonic() - started < 10


def test_a_stream_begins_before_its_first_event_where_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import answering as asking

    monkeypatch.setattr(asking, "_PATIENCE", 0.1)
    ended: list[str] = []

    async def scene() -> list[Event | None]:
        async def stays() -> dict[str, str]:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def in_turn() -> AsyncIterator[Event | None]:
            yield None
            async for event in slow(2, 0.4, ended):
                yield event

        events = await asking.begun(in_turn(), stays)  # type: ignore[arg-type]
        return [event async for event in events]

    first, *rest = asyncio.run(scene())
    assert first is None and [event.text for event in rest if isinstance(event, TokenEvent)] == ["0", "1"]
    assert ended == ["closed"]


def test_a_stream_without_a_turn_is_refused_soon(tmp_path: Path) -> None:
    settings = {
        "llm": model(
            tmp_path, "The bridge opened in 1932 [1]. " + " ".join(f"word{n}" for n in range(900)), pause=0.05
        ),
        "extractor": "sentences",
    }
    with (
        running(tmp_path, settings, at_once=1, waiting=9) as server,
        server.http.stream("POST", "/v1/ask", json=ASK) as reply,
    ):
        lines = reply.iter_lines()
        next(line for line in lines if line == "event: token")
        for path, body in (("/v1/ask", ASK), ("/v1/chat/completions", {**CHAT, "stream": True})):
            started = time.monotonic()
            refused = server.post(path, body)
            assert refused.status_code == 503 and refused.headers["retry-after"]
            assert refused.json()["error"]["code"] == "busy" and time.monotonic() - started < 2


def test_bodies_at_hand_are_bounded(tmp_path: Path) -> None:
    head = "POST /v1/clean HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    with running(tmp_path, body_mb=1) as server, contextlib.ExitStack() as stack:
        port = int(server.url.rpartition(":")[2])
        for _ in range(4):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            slow.sendall(head.encode() + b"x" * 900_000)
        time.sleep(1)
        refused = server.post("/v1/clean", {"page": {"html": "a" * 700_000}})
        assert refused.status_code == 503 and refused.headers["retry-after"]
        assert server.http.get("/healthz").status_code == 200
        stack.close()
        until = time.monotonic() + 10
        while server.post("/v1/clean", {"page": {"html": "a" * 700_000}}).status_code != 200:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_connection_that_sends_no_request_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import connections

    monkeypatch.setattr(connections, "_HEAD_SECONDS", 0.5)
    with running(tmp_path) as server:
        port = int(server.url.rpartition(":")[2])
        for sent in (b"", b"GET /healthz HTT"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(sent)
                assert connection.recv(100) == b""
        for _ in range(3):  # a connection that is in use stays open
            time.sleep(0.4)
            assert server.http.get("/healthz").status_code == 200


def test_a_client_that_leaves_frees_the_place_for_the_next(tmp_path: Path) -> None:
    settings = {
        "llm": model(
            tmp_path, "The bridge opened in 1932 [1]. " + " ".join(f"word{n}" for n in range(900)), pause=0.05
        ),
        "extractor": "sentences",
    }
    with running(tmp_path, settings, at_once=1, waiting=0) as server:
        with server.http.stream("POST", "/v1/ask", json=ASK) as reply:
            lines = reply.iter_lines()  # closed by the garbage collector, it would close the stream
            next(line for line in lines if line == "event: token")
            assert server.post("/v1/clean", {"page": {"html": BRIDGE}}).status_code == 503
        until = time.monotonic() + 10
        while (again := server.post("/v1/clean", {"page": {"html": BRIDGE}})).status_code == 503:
            assert time.monotonic() < until and again.headers["retry-after"]
            time.sleep(0.05)
        assert again.status_code == 200


def test_a_client_that_leaves_a_reply_that_is_not_streamed_frees_the_place_too(tmp_path: Path) -> None:
    settings = {
        "llm": model(
            tmp_path, "The bridge opened in 1932 [1]. " + " ".join(f"word{n}" for n in range(900)), pause=0.05
        ),
        "extractor": "sentences",
    }
    with running(tmp_path, settings, at_once=1, waiting=0) as server:
        for path, body in (("/v1/ask", {**ASK, "stream": False}), ("/v1/chat/completions", CHAT)):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{server.url}{path}", json=body, timeout=1, trust_env=False)
            until = time.monotonic() + 10
            while server.post("/v1/clean", {"page": {"html": BRIDGE}}).status_code == 503:
                assert time.monotonic() < until
                time.sleep(0.05)


def test_answers_stream_side_by_side_while_others_compute(tmp_path: Path) -> None:
    settings = {"llm": model(tmp_path, "The bridge opened in 1932 [1].", pause=0.05), "extractor": "sentences"}
    with running(tmp_path, settings, at_once=32) as server:
        found: list[str] = []

        def ask() -> None:
            with httpx.Client(timeout=60, trust_env=False) as http:
                found.append(events_of(http.post(f"{server.url}/v1/ask", json=ASK).text)[-1][0])

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        health = server.http.get("/healthz")
        for thread in threads:
            thread.join()
        assert found == ["done"] * 16 and health.elapsed.total_seconds() < 5


def test_answers_share_the_model(tmp_path: Path) -> None:
    made = tmp_path / "made"
    spec = model(tmp_path, "The bridge opened in 1932 [1].")
    file = Path(spec.rpartition(":")[0])
    noted = f"with open({str(made)!r}, 'a') as made: made.write('x')"  # in the constructor
    file.write_text(f"{file.read_text()}\n        {noted}\n", "utf-8")
    with running(tmp_path, {"llm": spec, "extractor": "sentences"}) as server:
        for _ in range(3):
            assert server.post("/v1/ask", {**ASK, "stream": False}).status_code == 200
    assert made.read_text() == "x"


def test_sigterm_lets_running_streams_end(tmp_path: Path) -> None:
    need("fastapi")
    spec = model(tmp_path, "The bridge opened in 1932 [1].", pause=0.2)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PRUNUS_")},
        "PRUNUS_HOME": str(tmp_path / "home"), "PRUNUS_LLM": spec, "PRUNUS_EXTRACTOR": "sentences",
    }  # fmt: skip
    program = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert program.stderr is not None
        url = next(word.rstrip(";") for word in program.stderr.readline().split() if word.startswith("http"))
        with httpx.Client(timeout=60, trust_env=False) as http:
            until = time.monotonic() + 20
            while time.monotonic() < until:
                try:
                    http.get(f"{url}/healthz")
                    break
                except httpx.ConnectError:
                    time.sleep(0.05)
            with http.stream("POST", f"{url}/v1/ask", json=ASK) as reply:
                lines = reply.iter_lines()
                next(line for line in lines if line == "event: token")
                program.send_signal(signal.SIGTERM)
                rest = list(lines)
        last = [line for line in rest if line.startswith("data: ")][-1]
        assert "event: done" in rest and "1932" in json.loads(last[6:])["answer"]["text"]
        assert program.wait(30) == 0
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL])
def test_several_processes_serve_one_port_and_one_that_dies_is_replaced(tmp_path: Path, ends: signal.Signals) -> None:
    need("fastapi")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PRUNUS_")},
        "PRUNUS_HOME": str(tmp_path / "home"),
    }
    program = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--workers", "2"], env=environment, stderr=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
    if not children.exists():
        program.kill()
        pytest.skip("this system does not tell the children of a process")

    def workers() -> set[int]:
        found = map(int, children.read_text().split())
        return {pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}

    try:
        assert program.stderr is not None
        url = next(word.rstrip(";") for word in program.stderr.readline().split() if word.startswith("http"))
        with httpx.Client(timeout=60, trust_env=False) as http:
            assert http.post(f"{url}/v1/ask", json={**ASK, "stream": False}).status_code == 200
            first = workers()
            assert len(first) == 2
            os.kill(min(first), signal.SIGKILL)
            until = time.monotonic() + 30
            while not (len(now := workers()) == 2 and now != first) and time.monotonic() < until:
                time.sleep(0.1)
            assert len(now) == 2 and len(now & first) == 1
        for _ in range(4):  # a connection each
            assert httpx.get(f"{url}/healthz", timeout=60, trust_env=False).status_code == 200
        if ends == signal.SIGTERM:
            program.send_signal(signal.SIGTERM)
            assert program.wait(40) == 0
        else:
            left = workers()
            program.kill()
            program.wait()
            until = time.monotonic() + 30
            while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < until:
                time.sleep(0.1)
            assert not any(Path(f"/proc/{pid}").exists() for pid in left), "they would hold the port"
    finally:
        program.kill()
        program.communicate()


def test_a_port_in_use_and_a_bad_option_are_one_line(tmp_path: Path) -> None:
    need("fastapi")
    with running(tmp_path) as server:
        port = server.url.rpartition(":")[2]
        for arguments, word in ((["--port", port], "--port"), (["--index", "a b="], "NAME=FOLDER"), (["--host", "0.0.0.0"], "keys add")):  # fmt: skip
            done = subprocess.run(
                [*PROGRAM, "serve", *arguments],
                env={**os.environ, "PRUNUS_HOME": str(tmp_path / "other")}, capture_output=True, text=True, timeout=60,
                check=False,
            )  # fmt: skip
            assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_without_its_packages_the_server_names_the_line_that_installs_them(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "prunus.serve.start", raising=False)
    result = cli("serve", "--json")
    assert result.exit_code == 2 and "[server]'" in only_line(result)


def test_replies_on_a_kept_connection_do_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert server.http.get("/healthz").status_code == 200
        [connection] = server.server.server_state.connections
        held = connection.transport.get_extra_info("socket")
        assert held.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
