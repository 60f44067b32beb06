"""What a language model said: its stream joined into a text, its JSON read and checked.

A reply is never trusted: it is bounded in size, and JSON counts only after it was checked against
the schema that was asked for. Who asks for JSON asks once more with :func:`repair` when it is
faulty; a second fault is a failure of that stage.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from .errors import BadInput, OutsideFailed
from .events import Event, TokenEvent, UsageEvent
from .types import Message, Usage

LONGEST: Final = 4_000_000
"""Code points of a reply that are read; no answer is longer."""

_TRIES: Final = 16
"""Brackets in a reply that are tried as the beginning of its JSON; a brace in a sentence is passed over."""

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_CHECKED: Final = frozenset(
    "type enum const properties required additionalProperties items minItems maxItems minLength maxLength minimum "
    "maximum anyOf".split()
)
_SAID: Final = frozenset("$schema title description default examples".split())
"""Keywords that say something to a reader, and ask nothing of a value."""


async def text_of(stream: AsyncIterator[Event], longest: int = LONGEST) -> tuple[str, Usage]:
    """Join a model's stream into (text, usage), and close it whatever happens.

    :param longest: code points after which the stream is given up.
    :raises OutsideFailed: the reply is longer.
    """
    pieces: list[str] = []
    size, usage = 0, Usage()
    async with aclosing(cast(Any, stream)) as events:
        async for event in events:
            if isinstance(event, TokenEvent):
                size += len(event.text)
                if size > longest:
                    raise OutsideFailed(f"the model's reply is longer than {longest:,} code points; it was given up")
                pieces.append(event.text)
            elif isinstance(event, UsageEvent):
                usage = event.usage
    return "".join(pieces), usage


def read_json(text: str, schema: Mapping[str, Any]) -> tuple[Any, str]:
    """Read the JSON in a reply and check it; return (value, fault), where '' is no fault.

    Words and code fences around the value are passed over, as small models write them.
    """
    opening = {"object": "{", "array": "["}.get(str(schema.get("type")), "")
    start = text.find(opening) if opening else len(text) - len(text.lstrip())
    fault = "the reply holds no JSON"
    for _ in range(_TRIES):
        if start < 0:
            return None, fault
        try:
            value, _end = _DECODER.raw_decode(text, start)
            break
        except ValueError as error:
            fault = f"the reply is not JSON ({error})"
        except RecursionError:
            fault = "the reply is JSON nested too deeply"
        start = text.find(opening, start + 1) if opening else -1
    else:
        return None, fault
    fault = fault_of(value, schema)
    return (None, fault) if fault else (value, "")


def repair(messages: Sequence[Message], reply: str, fault: str) -> list[Message]:
    """Return a conversation that asks once more for JSON, with the faulty reply and what is wrong with it."""
    said = f"Your reply cannot be used: {fault}. Write the JSON again, whole, and nothing else."
    return [*messages, Message("assistant", reply[:20_000]), Message("user", said)]


def fault_of(value: Any, schema: Mapping[str, Any], place: str = "$") -> str:
    """Return what is wrong with a value by a JSON schema, in one line; '' when it keeps it.

    Known keywords: type, enum, const, properties, required, additionalProperties, items, minItems,
    maxItems, minLength, maxLength, minimum, maximum, anyOf. See :func:`check_schema` for the others.
    """
    if "anyOf" in schema and not any(not fault_of(value, one, place) for one in schema["anyOf"]):
        return f"{place} is none of what it may be"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{place} is not of type {' or '.join(kinds)}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        return f"{place} is not one of {json.dumps(schema['enum'], ensure_ascii=False)[:200]}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{place} is not {json.dumps(schema['const'], ensure_ascii=False)[:200]}"
    if isinstance(value, dict):
        return _fault_of_object(value, schema, place)
    if isinstance(value, list):
        fault = _fault_of_size(len(value), schema, place, "Items", "items")
        if fault or "items" not in schema:
            return fault
        return next(filter(None, (fault_of(one, schema["items"], f"{place}[{i}]") for i, one in enumerate(value))), "")
    if isinstance(value, str):
        return _fault_of_size(len(value), schema, place, "Length", "characters")
    if _is(value, "number"):
        if value < schema.get("minimum", -math.inf):
            return f"{place} is under {schema['minimum']}"
        if value > schema.get("maximum", math.inf):
            return f"{place} is over {schema['maximum']}"
    return ""


def check_schema(schema: Mapping[str, Any], place: str = "$") -> None:
    """Refuse a schema with a keyword that :func:`fault_of` does not hold a value to.

    :raises BadInput: the message names the keyword and its place.
    """
    if not isinstance(schema, Mapping):
        raise BadInput(f"JSON schema at {place}: not an object", subject=place)
    for keyword in schema:
        if keyword not in _CHECKED | _SAID:
            raise BadInput(
                f"JSON schema at {place}: the keyword {keyword!r} is not checked; use {', '.join(sorted(_CHECKED))}",
                subject=str(keyword),
            )
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind not in _TYPES:
            raise BadInput(f"JSON schema at {place}: no such type: {kind!r}", subject=str(kind))
    for name, inner in schema.get("properties", {}).items():
        check_schema(inner, f"{place}.{name}")
    for number, inner in enumerate(schema.get("anyOf", [])):
        check_schema(inner, f"{place} anyOf {number}")
    for keyword in ("items", "additionalProperties"):
        if not isinstance(schema.get(keyword, True), bool):
            check_schema(schema[keyword], f"{place}[]" if keyword == "items" else f"{place}.*")


def _fault_of_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> str:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place}.{name} is missing"
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in known:
            fault = fault_of(inner, known[name], f"{place}.{name}")
        elif others is False:
            fault = f"{place} has {name[:80]!r}, which was not asked for"
        else:
            fault = "" if others is True else fault_of(inner, others, f"{place}.{name}")
        if fault:
            return fault
    return ""


def _fault_of_size(size: int, schema: Mapping[str, Any], place: str, suffix: str, unit: str) -> str:
    least, most = schema.get(f"min{suffix}", 0), schema.get(f"max{suffix}", math.inf)
    if size < least:
        return f"{place} has {size} {unit}, fewer than {least}"
    return f"{place} has {size} {unit}, more than {most}" if size > most else ""


def _is(value: Any, kind: str) -> bool:
    """Tell whether a value is of a JSON type; True is no number, and 2.0 is an integer as in JSON."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(value: Any, other: Any) -> bool:
    """Compare as JSON does: True is not 1."""
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
