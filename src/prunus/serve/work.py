"""Run requests in threads: a few at once; others wait for their turn, or are refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar, cast

from ..core.errors import OutsideFailed, PrunusError
from ..core.events import Event

T = TypeVar("T")

_TURN: Final = 30.0
"""Seconds that a request waits for its turn at most."""
_SILENCE: Final = 15.0
"""Seconds without an event after which a stream says that it lives: proxies end connections that are silent."""


class Busy(PrunusError):
    """The server has as much to do as the operator allows.

    :param retry_after: seconds after which to try again.
    """

    def __init__(self, retry_after: int = 2) -> None:
        super().__init__("the server is busy; try again soon", subject="server")
        self.retry_after = retry_after


class TooLong(OutsideFailed):
    """A request takes longer than the operator allows."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"this took longer than {seconds:g} seconds, the limit here", subject="seconds")


class Workers:
    """The threads that requests are worked on in. A turn ends when its thread ends, not when its client leaves.

    :param at_once: requests that are worked on at the same time.
    :param waiting: further requests that wait; more raise :class:`Busy`.
    :param seconds: wall time of a request at most, once its turn has come.
    """

    def __init__(self, at_once: int, waiting: int, seconds: float) -> None:
        self._most, self._seconds = at_once + waiting, seconds
        self._turns = asyncio.Semaphore(at_once)
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="prunus-serve")
        self.running = 0
        """Requests that are worked on or wait."""

    async def call(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work.

        :raises Busy: too many requests wait.
        :raises TooLong: the work takes longer than allowed; its thread goes on, and keeps its turn, until it ends.
        """
        future = await self._started(work)
        done, _ = await asyncio.wait({future}, timeout=self._seconds)  # does not cancel the future
        if not done:
            raise TooLong(self._seconds)
        return future.result()

    async def stream(self, make: Callable[[], AsyncIterator[Event]]) -> AsyncGenerator[Event | None, None]:
        """Yield the events of an answer, which runs in a thread with an event loop of its own; None in long silences.

        Closing this generator, as a disconnected client does, cancels the answer and its calls to the outside.

        :param make: starts the answer; called in the thread.
        :raises Busy: too many requests wait.
        :raises TooLong: the answer takes longer than allowed.
        """
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        job = _Job(make, self._seconds, lambda item: loop.call_soon_threadsafe(arrived.put_nowait, item))
        await self._started(job.run)
        ends = time.monotonic() + self._seconds
        try:
            while True:
                left = ends - time.monotonic()
                try:
                    item = await asyncio.wait_for(arrived.get(), max(0.0, min(left, _SILENCE)))
                except TimeoutError:
                    if left <= _SILENCE:  # a computation of the answer does not let its own limit act
                        raise TooLong(self._seconds) from None
                    yield None
                    continue
                if item is _END:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield cast(Event, item)
        finally:
            job.cancel()

    async def drain(self, seconds: float) -> None:
        """Wait until all requests have ended, for some seconds at most; then take no more."""
        ends = time.monotonic() + seconds
        while self.running and time.monotonic() < ends:
            await asyncio.sleep(0.05)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _started(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Start work in a thread when its turn has come.

        :raises Busy: too many requests wait, or the turn does not come.
        """
        if self.running >= self._most:
            raise Busy
        self.running += 1
        try:
            await asyncio.wait_for(self._turns.acquire(), _TURN)
        except TimeoutError:
            self.running -= 1
            raise Busy from None
        except BaseException:
            self.running -= 1
            raise
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self.running -= 1
        self._turns.release()
        if not future.cancelled():
            future.exception()  # read, so that nobody is told that it was not


_END: Final = object()


class _Job:
    """One answer in a thread."""

    def __init__(self, make: Callable[[], AsyncIterator[Event]], seconds: float, send: Callable[[Any], Any]) -> None:
        self._make, self._seconds, self._send = make, seconds, send
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    def run(self) -> None:
        """Send all events, then the error that ended them or the mark of the end."""
        with suppress(asyncio.CancelledError, RuntimeError):  # the server's loop may have been closed meanwhile
            asyncio.run(self._follow())

    def cancel(self) -> None:
        """End the answer early; nothing happens where it has ended."""
        with self._lock:
            self._cancelled = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _follow(self) -> None:
        with self._lock:
            if self._cancelled:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit, aclosing(cast(Any, self._make())) as events:
                async for event in events:
                    self._send(event)
            self._send(_END)  # at once: the end of this loop waits for its threads
        except TimeoutError as error:
            self._send(TooLong(self._seconds) if limit.expired() else error)
        except Exception as error:  # the request's own task raises it
            self._send(error)
        finally:
            with self._lock:
                self._loop = self._task = None
