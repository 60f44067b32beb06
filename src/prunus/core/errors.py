"""Every error that Prunus raises on purpose.

    PrunusError
    ├── BadInput            the caller's input cannot be used          exit 2, HTTP 400
    │   ├── BadPage         a page that is empty, binary, too large (LargePage)
    │   ├── BadBudget       a token budget too small for any evidence
    │   ├── OverWindow      a prompt longer than a model's window
    │   ├── UnknownEngine   no engine of that name and kind
    │   └── BadEngine       an engine of another package breaks its port
    ├── MissingExtra        an optional dependency is not installed    exit 2
    ├── OutsideFailed       a service or a model outside failed        exit 3, HTTP 502
    │   └── UnreadableReply a model replied, but not what was asked
    └── NothingFound        no page holds anything relevant            exit 4

Each error has a ``subject``: the page, engine, option or address that it concerns. Any other
exception that reaches the user is a bug and shows its traceback, except one that a single page
raises: it is that page's error, see :func:`errors_of_page`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from .text.secrets import hide_logins, hide_secrets

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class PrunusError(Exception):
    """Base of all deliberate errors: a message of one line, and the subject that it concerns.

    Passwords and keys in addresses are hidden in both.
    """

    exit_code = 1

    def __init__(self, message: str, *, subject: str = "") -> None:
        super().__init__(hide_secrets(message))
        self.subject = hide_secrets(subject)


class BadInput(PrunusError):
    """The caller's input cannot be used; the message names the input and the way out."""

    exit_code = 2


class BadPage(BadInput):
    """A page that is empty, binary, unreadable or over a limit."""


class LargePage(BadPage):
    """A page over a limit of bytes, characters or tags."""


class BadBudget(BadInput):
    """A token budget that is not positive, or too small for any piece of evidence."""


class OverWindow(BadInput):
    """A prompt longer than a model's window.

    :param window: tokens that the model can read.
    :param needed: tokens of the prompt.
    """

    def __init__(self, message: str, *, window: int, needed: int, subject: str = "") -> None:
        super().__init__(message, subject=subject)
        self.window = window
        self.needed = needed


class UnknownEngine(BadInput):
    """A spec that names no engine of its kind."""


class BadEngine(BadInput):
    """An engine of another package fails, or returns what its port forbids; the message names it."""


class MissingExtra(PrunusError):
    """An optional dependency is not installed; the message holds the pip command."""

    exit_code = 2


class OutsideFailed(PrunusError):
    """A service or model outside this process failed or timed out.

    :param may_pass: whether the same request may succeed if retried soon.
    :param retry_after: seconds to wait before a retry, as the service asks; None where it does not say.
    :param sent: whether the service may have read the request; False where there was no connection.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        subject: str = "",
        may_pass: bool = False,
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, subject=subject)
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.sent = sent


class StoreFailed(OutsideFailed):
    """An index or a state cannot be read or written now: its disk is full, its database in use or out of reach."""


class UnreadableReply(OutsideFailed):
    """A model replied with nothing of what it was asked for; a larger model may do better."""


class NothingFound(PrunusError):
    """No page holds anything relevant to the question."""

    exit_code = 4


class Failures(dict[str, str]):
    """The reason in one line for each page, query or engine that failed, by its name.

    ``first`` is the first error, for a caller that raises when nothing else is left.
    """

    first: PrunusError | None = None

    def note(self, error: PrunusError, name: str = "") -> None:
        """Add an error under ``name``, by default its subject."""
        self[hide_logins(name) or error.subject] = str(error)
        if self.first is None:
            self.first = error


@contextmanager
def errors_of_page(name: str) -> Iterator[None]:
    """Make whatever the work on one page raises an error of that page, so that the other pages go on.

    :param name: the page's name in errors.
    :raises BadEngine: an engine of another package failed at the page.
    :raises BadPage: the work raised an error that Prunus does not raise on purpose. It is the cause.
    """
    try:
        yield
    except BadEngine as error:
        raise BadEngine(f"{name}: {error}", subject=name) from error
    except PrunusError:
        raise
    except Exception as error:  # a bug of Prunus or of a package: it may be anything
        what = f"{type(error).__name__}: {one_line(str(error))}".rstrip(": ")
        raise BadPage(f"{name}: reading this page fails by a bug ({what}); please report it", subject=name) from error


def one_line(text: str, secrets: Sequence[str] = (), longest: int = 200) -> str:
    """Shorten an outside service's message to one line for an error, without control characters and secrets.

    :param secrets: texts that are replaced by ``[key]``.
    :param longest: code points of the line at most.
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    # cut first: a service may send megabytes
    text = " ".join(_CONTROL.sub(" ", text[: 10 * longest]).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
