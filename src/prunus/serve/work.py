"""Run requests in threads, so that no computation blocks the event loop: a few at once; others wait, or are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, cast

from ..core.errors import OutsideFailed, PrunusError
from ..core.events import Event

T = TypeVar("T")


class Busy(PrunusError):
    """The server has as much to do as the operator allows.

    :param retry_after: seconds after which to try again.
    """

    def __init__(self, retry_after: int = 2) -> None:
        super().__init__("the server is busy; try again soon", subject="server")
        self.retry_after = retry_after


class Workers:
    """The threads that requests are worked on in.

    :param at_once: requests that are worked on at the same time.
    :param waiting: further requests that wait; more raise :class:`Busy`.
    :param seconds: wall time of a request at most, once its turn has come.
    """

    def __init__(self, at_once: int, waiting: int, seconds: float) -> None:
        self._most, self._seconds = at_once + waiting, seconds
        self._turns = asyncio.Semaphore(at_once)
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="prunus-serve")
        self._left = asyncio.Condition()
        self.running = 0
        """Requests that are worked on or wait."""
        self.refused = 0
        """Requests that were refused with :class:`Busy`."""

    async def call(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work.

        :raises Busy: too many requests wait.
        :raises OutsideFailed: the work takes longer than allowed; the thread ends it when it can.
        """
        async with self._turn():
            future = asyncio.get_running_loop().run_in_executor(self._pool, work)
            try:
                return await asyncio.wait_for(asyncio.shield(future), self._seconds)
            except TimeoutError:
                future.cancel()
                raise self._too_long() from None

    async def stream(self, make: Callable[[], AsyncIterator[Event]]) -> AsyncIterator[Event]:
        """Yield the events of an answer, which runs in a thread with an event loop of its own.

        Closing this iterator, as a disconnected client does, cancels the answer and its calls to the outside.

        :param make: starts the answer; called in the thread.
        :raises Busy: too many requests wait.
        :raises OutsideFailed: the answer takes longer than allowed.
        """
        async with self._turn():
            loop = asyncio.get_running_loop()
            arrived: asyncio.Queue[Any] = asyncio.Queue()
            job = _Job(make, self._seconds, lambda item: loop.call_soon_threadsafe(arrived.put_nowait, item))
            done = loop.run_in_executor(self._pool, job.run)
            try:
                while (item := await arrived.get()) is not None:
                    if isinstance(item, BaseException):
                        raise self._too_long() if isinstance(item, TimeoutError) else item
                    yield cast(Event, item)
            finally:
                job.cancel()
                await asyncio.shield(done)

    async def drain(self, seconds: float) -> None:
        """Wait until all requests have ended, for some seconds at most; then stop the threads."""
        try:
            async with asyncio.timeout(seconds), self._left:
                await self._left.wait_for(lambda: not self.running)
        except TimeoutError:
            pass
        self._pool.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self.running >= self._most:
            self.refused += 1
            raise Busy
        self.running += 1
        try:
            async with self._turns:
                yield
        finally:
            self.running -= 1
            if not self.running:
                async with self._left:
                    self._left.notify_all()

    def _too_long(self) -> OutsideFailed:
        return OutsideFailed(f"this took longer than {self._seconds:g} seconds, the limit here", subject="seconds")


class _Job:
    """One answer in a thread."""

    def __init__(self, make: Callable[[], AsyncIterator[Event]], seconds: float, send: Callable[[Any], Any]) -> None:
        self._make, self._seconds, self._send = make, seconds, send
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    def run(self) -> None:
        """Send all events, then the error that ended them if there is one, then None."""
        try:
            asyncio.run(self._follow())
        except asyncio.CancelledError:
            self._send(None)
        except BaseException as error:  # the request's own task raises it
            self._send(error)
        else:
            self._send(None)

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
        try:
            async with asyncio.timeout(self._seconds), aclosing(cast(Any, self._make())) as events:
                async for event in events:
                    self._send(event)
        finally:
            with self._lock:
                self._loop = self._task = None
