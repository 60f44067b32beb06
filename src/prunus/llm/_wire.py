"""The chat-completions format on the wire: what is sent, and what comes back, read within limits.

Nothing here touches the network. What a server sends is hostile until it is read: lines, answers
and numbers are bounded and checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from ..errors import BadInput, OutsideFailed
from ..types import Message
from ._shared import Asked, encodable, one_line, with_schema

_LONGEST_LINE: Final = 8 * 1024 * 1024
"""Bytes of one line; a whole answer that was not streamed is one line, too."""


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


def body(model: str, messages: Sequence[Message], asked: Asked, refused: frozenset[str]) -> dict[str, Any]:
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
class Piece:
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

    def feed(self, chunk: bytes) -> Iterator[Piece]:
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

    def end(self) -> Iterator[Piece]:
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

    def _line(self, line: bytes) -> Iterator[Piece]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            if data.strip() == b"[DONE]":
                self.finished = True
                yield Piece(last=True)
            else:
                yield self._read(data)

    def _read(self, data: bytes) -> Piece:
        try:
            found = json.loads(data)
            piece = _piece(found)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise OutsideFailed(f"{self._where}: a malformed piece of an answer") from None
        if piece is None:
            raise OutsideFailed(f"{self._where}: {one_line(_said(found), self._secrets) or 'an error'}")
        if piece.finished == "content_filter":
            raise OutsideFailed(f"{self._where}: the server's content filter withheld the answer")
        self._chars -= len(piece.text)
        if self._chars < 0:
            raise OutsideFailed(f"{self._where}: the answer is far longer than was asked for; it was given up")
        self.finished = self.finished or bool(piece.finished)
        return piece


def _piece(found: Any) -> Piece | None:
    """Read one chunk or one whole answer; None when it is an error."""
    if found.get("error"):
        return None
    tokens = None
    if isinstance(found.get("usage"), Mapping):
        tokens = (_count(found["usage"].get("prompt_tokens")), _count(found["usage"].get("completion_tokens")))
    choices = found.get("choices") or []
    if not choices:
        return Piece(tokens=tokens)
    said = choices[0].get("delta") or choices[0].get("message") or {}
    text = said.get("content") or ""
    if said.get("refusal"):
        return Piece(finished="content_filter")
    if not isinstance(text, str):
        raise TypeError("content is no text")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a pair is no character
    return Piece(text, str(choices[0].get("finish_reason") or ""), tokens)


def _count(value: Any) -> int:
    """Return a count that a server reports, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def words_of(data: bytes) -> str:
    """Return what the body of an error says: its message where it has one, else the body itself."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    return _said(found) or data.decode("utf-8", "replace")


def _said(found: Any) -> str:
    """Return the message of an error, in any of the shapes that servers give it."""
    for _ in range(4):
        if isinstance(found, Mapping):
            found = next((found[name] for name in ("error", "message", "detail", "msg") if found.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)[:2000] if found else ""


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
