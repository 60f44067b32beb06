"""Run requests: so many at once; others wait for their turn, or are refused.

An answer mostly waits: for pages, for the model, for its client. It is a task of the server's event loop. What computes
(parsing, pruning, checking) runs in a few threads that all requests share, so that no request holds up the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Final, TypeVar, cast

from ..core.errors import OutsideFailed, PrunusError
from ..core.events import Event

T = TypeVar("T")

_TURN: Final = 30.0
"""Seconds that a request waits for its turn at most."""
_SILENCE: Final = 15.0
"""Seconds without an event after which a stream says that it lives: proxies end connections that are silent."""
_THREADS: Final = 32
"""Threads that compute. More than cores: some wait for pages, and a long computation must not hold up short ones."""
_LOOKUPS: Final = 4
"""Threads that look up keys and count; they never wait behind a computation."""


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


class Left(PrunusError):
    """The client has left before its answer was ready; nobody reads this."""

    def __init__(self) -> None:
        super().__init__("the client has left", subject="client")


class Workers:
    """Turns of requests, and the threads that compute.

    :param at_once: requests that are worked on at the same time.
    :param waiting: further requests that wait; more raise :class:`Busy`.
    :param seconds: wall time of a request at most, once its turn has come.
    """

    def __init__(self, at_once: int, waiting: int, seconds: float) -> None:
        self._most, self._seconds = at_once + waiting, seconds
        self._turns = asyncio.Semaphore(at_once)
        self._threads = _Threads(_THREADS, "prunus-compute")
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="prunus-lookup")
        self._answers: set[asyncio.Task[None]] = set()
        self.running = 0
        """Requests that are worked on or wait."""

    @property
    def computing(self) -> int:
        """Computations that run or wait for a thread, those of requests that were given up too."""
        return self._threads.busy

    def start(self) -> None:
        """Let what the event loop gives to threads run in those of this server; called inside the loop."""
        asyncio.get_running_loop().set_default_executor(self._threads)

    async def lookup(self, work: Callable[[], T]) -> T:
        """Return the result of a short call that waits for the disk or a database. It needs no turn."""
        return await asyncio.get_running_loop().run_in_executor(self._lookups, work)

    def later(self, work: Callable[[], None]) -> None:
        """Run a short call that waits for the disk, when a thread is free; nobody waits for it but :meth:`drain`."""
        self._lookups.submit(work)

    async def call(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work.

        :raises Busy: too many requests wait.
        :raises TooLong: the work takes longer than allowed; its thread goes on, and keeps its turn, until it ends.
        """
        await self._turn()
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._ended)
        done, _ = await asyncio.wait({future}, timeout=self._seconds)  # does not cancel the future
        if not done:
            raise TooLong(self._seconds)
        return future.result()

    async def stream(self, make: Callable[[], AsyncIterator[Event]]) -> AsyncGenerator[Event | None, None]:
        """Yield the events of an answer; None in long silences.

        Closing this generator, as a disconnected client does, cancels the answer and its calls to the outside. A
        computation that runs in a thread goes on to its end.

        :param make: starts the answer.
        :raises Busy: too many requests wait.
        :raises TooLong: the answer takes longer than allowed.
        """
        await self._turn()
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        answer = asyncio.create_task(self._follow(make, arrived.put_nowait))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)
        answer.add_done_callback(self._ended)
        try:
            while True:
                try:
                    async with asyncio.timeout(_SILENCE):
                        item = await arrived.get()
                except TimeoutError:
                    yield None
                    continue
                if item is _END:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield cast(Event, item)
        finally:
            answer.cancel()

    async def drain(self, seconds: float) -> None:
        """Wait until all requests have ended, for some seconds at most; then take no more."""
        ends = asyncio.get_running_loop().time() + seconds
        while self.running and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.05)
        self._threads.shutdown()
        self._lookups.shutdown()

    async def _turn(self) -> None:
        """Wait until the request's turn comes.

        :raises Busy: too many requests wait, or the turn does not come.
        """
        if self.running >= self._most:
            raise Busy
        self.running += 1
        try:
            async with asyncio.timeout(_TURN):
                await self._turns.acquire()
        except TimeoutError:
            self.running -= 1
            raise Busy from None
        except BaseException:
            self.running -= 1
            raise

    async def _follow(self, make: Callable[[], AsyncIterator[Event]], send: Callable[[Any], Any]) -> None:
        """Send all events, then the error that ended them or the mark of the end."""
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit, aclosing(cast(Any, make())) as events:
                async for event in events:
                    send(event)
            send(_END)
        except TimeoutError as error:
            send(TooLong(self._seconds) if limit.expired() else error)
        except Exception as error:  # the request's own task raises it
            send(error)

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self.running -= 1
        self._turns.release()
        if not work.cancelled():
            work.exception()  # read, so that nobody is told that it was not


async def unless_left(receive: Callable[[], Awaitable[Any]], work: Awaitable[T]) -> T:
    """Return the result of work; it is cancelled where its client leaves before.

    :param receive: returns the next message of the client, whose body has been read: that it left.
    :raises Left: the client has left.
    """

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Left
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


_END: Final = object()


class _Threads(ThreadPoolExecutor):
    """Threads that an ending event loop does not wait for: a computation cannot be cancelled."""

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count, thread_name_prefix=name)
        self.busy = 0
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **rest: Any) -> Future[T]:
        """Start work, and count it until it has ended."""
        future = super().submit(fn, *args, **rest)
        with self._lock:
            self.busy += 1
        future.add_done_callback(self._done)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; never wait."""
        super().shutdown(wait=False, cancel_futures=True)

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            self.busy -= 1
