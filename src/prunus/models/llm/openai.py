"""``openai:MODEL``: any server with the chat completions API, hosted or local.

Every byte goes through the egress door. Each call opens one connection and closes it at its end, also if
the stream is abandoned or cancelled. An option that the server refuses (usage in the stream, JSON by
schema, a seed) is left out of later requests. Responses are untrusted: lines, replies and numbers are
bounded and checked.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadBudget, BadInput, OutsideFailed, PrunusError, one_line
from ...core.events import Event, TokenEvent, UsageEvent
from ...core.ports import Door, LanguageModel, TokenCounter
from ...core.text.secrets import hide_logins, hide_secrets
from ...core.types import Message, Usage
from ...web.json_client import BUSY, WRONG_SHAPE, error_message, error_text, network_errors
from ...web.retry import Retries, retry_after, wait_hint
from ._shared import MESSAGE_TOKENS, CallOptions, Stops, check_messages, encodable, with_schema

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

ENDPOINT: Final = "https://api.openai.com/v1"
KEY_SETTING: Final = "llm_key (PRUNUS_LLM_KEY)"
"""The name of the key's setting; errors name the setting, and never show the key."""

_KEY: Final = re.compile(r"[\x21-\x7e]*")
_WINDOW_WORDS: Final = re.compile(r"context[_ ](length|window|size)|maximum context|prompt is too long", re.I)
_LONGEST_LINE: Final = 8 * 1024 * 1024
"""Most bytes of one line; a reply that is not streamed is one line, too."""

_MOST_LISTED: Final = 4 * 1024 * 1024
"""Most bytes of a server's list of models."""

_ASK_AGAIN: Final = 600.0
"""Seconds after which a server that states no window is asked again."""

_AFTER_FAILURE: Final = 30.0
"""Seconds after which a server that failed to state its window is asked again."""

_MOST_OF_ERROR: Final = 16_384
"""Most bytes of an error response that are read."""


