"""One honest client beside twenty kinds of hostile ones: its times, its wrong answers, and the server's memory.

python -m benchmarks.soak [--seconds S] [--each N] [--only KIND ...] [--quick]

The server runs with its defaults, with a key for the honest client and one for the hostile ones. Each kind runs N
times at once, in a process of its own. Then 200 clients stream answers: those that begin must end, the others get 503
at once.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.server import memory_mb, page, site_of, started
from benchmarks.server_model import DEAD
from benchmarks.workers import BenchError

TARGET_P95: Final = 1.0
"""Seconds of the honest client's requests, 95th percentile, at most."""
TARGET_MB: Final = 1536
TARGET_REFUSAL: Final = 1.0
"""Seconds until a stream that finds no place is refused, at most."""
STREAMS: Final = 200
_MODEL: Final = ("--first", "0.1", "--gap", "0.02", "--words", "12")
_TOWN: Final = "<title>The bridge</title><h1>Bridge</h1><p>The bridge opened in 1932.</p><p>Trams run daily.</p>"
_QUESTION: Final = "When did the bridge open?"


@dataclass(frozen=True)
class Target:
    """The server as a client knows it."""

    port: int
    key: str

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a new connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)

    def head(self, path: str, length: int = 0, method: str = "POST", kind: str = "application/json") -> bytes:
        """Return the head of a request."""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        ).encode()

    async def send(self, path: str, body: Any = None, method: str = "POST") -> tuple[int, bytes]:
        """Return status and body of one request."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        reader, writer = await self.open()
        try:
            writer.write(self.head(path, len(data), method) + data)
            with suppress(ConnectionError):  # it may be refused before it is read
                await writer.drain()
            status = (await reader.readline()).split()
            rest = await reader.read()
            return int(status[1]) if len(status) > 1 else 0, rest.partition(b"\r\n\r\n")[2]
        finally:
            writer.close()

    async def hold(self, data: bytes, seconds: float, every: float = 0.0, more: bytes = b"") -> None:
        """Send something, read nothing, and stay."""
        reader, writer = await self.open()
        reader._limit = 1  # type: ignore[attr-defined]  # the system keeps the rest, and so the server
        writer.write(data)
        try:
            ends = time.monotonic() + seconds
            while time.monotonic() < ends and not reader.at_eof():
                await asyncio.sleep(every or 1.0)
                if more:
                    writer.write(more)
                    await writer.drain()
        finally:
            writer.close()


# --- hostile clients ---------------------------------------------------------------------------------

Attack = Callable[[Target], Awaitable[Any]]


def _prune(content: str) -> bytes:
    return json.dumps({"question": _QUESTION, "pages": [{"html": content}]}).encode()


def _prune_at(site: int) -> bytes:
    address = f"http://127.0.0.1:{site}/{random.getrandbits(60)}"
    return json.dumps({"question": _QUESTION, "pages": [{"url": address}]}).encode()


def _hostile(path: str) -> bytes:
    """Return a wide table at every address of the hostile site but that of robots.txt."""
    return b"" if path == "/robots.txt" else f"<table><tr>{'<td>a' * 200_000}".encode()


def _file(content: bytes, type: str) -> bytes:
    return json.dumps({"page": {"base64": base64.b64encode(content).decode(), "type": type}}).encode()


def _archive() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"<w:document>" + bytes(200 << 20))
    return made.getvalue()


def _ask(question: str, **more: Any) -> bytes:
    return json.dumps({"question": question, "pages": [{"html": page(1)}], "stream": True, **more}).encode()


async def _left(target: Target, path: str, body: bytes, seconds: float) -> None:
    """Send a request, and leave before its reply has ended."""
    reader, writer = await target.open()
    writer.write(target.head(path, len(body)) + body)
    with suppress(TimeoutError, ConnectionError):
        await asyncio.wait_for(reader.read(200), seconds)
    writer.close()


async def _filled(target: Target) -> None:
    """Make an index, give it a job, and delete it."""
    name = f"x{random.getrandbits(40):x}"
    await target.send("/v1/indexes", {"name": name})
    documents = [{"id": str(number), "html": page(number)} for number in range(40)]
    await target.send(f"/v1/indexes/{name}/documents", {"documents": documents})
    await asyncio.sleep(5)
    await target.send(f"/v1/indexes/{name}", method="DELETE")


def attacks(site: int = 0) -> dict[str, Attack]:
    """Return the kinds of hostile clients by name.

    :param site: the port of a web server of this machine with a hostile page.
    """
    wide = _prune("<table><tr>" + "<td>a" * 200_000)
    deep = _prune("<div>" * 200_000 + "x")
    words = _prune("<p>" + "word " * 200_000)
    items = _prune("<ul>" + "<li>a<ul>" * 100_000)
    rows = _file(b"a,b,c\n" + b"1,2,3\n" * 160_000, "text/csv")
    bomb = _file(_archive(), "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
    nested = b'{"question": ' + b"[" * 100_000
    inside = ["http://127.0.0.1:22/", "http://169.254.169.254/", "http://[::1]/", "http://0x7f.1/"]
    pages = [{"url": address} for address in inside]
    page_file = b"GET /page/prune.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    unfinished = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer prunus-x\r\n"
    return {
        "reads no file": lambda to: to.hold(page_file * 1_000, 60),
        "reads no stream": lambda to: to.hold(to.head("/v1/ask", len(_ask(_QUESTION))) + _ask(_QUESTION), 60),
        "says nothing": lambda to: to.hold(b"", 60),
        "slow head": lambda to: to.hold(b"GET / HTTP/1.1\r\n", 60, 0.5, b"X: y\r\n"),
        "slow body": lambda to: to.hold(to.head("/v1/prune", 100_000), 60, 0.5, b" "),
        "long head": lambda to: to.hold(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000, 5),
        "garbage": lambda to: to.hold(random.randbytes(4_000), 2),
        "too large": lambda to: _left(to, "/v1/prune", bytes(20 << 20), 5),
        "wrong keys": lambda to: Target(to.port, f"prunus-{random.getrandbits(200):x}").send(
            "/v1/models", method="GET"
        ),
        "no end of a request": lambda to: to.hold(unfinished, 20),
        "leaves": lambda to: _left(to, "/v1/ask", _ask(_QUESTION), 0.2),
        "dead model": lambda to: _left(to, "/v1/ask", _ask(f"{_QUESTION} {DEAD}"), 60),
        "wide table": lambda to: to.send("/v1/prune", wide),
        "deep page": lambda to: to.send("/v1/prune", deep),
        "one paragraph": lambda to: to.send("/v1/prune", words),
        "deep list": lambda to: to.send("/v1/prune", items),
        "long rows": lambda to: to.send("/v1/clean", rows),
        "archive bomb": lambda to: to.send("/v1/clean", bomb),
        "nested JSON": lambda to: to.send("/v1/ask", nested),
        "fetched table": lambda to: to.send("/v1/prune", _prune_at(site)),
        "inside addresses": lambda to: to.send("/v1/prune", {"question": _QUESTION, "pages": pages}),
        "indexes": _filled,
        "tools": lambda to: to.send("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [[]]}),
        "open routes": lambda to: to.send("/openapi.json", method="GET"),
    }


async def _attack(target: Target, only: list[str], each: int, site: int) -> None:
    async def again(run: Attack) -> None:
        while True:
            with suppress(OSError, ValueError, asyncio.LimitOverrunError):
                await run(target)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(again(run) for name, run in attacks(site).items() if name in only for _ in range(each)))


def attack(port: int, key: str, only: list[str], each: int, site: int) -> None:
    """Run hostile clients until the process is ended."""
    asyncio.run(_attack(Target(port, key), only, each, site))


# --- the honest client -------------------------------------------------------------------------------


async def honest(target: Target, seconds: float) -> tuple[dict[str, list[float]], Counter[str]]:
    """Ask again and again; return the times of each kind of request, and what was wrong."""
    given = [{"html": _TOWN}]
    asked = {
        "clean": ("/v1/clean", {"page": given[0]}),
        "prune": ("/v1/prune", {"question": _QUESTION, "pages": given}),
        "ask": ("/v1/ask", {"question": _QUESTION, "pages": given}),
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    wrong: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for name, (path, body) in asked.items():
            began = time.monotonic()
            try:
                status, reply = await target.send(path, body)
            except OSError as error:
                status, reply = 0, type(error).__name__.encode()
            times[name].append(time.monotonic() - began)
            if status != 200 or b"1932" not in reply:
                wrong[f"{name} {status} {reply[:80].decode(errors='replace') if status != 200 else ''}".strip()] += 1
            await asyncio.sleep(0.1)
    return times, wrong


async def streams(target: Target, seconds: float) -> tuple[Counter[str], float]:
    """Let many clients stream at once; return how they ended, and the longest time to a refusal."""
    ends = time.monotonic() + seconds
    ended: Counter[str] = Counter()
    longest = 0.0

    async def one() -> None:
        nonlocal longest
        while time.monotonic() < ends:
            began = time.monotonic()
            try:
                status, reply = await target.send("/v1/ask", _ask(_QUESTION))
            except OSError as error:
                status, reply = 0, type(error).__name__.encode()
            if status == 503:
                longest = max(longest, time.monotonic() - began)
                ended["refused"] += 1
                await asyncio.sleep(2)
            else:
                ended["done" if b"event: done" in reply else f"lost ({status})"] += 1

    await asyncio.gather(*(one() for _ in range(STREAMS)))
    return ended, longest


@contextmanager
def closed_server(site: int = 0) -> Iterator[tuple[subprocess.Popen[str], int, str, str]]:
    """Start the model and a server with two keys; yield the server, its port and the keys.

    :param site: the port of this machine at which the server may fetch pages.
    """
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    with (
        tempfile.TemporaryDirectory() as home,
        started([sys.executable, "-m", "benchmarks.server_model", *_MODEL]) as (_, line),
    ):
        state = ServerState(f"{home}/serve.db")
        good, bad = (new_key(state, name, ()) for name in ("honest", "hostile"))
        state.close()
        variables = {
            "PRUNUS_HOME": home,
            "PRUNUS_SERVE_INDEX_HOME": f"{home}/indexes",
            "PRUNUS_LLM": f"http://127.0.0.1:{line.strip()}/v1#scripted",
            "PRUNUS_PLANNER": "rules",
            "PRUNUS_EXTRACTOR": "sentences",
            "PRUNUS_ALLOW_HOSTS": "127.0.0.1",
            "PRUNUS_PORTS": str(site or 9),
        }
        command = [sys.executable, "-c", "from prunus.cli.main import main; main()", "serve", "--port", "0"]
        with started(command, **variables) as (process, said):
            port = said.partition("127.0.0.1:")[2].partition(";")[0]
            if not port.isdecimal():
                raise BenchError(f"the server did not start: {said.strip()}")
            with open("/dev/null", "w") as nowhere:  # else its log fills the pipe, and it waits
                drained = subprocess.Popen(["cat"], stdin=process.stdout, stdout=nowhere)
            try:
                yield process, int(port), good, bad
            finally:
                drained.kill()
                drained.wait()


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def run(options: argparse.Namespace) -> bool:
    """Measure and report; return whether the targets are met."""
    seconds = 20.0 if options.quick else options.seconds
    only = options.only or list(attacks())
    memory: list[float] = []

    async def beside(process: subprocess.Popen[str], target: Target) -> tuple[dict[str, list[float]], Counter[str]]:
        async def watch() -> None:
            while True:
                memory.append(memory_mb(process))
                await asyncio.sleep(0.5)

        watching = asyncio.create_task(watch())
        try:
            return await honest(target, seconds)
        finally:
            watching.cancel()

    with site_of(_hostile) as site, closed_server(site) as (process, port, good, bad):
        alone, _ = asyncio.run(honest(Target(port, good), 5))
        hostile = get_context("spawn").Process(target=attack, args=(port, bad, only, options.each, site), daemon=True)
        hostile.start()
        try:
            times, wrong = asyncio.run(beside(process, Target(port, good)))
        finally:
            hostile.kill()
            hostile.join()
        for what, count in wrong.most_common(10):
            say(f"wrong: {count} x {what}")
    with closed_server() as (_, port, good, _):
        ended, refusal = asyncio.run(streams(Target(port, good), 10 if options.quick else 60))
    rows = [(name, len(of), _p95(alone[name]), statistics.median(of), _p95(of), max(of)) for name, of in times.items()]
    table(
        f"{seconds:g} s beside {len(only)} kinds of hostile clients, {options.each} of each; {max(memory):.0f} MB",
        ("request", "count", "alone p95 s", "median s", "p95 s", "longest s"),
        rows,
    )
    table(f"{STREAMS} streams at once", (*ended, "longest refusal s"), [(*ended.values(), refusal)])
    print()
    slowest = _p95([each for of in times.values() for each in of])
    lost = {name: count for name, count in ended.items() if name.startswith("lost")}
    met = [
        verdict("every answer to the honest client is right", not wrong),
        verdict(f"p95 of the honest client <= {TARGET_P95} s", slowest <= TARGET_P95),
        verdict(f"memory <= {TARGET_MB} MB", max(memory) <= TARGET_MB),
        verdict("no stream that began is lost", not lost),
        verdict(f"refused streams wait {TARGET_REFUSAL} s at most", refusal <= TARGET_REFUSAL),
    ]
    result = {"p95": slowest, "wrong": dict(wrong), "mb": max(memory), "streams": dict(ended), "refusal": refusal}
    json_line("soak", result)
    return all(met)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark and return its exit code."""
    options = parser("soak", __doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--each", type=int, default=4, help="hostile clients of each kind at once")
    options.add_argument("--only", nargs="*", choices=list(attacks()), help="kinds of hostile clients")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
