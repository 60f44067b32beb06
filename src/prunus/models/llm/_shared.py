"""What every language model of this room needs: the options of a call, stop strings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from ...core.errors import BadInput
from ...core.types import Message

MESSAGE_TOKENS: Final = 4
"""Tokens that a chat template spends on each message, about: its role and its borders."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The options of one call of ``LLM.stream``, checked.

    :param max_tokens: the longest reply, in the model's tokens.
    :param temperature: 0 is greedy: the likeliest token each time.
    :param seed: makes sampling repeatable where the model can; None leaves it to the model.
    :param stop: the reply ends before any of these strings.
    :param schema: JSON schema that the model is asked to keep; its reply is still to be checked.
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
        asked = cls(**{**options, "stop": (stop,) if isinstance(stop, str) else tuple(stop)})
        if not _whole(asked.max_tokens) or asked.max_tokens < 1:
            raise BadInput(f"max_tokens: {asked.max_tokens!r} is not a positive whole number", subject="max_tokens")
        if not isinstance(asked.temperature, int | float) or not 0 <= asked.temperature <= 2:
            raise BadInput(f"temperature: {asked.temperature!r} is not between 0 and 2", subject="temperature")
        if asked.seed is not None and not (_whole(asked.seed) and 0 <= asked.seed < 2**63):
            raise BadInput(f"seed: {asked.seed!r} is not a whole number from 0", subject="seed")
        if len(asked.stop) > 4 or not all(isinstance(one, str) and 0 < len(one) <= 200 for one in asked.stop):
            raise BadInput("stop: give at most 4 strings of 1 to 200 characters", subject="stop")
        if asked.schema is not None and not isinstance(asked.schema, Mapping):
            raise BadInput(f"schema: {asked.schema!r} is no JSON schema", subject="schema")
        return asked


def check_messages(messages: Sequence[Message]) -> None:
    """Refuse a conversation that no model answers.

    :raises BadInput: it is empty, or a message has an unknown role.
    """
    if not messages:
        raise BadInput("a model needs at least one message", subject="messages")
    for message in messages:
        if message.role not in ("system", "user", "assistant"):
            raise BadInput(f"{message.role!r} is no role of a message", subject="messages")


def encodable(text: str) -> str:
    """Return a text that can be sent and tokenized: a lone surrogate, which is no character, becomes '?'."""
    return text.encode("utf-8", "replace").decode("utf-8")


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """Ask in words for JSON of a schema, at the end of the last message."""
    *before, last = messages
    asked = f"{last.content}\n\nReply with JSON alone, by this JSON schema:\n{json.dumps(schema, ensure_ascii=False)}"
    return [*before, Message(last.role, asked)]


class Stops:
    """Ends a streamed text before a stop string, also one that comes in pieces.

    Holds back no more than the longest stop string, and takes time linear in the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.done = False

    def feed(self, piece: str) -> str:
        """Take a piece in, and return what can be shown of the text so far."""
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
        """Return what was held back, when the text has ended without a stop string."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Return how many letters at the end of a text may be the beginning of a stop string."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if stop.startswith(text[-size:]):
            return size
    return 0


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
