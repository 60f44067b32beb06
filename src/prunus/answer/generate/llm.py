"""``llm``: a model writes the answer from numbered sources, as a stream that a guard filters."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from ...core.errors import BadInput, NothingFound, OutsideFailed
from ...core.events import Event, TokenEvent, UsageEvent
from ...core.ports import LLM, NumberedSource
from ...core.types import Message, Passage
from ...models.prompts.fences import FenceFilter
from ...models.prompts.render import Quoted, render
from ._guard import Guard

_LONGEST_QUESTION: Final = 8_000
_LONGEST_REPLY: Final = 200_000
_TURNS: Final = 6
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
"""The start of an address; anything else is a path on this machine, whose folders are nobody's business."""
_LONGEST_TURN: Final = 2_000


class Engine:
    """Asks a model for an answer in Markdown with citations [1], [2], …

    Pictures, HTML, addresses other than those of the sources, and citations of numbers that no source has are removed
    from the answer. In code, addresses of hosts that the sources or the question name stay.

    :param llm: the model.
    :param max_tokens: limit of the answer.
    """

    name = "llm"
    verbatim = False
    writes = True

    def __init__(self, llm: LLM, max_tokens: int = 2048) -> None:
        self._llm = llm
        self._max_tokens = max_tokens

    async def stream(
        self, query: str, sources: Sequence[NumberedSource], turns: Sequence[Message] = ()
    ) -> AsyncIterator[Event]:
        """Yield token events as the answer is written, and one usage event.

        :param turns: earlier turns, for understanding the question; they are no source.
        :raises BadInput: the question is empty.
        :raises NothingFound: there is no source; the model is not called.
        :raises OutsideFailed: the model failed, or writes without end.
        """
        if not query.strip():
            raise BadInput("answer: the question is empty", subject="query")
        if not sources:
            raise NothingFound("no source bears on the question; nothing is invented", subject=query[:80])
        numbered = [(source.number or index, source) for index, source in enumerate(sources, 1)]
        messages = render(
            "answer",
            sources=[_quoted(number, source) for number, source in numbered],
            turns=_earlier(turns),
            question=Quoted(query[:_LONGEST_QUESTION], "the question"),
        )
        messages = _with_pictures(messages, numbered)
        async for event in self._guarded(messages, {number: source.url for number, source in numbered}):
            yield event

    async def unsourced(self, query: str, turns: Sequence[Message] = ()) -> AsyncIterator[Event]:
        """Yield an answer from the model's memory; it can cite nothing.

        :raises OutsideFailed: the model failed, or writes without end.
        """
        question = Quoted(query[:_LONGEST_QUESTION], "the question")
        async for event in self._guarded(render("direct", turns=_earlier(turns), question=question), {}):
            yield event

    async def _guarded(self, messages: Sequence[Message], sources: Mapping[int, str]) -> AsyncIterator[Event]:
        """Call the model, and pass its text on through the guard."""
        read = [message.content for message in messages]
        guard, fences, size = Guard(sources, read), FenceFilter(), 0
        longest = max(1, min(self._max_tokens, self._llm.room(messages)))
        stream = self._llm.stream(messages, max_tokens=int(longest), temperature=0.0)
        async with aclosing(cast(Any, stream)) as events:
            async for event in events:
                if isinstance(event, TokenEvent):
                    size += len(event.text)
                    if size > _LONGEST_REPLY:
                        raise OutsideFailed("the model's answer has no end; it was given up", subject="llm")
                    shown = guard.feed(fences.feed(event.text))
                    if shown:
                        yield TokenEvent(shown)
                elif isinstance(event, UsageEvent):
                    left = guard.feed(fences.rest()) + guard.rest()
                    if left:
                        yield TokenEvent(left)
                    yield event

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the whole answer; each passage is a source.

        :raises NothingFound: there is no passage.
        :raises OutsideFailed: the model failed, or wrote nothing.
        """
        sources = [NumberedSource(passage.text) for passage in passages]
        pieces = [event.text async for event in self.stream(query, sources) if isinstance(event, TokenEvent)]
        text = "".join(pieces).strip()
        if not text:
            raise OutsideFailed("the model wrote no answer", subject="llm")
        return text


def _quoted(number: int, source: NumberedSource) -> Quoted:
    """Return a fenced source; the line above it holds its number, title, date and address."""
    about = [f"[{number}]", source.title[:80], source.published[:20], _shown(source.url)[:80]]
    return Quoted(source.text, " | ".join(part for part in about if part))


def _shown(address: str) -> str:
    """Return an address as the model may read it: of a path on this machine, only the file's name."""
    return address if _WEB.match(address) else re.split(r"[\\/]", address.rstrip("\\/"))[-1]


def _with_pictures(messages: list[Message], numbered: Sequence[tuple[int, NumberedSource]]) -> list[Message]:
    """Add the sources' pictures to the last message, which says which source each belongs to."""
    pictures = [(number, picture) for number, source in numbered for picture in source.pictures]
    if not pictures:
        return messages
    whose = ", ".join(f"[{number}]" for number, _ in pictures)
    content = f"{messages[-1].content}\n\nThe pictures are of these sources, in this order, and material as these are: "
    content += f"{whose}."
    return [*messages[:-1], Message(messages[-1].role, content, tuple(picture for _, picture in pictures))]


def _earlier(turns: Sequence[Message]) -> list[Quoted]:
    """Return the last turns of a conversation, each fenced."""
    kept = [turn for turn in turns if turn.role != "system"][-_TURNS:]
    return [
        Quoted(turn.content[:_LONGEST_TURN], "was asked" if turn.role == "user" else "was answered") for turn in kept
    ]
