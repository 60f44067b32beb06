"""The Agent Skill has the published form, and its commands do on the example site what it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.cli.command import Cli
from tests.cli.conftest import cli  # noqa: F401

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "skills" / "prunus" / "SKILL.md"
_, HEAD, BODY = FILE.read_text("utf-8").split("---\n", 2)
COMMANDS = [
    line.strip() for block in re.findall(r"```sh\n(.*?)```", BODY, re.DOTALL) for line in block.strip().split("\n")
]
SHOWN = {"ask": "[1]", "prune": "lend you one", "clean": "# Questions and glossary", "search": "docs/", "index": ""}
"""What each command shows of the example site."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands name."""
    shutil.copytree(REPOSITORY / "examples" / "site", tmp_path / "docs")
    shutil.copy(tmp_path / "docs" / "faq.html", tmp_path / "page.html")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRUNUS_SEARCH", "local:docs")
    return tmp_path


def test_the_front_matter_has_the_published_form() -> None:
    fields = dict(line.split(": ", 1) for line in HEAD.strip().split("\n"))
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == FILE.parent.name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["description"]) <= 1024 and "Use it when" in fields["description"]
    assert len(fields["compatibility"]) <= 500
    assert not any(re.search(r": |^[\[{>|*&!%@`'\"]", value) for value in fields.values())  # plain text of YAML
    assert len(BODY.split("\n")) < 500


def test_its_commands_run_on_the_example_site(cli: Cli, desk: Path) -> None:  # noqa: F811
    assert [command.split()[1] for command in COMMANDS] == ["ask", "prune", "clean", "search", "index", "ask"]
    for command in COMMANDS:
        program, name, *rest = shlex.split(command)
        result = cli(name, *rest)
        assert program == "prunus" and result.exit_code == 0, (command, result.stderr)
        assert SHOWN[name] in result.stdout, (command, result.stdout)


def test_nothing_found_has_the_exit_code_that_it_names(cli: Cli, desk: Path) -> None:  # noqa: F811
    result = cli("ask", "What is the melting point of tungsten?", "page.html")
    assert result.exit_code == 4 and "The exit code is 4" in BODY
    assert cli("ask", "What?", "none.html").exit_code == 2
