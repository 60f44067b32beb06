"""What an index holds: documents, and the nodes of the tree above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput
from ..core.ports import Ints, Vectors


class NoIndex(BadInput):
    """There is no index, and one may be made there."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document of an index.

    :param id: how it is named when it is replaced, removed or chosen.
    :param text: the canonical text, which spans point into; '' where only the record was asked for.
    :param digest: of the source, to see whether it has changed.
    :param language: ISO 639-1, for the stemmer.
    :param metadata: whatever belongs to it, as text.
    :param source: the page, packed, for output that keeps tables; b'' where there is none.
    """

    id: str
    text: str = ""
    title: str = ""
    url: str = ""
    digest: str = ""
    language: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    source: bytes = b""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A chunk that is to be kept.

    :param start, end: its place in code points of the document's canonical text.
    :param above: headings and leads that it stands under.
    """

    start: int
    end: int
    text: str
    tokens: int
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parent:
    """A node above others that is to be kept.

    :param children: numbers of nodes; negative ones count parents of the same call: -1 is its first.
    :param layer: 1 right above the leaves.
    :param document: '' for a tree over the whole collection.
    :param text: the summary; '' until there is one.
    """

    children: tuple[int, ...]
    layer: int
    document: str = ""
    text: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is kept.

    :param id: its number, never used again.
    :param layer: 0 for a leaf.
    :param document: the document of a leaf, or of a tree of one document; '' above several.
    :param place: of a leaf: its position among the leaves of the document; else -1.
    :param start, end: of a leaf: its span in the canonical text; else 0.
    :param text: the chunk, or the summary; '' for a summary that is still to be written.
    """

    id: int
    layer: int
    document: str
    place: int
    start: int
    end: int
    text: str
    tokens: int
    above: tuple[str, ...] = ()
    children: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """All nodes as arrays, of one state of the index (treat it as immutable).

    Leaves come first, in the order of documents and of their text; then the other nodes by number.

    :param ids, layer, document, place, tokens: int [n]; ``document`` numbers ``names``, -1 above several.
    :param row: of each node's own embedding in ``matrix``, -1 where it has none.
    :param routing: row of the mean of a node's leaves; of a leaf, its own.
    :param matrix: float32 [rows, dimension], mapped into memory.
    :param names: documents by number.
    :param languages: of the documents, each once, sorted.
    :param version: grows with every change.
    """

    ids: Ints
    layer: Ints
    document: Ints
    place: Ints
    tokens: Ints
    row: Ints
    routing: Ints
    matrix: Vectors
    names: Sequence[str]
    languages: Sequence[str]
    version: int

    @property
    def leaves(self) -> int:
        """How many leaves there are: they are the first nodes."""
        return int(np.count_nonzero(self.layer == 0))

    def similarities(self, vector: Vectors, routing: bool = False) -> NDArray[np.float64]:
        """Return the cosine of every node and a vector, float64 [n]; -2 where there is no embedding.

        :param routing: of the means of leaves instead of the summaries' own.
        """
        rows = self.routing if routing else self.row
        if not len(self.matrix):
            return np.full(len(rows), -2.0)
        whole: Any = self.matrix @ np.asarray(vector, np.float32)
        return np.where(rows >= 0, whole[np.maximum(rows, 0)], -2.0).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Growth:
    """A change of the tree that leaves most of it as it is. New nodes are -1, -2 … as in :class:`Parent`.

    :param parents: new nodes; their children stand in ``children``.
    :param children: what stands below the new nodes, and below nodes that have other children now.
    :param gone: nodes above leaves that are no more.
    :param dirty: nodes that stay but have other leaves now: their summaries are no longer true.
    :param documents: of the dirty nodes; '' above several.
    :param routing: float32 [parents + dirty, dimension]: the mean of the leaves of each.
    :param version: the state of the index that the change was made for.
    """

    parents: Sequence[Parent]
    children: Mapping[int, Sequence[int]]
    gone: Sequence[int]
    dirty: Sequence[int]
    documents: Sequence[str]
    routing: Vectors
    version: int


class NodeStore(Protocol):
    """What building and asking an index need of the place where it is kept."""

    place: str
    """How messages call it."""
    embedder: str
    """Identity of the embedder whose vectors are kept."""
    dimension: int

    def add_many(self, given: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        ...

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents and what was made of them; return how many were there."""
        ...

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents in the order in which they came, without their texts."""
        ...

    def document(self, id: str) -> IndexedDocument:
        """Return a document whole; raises BadInput where it is not in the index."""
        ...

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, own: Vectors | None = None) -> list[int]:
        """Put a new tree above the leaves."""
        ...

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; False where the index is no longer as it was."""
        ...

    def put_summaries(self, said: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries and their embeddings."""
        ...

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every node without a summary, lowest layers first."""
        ...

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        ...

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return nodes by number, in that order."""
        ...

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return BM25 of the ``leaves`` or the ``summaries`` that hold a term of the query."""
        ...

    def view(self) -> View:
        """Return all nodes as arrays."""
        ...

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes and tokens by layer, unsummarised, embedder, bytes."""
        ...

    def compact(self) -> None:
        """Let go of what nodes that are gone have left behind."""
        ...

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin so: how the index was built, what was found out about summaries."""
        ...

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes, all of them or none; an empty text takes one away."""
        ...
