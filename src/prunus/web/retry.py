"""Retries of requests: after which failures, after which pause, how often; and the parser of ``Retry-After``."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any, Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying

from ..core.errors import OutsideFailed
from ..core.text.numbers import bounded_float

T = TypeVar("T")

_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_LONGEST_DATE: Final = 60  # code points of a date to parse; headers are hostile input


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of tries of a request, and the pauses between them.

    The server's Retry-After takes precedence over the doubling pause. A failure is raised at once if the pause
    would be longer than ``longest`` or than the remaining time. Only an OutsideFailed that may pass is retried; any
    other exception, Ctrl-C and cancellation included, ends the request at once.

    :param tries: most tries, the first included.
    :param backoff: seconds before the second try; doubled before each further try.
    :param longest: longest pause in seconds.
    :param jitter: returns a random number from 0 to 1, so that many clients do not retry at the same moment; None
        for exact pauses.
    """

    tries: int = 4
    backoff: float = 0.5
    longest: float = 60.0
    jitter: Callable[[], float] | None = None

    def call(self, work: Callable[[], T], *, sleep: Callable[[float], None] = time.sleep) -> T:
        """Return the result of ``work``, or raise its last failure."""
        return Retrying(sleep=sleep, **self._policy(_may_pass, _for_ever))(work)

    async def acall(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        left: Callable[[], float] | None = None,
        may_pass: Callable[[OutsideFailed, int], bool] | None = None,
    ) -> T:
        """Return the result of ``work``, or raise its last failure.

        :param left: returns the remaining seconds for all tries together; None for no limit.
        :param may_pass: tells from a failure and the number of tries whether a retry may help; None takes
            ``failure.may_pass``.
        """

        async def attempt() -> T:  # tenacity awaits only coroutine functions
            return await work()

        result: T = await AsyncRetrying(sleep=sleep, **self._policy(may_pass or _may_pass, left or _for_ever))(attempt)
        return result

    def _policy(self, may_pass: Callable[[OutsideFailed, int], bool], left: Callable[[], float]) -> dict[str, Any]:
        def may_retry(state: RetryCallState) -> bool:
            error = _failure(state)
            return isinstance(error, OutsideFailed) and may_pass(error, state.attempt_number)

        def pause(state: RetryCallState) -> float:
            error = _failure(state)
            requested = error.retry_after if isinstance(error, OutsideFailed) else None
            jitter = self.jitter() if self.jitter else None
            if requested is not None:  # never earlier than requested; the jitter only adds, at most a second
                return requested + (jitter or 0.0) * min(1.0, requested / 10)
            doubled: float = self.backoff * 2.0 ** (state.attempt_number - 1)
            return doubled if jitter is None else doubled * (0.5 + jitter)

        def stop(state: RetryCallState) -> bool:
            return state.attempt_number >= self.tries or state.upcoming_sleep > min(self.longest, left())

        return {"retry": may_retry, "wait": pause, "stop": stop, "reraise": True}


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a server asks to wait; None without a valid header.

    :param headers: by lower-case name; ``retry-after-ms`` takes precedence over ``retry-after``, which holds seconds
        or a date.
    :param now: seconds since 1970.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _SECONDS.fullmatch(value):
            return bounded_float(value, 0.0) * scale
    moment = http_date(headers.get("retry-after", ""))
    return None if moment is None else max(0.0, moment.timestamp() - now)


def wait_hint(wait: float | None) -> str:
    """Return the part of a message on the pause that a server asks for; '' without one."""
    return f", and asks to wait {wait:g} s" if wait else ""


def http_date(value: str) -> datetime | None:
    """Parse an HTTP date as UTC; None if the value is not a date."""
    try:
        moment = parsedate_to_datetime(value[:_LONGEST_DATE])
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _may_pass(error: OutsideFailed, tries: int) -> bool:
    return error.may_pass


def _for_ever() -> float:
    return inf
