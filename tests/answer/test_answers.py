"""Answers with a model: the baselines, the limits over all calls, conversations, and the reports of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.answer.world import Model, World, ask, let_in, plan, tags_of, world
from tests.extras import need

import prunus
from prunus.answer.chat import Conversation
from prunus.answer.trace import Trace, as_record, spans
from prunus.core.errors import BadBudget, NothingFound
from prunus.core.options import Limits, Options, WebOptions
from prunus.core.types import Message

QUESTION = "When did the Orrel bridge open?"
FILLER = "".join(
    f"<p>Paragraph {number} is about the weather of that year and about nothing else.</p>" for number in range(120)
)


def page(title: str, said: str) -> str:
    return f"<title>{title}</title><h1>{title}</h1><p>{said}</p>{FILLER}"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as state:
        state.pages = {
            "/bridge": page("Bridge", "The Orrel bridge opened in 1932 after four years of work."),
            "/ferry": page("Ferry", "Before the Orrel bridge opened in 1932 a ferry crossed here."),
            "/toll": page("Toll", "The toll of the Orrel bridge was two coins when it opened."),
        }
        state.hits = {"": [state.hit(path, path[1:], "Orrel bridge opened") for path in state.pages]}
        let_in(monkeypatch, state)
        yield state


def good(task: str, prompt: str, messages: Sequence[Message]) -> str:
    if task == "plan":
        return plan("Orrel bridge opened")
    return tags_of(prompt, "Orrel") if task == "extract" else "The Orrel bridge opened in 1932 [1]."


def prompts(model: Model, task: str) -> list[str]:
    return [
        "\n".join(message.content for message in call.messages)
        for call, name in zip(model.calls, model.tasks, strict=True)
        if name == task
    ]


def test_what_code_finds_likely_is_evidence_and_quoted_although_the_model_names_other_segments() -> None:
    seen: list[str] = []

    def weak(said: str) -> Model:
        def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
            if task == "extract":
                return tags_of(prompt, "Paragraph 7 is")  # of the weather
            seen.append(prompt)
            return said

        return Model(script)

    pages = [page("Bridge", "The Orrel bridge opened in 1932 after four years of work.")]
    right = prunus.ask(QUESTION, pages, options=Options(llm=weak("The Orrel bridge opened in 1932 [1].")))
    assert "opened in 1932 after" in seen[0] and "Paragraph 7 is" in seen[0]
    assert right.text == "The Orrel bridge opened in 1932 [1]." and right.unsupported == []
    wrong = prunus.ask(QUESTION, pages, options=Options(llm=weak("Penguins built it in the winter of 1850 [1].")))
    assert "opened in 1932" in wrong.text and "weather" not in wrong.text
    quotes = prunus.ask(QUESTION, pages, options=Options(llm=weak(""), generator="quotes"))
    assert "weather" in quotes.text and "1932" not in quotes.text, "what the model named, as the options ask"


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [100, 600, 2_000, 5_000, 9_000, 20_000])
def test_tokens_of_the_whole_answer_are_never_exceeded(web: World, tokens: int) -> None:
    """Down to nothing: then rules plan, sentences are chosen without the model, and the pages are quoted."""
    model = Model(good)
    answer = ask(QUESTION, model, Options(limits=Limits(tokens=tokens))).answer
    used = answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert used <= tokens
    assert "1932" in answer.text
    assert sum(usage.prompt_tokens + usage.completion_tokens for usage in answer.spent.values()) == used
    if tokens == 100:
        assert model.calls == [] and answer.engines["generator"] == "quotes"
    if tokens == 20_000:
        assert set(model.tasks) == {"plan", "extract", "answer"} and not answer.failures


def test_more_tokens_use_more_pages(web: World) -> None:
    asked = []
    for tokens in (6_000, 20_000):
        model = Model(good)
        ask(QUESTION, model, Options(limits=Limits(tokens=tokens)))
        asked.append(model.tasks.count("extract"))
    assert asked[0] < asked[1] == 3


def test_money_is_never_exceeded(web: World, folder: Path) -> None:
    (folder / "prunus.toml").write_text('[prices]\n"scripted:x" = { prompt = 10.0, completion = 30.0 }\n', "utf-8")
    for usd in (0.001, 0.02, 0.1, 1.0):
        answer = ask(QUESTION, Model(good), Options(limits=Limits(usd=usd))).answer
        assert answer.usage.usd <= usd
        assert "1932" in answer.text


def test_searches_are_paid_from_the_same_money(web: World, folder: Path) -> None:
    (folder / "prunus.toml").write_text("[search_prices]\nsearxng = 0.01\n", "utf-8")
    two = Model(
        lambda task, prompt, messages: plan("Orrel", "bridge") if task == "plan" else good(task, prompt, messages)
    )
    answer = ask(QUESTION, two, Options(limits=Limits(usd=0.015))).answer
    assert len(web.searches) == 1 and answer.spent["search"].usd == pytest.approx(0.01)
    assert "--max-usd" in answer.failures["query bridge"]
    with pytest.raises(BadBudget, match="max-usd"):
        ask(QUESTION, Model(good), Options(limits=Limits(usd=0.001)))


def test_without_a_budget_evidence_follows_the_window(web: World) -> None:
    kept = []
    for window in (4_500, 9_000):
        outcome = ask(QUESTION, Model(good, window=window))
        kept.append(outcome.of("kept")[0].tokens)
    assert kept[0] < 1_500 < kept[1] < 9_000
    assert ask(QUESTION, Model(good, window=9_000), budget=300).of("kept")[0].tokens <= 300


# --- conversations -------------------------------------------------------------------------------


def test_earlier_sources_stay_citable_under_their_numbers(web: World) -> None:
    """The second turn finds another page; the first turn's source keeps its number and can be cited again."""
    web.hits = {"toll": [web.hit("/toll", "Toll", "two coins")], "": [web.hit("/bridge", "Bridge", "opened in 1932")]}

    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        second = "toll" in prompt.rsplit("question", 1)[-1]
        if task == "plan":
            return plan("Orrel bridge toll") if second else plan("Orrel bridge opened")
        if task == "extract":
            return tags_of(prompt, "Orrel")
        return (
            "It opened in 1932 [1]. The toll was two coins [2]." if second else "The Orrel bridge opened in 1932 [1]."
        )

    chat = Conversation()
    ask(QUESTION, Model(script), chat=chat)
    model = Model(script)
    answer = ask("And what was the toll?", model, chat=chat).answer
    assert {citation.number: citation.url for citation in answer.citations} == {
        1: f"{web.url}/bridge",
        2: f"{web.url}/toll",
    }
    assert answer.unsupported == []
    [prompt] = prompts(model, "answer")
    assert QUESTION in prompt and "[1] | Bridge" in prompt and "[2] | Toll" in prompt
    assert [turn.role for turn in chat.turns] == ["user", "assistant", "user", "assistant"]


