"""Asking a service again: after which failures, when, and until when. The one reader of ``Retry-After``."""

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

T = TypeVar("T")

_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_LONGEST_DATE: Final = 60


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is tried, and how long is waited between two tries.

    What the server asks for wins over the doubling pause. A failure is raised at once where the pause would be over
    ``longest`` or over the time that is left. Only failures that may pass are tried again: anything else, Ctrl-C and
    cancellation among it, ends the request at once.

    :param tries: in all.
    :param backoff: seconds before the second try; doubled before each further one.
    :param longest: seconds of one pause.
    :param jitter: a number from 0 to 1, so that many clients do not come back together; None varies nothing.
    """

    tries: int = 4
    backoff: float = 0.5
    longest: float = 60.0
    jitter: Callable[[], float] | None = None

    def call(self, work: Callable[[], T], *, sleep: Callable[[float], None] = time.sleep) -> T:
        """Return what ``work`` returns, or raise the last failure."""
        return Retrying(sleep=sleep, **self._policy(_may_pass, _for_ever))(work)

    async def acall(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        left: Callable[[], float] | None = None,
        may_pass: Callable[[OutsideFailed, int], bool] | None = None,
    ) -> T:
        """Return what ``work`` returns, or raise the last failure.

        :param left: returns the seconds that all tries together may still take.
        :param may_pass: tells from a failure and the tries so far whether another may help; None asks the failure.
        """

        async def one() -> T:  # tenacity awaits only what is a coroutine function
            return await work()

        found: T = await AsyncRetrying(sleep=sleep, **self._policy(may_pass or _may_pass, left or _for_ever))(one)
        return found

    def _policy(self, may_pass: Callable[[OutsideFailed, int], bool], left: Callable[[], float]) -> dict[str, Any]:
        def again(state: RetryCallState) -> bool:
            error = _failure(state)
            return isinstance(error, OutsideFailed) and may_pass(error, state.attempt_number)

        def pause(state: RetryCallState) -> float:
            error = _failure(state)
            asked = error.retry_after if isinstance(error, OutsideFailed) else None
            varied = self.jitter() if self.jitter else None
            if asked is not None:
                return asked + (varied or 0.0) * min(1.0, asked / 10)
            doubled: float = self.backoff * 2.0 ** (state.attempt_number - 1)
            return doubled if varied is None else doubled * (0.5 + varied)

        def stop(state: RetryCallState) -> bool:
            return state.attempt_number >= self.tries or state.upcoming_sleep > min(self.longest, left())

        return {"retry": again, "wait": pause, "stop": stop, "reraise": True}


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a server asks to wait; None where it does not say, or says nonsense.

    :param headers: by lower-case name; ``retry-after-ms`` goes before ``retry-after``, which is seconds or a date.
    :param now: seconds since 1970.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _SECONDS.fullmatch(value):
            return float(value) * scale
    moment = http_date(headers.get("retry-after", ""))
    return None if moment is None else max(0.0, moment.timestamp() - now)


def wish(asked: float | None) -> str:
    """Return the end of a message about a server that asks to wait; '' where it does not."""
    return f", and asks to wait {asked:g} s" if asked else ""


def http_date(value: str) -> datetime | None:
    """Read an HTTP date; None where it is none."""
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
