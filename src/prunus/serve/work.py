"""Run requests: so many at once; others wait for their turn, or are refused.

An answer mostly waits: for pages, for the model, for its client. It is a task of the server's event loop. What computes
(parsing, pruning, checking) runs in a few threads that all requests share, so that no request holds up the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Any, Final, TypeVar, cast

from ..core.errors import OutsideFailed, PrunusError
from ..core.events import Event
from .keys import NO_KEY

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


class Stopping(Busy):
    """The server stops, and the request did not end in time."""

    def __init__(self) -> None:
        super().__init__()
        self.args = ("the server stops; try again soon",)


class Workers:
    """Turns of requests, and the threads that compute.

    :param at_once: requests that are worked on at the same time.
    :param waiting: further requests that wait; more raise :class:`Busy`.
    :param seconds: wall time of a request at most, once its turn has come.
    """

    def __init__(self, at_once: int, waiting: int, seconds: float) -> None:
        self._seconds = seconds
        self._turns = _Turns(at_once, waiting)
        self._threads = _Threads(_THREADS, "prunus-compute")
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="prunus-lookup")
        self._answers: set[asyncio.Task[Any]] = set()
        self._stopped: dict[object, Callable[[], None]] = {}
        """What ends each request when the server stops."""

    @property
    def running(self) -> int:
        """Requests that are worked on or wait."""
        return self._turns.taken + self._turns.waiting

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
        try:
            self._lookups.submit(work)
        except RuntimeError:  # the server has ended, and its threads
            work()

    async def call(self, work: Callable[[], T], caller: str = "") -> T:
        """Return the result of a computation.

        :param caller: the name of the request's key; turns are shared out fairly among callers.
        :raises Busy: too many requests wait.
        :raises TooLong: the work takes longer than allowed; its thread goes on, and keeps its turn, until it ends.
        :raises Stopping: the server stops.
        """
        await self._turns.take(caller)
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        return await self._ended_in_time(future, caller, cancels=False)

    async def within(self, make: Callable[[], Coroutine[Any, Any, T]], caller: str = "") -> T:
        """Return the result of work that waits for the network, and computes in threads; as :meth:`call`.

        It is cancelled where it takes too long, or where its client leaves.
        """
        await self._turns.take(caller)
        return await self._ended_in_time(self._kept(make()), caller, cancels=True)

    async def stream(
        self, make: Callable[[], AsyncIterator[Event]], caller: str = ""
    ) -> AsyncGenerator[Event | None, None]:
        """Yield the events of an answer; None in long silences.

        Closing this generator, as a disconnected client does, cancels the answer and its calls to the outside. A
        computation that runs in a thread goes on to its end.

        :param make: starts the answer.
        :param caller: as for :meth:`call`.
        :raises Busy: too many requests wait.
        :raises TooLong: the answer takes longer than allowed.
        :raises Stopping: the server stops.
        """
        await self._turns.take(caller)
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        answer = self._kept(self._follow(make, arrived.put_nowait))
        answer.add_done_callback(partial(self._ended, caller))
        self._stopped[answer] = lambda: arrived.put_nowait(Stopping())
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
            self._stopped.pop(answer, None)
            answer.cancel()

    def stop(self, seconds: float) -> None:
        """End all requests that still run after some seconds; called inside the loop."""
        asyncio.get_running_loop().call_later(seconds, self._stop_all)

    async def drain(self, seconds: float) -> None:
        """Wait until all requests have ended, for some seconds at most; then take no more."""
        ends = asyncio.get_running_loop().time() + seconds
        while self.running and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.05)
        self._threads.shutdown()
        self._lookups.shutdown()

    def _stop_all(self) -> None:
        self._turns.refuse(Stopping)
        for end in list(self._stopped.values()):
            end()

    def _kept(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task, and keep it from the garbage collector until it ends."""
        task = asyncio.create_task(work)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)
        return task

    async def _ended_in_time(self, work: asyncio.Future[T], caller: str, cancels: bool) -> T:
        """Return the result of work, and give its turn back when it has ended.

        :param cancels: cancel the work where nobody waits for it any more.
        """
        work.add_done_callback(partial(self._ended, caller))
        stopping = asyncio.get_running_loop().create_future()
        self._stopped[work] = lambda: None if stopping.done() else stopping.set_result(None)
        try:
            # does not cancel the work
            await asyncio.wait({work, stopping}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise Stopping if stopping.done() else TooLong(self._seconds)
        finally:
            del self._stopped[work]
            if cancels:
                work.cancel()

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

    def _ended(self, caller: str, work: asyncio.Future[Any]) -> None:
        self._turns.give(caller)
        if not work.cancelled():
            work.exception()  # read, so that nobody is told that it was not


class _Turns:
    """Shares turns out: a free turn goes to the waiting caller that has the fewest, in rotation."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free, self._most = at_once, waiting
        self._of: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self.taken = 0
        self.waiting = 0

    async def take(self, caller: str) -> None:
        """Wait until the caller's turn comes.

        :raises Busy: too many wait, or too many of this caller, or the turn does not come.
        """
        if self._free:
            self._free -= 1
            self._took(caller)
            return
        queue = self._queues.setdefault(caller, deque())
        # a key leaves places for others; without keys there is one caller
        most = self._most if caller in ("", NO_KEY) else (self._most + 1) // 2
        if self.waiting >= self._most or len(queue) >= most:
            raise Busy
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(_TURN):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give(caller)  # it came at the last moment
            elif turn in queue:
                queue.remove(turn)
                self.waiting -= 1
            if isinstance(error, TimeoutError):
                raise Busy from None
            raise

    def give(self, caller: str) -> None:
        """Give a turn back, and hand it to who waits."""
        self.taken -= 1
        self._of[caller] -= 1
        if not self._of[caller]:
            del self._of[caller]
        for queue in self._queues.values():
            while queue and queue[0].done():  # cancelled, and not yet out of the queue
                queue.popleft()
                self.waiting -= 1
        self._queues = {name: queue for name, queue in self._queues.items() if queue}
        if not self._queues:
            self._free += 1
            return
        chosen = min(self._queues, key=lambda name: self._of[name])
        queue = self._queues[chosen] = self._queues.pop(chosen)  # the last of those that have as few, next time
        self.waiting -= 1
        self._took(chosen)
        queue.popleft().set_result(None)

    def refuse(self, kind: type[Busy]) -> None:
        """End the waiting of all with an error."""
        for queue in self._queues.values():
            for turn in queue:
                if not turn.done():
                    turn.set_exception(kind())
            queue.clear()
        self.waiting = 0

    def _took(self, caller: str) -> None:
        self.taken += 1
        self._of[caller] += 1


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
