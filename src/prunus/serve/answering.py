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
from .work import BODY, Busy, unless_left

_TURN: Final = 0.25
"""Seconds for the turn of a stream, before it is refused."""
_PATIENCE: Final = 2.0
"""Seconds for the first event of a stream, before it begins without it."""


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
    if not sources or choices.get("search"):
        _stay()  # a search is paid for once
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


def _stay() -> None:
    """Let the request at hand be answered here, however large its pages are."""
    if (size := BODY.get()) is not None:
        size.may_pass = False


async def begun(
    events: AsyncGenerator[Event | None, None], receive: Callable[[], Awaitable[Any]]
) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer once its first event is there, or two seconds after its turn has come, None first.

    An error before the first event is raised here, so that the response can have a status of its own.

    :param events: from :meth:`~prunus.serve.work.Workers.stream`: None comes first, with the turn.
    :param receive: as for :func:`~prunus.serve.work.unless_left`.
    :raises Busy: its turn does not come soon.
    :raises Left: the client has left.
    :raises PassedOn: the background process is to answer.
    """
    first = await _soon(events, receive, _TURN)
    if not first.done():
        await _ended(first, events)
        raise Busy
    first = await _soon(events, receive, _PATIENCE)
    _stay()  # the reply begins

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

    return all_events()


async def _soon(
    events: AsyncGenerator[Event | None, None], receive: Callable[[], Awaitable[Any]], seconds: float
) -> asyncio.Future[Event | None]:
    """Start the next step of a generator and wait for it, but not long; raise what it raises by then."""
    step = asyncio.ensure_future(anext(events))
    try:
        await unless_left(receive, asyncio.wait({step}, timeout=seconds))
        if step.done():
            step.result()
    except BaseException:
        await _ended(step, events)
        raise
    return step


async def _ended(step: asyncio.Future[Any], events: AsyncGenerator[Any, None]) -> None:
    """End a generator in the middle of a step."""
    step.cancel()
    await asyncio.gather(step, return_exceptions=True)
    await events.aclose()
