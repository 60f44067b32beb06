"""The data of an index: documents, leaves, nodes and changes of the tree, and the port of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput
from ..core.ports import Ints, Vectors

RUN: Final = 16
"""A document has so many times the chunks that may count on each side of one."""


EXACT_NODES: Final = 50_000
"""Most nodes of an index that a question scores one and all, by default."""


class NoIndex(BadInput):
    """There is no index, and a new one may be created there."""


def read_json(text: Any, type: Any) -> Any:
    """Return a value that a store holds as JSON.

    :raises ValueError: it is no JSON of this type: a stranger's index can hold anything, with checksums that fit.
    """
    try:
        return msgspec.convert(json.loads(text), type)
    except (msgspec.ValidationError, ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"no JSON of its kind: {error}") from error


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document of an index.

    :param id: names the document when it is replaced, removed or chosen.
    :param text: the canonical text, to which spans refer; '' in a record without its text.
    :param digest: hash of the source, to see whether it has changed.
    :param language: ISO 639-1 code, for the stemmer.
    :param metadata: further fields, as text.
    :param source: the packed page, for output that keeps tables; b'' where there is none.
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
    """A chunk to store.

    :param start, end: the slice, in code points of the document's canonical text.
    :param above: the headings and leads above the chunk.
    """

    start: int
    end: int
    text: str
    tokens: int
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent node to store.

    :param children: numbers of nodes; a negative number is a parent of the same call, -1 the first.
    :param layer: 1 is right above the leaves.
    :param document: the document of all leaves below; '' above several documents.
    :param text: the summary; '' until it is written.
    """

    children: tuple[int, ...]
    layer: int
    document: str = ""
    text: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A stored node.

    :param id: the node's number; numbers of deleted nodes are never used again.
    :param layer: 0 for a leaf.
    :param document: the document of all leaves below; '' above several documents.
    :param position: a leaf's position among the leaves of its document; else -1.
    :param start, end: a leaf's span in the canonical text; else 0.
    :param text: the chunk, or the summary; '' for a summary that is not written yet.
    """

    id: int
    layer: int
    document: str
    position: int
    start: int
    end: int
    text: str
    tokens: int
    above: tuple[str, ...] = ()
    children: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """All nodes of one state of the index, as arrays (treat it as immutable).

    Leaves come first, by document and position; then the parents by number.

    :param ids, layer, document, position, tokens: int [n]; ``document`` indexes ``names``, -1 above several documents.
    :param row: int [n], the row of the node's embedding in ``matrix``; -1 without an embedding.
    :param routing: int [n], the row of the mean of the node's leaves; for a leaf, its embedding.
    :param matrix: float32 [rows, dimension], mapped into memory.
    :param names: the ids of the documents.
    :param languages: the languages of the documents, each once, sorted.
    :param version: number of the state; grows with every change.
    """

    ids: Ints
    layer: Ints
    document: Ints
    position: Ints
    tokens: Ints
    row: Ints
    routing: Ints
    matrix: Vectors
    names: Sequence[str]
    languages: Sequence[str]
    version: int

    @property
    def leaves(self) -> int:
        """The number of leaves, which are the first nodes."""
        return int(np.count_nonzero(self.layer == 0))

    def similarities(self, vector: Vectors, routing: bool = False) -> NDArray[np.float64]:
        """Return the cosine of every node and a vector, float64 [n]; -2 for a node without an embedding.

        :param routing: compare with the means of leaves instead of the embeddings of summaries.
        """
        rows = self.routing if routing else self.row
        if not len(self.matrix):
            return np.full(len(rows), -2.0)
        whole: Any = self.matrix @ np.asarray(vector, np.float32)
        return np.where(rows >= 0, whole[np.maximum(rows, 0)], -2.0).astype(np.float64)


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """What a question looks for in a large index.

    :param query: the question.
    :param vector: its embedding, float32 [dimension].
    :param count: how many leaves are wanted by their cosine, and how many by BM25.
    :param budget: tokens that are to be filled; it limits the neighbours that count.
    :param reach: most leaves before and after a leaf whose scores count for it.
    :param summaries: whether summaries are wanted, too; as many.
    :param documents: ids of the documents to search; () is all.
    """

    query: str
    vector: Vectors
    count: int
    budget: int
    reach: int
    summaries: bool = False
    documents: tuple[str, ...] = ()

    def reach_of(self, mean_tokens: float) -> int:
        """Return how many leaves on each side of one count, where a leaf has ``mean_tokens`` tokens."""
        return max(1, min(self.reach, int(self.budget / max(mean_tokens, 1.0) / 2)))


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """Mean and deviation of the scores of all nodes of a kind, to standardise the scores of some of them.

    :param cosine, bm25: (mean, standard deviation); a node without a term of the question has the BM25 score 0.
    """

    cosine: tuple[float, float]
    bm25: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that may be the best for a question: the best by cosine, the best by BM25, and the leaves around them.

    The nodes are in the order of the whole view: leaves by document and position, then summaries by number. Summaries
    without a text are left out. The best may be found approximately; the scores of the nodes that are found are exact.

    :param ids, layer, document, position, tokens: int [n], as in :class:`View`; ``document`` is any number for a
        document.
    :param cosine, bm25: float64 [n].
    :param siblings: int [n], the number of all leaves of the node's document; 0 for a summary.
    :param reach: the leaves on each side that count, at most; the leaves that close to one of the best are among the
        nodes.
    :param leaves, summaries: the scores of all nodes of the kind; exact or estimated.
    """

    ids: Ints
    layer: Ints
    document: Ints
    position: Ints
    tokens: Ints
    cosine: NDArray[np.float64]
    bm25: NDArray[np.float64]
    siblings: Ints
    reach: int
    leaves: ScoreMoments
    summaries: ScoreMoments


