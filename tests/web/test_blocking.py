"""Pages that are fetched ahead end when their reader stops, and a close never waits for ever."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Sequence

import pytest

from prunus import Page
from prunus.api.pages import read_with
from prunus.core.errors import OutsideFailed, PrunusError
from prunus.core.settings import load_settings
from prunus.web import reader


def test_closing_ends_what_works_ahead() -> None:
    ended: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(9):
                yield number
                await asyncio.sleep(0)
        finally:
            ended.append("yes")

    taken = reader.blocking(numbers())
    assert next(taken) == 0
    taken.close()
    assert ended == ["yes"]


def test_a_close_in_a_thread_that_holds_what_the_loop_waits_for_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the garbage collector closes it during an import, which the loop needs too."""
    monkeypatch.setattr(reader, "CLOSING", 0.1)
    lock = threading.Lock()

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            with lock:
                pass

    taken = reader.blocking(numbers())
    assert next(taken) == 1
    begun = time.monotonic()
    with lock:
        del taken
        gc.collect()
    assert time.monotonic() - begun < 5


def test_a_page_that_cannot_be_read_ends_what_is_fetched_ahead() -> None:
    ended: list[str] = []

    def fetch(urls: Sequence[str]) -> Iterator[Page | PrunusError]:
        try:
            yield OutsideFailed(f"{urls[0]}: 404", subject=urls[0])
            yield Page(url=urls[1], content="<p>The ferry leaves.")
        finally:
            ended.append("yes")

    with pytest.raises(OutsideFailed) as caught:
        read_with(
            fetch, ["https://a.example/1", "https://a.example/2"], load_settings(environment={}), True, False, None
        )
    assert ended == ["yes"] and caught.tb  # the error still holds the frames in which the pages were read
