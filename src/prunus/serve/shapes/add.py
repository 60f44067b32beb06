"""The shapes that the operator switched on, and their errors in the form that their clients read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..server import Server
from .firecrawl import add_firecrawl
from .jina import add_jina
from .markdown import add_markdown
from .openwebui import add_openwebui
from .rerank import add_rerank
from .tavily import add_tavily

ADD: Final[Mapping[str, Callable[[FastAPI, Server], None]]] = {
    "firecrawl": add_firecrawl,
    "jina": add_jina,
    "markdown": add_markdown,
    "openwebui": add_openwebui,
    "rerank": add_rerank,
    "tavily": add_tavily,
}
"""What adds the routes of each shape of :data:`~prunus.serve.options.SHAPES`."""

Written = Callable[[int, Mapping[str, Any]], dict[str, Any]]
"""Writes an error, given its status and the fields of Prunus's own, as the clients of a shape read it."""


def _firecrawl(status: int, error: Mapping[str, Any]) -> dict[str, Any]:
    return {"success": False, "error": error["message"], "code": str(error["type"]).upper()}


def _jina(status: int, error: Mapping[str, Any]) -> dict[str, Any]:
    message, name = error["message"], error["type"]
    return {
        "data": None, "code": status, "status": status * 100, "name": name, "message": message,
        "readableMessage": f"{name}: {message}",
    }  # fmt: skip


_ERRORS: Final[Mapping[str, Written]] = {
    "/v2/rerank": lambda status, error: {"message": error["message"]},
    "/v1/rerank": lambda status, error: {"message": error["message"], "error": error},
    "/v2/": _firecrawl,
    "/tavily/": lambda status, error: {"detail": {"error": error["message"]}},
    "/r/": _jina,
    "/s/": _jina,
}
"""How errors are written, by the beginning of the path; the first that fits counts."""
_STATUS: Final[Mapping[str, Mapping[int, int]]] = {"/v2/": {502: 500, 504: 408}}
"""Statuses that mean something else to the clients of a shape: Firecrawl's asks three times after a 502."""


def add_shapes(app: FastAPI, server: Server, names: Sequence[str]) -> None:
    """Add the routes of shapes to an application, and what writes their errors."""
    for name in names:
        ADD[name](app, server)


class ShapedErrors:
    """Middleware around the guard: an error on the path of a shape is written as its clients read errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        path = str(scope.get("path", ""))
        start = next((start for start in _ERRORS if path.startswith(start)), "")
        if scope["type"] != "http" or not start:
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        body = b""

        async def shaped(message: Message) -> None:
            nonlocal begun, body
            if message["type"] == "http.response.start" and message["status"] >= 400:
                begun = message
                return
            if begun is None:
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            status = int(begun["status"])
            body = _shaped(start, status, body)
            own = [(name, value) for name, value in begun["headers"] if name.lower() != b"content-length"]
            headers = [*own, (b"content-length", str(len(body)).encode())]
            await send({**begun, "status": _STATUS.get(start, {}).get(status, status), "headers": headers})
            await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, shaped)


def _shaped(start: str, status: int, body: bytes) -> bytes:
    """Return the body of an error as the clients of a shape read it; one that is none of Prunus's own stays."""
    try:
        error = json.loads(body)["error"]
        return json.dumps(_ERRORS[start](status, error), ensure_ascii=False).encode()
    except (ValueError, KeyError, TypeError):
        return body
