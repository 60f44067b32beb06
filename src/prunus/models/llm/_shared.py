"""Parts that all language models here share: options of a call, checks of messages, stop strings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from ...core.errors import BadInput
from ...core.types import Message

MESSAGE_TOKENS: Final = 4
"""Approximate tokens that a chat template adds to each message: its role and its marks."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The checked options of one call of ``LLM.stream``.

    :param max_tokens: most tokens of the reply, by the model's tokenizer.
    :param temperature: from 0 to 2; 0 always takes the likeliest token.
    :param seed: makes sampling repeatable if the model supports it; None leaves it to the model.
    :param stop: the reply ends before the first of these strings.
    :param schema: JSON schema for the reply; the model may violate it, so that the caller must check the reply.
    """

    max_tokens: int = 1024
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CallOptions:
        """Check the keyword arguments of ``LLM.stream``.

        :raises BadInput: an unknown option, or a value out of its range.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise BadInput(f"a model has no option {name!r}; there are: {', '.join(known)}", subject=name)
        stop = options.get("stop") or ()
        call = cls(**{**options, "stop": (stop,) if isinstance(stop, str) else tuple(stop)})
        if not _whole(call.max_tokens) or call.max_tokens < 1:
            raise BadInput(f"max_tokens: {call.max_tokens!r} is not a positive whole number", subject="max_tokens")
        if not isinstance(call.temperature, int | float) or not 0 <= call.temperature <= 2:
            raise BadInput(f"temperature: {call.temperature!r} is not between 0 and 2", subject="temperature")
        if call.seed is not None and not (_whole(call.seed) and 0 <= call.seed < 2**63):
            raise BadInput(f"seed: {call.seed!r} is not a whole number from 0", subject="seed")
        if len(call.stop) > 4 or not all(isinstance(text, str) and 0 < len(text) <= 200 for text in call.stop):
            raise BadInput("stop: give at most 4 strings of 1 to 200 characters", subject="stop")
        if call.schema is not None and not isinstance(call.schema, Mapping):
            raise BadInput(f"schema: {call.schema!r} is no JSON schema", subject="schema")
        return call


def check_messages(messages: Sequence[Message]) -> None:
    """Check that a conversation is valid.

    :raises BadInput: the conversation is empty, or a message has an unknown role.
    """
    if not messages:
        raise BadInput("a model needs at least one message", subject="messages")
    for message in messages:
        if message.role not in ("system", "user", "assistant"):
            raise BadInput(f"message role {message.role!r}: use system, user or assistant", subject="messages")


def encodable(text: str) -> str:
    """Return a text that can be sent and tokenised: lone surrogates become '?'."""
    return text.encode("utf-8", "replace").decode("utf-8")


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """Append a request for JSON by a schema to the last message."""
    *before, last = messages
    content = f"{last.content}\n\nReply with JSON alone, by this JSON schema:\n{json.dumps(schema, ensure_ascii=False)}"
    return [*before, Message(last.role, content)]


class Stops:
    """Ends a streamed text before a stop string, also if the string is split between pieces.

    It holds back less text than the longest stop string has, and takes time linear in the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.done = False

    def feed(self, piece: str) -> str:
        """Add a piece, and return the next part of the text that can be shown."""
        if self.done:
            return ""
        text = self._held + piece
        places = [place for place in (text.find(stop) for stop in self._stops) if place >= 0]
        if places:
            self.done, self._held = True, ""
            return text[: min(places)]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> str:
        """Return the text that was held back, after the stream has ended without a stop string."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Return how many letters at the end of a text are the beginning of a stop string."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if stop.startswith(text[-size:]):
            return size
    return 0


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
