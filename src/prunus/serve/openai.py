"""Prunus as a model of OpenAI's API: chat completions and the list of models, with citations as annotations.

A model's name chooses where answers come from: ``prunus`` answers from the pages of the request (its files, and the
addresses in the last message), ``prunus-web`` searches, ``prunus-index:NAME`` asks an index. Parameters that change
only the sampling of a language model (``temperature``, ``top_p``, ``seed`` …) are accepted and have no effect; those
that Prunus cannot obey (``tools``, ``n`` above 1, …) are refused, so that no client waits for what cannot come.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal, Protocol, cast

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ConfigDict, Field, ValidationError

from ..api.fill import FillChoices, filled_from
from ..core.errors import BadInput, NothingFound, PrunusError, one_line
from ..core.events import DoneEvent, Event, KeptEvent, TokenEvent, answer_of
from ..core.text.near import did_you_mean
from ..core.types import Answer, Citation, FilledField
from .answering import answering, begun
from .background import LargeRoute
from .errors import RequestRefused, error_body, note_bug
from .inputs import Caller, caller_of, choices_of, index_names, sources_of
from .mask import Mask
from .routes import NO_BUFFER, REFUSALS, SILENCE, stream_of
from .server import Server
from .wire import AskRequest, Bounded, PageGiven, Pages, Turn
from .work import unless_left

PAGES: Final = "prunus"
WEB: Final = "prunus-web"
INDEX: Final = "prunus-index:"

_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\]}，。）」]{1,2000}")
_MARK: Final = re.compile(r"\[(\d{1,4})\]")
_DATA: Final = re.compile(r"data:([\w.+/-]{0,100})(?:;[\w=.-]{1,60})*;base64,")
_REFUSED: Final = (
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "audio",
    "modalities",
    "logprobs",
    "prediction",
)
_PLAIN: Final = {"tools": [], "tool_choice": "none", "modalities": ["text"], "logprobs": False}
"""Values of refused parameters that ask for nothing."""
_DONE: Final = "data: [DONE]\n\n"
_LONGEST: Final = 20_000
"""Code points of a question at most, and those of an earlier turn that count."""


Parts = Annotated[list[dict[str, Any]], Field(max_length=100, fail_fast=True)]
"""The parts of a message."""


class ChatMessage(Bounded):
    """One message; its content is text, or parts of ``text``, ``file`` and others."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Parts | None = None


