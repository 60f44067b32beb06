"""Leaves: documents are cut into chunks and embedded, here or by a worker on another machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from ..core.errors import BadInput
from ..core.ports import ClusterLimits, Embedder, TokenCounter, Vectors
from ..core.text.words import guess_language
from ..pages.tree import Tree
from .chunk import SIZE, Chunk, chunk_text, chunk_tree
from .nodes import IndexedDocument, Leaf
from .repetition import without_repetition

Scope = Literal["collection", "document"]
"""One tree over the whole collection, or one tree over each document."""

_LEAST: Final = 8
"""Fewest tokens of a summary; fewer cannot hold a sentence."""

_LEAST_SHARD: Final = 100
"""Fewest nodes of a shard; in fewer, groups would be cut at its border."""

_PART: Final = 400_000
"""About how many code points are cut and embedded together: some 1,000 chunks. A document is never split over two."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document to add: a cleaned page, or plain text.

    :param id: names the document when it is replaced or removed later.
    :param tree: the cleaned page; None: ``text`` is the document.
    :param digest: hash of the source, to see later whether it has changed.
    :param source: the page, packed by :func:`prunus.index.evidence.packed`; b'': evidence from it is plain text.
    :param repeated: lines that stand on most pages of its site: chunks that hold nothing else are left out.
    """

    id: str
    tree: Tree | None = None
    text: str = ""
    title: str = ""
    url: str = ""
    digest: str = ""
    language: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    source: bytes = b""
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How an index is built.

    :param chunk_tokens, chunk_cap: ``size`` and ``cap`` of :func:`prunus.index.chunk.chunk_text`.
    :param structure: cut pages along their structure; False cuts their text only, as the paper does.
    :param above_share: weight of the headings and leads above a leaf in the leaf's vector, 0 to 1.
    :param summary_tokens: most tokens of a summary.
    :param scope: one tree over the collection, or one tree over each document.
    :param shard_nodes: about how many nodes are clustered together where a layer has more than four times as many.
    :param limits: limits of a node's children.
    :raises BadInput: summaries under 8 tokens, a share outside 0 to 1, an unknown scope, or shards under 100 nodes.
    """

    chunk_tokens: int = SIZE
    chunk_cap: int = 0
    structure: bool = True
    above_share: float = 0.3
    summary_tokens: int = 100
    scope: Scope = "collection"
    shard_nodes: int = 8000
    limits: ClusterLimits = field(default_factory=ClusterLimits)

    def __post_init__(self) -> None:
        if self.shard_nodes < _LEAST_SHARD:
            raise BadInput(f"shards of {self.shard_nodes} nodes: give {_LEAST_SHARD} or more", subject="settings")
        if self.summary_tokens < _LEAST or not 0 <= self.above_share <= 1 or self.scope not in get_args(Scope):
            raise BadInput(
                f"summaries of {self.summary_tokens} tokens, a share of {self.above_share:g} for headings, a tree over "
                f"each {self.scope}: give {_LEAST} tokens or more, 0 to 1, and collection or document",
                subject="settings",
            )


PAPER: Final = BuildSettings(structure=False, above_share=0.0)
"""The paper's settings: chunks of 100 tokens of plain text, embedded without headings."""


CutDocument: TypeAlias = tuple[IndexedDocument, Sequence[Leaf], Vectors]
"""A document with its leaves and their embeddings, float32 [leaves, dimension] of unit norm: what a store keeps."""


class Cutter:
    """Cuts documents into leaves and embeds them. It needs no store, so that any process can do it.

    :param embedder: that of the index.
    :param dimension: of the vectors, for documents without a leaf.
    """

    def __init__(self, embedder: Embedder, tokenizer: TokenCounter, settings: BuildSettings, dimension: int) -> None:
        self.embedder, self.tokenizer = embedder, tokenizer
        self.settings, self.dimension = settings, dimension

    def cut(self, source: DocumentSource) -> tuple[IndexedDocument, list[Leaf]]:
        """Return a document to store, and its leaves."""
        document, chunks = self._cut(source)
        return document, [Leaf(chunk.start, chunk.end, chunk.text, chunk.tokens, chunk.above) for chunk in chunks]

    def cut_each(self, sources: Iterable[DocumentSource]) -> list[CutDocument]:
        """Return documents with their leaves and vectors, in order; all leaves are embedded together."""
        documents = [self.cut(source) for source in sources]
        vectors = self.embed([leaf for _, leaves in documents for leaf in leaves])
        found: list[CutDocument] = []
        start = 0
        for document, leaves in documents:
            found.append((document, leaves, vectors[start : start + len(leaves)]))
            start += len(leaves)
        return found

    def _cut(self, source: DocumentSource) -> tuple[IndexedDocument, list[Chunk]]:
        settings, tree = self.settings, source.tree
        text = tree.canonical if tree else source.text
        size = (settings.chunk_tokens, settings.chunk_cap)
        if tree and settings.structure:
            chunks = chunk_tree(tree, self.tokenizer, *size)
        else:
            chunks = chunk_text(text, self.tokenizer, *size)
        chunks = without_repetition(chunks, source.repeated)
        language = source.language or (tree.lang if tree else "") or guess_language(text)
        title, url = source.title or (tree.title if tree else ""), source.url or (tree.url if tree else "")
        return IndexedDocument(
            source.id, text, title, url, source.digest, language, source.metadata, source.source
        ), chunks

    def embed(self, leaves: Sequence[Leaf]) -> Vectors:
        """Embed leaves with the headings and leads above them; equal headings are embedded once."""
        if not leaves:
            return np.zeros((0, self.dimension), np.float32)
        vectors: Any = self.embedder.embed([leaf.text for leaf in leaves], "document")
        above = [" ".join(leaf.above) for leaf in leaves]
        share = self.settings.above_share
        if share and any(above):
            places: dict[str, int] = {}
            for line in above:
                if line:
                    places.setdefault(line, len(places))
            lead = self.embedder.embed(list(places), "document")
            rows = np.asarray([places.get(line, -1) for line in above])
            vectors = np.where((rows >= 0)[:, None], (1 - share) * vectors + share * lead[np.maximum(rows, 0)], vectors)
        return unit(vectors)


def parts_of(sources: Iterable[DocumentSource]) -> Iterator[list[DocumentSource]]:
    """Yield documents in parts of about the same length, the same parts wherever they are cut."""
    part: list[DocumentSource] = []
    size = 0
    for source in sources:
        part.append(source)
        size += len(source.tree.canonical if source.tree else source.text)
        if size >= _PART:
            yield part
            part, size = [], 0
    if part:
        yield part


def unit(vectors: Any) -> Vectors:
    """Return vectors of unit norm, float32 [n, dimension]; a vector of zeros stays."""
    found = np.asarray(vectors, np.float32)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-12), np.float32)
