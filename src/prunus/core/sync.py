"""Work that waits, called from code that does not: coroutines run to their end, plain work put into a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_a_thread(work: Callable[[], T]) -> T:
    """Do work that waits, without holding up whoever else uses this event loop."""
    import asyncio

    return await asyncio.to_thread(work)


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, also where an event loop is already running."""
    import asyncio  # here: cleaning and pruning do without it, and it takes its time

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    box: list[Any] = []

    def inside() -> None:
        try:
            box.append((True, asyncio.run(work())))
        except BaseException as error:  # handed over to the caller's thread, which raises it
            box.append((False, error))

    thread = threading.Thread(target=inside, daemon=True)
    thread.start()
    thread.join()
    done, value = box[0]
    if done:
        return value  # type: ignore[no-any-return]
    raise value
