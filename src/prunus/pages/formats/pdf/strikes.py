"""Find the struck words of a PDF page: under annotations that strike, or with a line through their middle."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from .lines import Word

_LOW, _HIGH = 0.14, 0.46  # em above the baseline; where a line goes through the middle of small letters and of capitals
_THICK: Final = 0.16  # em; a thicker line is a highlight
_OVER: Final = 0.6  # share of a word that a strike covers, at least
_END: Final = 0.4  # em; how far a line ends from the words that it strikes, at most
_MOST: Final = 1000  # strikes of a page, and words near one of them, at most


class StruckWords:
    """The words of one page by their height."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = sorted(words, key=lambda word: word.y)
        self.heights = [word.y for word in self.words]
        self.tallest = max((word.size for word in words), default=0.0)

    def mark(self, boxes: Sequence[Sequence[float]], rules: Sequence[Sequence[float]]) -> list[Sequence[float]]:
        """Mark the words under boxes that strike and those that rules strike; return the other rules."""
        for box in boxes[:_MOST]:
            for word in self._covered(box, box[1], box[3] + self.tallest):
                if box[1] < word.y - 0.3 * word.size < box[3]:
                    word.struck = True
        left = []
        for rule in rules:
            struck = self._struck_by(rule) if rule[3] - rule[1] < rule[2] - rule[0] else []
            for word in struck:
                word.struck = True
            if not struck:
                left.append(rule)
        return left

    def _covered(self, box: Sequence[float], top: float, bottom: float) -> list[Word]:
        """Return the words with baselines between two heights that a box covers from left to right."""
        start = bisect_left(self.heights, top)
        near = self.words[start : min(bisect_right(self.heights, bottom), start + _MOST)]
        return [
            word for word in near if min(word.x1, box[2]) - max(word.x0, box[0]) > _OVER * max(word.x1 - word.x0, 0.1)
        ]

    def _struck_by(self, rule: Sequence[float]) -> list[Word]:
        """Return the words of one line that a rule strikes: it is about as wide as they are together."""
        x0, y0, x1, y1 = rule
        y = (y0 + y1) / 2
        words = [
            word
            for word in self._covered(rule, y, y + _HIGH * self.tallest)
            if _LOW * word.size < word.y - y < _HIGH * word.size and y1 - y0 <= _THICK * word.size
        ]
        if not words or not any(letter.isalnum() for word in words for letter in word.text):
            return []
        reach = _END * max(word.size for word in words)
        first, last = min(word.x0 for word in words), max(word.x1 for word in words)
        return words if abs(first - x0) <= reach and abs(last - x1) <= reach else []
