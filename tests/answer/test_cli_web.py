"""``prunus search``, and ``prunus ask`` from the web, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import World, let_in, world
from tests.cli.command import Cli, lines_of, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.web.search.server import documented, serving

from prunus.cli.commands.doctor import _shown
from prunus.core.settings import load_settings
from prunus.engines import search_provider

QUESTION = "When did the Orrel bridge open?"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as state:
        said = "<title>Bridge</title><h1>The Orrel bridge</h1><p>The Orrel bridge opened in 1932.</p>"
        state.pages = {"/bridge": said}
        state.hits = {"": [state.hit("/bridge", "Bridge", "opened in <b>1932</b>")]}
        let_in(monkeypatch, state)
        yield state


# --- prunus search -------------------------------------------------------------------------------


def test_search_lists_what_is_found(cli: Cli, web: World) -> None:  # noqa: F811
    result = cli("search", "Orrel bridge", "--time-range", "year", "--count", "3", "--include-domain", "example.org")
    assert result.exit_code == 4  # the only hit is of another site
    result = cli("search", "Orrel bridge", "--time-range", "year")
    assert result.exit_code == 0
    assert f" 1. Bridge\n    {web.url}/bridge  (searxng)\n    opened in 1932\n" in result.stdout
    assert "1 hit" in result.stderr
    assert web.searches[-1]["time_range"] == "year"


def test_search_as_json(cli: Cli, web: World) -> None:  # noqa: F811
    [found] = lines_of(cli("search", "Orrel bridge", "--json", "--quiet", "--country", "DE"))
    assert found["query"] == "Orrel bridge" and found["hits"][0]["url"] == f"{web.url}/bridge"
    assert found["warnings"] == ["searxng: has no filter country 'DE'"]


def test_a_searxng_whose_engines_are_all_down_has_failed_and_has_not_found_nothing(cli: Cli) -> None:  # noqa: F811
    with serving() as service:
        service.respond(documented("searxng")["all_down"])
        result = cli("search", "tide gauge", "--search", f"searxng:{service.url}")
        assert (result.exit_code, "no answer came from broken (CAPTCHA)" in only_line(result)) == (3, True)
        service.answers = []
        service.respond(documented("searxng")["empty"])
        assert cli("search", "tide gauge", "--search", f"searxng:{service.url}").exit_code == 4


def test_search_says_what_is_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    assert "no search is named" in only_line(cli("search", "bridge"))
    assert "no search is called 'bing'" in only_line(cli("search", "bridge", "--search", "bing"))
    assert "brave needs a key" in only_line(cli("search", "bridge", "--search", "brave"))
    result = cli("search", "bridge", "--search", "local:examples/site", "--time-range", "soon")
    assert (result.exit_code, "2024-01-01..2024-06-30" in result.stderr) == (2, True)


def test_a_key_of_several_is_the_named_provider_s(cli: Cli, folder: Path) -> None:  # noqa: F811
    """``search_key`` is meant for the only provider; several take theirs from ``search_keys``, and none is shown."""
    (folder / "prunus.toml").write_text('search_key = "sesame"\n[search_keys]\nmojeek = "poppy"\n', "utf-8")
    settings = load_settings()
    mojeek: Any = search_provider(settings, "mojeek")
    assert mojeek._key == "poppy"
    assert [search_provider(settings, "brave", alone)._key for alone in (True, False)] == ["sesame", ""]
    shown = repr(settings) + repr(mojeek)
    shown += str([_shown(name, getattr(settings, name)) for name in ("search_key", "search_keys")])
    assert "sesame" not in shown and "poppy" not in shown and "set" in shown
    (folder / "prunus.toml").write_text("[search_keys]\nmojeek = 7\n", "utf-8")
    assert "the key is not text" in only_line(cli("search", "x", "--search", "mojeek"))


# --- prunus ask ----------------------------------------------------------------------------------


def test_ask_from_the_web_without_a_model(cli: Cli, web: World) -> None:  # noqa: F811
    result = cli("ask", QUESTION)
    assert result.exit_code == 0, result.stderr
    assert "opened in 1932" in result.stdout and f"{web.url}/bridge" in result.stdout
    assert "1 page read" in result.stderr


def test_a_citation_says_when_its_page_was_fetched(cli: Cli, web: World) -> None:  # noqa: F811
    days = {(datetime.now(UTC) - timedelta(minutes=minutes)).date().isoformat() for minutes in (0, 5)}
    shown = cli("ask", QUESTION, f"{web.url}/bridge").stdout
    assert any(f"read {day}\n" in shown for day in days)
    assert cli("index", "add", "town", f"{web.url}/bridge").exit_code == 0
    asked = cli("ask", QUESTION, "--index", "town")
    assert any(f"read {day}\n" in asked.stdout for day in days), asked.stdout + asked.stderr
    Path("bridge.html").write_text("<p>The bridge opened in 1932.")
    assert "    read 2" not in cli("ask", QUESTION, "bridge.html").stdout


def test_ask_with_a_model_shows_what_nothing_bears_out(cli, web, monkeypatch) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    monkeypatch.setenv("PRUNUS_PLANNER", "rules")
    monkeypatch.setenv("PRUNUS_EXTRACTOR", "sentences")
    model = "scripted:The bridge opened in 1932 [1]. It is made of green cheese [1]."
    result = cli("ask", QUESTION, "--llm", model)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("The bridge opened in 1932 [1]. It is made of green cheese [1].\n\n[1] Bridge\n")
    assert "Not supported by the pages (1):\n  - It is made of green cheese." in result.stdout
    assert "1 sentence unsupported" in result.stderr


def test_events_of_a_search(cli: Cli, web: World) -> None:  # noqa: F811
    names = [line["event"] for line in lines_of(cli("ask", QUESTION, "--events", "--quiet"))]
    assert list(dict.fromkeys(names)) == [
        "plan", "search", "page", "kept", "extracted", "token", "citation", "usage", "done",
    ]  # fmt: skip


def test_what_failed_on_the_way_is_listed_and_the_exit_code_says_so(cli: Cli, web: World) -> None:  # noqa: F811
    web.hits[""].append(web.hit("/gone", "Bridge", "gone"))
    result = cli("ask", QUESTION, "--quiet")
    assert result.exit_code == 5
    assert "/gone" in result.stderr and "listed above" in result.stderr
    assert "1932" in result.stdout


def test_a_limit_of_money_without_a_price_is_refused(cli: Cli, web: World) -> None:  # noqa: F811
    result = cli("ask", QUESTION, "--llm", "http://127.0.0.1:9/v1#m", "--max-usd", "1")
    assert result.exit_code == 2 and "Traceback" not in result.stderr


def test_a_trace_is_written_line_by_line(cli: Cli, web: World, folder: Path) -> None:  # noqa: F811
    assert cli("ask", QUESTION, "--trace", "trace.jsonl", "--max-seconds", "30").exit_code == 0
    stages = [json.loads(line) for line in (folder / "trace.jsonl").read_text("utf-8").splitlines()]
    assert [stage["stage"] for stage in stages] == [
        "plan",
        "search",
        "read",
        "rank",
        "prune",
        "extract",
        "answer",
        "cite",
    ]
    assert all(stage["seconds"] >= 0 and stage["ended"] > 0 for stage in stages)
    assert "cannot be written" in only_line(cli("ask", QUESTION, "--trace", "no/such/folder.jsonl"))


def test_a_chat_goes_on_with_standard_input(cli: Cli, web: World) -> None:  # noqa: F811
    result = cli("ask", QUESTION, "--chat", "--json", "--quiet", input="And when was the bridge opened?\nhello\n\n")
    assert result.exit_code == 0, result.stderr
    assert [found["question"] for found in lines_of(result)] == [QUESTION, "And when was the bridge opened?"]
    assert "needs no search (it is small talk)" in result.stderr


def test_nothing_to_search_with_and_no_page(cli: Cli) -> None:  # noqa: F811
    assert "--search" in only_line(cli("ask", QUESTION))


# --- the doctor ----------------------------------------------------------------------------------


def test_the_doctor_makes_searches_and_calls_them_only_when_asked(cli: Cli, web: World) -> None:  # noqa: F811
    [found] = lines_of(cli("doctor", "--json"))
    states = {engine["name"]: engine for engine in found["engines"] if engine["kind"] == "search"}
    assert states["searxng"]["state"] == "made" and states["searxng"]["in_force"]
    assert (states["brave"]["state"], "needs a key" in states["brave"]["reason"]) == ("needs", True)
    planners = {engine["name"]: engine["state"] for engine in found["engines"] if engine["kind"] == "planner"}
    assert planners == {"rules": "made", "llm": "needs"}
    assert web.requests == []
    result = cli("doctor", "--ping")
    assert result.exit_code == 0 and "1 hit" in result.stdout and len(web.searches) == 1


def test_the_doctor_calls_no_model_unasked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("PRUNUS_LLM", "scripted:None")
    [found] = lines_of(cli("doctor", "--json"))
    assert found["works"]
    engines = {(engine["kind"], engine["name"]): engine for engine in found["engines"]}
    for kind, name in (("planner", "llm"), ("extractor", "tags"), ("generator", "llm")):
        assert engines[kind, name]["in_force"], (kind, name)
