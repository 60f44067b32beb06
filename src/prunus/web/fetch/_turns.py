"""Politeness per host: a bound on concurrent requests, and a pause between two requests."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_MOST_HOSTS: Final = 4096  # hosts whose next request time is remembered


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and randomness, which tests replace.

    :param monotonic: returns monotonic seconds, for waiting.
    :param now: returns seconds since 1970, for records.
    :param sleep: waits for some seconds.
    :param jitter: returns a random number from 0 to 1, so that many clients do not retry at the same moment.
    """

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class HostTurns:
    """Slots and pauses of each host, within one event loop.

    :param per_host: most concurrent requests to one host.
    :param next_at: earliest time of the next request to each host, monotonic seconds; outlives the event loop.
    """

    def __init__(self, per_host: int, clock: Clock, next_at: dict[str, float]) -> None:
        self._per_host = per_host
        self._clock = clock
        self._next_at = next_at
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}
        self._robots_locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Hold a slot of a host for the duration of the context."""
        self._users[host] = self._users.get(host, 0) + 1
        try:
            async with self._slots.setdefault(host, asyncio.Semaphore(self._per_host)):
                yield
        finally:
            self._users[host] -= 1
            if not self._users[host]:  # forgotten with its last user: a batch may visit any number of hosts
                del self._users[host], self._slots[host]
                self._robots_locks.pop(host, None)

    def robots_lock(self, host: str) -> asyncio.Lock:
        """Return the lock under which a host's robots.txt is read, so that only one request reads it."""
        return self._robots_locks.setdefault(host, asyncio.Lock())

    async def wait(self, host: str, delay: float) -> None:
        """Wait until the host may be requested, and reserve ``delay`` seconds after this request."""
        now = self._clock.monotonic()
        start = max(now, self._next_at.get(host, now))
        self._hold_until(host, start + delay)
        if start > now:
            await self._clock.sleep(start - now)

    def hold(self, host: str, seconds: float) -> None:
        """Delay all requests to a busy host by some seconds."""
        self._hold_until(host, self._clock.monotonic() + seconds)

    def _hold_until(self, host: str, moment: float) -> None:
        now = self._clock.monotonic()
        if moment > max(now, self._next_at.get(host, now)):
            self._next_at[host] = moment
        if len(self._next_at) > _MOST_HOSTS:
            passed = [name for name, next_time in self._next_at.items() if next_time <= now]
            for name in passed or [next(iter(self._next_at))]:
                del self._next_at[name]
