"""Every call is counted, and a call that could exceed a limit is refused."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.llm.asking import ASK, collect, run

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.options import Limits
from prunus.core.ports import LanguageModel
from prunus.core.types import Usage
from prunus.models.llm.scripted import Engine, ScriptedReply
from prunus.models.meter import FREE, EstimatedUsage, Meter, Metered, OverLimit, Price, add_usage, price_of, prices_from

PRICE = Price(prompt=1.0, completion=10.0)
PROMPT = 10 + 2 * 4
"""Tokens of ASK as they are estimated: its words, and four for each message."""


# --- prices --------------------------------------------------------------------------------------


def test_prices_are_read_from_configuration() -> None:
    prices = prices_from({"gpt-4o-mini": {"prompt": 0.15, "completion": 0.6}, "openai:big": {"prompt": 3}})
    assert prices == {"gpt-4o-mini": Price(0.15, 0.6), "openai:big": Price(3.0, 0.0)}
    assert prices["gpt-4o-mini"].usd(1_000_000, 500_000) == pytest.approx(0.45)


@pytest.mark.parametrize(
    "entry", [3, {}, {"input": 1}, {"prompt": "cheap"}, {"prompt": -1}, {"prompt": True}, {"completion": math.inf},
              {"completion": math.nan}]
)  # fmt: skip
def test_a_wrong_price_is_named(entry: Any) -> None:
    with pytest.raises(BadInput, match="prices: gpt"):
        prices_from({"gpt": entry})


def test_a_price_is_found_by_spec_then_by_model_and_a_local_model_is_free() -> None:
    prices = {"openai:mini": Price(1), "mini": Price(2)}

    class Remote(LanguageModel):
        model = "mini"

    assert price_of(prices, "openai:mini", Remote()) == Price(1)  # type: ignore[arg-type]
    assert price_of(prices, "http://h/v1#mini", Remote()) == Price(2)  # type: ignore[arg-type]
    assert price_of({}, "openai:mini", Remote()) is None  # type: ignore[arg-type]
    assert price_of({}, "scripted", Engine()) == FREE


# --- sums ----------------------------------------------------------------------------------------


def test_usage_adds_up_stage_by_stage_and_stays_marked_as_estimated() -> None:
    sure = Usage(10, 2, 0.5, {"llm": 1.0, "plan": 2.0})
    guess = EstimatedUsage(5, 1, 0.25, {"llm": 0.5}, 6)
    assert add_usage(sure, sure) == Usage(20, 4, 1.0, {"llm": 2.0, "plan": 4.0})
    assert add_usage(sure, guess) == EstimatedUsage(15, 3, 0.75, {"llm": 1.5, "plan": 2.0}, 6)
    assert add_usage(guess, guess) == EstimatedUsage(10, 2, 0.5, {"llm": 1.0}, 12)


def test_a_call_is_counted_in_tokens_money_and_seconds() -> None:
    meter = Meter()
    _, usage = run(collect(Metered(Engine("one two three"), meter, price=PRICE)))
    assert (usage.prompt_tokens, usage.completion_tokens) == (10, 3)
    assert usage.usd == pytest.approx(40e-6)
    assert 0 < usage.seconds["llm"] < 10
    assert not isinstance(usage, EstimatedUsage)
    assert meter.total == usage
    meter.add(Usage(usd=0.005, seconds={"search": 1.0}))
    assert meter.total.usd == pytest.approx(0.00504)


def test_what_the_server_does_not_report_is_counted_here_and_says_so() -> None:
    meter = Meter()
    _, usage = run(collect(Metered(Engine(script=[ScriptedReply("one two", usage=False)]), meter, price=PRICE)))
    assert isinstance(usage, EstimatedUsage)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated_tokens) == (PROMPT, 2, PROMPT + 2)
    assert usage.usd == pytest.approx((PROMPT + 20) * 1e-6)
    assert isinstance(meter.total, EstimatedUsage)


def test_a_call_that_breaks_off_has_cost_what_it_had_read_and_said() -> None:
    meter = Meter()
    with pytest.raises(OutsideFailed):
        run(collect(Metered(Engine(script=[ScriptedReply("one two three", cut_after=2)]), meter, price=PRICE)))
    assert (meter.total.prompt_tokens, meter.total.completion_tokens) == (PROMPT, 2)
    assert meter.tokens_left == math.inf


def test_a_call_that_was_never_sent_costs_nothing() -> None:
    meter = Meter(Limits(tokens=10_000))
    with pytest.raises(BadInput, match="no key"):
        run(collect(Metered(Engine(script=[ScriptedReply(error=BadInput("no key"))]), meter)))
    assert meter.total == Usage()
    assert meter.tokens_left == 10_000


def test_a_server_that_was_never_reached_is_not_paid() -> None:
    meter = Meter(Limits(tokens=10_000))
    with pytest.raises(OutsideFailed, match="no connection"):
        run(collect(Metered(Engine(script=[ScriptedReply(error=OutsideFailed("no connection", sent=False))]), meter)))
    assert meter.total == Usage() and meter.tokens_left == 10_000
    with pytest.raises(OutsideFailed, match="HTTP 500"):
        run(collect(Metered(Engine(script=[ScriptedReply(error=OutsideFailed("HTTP 500"))]), meter)))
    assert meter.total.prompt_tokens == PROMPT


# --- limits --------------------------------------------------------------------------------------


def test_a_call_that_could_go_over_the_tokens_is_not_made() -> None:
    engine = Engine("one two")
    metered = Metered(engine, Meter(Limits(tokens=50)))
    run(collect(metered, max_tokens=32))
    with pytest.raises(
        OverLimit, match=r"12 tokens are used, and this call may take 50: over the limit of 50"
    ) as caught:
        run(collect(metered, max_tokens=32))
    assert "raise --max-tokens" in str(caught.value)
    assert len(engine.calls) == 1
    assert metered.room(ASK) == 50 - 12 - PROMPT
    run(collect(metered, max_tokens=int(metered.room(ASK))))


def test_a_call_that_could_cost_too_much_is_not_made() -> None:
    engine = Engine("one")
    metered = Metered(engine, Meter(Limits(usd=0.001)), price=PRICE)
    with pytest.raises(OverLimit, match=r"this call may take 0\.010258: over the limit of 0\.001; raise --max-usd"):
        run(collect(metered))
    run(collect(metered, max_tokens=90))
    assert len(engine.calls) == 1


def test_money_cannot_be_limited_where_the_price_is_not_known() -> None:
    engine = Engine("one")
    with pytest.raises(BadInput, match=r"no price is known.*add it to \[prices\]"):
        run(collect(Metered(engine, Meter(Limits(usd=1)))))
    assert engine.calls == []
    assert run(collect(Metered(engine, Meter())))[1].usd == 0


def test_no_call_begins_when_the_seconds_are_used_up() -> None:
    now = [0.0]
    engine = Engine("one")
    metered = Metered(engine, Meter(Limits(seconds=5), clock=lambda: now[0]))
    run(collect(metered))
    now[0] = 5.0
    with pytest.raises(OverLimit, match="the limit of 5 seconds is reached"):
        run(collect(metered))
    assert len(engine.calls) == 1


def test_a_call_ends_when_the_seconds_are_used_up() -> None:
    meter = Meter(Limits(seconds=0.1))
    with pytest.raises(OverLimit, match=r"limit of 0\.1 seconds"):
        run(collect(Metered(Engine(script=[ScriptedReply("one two", pause=30)]), meter)))
    assert meter.total.prompt_tokens == PROMPT


def test_a_time_out_of_the_model_is_not_taken_for_the_limit() -> None:
    meter = Meter(Limits(seconds=60))
    with pytest.raises(TimeoutError, match="its own"):
        run(collect(Metered(Engine(script=[ScriptedReply(error=TimeoutError("its own"))]), meter)))


def test_an_answer_that_went_over_is_kept_and_the_next_call_refused() -> None:
    class Deaf(Engine):
        def stream(self, messages: Any, **options: Any) -> Any:
            return super().stream(messages, **{**options, "max_tokens": 1000})

    metered = Metered(Deaf("word " * 100), Meter(Limits(tokens=60)))
    assert len(run(collect(metered, max_tokens=10))[0]) == 101
    with pytest.raises(OverLimit, match="111 tokens are used"):
        run(collect(metered, max_tokens=1))


def test_calls_at_the_same_time_cannot_go_over_together() -> None:
    engine = Engine(script=lambda messages, asked: ScriptedReply("one", pause=0.05))
    metered = Metered(engine, Meter(Limits(tokens=100)))

    async def several() -> list[Any]:
        return await asyncio.gather(*[collect(metered, max_tokens=20) for _ in range(5)], return_exceptions=True)

    found = run(several())
    assert sum(isinstance(one, OverLimit) for one in found) == 3
    assert len(engine.calls) == 2


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), max_size=20), st.integers(1, 300))
def test_tokens_never_go_over_the_limit_and_nothing_stays_reserved(calls: list[tuple[int, int]], limit: int) -> None:
    meter = Meter(Limits(tokens=limit))
    for most, used in calls:
        try:
            meter.reserve(most, 0.0, "m")
        except OverLimit:
            continue
        meter.settle(most, 0.0, Usage(min(most, used), 0))
    assert meter.total.prompt_tokens <= limit
    assert meter.tokens_left == limit - meter.total.prompt_tokens


def test_a_metered_model_is_a_model() -> None:
    metered = Metered(Engine("one", window=77), Meter())
    assert (metered.name, metered.real, metered.context_window) == ("scripted", False, 77)
    assert metered.count(["a b"]).tolist() == [2]