class StreamOptions(Bounded):
    """What a stream ends with."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool | None = False


class ChatRequest(Bounded):
    """A request of OpenAI's chat completions. Fields of Prunus itself can be added as ``extra_body``."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"model": PAGES, "messages": [{"role": "user", "content": "What is https://example.org?"}]}]
        },
    )

    model: Annotated[str, Field(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=200, fail_fast=True)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    pages: Pages = Field([], description="Pages to answer from (Prunus only).")
    budget: Annotated[int, Field(ge=1)] | None = Field(None, description="Tokens of evidence at most (Prunus only).")


def add_openai(app: FastAPI, server: Server) -> None:
    """Add the routes of OpenAI's API to an application."""
    routes = APIRouter(prefix="/v1", tags=["openai"], responses=REFUSALS, route_class=LargeRoute)

    @routes.get("/models")
    async def models(caller: Caller) -> dict[str, Any]:
        """List the models."""
        return {"object": "list", "data": [_model(name) for name in await model_names(server, caller)]}

    @routes.get("/models/{model:path}")
    async def model(model: str, caller: Caller) -> dict[str, Any]:
        """Show one model."""
        _check_model(model, await model_names(server, caller))
        return _model(model)

    chunk = 'data: {"object": "chat.completion.chunk", "choices": []}'

    @routes.post("/chat/completions", response_model=None, responses=stream_of("data", example=chunk))
    async def chat(body: ChatRequest, request: Request, caller: Caller) -> Response | dict[str, Any]:
        """Answer the last message of the user, with citations as annotations of the reply."""
        question = asked(body, await model_names(server, caller))
        reply = _Reply(body, server.mask)
        return await respond(Wanted(reply, question, bool(body.stream), schema_asked(body)), server, request)

    app.include_router(routes)


def asked(body: ChatRequest, models: Sequence[str], field: str = "messages") -> AskRequest:
    """Return the question of a chat, with its sources and its earlier turns.

    :param models: from :func:`model_names`.
    :param field: the field that holds the messages, for errors.

    :raises RequestRefused: 404; the model is unknown.
    :raises BadInput: a parameter cannot be obeyed, or there is no question.
    """
    _check_model(body.model, models)
    extra = body.model_extra or {}
    for name in _REFUSED:
        if name in extra and extra[name] not in (None, [], {}, _PLAIN.get(name)):
            raise BadInput(f"{name} is not supported here; leave it out", subject=name)
    if body.n not in (None, 1):
        raise BadInput("n: only one choice is given; leave it out", subject="n")
    if schema_asked(body) is not None and body.model.startswith(INDEX):
        raise BadInput("response_format: a schema is filled from pages or a search, not from an index", subject="model")
    last = max((index for index, message in enumerate(body.messages) if message.role == "user"), default=-1)
    question = _text_of(body.messages[last]) if last >= 0 else ""
    if last >= 0:
        _check_parts(body.messages[last], field)
    if not question.strip():
        raise BadInput(f"{field}: there is no question of the user", subject=field)
    if len(question) > _LONGEST:  # before anything is searched in it
        raise BadInput(f"{field}: the question is over {_LONGEST:,} characters", subject=field)
    pages = [*body.pages, *_files(body.messages[: last + 1], field)]
    if body.model == PAGES:
        pages += [PageGiven(url=address) for address in _addresses(body.messages[: last + 1], bool(pages))]
        if not pages:
            raise BadInput(
                f"{PAGES} answers from pages: put addresses or files into the message, or choose another model: "
                f"{', '.join(models)}",
                subject=field,
            )
    turns = [
        Turn(role="user" if message.role == "user" else "assistant", content=_text_of(message)[:_LONGEST])
        for message in body.messages[:last]
        if message.role in ("user", "assistant") and _text_of(message).strip()
    ]
    try:
        return _request(body, question, pages, turns)
    except ValidationError as error:
        first = error.errors()[0]
        index = ".".join(map(str, first["loc"]))
        raise BadInput(f"{index}: {first['msg']}", subject=index) from None


def schema_asked(body: ChatRequest) -> dict[str, Any] | None:
    """Return the JSON schema that the reply is to have; None for text.

    :raises BadInput: another format is asked for, or there is no schema.
    """
    shown = (body.model_extra or {}).get("response_format")
    kind = shown.get("type") if isinstance(shown, dict) else None
    if kind in (None, "text"):
        return None
    if kind != "json_schema":
        raise BadInput("response_format: text or json_schema is written here", subject="response_format")
    inner = cast(Any, shown).get(
        "json_schema", shown
    )  # the responses API has the fields of json_schema beside its type
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        raise BadInput("response_format: json_schema needs a schema", subject="response_format")
    return schema


def _request(body: ChatRequest, question: str, pages: list[PageGiven], turns: list[Turn]) -> AskRequest:
    return AskRequest(
        question=question,
        pages=pages,
        indexes=[body.model.removeprefix(INDEX)] if body.model.startswith(INDEX) else [],
        search=body.model == WEB,
        budget=body.budget,
        turns=turns[-20:],
    )


def _addresses(messages: Sequence[ChatMessage], has_pages: bool) -> list[str]:
    """Return the addresses in the last message; where it has none, and no page, those of the latest one that has any.

    :param messages: the conversation up to the last message of the user.
    """
    for message in reversed(messages):
        text = _text_of(message)[:_LONGEST] if message.role == "user" else ""
        result = dict.fromkeys(map(_trimmed, _ADDRESS.findall(text)))
        if result or has_pages:
            return list(result)
    return []


def _trimmed(address: str) -> str:
    """Return an address without the punctuation of its sentence; a bracket that it opens belongs to it."""
    end, unopened = len(address), address.count(")") - address.count("(")
    while end and (address[end - 1] in ".,;:!?" or (address[end - 1] == ")" and unopened > 0)):
        unopened -= address[end - 1] == ")"
        end -= 1
    return address[:end]


async def model_names(server: Server, caller: str) -> list[str]:
    """Return the names of the models that a caller may use."""
    web = [WEB] if server.settings.search else []
    return [PAGES, *web, *(f"{INDEX}{name}" for name in await index_names(server, caller))]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "prunus"}


def _check_model(name: str, known: Sequence[str]) -> None:
    if name not in known:
        hint = did_you_mean(name, known)
        raise RequestRefused(
            404, f"no model is called {name[:100]!r}; there are: {', '.join(known)}{hint}", param="model"
        )


def _text_of(message: ChatMessage) -> str:
    """Return the text of a message; pictures and sounds count for nothing."""
    if isinstance(message.content, str):
        return message.content.encode("utf-8", "replace").decode()
    parts = [part.get("text") for part in message.content or () if part.get("type") == "text"]
    return "\n".join(part for part in parts if isinstance(part, str)).encode("utf-8", "replace").decode()


