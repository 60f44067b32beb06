"""Measure the time of a call, so that a busy machine does not fail a test."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def _clocked() -> Iterator[Callable[[], float]]:
    """Yield a clock of this thread's processor seconds.

    Other processes, other threads and garbage collection do not count. At the end of a long run the collector scans
    millions of objects of other tests, which takes half a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        yield lambda: time.thread_time() - start
    finally:
        if was_enabled:
            gc.enable()


def seconds_of(call: Callable[[], object]) -> float:
    """Return the processor seconds of this thread for a call."""
    with _clocked() as clock:
        call()
        return clock()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail where the block takes more processor seconds of this thread."""
    with _clocked() as clock:
        yield
        assert clock() < seconds


def within(seconds: float, call: Callable[[], object], tries: int = 3) -> bool:
    """Tell whether a call takes less than so many seconds in one of several tries: a machine may stall once."""
    return any(seconds_of(call) < seconds for _ in range(tries))
