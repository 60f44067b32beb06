"""Measure the time of a call, so that a busy machine does not fail a test."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds_of(call: Callable[[], object]) -> float:
    """Return the processor seconds of this thread for a call.

    Other processes, other threads and garbage collection do not count. At the end of a long run the collector scans
    millions of objects of other tests, which takes half a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        call()
        return time.thread_time() - start
    finally:
        if was_enabled:
            gc.enable()


def within(seconds: float, call: Callable[[], object], tries: int = 3) -> bool:
    """Tell whether a call takes less than so many seconds in one of several tries: a machine may stall once."""
    return any(seconds_of(call) < seconds for _ in range(tries))
