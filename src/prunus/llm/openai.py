"""``openai:MODEL``: any server that speaks chat completions, hosted or local.

Every byte goes through the egress door. Each call opens one connection and closes it when it ends,
whichever way: the stream is read to its end, given up, or cancelled. What a server refuses is left
out from then on: usage in the stream, JSON by schema, a seed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ..errors import BadBudget, BadInput, MissingExtra, OutsideFailed
from ..events import Event, TokenEvent, UsageEvent
from ..ports import Door, TokenCounter
from ..types import Message, Usage
from ._failures import KEY_SETTING, Again, Place, Refused, check_response
from ._shared import MESSAGE_TOKENS, Asked, Stops, check_messages, one_line
from ._wire import Patience, Piece, Pieces, body, complaint, window_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ENDPOINT: Final = "https://api.openai.com/v1"
_KEY: Final = re.compile(r"[\x21-\x7e]*")
_SENT: Final = frozenset(
    "host accept accept-encoding connection content-type content-length transfer-encoding authorization "
    "user-agent".split()
)
"""Headers that leave; what the package adds about this machine, and from variables of its own, stays here."""

_MOST_LISTED: Final = 4 * 1024 * 1024
"""Bytes of a server's list of models."""


class Engine:
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
        self._place = Place(f"{one_line(model, longest=80)} at {parts.netloc}", model, key.strip())

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
            try:
                async with self._client() as client:
                    from openai import AsyncStream

                    listing = client.get("/models", cast_to=object, stream=True, stream_cls=AsyncStream[object])
                    async with self._response(listing, end) as chunks:
                        while chunk := await self._next(chunks, end):
                            found += chunk
                            if len(found) > _MOST_LISTED:
                                raise OutsideFailed(f"{self._place.where}: the list of models is over 4 MiB")
            except Refused as refused:
                failure = self._place.failure(refused)
                raise (failure.failure if isinstance(failure, Again) else failure) from None
            except Again as again:
                raise again.failure from None
            self.context_window = window_of(bytes(found), self.model)
        return self.context_window

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the pieces of the answer, and its usage: 0 and 0 tokens where the server reports none.

        Tried again only while nothing has come: an answer that breaks off later is a failure.

        :raises BadInput: a key is missing, or an option is wrong.
        :raises BadBudget: the prompt is longer than the model's window.
        :raises OutsideFailed: the server failed, sent nonsense, or took too long.
        """
        asked = Asked.of(options)
        check_messages(messages)
        self._check_window(messages)
        started = time.monotonic()
        stops, tokens, tries = Stops(asked.stop), (0, 0), 0
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(messages, asked, started + self._patience.total)) as pieces:
                    async for piece in pieces:
                        begun = begun or bool(piece.text)
                        tokens = piece.tokens or tokens
                        text = stops.feed(piece.text)
                        if text:
                            yield TokenEvent(text)
                        if stops.done:
                            break
                break
            except Again as again:
                if begun:
                    raise OutsideFailed(f"{again.failure}; the answer broke off", subject=self.model) from None
                tries += not again.free
                await self._pause(again, tries, started + self._patience.total)
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

    async def _pause(self, again: Again, tries: int, end: float) -> None:
        """Wait before the next try; raise the failure when there is none."""
        if again.free:
            return
        pause = again.pause if again.pause >= 0 else self._patience.backoff * 2.0 ** (tries - 1)
        if tries > self._patience.retries or time.monotonic() + pause > end:
            asks = f"; the server asks to wait {again.pause:.0f} seconds" if again.pause > 0 else ""
            raise OutsideFailed(f"{again.failure}{asks}", subject=self.model) from None
        await asyncio.sleep(pause)

    async def _attempt(self, messages: Sequence[Message], asked: Asked, end: float) -> AsyncGenerator[Piece]:
        """Ask once, and yield what comes.

        :raises Again: the call may be tried again, if nothing has come.
        """
        patience = self._patience
        request = body(self.model, messages, asked, self.refused)
        pieces: Pieces | None = None
        wait = min(end, time.monotonic() + patience.first)
        try:
            async with self._client() as client:
                asking = client.chat.completions.create(**request)
                async with self._response(asking, wait) as chunks:
                    while chunk := await self._next(chunks, wait):
                        if pieces is None:
                            # a server that does not stream answers with one JSON object, whatever type it states
                            streamed = not chunk.lstrip().startswith(b"{")
                            longest = 4096 + 64 * asked.max_tokens
                            key = self._place.key
                            pieces = Pieces(self._place.where, streamed, patience.max_bytes, longest, [key])
                        for piece in pieces.feed(chunk):
                            wait = min(end, time.monotonic() + patience.gap)
                            yield piece
                            if piece.last:
                                return
                    if pieces is None:
                        raise OutsideFailed(f"{self._place.where}: an empty answer", subject=self.model)
                    for piece in pieces.end():
                        yield piece
        except Refused as refused:
            option = complaint(refused.status, refused.said, request)
            if option:
                self.refused |= {option}
                raise Again(OutsideFailed(f"{self._place.where}: refuses {option}"), free=True) from None
            raise self._place.failure(refused) from None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncOpenAI]:
        """Open a client of the package over the door's own; close it whatever happens."""
        try:
            import openai
        except ImportError as error:
            raise MissingExtra(
                "llm openai: the package openai is not installed; run: pip install 'prunus[openai]'", subject="openai"
            ) from error
        if self._door is None:
            raise BadInput(f"{self._place.where}: no way to the network was given", subject=self.model)
        key = self._place.key
        if not key and self._endpoint == ENDPOINT:
            raise BadInput(f"{self._place.where}: needs a key; set {KEY_SETTING}", subject="llm_key")

        async def check_request(request: Any) -> None:
            for name in [name for name in request.headers if name.lower() not in _SENT]:
                del request.headers[name]
            request.headers["accept-encoding"] = "identity"  # so that a limit of bytes is one of letters, too
            request.headers["user-agent"] = "prunus"
            if not key:
                request.headers.pop("authorization", None)

        http = self._door.async_client(self._endpoint, seconds=self._patience.total)
        hooks = http.event_hooks
        http.event_hooks = {
            "request": [*hooks.get("request", ()), check_request],
            "response": [check_response, *hooks.get("response", ())],
        }
        waits = openai.Timeout(self._patience.total, connect=self._patience.connect)
        async with openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self._endpoint,
            http_client=cast(Any, http),
            max_retries=0,
            timeout=waits,
            default_headers={"Authorization": f"Bearer {key or 'none'}"},
        ) as client:
            yield client

    @asynccontextmanager
    async def _response(self, asking: Any, deadline: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request, and give the body of its response as it comes."""
        with self._outside():
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                stream = await asking
        try:
            raw = stream.response  # read here and not by the package, which knows no limit
            if raw.headers.get("content-encoding", "identity") != "identity":
                raise OutsideFailed(f"{self._place.where}: the answer is compressed, which it was asked not to be")
            async with aclosing(raw.aiter_raw()) as chunks:
                yield chunks
        finally:
            await stream.close()

    async def _next(self, chunks: AsyncIterator[bytes], deadline: float) -> bytes:
        """Return the next bytes of a body; b'' at its end."""
        with self._outside():
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await anext(chunks, b"")

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """Turn what goes wrong on the way into :class:`Again`; nothing of the request comes with it."""
        import openai

        try:
            yield
        except (TimeoutError, openai.APITimeoutError):
            said = "no answer within the time-out"
        except OutsideFailed as error:  # of the egress door
            said = one_line(str(error), [self._place.key])
        except openai.APIConnectionError as error:
            said = f"no connection ({one_line(str(error.__cause__ or error), [self._place.key])})"
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("httpx", "httpcore", "httpx2", "httpcore2"):
                raise
            said = f"the connection broke ({one_line(str(error), [self._place.key])})"
        else:
            return
        raise Again(OutsideFailed(f"{self._place.where}: {said}", subject=self.model))
