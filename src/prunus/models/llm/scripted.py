"""``scripted``: a model for tests, which gives prepared replies and fails on demand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadBudget, BadInput, OutsideFailed
from ...core.events import Event, TokenEvent, UsageEvent
from ...core.ports import LanguageModel
from ...core.types import Message, Usage
from ._shared import CallOptions, Stops, check_messages

_PIECE: Final = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply, and the way it is streamed.

    :param text: the reply, streamed word by word.
    :param cut_after: words after which the stream breaks off with OutsideFailed; -1 for never.
    :param pause: seconds before each word.
    :param usage: whether tokens are reported; otherwise the usage event has 0 and 0.
    :param error: an error that is raised instead of the reply.
    """

    text: str = ""
    cut_after: int = -1
    pause: float = 0.0
    usage: bool = True
    error: Exception | None = None


Script = Sequence[str | ScriptedReply] | Callable[[Sequence[Message], CallOptions], str | ScriptedReply]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """The messages and the options of one call."""

    messages: tuple[Message, ...]
    options: CallOptions = field(default_factory=CallOptions)


class Engine(LanguageModel):
    """Gives prepared replies in order, one per call, or the replies of a function.

    One word with the space before it is one token, so that a test can state counts and limits.

    :param model: the reply to every call; '' where ``script`` is given.
    :param script: replies in order, or a function of messages and options.
    :param window: context window: most tokens of prompt and reply together.
    """

    name = "scripted"
    real = False
    free = True
    sees_pictures = True

    def __init__(self, model: str = "", script: Script | None = None, window: int = 100_000) -> None:
        self._script = script if script is not None else _always(model or "No reply is scripted.")
        self.model = "scripted"
        self.context_window = window
        self.calls: list[ScriptedCall] = []

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of words of each text, shape [n]."""
        return np.fromiter((len(_PIECE.findall(text)) for text in texts), np.int64, len(texts))

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the words of the next reply, and then its usage.

        :raises BadInput: no reply is left, or an option is unknown.
        :raises BadBudget: the prompt is longer than the window.
        """
        call = CallOptions.of(options)
        check_messages(messages)
        prompt = int(self.count([message.content for message in messages]).sum())
        room = self.context_window - prompt
        if room < 1:
            raise BadBudget(
                f"scripted: {prompt} tokens of prompt are over the window of {self.context_window}; lower the budget",
                subject="scripted",
            )
        self.calls.append(ScriptedCall(tuple(messages), call))
        reply = self._next(messages, call)
        if reply.error:
            raise reply.error
        words, stops = 0, Stops(call.stop)
        for piece in _PIECE.findall(reply.text):
            if words == reply.cut_after:
                raise OutsideFailed(f"scripted: the stream broke off after {words} words", subject="scripted")
            await asyncio.sleep(reply.pause)
            shown = stops.feed(piece)
            words += 1
            if shown:
                yield TokenEvent(shown)
            if stops.done or words == min(call.max_tokens, room):
                break
        held = "" if stops.done else stops.rest()
        if held:
            yield TokenEvent(held)
        yield UsageEvent(Usage(prompt, words) if reply.usage else Usage())

    def _next(self, messages: Sequence[Message], call: CallOptions) -> ScriptedReply:
        if callable(self._script):
            reply = self._script(messages, call)
        elif len(self.calls) > len(self._script):
            raise BadInput(f"scripted: call {len(self.calls)} has no reply; {len(self._script)} are scripted")
        else:
            reply = self._script[len(self.calls) - 1]
        return ScriptedReply(reply) if isinstance(reply, str) else reply


def _always(text: str) -> Callable[[Sequence[Message], CallOptions], str]:
    return lambda messages, call: text