class Engine(LanguageModel):
    """Generates replies through a server with the chat completions API.

    :param model: the server's name of the model.
    :param door: the egress door.
    :param endpoint: base URL, as the operator wrote it; requests go to ``…/chat/completions``.
    :param key: sent as a bearer token to this endpoint only; '' sends none.
    :param tokenizer: counts tokens; the server's count may differ.
    :param options: timeouts, retries and limits by name, see ``Patience``.
    :raises BadInput: no model is named, or the key, the endpoint or an option is malformed.
    """

    name = "openai"
    real = True
    sees_pictures = True  # a server whose model does not see pictures refuses the call

    def __init__(
        self,
        model: str = "",
        door: Door | None = None,
        endpoint: str = "",
        key: str = "",
        tokenizer: TokenCounter | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not model:
            raise BadInput("llm openai: name a model, as openai:gpt-4o-mini or http://host/v1#model", subject="llm")
        if not _KEY.fullmatch(key.strip()):
            raise BadInput(f"{KEY_SETTING}: holds characters that no key has; set it again", subject="llm_key")
        self._endpoint = (endpoint or ENDPOINT).rstrip("/")
        try:
            parts = urlsplit(self._endpoint)
        except ValueError:  # no address at all
            parts = urlsplit("")
        has_login = hide_logins(self._endpoint) != self._endpoint
        if parts.scheme not in ("http", "https") or not parts.hostname or has_login or parts.query:
            shown = one_line(hide_secrets(self._endpoint))
            raise BadInput(f"llm endpoint {shown}: give it as https://host/v1, and the key as {KEY_SETTING}")
        self.model = model
        self.refused: frozenset[str] = frozenset()
        self._door = door
        self._tokenizer = tokenizer
        self._patience = Patience.of(options)
        self.context_window = self._patience.context_window
        self._ask_after = 0.0
        self._unreached: tuple[float, OutsideFailed] | None = None
        self._place = ServedModel(f"{one_line(model, longest=80)} at {parts.netloc}", model, key.strip())

    def __repr__(self) -> str:
        return f"openai.Engine({self.model!r}, endpoint={self._endpoint!r})"

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text by the given tokenizer, shape [n].

        :raises BadInput: no tokenizer was given.
        """
        if self._tokenizer is None:
            raise BadInput(f"{self._place.where}: no tokenizer was given to count with", subject="tokenizer")
        return self._tokenizer.count(texts)

    async def ask_window(self) -> int:
        """Return the model's context window: the configured one, else the one that the server states, else 0.

        :raises OutsideFailed: the server failed.
        """
        if not self.context_window and time.monotonic() >= self._ask_after:
            now = time.monotonic()
            end = now + self._patience.connect + self._patience.gap
            self._ask_after = now + _AFTER_FAILURE
            listing = await self._get(self._endpoint + "/models", end)
            self.context_window, ask_props = window_of(listing, self.model)
            if ask_props:
                with suppress(OutsideFailed):  # a server in between may not pass it on: the window is unknown
                    properties = await self._get(self._endpoint.removesuffix("/v1") + "/props", end)
                    self.context_window = window_in_props(properties)
            self._ask_after = now + _ASK_AGAIN
        return self.context_window

    async def _get(self, url: str, end: float) -> bytes:
        """Return the body at a URL of the server; the errors are those of :meth:`ask_window`."""
        content = bytearray()
        async with self._request("GET", url, None, end) as answer:
            if answer.status_code != 200:
                raise self._place.failure(answer, await self._error(answer, end))
            chunks = answer.aiter_raw()
            while chunk := await self._within(end, anext(chunks, b"")):
                content += chunk
                if len(content) > _MOST_LISTED:
                    raise OutsideFailed(f"{self._place.where}: the list of models is over 4 MiB")
        return bytes(content)

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the pieces of the reply, and then its usage: 0 and 0 tokens where the server reports none.

        A call is retried only before its first piece; a reply that breaks off later is a failure.

        :raises BadInput: a key is missing, or an option has a bad value.
        :raises BadBudget: the prompt is longer than the model's window.
        :raises OutsideFailed: the server failed, sent a malformed response, or took too long.
        """
        call = CallOptions.of(options)
        check_messages(messages)
        self._check_window(messages)
        started, patience = time.monotonic(), self._patience
        end = started + patience.total
        retries = Retries(patience.retries + 1, patience.backoff, longest=patience.total)
        read = False  # whether the server may have read the prompt in any try

        def may_pass(error: OutsideFailed, tries: int) -> bool:
            pause = patience.backoff * 2 ** (tries - 1)
            return error.may_pass and (error.sent or self._unreached_for() + pause < patience.connect)

        async def begin() -> tuple[Delta | None, AsyncGenerator[Delta]]:
            nonlocal read
            try:
                return await self._begin(messages, call, end)
            except OutsideFailed as error:
                read = error.sent = read or error.sent
                raise

        piece, rest = await retries.acall(begin, left=lambda: end - time.monotonic(), may_pass=may_pass)
        stops, tokens = Stops(call.stop), (0, 0)
        async with aclosing(rest):
            while piece is not None:
                tokens = piece.tokens or tokens
                text = stops.feed(piece.text)
                if text:
                    yield TokenEvent(text)
                if stops.done:
                    break
                try:
                    piece = await anext(rest, None)
                except OutsideFailed as error:
                    if not error.may_pass:
                        raise
                    raise OutsideFailed(f"{error}; the answer broke off", subject=self.model) from None
        text = "" if stops.done else stops.rest()
        if text:
            yield TokenEvent(text)
        yield UsageEvent(Usage(*tokens, seconds={"llm": time.monotonic() - started}))

    def _check_window(self, messages: Sequence[Message]) -> None:
        """Refuse a prompt that is longer than the window; the server checks prompt and reply together."""
        if self.context_window and self._tokenizer is not None:
            prompt = int(self.count([message.content for message in messages]).sum()) + MESSAGE_TOKENS * len(messages)
            if prompt >= self.context_window:
                raise BadBudget(
                    f"{self._place.where}: a prompt of about {prompt} tokens is over the window of "
                    f"{self.context_window}; lower the budget",
                    subject=self.model,
                )

    async def _begin(
        self, messages: Sequence[Message], call: CallOptions, end: float
    ) -> tuple[Delta | None, AsyncGenerator[Delta]]:
        """Send the request; return the first piece with text (or the last piece), and the generator of the rest."""
        pieces = self._pieces(messages, call, end)
        first: Delta | None = None
        async for piece in pieces:
            first = replace(piece, tokens=piece.tokens or (first.tokens if first else None))
            if piece.text:
                break
        return first, pieces

    async def _pieces(self, messages: Sequence[Message], call: CallOptions, end: float) -> AsyncGenerator[Delta]:
        """Send the request, again without each option that the server refuses, and yield the pieces of the reply."""
        while True:
            request = body(self.model, messages, call, self.refused)
            wait = min(end, time.monotonic() + self._patience.first)
            async with self._request("POST", self._endpoint + "/chat/completions", request, wait) as answer:
                if answer.status_code == 200:
                    async with aclosing(self._read(answer, call.max_tokens, wait, end)) as pieces:
                        async for piece in pieces:
                            yield piece
                    return
                reason = await self._error(answer, wait)
            option = refused_option(answer.status_code, reason, request)
            if not option:
                raise self._place.failure(answer, reason)
            self.refused |= {option}

    async def _read(self, answer: httpx.Response, max_tokens: int, wait: float, end: float) -> AsyncGenerator[Delta]:
        """Yield the pieces of a response.

        :param wait, end: times by which the first piece and the last piece must have come.
        """
        pieces: BodyPieces | None = None
        chunks = answer.aiter_raw()
        while chunk := await self._within(wait, anext(chunks, b"")):
            if pieces is None:
                # a server without streaming sends one JSON object; its content type is not reliable
                streamed = not chunk.lstrip().startswith(b"{")
                longest = 4096 + 64 * max_tokens
                pieces = BodyPieces(self._place.where, streamed, self._patience.max_bytes, longest, [self._place.key])
            for piece in pieces.feed(chunk):
                wait = min(end, time.monotonic() + self._patience.gap)
                yield piece
                if piece.last:
                    return
        if pieces is None:
            raise OutsideFailed(f"{self._place.where}: an empty answer", subject=self.model)
        for piece in pieces.end():
            yield piece

    @asynccontextmanager
    async def _request(self, method: str, url: str, request: Any, deadline: float) -> AsyncIterator[httpx.Response]:
        """Send a request and yield its response before the body is read; close the connection in any case."""
        place, patience = self._place, self._patience
        if self._door is None:
            raise BadInput(f"{place.where}: the engine openai needs an egress door; pass door=", subject=self.model)
        if not place.key and self._endpoint == ENDPOINT:
            raise BadInput(f"{place.where}: needs a key; set {KEY_SETTING}", subject="llm_key")
        # no compression: a limit of bytes must also limit the decoded text
        headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "prunus"}
        if place.key:
            headers["authorization"] = f"Bearer {place.key}"
        if self._unreached is not None and patience.connect <= self._unreached_for() < 2 * patience.connect:
            raise self._unreached[1]  # the stages of an answer do not each wait for a server that is gone
        async with self._door.async_client(self._endpoint, seconds=patience.total) as client:
            waits = (patience.connect, patience.total, patience.total, patience.total)
            sent = client.build_request(method, url, json=request, headers=headers, timeout=waits)
            begun = time.monotonic()
            try:
                answer = await self._within(deadline, client.send(sent, stream=True))
            except OutsideFailed as error:
                if not error.sent:
                    again = self._unreached is not None and self._unreached_for() < patience.connect
                    self._unreached = self._unreached[0] if self._unreached and again else begun, error
                raise
            self._unreached = None
            try:
                if answer.status_code == 200 and not _is_plain(answer):
                    raise OutsideFailed(f"{place.where}: the answer is compressed although the request forbids it")
                yield answer
            finally:
                await answer.aclose()

    def _unreached_for(self) -> float:
        """Return the seconds since the first of the latest tries in a row without a connection; 0.0 after another."""
        return time.monotonic() - self._unreached[0] if self._unreached is not None else 0.0

    async def _error(self, answer: httpx.Response, deadline: float) -> str:
        """Return the message of an error response; only the beginning of its body is read."""
        if not _is_plain(answer):
            return ""
        start, chunks = b"", answer.aiter_raw()
        while len(start) < _MOST_OF_ERROR and (chunk := await self._within(deadline, anext(chunks, b""))):
            start += chunk
        return error_text(start[:_MOST_OF_ERROR])

    async def _within(self, deadline: float, work: Awaitable[T]) -> T:
        """Wait for the network until a deadline of the monotonic clock; errors name the model."""
        where, key = self._place.where, self._place.key
        try:
            with network_errors(where, "no answer within the time-out"):
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    return await work
        except OutsideFailed as error:
            line = str(error) if error.subject == where else f"{where}: {error}"  # the door's errors name the address
            told = one_line(line, [key], 300)
            raise OutsideFailed(told, subject=self.model, may_pass=error.may_pass, sent=error.sent) from None


