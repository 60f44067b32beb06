"""A deadline for computations: a thread cannot be stopped from outside, so that its loops look at the clock.

The server gives each request a deadline, and a limit of seconds an answer; without one nothing is looked at. The loops
that grow with a document call :func:`check`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from .errors import OutsideFailed

T = TypeVar("T")

_EVERY: Final = 512
"""Items of a loop between two looks at the clock."""


class TooLong(OutsideFailed):
    """A computation has taken longer than the operator allows."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"this took longer than {seconds:.3g} seconds, the limit here", subject="seconds")


class Deadline:
    """The end of the time that a request has.

    :param seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ends = time.monotonic() + seconds

    def end(self) -> None:
        """Let the time end now: nobody waits for the result any more."""
        self.ends = 0.0


DEADLINE: Final[ContextVar[Deadline | None]] = ContextVar("deadline", default=None)
"""The deadline of the work at hand; threads that ``asyncio`` starts have that of the task that starts them."""


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Give the computations inside a deadline, where there is none that ends earlier.

    :param seconds: from now on; None for no limit.
    """
    outer = DEADLINE.get()
    own = Deadline(seconds) if seconds is not None else None
    if own is None or (outer is not None and outer.ends <= own.ends):
        yield
        return
    token = DEADLINE.set(own)
    try:
        yield
    finally:
        DEADLINE.reset(token)


def check() -> None:
    """Look at the clock.

    :raises TooLong: the deadline has passed.
    """
    deadline = DEADLINE.get()
    if deadline is not None and time.monotonic() > deadline.ends:
        raise TooLong(deadline.seconds)


def checked(items: Iterable[T]) -> Iterator[T]:
    """Yield items, with a look at the clock now and then."""
    if DEADLINE.get() is None:
        yield from items
        return
    for number, item in enumerate(items):
        if not number % _EVERY:
            check()
        yield item
