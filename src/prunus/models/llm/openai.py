"""``openai:MODEL``: any server that speaks chat completions, hosted or local.

Every byte goes through the egress door. Each call opens one connection and closes it when it ends,
whichever way: the stream is read to its end, given up, or cancelled. What a server refuses is left
out from then on: usage in the stream, JSON by schema, a seed. What a server sends is hostile until
it is read: lines, answers and numbers are bounded and checked.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadBudget, BadInput, OutsideFailed, PrunusError, one_line
from ...core.events import Event, TokenEvent, UsageEvent
from ...core.ports import Door, LanguageModel, TokenCounter
from ...core.types import Message, Usage
from ...web.json_client import BUSY, error_message, error_text, network_errors
from ...web.retry import Retries, retry_after, wait_hint
from ._shared import MESSAGE_TOKENS, CallOptions, Stops, check_messages, encodable, with_schema

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

ENDPOINT: Final = "https://api.openai.com/v1"
KEY_SETTING: Final = "llm_key (PRUNUS_LLM_KEY)"
"""What the key is called where it is set; errors name it, and never the key."""

_KEY: Final = re.compile(r"[\x21-\x7e]*")
_WINDOW_WORDS: Final = re.compile(r"context[_ ](length|window|size)|maximum context|prompt is too long", re.I)
_LONGEST_LINE: Final = 8 * 1024 * 1024
"""Bytes of one line; a whole answer that was not streamed is one line, too."""

_MOST_LISTED: Final = 4 * 1024 * 1024
"""Bytes of a server's list of models."""

_MOST_SAID: Final = 16_384
"""Bytes that are read of an error."""


