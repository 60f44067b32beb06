"""Events of a running answer. Server-sent events and ``--json`` use the same names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, cast

from .types import Answer, Citation, Hit, Passage, Plan, Usage


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """The plan is made."""

    plan: Plan
    event: Literal["plan"] = "plan"


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """A search query has its hits, or has failed."""

    query: str
    hits: Sequence[Hit]
    warnings: Sequence[str] = ()
    failure: str = ""
    event: Literal["search"] = "search"


@dataclass(frozen=True, slots=True)
class PageEvent:
    """A page was read, or could not be read."""

    url: str
    title: str = ""
    failure: str = ""
    event: Literal["page"] = "page"


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """The pages are pruned.

    :param tokens: tokens of the evidence.
    :param kept, blocks: how many blocks were kept, of how many.
    """

    tokens: int
    kept: int
    blocks: int
    warnings: Sequence[str] = ()
    event: Literal["kept"] = "kept"


@dataclass(frozen=True, slots=True)
class ExtractedEvent:
    """The passages are extracted."""

    passages: Sequence[Passage]
    event: Literal["extracted"] = "extracted"


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A piece of the answer's text."""

    text: str
    event: Literal["token"] = "token"


@dataclass(frozen=True, slots=True)
class CitationEvent:
    """A citation's quote was looked up in its page."""

    citation: Citation
    event: Literal["citation"] = "citation"


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The cost so far."""

    usage: Usage
    event: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The answer is complete."""

    answer: Answer
    event: Literal["done"] = "done"


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The run ended early with an error.

    :param code: the kind of error, as ``nothing_found``, the same as of a response with an error; '' elsewhere.
    """

    message: str
    subject: str = ""
    code: str = ""
    event: Literal["error"] = "error"


Event = (
    PlanEvent | SearchEvent | PageEvent | KeptEvent | ExtractedEvent | TokenEvent | CitationEvent | UsageEvent
    | DoneEvent | ErrorEvent
)  # fmt: skip


async def answer_of(events: AsyncIterator[Event | None]) -> Answer:
    """Return the answer in which a stream of events ends; None stands for a silence."""
    async with aclosing(cast(Any, events)):
        async for event in events:
            if isinstance(event, DoneEvent):
                return event.answer
    raise RuntimeError("the events ended without an answer")
