"""Run requests: so many at once; others wait for their turn, or are refused.

An answer mostly waits: for pages, for the model, for its client. It is a task of the server's event loop. What computes
(parsing, pruning, checking) runs in a few threads that all requests share, so that no request holds up the loop.

A thread cannot be ended from outside. The loops of a computation look at the deadline of its request
(:mod:`prunus.core.deadline`), and a request keeps its turn until the last of its computations has ended. A key computes
few things at a time, and large requests are computed on few at a time, at which keys take turns.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

from ..core.deadline import DEADLINE, Deadline, TooLong
from ..core.errors import PrunusError
from ..core.events import Event
from ..web.reader import FETCHED, FetchedSize
from .keys import NO_KEY

T = TypeVar("T")

LONGEST_TURN: Final = 30.0
"""Seconds that a request waits for its turn at most."""
_SILENCE: Final = 15.0
"""Seconds without an event after which a stream says that it lives: proxies end connections that are silent."""
_THREADS: Final = 32
"""Threads that compute. More than cores: some wait for pages, and a long computation must not hold up short ones."""
_OF_ONE: Final = 2
"""Computations of the small requests of one key at the same time: they share one interpreter with those of others."""
LARGE: Final = 128 * 1024
"""Bytes of a request, with the pages that are fetched for it, from which on it is large."""
_PASSED_ON: Final = 512 * 1024
"""Bytes of fetched pages from which on a request goes on in the background process, where others are at work here: its
pages are fetched again there, if the cache may not give them, so small ones do not."""
_LARGE_AT_ONCE: Final = 2 * 1024 * 1024
"""Bytes of all large requests that are computed on at the same time; one alone may have more. A page of many tiny
elements takes some hundred bytes of memory for each of its own."""
_LOOKUPS: Final = 4
"""Threads that look up keys and count; they never wait behind a computation."""


class Busy(PrunusError):
    """The server has as much to do as the operator allows.

    :param retry_after: seconds after which to try again.
    """

    def __init__(self, retry_after: int = 2) -> None:
        super().__init__("the server is busy; try again soon", subject="server")
        self.retry_after = retry_after


class Left(PrunusError):
    """The client has left before its answer was ready; nobody reads this."""

    def __init__(self) -> None:
        super().__init__("the client has left", subject="client")


class Stopping(Busy):
    """The server stops, and the request did not end in time."""

    def __init__(self) -> None:
        super().__init__()
        self.args = ("the server stops; try again soon",)


class PassedOn(BaseException):
    """The pages that were fetched for a request are large, and others are at work: the background process answers.

    As a cancellation it is no error of the page, so no handler of errors takes it for one.
    """


@dataclass(slots=True)
class RequestSize:
    """What has arrived of the body of a request, in bytes.

    :param may_pass: whether the background process may still answer the request: no search and no reply has begun.
    """

    size: int = 0
    may_pass: bool = False


BODY: Final[ContextVar[RequestSize | None]] = ContextVar("body", default=None)
"""How much of the body of the request at hand has arrived."""


class _PassingSize(FetchedSize):
    """The bytes of the pages of a request that may go on in the background.

    :param may_pass: tells whether it may, and other requests are at work.
    """

    __slots__ = ("_may_pass",)

    def __init__(self, may_pass: Callable[[], bool]) -> None:
        super().__init__()
        self._may_pass = may_pass

    def add(self, count: int) -> None:
        """Count the bytes of one more page.

        :raises PassedOn: they are too many to be computed on beside other requests.
        """
        super().add(count)
        if self.size > _PASSED_ON and self._may_pass():
            raise PassedOn


class _Turn:
    """The turn of one request: it lasts until its task and all the computations that it started have ended.

    :param end: called once, in the event loop, when all has ended.
    """

    def __init__(self, caller: str, seconds: float, end: Callable[[str], None], fetched: FetchedSize) -> None:
        body = BODY.get()
        self.caller, self.deadline = caller, Deadline(seconds)
        self._body, self.fetched = body.size if body else 0, fetched
        self._end, self._parts, self._loop = end, 1, asyncio.get_running_loop()

    @property
    def size(self) -> int:
        """Bytes of the request's body, and of the pages that were fetched for it until now."""
        return self._body + self.fetched.size

    def add(self, computation: Future[Any]) -> None:
        """Last until a computation has ended too; called inside the loop."""
        self._parts += 1
        computation.add_done_callback(self._computed)

    def ended(self, task: asyncio.Future[Any]) -> None:
        """Note that the request's own task has ended: what still computes for it ends at its next look at the clock."""
        self.deadline.end()
        if not task.cancelled():
            task.exception()  # read, so that nobody is told that it was not
        self._part_ended()

    def _computed(self, _: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and the server
            self._loop.call_soon_threadsafe(self._part_ended)

    def _part_ended(self) -> None:
        self._parts -= 1
        if not self._parts:
            self._end(self.caller)


_TURN_OF: Final[ContextVar[_Turn | None]] = ContextVar("turn", default=None)


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
        :raises TooLong: the work takes longer than allowed.
        :raises Stopping: the server stops.
        """

        async def computed() -> T:
            return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

        return await self.within(computed, caller)

    async def within(self, make: Callable[[], Coroutine[Any, Any, T]], caller: str = "") -> T:
        """Return the result of work that waits for the network, and computes in threads; as :meth:`call`.

        It is cancelled where it takes too long, or where its client leaves. The turn is free when its threads have
        ended too.

        :raises PassedOn: the background process is to answer.
        """
        await self._turns.take(caller)
        work = self._kept(make(), caller)
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
            work.cancel()

    async def stream(
        self, make: Callable[[], AsyncIterator[Event]], caller: str = ""
    ) -> AsyncGenerator[Event | None, None]:
        """Yield the events of an answer; None when its turn has come, and in long silences.

        Closing this generator, as a disconnected client does, cancels the answer and its calls to the outside. A
        computation that runs in a thread ends at its next look at the clock.

        :param make: starts the answer.
        :param caller: as for :meth:`call`.
        :raises Busy: too many requests wait.
        :raises TooLong: the answer takes longer than allowed.
        :raises Stopping: the server stops.
        :raises PassedOn: the background process is to answer.
        """
        await self._turns.take(caller)
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        answer = self._kept(self._follow(make, arrived.put_nowait), caller)
        self._stopped[answer] = lambda: arrived.put_nowait(Stopping())
        try:
            yield None
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

    def _kept(self, work: Coroutine[Any, Any, T], caller: str) -> asyncio.Task[T]:
        """Start the task of a request whose turn has come, and keep it from the garbage collector until it ends."""
        body = BODY.get()
        fetched = FetchedSize() if body is None else _PassingSize(lambda: body.may_pass and self._turns.taken > 1)
        turn = _Turn(caller, self._seconds, self._turns.give, fetched)
        context = copy_context()
        context.run(_TURN_OF.set, turn)
        context.run(DEADLINE.set, turn.deadline)
        context.run(FETCHED.set, turn.fetched)
        task = asyncio.create_task(work, context=context)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)
        task.add_done_callback(turn.ended)
        return task

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
        except (Exception, PassedOn) as error:  # the request's own task raises it
            send(error)


class _Turns:
    """Shares turns out: a free turn goes to the waiting caller that has the fewest, in rotation."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._at_once, self._free, self._most = at_once, at_once, waiting
        self._of: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self.taken = 0
        self.waiting = 0

    async def take(self, caller: str) -> None:
        """Wait until the caller's turn comes.

        :raises Busy: too many wait, or too many of this caller, or the turn does not come.
        """
        if self._free and self._may(caller):
            self._free -= 1
            self._took(caller)
            return
        queue = self._queues.setdefault(caller, deque())
        most = self._share(caller, self._most)
        if self.waiting >= self._most or len(queue) >= most:
            raise Busy
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(LONGEST_TURN):
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
        allowed = [name for name in self._queues if self._may(name)]
        if not allowed:
            self._free += 1
            return
        chosen = min(allowed, key=lambda name: self._of[name])
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

    def _may(self, caller: str) -> bool:
        return self._of[caller] < self._share(caller, self._at_once)

    @staticmethod
    def _share(caller: str, places: int) -> int:
        """Return how many of the places a caller may take: a key leaves half to others; without keys there is one."""
        return places if caller in ("", NO_KEY) else (places + 1) // 2

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
    """Threads that an ending event loop does not wait for: a computation cannot be cancelled.

    Computations of requests wait until few enough of their kind are at work: the small ones of a key, or all large
    ones. Keys take turns.
    """

    def __init__(self, count: int, name: str) -> None:
        super().__init__(count, thread_name_prefix=name)
        self.busy = 0
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, bool], deque[tuple[int, Callable[[], Any], Future[Any]]]] = {}
        """Sizes of requests, their work and its results, by caller and whether they are large."""
        self._small: Counter[str] = Counter()
        """Computations of small requests that are at work, by caller."""
        self._large = 0
        """Bytes of the large requests that are computed on."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **rest: Any) -> Future[T]:
        """Start work, or let it wait; count it until it has ended."""
        turn = _TURN_OF.get()
        if turn is None:
            future = super().submit(fn, *args, **rest)
        else:
            future = Future()
            with self._lock:
                size = turn.size
                queue = self._waiting.setdefault((turn.caller, size > LARGE), deque())
                queue.append((size, partial(fn, *args, **rest), future))
            self._start()
        with self._lock:
            self.busy += 1
        future.add_done_callback(self._done)
        if turn is not None:
            turn.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; never wait."""
        with self._lock:
            waiting = [future for queue in self._waiting.values() for _, _, future in queue]
            self._waiting.clear()
        for future in waiting:
            future.cancel()
        super().shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        """Start the computations whose turn has come."""
        while True:
            with self._lock:
                kind = next(filter(self._may_start, self._waiting), None)
                if kind is None:
                    return
                queue = self._waiting.pop(kind)
                size, work, future = queue.popleft()
                if queue:
                    self._waiting[kind] = queue  # behind the other callers
                if not future.set_running_or_notify_cancel():
                    continue
                self._count(kind, size, 1)
            try:
                super().submit(self._run, kind, size, work, future)
            except RuntimeError as error:  # the server has ended
                future.set_exception(error)

    def _may_start(self, kind: tuple[str, bool]) -> bool:
        caller, is_large = kind
        if is_large:
            return not self._large or self._large + self._waiting[kind][0][0] <= _LARGE_AT_ONCE
        return caller in ("", NO_KEY) or self._small[caller] < _OF_ONE

    def _count(self, kind: tuple[str, bool], size: int, change: int) -> None:
        caller, is_large = kind
        if is_large:
            self._large += change * size
        else:
            self._small[caller] += change
            if not self._small[caller]:
                del self._small[caller]

    def _run(self, kind: tuple[str, bool], size: int, work: Callable[[], Any], future: Future[Any]) -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # who waits for the result raises it
            future.set_exception(error)
        finally:
            with self._lock:
                self._count(kind, size, -1)
            self._start()

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            self.busy -= 1