def _check_parts(message: ChatMessage, field: str) -> None:
    """Check that the question has no part which is not read.

    :raises BadInput: it has one; the message names its type.
    """
    for part in message.content if isinstance(message.content, list) else ():
        kind = part.get("type")
        if kind in ("image_url", "input_image"):
            raise BadInput(f"{field}: pictures are not read here; send the text, or the page as a file", subject=field)
        if kind not in ("text", "file"):
            shown = one_line(str(kind), longest=50)
            raise BadInput(f"{field}: parts of the type {shown} are not read here; send text or files", subject=field)


def _files(messages: Sequence[ChatMessage], field: str) -> list[PageGiven]:
    """Return the files in the parts of messages as pages.

    :raises BadInput: a file has no content that can be read.
    """
    result = []
    for message in messages:
        for part in message.content if isinstance(message.content, list) else ():
            if part.get("type") == "file":
                file = part.get("file")
                data = file.get("file_data") if isinstance(file, dict) else None
                match = _DATA.match(data) if isinstance(data, str) else None
                if not isinstance(data, str) or match is None:
                    raise BadInput(f"{field}: a file needs file_data, as data:TYPE;base64,DATA", subject=field)
                name = cast(Any, file).get("filename")
                given = name[-300:] if isinstance(name, str) else ""
                result.append(PageGiven(base64=data[match.end() :], name=given))
    return result


