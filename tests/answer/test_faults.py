"""Failures of a provider, a page or the model: each run ends in time with the rest, and reports what failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pytest
from tests.answer.world import Model, World, ask, let_in, plan, tags_of, world

from prunus.answer.write import INSTEAD
from prunus.core.errors import NothingFound, OutsideFailed
from prunus.core.options import Limits, Options, WebOptions
from prunus.core.types import Message
from prunus.models.llm.scripted import ScriptedReply

QUESTION = "When did the Orrel bridge open?"
BRIDGE = (
    "<title>Bridge</title><h1>The Orrel bridge</h1><p>The Orrel bridge opened in 1932 after four years of work.</p>"
)
FERRY = "<title>Ferry</title><h1>Ferry</h1><p>Before the Orrel bridge opened in 1932 a ferry crossed here.</p>"
WALL = "<title>Just a moment...</title><p>Checking your browser before accessing this site. Enable JavaScript.</p>"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as state:
        state.pages = {"/bridge": BRIDGE, "/ferry": FERRY}
        state.hits = {"": [state.hit("/bridge", "Bridge", "opened in 1932"), state.hit("/ferry", "Ferry", "a ferry")]}
        let_in(monkeypatch, state)
        yield state


def good(task: str, prompt: str, messages: Sequence[Message]) -> str:
    if task == "plan":
        return plan("Orrel bridge opened")
    return tags_of(prompt, "1932") if task == "extract" else "The Orrel bridge opened in 1932 [1][2]."


def seconds(limit: float) -> Options:
    return Options(limits=Limits(seconds=limit))


# --- the search ----------------------------------------------------------------------------------


def test_a_provider_that_is_down_beside_one_that_answers(web: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_SEARCH", f"searxng:http://127.0.0.1:9,searxng:{web.url}")
    outcome = ask(QUESTION)
    assert "1932" in outcome.answer.text
    assert any("searxng" in warning for event in outcome.of("search") for warning in event.warnings)


def test_every_provider_down_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_SEARCH", "searxng:http://127.0.0.1:9")
    with pytest.raises(OutsideFailed, match="searxng"):
        ask(QUESTION)


def test_a_slow_provider_is_given_up_inside_the_time(web: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as slow:
        slow.answer = lambda params: (slow.ended.wait(20), (200, b"{}"))[1]
        let_in(monkeypatch, web, slow)
        monkeypatch.setenv("PRUNUS_SEARCH", f"searxng:{slow.url}")
        with pytest.raises(OutsideFailed, match="time that was left"):
            ask(QUESTION, options=seconds(2))


def test_a_provider_that_lies_about_totals(web: World) -> None:
    """Only what it really sends counts: results that are none, the same one a hundred times, more than were asked for."""
    rows = [web.hit("/bridge", "Bridge"), {"url": 7}, {"url": "javascript:alert(1)"}, "row", None]
    rows += [web.hit("/bridge", "Bridge")] * 200
    web.answer = lambda params: (200, json.dumps({"number_of_results": 10**12, "results": rows}).encode())
    outcome = ask(QUESTION)
    assert [event.url for event in outcome.of("page")] == [f"{web.url}/bridge"]
    assert "1932" in outcome.answer.text


@pytest.mark.parametrize("content", [b"<html>not json", b"[]", b'{"results": 3}', b""])
def test_a_provider_that_answers_with_junk(web: World, content: bytes) -> None:
    web.answer = lambda params: (200, content)
    with pytest.raises(OutsideFailed, match="searxng"):
        ask(QUESTION)


def test_no_hit_is_said(web: World) -> None:
    web.hits = {}
    with pytest.raises(NothingFound, match="search found nothing"):
        ask(QUESTION)


# --- pages ---------------------------------------------------------------------------------------


def test_pages_that_are_gone_or_no_content_fail_alone(web: World) -> None:
    web.pages |= {"/gone": (410, "<p>gone</p>"), "/wall": WALL, "/empty": ""}
    web.hits[""] += [web.hit(path, path, "Orrel bridge opened") for path in ("/gone", "/wall", "/empty", "/none")]
    outcome = ask(QUESTION, Model(good))
    failed = {url.removeprefix(web.url) for url in outcome.answer.failures}
    assert failed == {"/gone", "/wall", "/empty", "/none"}
    assert {citation.url for citation in outcome.answer.citations} <= {f"{web.url}/bridge", f"{web.url}/ferry"}
    assert "1932" in outcome.answer.text


@pytest.mark.slow
def test_a_page_that_never_comes_costs_no_more_than_its_time(web: World) -> None:
    web.pages["/slow"] = 30
    web.hits[""].insert(0, web.hit("/slow", "Bridge", "Orrel bridge opened in 1932"))
    outcome = ask(QUESTION, options=seconds(8))  # of which a busy machine takes some for the other pages
    assert outcome.seconds < 8
    assert "not read in the time" in outcome.answer.failures[f"{web.url}/slow"]
    assert "1932" in outcome.answer.text


def test_all_pages_gone(web: World) -> None:
    web.pages = {}
    with pytest.raises(OutsideFailed, match="no page that was found could be read"):
        ask(QUESTION)


def test_pages_that_say_nothing_of_it(web: World) -> None:
    web.pages = dict.fromkeys(("/bridge", "/ferry"), "<p>Quarterly dividends of listed companies.</p>")
    with pytest.raises(NothingFound, match="no passage of the pages is likely to answer"):
        ask(QUESTION)


def test_the_next_pages_are_tried_before_nothing_is_found(web: World) -> None:
    """The best page by its snippet says nothing; the next one does."""
    web.pages["/lure"] = "<p>Quarterly dividends of listed companies.</p>"
    web.hits[""] = [
        web.hit("/lure", QUESTION, "When did the Orrel bridge open? It opened"),
        web.hit("/ferry", "x", "y"),
    ]

    def choosy(task: str, prompt: str, messages: Sequence[Message]) -> str:
        return good(task, prompt, messages)

    outcome = ask(QUESTION, Model(choosy), Options(web=WebOptions(pages=1)))
    assert len(outcome.of("kept")) == 2
    assert [citation.url for citation in outcome.answer.citations] == [f"{web.url}/ferry"]


# --- the model -----------------------------------------------------------------------------------


def failing(task_: str, reply: str | ScriptedReply):  # type: ignore[no-untyped-def]
    """Answer well but for one task."""

    def script(task: str, prompt: str, messages: Sequence[Message]) -> str | ScriptedReply:
        return reply if task == task_ else good(task, prompt, messages)

    return Model(script)


JUNK = "Lorem ipsum } ]] <<< dolor"


@pytest.mark.parametrize(
    "reply", [JUNK, ScriptedReply(error=OutsideFailed("the server is down")), '{"needs_search": "yes"}', ""]
)
def test_a_model_that_cannot_plan(web: World, reply: str | ScriptedReply) -> None:
    """Its plan is repaired once; then rules plan, and say so."""
    outcome = ask(QUESTION, failing("plan", reply))
    assert "planned by rules" in outcome.of("plan")[0].plan.reason
    assert "1932 [1]" in outcome.answer.text


@pytest.mark.parametrize("reply", [JUNK, ScriptedReply(error=OutsideFailed("the server is down"))])
def test_a_model_that_cannot_extract(web: World, reply: str | ScriptedReply) -> None:
    answer = ask(QUESTION, failing("extract", reply)).answer
    assert "extracted without the model" in answer.failures["extractor"]
    assert answer.engines["extractor"] == "sentences"
    assert "1932 [1]" in answer.text


@pytest.mark.parametrize("reply", [ScriptedReply(error=OutsideFailed("the server is down")), "", "   \n "])
def test_a_model_that_writes_nothing(web: World, reply: str | ScriptedReply) -> None:
    """The pages are quoted instead."""
    answer = ask(QUESTION, failing("answer", reply)).answer
    assert answer.text.startswith("The pages say:")
    assert answer.engines["generator"] == "quotes"
    assert "generator" in answer.failures
    assert all(citation.found for citation in answer.citations)


def test_a_model_that_breaks_off_in_the_middle(web: World) -> None:
    answer = ask(
        QUESTION, failing("answer", ScriptedReply("The bridge opened in 1932 [1]. It was then", cut_after=8))
    ).answer
    assert answer.text.startswith("The bridge opened in 1932 [1].")
    assert "broke off" in answer.failures["generator"]
    assert answer.citations[0].found


@pytest.mark.slow
def test_a_model_that_is_too_slow_is_stopped_inside_the_time(web: World) -> None:
    slow = ScriptedReply("The bridge opened in 1932 [1]. " + "And so on and on. " * 200, pause=0.05)
    outcome = ask(QUESTION, failing("answer", slow), seconds(5))
    assert outcome.seconds < 8, "all of it would take 40"
    assert "generator" in outcome.answer.failures
    assert "1932 [1]" in outcome.answer.text


def test_a_model_that_goes_round_in_a_circle_is_stopped(web: World) -> None:
    model = failing("answer", "It opened in 1932 [1]. " + "The bridge is a bridge. " * 400)
    answer = ask(QUESTION, model).answer
    assert "repeats itself" in answer.failures["generator"]
    assert len(answer.text) < 2_000


def test_junk_is_an_answer_that_nothing_bears_out(web: World) -> None:
    answer = ask(QUESTION, failing("answer", "Purple elephants dance quickly around seventeen lighthouses.")).answer
    assert answer.unsupported == ["Purple elephants dance quickly around seventeen lighthouses."]
    said, _, below = answer.text.partition(INSTEAD)
    assert not said, "what no page bears out is no answer"
    plain = below.replace("**", "")
    assert all(citation.found and citation.quote.replace("\n", " / ") in plain for citation in answer.citations)
    assert {f"[{citation.number}]" for citation in answer.citations} == set(re.findall(r"\[\d+\]", below)) != set()
    assert "cites no page" in answer.failures["citations"]


def test_a_model_that_says_none_of_every_page(web: World) -> None:
    with pytest.raises(NothingFound):
        ask(QUESTION, failing("extract", "None"))


def test_an_answer_without_any_page_is_given_only_where_it_is_asked_for(web: World) -> None:
    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        return {"extract": "None", "direct": "It opened in 1932, I think [1]."}.get(task) or good(
            task, prompt, messages
        )

    answer = ask(QUESTION, Model(script), Options(web=WebOptions(unread=True))).answer
    assert answer.text.startswith("No page that was read bears on this question.")
    assert "[1]" not in answer.text and answer.citations == []
    assert answer.unsupported == ["It opened in 1932, I think."]
