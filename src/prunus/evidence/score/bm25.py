"""``bm25``: lexical scores of blocks with what stands above them as a weaker field."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.text.bm25 import BM25
from ...core.text.words import guess_language
from ..blocks import Blocks
from ._signals import above_texts

ABOVE_WEIGHT = 0.5
"""Weight of a term in headings, caption or header against one in the block itself (dev half)."""


class Engine:
    """BM25 with stemming by language; scores are BM25's own, 0 where nothing matches."""

    name = "bm25"
    fine = False
    one_prompt = False
    tree = None

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one BM25 score a block, float64 [n]."""
        return index_of(blocks).scores(query)


def index_of(blocks: Blocks) -> BM25:
    """Return the blocks' index, built once for all questions."""
    index = blocks.cache.get("bm25")
    if not isinstance(index, BM25):
        texts = blocks.texts
        lang = next((tree.lang for tree in blocks.trees if tree.lang), "") or guess_language(" ".join(texts[:200]))
        index = BM25(texts, above_texts(blocks), language=lang, above_weight=ABOVE_WEIGHT)
        blocks.cache["bm25"] = index
    return index
