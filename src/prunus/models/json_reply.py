"""Read a language model's reply: join its stream into a text, and parse and check its JSON.

A reply is never trusted: its size is bounded, and its JSON is checked against the expected type, a
:class:`msgspec.Struct`. The same type gives the schema that is sent to the model. If the JSON is faulty,
the caller asks once more with :func:`repair`; a second fault is a failure of that stage.
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
"""Most code points of a reply; no real answer is longer."""

_TRIES: Final = 16
"""Most braces in a reply that are tried as the start of its JSON, because a brace may also be in a sentence."""

_LONGEST_FAULT: Final = 300

Reply = TypeVar("Reply")


async def text_of(stream: AsyncIterator[Event], longest: int = LONGEST) -> tuple[str, Usage]:
    """Join a model's stream into (text, usage), and close it in any case.

    :param longest: most code points of the text.
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
    """Return the JSON schema of a type with its references inlined: some servers do not follow references."""
    (root,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            target = definitions[part["$ref"]]
            return inline({key: value for key, value in target.items() if key not in ("title", "description")})
        return {key: inline(value) for key, value in part.items()}

    return dict(inline(root))


def read_json(text: str, kind: type[Reply]) -> tuple[Reply | None, str]:
    """Read and check the JSON object in a reply.

    Words and code fences around the object, which small models write, are skipped.

    :returns: (value, ''), or (None, the fault in words).
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
    """Return a conversation that asks once more for JSON; it shows the faulty reply and names the fault."""
    request = f"Your reply cannot be used: {fault}. Write the JSON again, whole, and nothing else."
    return [*messages, Message("assistant", reply[:20_000]), Message("user", request)]


def _refuse(name: str) -> float:
    """Refuse NaN and Infinity, which Python's parser accepts and JSON does not have."""
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