def test_a_follow_up_that_needs_no_search_is_answered_from_earlier_sources(web: World) -> None:
    def script(task: str, prompt: str, messages: Sequence[Message]) -> str:
        if task == "plan" and "shorter" in prompt:
            return plan(needs=False)
        return good(task, prompt, messages)

    chat = Conversation()
    ask(QUESTION, Model(script), chat=chat)
    searches = len(web.searches)
    answer = ask("Say that shorter.", Model(script), chat=chat).answer
    assert len(web.searches) == searches
    assert [citation.url for citation in answer.citations] == [f"{web.url}/bridge"]


def test_a_conversation_of_the_library(web: World) -> None:
    chat = prunus.Chat()
    first = chat.ask(QUESTION)
    assert "1932" in first.text
    assert "two coins" in chat.ask("And what was its toll?").text
    assert len(chat.turns) == 4


# --- no search -----------------------------------------------------------------------------------


def test_what_needs_no_search_is_answered_by_the_model(web: World) -> None:
    model = Model(lambda task, prompt, messages: plan(needs=False) if task == "plan" else "It is 4 [1].")
    answer = ask("What is 2 + 2?", model).answer
    assert (answer.text, list(answer.citations)) == ("It is 4.", [])
    assert web.requests == [] and model.tasks == ["plan", "direct"]


def test_what_needs_no_search_without_a_model_is_an_honest_no(web: World) -> None:
    with pytest.raises(NothingFound, match=r"arithmetic.*--llm"):
        ask("What is 2 + 2?")
    assert web.searches == []
    ask("What is 2 + 2?", options=Options(web=WebOptions(always=True)))
    assert web.searches[0]["q"] == "What is 2 + 2?"


# --- what is reported ----------------------------------------------------------------------------


