"""Each configured engine is called with a timeout; a failure has a reason and does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.models.llm.asking import run

from prunus.answer.plan.llm import Engine as Planner
from prunus.cli.commands.doctor import Pinged
from prunus.cli.commands.doctor import ping_each as ping
from prunus.core.errors import BadInput, MissingExtra, OutsideFailed
from prunus.core.registry import make_engine
from prunus.core.types import Hit, Results, SearchRequest
from prunus.models.llm.scripted import Engine, ScriptedReply


class Reranker:
    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def rerank(self, query: str, texts: list[str]) -> Any:
        return self.scores


class Search:
    def __init__(self, results: Results | Exception) -> None:
        self.results = results

    async def search(self, request: SearchRequest) -> Results:
        if isinstance(self.results, Exception):
            raise self.results
        return self.results


def one(kind: str, make: Callable[[], Any], seconds: float = 10) -> Pinged:
    (found,) = run(ping({kind: ("spec", make)}, seconds))
    assert (found.kind, found.spec) == (kind, "spec")
    assert "\n" not in found.reason
    return found


def raising(error: Exception) -> Callable[[], Any]:
    def make() -> Any:
        raise error

    return make


@pytest.mark.parametrize(
    ("kind", "make", "said"),
    [
        ("tokenizer", lambda: make_engine("tokenizer", "smollm2"), "tokens for five words"),
        ("embedder", lambda: make_engine("embedder", "static"), "256 dimensions"),
        ("reranker", lambda: Reranker(np.array([2.5, -1.0])), "2.500 for a text that answers"),
        ("llm", lambda: Engine("OK", window=512), "7 tokens, window of 512 tokens"),
        (
            "llm",
            lambda: Engine(script=[ScriptedReply("OK", usage=False)], window=0 + 99),
            "answers, but reports no usage",
        ),
        ("search", lambda: Search(Results([Hit("u", "t")], ["no language filter"])), "1 hit; no language filter"),
    ],
)
def test_what_works_says_what_it_answered(kind: str, make: Callable[[], Any], said: str) -> None:
    found = one(kind, make)
    assert found.works
    assert said in found.reason
    assert 0 <= found.seconds < 10


@pytest.mark.parametrize(
    ("kind", "make", "said"),
    [
        ("llm", raising(MissingExtra("run: pip install 'prunus[transformers]'")), "pip install"),
        ("llm", raising(ValueError("two\nlines")), "ValueError: two lines"),
        ("llm", lambda: Engine(script=[ScriptedReply(error=OutsideFailed("HTTP 500: boom"))]), "HTTP 500: boom"),
        ("llm", lambda: Engine(script=[ScriptedReply("", usage=False)]), "the reply is empty"),
        ("reranker", lambda: Reranker(np.array([np.nan, 1.0])), "no two finite scores"),
        ("reranker", lambda: Reranker([1.0]), "no two finite scores"),
        ("search", lambda: Search(BadInput("search: no key")), "search: no key"),
        (
            "planner",
            lambda: Planner(Engine(script=[ScriptedReply(error=OutsideFailed("HTTP 500: boom"))])),
            "because the model gave no plan (HTTP 500: boom)",
        ),
    ],
)
def test_what_fails_says_why(kind: str, make: Callable[[], Any], said: str) -> None:
    found = one(kind, make)
    assert not found.works
    assert said in found.reason


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("llm", lambda: Engine(script=[ScriptedReply("OK", pause=60)])),
        ("embedder", lambda: time.sleep(5)),
    ],
    ids=["an engine that waits", "a constructor that hangs"],
)
def test_what_hangs_is_given_up(kind: str, make: Callable[[], Any]) -> None:
    started = time.monotonic()
    found = one(kind, make, seconds=0.2)
    assert found.reason == "no answer within 0.2 seconds"
    assert time.monotonic() - started < 4


def test_all_are_tried_at_the_same_time_and_one_that_fails_hides_no_other() -> None:
    found = run(
        ping(
            {
                "llm": ("openai:x", raising(BadInput("no key"))),
                "embedder": ("static", lambda: make_engine("embedder", "static")),
                "search": ("slow", lambda: Search(Results([]))),
            }
        )
    )
    assert [(one.kind, one.works) for one in found] == [("llm", False), ("embedder", True), ("search", True)]
