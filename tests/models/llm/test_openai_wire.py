"""The ``openai`` engine against a server over a socket: every response gives a reply or one clear error."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from tests.models.llm.asking import ASK, collect, run
from tests.models.llm.server import (
    USAGE,
    Behaviour,
    PlainDoor,
    Request,
    Server,
    Wire,
    answer,
    chunk,
    events,
    fails,
    hang,
    serving,
    speak,
    strict,
)

from prunus.core.errors import BadBudget, BadInput, OutsideFailed, PrunusError
from prunus.core.types import Message, Usage
from prunus.models.json_reply import read_json, text_of
from prunus.models.llm.openai import Engine

KEY = "sk-very-secret-0123456789"
FAST = {"connect": 5, "first": 5, "gap": 5, "total": 20, "retries": 3, "backoff": 0.01}


def engine(server: Server, model: str = "tiny", key: str = KEY, **options: Any) -> Engine:
    return Engine(model, PlainDoor(), server.url, key, options={**FAST, **options})


async def ask(*behaviours: Behaviour, options: dict[str, Any] | None = None, **asked: Any) -> tuple[str, Usage, Server]:
    """Serve these behaviours and return (text, usage, server)."""
    async with serving(*behaviours) as server:
        pieces, usage = await collect(engine(server, **(options or {})), **asked)
        return "".join(pieces), usage, server


def failure(*behaviours: Behaviour, kind: type[PrunusError] = OutsideFailed, **options: Any) -> str:
    """Return the one line that a misbehaving server leads to."""

    async def fail() -> str:
        async with serving(*behaviours) as server:
            with pytest.raises(kind) as caught:
                await collect(engine(server, **options))
            shown = "".join(traceback.format_exception(caught.value))
            assert KEY not in shown
            return str(caught.value)

    said = run(fail())
    assert "\n" not in said
    assert len(said) < 500
    return str(said)


# --- a good server -------------------------------------------------------------------------------


def test_an_answer_streams_word_by_word_with_its_usage() -> None:
    async def check() -> None:
        async with serving(speak("In", " Paris", ".")) as server:
            pieces, usage = await collect(engine(server), max_tokens=64, seed=5, stop=["\n\n"])
            assert pieces == ["In", " Paris", "."]
            assert (usage.prompt_tokens, usage.completion_tokens, usage.usd) == (19, 2, 0.0)
            assert 0 < usage.seconds["llm"] < 20
            sent = server.requests[0]
            assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
            assert sent.headers["authorization"] == f"Bearer {KEY}"
            assert sent.body == {
                "model": "tiny",
                "messages": [{"role": one.role, "content": one.content} for one in ASK],
                "stream": True,
                "stream_options": {"include_usage": True},
                "max_tokens": 64,
                "temperature": 0.0,
                "seed": 5,
                "stop": ["\n\n"],
            }

    run(check())


def test_the_first_word_comes_before_the_last_is_said() -> None:
    async def check() -> None:
        async with serving(speak("one", " two", pause=0.4)) as server:
            started, arrived = time.monotonic(), []
            async for event in engine(server).stream(ASK):
                arrived.append((getattr(event, "text", ""), time.monotonic() - started))
            first, second = [when for text, when in arrived if text]
            assert second - first > 0.2

    run(check())


def test_every_byte_goes_through_the_door_and_every_client_is_closed() -> None:
    async def check() -> None:
        async with serving(speak("yes")) as server:
            door = PlainDoor()
            model = Engine("tiny", door, server.url, KEY, options=FAST)
            await collect(model)
            await collect(model)
            assert door.endpoints == [server.url, server.url]
            assert all(client.is_closed for client in door.clients)

    run(check())


def test_nothing_of_this_machine_leaves_with_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "from-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-tenant: from-the-environment\nAuthorization: from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://from-the-environment.invalid")
    _, _, server = run(ask(speak("yes")))
    headers = server.requests[0].headers
    assert "from-the-environment" not in json.dumps(headers)
    assert not [name for name in headers if "stainless" in name]
    assert headers["user-agent"] == "prunus"


def test_without_a_key_none_is_sent() -> None:
    async def check() -> None:
        async with serving(speak("yes")) as server:
            await collect(engine(server, key=""))
            assert "authorization" not in server.requests[0].headers

    run(check())


def test_a_server_that_reports_no_usage_gives_zeros() -> None:
    text, usage, _ = run(ask(speak("yes", usage=False)))
    assert (text, usage.prompt_tokens, usage.completion_tokens) == ("yes", 0, 0)


def test_a_server_that_does_not_stream_is_read_whole() -> None:
    whole = {
        "choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
        "usage": USAGE["usage"],
    }
    text, usage, _ = run(ask(answer(200, whole)))
    assert (text, usage.completion_tokens) == ("yes", 2)


def test_comments_line_ends_and_cuts_of_bytes_do_not_matter() -> None:
    async def behave(request: Request, wire: Wire) -> None:
        await wire.head()
        data = (
            ": still reading\r\n\r\nevent: message\r\ndata:"
            + json.dumps(chunk("é🙂"), ensure_ascii=False)
            + '\r\n\r\nid: 7\r\ndata: {"choices": [{"delta": \r\ndata:  {"content": "!"}, "finish_reason": "stop"}]}\n\n'
        )
        for byte in data.encode():
            await wire.send(bytes([byte]))
        await wire.end()

    assert run(ask(behave))[0] == "é🙂!"  # and no [DONE]: a finished answer is whole


def test_half_a_character_becomes_a_sign_that_can_be_written() -> None:
    text, _, _ = run(ask(events('{"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}')))
    assert text == "a\ufffd"
    text.encode()


def test_a_stop_string_ends_the_answer_even_where_the_server_does_not_know_it() -> None:
    async def check() -> None:
        async with serving(speak("one t", "wo thr", "ee", pause=0.05)) as server:
            pieces, _ = await collect(engine(server), stop=["two"])
            assert "".join(pieces) == "one "
            await asyncio.wait_for(server.left.wait(), 5)

    run(check())


# --- cancellation --------------------------------------------------------------------------------


def test_a_stream_that_is_closed_ends_at_the_server() -> None:
    async def check() -> None:
        async with serving(speak(*["word "] * 1000, pause=0.02)) as server:
            door = PlainDoor()
            stream: Any = Engine("tiny", door, server.url, options=FAST).stream(ASK)
            async with aclosing(stream) as events_of:
                async for _ in events_of:
                    break
            assert door.clients[0].is_closed
            await asyncio.wait_for(server.left.wait(), 5)

    run(check())


@pytest.mark.parametrize("behaviour", [speak(*["word "] * 1000, pause=0.02), hang], ids=["streaming", "silent"])
def test_a_task_that_is_cancelled_ends_at_the_server(behaviour: Behaviour) -> None:
    async def check() -> None:
        async with serving(behaviour) as server:
            task = asyncio.ensure_future(text_of(engine(server).stream(ASK)))
            while not server.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.left.wait(), 5)

    run(check())


# --- a server that is busy or broken -------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_server_is_asked_again(status: int) -> None:
    text, _, server = run(ask(fails(status, "busy"), fails(status, "busy"), speak("yes")))
    assert text == "yes"
    assert len(server.requests) == 3


def test_retry_after_is_waited_for() -> None:
    started = time.monotonic()
    text, _, _ = run(ask(fails(429, "slow down", retry_after="0.3"), speak("yes")))
    assert text == "yes"
    assert time.monotonic() - started > 0.3
    assert run(ask(fails(429, "slow down", retry_after_ms="1"), speak("yes")))[0] == "yes"


def test_a_server_that_asks_for_more_patience_than_there_is_fails_at_once() -> None:
    started = time.monotonic()
    said = failure(fails(429, "slow down", retry_after="3600"))
    assert "HTTP 429, and asks to wait 3600 s: slow down" in said
    assert time.monotonic() - started < 5


def test_retries_end() -> None:
    async def check() -> None:
        async with serving(fails(500, "boom")) as server:
            with pytest.raises(OutsideFailed, match="HTTP 500: boom"):
                await collect(engine(server, retries=2))
            assert len(server.requests) == 3

    run(check())


def test_a_used_up_quota_is_not_asked_again() -> None:
    async def check() -> None:
        gone = answer(429, {"error": {"message": "insufficient_quota: pay", "code": "insufficient_quota"}})
        async with serving(gone) as server:
            with pytest.raises(OutsideFailed, match="quota is used up"):
                await collect(engine(server))
            assert len(server.requests) == 1

    run(check())


def test_a_wrong_key_names_the_setting_and_never_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = failure(fails(401, f"Incorrect API key provided: {KEY}"))
    assert "refuses the key (401); check llm_key (PRUNUS_LLM_KEY)" in said
    assert KEY not in failure(fails(400, f"what is {KEY}?"))
    assert "what is [key]?" in failure(fails(400, f"what is {KEY}?"))
    assert KEY not in caplog.text
    assert KEY not in repr(Engine("tiny", PlainDoor(), "http://h/v1", KEY))
    assert KEY not in repr(vars(Engine("tiny", PlainDoor(), "http://h/v1", KEY)))


def test_an_unknown_model_and_a_server_elsewhere_are_named() -> None:
    assert "no such model or path (404); check both: tiny is not here" in failure(fails(404, "tiny is not here"))
    said = failure(answer(307, {}, location="http://127.0.0.1:1/"))
    assert "redirects (307)" in said


def test_a_prompt_that_is_too_long_for_the_server_is_a_budget_to_lower() -> None:
    words = "This model's maximum context length is 8192 tokens, however you requested 9000."
    assert "lower the budget" in failure(fails(400, words), kind=BadBudget)


def test_errors_come_in_many_shapes() -> None:
    for body in ({"error": "it broke"}, {"detail": "it broke"}, {"message": "it broke"}, {"detail": [{"msg": "it broke"}]},
                 {"error": {"message": {"detail": "it broke"}}}, b"it broke"):  # fmt: skip
        said = failure(answer(418, body))
        assert "HTTP 418" in said
        assert "it broke" in said
    assert "HTTP 418" in failure(answer(418, b"\xff\x1b[31m" + b"x" * 100_000))


def test_an_endless_error_is_not_read_to_its_end() -> None:
    sent = []

    async def behave(request: Request, wire: Wire) -> None:
        await wire.head(400, "text/plain")
        for _ in range(100_000):
            await wire.send(b"no " * 1000)
            sent.append(3000)

    assert "HTTP 400: no no" in failure(behave)
    assert sum(sent) < 50_000_000


# --- time-outs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "options"),
    [
        (hang, {"first": 0.2}),
        (hang, {"total": 0.2}),
        (speak("one", " two", pause=1.5), {"gap": 0.2, "first": 5}),
        (speak(*["on "] * 500, pause=0.05), {"total": 0.5}),
    ],
    ids=["no first word", "no answer at all", "silent between words", "endless"],
)
def test_no_server_is_waited_for_beyond_its_time(behaviour: Behaviour, options: dict[str, float]) -> None:
    started = time.monotonic()
    assert "no answer within the time-out" in failure(behaviour, retries=0, **options)
    assert time.monotonic() - started < 4


def test_comments_do_not_keep_a_silent_server_alive() -> None:
    async def behave(request: Request, wire: Wire) -> None:
        await wire.head()
        while True:
            await wire.send(": still here\n\n")
            await asyncio.sleep(0.02)

    assert "no answer within the time-out" in failure(behave, first=0.3, retries=0)


def test_a_silent_server_is_asked_again_while_nothing_has_come() -> None:
    text, _, server = run(ask(hang, speak("yes"), options={"first": 0.3}))
    assert text == "yes"
    assert len(server.requests) == 2


def test_a_server_that_is_down_is_named() -> None:
    async def check() -> OutsideFailed:
        async with serving(hang) as server:
            model = engine(server)
        with pytest.raises(OutsideFailed) as caught:
            await collect(model)
        return caught.value

    error = run(check())
    assert str(error).startswith("tiny at 127.0.0.1:")
    assert "connect" in str(error)
    assert not error.sent


def test_the_stages_of_an_answer_share_one_wait_for_a_server_that_is_down() -> None:
    async def check() -> float:
        async with serving(hang) as server:
            model = engine(server, connect=0.4, backoff=0.15)
        started = time.monotonic()
        for _ in range(3):  # pauses of 0.15 and 0.3 s for each would be 1.35 s
            with pytest.raises(OutsideFailed):
                await collect(model)
        return time.monotonic() - started

    assert 0.15 <= run(check()) < 1.2


def test_a_server_that_comes_back_is_asked_again() -> None:
    async def check() -> str:
        async with serving(speak("yes")) as server:
            model = engine(server, connect=0.2, backoff=0.1)
            model._unreached = (time.monotonic() - 0.5, OutsideFailed("gone", sent=False))
            pieces, _ = await collect(model)
        return "".join(pieces)

    assert run(check()) == "yes"


def test_a_prompt_counts_as_sent_where_any_try_reached_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = [OutsideFailed("HTTP 503", may_pass=True), OutsideFailed("down", may_pass=True, sent=False)]

    async def begin(*_: Any) -> None:
        raise tries.pop(0)

    async def check() -> bool:
        async with serving(hang) as server:
            model = engine(server, retries=1)
            monkeypatch.setattr(model, "_begin", begin)
            with pytest.raises(OutsideFailed, match="down") as caught:
                await collect(model)
            return caught.value.sent

    assert run(check())


# --- answers that are no answers -----------------------------------------------------------------


def test_a_cut_stream_is_a_failure_and_not_asked_again() -> None:
    async def check() -> None:
        async with serving(events(chunk("In"), chunk(" Pa"), end=False)) as server:
            with pytest.raises(OutsideFailed, match="broke off"):
                await collect(engine(server))
            assert len(server.requests) == 1

    run(check())
    assert "broke off" in failure(events(chunk("In"), chunk(" Pa")))
    assert "broke off" in failure(events(chunk("In")), retries=0)


def test_a_connection_that_is_cut_before_any_word_is_tried_again() -> None:
    text, _, server = run(ask(events(end=False), speak("yes")))
    assert text == "yes"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "data",
    ["{", "[]", "null", "7", '{"choices": 7}', '{"choices": [7]}', '{"choices": [{"delta": {"content": [1]}}]}',
     '{"choices": [{"delta": 7}]}', "\xff", '{"a":' * 50_000],
)  # fmt: skip
def test_a_malformed_chunk_is_a_failure(data: str) -> None:
    assert "a malformed piece" in failure(events(chunk("In"), data, "[DONE]"))


def test_an_error_within_the_stream_is_shown() -> None:
    said = failure(events(chunk("In"), {"error": {"message": "out of memory\n  at line 3"}}))
    assert "out of memory at line 3" in said
    assert "your key [key]" in failure(events({"error": f"your key {KEY}"}))


def test_an_empty_answer_is_a_failure() -> None:
    assert "an empty answer" in failure(answer(200, b"", "text/event-stream"), retries=0)
    assert "malformed" in failure(answer(200, b"{", "application/json"))


def test_a_withheld_answer_says_so() -> None:
    assert "content filter" in failure(events(chunk("I"), chunk(finish="content_filter"), "[DONE]"))
    assert "content filter" in failure(events('{"choices": [{"delta": {"refusal": "no"}}]}', "[DONE]"))


def test_a_huge_answer_is_given_up() -> None:
    async def lines(request: Request, wire: Wire) -> None:
        await wire.head()
        while True:
            await wire.event(chunk("x" * 10_000))

    async def one_line(request: Request, wire: Wire) -> None:
        await wire.head()
        await wire.send("data: ")
        while True:
            await wire.send(b"x" * 100_000)

    assert "far longer than was asked for" in failure(lines)
    assert "over the limit of bytes" in failure(one_line, max_bytes=1_000_000)
    assert "over 8 MiB" in failure(one_line)


def test_a_compressed_answer_is_refused_because_it_could_be_a_bomb() -> None:
    assert "compressed" in failure(answer(200, b"\x1f\x8b", content_encoding="gzip"))
    assert "refuses the key (401)" in failure(answer(401, b"\x1f\x8b", content_encoding="gzip"))


@pytest.mark.parametrize(
    "usage", ["many", {"prompt_tokens": -5, "completion_tokens": "9"}, {"prompt_tokens": True}, []]
)
def test_nonsense_about_usage_counts_as_none(usage: Any) -> None:
    _, found, _ = run(ask(events(chunk("yes", "stop", usage=usage), "[DONE]")))
    assert (found.prompt_tokens, found.completion_tokens) == (0, 0)


# --- what servers refuse -------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_json_is_asked_for_by_schema() -> None:
    text, _, server = run(ask(speak('{"city":', ' "Paris"}'), schema=SCHEMA))
    assert read_json(text, dict) == ({"city": "Paris"}, "")
    assert server.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }
    assert server.requests[0].body["messages"][-1]["content"] == ASK[-1].content


def test_a_schema_that_is_not_closed_is_not_called_strict() -> None:
    _, _, server = run(ask(speak("{}"), schema={"type": "object", "properties": {"city": {"type": "string"}}}))
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is False


def test_without_schemas_any_json_is_asked_for_and_the_schema_stands_in_the_prompt() -> None:
    text, _, server = run(ask(strict(["json_schema"], speak('{"city": "Paris"}')), schema=SCHEMA))
    assert read_json(text, dict)[0] == {"city": "Paris"}
    sent = server.requests[-1].body
    assert sent["response_format"] == {"type": "json_object"}
    assert json.dumps(SCHEMA) in sent["messages"][-1]["content"]


def test_without_any_json_mode_words_must_do() -> None:
    good = speak('Here you are: {"city": "Paris"}')
    text, _, server = run(ask(strict(["response_format"], good), schema=SCHEMA))
    assert read_json(text, dict)[0] == {"city": "Paris"}
    assert [("response_format" in one.body) for one in server.requests] == [True, True, False]
    assert json.dumps(SCHEMA) in server.requests[-1].body["messages"][-1]["content"]


def test_a_server_that_answers_500_to_a_schema_is_understood() -> None:
    words = "response_format type must be one of 'text' or 'json_object', but got: json_schema"
    text, _, server = run(ask(fails(500, words), speak("{}"), schema=SCHEMA))
    assert text == "{}"
    assert server.requests[1].body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("option", ["stream_options", "seed", "temperature"])
def test_an_option_that_is_refused_is_left_out_from_then_on(option: str) -> None:
    async def check() -> None:
        async with serving(strict([option], speak("yes"))) as server:
            model = engine(server)
            await collect(model, seed=1)
            await collect(model, seed=1)
            assert [(option in one.body) for one in server.requests] == [True, False, False]
            assert model.refused == {option}

    run(check())


def test_a_model_that_wants_another_name_for_max_tokens_gets_it() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    _, _, server = run(ask(fails(400, words), speak("yes"), max_tokens=9))
    assert server.requests[1].body["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[1].body


def test_a_server_that_refuses_everything_is_not_asked_for_ever() -> None:
    words = "stream_options max_completion_tokens response_format json_object 'seed' temperature 'stop'"

    async def check() -> None:
        async with serving(fails(400, words)) as server:
            with pytest.raises(OutsideFailed, match="HTTP 400"):
                await collect(engine(server), seed=1, stop="x", schema=SCHEMA)
            assert len(server.requests) == 8

    run(check())


# --- the context window --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        ([{"id": "tiny", "max_model_len": 4096}, {"id": "other", "max_model_len": 1}], 4096),
        ([{"id": "tiny", "context_length": 8192}], 8192),
        ([{"id": "tiny", "context_window": 131072}], 131072),
        ([{"id": "models/file.gguf", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}], 2048),
        ([{"id": "tiny"}], 0),
        ([{"id": "tiny", "max_model_len": "long"}], 0),
        ([], 0),
        ([7], 0),
        ("no list", 0),
    ],
)
def test_the_window_is_asked_for(listed: Any, window: int) -> None:
    async def check() -> None:
        async with serving(answer(200, {"data": listed})) as server:
            model = engine(server)
            assert await model.ask_window() == window == model.context_window
            assert server.requests[0].path == "/v1/models"

    run(check())


@pytest.mark.parametrize(
    ("props", "window"),
    [({"default_generation_settings": {"n_ctx": 4096}}, 4096), ({"n_ctx": 3}, 0), ([], 0), ("x", 0)],
)
def test_an_older_llamacpp_states_the_window_it_serves_elsewhere(props: Any, window: int) -> None:
    async def check() -> None:
        listed = {"data": [{"id": "models/file.gguf", "meta": {"n_ctx_train": 131072}}]}
        async with serving(answer(200, listed), answer(200, props)) as server:
            assert await engine(server).ask_window() == window
            assert [asked.path for asked in server.requests] == ["/v1/models", "/props"]

    run(check())


def test_a_server_without_a_list_of_models_says_so_in_one_line() -> None:
    async def check() -> None:
        async with serving(fails(404, "no such path")) as server:
            with pytest.raises(OutsideFailed, match="404"):
                await engine(server).ask_window()
            assert await engine(server, context_window=4096).ask_window() == 4096
            assert len(server.requests) == 1

    run(check())


def test_a_prompt_over_a_known_window_is_refused_before_anything_is_sent() -> None:
    class Words:
        def count(self, texts: list[str]) -> Any:
            return np.array([len(text.split()) for text in texts])

    async def check() -> None:
        async with serving(speak("yes")) as server:
            model = Engine("tiny", PlainDoor(), server.url, KEY, Words(), {**FAST, "context_window": 100})
            await collect(model)
            with pytest.raises(BadBudget, match="about 104 tokens is over the window of 100; lower the budget"):
                await collect(model, [Message("user", "word " * 100)])
            assert len(server.requests) == 1

    run(check())


# --- bad settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": ""}, "name a model"),
        ({"key": "two words"}, "holds characters that no key has"),
        ({"key": "new\nline"}, "holds characters that no key has"),
        ({"endpoint": "ftp://host/v1"}, "give it as https://host/v1"),
        ({"endpoint": "http://user:word@host/v1"}, "give it as https://host/v1"),
        ({"endpoint": "localhost:8000"}, "give it as https://host/v1"),
        ({"options": {"first": "soon"}}, "first: 'soon' is not a number over 0"),
        ({"options": {"total": 0}}, "total: 0 is not"),
        ({"options": {"gap": float("inf")}}, "gap"),
        ({"options": {"retries": 1.5}}, "retries: 1.5 is not a whole number"),
        ({"options": {"patience": 1}}, "no such option: patience"),
    ],
)
def test_a_wrong_setting_is_one_line_without_secrets(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        Engine(**{"model": "m", "door": PlainDoor(), **given})
    assert "\n" not in str(caught.value)
    assert "word" not in str(caught.value)


def test_the_hosted_service_needs_a_key_and_a_door() -> None:
    with pytest.raises(BadInput, match=r"needs a key; set llm_key \(PRUNUS_LLM_KEY\)"):
        run(collect(Engine("gpt-4o-mini", PlainDoor())))
    with pytest.raises(BadInput, match="egress door"):
        run(collect(Engine("m", endpoint="http://host/v1")))
    with pytest.raises(BadInput, match="no tokenizer was given"):
        Engine("m").count(["x"])


def test_what_the_door_refuses_is_said_in_its_own_words() -> None:
    class Shut(PlainDoor):
        def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
            raise BadInput("10.0.0.1 is an internal address")

    with pytest.raises(BadInput, match="internal address"):
        run(collect(Engine("m", Shut(), "http://10.0.0.1/v1")))
