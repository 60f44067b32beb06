"""Shared by the studies: baselines of the papers, as systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prunus.core.ports import Vectors
from prunus_evals.records import Asker, Document, Reply
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import plain
from prunus_evals.tokens import Counter

SIZE, OVERLAP, TOP, NEIGHBOURS = 512, 128, 12, 1
"""Of VectorDB-RAG (Internet-SAG, section 5.1): tokens of a chunk, of the overlap; best chunks; chunks beside each."""


@dataclass(frozen=True, slots=True)
class TitleAbstract:
    """The title and the abstract of a document; without an abstract, its first paragraph.

    The abstract of a paper is the ``snippet`` of its document.
    """

    counter: Counter
    name: str = "title_abstract"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read titles and abstracts."""
        parts = []
        for document in documents:
            blocks = (block.strip() for block in plain(document).split("\n\n"))
            parts.append(f"{document.title}\n\n{document.snippet or next(filter(None, blocks), '')}".strip())
        return _Fixed("\n\n".join(parts), self.counter)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No evidence: for questions that a reader answers from their words alone."""

    name: str = "nothing"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read nothing."""
        return self

    def ask(self, question: str, budget: int) -> Reply:
        """Return no evidence."""
        return Reply("", "text")


@dataclass(frozen=True, slots=True)
class _Fixed:
    text: str
    counter: Counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self.counter.head(self.text, budget), "text")


@dataclass(frozen=True, slots=True)
class VectorDB:
    """VectorDB-RAG: overlapping chunks of the text of all documents, the best by cosine, and the chunks beside them.

    The paper embeds with BGE-m3 and searches with FAISS; this compares with all chunks, which finds the same.

    :param embedder: short name or spec of an embedder.
    """

    embedder: str
    counter: Counter

    @property
    def name(self) -> str:
        """The name in outcomes."""
        return f"study:vectordb:{self.embedder}"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Cut and embed the documents; no chunk holds text of two."""
        chunks = [(number, chunk) for number, one in enumerate(documents) for chunk in cut(plain(one), self.counter)]
        texts = [chunk for _, chunk in chunks]
        vectors = _embed.embedder(self.embedder).embed(texts) if texts else None
        return _Chunks(self, texts, [number for number, _ in chunks], vectors)


@dataclass(frozen=True, slots=True)
class _Chunks:
    system: VectorDB
    texts: Sequence[str]
    owners: Sequence[int]
    vectors: Vectors | None

    def ask(self, question: str, budget: int) -> Reply:
        if self.vectors is None:
            return Reply("", "text")
        query = _embed.embedder(self.system.embedder).embed([question], "query")[0]
        kept: set[int] = set()
        for best in np.argsort(-(self.vectors @ query), kind="stable")[:TOP].tolist():
            beside = range(max(0, best - NEIGHBOURS), min(len(self.texts), best + NEIGHBOURS + 1))
            kept |= {place for place in beside if self.owners[place] == self.owners[best]}
        text = "\n\n".join(self.texts[place] for place in sorted(kept))
        return Reply(self.system.counter.head(text, budget), "text")


def cut(text: str, counter: Counter) -> list[str]:
    """Cut a text into chunks of at most 512 tokens, each of which begins 128 tokens before the end of the last."""
    chunks: list[str] = []
    start = 0
    while start < len(text):
        chunk = counter.head(text[start : start + 16 * SIZE], SIZE)
        if not chunk:  # a letter of more tokens than a chunk
            break
        if chunk.strip():
            chunks.append(chunk.strip())
        if start + len(chunk) >= len(text):
            break
        start += max(1, len(counter.head(chunk, SIZE - OVERLAP)))
    return chunks
