"""The plain text in chunks of 200 words, ranked by BM25.

Variant ``whole`` packs whole chunks only; ``filled``, the stronger one at small budgets, cuts the first chunk that
does not fit.
"""

from __future__ import annotations

from prunus_evals.records import Asker, System
from prunus_evals.systems._chunks import PACKERS, ChunkAsker, word_chunks
from prunus_evals.tokens import Counter
from prunus_evals.visible import html_text

WORDS = 200
VARIANTS = tuple(PACKERS)


class ChunksBM25:
    """Keeps the chunks of plain text that BM25 ranks first."""

    def __init__(self, packing: str, counter: Counter) -> None:
        self.name = f"chunks_bm25:{packing}"
        self._packing = packing
        self._counter = counter

    def prepare(self, html: str) -> Asker:
        """Extract, cut and index the text once."""
        chunks = word_chunks(html_text(html), WORDS)
        return ChunkAsker(chunks, "text", "\n", self._packing, self._counter)


def make(counter: Counter, variant: str) -> System:
    """Return the system with this packing."""
    return ChunksBM25(variant, counter)
