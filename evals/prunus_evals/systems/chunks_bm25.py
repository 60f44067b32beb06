"""The plain text in chunks of 200 words, ranked by BM25: ``chunks:fixed:bm25`` under an older name.

Variant ``whole`` packs whole chunks only; ``filled``, the stronger one at small budgets, cuts the first chunk that
does not fit.
"""

from __future__ import annotations

from prunus_evals.records import System
from prunus_evals.systems._variants import Variant
from prunus_evals.systems.chunks import PACKERS, RankedChunks
from prunus_evals.tokens import Counter

VARIANTS = tuple(PACKERS)


def make(counter: Counter, variant: str) -> System:
    """Return the system with this packing."""
    return RankedChunks(f"chunks_bm25:{variant}", Variant("fixed:bm25", {"pack": variant}), counter)
