"""The plain text in chunks of 200 words, ranked by BM25.

Variant ``whole`` packs whole chunks only; ``filled``, the stronger one at small budgets, cuts the first chunk that
does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.records import Asker, Document, System
from prunus_evals.systems._chunks import PACKERS, ChunkAsker, word_chunks
from prunus_evals.systems._documents import text_of
from prunus_evals.tokens import Counter

WORDS = 200
VARIANTS = tuple(PACKERS)


class ChunksBM25:
    """Keeps the chunks of plain text that BM25 ranks first."""

    def __init__(self, packing: str, counter: Counter) -> None:
        self.name = f"chunks_bm25:{packing}"
        self._packing = packing
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Extract, cut and index the text once."""
        chunks = word_chunks(text_of(documents), WORDS)
        return ChunkAsker(chunks, "text", "\n", self._packing, self._counter)


def make(counter: Counter, variant: str) -> System:
    """Return the system with this packing."""
    return ChunksBM25(variant, counter)
