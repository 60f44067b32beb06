"""``embedding``: cosine of the question and each block, with the headings above the block (HtmlRAG §3.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...core.deadline import check
from ...core.ports import Embedder, Vectors
from ...core.text.likeness import Likeness, dot_products
from ..blocks import Blocks
from ._signals import above_texts, labelled_texts

ABOVE_SHARE = 0.3
"""Share of the headings and the lead in a block's vector (chosen on the dev half)."""

KEPT_BYTES = 16 * 1024 * 1024
BYTES_A_LETTER = 8
"""Vectors are cached for the next question up to KEPT_BYTES, plus BYTES_A_LETTER for each letter of the pages. More
bytes mean blocks of a few letters each; then the vectors are dropped after scoring."""

CHUNK = 2048
"""Blocks that are embedded at a time; it bounds the memory."""


class Engine:
    """Cosine similarity in [-1, 1] by an embedder."""

    name = "embedding"
    second_stage = False
    one_prompt = False
    least_share = 0.0
    tree = None

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one cosine per block, float64 [n]."""
        return self.cosines(self.embedder.embed([query], "query")[0], blocks) if len(blocks) else np.zeros(0)

    def beside_words(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one number per block to be added to BM25, float64 [n]: see :meth:`.Likeness.beside_words`."""
        question = self.embedder.embed([query], "query")[0]
        cosines = self.cosines(question, blocks)
        said = self.embedder.identity
        key = f"likeness:{said}"  # it keeps the vectors of its samples for the next question
        known = blocks.cache.get(key)
        if not (isinstance(known, Likeness) and (said or known.embedder is self.embedder)):
            known = blocks.cache[key] = Likeness(self.embedder)
        return known.beside_words(query, question, cosines)

    def cosines(self, question: Vectors, blocks: Blocks) -> NDArray[np.float64]:
        """Return the cosine of a question's vector and each block, float64 [n]; there is at least one block."""
        parts = [dot_products(part, question) for part in self._parts(blocks, question)]
        return np.asarray(np.concatenate(parts), np.float64)

    def centroid(self, blocks: Blocks, weights: NDArray[np.float64]) -> Vectors:
        """Return the mean of the blocks' vectors by weights, of length 1 (or 0), float32 [dimension]."""
        result = np.zeros_like(self.embedder.embed(["text"], "document")[0])
        start = 0
        for part in self._parts(blocks, result):
            result += weights[start : start + len(part)].astype(np.float32) @ part
            start += len(part)
        return np.asarray(result / max(np.linalg.norm(result).item(), 1e-9), np.float32)

    def _parts(self, blocks: Blocks, like: Vectors) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of the blocks, in order; they are kept where they are not too many.

        :param like: a vector of the same size.
        """
        letters = sum(len(tree.canonical) for tree in blocks.trees)
        if len(blocks) * like.nbytes > KEPT_BYTES + BYTES_A_LETTER * letters:
            yield from (self._embed(blocks, start) for start in range(0, len(blocks), CHUNK))
        else:
            yield self._vectors(blocks, len(like))

    def _vectors(self, blocks: Blocks, dimension: int) -> NDArray[np.float32]:
        """Return the vectors of the blocks, float32 [n, dimension]; they are embedded once for all questions."""
        # the key is the embedder's identity, because each call makes new engines. Without an identity the
        # embedder is cached with its vectors, so that no later object can have the same id()
        said = self.embedder.identity
        key = f"vectors:{said or id(self.embedder)}"
        known = blocks.cache.get(key)
        if isinstance(known, tuple) and (said or known[0] is self.embedder):
            return np.asarray(known[1], np.float32)
        vectors = np.empty((len(blocks), dimension), np.float32)
        for start in range(0, len(blocks), CHUNK):
            vectors[start : start + CHUNK] = self._embed(blocks, start)
        blocks.cache[key] = (self.embedder, vectors)
        return vectors

    def _embed(self, blocks: Blocks, start: int) -> NDArray[np.float32]:
        """Embed ``CHUNK`` blocks; headings that many blocks share are embedded once."""
        check()
        above = above_texts(blocks)[start : start + CHUNK]
        places: dict[str, int] = {}
        for text in above:
            if text:
                places.setdefault(text, len(places))
        vectors = self.embedder.embed(
            [text or " " for text in labelled_texts(blocks)[start : start + CHUNK]], "document"
        )
        if places:
            lead = self.embedder.embed(list(places), "document")
            rows = np.asarray([places.get(text, -1) for text in above])
            mixed = vectors.copy()
            inside = rows >= 0
            mixed[inside] = (1 - ABOVE_SHARE) * vectors[inside] + ABOVE_SHARE * lead[rows[inside]]
            vectors = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
        return vectors
