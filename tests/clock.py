"""How long a call takes, so measured that a busy machine and a crowded process do not fail a test."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds_of(call: Callable[[], object]) -> float:
    """Return the processor's seconds of this thread for a call.

    Other processes, other threads and the collector of garbage do not count: at the end of a long run the collector
    has millions of objects of other tests to look through, and takes half a second for it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        call()
        return time.thread_time() - start
    finally:
        if collects:
            gc.enable()


def within(seconds: float, call: Callable[[], object], tries: int = 3) -> bool:
    """Say whether a call is done in so many seconds; what is slow only once was a machine that paused."""
    return any(seconds_of(call) < seconds for _ in range(tries))