class Engine(LanguageModel):
    """Asks a server that speaks chat completions.

    :param model: as the server calls it.
    :param door: the way to the network.
    :param endpoint: base URL, as the operator wrote it; ``…/chat/completions`` is asked.
    :param key: sent as a bearer token to that endpoint alone; '' sends none.
    :param tokenizer: counts tokens; the server's own count may differ.
    :param options: time-outs, retries and limits by name, see ``Patience``.
    """

    name = "openai"
    real = True
    sees_pictures = True  # where its model does; one that does not refuses the call

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
            raise BadInput(f"{KEY_SETTING}: holds characters that no key has; write it anew", subject="llm_key")
        self._endpoint = (endpoint or ENDPOINT).rstrip("/")
        parts = urlsplit(self._endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            shown = one_line(f"{parts.scheme}://{parts.hostname}{parts.path}")
            raise BadInput(f"llm endpoint {shown}: give it as https://host/v1, and the key as {KEY_SETTING}")
        self.model = model
        self.refused: frozenset[str] = frozenset()
        self._door = door
        self._tokenizer = tokenizer
        self._patience = Patience.of(options)
        self.context_window = self._patience.context_window
        self._place = ServedModel(f"{one_line(model, longest=80)} at {parts.netloc}", model, key.strip())

    def __repr__(self) -> str:
        return f"openai.Engine({self.model!r}, endpoint={self._endpoint!r})"

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count tokens with the tokenizer that was given.

        :raises BadInput: none was given.
        """
        if self._tokenizer is None:
            raise BadInput(f"{self._place.where}: no tokenizer was given to count with", subject="tokenizer")
        return self._tokenizer.count(texts)

    async def ask_window(self) -> int:
        """Return the model's context window: as configured, or as the server's list of models states it; else 0.

        :raises OutsideFailed: the server does not answer.
        """
        if not self.context_window:
            end = time.monotonic() + self._patience.connect + self._patience.gap
            found = bytearray()
            async with self._asked("GET", "/models", None, end) as answer:
                if answer.status_code != 200:
                    raise self._place.failure(answer, await self._error(answer, end))
                chunks = answer.aiter_raw()
                while chunk := await self._within(end, anext(chunks, b"")):
                    found += chunk
                    if len(found) > _MOST_LISTED:
                        raise OutsideFailed(f"{self._place.where}: the list of models is over 4 MiB")
            self.context_window = window_of(bytes(found), self.model)
        return self.context_window

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the pieces of the answer, and its usage: 0 and 0 tokens where the server reports none.

        Tried again only while nothing has come: an answer that breaks off later is a failure.

        :raises BadInput: a key is missing, or an option is wrong.
        :raises BadBudget: the prompt is longer than the model's window.
        :raises OutsideFailed: the server failed, sent nonsense, or took too long.
        """
        asked = CallOptions.of(options)
        check_messages(messages)
        self._check_window(messages)
        started, patience = time.monotonic(), self._patience
        end = started + patience.total
        retries = Retries(patience.retries + 1, patience.backoff, longest=patience.total)
        piece, rest = await retries.acall(
            lambda: self._begin(messages, asked, end), left=lambda: end - time.monotonic()
        )
        stops, tokens = Stops(asked.stop), (0, 0)
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
        """Refuse a prompt that is longer than the window by itself; the server has the last word on the rest."""
        if self.context_window and self._tokenizer is not None:
            prompt = int(self.count([message.content for message in messages]).sum()) + MESSAGE_TOKENS * len(messages)
            if prompt >= self.context_window:
                raise BadBudget(
                    f"{self._place.where}: a prompt of about {prompt} tokens is over the window of "
                    f"{self.context_window}; lower the budget",
                    subject=self.model,
                )

    async def _begin(
        self, messages: Sequence[Message], asked: CallOptions, end: float
    ) -> tuple[Delta | None, AsyncGenerator[Delta]]:
        """Ask once, and return the first piece that holds words (or the last piece), and those that follow it."""
        pieces = self._pieces(messages, asked, end)
        first: Delta | None = None
        async for piece in pieces:
            first = replace(piece, tokens=piece.tokens or (first.tokens if first else None))
            if piece.text:
                break
        return first, pieces

    async def _pieces(self, messages: Sequence[Message], asked: CallOptions, end: float) -> AsyncGenerator[Delta]:
        """Ask, again without each option that the server refuses, and yield what comes."""
        while True:
            request = body(self.model, messages, asked, self.refused)
            wait = min(end, time.monotonic() + self._patience.first)
            async with self._asked("POST", "/chat/completions", request, wait) as answer:
                if answer.status_code == 200:
                    async with aclosing(self._read(answer, asked.max_tokens, wait, end)) as pieces:
                        async for piece in pieces:
                            yield piece
                    return
                said = await self._error(answer, wait)
            option = complaint(answer.status_code, said, request)
            if not option:
                raise self._place.failure(answer, said)
            self.refused |= {option}

    async def _read(self, answer: httpx.Response, max_tokens: int, wait: float, end: float) -> AsyncGenerator[Delta]:
        """Yield the pieces of an answer; ``wait`` and ``end`` are when the first piece and the last must have come."""
        pieces: Pieces | None = None
        chunks = answer.aiter_raw()
        while chunk := await self._within(wait, anext(chunks, b"")):
            if pieces is None:
                # a server that does not stream answers with one JSON object, whatever type it states
                streamed = not chunk.lstrip().startswith(b"{")
                longest = 4096 + 64 * max_tokens
                pieces = Pieces(self._place.where, streamed, self._patience.max_bytes, longest, [self._place.key])
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
    async def _asked(self, method: str, path: str, request: Any, deadline: float) -> AsyncIterator[httpx.Response]:
        """Send a request and give its response, the body still to come; close the connection whatever happens."""
        place, patience = self._place, self._patience
        if self._door is None:
            raise BadInput(f"{place.where}: no way to the network was given", subject=self.model)
        if not place.key and self._endpoint == ENDPOINT:
            raise BadInput(f"{place.where}: needs a key; set {KEY_SETTING}", subject="llm_key")
        # compressed, a limit of bytes would be none of letters
        headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "prunus"}
        if place.key:
            headers["authorization"] = f"Bearer {place.key}"
        async with self._door.async_client(self._endpoint, seconds=patience.total) as client:
            waits = (patience.connect, patience.total, patience.total, patience.total)
            sent = client.build_request(method, self._endpoint + path, json=request, headers=headers, timeout=waits)
            answer = await self._within(deadline, client.send(sent, stream=True))
            try:
                if answer.status_code == 200 and not _is_plain(answer):
                    raise OutsideFailed(f"{place.where}: the answer is compressed, which it was asked not to be")
                yield answer
            finally:
                await answer.aclose()

    async def _error(self, answer: httpx.Response, deadline: float) -> str:
        """Return what a response that is no success says, by no more than the beginning of its body."""
        if not _is_plain(answer):
            return ""
        found, chunks = b"", answer.aiter_raw()
        while len(found) < _MOST_SAID and (chunk := await self._within(deadline, anext(chunks, b""))):
            found += chunk
        return error_text(found[:_MOST_SAID])

    async def _within(self, deadline: float, work: Awaitable[T]) -> T:
        """Wait for the network until a moment of the monotonic clock; what goes wrong names the model."""
        where, key = self._place.where, self._place.key
        try:
            with network_errors(where, "no answer within the time-out"):
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    return await work
        except OutsideFailed as error:
            said = str(error) if error.subject == where else f"{where}: {error}"  # the door names the address
            raise OutsideFailed(one_line(said, [key], 300), subject=self.model, may_pass=error.may_pass) from None


