"""Retries: only of temporary failures, with growing pauses or those of the server, and within the time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate

import pytest

from prunus.core.errors import BadInput, OutsideFailed
from prunus.web.retry import Retries, http_date, retry_after

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": formatdate(NOW + 30)}, 30.0),  # a zone of "-0000"
        *[
            ({"retry-after": odd}, None)
            for odd in ("", "soon", "-1", "1e9", "999999999999", "٣", "²", "9" * 5_000, "Mon, 99 Foo 2026")
        ],
        ({"retry-after": "Mon, 21 Sep 99999999999999999999 14:13:22 GMT"}, None),
        ({"retry-after": "(" * 100_000}, None),
    ],
)
def test_what_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_a_date_is_read_as_universal_time() -> None:
    date = http_date("Thu, 01 Jan 1970 00:00:10 -0000")
    assert date is not None and date.timestamp() == 10.0


class Service:
    """A service that fails with the given errors, then answers; records the calls and pauses."""

    def __init__(self, *failures: BaseException) -> None:
        self._failures = list(failures)
        self.calls = 0
        self.pauses: list[float] = []

    def call(self) -> str:
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)
        return "yes"

    async def acall(self) -> str:
        return self.call()

    async def asleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def run(self, retries: Retries) -> str:
        return retries.call(self.call, sleep=self.pauses.append)

    def arun(self, retries: Retries, left: Callable[[], float] | None = None) -> str:
        return asyncio.run(retries.acall(self.acall, sleep=self.asleep, left=left))


def busy(seconds: float | None = None) -> OutsideFailed:
    return OutsideFailed("busy", may_pass=True, retry_after=seconds)


WAYS = pytest.mark.parametrize("way", [Service.run, Service.arun], ids=["blocking", "async"])


@WAYS
def test_pauses_double_and_what_the_server_asks_for_wins(way: Callable[[Service, Retries], str]) -> None:
    service = Service(busy(), busy(), busy(7.0), busy())
    assert way(service, Retries(tries=5)) == "yes"
    assert service.pauses == [0.5, 1.0, 7.0, 4.0]


@WAYS
def test_the_last_failure_is_raised_when_the_tries_are_over(way: Callable[[Service, Retries], str]) -> None:
    service = Service(*[busy() for _ in range(9)])
    with pytest.raises(OutsideFailed, match="busy"):
        way(service, Retries(tries=3))
    assert (service.calls, service.pauses) == (3, [0.5, 1.0])


@WAYS
def test_a_server_that_asks_for_too_much_is_not_waited_for(way: Callable[[Service, Retries], str]) -> None:
    service = Service(busy(61.0))
    with pytest.raises(OutsideFailed):
        way(service, Retries(longest=60.0))
    assert service.pauses == []


@WAYS
@pytest.mark.parametrize(
    "failure",
    [OutsideFailed("refused"), BadInput("wrong"), ValueError("a bug"), KeyboardInterrupt()],
    ids=["refused", "wrong", "a bug", "Ctrl-C"],
)
def test_what_cannot_pass_ends_at_once(way: Callable[[Service, Retries], str], failure: BaseException) -> None:
    service = Service(failure)
    with pytest.raises(type(failure)):
        way(service, Retries())
    assert (service.calls, service.pauses) == (1, [])


def test_a_pause_beyond_the_time_that_is_left_is_not_begun() -> None:
    service = Service(*[busy() for _ in range(9)])
    with pytest.raises(OutsideFailed):
        service.arun(Retries(tries=9), left=lambda: 3.0 - sum(service.pauses))
    assert service.pauses == [0.5, 1.0]  # the next would be 2.0, and 1.5 are left


def test_chance_varies_a_pause_and_never_shortens_what_the_server_asked_for() -> None:
    for chance, pauses in ((0.0, [0.25, 7.0]), (1.0, [0.75, 7.7])):
        service = Service(busy(), busy(7.0))
        service.run(Retries(jitter=lambda chance=chance: chance))
        assert service.pauses == pauses


@pytest.mark.parametrize("where", ["in a pause", "in a try"])
def test_a_task_that_is_cancelled_ends_at_once(where: str) -> None:
    async def check() -> None:
        service = Service(*[busy(30.0) for _ in range(9)])

        async def hangs() -> str:
            service.calls += 1
            await asyncio.sleep(30)
            return "late"

        work = service.acall if where == "in a pause" else hangs
        task = asyncio.ensure_future(Retries().acall(work))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 2)
        assert service.calls == 1

    asyncio.run(check())
