"""The errors of the network: a refused URL, and a failed fetch.

Each message is one line for the user. ``kind`` holds the reason in one word, for programs.
"""

from __future__ import annotations

from typing import Final

from ...core.errors import BadInput, OutsideFailed
from ...core.text.secrets import hide_secrets
from ...core.types import Page

_LONGEST: Final = 300
_TRANSIENT: Final = ("dns", "connect", "cut", "timeout")

BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a retry may succeed."""


def printable_url(url: str) -> str:
    """Return a URL for a message: one line, shortened, without credentials."""
    redacted = hide_secrets(url)
    shortened = redacted if len(redacted) <= _LONGEST else redacted[:_LONGEST] + "…"
    printable = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in shortened)
    return printable or "''"


class RefusedUrl(BadInput):
    """The egress door refuses a URL.

    :param kind: ``syntax``, ``scheme``, ``credentials``, ``host``, ``ambiguous``, ``port``, ``name`` (of an
        internal host), ``metadata``, ``robots``, or the kind of address: ``loopback``, ``private``, …
    """

    def __init__(self, url: str, kind: str, why: str, way_out: str) -> None:
        super().__init__(f"{printable_url(url)}: {why}; {way_out}", subject=printable_url(url))
        self.kind = kind
        self.why = why
        self.way_out = way_out


class FetchFailed(OutsideFailed):
    """A request over the network failed.

    :param kind: ``dns``, ``connect``, ``tls``, ``timeout``, ``protocol``, ``cut`` (the response ended early),
        ``encoding``, ``too-large``, ``headers``, ``redirects``, ``proxy``, ``robots``, ``status``, ``wall``
        (the response with an error status is a wall, see :attr:`.Page.wall`).
    :param status: the HTTP status; 0 without a response.
    :param retry_after: seconds that the server asks to wait; None without such a request.

    ``page`` holds the response with an error status, whose text may explain the failure.
    """

    page: Page | None = None

    def __init__(self, url: str, kind: str, why: str, *, status: int = 0, retry_after: float | None = None) -> None:
        may_pass = status in BUSY or kind in _TRANSIENT
        super().__init__(
            f"{printable_url(url)}: {why}",
            subject=printable_url(url),
            may_pass=may_pass,
            retry_after=retry_after,
            sent=kind not in ("dns", "connect"),
        )
        self.kind = kind
        self.why = why
        self.status = status
