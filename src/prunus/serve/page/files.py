"""The files of the web page, with the headers that let a browser run them and nothing else."""

from __future__ import annotations

import hashlib
from functools import partial
from importlib.resources import files
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response

from ..server import Server

_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES: Final = (
    "page.css",
    "prune.css",
    "indexes.css",
    "tree.css",
    "icon.svg",
    "main.js",
    "dom.js",
    "key.js",
    "http.js",
    "pages.js",
    "ask.js",
    "progress.js",
    "snapshot.js",
    "markdown.js",
    "prune.js",
    "indexes.js",
    "tree.js",
)
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_page(app: FastAPI, server: Server) -> None:
    """Add the page at ``/`` and its files under ``/page/`` to an application. They are open: no secret is in them."""
    app.add_api_route("/", partial(_send, *_read("index.html")), methods=["GET"], include_in_schema=False)
    for name in _FILES:
        app.add_api_route(f"/page/{name}", partial(_send, *_read(name)), methods=["GET"], include_in_schema=False)


def _read(name: str) -> tuple[bytes, dict[str, str]]:
    """Return the content and the headers of a file."""
    content = (files(__package__) / "static" / name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]
    headers = {
        "Content-Type": f"{kind}; charset=utf-8",
        "Content-Security-Policy": _POLICY,
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        "Cache-Control": "no-cache",  # kept, and asked for again: a new version of the server has new files
    }
    return content, headers


async def _send(content: bytes, headers: dict[str, str], request: Request) -> Response:
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers)
