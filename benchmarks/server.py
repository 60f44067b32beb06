"""Many streamed questions at once against one server: lost answers, time to the first token, memory, and the end.

python -m benchmarks.server [--clients N] [--seconds S] [--workers N] [--at-once N] [--quick]

Three processes share the machine: the server (`prunus serve`), a scripted model behind OpenAI's API, and the clients.
Each client sends a page of 30 KB and a question, reads the whole answer, and asks again. The time that counts is that
to the first token above the time that a lone question takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.server_model import DEAD
from benchmarks.workers import ROOT, BenchError

TARGET_EXTRA = 0.25
"""Seconds to the first token above those of a lone question, 95th percentile, at most."""
TARGET_GROWTH = 0.10
"""Growth of memory from ten seconds after all clients began to the end, at most."""
QUESTION = "When did the bridge open?"
_SETTLED = 10.0
_TOWNS = ("Aldermoor", "Bexcombe", "Carrow", "Dunley", "Elstead", "Farnham", "Glaston", "Hexley")


@contextmanager
def site_of(content: Callable[[str], bytes]) -> Iterator[int]:
    """Run a web server of this machine; yield its port.

    :param content: gives the HTML at a path; b"" where there is none.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = content(self.path)
            self.send_response(200 if found else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(found)))
            self.end_headers()
            with suppress(OSError):  # its client has left
                self.wfile.write(found)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def page(number: int) -> str:
    """Return a page of about 30 KB that answers one question about its bridge, different for each number."""
    chance = random.Random(number)
    parts = [
        f"<p>The council of {chance.choice(_TOWNS)} met {chance.randint(2, 90)} times in {1900 + n} and spoke of "
        f"roads, schools and {chance.randint(3, 400)} lamps along the river.</p>"
        for n in range(120)
    ]
    parts.insert(60, "<h2>Bridge</h2><p>The bridge opened in 1932.</p><p>Trams run daily from six.</p>")
    menu = "".join(f'<li><a href="/part/{n}">Part {n} of the chronicle</a></li>' for n in range(80))
    return f"<title>The bridge {number}</title><nav><ul>{menu}</ul></nav><h1>Chronicle</h1>{''.join(parts)}"


@dataclass
class Outcome:
    """One answer as its client saw it.

    :param first: seconds to the first token; -1 where none came.
    :param ended: how the stream ended: ``done``, ``error``, ``refused`` (a status above 400) or ``broken``.
    """

    began: float
    first: float = -1.0
    ended: str = "broken"
    words: int = 0
    notes: list[str] = field(default_factory=list)


