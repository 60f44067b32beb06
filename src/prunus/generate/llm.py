"""``llm``: a model writes the answer from numbered sources, streamed; what it writes is guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from ..errors import BadInput, NothingFound, OutsideFailed
from ..events import Event, TokenEvent, UsageEvent
from ..ports import LLM
from ..prompts.render import Quoted, render
from ..types import Passage
from ._guard import Guard

_LONGEST_QUESTION: Final = 8_000
_LONGEST_REPLY: Final = 200_000


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered source; its number is its place, from 1.

    :param text: the extracted HTML, Markdown or text.
    """

    text: str
    title: str = ""
    url: str = ""
    published: str = ""


class Engine:
    """Asks a model for an answer in Markdown with citations [1], [2], …

    Taken out of what it writes: pictures, links, addresses, HTML, and citations of numbers that no source has.

    :param llm: the model.
    :param max_tokens: of the answer.
    """

    name = "llm"

    def __init__(self, llm: LLM, max_tokens: int = 2048) -> None:
        self._llm = llm
        self._max_tokens = max_tokens

    async def stream(self, query: str, sources: Sequence[Source]) -> AsyncIterator[Event]:
        """Yield token events as the answer is written, and one usage event.

        :raises NothingFound: there is no source; the model is not asked.
        :raises OutsideFailed: the model failed, or writes without end.
        """
        if not query.strip():
            raise BadInput("answer: the question is empty", subject="query")
        if not sources:
            raise NothingFound("no source bears on the question; nothing is invented", subject=query[:80])
        messages = render(
            "answer",
            sources=[_quoted(number, source) for number, source in enumerate(sources, 1)],
            question=Quoted(query[:_LONGEST_QUESTION], "the question"),
        )
        guard, size = Guard(len(sources)), 0
        stream = self._llm.stream(messages, max_tokens=self._max_tokens, temperature=0.0)
        async with aclosing(cast(Any, stream)) as events:
            async for event in events:
                if isinstance(event, TokenEvent):
                    size += len(event.text)
                    if size > _LONGEST_REPLY:
                        raise OutsideFailed("the model's answer has no end; it was given up", subject="llm")
                    shown = guard.feed(event.text)
                    if shown:
                        yield TokenEvent(shown)
                elif isinstance(event, UsageEvent):
                    left = guard.rest()
                    if left:
                        yield TokenEvent(left)
                    yield event

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the whole answer; each passage is a source.

        :raises NothingFound: there is no passage.
        :raises OutsideFailed: the model failed, or wrote nothing.
        """
        sources = [Source(passage.text) for passage in passages]
        pieces = [event.text async for event in self.stream(query, sources) if isinstance(event, TokenEvent)]
        text = "".join(pieces).strip()
        if not text:
            raise OutsideFailed("the model wrote no answer", subject="llm")
        return text


def _quoted(number: int, source: Source) -> Quoted:
    """Return a source behind its fence, with what it is on the line above it."""
    about = [f"[{number}]", source.title[:80], source.published[:20], source.url[:80]]
    return Quoted(source.text, " | ".join(one for one in about if one))
