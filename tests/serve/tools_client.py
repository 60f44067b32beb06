"""The official client of the Model Context Protocol, over HTTP and with a server as a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.cli.command import PROGRAM
from tests.extras import need

MODES = ("legacy", "auto")
"""Clients before and since the version of 2026-07-28, which has no sessions."""


@asynccontextmanager
async def over_http(url: str, mode: str = "auto", key: str = "") -> AsyncIterator[Any]:
    """Connect to a running server.

    :param url: address of the server, without a path.
    """
    from mcp.client.streamable_http import streamable_http_client

    mcp, httpx2 = need("mcp"), need("httpx2")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def as_process(folder: Path, *arguments: str, mode: str = "auto", **settings: str) -> AsyncIterator[Any]:
    """Start ``prunus mcp`` and connect to it."""
    from mcp.client.stdio import StdioServerParameters

    started = StdioServerParameters(
        command=sys.executable,
        args=[*PROGRAM[1:], "mcp", *arguments],
        env=environment_in(folder, **settings),
        cwd=str(folder),
    )
    async with need("mcp").Client(started, mode=mode) as client:
        yield client


def environment_in(folder: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a process with its home in a folder."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PRUNUS_")}
    own = {"home": str(folder / "home"), "extractor": "sentences", **settings}
    return plain | {f"PRUNUS_{name.upper()}": value for name, value in own.items()}


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return next(part.text for part in result.content if part.type == "text")


def error_of(result: Any) -> str:
    """Return the error of a result; check that it is one line."""
    assert result.is_error, result
    [part] = result.content
    assert "\n" not in part.text and "Traceback" not in part.text and "pydantic" not in part.text
    return str(part.text)