def _is_plain(answer: httpx.Response) -> bool:
    """Tell whether a body is not compressed."""
    return bool(answer.headers.get("content-encoding", "identity") == "identity")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model on a server, and the key that no error may show."""

    where: str
    model: str
    key: str = field(repr=False)

    def failure(self, answer: httpx.Response, reason: str) -> PrunusError:
        """Return the error for an error response.

        :param reason: the server's message.
        """
        status = answer.status_code
        shown = one_line(reason, [self.key])
        tail = f": {shown}" if shown else ""
        if status in (401, 403):
            fix = f"check {KEY_SETTING}" if self.key else f"set {KEY_SETTING}"
            return OutsideFailed(f"{self.where}: the server refuses the key ({status}); {fix}", subject=self.model)
        if status in (400, 413, 422) and (status == 413 or _WINDOW_WORDS.search(reason)):
            return BadBudget(f"{self.where}: the prompt is too long for the model; lower the budget{tail}")
        if 300 <= status < 400:
            return OutsideFailed(f"{self.where}: the server redirects ({status}); set the new address as endpoint")
        if status == 404:
            return OutsideFailed(f"{self.where}: no such model or path (404); check both{tail}", subject=self.model)
        if status == 429 and "insufficient_quota" in reason:
            return OutsideFailed(f"{self.where}: the account's quota is used up (429){tail}", subject=self.model)
        seconds = retry_after(answer.headers, time.time())
        return OutsideFailed(
            f"{self.where}: HTTP {status}{wait_hint(seconds)}{tail}",
            subject=self.model,
            may_pass=status in BUSY or status == 409,
            retry_after=seconds,
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts in seconds, retries, and limits of a response.

    :param connect: timeout of the connection and TLS, and of all tries in a row to connect.
    :param first: timeout from the request to the first piece; a local server reads the whole prompt in this time.
    :param gap: timeout between two pieces; comments that keep a connection open do not count as pieces.
    :param total: timeout of the whole call, retries included.
    :param retries: most retries of a call that failed before its first piece.
    :param backoff: pause before the first retry; it doubles each time. The server's ``Retry-After`` wins.
    :param max_bytes: most bytes of one response.
    :param context_window: tokens of prompt and reply together; 0 if unknown.
    """

    connect: float = 2.0
    first: float = 120.0
    gap: float = 60.0
    total: float = 600.0
    retries: int = 3
    backoff: float = 0.5
    max_bytes: int = 64 * 1024 * 1024
    context_window: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Patience:
        """Read the table of settings ``llm_options``.

        :raises BadInput: a name is unknown, or a value is no positive number.
        """
        known = {field.name: str(field.type) for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in (options or {}).items():
            if name not in known:
                raise BadInput(f"llm_options: no such option: {name}; known: {', '.join(known)}", subject=name)
            whole = known[name] == "int"
            fits = isinstance(value, int) or (isinstance(value, float) and not whole)
            may_be_0 = name in ("retries", "backoff", "context_window")
            if not fits or isinstance(value, bool) or not (0 <= value < 1e12) or (value == 0 and not may_be_0):
                kind = "a whole number" if whole else "a number"
                raise BadInput(f"llm_options: {name}: {value!r} is not {kind} over 0", subject=name)
            values[name] = value if whole else float(value)
        return cls(**values)


# --- requests ------------------------------------------------------------------------------------

FORMS: Final = ("json_schema", "json_object", "prompt")
"""Ways to request JSON, best first: by a schema, as any object, by words in the prompt only."""


def body(model: str, messages: Sequence[Message], call: CallOptions, refused: frozenset[str]) -> dict[str, Any]:
    """Return the body of a request, without the options that the server refuses."""
    longest = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
    wanted: dict[str, Any] = {"temperature": call.temperature, "stream_options": {"include_usage": True}}
    if call.seed is not None:
        wanted["seed"] = call.seed
    if call.stop:
        wanted["stop"] = [encodable(text) for text in call.stop]
    if call.schema is not None:
        form = next(form for form in FORMS if form not in refused)
        if form == "json_schema":
            named = {"name": "reply", "schema": dict(call.schema), "strict": _strict(call.schema)}
            wanted["response_format"] = {"type": "json_schema", "json_schema": named}
        else:
            messages = with_schema(messages, call.schema)
            if form == "json_object":
                wanted["response_format"] = {"type": "json_object"}
    written = [{"role": message.role, "content": _content(message)} for message in messages]
    request = {"model": model, "messages": written, "stream": True, longest: call.max_tokens}
    return request | {name: value for name, value in wanted.items() if name not in refused}


def _content(message: Message) -> str | list[dict[str, Any]]:
    """Return the content of a message: its text, or a list of parts if it has pictures."""
    text = encodable(message.content)
    if not message.pictures:
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    return [*parts, *({"type": "image_url", "image_url": {"url": url}} for url in message.pictures)]


_COMPLAINTS: Final = (
    ("stream_options", re.compile(r"stream_options|include_usage")),
    ("max_tokens", re.compile(r"max_completion_tokens")),
    ("json_schema", re.compile(r"response_format|json_schema|structured output|guided", re.I)),
    ("json_object", re.compile(r"response_format|json_object|json_schema", re.I)),
    ("seed", re.compile(r"\bseed\b")),
    ("temperature", re.compile(r"\btemperature\b")),
    ("stop", re.compile(r"['\"]stop['\"]")),
)


def refused_option(status: int, reason: str, request: Mapping[str, Any]) -> str:
    """Return the option of a request that an error message refuses; '' for none.

    Servers respond with 400, 422, 500 or 501 to an option that they do not know, and name it in the message.
    """
    if status not in (400, 422, 500, 501):
        return ""
    form = request.get("response_format", {}).get("type", "")
    sent = {*request, form}
    return next((name for name, pattern in _COMPLAINTS if name in sent and pattern.search(reason)), "")


def _strict(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema is strict by the servers' rule: objects are closed, and all their members are required."""
    if schema.get("type") == "object":
        members = schema.get("properties", {})
        if schema.get("additionalProperties", True) is not False or {*members} != {*schema.get("required", ())}:
            return False
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    if isinstance(schema.get("items"), Mapping):
        inner.append(schema["items"])
    return all(_strict(part) for part in inner)


# --- responses -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delta:
    """One parsed chunk of a reply.

    :param text: the next part of the reply.
    :param finished: the reason of the end, ``stop`` or ``length``; '' before the end.
    :param tokens: (prompt, completion) where the server reports them.
    :param last: whether the server has marked the end of the stream.
    """

    text: str = ""
    finished: str = ""
    tokens: tuple[int, int] | None = None
    last: bool = False


class BodyPieces:
    """Parses a body, in chunks of any size, into pieces: server-sent events, or one JSON object.

    :param where: model and server, for errors.
    :param events: True for server-sent events; False for one JSON object.
    :param max_bytes: most bytes of the whole body.
    :param max_chars: most characters of the reply.
    :param secrets: texts that no error may show.
    """

    def __init__(self, where: str, events: bool, max_bytes: int, max_chars: int, secrets: Sequence[str] = ()) -> None:
        self._where = where
        self._secrets = tuple(secrets)
        self._events = events
        self._left, self._chars = max_bytes, max_chars
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []
        self.finished = False

    def feed(self, chunk: bytes) -> Iterator[Delta]:
        """Add bytes, and yield the pieces that are complete.

        :raises OutsideFailed: the body is malformed or too large, or the server reports an error in its stream.
        """
        self._left -= len(chunk)
        self._buffer += chunk
        if self._left < 0:
            raise OutsideFailed(f"{self._where}: the answer is over the limit of bytes; it was given up")
        if self._events:
            for line in self._lines():
                yield from self._line(line)
        if len(self._buffer) > _LONGEST_LINE:
            raise OutsideFailed(
                f"{self._where}: a line of the answer is over {_LONGEST_LINE >> 20} MiB; it was given up"
            )

    def end(self) -> Iterator[Delta]:
        """Yield the last pieces after the end of the body.

        :raises OutsideFailed: the reply is not complete.
        """
        if not self._events:
            yield self._read(bytes(self._buffer))
            return
        self._buffer += b"\n\n"
        for line in self._lines():
            yield from self._line(line)
        if not self.finished:
            raise OutsideFailed(f"{self._where}: the stream broke off before the answer was whole; ask again")

    def _lines(self) -> Iterator[bytes]:
        """Yield complete lines and remove them from the buffer; each byte is searched once, so time is linear."""
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            yield bytes(self._buffer[start:end]).removesuffix(b"\r")
            start = self._searched = end + 1
        del self._buffer[:start]
        self._searched = len(self._buffer)

    def _line(self, line: bytes) -> Iterator[Delta]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            if data.strip() == b"[DONE]":
                self.finished = True
                yield Delta(last=True)
            else:
                yield self._read(data)

    def _read(self, data: bytes) -> Delta:
        try:
            chunk = json.loads(data)
            piece = _piece(chunk)
        except (*WRONG_SHAPE, RecursionError):
            raise OutsideFailed(f"{self._where}: a malformed piece of an answer") from None
        if piece is None:
            raise OutsideFailed(f"{self._where}: {one_line(error_message(chunk), self._secrets) or 'an error'}")
        if piece.finished == "content_filter":
            raise OutsideFailed(f"{self._where}: the server's content filter withheld the answer")
        self._chars -= len(piece.text)
        if self._chars < 0:
            raise OutsideFailed(f"{self._where}: the answer is far longer than was asked for; it was given up")
        self.finished = self.finished or bool(piece.finished)
        return piece


def _piece(chunk: Any) -> Delta | None:
    """Parse one chunk or one complete reply; None for an error."""
    if chunk.get("error"):
        return None
    tokens = None
    if isinstance(chunk.get("usage"), Mapping):
        tokens = (_count(chunk["usage"].get("prompt_tokens")), _count(chunk["usage"].get("completion_tokens")))
    choices = chunk.get("choices") or []
    if not choices:
        return Delta(tokens=tokens)
    message = choices[0].get("delta") or choices[0].get("message") or {}
    text = message.get("content") or ""
    if message.get("refusal"):
        return Delta(finished="content_filter")
    if not isinstance(text, str):
        raise TypeError("content is no text")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # a lone surrogate is no character
    return Delta(text, str(choices[0].get("finish_reason") or ""), tokens)


def _count(value: Any) -> int:
    """Return a count that a server reports; 0 for anything but a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def window_of(data: bytes, model: str) -> tuple[int, bool]:
    """Return the context window that a server's list of models states for a model, and whether to ask ``/props``.

    The window is 0 where the list states none. An older llama.cpp server states the window that the model was trained
    with, but not the one that it is served with, which may be far smaller.
    """
    try:
        listed = json.loads(data)["data"]
        # a server with a single model may list it by another name
        named = [entry for entry in listed if entry.get("id") == model] or (listed if len(listed) == 1 else [])
        entry = named[0] if named else {}
        meta = entry.get("meta") or {}
        names = ("max_model_len", "context_window", "context_length", "max_context_length")
        stated = [entry.get(name) for name in names] + [meta.get("n_ctx")]
        window = next((size for size in map(_count, stated) if size), 0)
        return window, not window and "n_ctx_train" in meta
    except (*WRONG_SHAPE, RecursionError):
        return 0, False


def window_in_props(data: bytes) -> int:
    """Return the context window that ``/props`` of a llama.cpp server states; 0 where it states none."""
    try:
        return _count(json.loads(data)["default_generation_settings"]["n_ctx"])
    except (*WRONG_SHAPE, RecursionError):
        return 0
