"""Ctrl-C and SIGTERM during training: the running step ends, and a checkpoint is saved, before the program stops."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupts:
    """Delays Ctrl-C and SIGTERM; ``received`` tells that one came."""

    def __enter__(self) -> Interrupts:
        self.received = False
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
