"""Replies are joined and bounded, and their JSON is checked against the schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from prunus.core.errors import OutsideFailed
from prunus.core.events import Event, TokenEvent, UsageEvent
from prunus.core.types import Message, Usage
from prunus.models.json_reply import read_json, repair, schema_of, text_of


class Part(Struct):
    """A part of a plan."""

    title: str


class Asked(Struct, forbid_unknown_fields=True):
    """A reply that is asked for."""

    search: bool
    queries: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=3)]
    range: Literal["day", "week", None] = None
    score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    parts: list[Part] = []


class Spoken:
    """A stream that remembers whether it was closed."""

    def __init__(self, *events: Event) -> None:
        self.events, self.closed = events, False

    async def stream(self) -> AsyncIterator[Event]:
        try:
            for event in self.events:
                yield event
        finally:
            self.closed = True


def test_a_stream_is_joined_with_its_usage() -> None:
    spoken = Spoken(TokenEvent("At "), TokenEvent("noon."), UsageEvent(Usage(7, 2)))
    assert asyncio.run(text_of(spoken.stream())) == ("At noon.", Usage(7, 2))
    assert spoken.closed


def test_an_endless_reply_is_given_up_and_its_stream_closed() -> None:
    spoken = Spoken(*[TokenEvent("x" * 100)] * 50)
    with pytest.raises(OutsideFailed, match="longer than 1,000"):
        asyncio.run(text_of(spoken.stream(), longest=1000))
    assert spoken.closed


@pytest.mark.parametrize(
    "text",
    [
        '{"search": true, "queries": ["tide"]}',
        '```json\n{"search": true, "queries": ["tide"]}\n```',
        'Sure {as you said}! Here it is: {"search": true, "queries": ["tide"]} Anything else?',
    ],
)
def test_json_is_found_among_words_and_fences(text: str) -> None:
    assert read_json(text, Asked) == (Asked(True, ["tide"]), "")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I cannot do that.", "holds no JSON"),
        ('{"search": true, "queries": ["ti', "not JSON"),
        ('{"search": true}', "missing required field `queries`"),
        ('{"search": 1, "queries": []}', r"Expected `bool`, got `int` - at `\$.search`"),
        ('{"search": true, "queries": [""]}', r"length >= 1 - at `\$.queries\[0\]`"),
        ('{"search": true, "queries": ["a","b","c","d"]}', "length <= 3"),
        ('{"search": true, "queries": [], "range": "year"}', "Invalid enum value"),
        ('{"search": true, "queries": [], "score": 1.5}', "<= 1"),
        ('{"search": true, "queries": [], "score": NaN}', "NaN is no JSON"),
        ('{"search": true, "queries": [], "rm": 1}', "unknown field `rm`"),
        ("{" * 300 + '{"a":' * 100_000, "not JSON"),
        ('{"a":' * 100_000, "too deeply"),
    ],
)
def test_a_faulty_reply_gives_a_fault_and_no_value(text: str, fault: str) -> None:
    value, said = read_json(text, Asked)
    assert value is None
    assert "\n" not in said
    pytest.importorskip("re").search(fault, said) or pytest.fail(said)


def test_the_schema_of_a_reply_has_no_references() -> None:
    schema = schema_of(Asked)
    assert "$ref" not in json.dumps(schema) and "asked for" not in json.dumps(schema)
    assert schema["properties"]["parts"]["items"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    assert schema["required"] == ["search", "queries"]
    assert schema["additionalProperties"] is False


def test_a_repair_shows_the_model_its_reply_and_the_fault() -> None:
    asked = repair([Message("user", "Plan.")], "no", "$.queries is missing")
    assert [one.role for one in asked] == ["user", "assistant", "user"]
    assert asked[1].content == "no"
    assert "$.queries is missing" in asked[2].content


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.text(st.characters(exclude_characters="{")))
def test_any_object_is_read_back_whatever_stands_around_it(value: dict[str, Any], around: str) -> None:
    assert read_json(around + json.dumps(value) + around, dict) == (value, "")


@given(
    st.text() | st.dictionaries(st.text() | st.just("search"), VALUES).map(json.dumps), st.sampled_from([dict, Asked])
)
def test_no_text_makes_reading_raise(text: str, kind: type) -> None:
    value, fault = read_json(text, kind)
    assert (value is None) is bool(fault)
    assert "\n" not in fault
