"""How large a page may be: in bytes, and in what reading it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ..errors import BadPage
from .formatting import NAMES

MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of markup that is accepted, in bytes or code points."""

ALLOWED: Final = 100_000_000
ALLOWED_PER_BYTE: Final = 20
"""Bytes of memory that a page may take: some in any case, more for each byte of it."""

_PER_NODE: Final = 176
_PER_TEXT: Final = 48
_PER_BYTE_OF_ATTRIBUTES: Final = 19
"""Bytes that reading takes at most for an element, a comment or a text, for a text of more than a letter in addition,
and for attributes: what the DOM and the tree that is made of it take while both are there (measured on pages of
fifty kinds, each as large as is read, and a tenth more: a system that gives memory in huge pages gives more of it)."""

_PER_NODE_AGAIN: Final = 500
_FOR_ASKING: Final = 45_000_000
"""Bytes that asking takes at most for an element or a text when the page is parsed and walked once more beside its
tree, for the XPaths of quotes or for marks; and what asking itself may take (measured as above)."""

_NODE: Final = r"<(?:[A-Za-z][^\s<>]*([^<>]*)|[!?])|>[^<]([^\s<])?"
_MAKING: Final = rf"<(?:table|/(?:br|{'|'.join(NAMES)}))[\s>]"
"""Tags that may make up to two elements beside those they name: rows, and formatting that is nested wrongly."""

_ENDS: Final = ((r"<p[\s>]", r"</p[\s>]"), (r"<tr[\s>]", r"</tr[\s>]"))
"""Start and end tags of elements that an end tag alone makes."""


def check_size(content: str | bytes, name: str = "page") -> None:
    """Refuse what is larger than ``MAX_BYTES``, before any work on it.

    :raises BadPage: it is.
    """
    if len(content) > MAX_BYTES:
        size = len(content) / 1048576
        raise BadPage(
            f"{name}: {size:.0f} MiB is over the limit of {MAX_BYTES // 1048576} MiB; split the page", subject=name
        )


def check_memory(page: str | bytes, tags: int, size: int, name: str = "page") -> None:
    """Refuse a page of so many elements for its size that reading it might take more memory than is allowed.

    No page that people wrote or published is known to hold as many: of several hundred, the densest would take
    nine tenths of what is allowed if it were of any size.

    :param page: text, or bytes in an encoding that holds ASCII as such.
    :param tags: how many "<" it holds.
    :param size: what the page takes as it came.
    :raises BadPage: it might.
    """
    allowed = ALLOWED + ALLOWED_PER_BYTE * size
    if (2 * _PER_NODE + _PER_TEXT) * tags + _PER_BYTE_OF_ATTRIBUTES * len(page) <= allowed:
        return  # an element and a text for each tag
    needed = _memory(page, allowed)
    if needed > allowed:
        raise BadPage(
            f"{name}: so many elements in {size / 1e6:.1f} MB might take more memory than the {allowed / 1e6:.0f} MB "
            "that a page of its size may take; split the page",
            subject=name,
        )


def fits_again(page: str | bytes, tags: int, size: int) -> bool:
    """Tell whether a page may be parsed and walked once more beside its tree within the memory that is allowed.

    :param page, tags, size: as for :func:`check_memory`.
    """
    allowed = ALLOWED + ALLOWED_PER_BYTE * size - _FOR_ASKING
    if (2 * _PER_NODE_AGAIN + _PER_TEXT) * tags + _PER_BYTE_OF_ATTRIBUTES * len(page) <= allowed:
        return True
    return _memory(page, allowed, _PER_NODE_AGAIN) <= allowed


def _memory(page: str | bytes, allowed: int, per_node: int = _PER_NODE) -> int:
    """Return how many bytes reading a page takes at most, or some number above ``allowed``.

    Comments and scripts count as markup.
    """
    needed = 0
    for found in _found(_NODE, page):
        needed += per_node
        if found.end(2) > 0:  # more than a letter, or the space between elements
            needed += _PER_TEXT
        else:
            needed += _PER_BYTE_OF_ATTRIBUTES * (found.end(1) - found.start(1))
        if needed > allowed:
            return needed
    made = 2 * _count(_MAKING, page)
    for start, end in _ENDS:
        made += 2 * max(0, _count(end, page) - _count(start, page))
    return needed + per_node * made


def _found(pattern: str, page: Any) -> Iterator[Any]:
    matches: Iterator[Any] = re.finditer(pattern if isinstance(page, str) else pattern.encode(), page, re.IGNORECASE)
    return matches


def _count(pattern: str, page: str | bytes) -> int:
    return sum(1 for _ in _found(pattern, page))
