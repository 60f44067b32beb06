"""A reply is joined, bounded, and its JSON counts only when it keeps the schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.errors import BadInput, OutsideFailed
from prunus.events import Event, TokenEvent, UsageEvent
from prunus.replies import check_schema, fault_of, read_json, repair, text_of
from prunus.types import Message, Usage

PLAN = {
    "type": "object",
    "properties": {
        "search": {"type": "boolean"},
        "queries": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3},
        "range": {"enum": ["day", "week", None]},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["search", "queries"],
    "additionalProperties": False,
}


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
    assert read_json(text, PLAN) == ({"search": True, "queries": ["tide"]}, "")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I cannot do that.", "holds no JSON"),
        ('{"search": true, "queries": ["ti', "not JSON"),
        ('{"search": true}', r"\$.queries is missing"),
        ('{"search": 1, "queries": []}', r"\$.search is not of type boolean"),
        ('{"search": true, "queries": [""]}', r"\$.queries\[0\] has 0 characters, fewer than 1"),
        ('{"search": true, "queries": ["a","b","c","d"]}', "more than 3"),
        ('{"search": true, "queries": [], "range": "year"}', "is not one of"),
        ('{"search": true, "queries": [], "score": 1.5}', "is over 1"),
        ('{"search": true, "queries": [], "score": NaN}', "NaN is no JSON"),
        ('{"search": true, "queries": [], "rm": 1}', "not asked for"),
        ("{" * 300 + '{"a":' * 100_000, "not JSON"),
        ('{"a":' * 100_000, "too deeply"),
    ],
)
def test_a_faulty_reply_gives_a_fault_and_no_value(text: str, fault: str) -> None:
    value, said = read_json(text, PLAN)
    assert value is None
    assert "\n" not in said
    pytest.importorskip("re").search(fault, said) or pytest.fail(said)


def test_true_is_no_number_and_a_whole_float_is_an_integer() -> None:
    assert fault_of(True, {"type": "integer"})
    assert fault_of(1, {"const": True})
    assert fault_of(2.0, {"type": "integer"}) == ""
    assert fault_of(2.5, {"type": "integer"})
    assert fault_of("x", {"anyOf": [{"type": "integer"}, {"type": "null"}]})
    assert fault_of(None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}) == ""
    assert fault_of({"a": 1}, {"additionalProperties": {"type": "string"}})


def test_a_schema_that_would_not_be_checked_is_refused() -> None:
    check_schema(PLAN)
    for schema in ({"pattern": "a+"}, {"properties": {"a": {"$ref": "#"}}}, {"type": "date"}, {"items": {"oneOf": []}}):
        with pytest.raises(BadInput, match="JSON schema at"):
            check_schema(schema)


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
    assert read_json(around + json.dumps(value) + around, {"type": "object"}) == (value, "")


@given(st.text(), st.sampled_from(["object", "array", "string"]))
def test_no_text_makes_reading_raise(text: str, kind: str) -> None:
    value, fault = read_json(text, {"type": kind})
    assert fault or value is not None