class Reply(Protocol):
    """Writes one reply in the shapes of an API: whole, or as pieces of a stream."""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return a reply that is not streamed."""
        ...

    def begin(self) -> str:
        """Return what opens a stream."""
        ...

    def piece(self, text: str) -> str:
        """Return a piece of the text."""
        ...

    def end(self, answer: Answer) -> str:
        """Return what closes a stream, the citations first."""
        ...

    def failed(self, error: Exception) -> str:
        """Return what ends a stream with an error."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request wants.

    :param schema: of the JSON that the reply is to be; None for text.
    """

    reply: Reply
    question: AskRequest
    streamed: bool
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FilledAnswer(Answer):
    """An answer that is JSON by a schema; its citations belong to its fields."""

    fields: Sequence[FilledField] = ()


async def respond(wanted: Wanted, server: Server, request: Request) -> Response | dict[str, Any]:
    """Answer a question in the shapes of an API. That nothing bears on it is an outcome, which a chat shows as text."""
    reply = wanted.reply
    try:
        if wanted.schema is not None:
            filled = await unless_left(
                request.receive, _filled(wanted.question, wanted.schema, server, caller_of(request))
            )
            if not wanted.streamed:
                return reply.whole(filled)
            told: AsyncIterator[str] = _each([reply.begin(), reply.piece(filled.text), reply.end(filled)])
            return StreamingResponse(told, media_type="text/event-stream", headers=NO_BUFFER)
        events = _counted(await answering(server, wanted.question, caller_of(request)))
        if not wanted.streamed:
            return reply.whole(await unless_left(request.receive, answer_of(events)))
        told = _stream(reply, await begun(events, request.receive))
    except NothingFound as error:
        answer = _nothing(error)
        if not wanted.streamed:
            return reply.whole(answer)
        told = _each([reply.begin(), reply.piece(answer.text), reply.end(answer)])
    return StreamingResponse(told, media_type="text/event-stream", headers=NO_BUFFER)


async def _filled(question: AskRequest, schema: dict[str, Any], server: Server, caller: str) -> FilledAnswer:
    """Return the JSON by a schema as an answer.

    :raises BadInput: the schema cannot be used, or the question asks for what is not enabled.
    """
    pages = sources_of(question.pages, server.options)
    chosen = choices_of(question, server.settings, server.options)
    choices = FillChoices(settings=server.settings, options=chosen["options"], budget=chosen["budget"])
    work = partial(filled_from, schema, pages or None, question.question, choices, server.engines)
    filled = await server.workers.within(work, caller)
    return FilledAnswer(
        json.dumps(filled.data, ensure_ascii=False),
        [field.citation for field in filled.fields if field.citation is not None],
        engines=filled.engines,
        usage=filled.usage,
        failures=filled.failures,
        fields=filled.fields,
    )


async def _counted(events: AsyncGenerator[Event | None, None]) -> AsyncGenerator[Event | None, None]:
    """Yield the events of an answer; where no model was used, the evidence counts as the prompt."""
    evidence = 0
    async with aclosing(events):
        async for event in events:
            if isinstance(event, KeptEvent):
                evidence = event.tokens
            if isinstance(event, DoneEvent) and not event.answer.usage.prompt_tokens:
                usage = replace(event.answer.usage, prompt_tokens=evidence)
                event = DoneEvent(replace(event.answer, usage=usage))
            yield event


async def _each(pieces: Sequence[str]) -> AsyncIterator[str]:
    for piece in pieces:
        yield piece


async def _stream(reply: Reply, events: AsyncGenerator[Event | None, None]) -> AsyncIterator[str]:
    async with aclosing(events):
        try:
            yield reply.begin()
            written = ""
            event = await _next(events)
            while not isinstance(event, NothingFound | DoneEvent):
                if event is None:
                    yield SILENCE
                elif isinstance(event, TokenEvent):
                    written += event.text
                    yield reply.piece(event.text)
                event = await _next(events)
            answer = event.answer if isinstance(event, DoneEvent) else _nothing(event)
            rest = answer.text[len(written) :] if answer.text.startswith(written) else ""
            if rest:
                yield reply.piece(rest)
            yield reply.end(answer)
        except PrunusError as error:
            yield reply.failed(error)
        except Exception as error:  # a bug: the stream has begun, so that no status can tell
            note_bug(error, "a streamed reply")
            yield reply.failed(error)


async def _next(events: AsyncGenerator[Event | None, None]) -> Event | NothingFound | None:
    """Return the next event, or the error that says that nothing bears on the question."""
    try:
        return await anext(events)
    except NothingFound as error:
        return error


def _nothing(error: NothingFound) -> Answer:
    """Return the answer that says so."""
    text = str(error)
    return Answer(text[:1].upper() + text[1:] + ".", ())


class _Reply:
    """Writes one reply in the shapes of OpenAI's API."""

    def __init__(self, body: ChatRequest, mask: Mask) -> None:
        self._body, self._mask = body, mask
        self._head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": body.model}

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return a reply that is not streamed."""
        message = {
            "role": "assistant",
            "content": answer.text,
            "refusal": None,
            "annotations": self._annotations(answer),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _usage(answer),
            "prunus": self._mask.record(details(answer)),
        }

    def begin(self) -> str:
        """Return the piece that names the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        """Return a piece of the text."""
        return self._chunk({"content": text})

    def end(self, answer: Answer) -> str:
        """Return the citations, the end, the usage where the client asked for it, and the mark of the end."""
        result = self._annotations(answer)
        wanted = self._body.stream_options is not None and self._body.stream_options.include_usage
        record = {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(answer)}
        return (
            (self._chunk({"annotations": result}) if result else "")
            + self._chunk({}, "stop")
            + (_event(record) if wanted else "")
            + _DONE
        )

    def failed(self, error: Exception) -> str:
        """Return the error and the mark of the end."""
        return _event(error_body(error, self._mask)) + _DONE

    def _annotations(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the citations as annotations, without folders of this machine."""
        result: list[dict[str, Any]] = self._mask.record(url_citations(answer))
        return result

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self._head, "object": "chat.completion.chunk", "choices": [choice]})


def url_citations(answer: Answer) -> list[dict[str, Any]]:
    """Return the citations of an answer as OpenAI's URL citations, one for each mark ``[n]`` in its text.

    Each carries the quote, the place in the page and whether the quote was found there.
    """
    if isinstance(answer, FilledAnswer):
        cited = [(field, field.citation) for field in answer.fields if field.citation is not None]
        return [
            {"type": "url_citation", "url_citation": {**_place_of(one, 0, len(answer.text)), "field": field.path}}
            for field, one in cited
        ]
    by_number: dict[int, list[Any]] = {}
    for citation in answer.citations:
        by_number.setdefault(citation.number, []).append(citation)
    result = []
    for mark in _MARK.finditer(answer.text):
        for citation in by_number.get(int(mark[1]), ())[:1]:
            result.append({"type": "url_citation", "url_citation": _place_of(citation, mark.start(), mark.end())})
    return result


def _place_of(citation: Citation, start: int, end: int) -> dict[str, Any]:
    """Return the fields of a URL citation.

    :param start, end: what of the text it is for.
    """
    return {
        "start_index": start,
        "end_index": end,
        "url": citation.url or citation.title,
        "title": citation.title,
        "quote": citation.quote,
        "place": citation.place,
        "found": citation.found,
        "published": citation.published,
        "read_at": citation.read_at,
    }


def details(answer: Answer) -> dict[str, Any]:
    """Return what OpenAI's shapes have no place for: citations, claims, unsupported sentences, failures, warnings."""
    fields = {"fields": [asdict(field) for field in answer.fields]} if isinstance(answer, FilledAnswer) else {}
    return {
        **fields,
        "citations": [asdict(citation) for citation in answer.citations],
        "unsupported": list(answer.unsupported),
        "claims": [asdict(claim) for claim in answer.claims],
        "failures": dict(answer.failures),
        "warnings": list(answer.warnings),
    }


def _usage(answer: Answer) -> dict[str, int]:
    usage = answer.usage
    total = usage.prompt_tokens + usage.completion_tokens
    return {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "total_tokens": total}


def _event(record: dict[str, Any]) -> str:
    return f"data: {json.dumps(record, ensure_ascii=False)}\n\n"
