"""``prunus mcp``: the tools on standard input and output, as clients on the same machine start them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, model
from tests.serve.tools_client import MODES, as_process, environment_in, error_of, text_of

import prunus

pytestmark = pytest.mark.full


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A folder with a page, a link out of it, and a file beside it."""
    need("mcp")
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "bridge.html").write_text(BRIDGE, "utf-8")
    (tmp_path / "secret.html").write_text("<p>The bridge opened in secret.</p>", "utf-8")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    (folder / "up").symlink_to(tmp_path)
    (folder / "round.html").symlink_to(folder / "round.html")
    return folder


@pytest.mark.parametrize("mode", MODES)
def test_a_client_reads_allowed_files_and_asks_them(papers: Path, tmp_path: Path, mode: str) -> None:
    spec = model(tmp_path, "The bridge opened in 1932 [1].")

    async def scene() -> None:
        async with as_process(tmp_path, "--allow", str(papers), "--no-fetch", mode=mode, llm=spec) as client:
            for name in ("old/bridge.html", str(papers / "old" / "bridge.html")):
                read = await client.call_tool("read", {"pages": [name], "question": QUESTION})
                assert (
                    "opened in 1932" in text_of(read)
                    and read.structured_content["pages"][0]["url"] == "old/bridge.html"
                )
            asked = await client.call_tool("ask", {"pages": ["old/bridge.html"], "question": QUESTION})
            assert asked.structured_content["answer"] == "The bridge opened in 1932 [1]."
            assert str(tmp_path) not in text_of(asked) + json.dumps(asked.structured_content)
            [page] = (await client.list_resources()).resources
            [content] = (await client.read_resource(page.uri)).contents
            assert page.name == "old/bridge.html" and "Trams run daily from six." in content.text

    asyncio.run(scene())


def test_no_path_leads_out_of_the_allowed_folders(papers: Path, tmp_path: Path) -> None:
    tricks = [
        "../secret.html", "old/../../secret.html", str(tmp_path / "secret.html"), "link.html", "up/secret.html",
        "/etc/passwd", "~/.bashrc", "round.html", "old", ".", "a\0b", "x" * 4_000, "file:///etc/passwd", "none.html",
        "old/bridge.html/..", "/dev/stdin", "\\\\host\\share", "..%2fsecret.html",
    ]  # fmt: skip

    async def scene(*allowed: str) -> None:
        async with as_process(tmp_path, *allowed) as client:
            for path in tricks if allowed else [*tricks, "papers/old/bridge.html", str(papers / "old" / "bridge.html")]:
                for tool, given in (("read", {"pages": [path]}), ("ask", {"pages": [path]})):
                    line = error_of(await client.call_tool(tool, {"question": QUESTION, **given}))
                    assert "secret" not in line.replace(path, "") and "http://" in line, line

    asyncio.run(scene("--allow", str(papers)))
    asyncio.run(scene())


def test_a_file_that_cannot_be_read_is_an_error_without_its_folder(papers: Path, tmp_path: Path) -> None:
    (papers / "empty.html").write_bytes(b"")
    (papers / "picture.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")

    async def scene() -> None:
        async with as_process(tmp_path, "--allow", str(papers)) as client:
            for name in ("empty.html", "picture.html"):
                line = error_of(await client.call_tool("read", {"pages": [name], "question": QUESTION}))
                assert name in line and str(tmp_path) not in line
            line = error_of(await client.call_tool("read", {"pages": ["gone.html"], "question": QUESTION}))
            assert "there is no file gone.html in the allowed folders" in line

    asyncio.run(scene())


def test_indexes_are_offered_by_name(papers: Path, tmp_path: Path) -> None:
    prunus.Index.open(tmp_path / "made").add({"bridge": BRIDGE})
    asked = {"index": "town", "question": QUESTION}

    async def scene() -> Any:
        async with as_process(tmp_path, "--index", f"town={tmp_path / 'made'}") as client:
            line = error_of(await client.call_tool("index_ask", {**asked, "since": "2026"}))
            assert "no document was published since 2026" in line and str(tmp_path) not in line
            return (await client.call_tool("index_ask", {**asked, "documents": ["brid*"]})).structured_content

    assert "1932" in asyncio.run(scene())["answer"]


def started(folder: Path, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    """Start the program, and say hello as a client does."""
    program = subprocess.Popen(
        [*PROGRAM, "mcp", *arguments], env=environment_in(folder, **settings), cwd=folder, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    send(program, "initialize", hello, id=1)
    send(program, "notifications/initialized", {})
    return program


def send(program: subprocess.Popen[str], method: str, params: Any, **id: int) -> None:
    assert program.stdin is not None
    program.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **id}) + "\n")
    program.stdin.flush()


def test_nothing_but_the_protocol_reaches_standard_output(papers: Path, tmp_path: Path) -> None:
    spec = model(tmp_path, "The bridge opened in 1932 [1].")
    script = tmp_path / "model.py"
    script.write_text("print('noise of a foreign engine')\n" + script.read_text(), "utf-8")
    program = started(tmp_path, "--allow", str(papers), llm=spec)
    ask = {"name": "ask", "arguments": {"question": QUESTION, "pages": ["old/bridge.html"]}}
    send(program, "tools/call", ask, id=2)
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write("this is no JSON\n")
    program.stdin.flush()
    lines = [program.stdout.readline() for _ in range(2)]
    send(program, "tools/call", {**ask, "name": "none"}, id=3)
    lines.append(program.stdout.readline())
    while not any('"id":2' in line.replace(" ", "") for line in lines):  # the end of the input would end the call
        lines.append(program.stdout.readline())
        assert lines[-1]
    rest, noise = program.communicate(timeout=30)
    messages = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert all(message["jsonrpc"] == "2.0" for message in messages) and "1932" in str(messages)
    assert program.returncode == 0 and "noise of a foreign engine" in noise


@pytest.mark.parametrize("way", ["input ends", "SIGINT", "SIGTERM"])
def test_it_ends_at_once_and_quietly_also_while_a_call_runs(papers: Path, tmp_path: Path, way: str) -> None:
    spec = model(tmp_path, "The bridge opened in 1932 [1]. " + " ".join(f"word{n}" for n in range(900)), pause=0.1)
    program = started(tmp_path, "--allow", str(papers), llm=spec, home=str(tmp_path / way))
    call = {
        "name": "ask",
        "arguments": {"question": QUESTION, "pages": ["old/bridge.html"]},
        "_meta": {"progressToken": 7},
    }
    send(program, "tools/call", call, id=2)
    assert program.stdout is not None
    while "being written" not in program.stdout.readline():
        assert program.poll() is None
    begun = time.monotonic()
    if way != "input ends":
        program.send_signal(getattr(signal, way))
    _, said = program.communicate(timeout=30)
    assert time.monotonic() - begun < 8 and "Traceback" not in said and said.count("\n") <= 1, said
    assert program.returncode == {"input ends": 0, "SIGINT": 130, "SIGTERM": 143}[way]


def test_wrong_options_and_missing_packages_are_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    need("mcp")
    for arguments, word in (
        (["--allow", "none"], "no such folder"),
        (["--index", "a b="], "NAME=FOLDER"),
        (["--index", "a=none"], "prunus index add"),
    ):
        result = cli("mcp", *arguments)
        assert result.exit_code == 2 and word in only_line(result)
    monkeypatch.delitem(sys.modules, "prunus.serve.mcp_transports", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    result = cli("mcp")
    assert result.exit_code == 2 and "[server]'" in only_line(result)
