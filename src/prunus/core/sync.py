"""Bridges between blocking and ``async`` code: run a coroutine from plain code, run plain code in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_a_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, so that other tasks of this event loop go on."""
    import asyncio

    return await asyncio.to_thread(work)


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from plain code, even while an event loop is running, as in a notebook.

    :param work: makes the coroutine; called in the thread that runs it.
    """
    import asyncio  # imported here: it is slow to load, and cleaning and pruning do not need it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    # a loop cannot be entered twice in one thread: the coroutine gets a thread with its own loop
    outcome: list[Any] = []

    def run_in_thread() -> None:
        try:
            outcome.append((True, asyncio.run(work())))
        except BaseException as error:  # the caller's thread raises it
            outcome.append((False, error))

    thread = threading.Thread(target=run_in_thread, daemon=True)
    thread.start()
    thread.join()
    succeeded, value = outcome[0]
    if succeeded:
        return value  # type: ignore[no-any-return]
    raise value
