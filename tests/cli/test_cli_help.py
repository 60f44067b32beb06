"""Every help text has examples, and every example runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.command import Cli

from prunus.cli.commands.index import command as index
from prunus.cli.main import COMMANDS, app

PARTS = {"cache": [("info",), ("clear",)], "index": [(name,) for name in index.commands]}
"""Commands that have commands of their own."""


NOT_RUN = ("openai:", "--preset raptor", "judged.jsonl", "prunus serve", "prunus mcp", "--schema")
"""What examples need that no test has: a paid model, a model to download, people's verdicts; a server does not end; extras."""

SITES = ("prunus index sync handbook", "prunus index sync handbook --all --json")
"""Examples that need an index with a site."""


def examples() -> Iterator[str]:
    """Yield the example lines of all help texts."""
    for command in ((), *((name,) for name in COMMANDS), *(("index", name) for name in index.commands)):
        text = CliRunner().invoke(app, [*command, "--help"]).stdout
        lines = [line.strip() for line in text.split("Examples:", 1)[1].splitlines()]
        for line in lines:
            if line.startswith("prunus ") and not any(word in line for word in NOT_RUN) and line not in SITES:
                yield line


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_the_common_options(cli: Cli, name: str) -> None:
    text = cli(name, "--help").stdout
    assert f"  prunus {name} " in text or f"  prunus {name}\n" in text
    for part in PARTS.get(name, [()]):
        text = cli(name, *part, "--help").stdout
        assert "--json" in text and "--quiet" in text


def test_help_lists_the_commands(cli: Cli) -> None:
    text = cli("--help").stdout
    for name, meaning in COMMANDS.items():
        assert name in text and meaning in " ".join(text.split())
    assert cli().stdout == text


@pytest.mark.slow
@pytest.mark.parametrize("line", sorted(set(examples())))
def test_examples_run(cli: Cli, folder: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_PROXY", "http://127.0.0.1:9")  # no test goes out; nobody answers there
    job = {"id": 1, "command": "clean", "page": "examples/site/faq.html"}
    (folder / "jobs.jsonl").write_text(json.dumps(job) + "\n", "utf-8")
    (folder / "answer.md").write_text("The Linden Trust gave 40 per cent of it, or €74,400.", "utf-8")
    if "handbook" in line and "index add" not in line:
        cli("index", "add", "handbook", "examples/site")
    if line.startswith("prunus trust"):
        (folder / "prunus.toml").write_text("budget = 512\n", "utf-8")
    if line.startswith("prunus replay"):
        cli("ask", "How long is the Pell 2 guaranteed?", "examples/site/faq.html", "--record", "build/run.prunus")
    line, _, into = line.partition(" > ")
    line, _, source = line.partition(" < ")
    arguments = shlex.split(line)[1:]
    result = cli(*arguments, input=Path(source).read_bytes() if source else None)
    if "https://" in line and not source:
        bare = "--browser always" in line and not find_spec("playwright")  # the extra is missing: bad usage
        assert result.exit_code == (2 if bare else 3), result.stderr
        return
    assert result.exit_code == 0, result.stderr
    wrote = "-o" in arguments or into
    acted = line.startswith("prunus index ") and bool(result.stderr.strip())  # what it did is no result
    assert wrote or acted or result.stdout.strip()


def test_a_help_text_needs_no_page_and_no_engine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_SCORER", "nobody")
    assert cli("prune", "--help").exit_code == 0
