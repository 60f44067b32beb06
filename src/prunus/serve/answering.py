"""Answer a question for a client, whichever way it came: routes of Prunus, OpenAI's API, or a tool of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ..api.answers import Choices, stream
from ..core.events import Event
from ..core.options import Options
from ..pages.sources import Source
from .inputs import choices_of, conversation_of, index_place, sources_of
from .keys import NO_KEY
from .request_log import Note
from .server import Server
from .snapshots import KeepsPages
from .wire import AskRequest
from .work import unless_left

_PATIENCE: Final = 2.0
"""Seconds for the first event, before a stream begins without it."""


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """A checked question.

    :param pages: None searches the web, or asks the indexes of the choices.
    :param turns: earlier turns as pairs of role and text, the oldest first.
    :param caller: the name of the request's key.
    """

    question: str
    pages: Sequence[Source] | None
    choices: Choices
    turns: Sequence[tuple[str, str]] = ()
    caller: str = NO_KEY


async def answering(server: Server, body: AskRequest, caller: str) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer, None in long silences; the request is checked at once.

    :param caller: the name of the request's key.
    :raises BadInput: the request asks for what is not enabled.
    :raises Refused: 404; the caller has no index of a name.
    """
    sources = sources_of(body.pages, server.options)
    places = [await index_place(name, server, caller) for name in body.indexes]
    choices = choices_of(body, server.settings, server.options, places)
    turns = [(turn.role, turn.content) for turn in body.turns]
    asked = ClientQuestion(body.question, sources or None, choices, turns, caller)
    return events_of(server, asked, KeepsPages(server.snapshots, caller) if body.keep else None)


def events_of(server: Server, asked: ClientQuestion, keeps: KeepsPages | None) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer, None in long silences. The request log gets its line where there is one.

    :param keeps: keeps the pages that the answer cites; None keeps none.
    """
    note = Note(asked.question, asked.turns)
    choices, chat = asked.choices, conversation_of(asked.turns, keeps)
    if server.requests is not None:
        choices["options"] = replace(choices.get("options") or Options(), trace=note.listen)
    answer = partial(stream, asked.question, asked.pages, choices, chat, shared=server.engines)
    make = answer if keeps is None else lambda: keeps.events(answer())
    events = server.workers.stream(make, asked.caller)
    return events if server.requests is None else server.requests.noted(note, events, server.workers.later)


async def begun(
    events: AsyncGenerator[Event | None, None], receive: Callable[[], Awaitable[Any]]
) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer once its first event is there, or after two seconds, None first.

    An error before the first event is raised here, so that the response can have a status of its own.

    :param receive: as for :func:`~prunus.serve.work.unless_left`.
    :raises Left: the client has left.
    """
    first = asyncio.ensure_future(anext(events))

    async def all_events() -> AsyncGenerator[Event | None, None]:
        async with aclosing(events):
            try:
                if not first.done():
                    yield None
                yield await first
            finally:
                first.cancel()
                await asyncio.gather(first, return_exceptions=True)  # the generator can only be closed after it
            async for event in events:
                yield event

    try:
        await unless_left(receive, asyncio.wait({first}, timeout=_PATIENCE))
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await events.aclose()
        raise
    return all_events()