@dataclass(frozen=True, slots=True)
class Growth:
    """A change of a part of the tree. New nodes are -1, -2, … as in :class:`Parent`.

    :param parents: new nodes; their children are in ``children``.
    :param children: the children of new nodes, and of nodes whose children have changed.
    :param gone: parents that are deleted.
    :param dirty: nodes that stay but have other leaves; their summaries are deleted.
    :param documents: the documents of the dirty nodes; '' above several documents.
    :param routing: the means of the leaves, float32 [parents + dirty, dimension].
    :param version: the state of the index for which the change was computed.
    """

    parents: Sequence[Parent]
    children: Mapping[int, Sequence[int]]
    gone: Sequence[int]
    dirty: Sequence[int]
    documents: Sequence[str]
    routing: Vectors
    version: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.parents or self.children or self.gone or self.dirty)


class NodeStore(Protocol):
    """The store of an index, as building and retrieval need it."""

    location: str
    """The name of the index in messages."""
    embedder: str
    """Identity of the embedder of the stored vectors."""
    dimension: int
    """Dimension of the stored vectors."""

    def add_many(self, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        ...

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents with their leaves and the summaries above; return how many the index had."""
        ...

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents without their texts, in the order in which they were added."""
        ...

    def document(self, id: str) -> IndexedDocument:
        """Return a document with its text and page; raises BadInput where the index lacks it."""
        ...

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors | None = None) -> list[int]:
        """Replace the tree above the leaves; return the numbers of the parents."""
        ...

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; return False where the index is no longer at ``growth.version``."""
        ...

    def put_summaries(self, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries (node, text, tokens) and their embeddings."""
        ...

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every node without a summary, lowest layers first."""
        ...

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        ...

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order; missing numbers are left out."""
        ...

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 score of each of the ``leaves`` or ``summaries`` with a term of the query."""
        ...

    def view(self) -> View:
        """Return all nodes as arrays."""
        ...

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes and tokens by layer, unsummarised, embedder, bytes."""
        ...

    def size(self) -> int:
        """Return the bytes that the index takes on the disk."""
        ...

    def damage(self) -> list[str]:
        """Check everything that is stored; return each damaged part in one line."""
        ...

    def compact(self) -> None:
        """Free the space of deleted nodes."""
        ...

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin with ``prefix``: build settings, cost, verdicts on summaries."""
        ...

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, all of them or none; an empty text deletes a note."""
        ...


@runtime_checkable
class Searching(Protocol):
    """What a store may have besides: a search that does not read all nodes, for large indexes."""

    def candidates(self, search: NodeSearch) -> Candidates | None:
        """Return the nodes that may be the best for a question; None where the index is small enough to read it all.

        :raises BadInput: a document is not in the index.
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """What a store may have besides: work that else the next question would do."""

    def prepare(self) -> None:
        """Make what a search of the present state needs, where it is missing or too old."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """What a store may have besides: the number of its state without reading the nodes."""

    def version(self) -> int:
        """Return the number of the state, as :attr:`View.version`."""
        ...


def version_of(store: NodeStore) -> int:
    """Return the number of a store's state; a store that is not :class:`Versioned` reads its view for it."""
    return store.version() if isinstance(store, Versioned) else store.view().version


def check_vectors(dimension: int, subject: str, count: int, vectors: Vectors) -> None:
    """Check that there is a vector for each of some nodes.

    :raises BadInput: there is not, or the vectors have another dimension.
    """
    if vectors.shape != (count, dimension) and (count or len(vectors)):
        raise BadInput(
            f"{subject}: vectors of shape {vectors.shape} for {count} nodes of {dimension} dimensions", subject=subject
        )


def read_note(store: NodeStore, name: str) -> dict[str, Any]:
    """Return a note that is an object of JSON, {} where there is none.

    :raises BadInput: it is something else.
    """
    try:
        note: dict[str, Any] = read_json(store.notes(name).get(name, "{}"), dict[str, Any])
    except ValueError as error:
        raise BadInput(
            f"{store.location}: damaged (its note {name}); build it again: prunus index rebuild", subject=store.location
        ) from error
    return note
