"""From a question to a cited answer with no network: real pages behind a local search service, and the example site."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import Model, World, ask, let_in, plan, tags_of, world

import prunus
from prunus.core.errors import NothingFound
from prunus.core.options import Options
from prunus.core.text.words import normalise
from prunus.core.types import Message

SITE = Path(__file__).parents[2] / "examples" / "site"


@pytest.fixture(scope="module")
def crag(rows: Callable[..., list[dict[str, Any]]]) -> Iterator[tuple[World, list[dict[str, Any]]]]:
    """The ten questions, their pages under the digest of their address, their snippets behind the search."""
    questions = rows("search/crag")
    with world() as state:
        by_question: dict[str, list[dict[str, str]]] = {}
        for row in questions:
            hits = []
            for one in row["search_results"]:
                path = f"/{hashlib.sha256(one['page_url'].encode()).hexdigest()[:16]}"
                state.pages[path] = one["page_result"]
                hits.append(state.hit(path, one["page_name"], one["page_snippet"]))
            by_question[row["query"]] = hits

        def answer(params: dict[str, str]) -> tuple[int, bytes]:
            """Answer with the hits of the question that shares most words with the query."""
            words = set(params["q"].lower().split())
            best = max(by_question, key=lambda question: len(words & set(question.lower().rstrip("?").split())))
            return 200, json.dumps({"results": by_question[best]}).encode()

        state.answer = answer
        yield state, questions


def check(outcome: Any, web: World) -> None:
    """Check of any answer that its stages are in order, and that every citation is a slice of a page that was read."""
    names = list(dict.fromkeys(event.event for event in outcome.events))
    assert names == [
        name
        for name in ("plan", "search", "page", "kept", "extracted", "token", "citation", "usage", "done")
        if name in names
    ]
    assert outcome.answer.citations
    requested = {f"{web.url}{path}" for path in web.requests}
    read = {event.url for event in outcome.of("page") if not event.failure}
    trees: dict[str, str] = {}
    for citation in outcome.answer.citations:
        assert citation.url in read & requested
        if citation.url not in trees:
            content = web.pages[citation.url.removeprefix(web.url)]
            trees[citation.url] = prunus.read(content).trees[0].canonical
        if citation.found:
            assert citation.quote == trees[citation.url][citation.span.start : citation.span.end]
            assert normalise(citation.quote)
    assert set(outcome.answer.spent) >= {"plan", "search", "read", "rank", "answer", "cite"}


@pytest.mark.data
@pytest.mark.parametrize("number", range(10))
def test_real_questions_without_a_model(
    crag: tuple[World, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    state, questions = crag
    let_in(monkeypatch, state)
    try:
        outcome = ask(questions[number]["query"])
    except NothingFound:  # an honest end: the pages do not bear on every question
        return
    check(outcome, state)
    assert all(citation.found for citation in outcome.answer.citations)
    assert outcome.answer.text.startswith("The pages say:")


@pytest.mark.data
@pytest.mark.parametrize("number", range(10))
def test_real_questions_with_a_model(
    crag: tuple[World, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A scripted model plans, names the first segments of each page, and quotes the first words of its first source."""
    state, questions = crag
    let_in(monkeypatch, state)
    question = questions[number]["query"]

    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        if task == "plan":
            return plan(question.rstrip("?"))
        if task == "extract":
            return "<TAG-1>-<TAG-2>"
        lines = prompt.split("BEGIN ", 1)[1].split("\n")[1:]
        first = next(line for line in lines if line.strip() and not line.startswith("#"))
        words = " ".join(first.split(" (")[0].split()[:8]).replace('"', "")
        return f'The first page says: "{words}" [1].\n\nIt is an elephant of {number} tonnes [2][77].'

    outcome = ask(question, Model(script))
    check(outcome, state)
    assert "[77]" not in outcome.answer.text
    assert any("elephant" in sentence for sentence in outcome.answer.unsupported)
    assert outcome.answer.usage.prompt_tokens > 0
    assert outcome.answer.engines["planner"] == "llm" and outcome.answer.engines["extractor"] == "tags"


# --- the example site ----------------------------------------------------------------------------


def test_the_questions_of_the_example_site(questions: list[dict[str, Any]]) -> None:
    """Without a model, by a search of the folder: most answers hold the words that are asked for."""
    right = wrong = 0
    for row in questions[::10]:
        if not row.get("answers"):
            continue
        try:
            answer = ask(row["question"], options=Options(search=f"local:{SITE}")).answer
        except NothingFound:
            wrong += 1
            continue
        assert all(citation.found for citation in answer.citations)
        held = any(normalise(str(expected)).lower() in normalise(answer.text).lower() for expected in row["answers"])
        right, wrong = right + held, wrong + (not held)
    print(f"example site by local search: {right} of {right + wrong}")
    assert right >= 0.6 * (right + wrong)


def test_the_example_site_with_a_model() -> None:
    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        if task == "plan":
            return plan("stilling well depth")
        return tags_of(prompt, "9.6 metres") if task == "extract" else "The well is 9.6 metres deep [1]."

    outcome = ask("How deep is the stilling well?", Model(script), Options(search=f"local:{SITE}"))
    [citation] = outcome.answer.citations
    assert citation.url.endswith("gallery.html") and "9.6 metres" in citation.quote and citation.support >= 0.5
    assert outcome.answer.unsupported == []


def test_the_public_functions_do_the_same() -> None:
    question = "How deep is the stilling well?"
    answer = prunus.ask(question, search=f"local:{SITE}")
    assert "9.6 metres" in answer.text
    assert ask(question, options=Options(search=f"local:{SITE}")).answer.text == answer.text
    hits = prunus.search("stilling well", f"local:{SITE}").hits
    assert hits and all(hit.url.startswith(str(SITE)) for hit in hits)
