"""The ``openai`` engine and a real tiny model behind a socket."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from tests.extras import need
from tests.models.llm.asking import ASK, collect, run
from tests.models.llm.server import PlainDoor, model, serving
from tests.models.llm.tiny import causal

from prunus.core.options import Limits
from prunus.models.llm.openai import Engine
from prunus.models.llm.transformers import Engine as Local
from prunus.models.meter import Meter, Metered, OverLimit, Price

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Local:
    for package in ("torch", "transformers"):
        need(package)
    return Local(str(causal(tmp_path_factory.mktemp("models") / "llama")), {"context_window": 4096})


def test_what_the_model_writes_arrives_word_for_word_with_its_usage(local: Local) -> None:
    async def check() -> None:
        async with serving(model(local)) as server:
            remote = Engine("llama", PlainDoor(), server.url)
            for options in ({}, {"temperature": 1.0, "seed": 4}, {"stop": ["a"]}):
                here, used = await collect(local, max_tokens=30, **options)
                there, reported = await collect(remote, max_tokens=30, **options)
                assert "".join(there) == "".join(here)
                assert (reported.prompt_tokens, reported.completion_tokens) == (
                    used.prompt_tokens,
                    used.completion_tokens,
                )

    run(check(), 60)


def test_a_client_that_goes_away_stops_the_model(local: Local) -> None:
    async def check() -> None:
        async with serving(model(local)) as server:
            stream: Any = Engine("llama", PlainDoor(), server.url).stream(ASK, max_tokens=3000, temperature=1.0)
            async with aclosing(stream) as events:
                async for _ in events:
                    break
            await asyncio.wait_for(server.left.wait(), 10)

    run(check(), 60)


def test_several_ask_at_the_same_time(local: Local) -> None:
    async def check() -> None:
        async with serving(model(local)) as server:
            remote = Engine("llama", PlainDoor(), server.url)
            found = await asyncio.gather(
                *[collect(remote, max_tokens=8, temperature=1.0, seed=n % 2) for n in range(6)]
            )
            assert len(server.requests) == 6
            assert {"".join(pieces) for pieces, _ in found[::2]} == {"".join(found[0][0])}

    run(check(), 60)


def test_a_run_is_metered(local: Local) -> None:
    async def check() -> None:
        async with serving(model(local)) as server:
            remote = Engine("llama", PlainDoor(), server.url, tokenizer=local)
            meter = Meter(Limits(tokens=400))
            _, usage = await collect(Metered(remote, meter, price=Price(1, 2)), max_tokens=20)
            assert usage.usd == pytest.approx((usage.prompt_tokens + 2 * usage.completion_tokens) / 1e6)
            with pytest.raises(OverLimit):
                await collect(Metered(remote, meter), max_tokens=400)
            assert len(server.requests) == 1

    run(check(), 60)
