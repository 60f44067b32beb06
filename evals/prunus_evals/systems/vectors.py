"""Vector-database RAG: fixed chunks, the nearest by cosine from a vector index, best first: ``vectors:EMBEDDER``.

Unlike ``chunks``, the chunks stand in the order of their likeness, and there are at most ``@top=12`` of them.
``@words=350`` words make a chunk. ``@tokens=512@overlap=128@beside=1`` is VectorDB-RAG of Internet-SAG (section 5.1):
chunks of 512 tokens, each of which begins 128 tokens before the end of the last, and the chunk beside each of the best,
all in the order of the documents. The index is FAISS's exact one where FAISS is installed, else a matrix; both give the
same chunks, and the fact ``index`` says which it was.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from prunus.core.ports import Vectors
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import plain
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.systems.chunks import token_chunks, word_chunks
from prunus_evals.tokens import Counter

TOP = 12
WORDS = 350
VARIANTS = ("static", "minilm", "e5")
OPTIONS: Kinds = {**dict.fromkeys(("top", "words", "tokens", "overlap", "beside"), int), **COSTS}
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
    """Keeps the nearest chunks, and those beside them; the first that does not fit is cut."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._options = variant.options
        self._costs = variant.options.get("costs") == "yes"
        self._embedder = _embed.embedder(variant.head, hold=not self._costs)
        self._counter = counter
        self.models = _embed.models(variant.head)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Cut, embed and index the documents once."""
        options = self._options
        stages = StageTimer(self._counter, self._costs)
        start = time.perf_counter()
        chunks = [(place, chunk) for place, one in enumerate(documents) for chunk in self._cut(plain(one))]
        texts = [chunk for _, chunk in chunks]
        stages.note("cut", time.perf_counter() - start, [document.content for document in documents], texts)
        start = time.perf_counter()
        index = VectorIndex(self._embedder.embed(texts))
        stages.note("embed and index", time.perf_counter() - start, texts, texts)
        owners = [place for place, _ in chunks]
        return _Asker((texts, owners), index, self._embedder, stages, options.get("top", TOP), options.get("beside", 0))

    def _cut(self, text: str) -> list[str]:
        if "tokens" in self._options:
            return token_chunks(text, self._options["tokens"], self._options.get("overlap", 0), self._counter)
        return word_chunks(text, max(1, self._options.get("words", WORDS)))


class _Asker:
    """
    :param chunks: the chunks, and the place of the document of each.
    """

    def __init__(
        self,
        chunks: tuple[Sequence[str], Sequence[int]],
        index: VectorIndex,
        embedder: _embed.CachedEmbedder,
        stages: StageTimer,
        top: int,
        beside: int,
    ) -> None:
        self._texts, self._owners = chunks
        self._index, self._embedder, self._stages = index, embedder, stages
        self._top, self._beside = top, beside

    def ask(self, question: str, budget: int) -> Reply:
        start = time.perf_counter()
        best = self._index.nearest(self._embedder.embed([question], "query")[0], self._top) if self._texts else []
        if self._beside:
            best = sorted({place for one in best for place in self._around(one)})
        whole = BETWEEN.join(self._texts[place] for place in best)
        text = self._stages.counter.head(whole, budget)
        stages = self._stages.copy()
        stages.note("retrieve", time.perf_counter() - start, [whole], [text])
        return Reply(text, "text", stages=tuple(stages.found), facts={"index": self._index.name})

    def _around(self, place: int) -> list[int]:
        """Return a chunk and those beside it in the same document."""
        beside = range(max(0, place - self._beside), min(len(self._texts), place + self._beside + 1))
        return [other for other in beside if self._owners[other] == self._owners[place]]


def _variant(variant: str) -> Variant:
    found = read("vectors", variant, OPTIONS)
    options = found.options
    if "overlap" in options and options["overlap"] >= options.get("tokens", 0):
        raise UnknownName(f"vectors:{variant}: chunks of @tokens= overlap by fewer tokens than they have")
    if options.get("tokens") == 0:
        raise UnknownName(f"vectors:{variant}: a chunk has one token or more")
    return found


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: another embedder, or options."""
    return _embed.is_embedder(_variant(variant).head)


NEEDS = _embed.NEEDS


def missing(variant: str) -> str:
    """Return which package the embedder lacks; '' where nothing is missing."""
    return _embed.missing(_variant(variant).head)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return VectorRAG(f"vectors:{variant}", _variant(variant), counter)
