"""``prunus ask --record`` and ``prunus replay``: the same answer without a network; damaged and foreign files are refused."""

from __future__ import annotations

import asyncio
import io
import json
import random
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.answer.world import let_in, plan, tags_of, world
from tests.cli.command import Cli, only_line

from prunus.api.answers import Choices, stream
from prunus.api.runs import Replay
from prunus.core.errors import BadInput, OutsideFailed, PrunusError
from prunus.core.events import answer_of
from prunus.core.registry import KINDS, engine_names
from prunus.core.settings import Settings
from prunus.core.types import Page
from prunus.record.file import RunFile, pack, unpack
from prunus.record.player import Player
from prunus.record.recorder import Recorder

QUESTION = "When did the Harrow bridge open?"
PAGE = (
    "<html><title>Harrow bridge</title><h1>Harrow bridge</h1><p>The Harrow bridge opened in 1932. Trams run daily.</p>"
)
KEY = "sesame-4711"


@contextmanager
def model(answer: str) -> Iterator[tuple[str, list[str]]]:
    """Serve a model with OpenAI's interface; yield its address and the bodies of the requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._give("application/json", json.dumps({"data": [{"id": "m", "max_model_len": 8000}]}))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            asked.append(body)
            messages = json.loads(body)["messages"]
            prompt = messages[-1]["content"]
            if "You plan web searches" in messages[0]["content"]:
                text = plan("Harrow bridge opened")
            elif "You choose the segments" in messages[0]["content"]:
                text = tags_of(prompt, "1932")
            else:
                text = answer
            chunks: list[Any] = [{"choices": [{"delta": {"content": piece}}]} for piece in re.findall(r"\s*\S+", text)]
            chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            chunks.append({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 9}})
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
            self._give("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

        def _give(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#m", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def recorded(cli: Cli, monkeypatch: pytest.MonkeyPatch, *more: str, llm: bool = True) -> Result:
    """Record an answer from pages of a small server, which has stopped when this returns."""
    with world() as web, model("It opened in 1932 [1].") as (address, _):
        web.pages = {"/harrow": PAGE, "/gone": (404, "no"), "/other": PAGE.replace("Harrow", "Tamble")}
        web.hits = {"": [web.hit("/harrow", "Harrow bridge"), web.hit("/gone"), web.hit("/other", "Tamble bridge")]}
        let_in(monkeypatch, web)
        monkeypatch.setenv("PRUNUS_LLM_KEY", KEY)
        monkeypatch.setenv("PRUNUS_MODEL_CALLS", "true")
        spec = ("--llm", address) if llm else ()
        result = cli("ask", QUESTION, *spec, "--record", "run.prunus", *more)
    monkeypatch.delenv("PRUNUS_LLM_KEY")
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "false")
    return result


@pytest.mark.parametrize("llm", [pytest.param(True, marks=pytest.mark.full), False])
def test_a_replay_gives_the_same_answer_byte_for_byte_with_the_network_cut(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, llm: bool
) -> None:
    first = recorded(cli, monkeypatch, "--json", llm=llm)
    assert first.exit_code == 5, first.stderr  # one of the pages is gone, which is said
    assert "1932" in first.stdout
    again = cli("replay", "run.prunus", "--json")
    assert (again.exit_code, again.stdout) == (first.exit_code, first.stdout)
    assert json.loads(again.stdout)["failures"]


@pytest.mark.full
def test_a_replay_needs_neither_the_settings_nor_the_keys_of_the_recording(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recorded(cli, monkeypatch)
    for name in ("ALLOW_HOSTS", "PORTS", "SEARCH", "BROWSER", "RETRIES"):
        monkeypatch.delenv(f"PRUNUS_{name}")
    monkeypatch.setenv("PRUNUS_SCORER", "bm25")
    assert cli("replay", "run.prunus").stdout == first.stdout


@pytest.mark.full
def test_no_secret_stands_in_the_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(cli, monkeypatch)
    with zipfile.ZipFile("run.prunus") as file:
        whole = b"".join(file.read(name) for name in file.namelist())
    assert KEY.encode() not in whole
    assert b"Harrow" in whole
    run = RunFile({"question": f"what is {KEY}?"}, [{"kind": "reply", "key": "x", "pieces": [KEY]}])
    assert KEY.encode() not in b"".join(_members(pack(run, [KEY])).values())


@pytest.mark.full
def test_another_model_is_asked_live_and_all_else_is_taken_from_the_record(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(cli, monkeypatch)
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "true")
    with model("The bridge opened in 1932, says the page [1].") as (address, asked):
        changed = cli("replay", "run.prunus", "--change", f"llm={address}", "--json")
    assert "says the page" in json.loads(changed.stdout)["text"]
    assert asked


def test_a_change_that_asks_nothing_new_stays_off_the_network(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(cli, monkeypatch, llm=False)
    for change in ("scorer=bm25", "budget=64", "ranking=paper", "extractor=sentences"):
        assert "1932" in cli("replay", "run.prunus", "--change", change).stdout


@pytest.mark.full
def test_no_address_that_only_the_file_names_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign file must not send the user's keys and questions to a server that it names."""
    recorded(cli, monkeypatch)
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "true")
    monkeypatch.setenv("PRUNUS_LLM_KEY", KEY)
    monkeypatch.delenv("PRUNUS_SEARCH")
    with model("x [1].") as (address, asked):
        run = unpack(Path("run.prunus"))
        run.head["options"]["llm"] = address
        Path("run.prunus").write_bytes(pack(run))
        result = cli("replay", "run.prunus", "--change", "budget=32")
    assert result.exit_code == 2
    assert "name the llm that may be asked: --change llm=SPEC" in result.stderr
    assert asked == []


