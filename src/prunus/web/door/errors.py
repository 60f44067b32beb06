"""What goes wrong on the way out: a URL that is refused, and a fetch that failed.

Both are one line for the user. ``kind`` is the same reason in one word, for programs.
"""

from __future__ import annotations

import re
from typing import Final

from ...core.errors import BadInput, OutsideFailed
from ...core.types import Page

_CREDENTIALS: Final = re.compile(r"(?<=//)[^/?#]*@")
_LONGEST: Final = 300
_FLEETING: Final = ("dns", "connect", "cut", "timeout")

BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a server that may answer in a moment."""


def shown(url: str) -> str:
    """Return a URL for a message: on one line, cut, without the credentials that it may hold."""
    hidden = _CREDENTIALS.sub("…@", url)
    cut = hidden if len(hidden) <= _LONGEST else hidden[:_LONGEST] + "…"
    printable = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)
    return printable or "''"


class RefusedUrl(BadInput):
    """A URL that Prunus does not go to.

    :param kind: ``syntax``, ``scheme``, ``credentials``, ``host``, ``ambiguous``, ``port``, ``name`` (of an
        internal host), ``metadata``, ``robots``, or the kind of address: ``loopback``, ``private``, …
    """

    def __init__(self, url: str, kind: str, why: str, way_out: str) -> None:
        super().__init__(f"{shown(url)}: {why}; {way_out}", subject=shown(url))
        self.kind = kind
        self.why = why
        self.way_out = way_out


class FetchFailed(OutsideFailed):
    """The outside did not answer as it should.

    :param kind: ``dns``, ``connect``, ``tls``, ``timeout``, ``protocol``, ``cut`` (the answer ended early),
        ``encoding``, ``too-large``, ``headers``, ``redirects``, ``proxy``, ``robots``, ``status``.
    :param status: the HTTP status, where there is one; else 0.
    :param retry_after: seconds that the server asks to wait; None where it does not say.

    ``page`` is what came with a status that is no success: it may say why.
    """

    page: Page | None = None

    def __init__(self, url: str, kind: str, why: str, *, status: int = 0, retry_after: float | None = None) -> None:
        may_pass = status in BUSY or kind in _FLEETING
        super().__init__(f"{shown(url)}: {why}", subject=shown(url), may_pass=may_pass, retry_after=retry_after)
        self.kind = kind
        self.why = why
        self.status = status
