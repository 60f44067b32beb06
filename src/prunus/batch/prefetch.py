"""Read ahead: a thread reads the next things while the caller works on earlier ones."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_POLL: Final = 0.1
"""Seconds after which the thread looks whether it is still needed."""


class Prefetch(Generic[T]):
    """Reads an iterator in a thread; :meth:`close` ends it.

    ``ended`` is true when everything was taken.

    :param things: read in the thread alone.
    :param size: things that wait at most; one more is held by the thread.
    """

    def __init__(self, things: Iterator[T], size: int) -> None:
        self.ended = False
        self._waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(size)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(things,), daemon=True)
        self._thread.start()

    def next(self, seconds: float) -> T | None:
        """Return the next thing; None where there is none yet, or none any more.

        :param seconds: time to wait for it.
        :raises Exception: what the iterator raised.
        """
        if self.ended:
            return None
        try:
            thing, error = self._waiting.get(timeout=seconds) if seconds else self._waiting.get_nowait()
        except queue.Empty:
            return None
        if error is not None:
            self.ended = True
            raise error
        self.ended = thing is None
        return thing

    def close(self) -> None:
        """End the thread, after the thing that it reads now."""
        self._stopped.set()

    def _read(self, things: Iterator[T]) -> None:
        try:
            for thing in things:
                if not self._put(thing, None):
                    return
            self._put(None, None)
        except BaseException as error:  # the caller's thread raises it
            self._put(None, error)

    def _put(self, thing: T | None, error: BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._waiting.put((thing, error), timeout=_POLL)
                return True
            except queue.Full:
                continue
        return False