def test_given_pages_are_recorded_too(cli: Cli) -> None:
    Path("kept").mkdir()
    Path("kept/harrow.html").write_text(PAGE)
    Path("kept/twin.html").write_text(PAGE)
    first = cli("ask", QUESTION, "kept", "missing.html", "--record", "run.prunus", "--json")
    assert first.exit_code == 5
    Path("kept/harrow.html").unlink()
    again = cli("replay", "run.prunus", "--json")
    assert (again.exit_code, again.stdout) == (5, first.stdout)


def test_an_answer_that_is_not_there_is_replayed_as_such(cli: Cli) -> None:
    Path("harrow.html").write_text(PAGE)
    first = cli("ask", "Who composed the opera Nabucco?", "harrow.html", "--record", "run.prunus")
    again = cli("replay", "run.prunus")
    assert first.exit_code == again.exit_code == 4


def test_a_record_that_was_altered_is_told_by_its_answer(cli: Cli) -> None:
    Path("harrow.html").write_text(PAGE)
    cli("ask", QUESTION, "harrow.html", "--record", "run.prunus")
    run = unpack(Path("run.prunus"))
    run.head["answer"]["text"] = "It opened in 1933."
    Path("run.prunus").write_bytes(pack(run))
    result = cli("replay", "run.prunus")
    assert result.exit_code == 5
    assert "differs from the recorded one in: text" in result.stderr


def altered(name: str, value: Any, where: str = "settings") -> None:
    """Change a value in the head of the recorded run."""
    run = unpack(Path("run.prunus"))
    run.head[where][name] = value
    Path("run.prunus").write_bytes(pack(run))


def test_a_recording_does_not_choose_code_to_run(cli: Cli) -> None:
    Path("harrow.html").write_text(PAGE)
    Path("evil.py").write_text("from pathlib import Path\nPath('ran').touch()\nclass Scorer: ...\n")
    cli("ask", QUESTION, "harrow.html", "--record", "run.prunus")
    altered("scorer", "evil.py:Scorer", "options")
    altered("extractor", "evil.py:Scorer")
    refused = cli("replay", "run.prunus")
    assert refused.exit_code == 2 and "--change scorer=" in refused.stderr
    trusted = cli("replay", "run.prunus", "--change", "scorer=bm25", "--change", "extractor=sentences")
    assert trusted.exit_code == 0 and "1932" in trusted.stdout
    assert not Path("ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["{name}", "{address}", "secret", "{name}:secret", "{name}:{address}", "evil.py:Engine"]
)
@pytest.mark.parametrize("kind", sorted({*KINDS, "second_scorer"} & set(Settings.__dataclass_fields__)))
def test_no_engine_that_a_recording_names_reaches_outside(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, kind: str, spec: str
) -> None:
    """Every kind, each of its engines, with an address, a path and a file of code: the record replies, or one line."""
    Path("harrow.html").write_text(PAGE)
    Path("evil.py").write_text("from pathlib import Path\nPath('ran').touch()\nclass Engine: ...\n")
    Path("secret").write_text("{}")
    first = cli("ask", QUESTION, "harrow.html", "--record", "run.prunus")
    for name in ("LLM", "EMBEDDER", "RERANKER", "PATH", "SEARCH"):
        monkeypatch.setenv(f"PRUNUS_{name}_KEY", KEY)
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "true")
    recorded_run = Path("run.prunus").read_bytes()
    with model("x [1].") as (address, asked):
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", "127.0.0.1")
        for engine in engine_names("scorer" if kind == "second_scorer" else kind) if "{name}" in spec else [""]:
            hostile = spec.format(name=engine, address=address)
            for where in ("options", "settings"):
                for changes in ((), ("--change", "budget=300")):
                    Path("run.prunus").write_bytes(recorded_run)
                    altered(kind, hostile, where)
                    if kind == "path_scorer":
                        altered("second_scorer", "generative", "options")
                        altered("stages", 2, "options")
                    result = cli("replay", "run.prunus", *changes)
                    # another engine of this machine may be surer or less sure of the same quote
                    said, expected = (re.sub(r"confidence \S+", "", of.stdout) for of in (result, first))
                    assert said == expected or (result.exit_code == 2 and only_line(result)), hostile
    assert asked == []
    assert not Path("ran").exists()


