"""Tokens of each block's text alone, counted when they are first needed and kept for later questions.

Most blocks of many pages are far from a small budget: their words alone tell that they do not fit what is left of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..core.ports import TokenCounter
from .blocks import Blocks

_WORDS_A_TOKEN = 2
"""Words between spaces that a token holds at most, on average over a text. Common tokenizers never join two words."""

_BATCH = 4096
"""Texts per call of the token counter."""


class TextTokens:
    """The tokens of the blocks' texts, with white space normalised.

    :param blocks: the blocks, in whose cache the counts are kept.
    """

    __slots__ = ("_counter", "_known", "_texts", "least")

    def __init__(self, blocks: Blocks, counter: TokenCounter) -> None:
        self._texts, self._counter = blocks.texts, counter
        self._known = bytearray(len(blocks))
        self.least = array("q", (len(text.split()) // _WORDS_A_TOKEN for text in self._texts))
        """The tokens of each counted text; of the others, a number that they are not below."""

    def __getitem__(self, index: int) -> int:
        if not self._known[index]:
            self.count((index,))
        return self.least[index]

    def lower_bounds(self) -> NDArray[np.int64]:
        """Return a copy of ``least`` as an array, int64 [n]."""
        return np.array(self.least, np.int64)

    def is_known(self, index: int) -> bool:
        """Tell whether a text has been counted."""
        return bool(self._known[index])

    def count(self, indices: Iterable[int]) -> None:
        """Count texts together, which is faster than one by one."""
        for batch in _batches([index for index in indices if not self._known[index]]):
            counts = self._counter.count([" ".join(self._texts[index].split()) for index in batch])
            for index, tokens in zip(batch, counts, strict=True):
                self.least[index] = int(tokens)
                self._known[index] = 1

    def exceed(self, limit: float) -> bool:
        """Tell whether all texts together have more tokens; they are counted only where their words do not tell it."""
        if sum(self.least) > limit:
            return True
        for batch in _batches(range(len(self._texts))):
            self.count(batch)
            if sum(self.least) > limit:
                return True
        return False


def text_tokens(blocks: Blocks, counter: TokenCounter) -> TextTokens:
    """Return the tokens of the blocks' texts, shared by all questions about these blocks."""
    key = f"tokens:{type(counter).__module__}:{id(counter)}"
    known = blocks.cache.get(key)
    if not isinstance(known, TextTokens):
        known = blocks.cache[key] = TextTokens(blocks, counter)
    return known


def _batches(indices: list[int] | range) -> Iterator[list[int] | range]:
    for start in range(0, len(indices), _BATCH):
        yield indices[start : start + _BATCH]
