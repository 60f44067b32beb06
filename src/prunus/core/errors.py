"""Every error that Prunus raises on purpose.

    PrunusError
    ├── BadInput            what the caller gave cannot be used        exit 2, HTTP 400
    │   ├── BadPage         a page that is empty, binary, too large
    │   ├── BadBudget       a budget below what one piece of evidence needs
    │   ├── OverWindow      a prompt over a model's window
    │   ├── UnknownEngine   no engine of that name
    │   └── BadEngine       an engine of another package breaks the contract of its port
    ├── MissingExtra        an optional dependency is not installed    exit 2
    ├── OutsideFailed       a service or a model outside failed        exit 3, HTTP 502
    └── NothingFound        nothing relevant; nothing is invented      exit 4

Each carries ``subject``: the page, engine, option or address that it concerns. Anything else
that reaches the user is a bug and shows its traceback.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class PrunusError(Exception):
    """Base of all deliberate errors: one line for the user, and the thing that it concerns."""

    exit_code = 1

    def __init__(self, message: str, *, subject: str = "") -> None:
        super().__init__(message)
        self.subject = subject


class BadInput(PrunusError):
    """What the caller gave cannot be used; the message names it and the way out."""

    exit_code = 2


class BadPage(BadInput):
    """A page that is empty, binary, unreadable or over a limit."""


class BadBudget(BadInput):
    """A token budget that is not positive, or below what any piece of evidence needs."""


class OverWindow(BadInput):
    """A prompt that a model's window does not hold.

    :param window: tokens that the model reads.
    :param needed: tokens that it would have to read.
    """

    def __init__(self, message: str, *, window: int, needed: int, subject: str = "") -> None:
        super().__init__(message, subject=subject)
        self.window = window
        self.needed = needed


class UnknownEngine(BadInput):
    """A spec that names no engine of its room."""


class BadEngine(BadInput):
    """An engine of another package fails, or returns what its port forbids; the message names it."""


class MissingExtra(PrunusError):
    """An optional dependency is not installed; the message holds the pip line."""

    exit_code = 2


class OutsideFailed(PrunusError):
    """A service or model outside this process failed or timed out.

    :param may_pass: the same request may succeed in a moment.
    :param retry_after: seconds that the other side asks to wait before it; None where it does not say.
    """

    exit_code = 3

    def __init__(
        self, message: str, *, subject: str = "", may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, subject=subject)
        self.may_pass = may_pass
        self.retry_after = retry_after


class NothingFound(PrunusError):
    """No page holds anything relevant. Prunus says so and invents nothing."""

    exit_code = 4


class Failures(dict[str, str]):
    """What could not be read, by name: the reason in one line.

    ``first`` is the first error itself, for whoever must raise something.
    """

    first: PrunusError | None = None

    def note(self, error: PrunusError, name: str = "") -> None:
        """Note what went wrong."""
        self[name or error.subject] = str(error)
        if self.first is None:
            self.first = error


def one_line(text: str, secrets: Sequence[str] = (), longest: int = 200) -> str:
    """Make what an outside service says fit for an error: one short line, no control characters, no secret."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    text = " ".join(_CONTROL.sub(" ", text[: 10 * longest]).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
