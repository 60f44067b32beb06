"""The processes of `benchmarks.fetch`: the server, and the measured side.

python -m benchmarks.fetch_subject [serve]
"""

from __future__ import annotations

import asyncio
import gzip
import importlib.metadata
import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import httpx

from benchmarks.protocol import Clock, serve
from prunus.errors import PrunusError
from prunus.fetch.egress import Egress, EgressRules
from prunus.fetch.http import FetchRules, HttpFetcher, PageCache

PAGES = 1000
WORDS = "plum orchard harvest branch stone blossom market river valley winter sugar cellar label price table".split()


def page(number: int) -> bytes:
    """One page of 10 to 110 kB; the same on every run."""
    source = random.Random(number)
    lines = (f"<p>{' '.join(source.choices(WORDS, k=60))}.</p>" for _ in range(25 + number * 37 % 250))
    return f"<!doctype html><title>Page {number}</title><h1>Page {number}</h1>{''.join(lines)}".encode()


async def answer_all() -> None:
    """Serve the pages, compressed as most servers do, until the process ends; print the port first."""
    heads: dict[str, bytes] = {}
    for number in range(PAGES):
        body = gzip.compress(page(number), 6, mtime=0)
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
            f'Cache-Control: max-age=3600\r\nETag: "{number}"\r\nContent-Length: {len(body)}\r\n\r\n'
        )
        heads[f"/{number}"] = head.encode() + body
    heads["/robots.txt"] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                writer.write(heads[line.split()[1].decode()])
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def has_cache() -> bool:
    """Whether this version of Prunus has the disk cache."""
    return importlib.util.find_spec("prunus.fetch.cache") is not None


def cache_in(folder: str) -> PageCache:
    """The disk cache in a folder."""
    module = importlib.import_module("prunus.fetch.cache")
    made: PageCache = module.Cache(Path(folder), request_headers=fetcher_of(1, 1).request_headers)
    return made


def fetcher_of(port: int, at_once: int, cache: PageCache | None = None) -> HttpFetcher:
    """A fetcher that may reach the server."""
    rules = EgressRules(allow_hosts=(f"127.0.0.1:{port}",))
    return HttpFetcher(Egress(rules), FetchRules(at_once=at_once, per_host=at_once), cache=cache)


def op_fetch(clock: Clock, port: int, count: int, at_once: int, folder: str = "") -> dict[str, Any]:
    """Fetch the pages, many at once, and let each go when it came."""
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
    """The same with the bare HTTP library: no check, no limit, no politeness."""

    async def run() -> tuple[int, int]:
        size = 0
        slots = asyncio.Semaphore(at_once)
        async with httpx.AsyncClient(trust_env=False, http2=True) as client:

            async def one(number: int) -> None:
                nonlocal size
                async with slots:
                    answer = await client.get(f"http://127.0.0.1:{port}/{number}")
                    size += len(answer.raise_for_status().content)

            await asyncio.gather(*(one(number) for number in range(count)))
        return size, 0

    size, failed = clock.timed(lambda: asyncio.run(run()))
    return {"bytes": size, "failed": failed}


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(answer_all())
    else:
        serve(
            {"fetch": op_fetch, "httpx": op_httpx},
            {"tool": "prunus", "version": importlib.metadata.version("prunus"), "cache": has_cache()},
        )
