"""``bm25``: lexical scores of blocks; the headings above a block are a field of lower weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.text.bm25 import BM25
from ...core.text.words import guess_language
from ..blocks import Blocks
from ._signals import above_texts, labelled_texts

ABOVE_WEIGHT = 0.5
"""Weight of a term in headings, caption or header; a term in the block counts 1 (chosen on the dev half)."""


class Engine:
    """BM25 with stemming by language; a score is 0 where no term matches."""

    name = "bm25"
    second_stage = False
    one_prompt = False
    least_share = 0.0
    tree = None

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one BM25 score per block, float64 [n]."""
        return index_of(blocks).scores(query)


def index_of(blocks: Blocks) -> BM25:
    """Return the BM25 index of the blocks; it is built once for all questions."""
    index = blocks.cache.get("bm25")
    if not isinstance(index, BM25):
        texts = labelled_texts(blocks)
        # pages that state no language: 200 blocks are enough to guess it
        lang = next((tree.lang for tree in blocks.trees if tree.lang), "") or guess_language(" ".join(texts[:200]))
        index = BM25(texts, above_texts(blocks), language=lang, above_weight=ABOVE_WEIGHT)
        blocks.cache["bm25"] = index
    return index
