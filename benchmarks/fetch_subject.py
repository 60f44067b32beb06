"""The measured process of `benchmarks.fetch`.

python -m benchmarks.fetch_subject
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import httpx

from benchmarks.protocol import Clock, serve
from prunus.core.errors import PrunusError
from prunus.web.door.egress import Egress, EgressRules
from prunus.web.fetch.http import FetchRules, HttpFetcher


def has_cache() -> bool:
    """Return whether this version of Prunus has the disk cache."""
    return importlib.util.find_spec("prunus.web.fetch.cache") is not None


def cache_in(folder: str) -> Any:
    """Return the disk cache in a folder."""
    module = importlib.import_module("prunus.web.fetch.cache")
    return module.Cache(Path(folder), request_headers=fetcher_of(1, 1).request_headers)


def fetcher_of(port: int, at_once: int, cache: Any = None) -> HttpFetcher:
    """Return a fetcher that may reach the local server."""
    rules = EgressRules(allow_hosts=(f"127.0.0.1:{port}",))
    return HttpFetcher(Egress(rules), FetchRules(at_once=at_once, per_host=at_once), cache=cache)


def op_fetch(clock: Clock, port: int, count: int, at_once: int, folder: str = "") -> dict[str, Any]:
    """Fetch the pages, several at the same time, and keep none in memory."""
    cache = cache_in(folder) if folder else None
    fetcher = fetcher_of(port, at_once, cache)

    async def run() -> tuple[int, int]:
        size = failed = 0
        async with fetcher:
            async for _, found in fetcher.fetch_many(f"http://127.0.0.1:{port}/{n}" for n in range(count)):
                if isinstance(found, PrunusError):
                    failed += 1
                else:
                    size += len(found.content)
        return size, failed

    size, failed = clock.timed(lambda: asyncio.run(run()))
    return {"bytes": size, "failed": failed}


def op_httpx(clock: Clock, port: int, count: int, at_once: int) -> dict[str, Any]:
    """Fetch the pages with the HTTP library alone: without checks, limits and politeness."""

    async def run() -> tuple[int, int]:
        size = 0
        slots = asyncio.Semaphore(at_once)
        async with httpx.AsyncClient(trust_env=False, http2=True) as client:

            async def fetch(number: int) -> None:
                nonlocal size
                async with slots:
                    response = await client.get(f"http://127.0.0.1:{port}/{number}")
                    size += len(response.raise_for_status().content)

            await asyncio.gather(*(fetch(number) for number in range(count)))
        return size, 0

    size, failed = clock.timed(lambda: asyncio.run(run()))
    return {"bytes": size, "failed": failed}


if __name__ == "__main__":
    serve(
        {"fetch": op_fetch, "httpx": op_httpx},
        {"tool": "prunus", "version": importlib.metadata.version("prunus"), "cache": has_cache()},
    )
