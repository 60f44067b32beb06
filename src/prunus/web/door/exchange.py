"""The limits of one exchange in time and bytes, enforced at every read of its connection."""

from __future__ import annotations

import time
from typing import Final

from .errors import FetchFailed

READ_SIZE: Final = 64 * 1024
"""Bytes of one read; an HTTP library may read this much ahead, so limits on the wire allow for it."""


class Exchange:
    """One request and its response, with a deadline and an allowance of bytes.

    :param url: for messages; without its query, which may hold a key.
    :param seconds: time limit of the whole exchange.
    :param wire: bytes that may be read, framing included.
    :param head: bytes that may be read before the response head is complete.
    """

    def __init__(self, url: str, seconds: float, wire: int, head: int) -> None:
        self.url = url
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self._wire = wire + head + READ_SIZE
        self._head = head + READ_SIZE
        self._in_head = True
        self._taken = 0

    def seconds_left(self) -> float:
        """Return the remaining seconds.

        :raises FetchFailed: the deadline has passed.
        """
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise self.timeout_error()
        return remaining

    def timeout_error(self) -> FetchFailed:
        """Return the error for an exchange past its deadline."""
        return FetchFailed(self.url, "timeout", f"not finished within {self.seconds:g} s")

    def count(self, size: int) -> None:
        """Count received bytes.

        :raises FetchFailed: the exchange is over its limit.
        """
        self._taken += size
        if self._in_head and self._taken > self._head:
            raise FetchFailed(self.url, "headers", "the response headers are over the limit")
        if self._taken > self._wire:
            raise FetchFailed(self.url, "too-large", "the response is over the limit of bytes on the wire")

    def note_head_complete(self) -> None:
        """Note that the response head is complete, which lifts the limit on its size."""
        self._in_head = False


class ByteAllowance(float):
    """The timeout of one operation with its exchange; a float, so that the HTTP library hands it to the connection."""

    exchange: Exchange

    def __new__(cls, seconds: float, exchange: Exchange) -> ByteAllowance:
        """Make the timeout of an operation of an exchange."""
        allowance = super().__new__(cls, seconds)
        allowance.exchange = exchange
        return allowance


def seconds_left(timeout: float | None) -> float | None:
    """Return the timeout of one operation, at most the remaining seconds of its exchange.

    :raises FetchFailed: the deadline of the exchange has passed.
    """
    return min(float(timeout), timeout.exchange.seconds_left()) if isinstance(timeout, ByteAllowance) else timeout


def count_bytes(timeout: float | None, count: int) -> None:
    """Count received bytes for the exchange of an operation.

    :raises FetchFailed: the exchange is over its limit.
    """
    if isinstance(timeout, ByteAllowance):
        timeout.exchange.count(count)