def _is_plain(answer: httpx.Response) -> bool:
    """Tell whether a body comes as it is, and not compressed."""
    return bool(answer.headers.get("content-encoding", "identity") == "identity")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model at a server, and the key that no error may show."""

    where: str
    model: str
    key: str = field(repr=False)

    def failure(self, answer: httpx.Response, said: str) -> PrunusError:
        """Return the error for an answer that is no success.

        :param said: what it says, in words of the server.
        """
        status = answer.status_code
        shown = one_line(said, [self.key])
        tail = f": {shown}" if shown else ""
        if status in (401, 403):
            fix = f"check {KEY_SETTING}" if self.key else f"set {KEY_SETTING}"
            return OutsideFailed(f"{self.where}: the server refuses the key ({status}); {fix}", subject=self.model)
        if status in (400, 413, 422) and (status == 413 or _WINDOW_WORDS.search(said)):
            return BadBudget(f"{self.where}: the prompt is too long for the model; lower the budget{tail}")
        if 300 <= status < 400:
            return OutsideFailed(f"{self.where}: the server sends elsewhere ({status}); write that address instead")
        if status == 404:
            return OutsideFailed(f"{self.where}: no such model or path (404); check both{tail}", subject=self.model)
        if status == 429 and "insufficient_quota" in said:
            return OutsideFailed(f"{self.where}: the account's quota is used up (429){tail}", subject=self.model)
        asked = retry_after(answer.headers, time.time())
        return OutsideFailed(
            f"{self.where}: HTTP {status}{wait_hint(asked)}{tail}",
            subject=self.model,
            may_pass=status in BUSY or status == 409,
            retry_after=asked,
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for, and how much it may send. Seconds and bytes.

    :param connect: for the connection and TLS.
    :param first: from the request to the first piece; a local server reads the whole prompt in this time.
    :param gap: between two pieces; comments that keep a connection open are no pieces.
    :param total: for the whole call, with its retries.
    :param retries: how often a call is tried again that failed before its first piece.
    :param backoff: before the first retry; doubled each time. ``Retry-After`` of the server wins.
    :param max_bytes: of one answer, as sent.
    :param context_window: tokens of prompt and reply together; 0: not known.
    """

    connect: float = 10.0
    first: float = 120.0
    gap: float = 60.0
    total: float = 600.0
    retries: int = 3
    backoff: float = 0.5
    max_bytes: int = 64 * 1024 * 1024
    context_window: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Patience:
        """Make it from a table of settings.

        :raises BadInput: an unknown name, or a value that is no positive number.
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


# --- what is sent --------------------------------------------------------------------------------

FORMS: Final = ("json_schema", "json_object", "prompt")
"""How JSON is asked for, best first: by schema, as any object, by words alone."""


def body(model: str, messages: Sequence[Message], asked: CallOptions, refused: frozenset[str]) -> dict[str, Any]:
    """Return a request, without what the server is known to refuse."""
    longest = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
    wanted: dict[str, Any] = {"temperature": asked.temperature, "stream_options": {"include_usage": True}}
    if asked.seed is not None:
        wanted["seed"] = asked.seed
    if asked.stop:
        wanted["stop"] = [encodable(one) for one in asked.stop]
    if asked.schema is not None:
        form = next(form for form in FORMS if form not in refused)
        if form == "json_schema":
            named = {"name": "reply", "schema": dict(asked.schema), "strict": _strict(asked.schema)}
            wanted["response_format"] = {"type": "json_schema", "json_schema": named}
        else:
            messages = with_schema(messages, asked.schema)
            if form == "json_object":
                wanted["response_format"] = {"type": "json_object"}
    written = [{"role": message.role, "content": _content(message)} for message in messages]
    request = {"model": model, "messages": written, "stream": True, longest: asked.max_tokens}
    return request | {name: value for name, value in wanted.items() if name not in refused}


def _content(message: Message) -> str | list[dict[str, Any]]:
    """Return a message's content: text, or with pictures its parts."""
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


