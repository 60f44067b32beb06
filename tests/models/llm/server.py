"""A local server with the API of OpenAI; each test sets its responses and its faults.

It uses ``asyncio`` only, so that the test controls every byte on the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Wire:
    """Writes one response, byte by byte if need be."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, data: bytes | str) -> None:
        data = data.encode() if isinstance(data, str) else data
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, data: Any) -> None:
        await self.send(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")


Behaviour = Callable[[Request, Wire], Awaitable[None]]


class Server:
    """Answers each request with the next behaviour; the last one stays.

    :param behaviours: what is done, one a request.
    """

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = list(behaviours)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.left = asyncio.Event()
        """Set when a client went away before its answer was whole."""

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            pass
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, json.loads(content) if content else {})
        self.requests.append(request)
        behaviour = self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
        answering = asyncio.ensure_future(behaviour(request, Wire(writer)))
        leaving = asyncio.ensure_future(reader.read(1))
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            self.left.set()
        for one in (answering, leaving):
            one.cancel()
        for result in await asyncio.gather(answering, leaving, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk of a streamed answer."""
    delta = {} if text is None else {"content": text}
    return {"id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}  # fmt: skip


USAGE = {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [],
         "usage": {"prompt_tokens": 19, "completion_tokens": 2, "total_tokens": 21}}  # fmt: skip


def speak(*words: str, usage: bool = True, pause: float = 0.0) -> Behaviour:
    """Stream words as a good server does."""

    async def behave(request: Request, wire: Wire) -> None:
        await wire.head()
        await wire.event(chunk("", role="assistant"))
        for word in words:
            await asyncio.sleep(pause)
            await wire.event(chunk(word))
        await wire.event(chunk(finish="stop"))
        if usage and request.body.get("stream_options", {}).get("include_usage"):
            await wire.event(USAGE)
        await wire.event("[DONE]")
        await wire.end()

    return behave


def events(*data: Any, end: bool = True) -> Behaviour:
    """Stream exactly these events, whatever they are; without an end the connection is cut."""

    async def behave(request: Request, wire: Wire) -> None:
        await wire.head()
        for one in data:
            await wire.event(one)
        if end:
            await wire.end()

    return behave


def answer(status: int, body: Any, kind: str = "application/json", **headers: str) -> Behaviour:
    """Answer whole."""

    async def behave(request: Request, wire: Wire) -> None:
        await wire.head(status, kind, **headers)
        await wire.send(body if isinstance(body, bytes) else json.dumps(body))
        await wire.end()

    return behave


def fails(status: int, message: str = "", **headers: str) -> Behaviour:
    """Refuse as OpenAI does."""
    return answer(status, {"error": {"message": message, "type": "error", "param": None, "code": None}}, **headers)


def strict(without: Sequence[str], then: Behaviour) -> Behaviour:
    """Refuse requests that hold one of these options, or this type of ``response_format``."""

    async def behave(request: Request, wire: Wire) -> None:
        sent = {*request.body, request.body.get("response_format", {}).get("type", "")}
        wrong = next((name for name in without if name in sent), "")
        if wrong:
            await fails(400, f"Unknown parameter: '{wrong}'.")(request, wire)
        else:
            await then(request, wire)

    return behave


async def hang(request: Request, wire: Wire) -> None:
    """Take the request, and say nothing."""
    await asyncio.sleep(3600)


class PlainDoor:
    """A door without checks, for sockets of this machine."""

    def __init__(self) -> None:
        self.endpoints: list[str] = []
        self.clients: list[httpx.AsyncClient] = []

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        raise AssertionError("a model waits for the outside; it asks for the async client")

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        import httpx

        self.endpoints.append(endpoint)
        self.clients.append(httpx.AsyncClient(trust_env=False))
        return self.clients[-1]


@contextlib.asynccontextmanager
async def serving(*behaviours: Behaviour) -> AsyncIterator[Server]:
    """Run a server for the length of a block."""
    async with Server(*behaviours) as server:
        yield server


def model(engine: Any) -> Behaviour:
    """Answer with a real model, word by word as it writes; ends when the client goes away."""
    from prunus.core.events import TokenEvent
    from prunus.core.types import Message

    async def behave(request: Request, wire: Wire) -> None:
        messages = [Message(one["role"], one["content"]) for one in request.body["messages"]]
        names = ("max_tokens", "temperature", "seed", "stop")
        options = {name: request.body[name] for name in names if name in request.body}
        await wire.head()
        async with contextlib.aclosing(engine.stream(messages, **options)) as written:
            async for event in written:
                if isinstance(event, TokenEvent):
                    await wire.event(chunk(event.text))
                else:
                    tokens = {
                        "prompt_tokens": event.usage.prompt_tokens,
                        "completion_tokens": event.usage.completion_tokens,
                    }
                    await wire.event(chunk(finish="stop"))
                    await wire.event({"choices": [], "usage": tokens})
        await wire.event("[DONE]")
        await wire.end()

    return behave
