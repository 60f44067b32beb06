"""Answer a question for a client, whichever way it came: routes of Prunus, OpenAI's API, or a tool of MCP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..api.answers import Choices, stream
from ..core.events import Event
from ..core.options import Options
from ..pages.sources import Source
from .given import choices_of, conversation_of, index_place, sources_of
from .request_log import Note
from .server import Server
from .snapshots import KeepsPages
from .wire import AskRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked question.

    :param pages: None searches the web, or asks the indexes of the choices.
    :param turns: earlier turns as pairs of role and text, the oldest first.
    """

    question: str
    pages: Sequence[Source] | None
    choices: Choices
    turns: Sequence[tuple[str, str]] = ()


async def answering(server: Server, body: AskRequest, caller: str) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer, None in long silences; the request is checked at once.

    :param caller: the name of the request's key.
    :raises BadInput: the request asks for what is not enabled.
    :raises Refused: 404; the caller has no index of a name.
    """
    sources = sources_of(body.pages, server.options)
    places = [await index_place(name, server, caller) for name in body.indexes]
    choices = choices_of(body, server.settings, server.options, places)
    asked = Asked(body.question, sources or None, choices, [(turn.role, turn.content) for turn in body.turns])
    return events_of(server, asked, KeepsPages(server.snapshots, caller) if body.keep else None)


def events_of(server: Server, asked: Asked, keeps: KeepsPages | None) -> AsyncGenerator[Event | None, None]:
    """Return the events of an answer, None in long silences. The request log gets its line where there is one.

    :param keeps: keeps the pages that the answer cites; None keeps none.
    """
    note = Note(asked.question, asked.turns)
    choices, chat = asked.choices, conversation_of(asked.turns, keeps)
    if server.requests is not None:
        choices["options"] = replace(choices.get("options") or Options(), trace=note.listen)
    answer = partial(stream, asked.question, asked.pages, choices, chat, shared=server.engines)
    events = server.workers.stream(lambda: keeps.events(answer()) if keeps is not None else answer())
    return events if server.requests is None else server.requests.noted(note, events, server.workers.later)
