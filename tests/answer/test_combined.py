"""A question to indexes, the caller's pages and the web together: one budget, one numbering, the same checks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import Model, Outcome, World, let_in, plan, tags_of, world
from tests.answer.world import ask as ask_model
from tests.index.library import SUBJECTS, page

import prunus
from prunus import Index, NothingFound, Options, OutsideFailed, Retrieval, read
from prunus.answer.chat import Conversation
from prunus.core.settings import load_settings
from prunus.core.types import Message
from prunus.index.evidence import Indexes

QUESTION = "How many lamps does the Orrel bridge carry?"
SAID = {
    "page": "The Orrel bridge carries forty lamps on its arches.",
    "index": "The Orrel bridge carries nine green lamps at the quay.",
    "web": "The Orrel bridge carries seventy lamps since 1932.",
}
"""What each source alone says."""
EVERY = [kinds for count in (1, 2, 3) for kinds in combinations(SAID, count)]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as state:
        state.pages = {"/lamps": f"<title>Lamps</title><h1>Lamps</h1><p>{SAID['web']}</p>"}
        state.hits = {"": [state.hit("/lamps", "Lamps", "seventy lamps")]}
        let_in(monkeypatch, state)
        yield state


@pytest.fixture
def index(tmp_path: Path) -> Index:
    found = Index.open(tmp_path / "I")
    found.add({"quay": f"<title>Quay</title><h1>The quay</h1><p>{SAID['index']}</p>", "bees": page("bees")})
    return found


def given(kinds: Sequence[str], index: Index, web: World) -> dict[str, Any]:
    choices: dict[str, Any] = {}
    if "page" in kinds:
        choices["pages"] = f"<title>Arches</title><p>{SAID['page']}</p>"
    if "index" in kinds:
        choices["index"] = index
    if "web" in kinds:
        choices["search"] = f"searxng:{web.url}"
    return choices


def events_of(question: str, **choices: Any) -> Outcome:
    async def all_of() -> list[Any]:
        return [event async for event in prunus.astream(question, **choices)]

    found = asyncio.run(all_of())
    return Outcome(found, found[-1].answer, 0.0)


def writes(task: str, prompt: str, messages: Sequence[Message]) -> str:
    """Plan a search, take whatever speaks of lamps, and say of each source what it says."""
    if task == "plan":
        return plan("Orrel bridge lamps")
    if task == "extract":
        return tags_of(prompt, "lamps")
    return " ".join(f"{SAID[kind]} [{number}]" for number, kind in numbered(prompt))


def numbered(prompt: str) -> list[tuple[int, str]]:
    """Return the sources of an answer's prompt, by number, with the kind that each is."""
    at = {kind: prompt.find(said) for kind, said in SAID.items() if said in prompt}
    heads = [(match.start(), int(match[1])) for match in re.finditer(r"\[(\d+)\]", prompt)]
    found = [(max(head for head in heads if head[0] < place)[1], kind) for kind, place in at.items()]
    return sorted(found)


# --- every combination ---------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", EVERY, ids="+".join)
def test_without_a_model_every_source_that_was_named_is_quoted(
    kinds: tuple[str, ...], index: Index, web: World
) -> None:
    found = events_of(QUESTION, **given(kinds, index, web), budget=400)
    quotes = "\n".join(citation.quote for citation in found.answer.citations)
    assert {kind for kind, said in SAID.items() if said in quotes} == set(kinds)
    assert all(citation.found and citation.support == 1.0 for citation in found.answer.citations)
    assert not found.answer.failures and found.of("kept")[0].tokens <= 400


@pytest.mark.parametrize("kinds", EVERY, ids="+".join)
def test_with_a_model_every_source_is_numbered_and_checked(kinds: tuple[str, ...], index: Index, web: World) -> None:
    model = Model(writes)
    settings = load_settings()
    choices = given(kinds, index, web)
    documents = read(choices["pages"], settings=settings) if "page" in kinds else None
    found = ask_model(
        QUESTION,
        model,
        Options(search=choices.get("search", "")),
        pages=documents,
        indexes=Indexes([index]) if "index" in kinds else None,
        web="web" in kinds,
    )
    assert found.answer.engines["generator"] == "llm"
    assert {citation.quote for citation in found.answer.citations} == {SAID[kind] for kind in kinds}
    assert sorted({citation.number for citation in found.answer.citations}) == [*range(1, len(kinds) + 1)]
    assert found.answer.unsupported == [] and not found.answer.failures
    assert ("plan" in model.tasks) == ("web" in kinds) and model.tasks.count("answer") == 1