OWN = """
import numpy as np
from prunus.core.ports import Branches

class Paths:
    stop = -1
    def encode(self, paths):
        return [list(path.encode()) for path in paths]
    def branches(self, prompt, tree):
        return Branches([-children.astype(float) for children in tree.children], 1, len(tree), 0)

class Tokens:
    def count(self, texts):
        return np.asarray([len(text) for text in texts])

class Vectors:
    def embed(self, texts, kind="document"):
        found = np.asarray([[len(text), text.count("e"), 1.0] for text in texts], np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)
"""


def recorded_with_own_engines(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Record an answer of a path scorer, a tokenizer and an embedder in a file, which is deleted then."""
    Path("own.py").write_text(OWN)
    Path("harrow.html").write_text(f"{PAGE}<ul><li>Harrow bridge<li>Tamble bridge</ul><p>The ferry is older.")
    with monkeypatch.context() as patched:
        patched.setenv("PRUNUS_SECOND_SCORER", "generative")
        for name in ("PATH_SCORER=Paths", "TOKENIZER=Tokens", "EMBEDDER=Vectors"):
            setting, _, engine = name.partition("=")
            patched.setenv(f"PRUNUS_{setting}", f"own.py:{engine}")
        made = cli("ask", QUESTION, "harrow.html", "--json", "--record", "run.prunus", "--min-confidence", 0)
    Path("own.py").unlink()
    return made


def test_the_users_own_engines_are_played_from_the_record(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    first = recorded_with_own_engines(cli, monkeypatch)
    assert first.exit_code == 0, first.stderr
    kinds = {entry["kind"] for entry in unpack(Path("run.prunus")).entries}
    assert {"stop", "encode", "branches", "numbers"} <= kinds
    again = cli("replay", "run.prunus", "--json")
    assert (again.exit_code, again.stdout) == (0, first.stdout), again.stderr


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value inside plain data, the containers too."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield from _places(inner, (*path, name))


WRONG = (None, True, -1, 10**30, 0.5, "", "x", [], [None], {}, {"x": []}, [[["x"]]])


@pytest.mark.slow
def test_a_value_of_the_wrong_type_anywhere_in_a_run_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value is replaced by three of the wrong ones."""
    recorded_with_own_engines(cli, monkeypatch)
    first = unpack(Path("run.prunus"))
    recorded(cli, monkeypatch, "--max-tokens", "9000")
    second = unpack(Path("run.prunus"))
    tried = 0
    for run in (first, second):
        for part in [run.head, *{entry["kind"]: entry for entry in run.entries}.values()]:
            for path in _places(part):
                for wrong in random.Random(tried).sample(WRONG, 3):
                    changed = json.loads(json.dumps(part))
                    inner = changed
                    for name in path[:-1]:
                        inner = inner[name]
                    inner[path[-1]] = wrong
                    head = changed if part is run.head else run.head
                    entries = [changed if entry is part else entry for entry in run.entries]
                    with suppress(PrunusError):
                        play(RunFile(head, entries, run.blobs))
                    tried += 1
    assert tried > 300


def play(run: RunFile) -> None:
    """Replay a run in this process."""
    replay = Replay(run, {})
    choices = Choices(settings=replay.settings, options=replay.options, budget=replay.budget)
    answer = asyncio.run(answer_of(stream(replay.question, replay.documents(), choices, taped=replay)))
    json.dumps(asdict(answer), allow_nan=False)


def test_an_interrupted_recording_leaves_no_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("harrow.html").write_text(PAGE)

    async def stopped(*_: object) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("prunus.answer.write.answer_from", stopped)
    assert cli("ask", QUESTION, "harrow.html", "--record", "run.prunus").exit_code == 130
    assert list(Path().glob("*.prunus*")) == list(Path().glob(".prunus-*")) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("llm", "write it as NAME=VALUE"),
        ("colour=red", "no such setting: colour"),
        ("llm_key=x", "a secret is no part of a run"),
        ("read=many", "not of type int"),
    ],
)
def test_a_change_that_names_nothing_is_one_line(cli: Cli, change: str, says: str) -> None:
    Path("harrow.html").write_text(PAGE)
    cli("ask", QUESTION, "harrow.html", "--record", "run.prunus")
    result = cli("replay", "run.prunus", "--change", change)
    assert result.exit_code == 2
    assert says in only_line(result)


