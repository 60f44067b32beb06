"""The scripted model keeps the contract of a language model, and fails only on demand."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.llm.asking import ASK, collect, run

from prunus.core.errors import BadBudget, BadInput, OutsideFailed, one_line
from prunus.core.registry import make_engine
from prunus.core.types import Message, Usage
from prunus.models.llm._shared import CallOptions, Stops
from prunus.models.llm.scripted import Engine, ScriptedReply


def test_replies_come_in_order_word_by_word_with_their_usage() -> None:
    engine = Engine(script=["At noon.", "In Paris, of course."])
    assert run(collect(engine)) == (["At", " noon."], Usage(10, 2))
    assert run(collect(engine))[0] == ["In", " Paris,", " of", " course."]
    assert [call.messages for call in engine.calls] == [tuple(ASK), tuple(ASK)]


def test_a_call_more_than_is_scripted_fails() -> None:
    engine = Engine(script=["one"])
    run(collect(engine))
    with pytest.raises(BadInput, match="call 2 has no reply; 1 are scripted"):
        run(collect(engine))


def test_a_function_writes_the_reply_from_what_was_asked() -> None:
    engine = Engine(script=lambda messages, asked: f"{messages[-1].content} {asked.max_tokens}")
    assert "".join(run(collect(engine, max_tokens=7))[0]) == "What is the capital of France? 7"


def test_a_spec_names_what_is_said() -> None:
    assert "".join(run(collect(make_engine("llm", "scripted:Yes: always.")))[0]) == "Yes: always."


def test_max_tokens_and_stop_strings_end_the_reply() -> None:
    engine = Engine("one two three four")
    assert run(collect(engine, max_tokens=2)) == (["one", " two"], Usage(10, 2))
    assert "".join(run(collect(engine, stop="three"))[0]) == "one two "
    assert "".join(run(collect(engine, stop=["o t", "wo"]))[0]) == "one t"


def test_it_misbehaves_on_demand() -> None:
    pieces: list[str] = []

    async def read(engine: Engine) -> None:
        async for event in engine.stream(ASK):
            pieces.append(getattr(event, "text", ""))

    with pytest.raises(OutsideFailed, match="broke off after 1 words"):
        run(read(Engine(script=[ScriptedReply("one two", cut_after=1)])))
    assert pieces == ["one"]
    with pytest.raises(OutsideFailed, match="down"):
        run(read(Engine(script=[ScriptedReply(error=OutsideFailed("down"))])))
    assert run(collect(Engine(script=[ScriptedReply("one", usage=False)])))[1] == Usage()


def test_a_slow_reply_can_be_cancelled() -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.05):
            await collect(Engine(script=[ScriptedReply("one two", pause=60)]))

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        run(impatient())
    assert time.monotonic() - started < 5


def test_a_prompt_over_the_window_is_refused() -> None:
    with pytest.raises(BadBudget, match="10 tokens of prompt are over the window of 10; lower the budget"):
        run(collect(Engine("yes", window=10)))
    assert run(collect(Engine("yes I do", window=12)))[0] == ["yes", " I"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_token": 3}, "no option 'max_token'"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"schema": "object"}, "no JSON schema"),
    ],
)
def test_a_wrong_option_is_one_clear_line(options: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        CallOptions.of(options)
    assert "\n" not in str(caught.value)


def test_messages_are_checked() -> None:
    with pytest.raises(BadInput, match="at least one message"):
        asyncio.run(anext(Engine().stream([])))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="role 'robot'"):
        asyncio.run(anext(Engine().stream([Message("robot", "x")])))  # type: ignore[arg-type]


# --- what the engines share ----------------------------------------------------------------------


@given(st.text("ab<|", max_size=60), st.lists(st.text("ab<|", min_size=1, max_size=4), min_size=1, max_size=3),
       st.lists(st.integers(1, 5), max_size=60))  # fmt: skip
def test_a_stop_string_is_found_however_the_text_is_cut(text: str, stops: list[str], cuts: list[int]) -> None:
    cutter, shown, place = Stops(stops), "", 0
    for size in cuts or [1]:
        shown += cutter.feed(text[place : place + size])
        place += size
    shown += cutter.feed(text[place:])
    shown += cutter.rest()
    first = min((text.find(stop) for stop in stops if stop in text), default=len(text))
    if cutter.done:
        assert not any(stop in shown for stop in stops)
        assert text.startswith(shown)
        assert any(text[len(shown) :].startswith(stop) for stop in stops)
    assert cutter.done == (first < len(text))
    assert len(shown) <= len(text)


def test_what_a_service_says_becomes_one_harmless_line() -> None:
    said = one_line("bad\nkey \x1b[31msk-123 \u202eabc" + "x" * 5000, ["sk-123", ""])
    assert said.startswith("bad key [31m[key] abcxxx")
    assert len(said) == 200
