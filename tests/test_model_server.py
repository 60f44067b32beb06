"""Plan, extract, stream, summarise and score paths with a real llama.cpp server and a small real model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.llamacpp import WINDOW, llamacpp
from tests.models.llm.asking import collect, run

import prunus
from prunus.answer.plan.llm import PlanReply
from prunus.core.errors import BadBudget, OverWindow
from prunus.core.options import Options
from prunus.core.settings import load_settings
from prunus.core.types import Message, Page
from prunus.engines import EngineSet
from prunus.evidence.blocks import cut
from prunus.evidence.score._trie import grow
from prunus.index.summarize import llm as summarizer
from prunus.models.json_reply import read_json, schema_of, text_of
from prunus.pages.clean.walk import clean_tree

httpx = need("httpx")
pytestmark = [pytest.mark.full, pytest.mark.slow]

FERRY = (
    "<h1>Dunnock Quay</h1><h2>Ferry</h2><p>The ferry leaves Dunnock Quay at 9:40 every morning.</p>"
    "<h2>Charts</h2><p>Charts of the harbour are sold at the office.</p><p>The office opens at noon.</p>"
)
QUESTION = "When does the ferry leave Dunnock Quay?"
LONG = [Message("user", "word " * 3_000)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llamacpp() as url:
        yield url


@pytest.fixture
def maker(address: str) -> EngineSet:
    """Makes engines that ask the server through the real egress door."""
    settings = {"llm": f"{address}/v1#smollm2", "path_scorer": f"llamacpp:{address}", "plan_seconds": 240.0,
                "extract_seconds": 240.0, "model_calls": True}  # fmt: skip
    return EngineSet(load_settings(settings, environment={}, folder=Path("/")), Options())


def test_a_reply_comes_in_pieces_with_its_usage_and_the_window_is_the_served_one(maker: EngineSet) -> None:
    model = maker.get("llm")
    pieces, usage = run(collect(model, max_tokens=24, seed=3, stop=["\n\n\n"]), 240)
    assert len(pieces) > 1
    assert usage.prompt_tokens > 20 and 0 < usage.completion_tokens <= 24
    assert run(model.ask_window()) == WINDOW


def test_a_reply_that_nobody_reads_on_leaves_the_server_free(maker: EngineSet) -> None:
    model = maker.get("llm")

    async def leave() -> None:
        async with aclosing(model.stream([Message("user", "Count to a thousand.")], max_tokens=1000)) as events:
            async for _ in events:
                break
        await text_of(model.stream([Message("user", "Hi.")], max_tokens=2))

    run(leave(), 240)


def test_a_prompt_over_the_window_is_a_budget_to_lower(maker: EngineSet) -> None:
    with pytest.raises(BadBudget, match=f"lower the budget.*{WINDOW} tokens"):
        run(collect(maker.get("llm"), LONG, max_tokens=2), 240)


def test_json_by_schema_is_what_the_schema_allows(maker: EngineSet) -> None:
    ask = [Message("user", f"Write search queries for: {QUESTION} Reply with JSON.")]
    stream = maker.get("llm").stream(ask, max_tokens=600, temperature=0.0, schema=schema_of(PlanReply))
    reply, _ = run(text_of(stream), 240)
    plan, fault = read_json(reply, PlanReply)
    assert plan is not None, fault
    assert len(plan.queries) <= 4
    assert all(len(query.text) <= 120 for query in plan.queries)


def test_a_plan_holds_no_words_of_the_prompt(maker: EngineSet) -> None:
    plan = asyncio.run(maker.get("planner").plan([Message("user", QUESTION)], datetime(2026, 3, 14)))
    assert plan.reason or plan.queries
    texts = [query.text.lower() for query in plan.queries]
    assert len(texts) <= 4
    assert not {"keywords", "the question"} & {*texts}
    assert not any(text.startswith("begin ") for text in texts)


def test_an_answer_cites_what_its_page_says_or_says_that_it_does_not(address: str, tmp_path: Path) -> None:
    settings = load_settings(
        {"llm": f"{address}/v1#smollm2", "home": str(tmp_path), "extract_seconds": 240.0, "model_calls": True},
        environment={},
        folder=Path("/"),
    )
    answer = prunus.ask(QUESTION, Page(FERRY, "https://example.org/ferry"), settings=settings)
    assert answer.text
    assert sum(usage.prompt_tokens for usage in answer.spent.values()) > 100
    for citation in answer.citations:
        assert citation.url == "https://example.org/ferry"


def test_a_summary_is_written_within_its_tokens(maker: EngineSet) -> None:
    engine = summarizer.Engine(maker.get("llm"))
    texts = ["The ferry leaves at 9:40 every morning.", "The office sells charts of the harbour."]
    (summary,) = asyncio.run(engine.summarize([texts], 40))
    assert summary.text
    assert 0 < summary.usage.completion_tokens <= 40


def test_the_probabilities_of_the_paths_of_a_page_sum_to_one(maker: EngineSet) -> None:
    blocks = cut([clean_tree(FERRY)], 8)
    maker.chosen["scorer"] = "generative"
    scorer = maker.get("scorer")
    scores = scorer.score(QUESTION, blocks)
    assert len(scores) == len(blocks) > 2
    assert np.isfinite(scores).all()
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-6)
    again = scorer.score(QUESTION, blocks)  # with the server's cache, whose batches differ: a quantised model rounds
    assert np.argmax(again) == np.argmax(scores)
    assert np.abs(again - scores).max() < 1.0


def test_the_server_says_its_end_token_and_its_window_to_a_path_scorer(maker: EngineSet, address: str) -> None:
    paths: Any = maker.get("path_scorer")
    reply = httpx.post(f"{address}/detokenize", json={"tokens": [paths.stop]}, trust_env=False)
    assert reply.json()["content"] == "<|im_end|>"
    tree = grow([[5, 6], [7]])[0]
    with pytest.raises(OverWindow) as raised:
        paths.branches(LONG, tree)
    assert raised.value.window == WINDOW
    paths._properties = {}  # as a server without /props: its refusal states the window
    with pytest.raises(OverWindow) as raised:
        paths.branches(LONG, tree)
    assert raised.value.window == WINDOW


def test_every_name_of_a_request_is_one_that_the_server_knows(address: str) -> None:
    """A request with all options is answered: nothing is left out because the server refuses it."""
    from prunus.models.llm._shared import CallOptions
    from prunus.models.llm.openai import body

    call = CallOptions(4, 0.0, 1, ("x",), {"type": "object", "properties": {}, "additionalProperties": False})
    sent = body("smollm2", [Message("user", "Hi.")], call, frozenset())
    reply = httpx.post(f"{address}/v1/chat/completions", json=sent, trust_env=False, timeout=120)
    assert reply.status_code == 200
    assert json.loads(reply.text.split("data: ")[1].splitlines()[0])["object"] == "chat.completion.chunk"
