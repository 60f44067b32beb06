"""The split of every data set into two halves, which never changes."""

from __future__ import annotations

import hashlib
from typing import Literal

Half = Literal["dev", "report"]
Wanted = Literal["dev", "report", "all"]
"""A half of a data set, or both."""


def digest(page_key: str) -> str:
    """Return the hexadecimal sha256 of a page key."""
    return hashlib.sha256(page_key.encode("utf-8")).hexdigest()


def half(page_key: str) -> Half:
    """Return the half of a page; its questions are in the same half.

    The first hexadecimal digit of the key's sha256 decides: even is ``dev`` (tuning and training may use it), odd is
    ``report`` (only published numbers and gates use it).
    """
    return "dev" if int(digest(page_key)[0], 16) % 2 == 0 else "report"
