"""``prunus doctor``, ``prunus completion``, the version and foreign commands."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.answer.world import world
from tests.cli.command import Cli, lines_of

import prunus
from prunus.cli import main
from prunus.cli.local_models import local_models
from prunus.core.settings import load_settings


def test_doctor_says_what_works(cli: Cli) -> None:
    result = cli("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "The settings in force work." in result.stdout
    assert "multilingual-e5-small (MIT)" in result.stdout
    assert cli("doctor", "--quiet").stdout.count("\n") < 5


def test_doctor_names_models_that_are_served_here_and_how_to_start_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prunus.cli.commands.doctor.local_models", lambda settings: [])
    assert "ollama run" in cli("doctor").stdout
    with world() as web:
        models = {"data": [{"id": "llama3.2:3b", "owned_by": "library"}, {"id": "prunus", "owned_by": "prunus"}]}
        web.pages = {"/v1/models": json.dumps(models), "/odd/models": "<p>no models"}
        wrong = [
            "null",
            "[1]",
            '{"data": 3}',
            '{"data": [null]}',
            '{"data": [{"owned_by": 1}]}',
            "[" * 100_000,
            '{"data": {}}',
        ]
        web.pages |= {f"/wrong{number}/models": body for number, body in enumerate(wrong)}
        servers = [f"{web.url}/v1", f"{web.url}/odd", f"{web.url}/none", "http://127.0.0.1:9/v1"]
        servers += [f"{web.url}/wrong{number}" for number in range(len(wrong))]
        found = local_models(load_settings(), servers)
    assert found == [f"{web.url}/v1#llama3.2:3b"]
    monkeypatch.setattr("prunus.cli.commands.doctor.local_models", lambda settings: found)
    assert f"served here: --llm {found[0]}" in cli("doctor").stdout
    monkeypatch.setenv("PRUNUS_LLM", "scripted:x")
    assert "Language model:" not in cli("doctor").stdout


def test_doctor_tries_every_engine(cli: Cli) -> None:
    [found] = lines_of(cli("doctor", "--json"))
    engines = {(engine["kind"], engine["name"]): engine for engine in found["engines"]}
    assert found["works"] and found["home"]["writable"] and not found["file"]["found"]
    for kind, name in (("scorer", "trees"), ("embedder", "static"), ("tokenizer", "smollm2")):
        assert engines[kind, name]["state"] == "works" and engines[kind, name]["in_force"]
    assert engines["tokenizer", "hf"]["state"] == "needs"
    assert not [engine for engine in found["engines"] if engine["state"] == "fails"]
    assert found["licences"]["prunus"] == "Apache-2.0"
    assert found["licences"]["shipped"]["states"] == "Apache-2.0"
    assert "Llama 2 Community License" in found["licences"]["wordllama"]["caveat"]
    assert "MIT" in found["licences"]["multilingual"]["caveat"]


def test_doctor_names_the_embedder_for_other_languages(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[multilingual]'" in " ".join(cli("doctor").stdout.partition("Languages")[2].split())
    monkeypatch.setenv("PRUNUS_EMBEDDER", "multilingual")
    assert not lines_of(cli("doctor", "--json"))[0]["languages"]


def test_doctor_says_where_a_setting_comes_from(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "prunus.toml").write_text('scorer = "bm25"\nbudget = 7\n', "utf-8")
    monkeypatch.setenv("PRUNUS_BUDGET", "100")
    settings = lines_of(cli("doctor", "--json"))[0]["settings"]
    assert settings["scorer"] == {"value": "bm25", "from": str(folder / "prunus.toml")}
    assert settings["budget"] == {"value": 100, "from": "PRUNUS_BUDGET"}
    assert settings["embedder"]["from"] == "default"


@pytest.mark.parametrize(
    ("name", "value"), [("PRUNUS_SCORER", "nobody"), ("PRUNUS_STORE", "nobody"), ("PRUNUS_SCORRER", "bm25")]
)
def test_doctor_says_what_does_not_work(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    result = cli("doctor")
    assert result.exit_code == 2
    assert "DOES NOT WORK" in result.stdout
    [line] = result.stderr.splitlines()
    assert (value if value == "nobody" else name) in line


def test_a_home_that_cannot_be_written_to(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_HOME", "/dev/null/home")
    assert not lines_of(cli("doctor", "--json"))[0]["home"]["writable"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(cli: Cli, shell: str) -> None:
    result = cli("completion", shell)
    assert result.exit_code == 0
    assert f"_PRUNUS_COMPLETE={shell}_complete" in result.stdout
    assert lines_of(cli("completion", shell, "--json"))[0]["script"] + "\n" == result.stdout


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"prunus {prunus.__version__}\n"


def test_a_command_of_a_stranger_runs_and_may_not_shadow_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = [EntryPoint(name, "prunus.cli.commands.completion:command", main.GROUP) for name in ("clean", "dance")]
    monkeypatch.setattr(main, "entry_points", lambda group: theirs)
    assert sorted(main.foreign_commands()) == ["dance"]
    assert cli("dance", "fish").exit_code == 0


def test_doctor_says_the_same_of_an_engine_and_of_the_settings(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_LLM", "scripted:yes")
    monkeypatch.setenv("PRUNUS_SEARCH", "wikipedia")
    [found] = lines_of(cli("doctor", "--json"))
    states = {(row["kind"], row["name"]): row["state"] for row in found["engines"] if row["in_force"]}
    assert found["works"] and "needs" not in states.values()
    assert states["extractor", "tags"] == states["generator", "llm"] == states["search", "wikipedia"] == "made"


def test_a_folder_is_trusted_until_its_settings_change(cli: Cli, folder: Path) -> None:
    (folder / "prunus.toml").write_text('tokenizer = "count.py:Engine"\n')
    (folder / "count.py").write_text("from prunus.models.tokens.approx import Engine\n")
    (folder / "page.html").write_text("<p>The bridge opened in 1932.</p>")
    prune = ("prune", str(folder / "page.html"), "-q", "When did the bridge open?")
    assert cli(*prune).exit_code == 2
    assert cli("trust").exit_code == 0
    assert "1932" in cli(*prune).stdout
    assert cli("trust", "--revoke").exit_code == 0
    assert cli(*prune).exit_code == 2
