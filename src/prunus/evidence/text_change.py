"""Where two renderings differ: what must be encoded to know what the difference costs."""

from __future__ import annotations

import re
from typing import Final

_WINDOW: Final = 48
"""Code points on both sides of a change that are encoded with it: tokens do not reach further."""

_FAR: Final = 80
"""Code points by which a window grows to begin and end between words."""

_GAP: Final = re.compile(r"[ \n]")


def around_change(before: str, after: str) -> tuple[int, int]:
    """Return how much of two texts is the same at their start and at their end, and need not be encoded.

    What is left out ends and begins between words, where there is white space near.
    """
    start = _common(before, after)
    end = _common_end(before, after, start)
    low = _gap_before(after, max(0, start - _WINDOW))
    return low, len(after) - _gap_after(after, len(after) - max(0, end - _WINDOW))


def _gap_before(text: str, place: int) -> int:
    """Return the nearest white space before a place: no token reaches across it. The place itself, if none is near."""
    near = max(0, place - _FAR)
    found = max(text.rfind(" ", near, place), text.rfind("\n", near, place))
    return found if found >= 0 else place


def _gap_after(text: str, place: int) -> int:
    """Return where the nearest white space from a place on is; the place, if none is near."""
    found = _GAP.search(text, place, place + _FAR)
    return found.start() if found else place


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, start: int) -> int:
    """Return the length of the common suffix, not reaching into the common prefix."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
