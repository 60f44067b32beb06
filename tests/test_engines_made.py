"""Engines are made from settings: specs, shared engines, metering and refusals."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from prunus.core.errors import BadInput, OutsideFailed, UnknownEngine
from prunus.core.options import Limits, Options
from prunus.core.ports import Segment
from prunus.core.settings import load_settings
from prunus.core.types import Message, Span
from prunus.engines import EngineSet, answer_engines, prune_engines
from prunus.models.json_reply import text_of
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply
from prunus.models.meter import Metered, OverLimit

ASK = [Message("user", "When does the ferry leave?")]


def maker(options: Options | None = None, **settings: object) -> EngineSet:
    return EngineSet(load_settings(settings, environment={}, folder=Path("/")), options or Options())


def test_an_engine_is_made_once_and_shared() -> None:
    made = maker()
    assert made.get("embedder") is made.get("scorer").embedder
    assert made.names == {"embedder": "static", "scorer": "trees"}


def test_the_time_limits_of_plan_and_extraction_are_settings() -> None:
    slow = "the model takes longer than the limit"
    script = ScriptedReply(slow, pause=5)
    made = maker(Options(llm=Scripted(script=[script, script])), plan_seconds=0.1, extract_seconds=0.2)
    plan = asyncio.run(made.get("planner").plan(ASK, datetime(2026, 3, 14)))
    assert "no plan within 0.1 s" in plan.reason
    with pytest.raises(OutsideFailed, match=r"no reply within 0\.2 s"):
        asyncio.run(made.get("extractor").extract("When?", [Segment(1, "At noon.", Span("a", 0, 8))]))
    for name in ("plan_seconds", "extract_seconds"):
        with pytest.raises(BadInput, match=f"{name} .*positive"):
            maker(llm="scripted:x", **{name: 0}).get("planner" if name == "plan_seconds" else "extractor")


@pytest.mark.parametrize("summaries", [True, False])
def test_summaries_before_the_tags_are_a_setting(summaries: bool) -> None:
    model = Scripted(script=["the time of the ferry <TAG-1>"])
    made = maker(Options(llm=model), extract_summaries=summaries)
    found = asyncio.run(made.get("extractor").extract("When?", [Segment(1, "At noon.", Span("a", 0, 8))]))
    assert [chosen.tag for chosen in found] == [1]
    assert ("summary of its segment" in model.calls[0].messages[0].content) == summaries


def test_options_win_over_settings() -> None:
    settings = load_settings({"scorer": "bm25"}, environment={})
    assert prune_engines(settings).names["scorer"] == "bm25"
    assert prune_engines(settings, Options(scorer="embedding")).names["scorer"] == "embedding"


def test_what_an_engine_cannot_do_without_is_named() -> None:
    with pytest.raises(BadInput, match="crossencoder needs a reranker: set reranker"):
        maker(scorer="crossencoder", reranker="none").get("scorer")
    with pytest.raises(UnknownEngine, match="no embedder is called 'wishes'"):
        maker(embedder="wishes").get("embedder")


def test_an_engine_that_fails_fails_again() -> None:
    made = maker(embedder="wishes")
    for _ in range(2):
        with pytest.raises(UnknownEngine, match="no embedder is called 'wishes'"):
            made.get("embedder")
    assert "embedder" not in made.names


def test_a_model_is_counted_and_held_to_the_limits_of_the_call() -> None:
    made = maker(Options(limits=Limits(tokens=2000)), llm="scripted:At noon.", prices={"scripted": {"prompt": 1.0}})
    llm = made.get("llm")
    assert isinstance(llm, Metered)
    text, usage = asyncio.run(text_of(llm.stream(ASK, max_tokens=100)))
    assert text == "At noon." and usage.prompt_tokens > 0
    assert made.meter.total.completion_tokens == usage.completion_tokens
    with pytest.raises(OverLimit, match="token"):
        asyncio.run(text_of(llm.stream(ASK, max_tokens=100_000)))


def test_calls_of_models_can_be_switched_off() -> None:
    assert maker(llm="scripted:Yes.", model_calls=False).get("llm")
    with pytest.raises(BadInput, match="switched off"):
        maker(llm="http://127.0.0.1:9/v1#any", model_calls=False).get("llm")


def test_an_address_names_the_engine_that_speaks_to_it() -> None:
    llm = maker(llm="http://localhost:8000/v1#tiny").get("llm")
    assert llm.model == "tiny"


def test_a_key_is_in_no_settings_that_are_shown() -> None:
    settings = load_settings({"llm_key": "sk-secret", "proxy": "http://u:p@host:1"}, environment={})
    assert "sk-secret" not in repr(settings) and "u:p" not in repr(settings)


def test_with_a_model_its_engines_take_over_unless_others_are_named() -> None:
    specs = {kind: maker().named(kind) for kind in ("planner", "extractor", "generator")}
    assert specs == {"planner": "rules", "extractor": "sentences", "generator": "quotes"}
    made = maker(llm="scripted:Yes.", extractor="sentences")
    specs = {kind: made.named(kind) for kind in ("planner", "extractor", "generator")}
    assert specs == {"planner": "llm", "extractor": "sentences", "generator": "llm"}
    assert maker(Options(generator="quotes"), llm="scripted:Yes.").named("generator") == "quotes"


def test_a_model_that_may_not_be_called_takes_nothing_over() -> None:
    """A generator must not default to it. A model that the call names raises an error that calls are switched off."""
    assert maker(llm="openai:any", model_calls=False).named("generator") == "quotes"
    assert maker(llm="scripted:Yes.", model_calls=False).named("generator") == "llm"
    with pytest.raises(BadInput, match="switched off"):
        answer_engines(load_settings({"model_calls": False}, environment={}), Options(llm="openai:any"))


def test_pruning_makes_no_model() -> None:
    settings = load_settings({"llm": "openai:any"}, environment={})
    assert set(prune_engines(settings).names) == {"tokenizer", "scorer", "embedder"}
