"""The time and the bytes that one exchange may take, carried down to every read of its connection."""

from __future__ import annotations

import time
from typing import Final

from .errors import FetchFailed

READ_SIZE: Final = 64 * 1024
"""What a connection reads at once."""


class Exchange:
    """One request and its answer: when it must have ended, and what may still come.

    :param url: for messages; without its query, which may hold a key.
    :param seconds: for the whole.
    :param wire: bytes that may be read, with all framing.
    :param head: bytes that may be read before the answer's head is whole.
    """

    def __init__(self, url: str, seconds: float, wire: int, head: int) -> None:
        self.url = url
        self.seconds = seconds
        self.ends = time.monotonic() + seconds
        self._wire = wire + head + READ_SIZE
        self._head = head + READ_SIZE
        self._in_head = True
        self._taken = 0

    def left(self) -> float:
        """Return the seconds that are left.

        :raises FetchFailed: none are.
        """
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self.late()
        return left

    def late(self) -> FetchFailed:
        """Return the error for an exchange that took too long."""
        return FetchFailed(self.url, "timeout", f"not finished within {self.seconds:g} s")

    def took(self, count: int) -> None:
        """Count bytes that were read.

        :raises FetchFailed: too many.
        """
        self._taken += count
        if self._in_head and self._taken > self._head:
            raise FetchFailed(self.url, "headers", "the headers of the answer are over the limit")
        if self._taken > self._wire:
            raise FetchFailed(self.url, "too-large", "the answer is over the limit of bytes on the wire")

    def head_is_whole(self) -> None:
        """Note that the body begins."""
        self._in_head = False


class Allowance(float):
    """Seconds for one operation; as a float it passes through the HTTP library to the connection."""

    exchange: Exchange

    def __new__(cls, seconds: float, exchange: Exchange) -> Allowance:
        """Make one of an exchange."""
        made = super().__new__(cls, seconds)
        made.exchange = exchange
        return made


def seconds_left(timeout: float | None) -> float | None:
    """Return the seconds of one operation, cut by what its exchange has left.

    :raises FetchFailed: the exchange has nothing left.
    """
    return min(float(timeout), timeout.exchange.left()) if isinstance(timeout, Allowance) else timeout


def count_bytes(timeout: float | None, count: int) -> None:
    """Count bytes for the exchange of an allowance.

    :raises FetchFailed: too many.
    """
    if isinstance(timeout, Allowance):
        timeout.exchange.took(count)