async def ask(port: int, number: int, question: str = QUESTION, *, slow: bool = False, leaves: bool = False) -> Outcome:
    """Ask one question over a connection of its own, and read the answer's events.

    :param leaves: close the connection at the first token.
    :param slow: read nothing for ten seconds once the answer has begun, as a client behind a bad line.
    """
    body = json.dumps({"question": question, "pages": [{"html": page(number)}], "stream": True}).encode()
    outcome = Outcome(time.monotonic())
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        outcome.ended = "refused"
        outcome.notes.append(str(error))
        return outcome
    try:
        head = (
            "POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        status = await reader.readline()
        if b" 200 " not in status:
            outcome.ended = "refused"
            outcome.notes.append(status.decode().strip())
            return outcome
        last = b""
        async for line in reader:
            if line.startswith(b"event: "):
                last = line[7:].strip()
                if last == b"token":
                    outcome.words += 1
                    if outcome.first < 0:
                        outcome.first = time.monotonic() - outcome.began
                        if leaves:
                            return outcome
                        if slow:
                            await asyncio.sleep(10)
            elif last == b"error" and line.startswith(b"data: "):
                outcome.notes.append(line.decode()[6:200].strip())
        outcome.ended = last.decode() if last in (b"done", b"error") else "broken"
    except (OSError, ValueError) as error:
        outcome.notes.append(f"{type(error).__name__}: {error}")
    finally:
        writer.close()
    return outcome


async def clients(port: int, count: int, seconds: float, ramp: float, odd: float = 0.0) -> list[tuple[str, Outcome]]:
    """Let clients ask again and again; return kind and outcome of every answer.

    :param ramp: seconds over which the clients begin.
    :param odd: share of clients that read slowly, and again of those whose model is dead.
    """
    ends = time.monotonic() + ramp + seconds
    outcomes: list[tuple[str, Outcome]] = []

    async def one(number: int) -> None:
        await asyncio.sleep(ramp * number / count)
        place = number % 100 / 100
        kind = "slow" if place < odd else "dead" if place < 2 * odd else "plain"
        question = f"{QUESTION} {DEAD}" if kind == "dead" else QUESTION
        while time.monotonic() < ends:
            outcomes.append((kind, await ask(port, number, question, slow=kind == "slow")))

    await asyncio.gather(*map(one, range(count)))
    return outcomes


@contextmanager
def started(command: list[str], **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process and yield it with its first line of output; kill it at the end."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **variables}
    )
    try:
        assert process.stdout is not None  # a pipe
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def served(
    options: argparse.Namespace, seconds: float, model: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the model and the server; yield the server and its port."""
    with (
        tempfile.TemporaryDirectory() as home,
        started([sys.executable, "-m", "benchmarks.server_model", *model]) as (_, line),
    ):
        variables = {
            "PRUNUS_HOME": home,
            "PRUNUS_LLM": f"http://127.0.0.1:{line.strip()}/v1#scripted",
            "PRUNUS_PLANNER": "rules",
            "PRUNUS_EXTRACTOR": "sentences",
        }
        command = [sys.executable, "-c", "from prunus.cli.main import main; main()", "serve", "--port", "0"]
        command += ["--at-once", str(options.at_once), "--seconds", str(seconds), "--workers", str(options.workers)]
        with started(command, **variables) as (process, said):
            port = said.partition("127.0.0.1:")[2].partition(";")[0]
            if not port.isdecimal():
                raise BenchError(f"the server did not start: {said.strip()}")
            yield process, int(port)


def family(process: subprocess.Popen[str]) -> list[Path]:
    """Return the folders in /proc of a process and its children."""
    own = Path(f"/proc/{process.pid}")
    return [own, *(Path("/proc", child) for child in (own / f"task/{process.pid}/children").read_text().split())]


def memory_mb(process: subprocess.Popen[str]) -> float:
    """Return the resident size of a process and its children in MB."""
    lines = [line for one in family(process) for line in (one / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Return the CPU time that a process and its children have used."""
    fields = [(one / "stat").read_text().rpartition(")")[2].split() for one in family(process)]
    return sum(int(of[11]) + int(of[12]) for of in fields) / os.sysconf("SC_CLK_TCK")


async def lone(port: int, rounds: int) -> float:
    """Return the median time to the first token of questions that are asked one after the other."""
    found = [await ask(port, number, leaves=True) for number in range(rounds)]
    if any(outcome.first < 0 for outcome in found):
        raise BenchError(f"a lone question failed: {found}")
    return statistics.median(outcome.first for outcome in found[1:])


async def loaded(process: subprocess.Popen[str], port: int, options: argparse.Namespace, odd: float) -> dict[str, Any]:
    """Load the server; return what its clients saw, and its memory and CPU time."""
    memory: list[float] = []

    async def watch() -> None:
        await asyncio.sleep(options.ramp + _SETTLED)
        while True:
            memory.append(memory_mb(process))
            await asyncio.sleep(1)

    cpu, began = cpu_seconds(process), time.monotonic()
    watching = asyncio.create_task(watch())
    outcomes = await clients(port, options.clients, options.seconds, options.ramp, odd)
    watching.cancel()
    plain = [outcome for kind, outcome in outcomes if kind == "plain"]
    firsts = sorted(outcome.first for outcome in plain if outcome.first >= 0)
    lost = [outcome for outcome in plain if outcome.ended != "done"]
    slow = [outcome for kind, outcome in outcomes if kind == "slow" and outcome.ended != "done"]
    for outcome in (lost + slow)[:5]:
        say(f"lost: {outcome}")
    return {
        "answers": len(plain),
        "lost": len(lost) + len(slow),
        "first_median": statistics.median(firsts),
        "first_p95": firsts[int(len(firsts) * 0.95)],
        "cpu_share": (cpu_seconds(process) - cpu) / (time.monotonic() - began),
        "mb_settled": memory[0] if memory else 0.0,
        "mb_end": max(memory[-3:], default=0.0),
    }


async def stopped(process: subprocess.Popen[str], port: int, options: argparse.Namespace) -> dict[str, Any]:
    """Send SIGTERM under load; return how the streams ended and how long the server took."""
    asking = [asyncio.create_task(ask(port, number)) for number in range(options.clients)]
    await asyncio.sleep(4)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    outcomes = await asyncio.gather(*asking)
    try:
        await asyncio.to_thread(process.wait, 60)
    except subprocess.TimeoutExpired:
        raise BenchError("the server did not stop within 60 seconds") from None
    ends = [outcome.ended for outcome in outcomes]
    return {
        **{end: ends.count(end) for end in ("done", "error", "refused", "broken")},
        "seconds": time.monotonic() - began,
        "code": process.returncode,
    }


def run(options: argparse.Namespace) -> bool:
    """Measure and report; return whether the targets are met."""
    if options.quick:
        options.clients, options.seconds, options.ramp = 50, 15.0, 5.0
    with served(options, 120) as (process, port):
        alone = asyncio.run(lone(port, 6))
        say(f"alone: {alone:.3f} s to the first token; {memory_mb(process):.0f} MB")
        plain = asyncio.run(loaded(process, port, options, 0.0))
        say(f"loaded: {plain}")
        ends = asyncio.run(stopped(process, port, options))
    with served(options, 60) as (process, port):
        asyncio.run(lone(port, 2))
        mixed = asyncio.run(loaded(process, port, options, 0.05))
    rows = [
        (name, got["answers"], got["lost"], alone, got["first_median"], got["first_p95"], got["cpu_share"],
         got["mb_settled"], got["mb_end"])
        for name, got in (("plain", plain), ("5 % slow, 5 % dead model", mixed))
    ]  # fmt: skip
    head = ("load", "answers", "lost", "alone s", "median s", "p95 s", "cores", "MB settled", "MB end")
    table(f"{options.clients} clients, {options.seconds:g} s", head, rows)
    table("SIGTERM under load", list(ends), [list(ends.values())])
    growth = plain["mb_end"] / plain["mb_settled"] - 1 if plain["mb_settled"] else 0.0
    print()
    met = [
        verdict("no answer is lost", not plain["lost"] and not mixed["lost"]),
        verdict(
            f"p95 of the extra time to the first token <= {TARGET_EXTRA} s", plain["first_p95"] - alone <= TARGET_EXTRA
        ),
        verdict("the same beside slow clients and a dead model", mixed["first_p95"] - alone <= TARGET_EXTRA),
        verdict(f"memory grows by {TARGET_GROWTH:.0%} at most", growth <= TARGET_GROWTH),
        verdict("SIGTERM: every stream ends cleanly", not ends["broken"]),
    ]
    json_line("server", {"alone": alone, "plain": plain, "mixed": mixed, "stopped": ends, "growth": growth})
    return all(met)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark and return its exit code."""
    options = parser("server", __doc__)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--ramp", type=float, default=30.0, help="seconds over which the clients begin")
    options.add_argument("--workers", type=int, default=1, help="processes of the server")
    options.add_argument("--at-once", type=int, default=256, help="the server's own limit")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
