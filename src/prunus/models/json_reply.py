"""What a language model said: its stream joined into a text, its JSON read and checked.

A reply is never trusted: it is bounded in size, and JSON counts only after it was checked against
the type that was asked for. Such a type is a :class:`msgspec.Struct`, which also gives the schema that
the model is sent. Who asks for JSON asks once more with :func:`repair` when it is faulty; a second
fault is a failure of that stage.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar, cast

import msgspec

from ..core.errors import OutsideFailed
from ..core.events import Event, TokenEvent, UsageEvent
from ..core.types import Message, Usage

LONGEST: Final = 4_000_000
"""Code points of a reply that are read; no answer is longer."""

_TRIES: Final = 16
"""Brackets in a reply that are tried as the beginning of its JSON; a brace in a sentence is passed over."""

_LONGEST_FAULT: Final = 300

Reply = TypeVar("Reply")


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


def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a type, without references: not every server that constrains replies follows them."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template="{name}")

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return [whole(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return whole({key: one for key, one in parts[part["$ref"]].items() if key not in ("title", "description")})
        return {key: whole(one) for key, one in part.items()}

    return dict(whole(root))


def read_json(text: str, kind: type[Reply]) -> tuple[Reply | None, str]:
    """Read the JSON object in a reply and check it; return (value, fault), where '' is no fault.

    Words and code fences around the object are passed over, as small models write them.
    """
    start, fault = text.find("{"), "the reply holds no JSON"
    for _ in range(_TRIES):
        if start < 0:
            break
        try:
            value, _end = _DECODER.raw_decode(text, start)
            return msgspec.convert(value, kind), ""
        except msgspec.ValidationError as error:
            return None, " ".join(str(error).split())[:_LONGEST_FAULT]
        except ValueError as error:
            fault = f"the reply is not JSON ({error})"
        except RecursionError:
            fault = "the reply is JSON nested too deeply"
        start = text.find("{", start + 1)
    return None, fault


def repair(messages: Sequence[Message], reply: str, fault: str) -> list[Message]:
    """Return a conversation that asks once more for JSON, with the faulty reply and what is wrong with it."""
    said = f"Your reply cannot be used: {fault}. Write the JSON again, whole, and nothing else."
    return [*messages, Message("assistant", reply[:20_000]), Message("user", said)]


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