# --- hostile files -------------------------------------------------------------------------------


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


GOOD = _members(pack(RunFile({"question": "x"})))
HOSTILE = {
    "no zip": (b"<p>hello", "not a recorded run"),
    "an empty zip": (_zip({}), "not a recorded run"),
    "another zip": (_zip({"word/document.xml": b"x"}), "not a recorded run"),
    "a path out of it": (_zip(GOOD | {"../../evil": b"x"}), "not part of a recorded run"),
    "a blob that lies": (_zip(GOOD | {f"blobs/{'0' * 64}": b"x"}), "damaged"),
    "a later version": (_zip(GOOD | {"run.json": b'{"format": "prunus run", "version": 9}'}), "version 9"),
    "no object": (_zip(GOOD | {"run.json": b"[1]"}), "not a recorded run"),
    "deep": (_zip(GOOD | {"events.jsonl": b"[" * 200_000}), "recorded run"),
    "a bomb of events": (_zip(GOOD | {"events.jsonl": b"{}\n" * 1_000_000}), "over the limit"),
    "a bomb of JSON": (_zip(GOOD | {"events.jsonl": b"[" * (33 << 20)}), "over 32 MiB"),
    "a bomb": (_zip(GOOD | {f"blobs/{'1' * 64}": bytes(130 << 20)}), "over 128 MiB"),
    "nothing in its head": (_zip(GOOD), "damaged"),
    "an entry of nothing": (_zip(GOOD | {"events.jsonl": b"{}\n"}), "damaged"),
    "cut short": (pack(RunFile({"question": "x"}))[:-30], "not a recorded run"),
}


@pytest.mark.parametrize(("content", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_line(cli: Cli, content: bytes, says: str) -> None:
    Path("bad.prunus").write_bytes(content)
    result = cli("replay", "bad.prunus")
    assert result.exit_code == 2
    assert says in only_line(result)


# --- the tape ------------------------------------------------------------------------------------


def test_pages_come_back_in_the_order_in_which_they_came_with_those_that_were_late() -> None:
    recorder = Recorder()

    async def pages(urls: Any) -> Any:
        yield "b", Page(b"two", url="b", headers={"Set-Cookie": "s=1", "etag": "e"})
        yield "a", OutsideFailed("a: refused", subject="a")
        await asyncio.sleep(60)

    async def record() -> None:
        found = recorder.pages(pages)(["a", "b", "c"])
        assert [url async for url, _ in _first(found, 2)] == ["b", "a"]
        await found.aclose()

    async def play() -> list[tuple[str, Any]]:
        return [page async for page in Player(recorder.run).pages(pages)(["a", "b", "c"])]

    asyncio.run(record())
    (first, page), (second, refused), (third, late) = asyncio.run(play())
    assert (first, second, third) == ("b", "a", "c")
    assert (page.content, page.headers) == (b"two", {"etag": "e"})
    assert str(refused) == "a: refused"
    assert str(late) == "c: not read in the time that was left"


async def _first(found: Any, count: int) -> Any:
    for _ in range(count):
        yield await anext(found)


def test_what_was_never_asked_is_refused_without_a_change() -> None:
    async def pages(urls: Any) -> Any:
        for url in urls:
            yield url, Page(b"live", url=url)

    async def play(live: bool) -> list[str]:
        return [url async for url, _ in Player(RunFile(), {"page"} if live else ()).pages(pages)(["a"])]

    assert asyncio.run(play(True)) == ["a"]
    with pytest.raises(BadInput, match="holds no page a"):
        asyncio.run(play(False))
