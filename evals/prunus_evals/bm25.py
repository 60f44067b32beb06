"""Plain BM25 for the baselines; it shares no code with the product's BM25."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

K1 = 1.5
B = 0.75
WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return WORD.findall(text.lower())


class BM25:
    """BM25 over a list of texts, with the variant of idf that is never negative."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(tokens(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        mean = lengths.mean() if len(texts) else 0.0
        self._size = len(texts)
        self._norm = K1 * (1 - B + B * lengths / (mean or 1.0))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for index, count in enumerate(counts):
            for word, times in count.items():
                self._postings.setdefault(word, []).append((index, times))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every text for a query, higher is better."""
        total = np.zeros(self._size)
        for word in tokens(query):
            posting = self._postings.get(word)
            if posting is None:
                continue
            idf = np.log(1 + (self._size - len(posting) + 0.5) / (len(posting) + 0.5))
            where = np.array([index for index, _ in posting])
            times = np.array([times for _, times in posting], dtype=np.float64)
            total[where] += idf * times * (K1 + 1) / (times + self._norm[where])
        return total

    def ranking(self, query: str) -> list[int]:
        """Return the indexes of the texts, best first, ties in document order."""
        return [int(index) for index in np.argsort(-self.scores(query), kind="stable")]