def complaint(status: int, said: str, request: Mapping[str, Any]) -> str:
    """Return the part of a request that a server refuses, by its error; '' when it means none.

    Servers answer 400, 422, 500 or 501 to an option that they do not know, and name it in words.
    """
    if status not in (400, 422, 500, 501):
        return ""
    form = request.get("response_format", {}).get("type", "")
    sent = {*request, form}
    return next((name for name, pattern in _COMPLAINTS if name in sent and pattern.search(said)), "")


def _strict(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema is strict as servers mean it: objects are closed, and all their members required."""
    if schema.get("type") == "object":
        members = schema.get("properties", {})
        if schema.get("additionalProperties", True) is not False or {*members} != {*schema.get("required", ())}:
            return False
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    if isinstance(schema.get("items"), Mapping):
        inner.append(schema["items"])
    return all(_strict(one) for one in inner)


# --- what comes back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delta:
    """One chunk of an answer, read.

    :param finished: why the model ended, ``stop`` or ``length``; '' when it goes on.
    :param tokens: (prompt, completion) where the server says so.
    """

    text: str = ""
    finished: str = ""
    tokens: tuple[int, int] | None = None
    last: bool = False


class Pieces:
    """Reads a body, given in any cuts, into pieces: server-sent events, or one JSON object.

    :param where: the server, for errors.
    :param events: False: the server did not stream; its whole answer is one JSON object.
    :param max_bytes: of the whole body.
    :param max_chars: of the answer.
    :param secrets: what no error may show.
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
        """Take bytes in, and yield the pieces that are whole.

        :raises OutsideFailed: malformed, too large, or an error that the server put into its stream.
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
        """Yield what is left when the body has ended.

        :raises OutsideFailed: the answer is not whole.
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
        """Take whole lines out of the buffer; a byte is looked at once."""
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
            found = json.loads(data)
            piece = _piece(found)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise OutsideFailed(f"{self._where}: a malformed piece of an answer") from None
        if piece is None:
            raise OutsideFailed(f"{self._where}: {one_line(error_message(found), self._secrets) or 'an error'}")
        if piece.finished == "content_filter":
            raise OutsideFailed(f"{self._where}: the server's content filter withheld the answer")
        self._chars -= len(piece.text)
        if self._chars < 0:
            raise OutsideFailed(f"{self._where}: the answer is far longer than was asked for; it was given up")
        self.finished = self.finished or bool(piece.finished)
        return piece


def _piece(found: Any) -> Delta | None:
    """Read one chunk or one whole answer; None when it is an error."""
    if found.get("error"):
        return None
    tokens = None
    if isinstance(found.get("usage"), Mapping):
        tokens = (_count(found["usage"].get("prompt_tokens")), _count(found["usage"].get("completion_tokens")))
    choices = found.get("choices") or []
    if not choices:
        return Delta(tokens=tokens)
    said = choices[0].get("delta") or choices[0].get("message") or {}
    text = said.get("content") or ""
    if said.get("refusal"):
        return Delta(finished="content_filter")
    if not isinstance(text, str):
        raise TypeError("content is no text")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a pair is no character
    return Delta(text, str(choices[0].get("finish_reason") or ""), tokens)


def _count(value: Any) -> int:
    """Return a count that a server reports, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def window_of(data: bytes, model: str) -> int:
    """Return the context window that a list of models states for a model; 0 when it states none."""
    try:
        listed = json.loads(data)["data"]
        named = [one for one in listed if one.get("id") == model] or (listed if len(listed) == 1 else [])
        one = named[0] if named else {}
        inner = one.get("meta") or {}
        names = ("max_model_len", "context_window", "context_length", "max_context_length")
        found = [one.get(name) for name in names] + [inner.get("n_ctx"), inner.get("n_ctx_train")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 0
    return next((size for size in map(_count, found) if size), 0)
