"""``embedding``: cosine of question and block with what stands above it (HtmlRAG §3.4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder
from ..blocks import Blocks
from ._signals import above_texts

ABOVE_SHARE = 0.3
"""Share of what stands above in a block's vector (dev half)."""

KEPT_BYTES = 16 * 1024 * 1024
BYTES_A_LETTER = 8
"""Vectors that are kept for the next question: so many bytes, and so many more for each letter of the
pages. Beyond, blocks are a few letters each, and only their similarities are kept."""

CHUNK = 2048
"""Blocks that are embedded at a time."""


class Engine:
    """Cosine similarity in [-1, 1] by the given embedder."""

    name = "embedding"
    fine = False
    one_prompt = False
    tree = None

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one cosine a block, float64 [n]."""
        if not len(blocks):
            return np.zeros(0)
        asked = self.embedder.embed([query], "query")[0]
        if len(blocks) * asked.nbytes > KEPT_BYTES + BYTES_A_LETTER * sum(len(tree.canonical) for tree in blocks.trees):
            parts = [self._embed(blocks, start) @ asked for start in range(0, len(blocks), CHUNK)]
            return np.asarray(np.concatenate(parts), np.float64)
        return np.asarray(self._vectors(blocks, len(asked)) @ asked, np.float64)

    def _vectors(self, blocks: Blocks, dimension: int) -> NDArray[np.float32]:
        """Embed the blocks once for all questions."""
        # by identity where the embedder states one: each call makes its engines anew. Without one the
        # embedder itself is kept beside the vectors, so that no later object can come to its address
        said = self.embedder.identity
        key = f"vectors:{said or id(self.embedder)}"
        known = blocks.cache.get(key)
        if isinstance(known, tuple) and (said or known[0] is self.embedder):
            return np.asarray(known[1], np.float32)
        found = np.empty((len(blocks), dimension), np.float32)
        for start in range(0, len(blocks), CHUNK):
            found[start : start + CHUNK] = self._embed(blocks, start)
        blocks.cache[key] = (self.embedder, found)
        return found

    def _embed(self, blocks: Blocks, start: int) -> NDArray[np.float32]:
        """Embed ``CHUNK`` blocks; what stands above many of them is embedded once."""
        above = above_texts(blocks)[start : start + CHUNK]
        places: dict[str, int] = {}
        for text in above:
            if text:
                places.setdefault(text, len(places))
        own = self.embedder.embed([text or " " for text in blocks.texts[start : start + CHUNK]], "document")
        if places:
            lead = self.embedder.embed(list(places), "document")
            rows = np.asarray([places.get(text, -1) for text in above])
            mixed = own.copy()
            inside = rows >= 0
            mixed[inside] = (1 - ABOVE_SHARE) * own[inside] + ABOVE_SHARE * lead[rows[inside]]
            own = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
        return own
