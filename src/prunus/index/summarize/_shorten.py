"""Cut a summary that is longer than it may be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from ...core.ports import Ints
from ...core.text.words import sentences

Count = Callable[[Sequence[str]], Ints]


def shortened(text: str, max_tokens: int, count: Count) -> str:
    """Return the longest beginning of a text that has at most ``max_tokens`` tokens, by binary search."""
    fits = bisect_right(range(1, len(text) + 1), max_tokens, key=lambda end: int(count([text[:end]])[0]))
    return text[:fits].strip()


def whole_sentences(text: str, max_tokens: int, count: Count) -> str:
    """Return the first sentences of a text that have at most ``max_tokens`` tokens, or a beginning of the first."""
    if int(count([text])[0]) <= max_tokens:
        return text
    parts = sentences(text)
    fits = bisect_right(
        range(1, len(parts) + 1), max_tokens, key=lambda end: int(count(["".join(parts[:end]).strip()])[0])
    )
    return "".join(parts[:fits]).strip() or shortened(text, max_tokens, count)
