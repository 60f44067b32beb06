"""Concurrent fetching of many URLs, with a bound on the pages under way; a failure ends only its own page."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias

from ...core.errors import PrunusError
from ...core.types import Page

Result: TypeAlias = tuple[int, Page | PrunusError]
"""Position of the URL, and its page or error."""

Work: TypeAlias = Callable[[str], Awaitable[Page | PrunusError]]


async def run_all(work: Work, urls: Iterable[str], limit: int, ordered: bool) -> AsyncGenerator[Result, None]:
    """Yield the result of ``work`` for every URL; closing the generator cancels and awaits all tasks.

    :param limit: most URLs under way, finished but not yet yielded ones included.
    :param ordered: whether to yield in the order of the URLs; else the first finished comes first.
    """
    running: deque[asyncio.Task[Result]] = deque()
    tasks = _tasks(work, urls)
    try:
        while True:
            while len(running) < max(1, limit) and (task := next(tasks, None)) is not None:
                running.append(task)
            if not running:
                return
            finished = running[0] if ordered else await _first_finished(running)
            result = await finished
            running.remove(finished)
            yield result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _tasks(work: Work, urls: Iterable[str]) -> Iterator[asyncio.Task[Result]]:
    """Start the task of each URL lazily, when the caller takes it."""

    async def numbered(position: int, url: str) -> Result:
        return position, await work(url)

    for position, url in enumerate(urls):
        yield asyncio.get_running_loop().create_task(numbered(position, url))


async def _first_finished(running: Iterable[asyncio.Task[Result]]) -> asyncio.Task[Result]:
    """Wait for the first finished task."""
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return next(task for task in running if task in done)
