"""The output of commands: results on stdout, messages and progress on stderr, files written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import click

from ..core.errors import BadInput, OutsideFailed, PrunusError
from ..core.files import write_bytes
from ..core.text.secrets import hide_secrets

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and changes of direction, with which a page could forge a terminal's output."""


class Interrupted(PrunusError):
    """The user stopped the command; the message says which work is done."""

    exit_code = 130


class DoneInPart(PrunusError):
    """Part of the work is done; the failures were listed on stderr."""

    exit_code = 5


def emit(text: str) -> None:
    """Write a result to stdout and flush it; on a terminal, without control characters.

    :raises OutsideFailed: stdout cannot be written, as on a full disk.
    """
    emit_piece(text + "\n")


def emit_piece(text: str) -> None:
    """Write a part of a result to stdout and flush it, without ending the line; see :func:`emit`."""
    try:
        click.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # an OSError, too; `main.guard` ends the command quietly
        raise
    except OSError as error:
        forget_stdout()
        raise OutsideFailed(f"standard output: cannot be written ({error.strerror})", subject="stdout") from error


def emit_json(value: Any) -> None:
    """Write a result to stdout as one line of JSON."""
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a foreign scorer may return infinities, which JSON cannot hold
        line = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)
    emit(line)


def say(text: str) -> None:
    """Write a message to stderr, without passwords and keys in addresses."""
    click.echo(printable(hide_secrets(text)), err=True)


def one_line(text: str) -> str:
    """Return text with all white space, line breaks included, as single spaces."""
    return " ".join(text.split())


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 quote``, ``2 quotes``, ``1,204 summaries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun[-2:] in ("ry", "ly") else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """Remove the control characters that a terminal would obey."""
    return _CONTROL.sub("", text)


def write_whole(path: Path, text: str) -> None:
    """Write text to a file as UTF-8, see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def settle(failures: Mapping[str, str], done: int, what: str = "pages") -> None:
    """List the failures on stderr and end the command with the right exit code; do nothing without failures.

    :param done: number of things that succeeded.
    :param what: noun for the things, in the plural.
    :raises DoneInPart: some failed, some succeeded.
    :raises BadInput: all failed.
    :raises OutsideFailed: all failed, the first because of an outside service.
    """
    if not failures:
        return
    lines = list(failures.values())
    if not done and len(lines) == 1:
        raise (getattr(failures, "first", None) or BadInput(lines[0]))
    for line in lines:
        say(f"prunus: {one_line(line)}")
    if done:
        raise DoneInPart(f"{len(lines)} of {done + len(lines)} {what} could not be read")
    first = getattr(failures, "first", None)
    raise (OutsideFailed if isinstance(first, OutsideFailed) else BadInput)(
        f"none of {len(lines)} {what} could be read"
    )


@contextmanager
def progress(total: int, label: str, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show a progress bar where stderr is a terminal and ``total`` is above 1; yield the function that advances it."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def working(label: str, quiet: bool) -> Iterator[None]:
    """Tell on a terminal what takes more than a second, and how long it has taken; nothing is printed meanwhile."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    ended = Event()

    def show() -> None:
        if ended.wait(1.0):
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn(label), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
            bar.add_task(label, total=None)
            ended.wait()

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def say_left_out(left_out: Mapping[str, int], endless: Sequence[str], notes: Sequence[str]) -> None:
    """Tell on stderr what of a site was left out, and why."""
    if left_out:
        say("left out: " + ", ".join(f"{number:,} {why}" for why, number in left_out.items()))
    for shape in endless:
        say(f"  alike: {one_line(shape)} (--alike raises the limit)")
    for note in notes:
        say(f"prunus: {one_line(note)}")


def forget_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush raises no error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a test's stdout has no descriptor
        return


def _finite(value: Any) -> Any:
    """Replace infinities and NaN, which JSON cannot hold, by None."""
    if isinstance(value, float):
        return value if abs(value) != float("inf") and value == value else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def shorten(text: str, columns: int) -> str:
    """Cut text to a width in columns of a terminal, where a wide East Asian letter takes two columns."""
    line = one_line(text[: columns * 4])  # a block may be long: only its start can be shown
    widths = [2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line]
    if sum(widths) <= columns and len(line) >= len(one_line(text[: columns * 8])):
        return line
    used = 0
    for index, width in enumerate(widths):
        used += width
        if used > columns - 1:
            return line[:index] + "…"
    return line + "…"
