"""Why a page could not be read, in one word for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from ..core.deadline import TooLong
from ..core.errors import BadInput, BadPage, LargePage
from ..core.types import Page
from .door.errors import FetchFailed, RefusedUrl

ErrorType = Literal[
    "robots", "wall", "denied", "not_found", "too_large", "timeout", "unreachable", "refused", "unreadable",
    "bad_input", "failed",
]  # fmt: skip
"""Forbidden by robots.txt, a wall in the place of content, denied by the site, not there, over a limit of size, too
slow, no connection, an address that is not allowed, no text in it, neither an address nor a file, anything else."""

_OF_STATUS: Final[Mapping[int, ErrorType]] = {401: "denied", 402: "denied", 403: "denied", 404: "not_found",
                                              410: "not_found", 429: "denied", 451: "denied"}  # fmt: skip
_OF_KIND: Final[Mapping[str, ErrorType]] = {"robots": "robots", "timeout": "timeout", "too-large": "too_large",
                                            "dns": "unreachable", "connect": "unreachable", "tls": "unreachable",
                                            "cut": "unreachable", "proxy": "unreachable"}  # fmt: skip


def error_type(error: Exception) -> ErrorType:
    """Return the type of an error of a page."""
    if isinstance(error, RefusedUrl):
        return "robots" if error.kind == "robots" else "refused"
    if isinstance(error, FetchFailed):
        if error.kind == "wall":
            return "not_found" if "(soft404:" in error.why else "wall"
        return _OF_STATUS.get(error.status) or _OF_KIND.get(error.kind, "failed")
    if isinstance(error, TooLong):
        return "timeout"
    if isinstance(error, LargePage):
        return "too_large"
    if isinstance(error, BadPage):
        return "unreadable"
    return "bad_input" if isinstance(error, BadInput) else "failed"


def check_wall(page: Page) -> None:
    """Refuse a page that is a wall.

    :raises FetchFailed: it is one.
    """
    if page.wall:
        raise FetchFailed(page.url, "wall", f"the page sent no content ({page.wall})")
