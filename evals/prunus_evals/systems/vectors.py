"""Vector-database RAG: fixed chunks, the nearest by cosine from a vector index, best first: ``vectors:EMBEDDER``.

Unlike ``chunks``, the chunks stand in the order of their likeness, and there are at most ``@top=12`` of them.
``@words=350`` words make a chunk, about the 512 tokens of Internet-SAG §5.1. The index is FAISS's exact one where FAISS
is installed, else a matrix; both give the same chunks, and the fact ``index`` says which it was.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from prunus.core.ports import Vectors
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._chunks import word_chunks
from prunus_evals.systems._documents import plain
from prunus_evals.systems._stages import COSTS, Stages
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.tokens import Counter

TOP = 12
WORDS = 350
VARIANTS = ("static", "minilm", "e5")
OPTIONS: Kinds = {"top": int, "words": int, **COSTS}
BETWEEN = "\n\n"


class VectorIndex:
    """Exact nearest neighbours of unit vectors in memory."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._faiss: Any = None
        if find_spec("faiss") is not None and len(vectors):
            import faiss  # here: it is optional

            self._faiss = faiss.IndexFlatIP(int(vectors.shape[1]))
            self._faiss.add(np.ascontiguousarray(vectors, np.float32))

    @property
    def name(self) -> str:
        """Which index it is."""
        return "faiss" if self._faiss is not None else "matrix"

    def nearest(self, vector: Vectors, count: int) -> list[int]:
        """Return the places of the nearest vectors, the nearest first."""
        count = min(count, len(self._vectors))
        if self._faiss is not None:
            found = self._faiss.search(np.asarray(vector, np.float32)[None, :], count)[1][0]
            return [int(place) for place in found]
        if not count:
            return []
        return [int(place) for place in np.argsort(-(self._vectors @ vector), kind="stable")[:count]]


class VectorRAG:
    """Keeps the nearest chunks, the nearest first; the first that does not fit is cut."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._embedder = _embed.embedder(variant.head)
        self._top = variant.options.get("top", TOP)
        self._words = max(1, variant.options.get("words", WORDS))
        self._costs = variant.options.get("costs") == "yes"
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Cut, embed and index the documents once."""
        stages = Stages(self._counter, self._costs)
        start = time.perf_counter()
        texts = [chunk for document in documents for chunk in word_chunks(plain(document), self._words)]
        stages.note("cut", time.perf_counter() - start, [document.content for document in documents], texts)
        start = time.perf_counter()
        index = VectorIndex(self._embedder.embed(texts))
        stages.note("embed and index", time.perf_counter() - start, texts, texts)
        return _Asker(texts, index, self._embedder, self._top, stages)


class _Asker:
    def __init__(
        self, texts: Sequence[str], index: VectorIndex, embedder: _embed.CachedEmbedder, top: int, stages: Stages
    ) -> None:
        self._texts, self._index, self._embedder, self._top, self._stages = texts, index, embedder, top, stages

    def ask(self, question: str, budget: int) -> Reply:
        start = time.perf_counter()
        best = self._index.nearest(self._embedder.embed([question], "query")[0], self._top) if self._texts else []
        whole = BETWEEN.join(self._texts[place] for place in best)
        text = self._stages.counter.head(whole, budget)
        stages = self._stages.copy()
        stages.note("retrieve", time.perf_counter() - start, [whole], [text])
        return Reply(text, "text", stages=tuple(stages.found), facts={"index": self._index.name})


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: another embedder, or options."""
    return _embed.is_embedder(read("vectors", variant, OPTIONS).head)


def missing(variant: str) -> str:
    """Return which package the embedder lacks; '' where nothing is missing."""
    return _embed.missing(read("vectors", variant, OPTIONS).head)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return VectorRAG(f"vectors:{variant}", read("vectors", variant, OPTIONS), counter)
