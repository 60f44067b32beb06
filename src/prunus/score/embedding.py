"""``embedding``: cosine of question and block with what stands above it (HtmlRAG §3.4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..ports import Embedder
from ._signals import above_texts

ABOVE_SHARE = 0.3
"""Share of what stands above in a block's vector (dev half)."""


class Engine:
    """Cosine similarity in [-1, 1] by the given embedder."""

    name = "embedding"
    needs = ("embedder",)

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one cosine a block, float64 [n]."""
        if not len(blocks):
            return np.zeros(0)
        vectors = self._vectors(blocks)
        asked = self.embedder.embed([query], "query")[0]
        return np.asarray(vectors @ asked, np.float64)

    def _vectors(self, blocks: Blocks) -> NDArray[np.float32]:
        """Embed the blocks once for all questions; what stands above many blocks is embedded once."""
        # by identity where the embedder states one: each call makes its engines anew. Without one the
        # embedder itself is kept beside the vectors, so that no later object can come to its address
        said = getattr(self.embedder, "identity", "")
        key = f"vectors:{said or id(self.embedder)}"
        known = blocks.cache.get(key)
        if isinstance(known, tuple) and (said or known[0] is self.embedder):
            return np.asarray(known[1], np.float32)
        above = above_texts(blocks)
        places: dict[str, int] = {}
        for text in above:
            if text:
                places.setdefault(text, len(places))
        own = self.embedder.embed([text or " " for text in blocks.texts], "document")
        if places:
            lead = self.embedder.embed(list(places), "document")
            rows = np.asarray([places.get(text, -1) for text in above])
            mixed = own.copy()
            inside = rows >= 0
            mixed[inside] = (1 - ABOVE_SHARE) * own[inside] + ABOVE_SHARE * lead[rows[inside]]
            own = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
        blocks.cache[key] = (self.embedder, own)
        return own
