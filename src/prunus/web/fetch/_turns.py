"""Whose turn it is at a host: so many at once, so long between two."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_MOST_HOSTS: Final = 4096


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, so that tests need neither.

    :param monotonic: seconds from anywhere, for waiting.
    :param now: seconds since 1970, for what is written down.
    :param sleep: waits.
    :param jitter: a number from 0 to 1, so that many clients do not come back together.
    """

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class HostTurns:
    """Slots and pauses by host, within one event loop.

    :param per_host: requests to one host at once.
    :param next_at: when each host may be asked again; outlives the loop.
    """

    def __init__(self, per_host: int, clock: Clock, next_at: dict[str, float]) -> None:
        self._per_host = per_host
        self._clock = clock
        self._next_at = next_at
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}
        self._reading: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def at(self, host: str) -> AsyncIterator[None]:
        """Hold one of a host's slots."""
        self._users[host] = self._users.get(host, 0) + 1
        try:
            async with self._slots.setdefault(host, asyncio.Semaphore(self._per_host)):
                yield
        finally:
            self._users[host] -= 1
            if not self._users[host]:  # a batch may pass through any number of hosts
                del self._users[host], self._slots[host]
                self._reading.pop(host, None)

    def alone(self, host: str) -> asyncio.Lock:
        """Return the lock under which one of a host's users asks what all of them need: its robots.txt."""
        return self._reading.setdefault(host, asyncio.Lock())

    async def wait(self, host: str, delay: float) -> None:
        """Wait for a host's next moment, and put the one after it ``delay`` seconds later."""
        now = self._clock.monotonic()
        start = max(now, self._next_at.get(host, now))
        self._hold_until(host, start + delay)
        if start > now:
            await self._clock.sleep(start - now)

    def hold(self, host: str, seconds: float) -> None:
        """Let nobody ask a host for some seconds: it said that it is busy."""
        self._hold_until(host, self._clock.monotonic() + seconds)

    def _hold_until(self, host: str, moment: float) -> None:
        now = self._clock.monotonic()
        if moment > max(now, self._next_at.get(host, now)):
            self._next_at[host] = moment
        if len(self._next_at) > _MOST_HOSTS:
            passed = [name for name, at in self._next_at.items() if at <= now]
            for name in passed or [next(iter(self._next_at))]:
                del self._next_at[name]