def test_a_trace_of_every_stage(web: World) -> None:
    seen: list[Trace] = []
    ask(QUESTION, Model(good), Options(trace=seen.append))
    assert [trace.stage for trace in seen] == ["plan", "search", "read", "rank", "prune", "extract", "answer", "cite"]
    assert seen[0].detail["plan"].queries[0].text == "Orrel bridge opened"
    assert seen[6].detail["prompt_tokens"] > 0
    assert json.dumps(as_record(seen[3], 0.0))


def test_the_same_question_twice_is_the_same_answer(web: World) -> None:
    first, second = (ask(QUESTION, Model(good)) for _ in range(2))
    assert first.answer.text == second.answer.text
    citations = [[replace(citation, read_at="") for citation in one.answer.citations] for one in (first, second)]
    assert citations[0] == citations[1]


def test_pages_that_are_given_and_pages_that_are_found(web: World) -> None:
    """Both are used: what is given comes first."""
    answer = prunus.ask(
        QUESTION,
        "<title>Mine</title><p>The Orrel bridge opened in 1931, my notes say.</p>",
        search=f"searxng:{web.url}",
    )
    assert "1931" in answer.text and "1932" in answer.text


def test_several_providers_and_several_queries_are_one_list(web: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as other:
        other.hits = {"": [web.hit("/toll", "Toll", "two coins"), web.hit("/bridge?utm_source=x", "Bridge", "opened")]}
        let_in(monkeypatch, web)
        monkeypatch.setenv("PRUNUS_SEARCH", f"searxng:{web.url},searxng:{other.url}")
        two = Model(
            lambda task, prompt, messages: plan("Orrel", "bridge") if task == "plan" else good(task, prompt, messages)
        )
        outcome = ask(QUESTION, two)
    assert len(outcome.of("search")) == 2 and len(other.searches) == 2
    assert len({event.url.split("?")[0] for event in outcome.of("page")}) == len(outcome.of("page")) == 3


@pytest.mark.full
def test_stages_become_spans(web: World) -> None:
    sdk = need("opentelemetry.sdk.trace")
    memory = need("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(need("opentelemetry.sdk.trace.export").SimpleSpanProcessor(memory))
    ask(QUESTION, Model(good), Options(trace=spans(provider.get_tracer("test"))))
    found = memory.get_finished_spans()
    assert [span.name for span in found][:3] == ["prunus.plan", "prunus.search", "prunus.read"]
    assert found[0].end_time >= found[0].start_time
    assert json.loads(found[1].attributes["prunus.queries"])[0]["text"] == "Orrel bridge opened"


# --- pictures ------------------------------------------------------------------------------------

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf"
    "500f0003860180a0a3b5c30000000049454e44ae426082"
)


@pytest.fixture
def pictured(web: World) -> World:
    web.pages["/bridge"] = page(
        "Bridge",
        'The Orrel bridge opened in 1932. <img src="/good.png" alt="The bridge"> <img src="/fake.png" alt="Its plan">'
        ' <img src="http://169.254.169.254/x.png" alt="Inside">',
    )
    web.pages |= {"/good.png": PIXEL, "/fake.png": "<p>Not a picture, but a page with words.</p>"}
    return web


def test_pictures_are_sent_only_when_asked_for(pictured: World) -> None:
    model = Model(good)
    ask(QUESTION, model)
    assert not any(message.pictures for call in model.calls for message in call.messages)
    assert "/good.png" not in pictured.requests


def test_pictures_of_the_evidence_go_through_the_door(pictured: World) -> None:
    """A picture is told by its bytes; an address inside is refused, and both are said."""
    model = Model(good)
    answer = ask(QUESTION, model, Options(web=WebOptions(pictures=3))).answer
    [sent] = [message for call in model.calls for message in call.messages if message.pictures]
    assert len(sent.pictures) == 1 and sent.pictures[0].startswith("data:image/png;base64,iVBORw0KGgo")
    assert "in this order, and material as these are: [1]." in sent.content
    assert f"picture {pictured.url}/fake.png" in answer.failures
    assert "picture http://169.254.169.254/x.png" in answer.failures


def test_pictures_are_counted(pictured: World) -> None:
    model = Model(good)
    answer = ask(QUESTION, model, Options(limits=Limits(tokens=6_000), web=WebOptions(pictures=3))).answer
    assert answer.usage.prompt_tokens + answer.usage.completion_tokens <= 6_000
    assert sum(len(message.pictures) for call in model.calls for message in call.messages) <= 1