def test_one_budget_holds_over_all_sources(index: Index, web: World) -> None:
    for budget in (30, 60, 90):
        [kept] = events_of(QUESTION, **given([*SAID], index, web), budget=budget).of("kept")
        assert kept.tokens <= budget


def test_pages_of_an_index_are_told_as_pages_that_were_read(index: Index, web: World) -> None:
    found = events_of(QUESTION, **given([*SAID], index, web))
    assert "quay" in {event.url for event in found.of("page")}
    assert "retrieve" in found.answer.spent


def test_the_same_page_from_the_web_and_from_an_index_is_told_once(index: Index, web: World) -> None:
    index.add({"copy": web.pages["/lamps"]})
    found = events_of(QUESTION, **given(["index", "web"], index, web))
    assert sum(SAID["web"] in citation.quote for citation in found.answer.citations) == 1


# --- what fails ----------------------------------------------------------------------------------


def test_where_the_web_fails_the_index_answers_and_that_is_said(index: Index, web: World) -> None:
    web.answer = lambda _: (500, b"no")
    found = events_of(QUESTION, **given(["index", "web"], index, web))
    assert SAID["index"] in found.answer.text and "search" in found.answer.failures


def test_where_an_index_fails_the_pages_answer_and_that_is_said(
    index: Index, web: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise OutsideFailed("the database failed", subject="I")

    monkeypatch.setattr(Index, "retrieved", down)
    found = events_of(QUESTION, **given(["page", "index"], index, web))
    assert SAID["page"] in found.answer.text and found.answer.failures == {index.location: "the database failed"}
    with pytest.raises(OutsideFailed, match="the database failed"):
        events_of(QUESTION, index=index)


def test_an_empty_index_stands_in_nobody_s_way(tmp_path: Path, index: Index, web: World) -> None:
    empty = Index.open(tmp_path / "empty")
    found = events_of(QUESTION, **given(["page", "web"], index, web), index=empty)
    assert SAID["page"] in found.answer.text and not found.answer.failures
    with pytest.raises(NothingFound, match="nothing in the index"):
        events_of(QUESTION, index=empty)


def test_limits_leave_pages_and_documents_of_indexes_in_turns(tmp_path: Path, index: Index, web: World) -> None:
    index.add({f"more {n}": f"<p>The shop sells a lamp of kind {n}." for n in range(6)})
    evidence = Indexes([index]).find(QUESTION, read([f"<p>{said}" for said in SAID.values()]), 400)
    fewer = evidence.first(4)
    assert [tree.document for tree in fewer.trees][:2] == [tree.document for tree in evidence.trees][:2]
    assert len(fewer) == 4 and "quay" in {tree.document for tree in fewer.trees}
    blocks = fewer.blocks(64)
    assert {block.document for block in blocks.blocks} == {0, 1, 2, 3}
    texts = "\n".join(blocks.texts)
    assert SAID["page"] in texts and SAID["index"] in texts and SAID["web"] not in texts


# --- summaries -----------------------------------------------------------------------------------


@pytest.fixture
def tale(tmp_path: Path) -> Index:
    """An index whose summaries a model has written."""
    said = "Travellers on the night train rest behind the engine."
    settings = load_settings({"summarizer": "llm", "llm": f"scripted:{said}"})
    found = Index.open(tmp_path / "tale", settings=settings)
    found.add({"trains": page("trains", 12)})
    found.summarize()
    return found


def says(text: str, *words: str) -> Model:
    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        return tags_of(prompt, *(words or ("train", "engine"))) if task == "extract" else text

    return Model(script)


def of_summaries(index: Index) -> Indexes:
    return Indexes([index], Retrieval("collapsed", layers=(1, 2)))


def test_what_a_model_takes_from_a_summary_is_cited_to_leaves(tale: Index) -> None:
    model = says("People rest behind the engine of the night train [1]. They pay with golden coins [1].")
    found = ask_model("Where do travellers rest?", model, indexes=of_summaries(tale))
    assert found.answer.citations
    for citation in found.answer.citations:
        assert (citation.document, citation.found) == ("trains", True) and citation.quote in page("trains", 12)
        assert 0 < citation.support < 1
    assert found.answer.unsupported == ["They pay with golden coins."]


def test_words_that_only_a_summary_says_are_no_quotation_of_a_page(tale: Index) -> None:
    model = says('It says "Travellers on the night train rest" [1]. And "behind the engine." [1]')
    found = ask_model("Where do travellers rest?", model, indexes=of_summaries(tale))
    missing = [citation for citation in found.answer.citations if not citation.found]
    assert [citation.quote for citation in missing] == ["Travellers on the night train rest"]
    assert found.answer.unsupported


def test_where_the_model_fails_a_summary_is_still_never_quoted(tale: Index) -> None:
    def fails(task: str, prompt: str, messages: Sequence[Message]) -> str:
        raise OutsideFailed("the model is down", subject="llm")

    found = ask_model("Where do travellers rest?", Model(fails), indexes=of_summaries(tale))
    assert found.answer.engines["generator"] == "quotes" and "Travellers" not in found.answer.text
    assert all(citation.found and citation.document == "trains" for citation in found.answer.citations)


def test_a_conversation_keeps_numbers_over_indexes_pages_and_the_web(tale: Index, index: Index, web: World) -> None:
    """A summary that was cited is shown again, and still leads to its leaves; pages keep their numbers."""
    chat = Conversation()
    first = ask_model("Where do travellers rest?", says("They rest behind the engine of the night train [1]."),
                      indexes=of_summaries(tale), chat=chat)  # fmt: skip
    assert [reference.number for reference in chat.references] == [1] and chat.references[0].origin is not None
    second = ask_model(QUESTION, Model(writes), Options(search=f"searxng:{web.url}"),
                       indexes=Indexes([index]), chat=chat, web=True)  # fmt: skip
    assert {citation.number for citation in second.answer.citations} == {2, 3}
    again = ask_model("And the train?", says("They rest behind the engine of the night train [1]."),
                      indexes=of_summaries(tale), chat=chat)  # fmt: skip
    assert {citation.quote for citation in again.answer.citations} == {
        citation.quote for citation in first.answer.citations
    }
    assert [reference.number for reference in chat.references] == [1, 2, 3]


def test_a_page_that_changed_between_turns_is_another_source(index: Index) -> None:
    chat = Conversation()
    ask_model(QUESTION, Model(writes), indexes=Indexes([index]), chat=chat)
    new = f"<p>It was painted in spring, all of it, by hand.</p><p>{SAID['index']}</p>"
    index.add({"quay": new})
    found = ask_model(QUESTION, says(f"{SAID['index']} [1][2]", "lamps"), indexes=Indexes([index]), chat=chat)
    assert {(citation.number, citation.found, citation.quote) for citation in found.answer.citations} == {
        (1, True, SAID["index"]),
        (2, True, SAID["index"]),
    }
    assert len({citation.snapshot for citation in found.answer.citations}) == len(
        {citation.span for citation in found.answer.citations}
    )
    assert len(chat.references) == 2


def test_the_public_chat_takes_an_index(index: Index, web: World) -> None:
    chat = prunus.Chat()
    first = chat.ask(QUESTION, index=index)
    second = chat.ask(QUESTION, **given([*SAID], index, web))
    assert SAID["index"] in first.text
    assert all(any(said in citation.quote for citation in second.citations) for said in SAID.values())
    assert len(chat.turns) == 4


def test_every_subject_of_the_library_is_still_found_beside_the_web(tmp_path: Path, web: World) -> None:
    library = Index.open(tmp_path / "library")
    library.add({name: page(name) for name in SUBJECTS})
    found = prunus.ask("Where do passengers of the night train sleep?", index=library, search=f"searxng:{web.url}")
    assert found.citations[0].document == "trains"
    assert json.dumps(found.failures) == "{}"
