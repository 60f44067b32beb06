"""How large a page may be: in bytes, and in what reading it takes."""

from __future__ import annotations

import re
from typing import Any, Final

from ..errors import BadPage
from .formatting import NAMES

MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of markup that is accepted, in bytes or code points."""

ALLOWED: Final = 100_000_000
ALLOWED_PER_BYTE: Final = 20
"""Bytes of memory that a page may take: some in any case, more for each byte of it."""

_PER_NODE: Final = 162
_PER_TEXT: Final = 48
_PER_BYTE_OF_ATTRIBUTES: Final = 18
"""Bytes that reading takes at most for an element, a comment or a text, for a text of more than a letter in addition,
and for attributes: what the DOM and the tree that is made of it take while both are there (measured on pages of
fifty kinds, each as large as is read)."""

_NODE: Final = re.compile(r"<(?:[A-Za-z][^\s<>]*([^<>]*)|[!?])|>[^<]([^\s<])?")
_NODE_BYTES: Final = re.compile(_NODE.pattern.encode())
_MAKING: Final = re.compile(rf"<(?:table|/(?:p|br|tr|{'|'.join(NAMES)}))[\s>]", re.IGNORECASE)
_MAKING_BYTES: Final = re.compile(_MAKING.pattern.encode(), re.IGNORECASE)
"""Tags that may make an element or two beside those they name: rows, and formatting that is nested wrongly."""


def check_size(content: str | bytes, name: str = "page") -> None:
    """Refuse what is larger than ``MAX_BYTES``, before any work on it.

    :raises BadPage: it is.
    """
    if len(content) > MAX_BYTES:
        size = len(content) / 1048576
        raise BadPage(
            f"{name}: {size:.0f} MiB is over the limit of {MAX_BYTES // 1048576} MiB; split the page", subject=name
        )


def check_memory(page: str | bytes, size: int, name: str = "page") -> None:
    """Refuse a page of so many elements for its size that reading it might take more memory than is allowed.

    No page that people wrote or published is known to hold as many: of several hundred, the densest would take
    nine tenths of what is allowed if it were of any size.

    :param page: text, or bytes in an encoding that holds ASCII as such.
    :param size: what the page takes as it came.
    :raises BadPage: it might.
    """
    allowed = ALLOWED + ALLOWED_PER_BYTE * size
    needed = _memory(page, allowed)
    if needed > allowed:
        raise BadPage(
            f"{name}: so many elements in {size / 1e6:.1f} MB might take {needed / 1e6:.0f} MB of memory, more than "
            f"the {allowed / 1e6:.0f} MB that a page of its size may take; split the page",
            subject=name,
        )


def _memory(page: Any, allowed: int) -> int:
    """Return how many bytes reading a page takes at most; comments and scripts count as markup.

    :param allowed: where it is surely less, a rough bound is returned, which takes hardly any time.
    """
    of_text = isinstance(page, str)
    per_tag = 2 * _PER_NODE + _PER_TEXT  # an element and a text
    if len(page) <= ALLOWED // per_tag:
        return per_tag * len(page)
    most: int = per_tag * page.count("<" if of_text else b"<") + _PER_BYTE_OF_ATTRIBUTES * len(page)
    if most <= allowed:
        return most
    node: Any = _NODE if of_text else _NODE_BYTES
    making: Any = _MAKING if of_text else _MAKING_BYTES
    nodes, texts, attributes = 0, 0, 0
    for _ in making.finditer(page):
        nodes += 2
    for found in node.finditer(page):
        nodes += 1
        if found.end(2) > 0:  # more than a letter, or the space between elements
            texts += 1
        else:
            attributes += found.end(1) - found.start(1)
    return _PER_NODE * nodes + _PER_TEXT * texts + _PER_BYTE_OF_ATTRIBUTES * attributes
