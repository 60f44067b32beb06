"""The progress of a run on stderr: pages done, the rate, and the time that is left of the task."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from prunus_evals import harness
from prunus_evals.stats import counted

EVERY = {True: 0.2, False: 10.0}
"""Seconds between two lines: on a terminal, where the line is written over, and elsewhere."""


class Progress:
    """Writes a line now and then, and one when a task is done. Stored outcomes do not count towards the rate.

    :param terminal: whether the line can be written over; by default whether stderr is a terminal.
    :param before: what stands before each line, as the name of a study.
    :param write: takes the lines instead of stderr.
    """

    def __init__(
        self, terminal: bool | None = None, before: str = "", write: Callable[[str], None] | None = None
    ) -> None:
        self._terminal = write is None and (sys.stderr.isatty() if terminal is None else terminal)
        self._before = before
        self._write = write
        self._start = self._shown = 0.0
        self._measured = 0

    def __call__(self, state: harness.Progress) -> None:
        """Show how far the run is."""
        if state.waited:
            text = f"{self._before}{state.task}: {state.asked}: {duration(state.waited)} so far"
            if self._write is not None:
                self._write(text)
            else:
                click.echo(f"\r\x1b[K{text}" if self._terminal else text, err=True, nl=not self._terminal)
            return
        now = time.monotonic()
        measured = state.outcomes - state.reused
        if state.pages == 0 and not state.stopped:
            self._start, self._measured = now, measured
        done = state.stopped or state.pages == state.total
        if state.pages == 0 or done or now - self._shown >= EVERY[self._terminal]:
            self._shown = now
            text = self._before + line(state, now - self._start, measured - self._measured)
            if self._write is not None:
                self._write(text)
                return
            click.echo(f"\r\x1b[K{text}" if self._terminal else text, err=True, nl=done or not self._terminal)


def line(state: harness.Progress, seconds: float, measured: int) -> str:
    """Return a line of progress.

    :param seconds: since the task began.
    :param measured: outcomes of this task that were not stored before.
    """
    place = f" ({state.number} of {state.tasks})" if state.tasks > 1 else ""
    parts = [f"{state.task}{place}: {state.pages} of {counted(state.total, 'page')}", f"{state.outcomes} outcomes"]
    if state.reused:
        parts.append(f"{state.reused} of them stored before")
    elif state.changed:
        parts.append("measured again, since code, packages or settings have changed")
    if measured and seconds > 0:
        parts.append(f"{measured / seconds:.1f} a second")
    if state.stopped:
        parts.append("stopped")
    elif 0 < state.pages < state.total:
        parts.append(f"{duration(seconds / state.pages * (state.total - state.pages))} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a time as ``1 h 05 min``, ``3 min 20 s`` or ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"
