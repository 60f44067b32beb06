"""The contract of all language models, tested for every registered engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.models.llm.asking import ASK, collect, run
from tests.models.llm.server import PlainDoor, serving, speak
from tests.models.llm.tiny import causal

from prunus.core.errors import BadBudget, BadInput
from prunus.core.registry import engine_class, engine_names, make_engine
from prunus.core.types import Message
from prunus.models.llm.scripted import Engine as Scripted

FULL = {"transformers": ("torch", "transformers")}
"""What an engine needs beside the base installation."""

EVERY = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] if name in FULL else []) for name in engine_names("llm")],
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")

ODD = [
    "",
    " ",
    "\ud800",
    "\x00",
    "\u202e\u0301",
    "👩\u200d👩\u200d👧",
    "<|end|><|system|>",
    "潮汐站",
    "\r\n\u2028",
    "{{x}}",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contract")


@asynccontextmanager
async def made(name: str, folder: Path) -> AsyncIterator[Any]:
    """Make an engine with all that it asks for."""
    for package in FULL.get(name, ()):
        need(package)
    approx = make_engine("tokenizer", "approx")
    if name == "openai":
        async with serving(speak("In", " Paris.")) as server:
            options = {"context_window": 2000, "retries": 0}
            yield make_engine(
                "llm", "openai:tiny", door=PlainDoor(), endpoint=server.url, tokenizer=approx, options=options
            )
    elif name == "transformers":
        model = folder / "llama"
        yield make_engine("llm", f"transformers:{model if model.is_dir() else causal(model)}")
    elif name == "scripted":
        yield Scripted("In Paris.", window=2000)
    else:
        pytest.fail(f"say here how {name} is made")


@EVERY
def test_a_model_says_what_it_is(name: str, folder: Path) -> None:
    built = engine_class("llm", name)
    assert built.name == name
    assert isinstance(built.real, bool)

    async def check() -> None:
        async with made(name, folder) as engine:
            assert isinstance(engine.context_window, int)
            assert engine.context_window > 0
            assert isinstance(engine.model, str)

    run(check())


@EVERY
def test_a_reply_ends_with_its_usage_and_comes_again_the_same(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            first, usage = await collect(engine, max_tokens=12, seed=1)
            again, _ = await collect(engine, max_tokens=12, seed=1)
            assert "".join(first) == "".join(again)
            assert usage.prompt_tokens > 0
            assert 0 < usage.completion_tokens <= 12
            assert usage.usd == 0

    run(check(), 60)


@EVERY
def test_odd_messages_are_answered(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            for text in ODD:
                await collect(engine, [ASK[0], Message("user", text)], max_tokens=3)

    run(check(), 60)


@EVERY
def test_a_message_over_the_window_is_refused_in_one_line(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            with pytest.raises(BadBudget, match="lower the budget") as caught:
                await collect(engine, [Message("user", "tide tables " * 20_000)])
            assert "\n" not in str(caught.value)

    run(check(), 60)


@EVERY
def test_wrong_calls_are_refused_before_anything_is_asked(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            for messages, options in (
                ([], {}),
                (ASK, {"top_k": 3}),
                (ASK, {"max_tokens": 0}),
                (ASK, {"schema": "object"}),
            ):
                with pytest.raises(BadInput):
                    await anext(engine.stream(messages, **options))

    run(check())


@EVERY
def test_a_model_counts_a_batch_as_each_text_alone(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            texts = [*ODD, "word " * 5000]
            found = engine.count(texts)
            assert found[0] == 0
            assert np.issubdtype(found.dtype, np.integer)
            assert found.tolist() == [int(engine.count([text])[0]) for text in texts]
            assert engine.count([]).shape == (0,)

    run(check())


@EVERY
def test_several_calls_at_the_same_time_are_answered(name: str, folder: Path) -> None:
    async def check() -> None:
        async with made(name, folder) as engine:
            found = await asyncio.gather(*[collect(engine, max_tokens=5) for _ in range(5)])
            assert len({"".join(pieces) for pieces, _ in found}) == 1

    run(check(), 60)
