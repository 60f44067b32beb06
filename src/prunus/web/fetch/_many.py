"""Many at once: bounded, each failing alone, in order or as they come, and nothing left behind when it stops."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias

from ...core.errors import PrunusError
from ...core.types import Page

Result: TypeAlias = tuple[int, Page | PrunusError]
"""Position of the URL, and what became of it."""

Work: TypeAlias = Callable[[str], Awaitable[Page | PrunusError]]


async def each(work: Work, urls: Iterable[str], limit: int, ordered: bool) -> AsyncGenerator[Result, None]:
    """Yield what ``work`` returns for each URL, at most ``limit`` of them under way or waiting to be taken."""
    running: deque[asyncio.Task[Result]] = deque()
    coming = _tasks(work, urls)
    try:
        while True:
            while len(running) < max(1, limit) and (task := next(coming, None)) is not None:
                running.append(task)
            if not running:
                return
            done = running[0] if ordered else await _first(running)
            result = await done
            running.remove(done)
            yield result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _tasks(work: Work, urls: Iterable[str]) -> Iterator[asyncio.Task[Result]]:
    """Start a task for each URL when it is asked for."""

    async def numbered(position: int, url: str) -> Result:
        return position, await work(url)

    for position, url in enumerate(urls):
        yield asyncio.get_running_loop().create_task(numbered(position, url))


async def _first(running: Iterable[asyncio.Task[Result]]) -> asyncio.Task[Result]:
    """Wait for any of the tasks."""
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return next(task for task in running if task in done)
