"""Find out whether a model is in a loop: its text ends with the same words again and again."""

from __future__ import annotations

import re
from typing import Final

_TIMES: Final = 8
_SIZES: Final = range(6, 201)
"""Code points of what is repeated."""
_STOP: Final = re.compile("[.!?\u3002\uff01\uff1f]")


def repeats_itself(text: str) -> bool:
    """Tell whether a text ends with the same 6 to 200 characters eight times."""
    return _size(text) > 0


def without_loop(text: str) -> str:
    """Return a text with what its end repeats written once, to the end of its sentence."""
    size = _size(text)
    if not size:
        return text
    start = len(text) - size
    while start and text[start - 1] == text[start - 1 + size]:
        start -= 1
    once, again = text[: start + size].rstrip(), text[start + size : start + 2 * size]
    stop = _STOP.search(again)  # the sentence before may have ended as this one does: then its stop is missing
    return once if stop is None or _STOP.match(once[-1:]) else text[: start + size] + again[: stop.end()]


def _size(text: str) -> int:
    """Return the length of what the end of a text repeats; 0 where it repeats nothing."""
    ends = ((size, text[-_TIMES * size :]) for size in _SIZES if _TIMES * size <= len(text))
    return next((size for size, end in ends if end == end[:size] * _TIMES), 0)
