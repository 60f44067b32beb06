"""What most pages of a site repeat, such as menus, banners and footers: learned from some, left out of chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from .chunk import Chunk

SAMPLE: Final = 30
"""Pages of a site from which it is learned."""

LEAST: Final = 10
"""Fewest pages from which it is learned: of fewer, half may share a paragraph."""

_SHARE: Final = 0.5
_MOST: Final = 2_000  # lines of a site
_LONGEST: Final = 1_000  # code points of a line


def repeated_lines(texts: Sequence[str]) -> list[str]:
    """Return the lines that stand on at least half of some pages; [] of too few pages.

    :param texts: the canonical text of each page.
    """
    if len(texts) < LEAST:
        return []
    pages = Counter(line for text in texts for line in _lines(text))
    return [line for line, number in pages.most_common(_MOST) if number >= _SHARE * len(texts)]


def without_repetition(chunks: Sequence[Chunk], repeated: frozenset[str]) -> list[Chunk]:
    """Return the chunks that hold any line of their own; all where none does."""
    own = [chunk for chunk in chunks if not repeated.issuperset(_lines(chunk.text))] if repeated else chunks
    return list(own or chunks)


def _lines(text: str) -> set[str]:
    lines: Iterable[str] = (line.strip() for line in text.split("\n"))
    return {line[:_LONGEST] for line in lines if line}
