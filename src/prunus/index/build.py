"""Build the summary tree: documents become leaves, leaves are grouped into layers, groups are summarised (RAPTOR §3).

Documents are added durably, in batches. The tree above the leaves is replaced in one transaction. With a clusterer that
needs no summaries, all layers exist before the first summary is written: the cost is known in advance, and summaries
can be written later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput, OutsideFailed
from ..core.ports import Clusterer, ClusterItems, ClusterLimits, Embedder, Ints, Summarizer, TokenCounter, Vectors
from ..core.text.words import guess_language
from ..pages.tree import Tree
from .chunk import SIZE, Chunk, chunk_text, chunk_tree
from .grow import Growing
from .main_text import MainText
from .nodes import IndexedDocument, Leaf, NodeStore, Parent, View

Scope = Literal["collection", "document"]
"""One tree over the whole collection, or one tree over each document."""

_LEAST: Final = 8
"""Fewest tokens of a summary; fewer cannot hold a sentence."""

_TRIES: Final = 5
"""Tries to update the tree while other processes change the index."""

_BATCH_LEAVES: Final = 1000
"""About how many leaves are added in one transaction; a document is never split over two."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document to add: a cleaned page, or plain text.

    :param id: names the document when it is replaced or removed later.
    :param tree: the cleaned page; None: ``text`` is the document.
    :param digest: hash of the source, to see later whether it has changed.
    :param source: the page, packed by :func:`prunus.index.found.packed`; b'': evidence from it is plain text.
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


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How an index is built.

    :param chunk_tokens, chunk_cap: ``size`` and ``cap`` of :func:`prunus.index.chunk.chunk_text`.
    :param structure: cut pages along their structure; False cuts their text only, as the paper does.
    :param above_share: weight of the headings and leads above a leaf in the leaf's vector, 0 to 1.
    :param summary_tokens: most tokens of a summary.
    :param scope: one tree over the collection, or one tree over each document.
    :param limits: limits of a node's children.
    :raises BadInput: summaries under 8 tokens, a share outside 0 to 1, or an unknown scope.
    """

    chunk_tokens: int = SIZE
    chunk_cap: int = 0
    structure: bool = True
    above_share: float = 0.3
    summary_tokens: int = 100
    scope: Scope = "collection"
    limits: ClusterLimits = field(default_factory=ClusterLimits)

    def __post_init__(self) -> None:
        if self.summary_tokens < _LEAST or not 0 <= self.above_share <= 1 or self.scope not in get_args(Scope):
            raise BadInput(
                f"summaries of {self.summary_tokens} tokens, a share of {self.above_share:g} for headings, a tree over "
                f"each {self.scope}: give {_LEAST} tokens or more, 0 to 1, and collection or document",
                subject="settings",
            )


PAPER: Final = BuildSettings(structure=False, above_share=0.0)
"""The paper's settings: chunks of 100 tokens of plain text, embedded without headings."""


class Cutter:
    """Cuts documents into leaves with their vectors; it needs no store, so other processes can do it.

    :param embedder: embeds leaves.
    :param tokenizer: counts the tokens of chunks.
    :param dimension: of the vectors.
    """

    def __init__(self, embedder: Embedder, tokenizer: TokenCounter, settings: BuildSettings, dimension: int) -> None:
        self.embedder, self.tokenizer, self.settings, self.dimension = embedder, tokenizer, settings, dimension

    def cut(self, source: DocumentSource) -> tuple[IndexedDocument, list[Leaf]]:
        """Return a document to store, and its leaves."""
        document, chunks = self._cut(source)
        return document, [Leaf(chunk.start, chunk.end, chunk.text, chunk.tokens, chunk.above) for chunk in chunks]

    def _cut(self, source: DocumentSource) -> tuple[IndexedDocument, list[Chunk]]:
        settings, tree = self.settings, source.tree
        text = tree.canonical if tree else source.text
        size = (settings.chunk_tokens, settings.chunk_cap)
        if tree and settings.structure:
            chunks = chunk_tree(tree, self.tokenizer, *size)
        else:
            chunks = chunk_text(text, self.tokenizer, *size)
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
        return _unit(vectors)


class Builder:
    """Adds documents, builds the tree above them and writes its summaries.

    :param store: keeps documents, nodes and vectors.
    :param embedder: embeds leaves and summaries.
    :param tokenizer: counts the tokens of chunks and summaries.
    """

    def __init__(
        self,
        store: NodeStore,
        embedder: Embedder,
        tokenizer: TokenCounter,
        clusterer: Clusterer,
        summarizer: Summarizer,
        settings: BuildSettings | None = None,
    ) -> None:
        self.store, self.embedder, self.tokenizer = store, embedder, tokenizer
        self.clusterer, self.summarizer = clusterer, summarizer
        self.settings = settings or BuildSettings()
        self.cutter = Cutter(embedder, tokenizer, self.settings, store.dimension)

    # --- leaves ------------------------------------------------------------------------------

    def add(self, sources: Iterable[DocumentSource], done: Callable[[str], None] = lambda id: None) -> int:
        """Add or replace documents, without building the tree; return the number of their chunks.

        :param done: called with the id of each document as soon as it is durable.
        """
        total = 0
        for batch in self._batches(sources):
            chunks = [leaf for _, leaves in batch for leaf in leaves]
            vectors = self.cutter.embed(chunks)
            documents, start = [], 0
            for document, leaves in batch:
                documents.append((document, leaves, vectors[start : start + len(leaves)]))
                start += len(leaves)
            self.store.add_many(documents)
            total += len(chunks)
            for document, _ in batch:
                done(document.id)
        return total

    def _batches(self, sources: Iterable[DocumentSource]) -> Iterator[list[tuple[IndexedDocument, list[Leaf]]]]:
        batch: list[tuple[IndexedDocument, list[Leaf]]] = []
        size = 0
        for source in sources:
            document, leaves = self.cutter.cut(source)
            batch.append((document, leaves))
            size += len(leaves) + 1
            if size >= _BATCH_LEAVES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    # --- the tree ----------------------------------------------------------------------------

    async def build(self, summaries: bool = True) -> None:
        """Build a new tree above all leaves, in place of the old tree.

        :param summaries: write the summaries too; with a clusterer that needs them they are always written.
        :raises OutsideFailed: a model failed. Summaries that it wrote are kept. With a clusterer that needs summaries,
            the old tree stays.
        """
        view = self.store.view()
        grown = _Grown(self.store.dimension)
        for part in self._parts(view):
            await self._add_layers(_Layer.of_leaves(view, part), grown)
        summary_vectors = [vector for vector in grown.embeddings if vector is not None]
        embeddings = np.stack(summary_vectors) if summary_vectors else np.zeros((0, self.store.dimension), np.float32)
        self.store.replace_tree(
            grown.parents, _unit(np.asarray(grown.sums, np.float32).reshape(-1, embeddings.shape[1])), embeddings
        )
        if summaries and not self.clusterer.needs_summaries:
            await self.summarize()

    def _parts(self, view: View) -> Iterator[Ints]:
        """Yield the leaves of each tree, as indices into the view."""
        leaves = np.arange(view.leaves)
        if self.settings.scope == "collection":
            yield leaves
        else:
            for _, places in groupby(leaves.tolist(), key=lambda place: view.document[place]):
                yield np.asarray(list(places))

    async def _add_layers(self, layer: _Layer, grown: _Grown) -> None:
        """Add layers above some leaves, until one root is left or as few nodes as the clusterer does not group."""
        last = self.clusterer.last_layer
        height = 0
        while len(layer) > last:
            groups = self.clusterer.layer(layer.items(), self.settings.limits)
            if len(groups) >= len(layer):  # no progress: another layer would never end
                return
            height += 1
            texts: list[str] = []
            embeddings: list[Any] = []
            if self.clusterer.needs_summaries:
                below = layer.texts or self._leaf_texts(layer)
                texts, embeddings = await self._summaries(
                    [[below[place] for place in group.tolist()] for group in groups]
                )
            layer = layer.above(groups, height, grown, texts, embeddings, self._sizes(texts))

    def _sizes(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each summary; without summaries, the planned size alone."""
        return [int(tokens) for tokens in self.tokenizer.count(texts)] if texts else [self.settings.summary_tokens]

    def _leaf_texts(self, layer: _Layer) -> list[str]:
        main = MainText(self.store)
        return [text for node in self.store.get(layer.refs) for text in main.of([node])]

    async def _summaries(self, batch: list[list[str]]) -> tuple[list[str], list[Any]]:
        """Return the summary of each group, and its embedding."""
        summaries = await self.summarizer.summarize(batch, self.settings.summary_tokens)
        texts = [summary.text for summary in summaries]
        return texts, list(_unit(self.embedder.embed(texts, "document")))

    async def update(self, summaries: bool = True) -> None:
        """Insert the leaves of added documents into the tree, and repair the tree where documents were removed.

        A node whose leaves have not changed keeps its summary. The whole tree is built again where there is none yet,
        where each document has its tree, and for a clusterer that needs summaries.

        :param summaries: write the missing summaries.
        :raises OutsideFailed: other processes changed the index during every try.
        """
        for _ in range(_TRIES):
            view = self.store.view()
            collection = self.settings.scope == "collection" and not self.clusterer.needs_summaries
            if not collection or len(view.ids) == view.leaves:
                return await self.build(summaries)
            growing = Growing(view, self.store.edges(), self.settings.limits, self.settings.summary_tokens)
            if self.store.grow(growing.grow()):
                break
        else:
            place = self.store.place
            raise OutsideFailed(f"{place}: other processes keep changing the index; try again later", subject=place)
        if summaries:
            await self.summarize()
        return None

    # --- summaries ---------------------------------------------------------------------------

    async def summarize(self, batch: int = 64) -> int:
        """Write the missing summaries, lowest layers first; return how many.

        Each batch is written to the store when it is done, so a killed run loses at most one batch.

        :param batch: nodes that are summarised and stored together.
        """
        written = 0
        main = MainText(self.store)
        for _, rows in groupby(self.store.unsummarised(), key=lambda row: row[0]):
            missing = [node for _, node in rows]
            for start in range(0, len(missing), batch):
                written += await self._summarize_nodes(missing[start : start + batch], main)
        return written

    async def _summarize_nodes(self, ids: list[int], main: MainText) -> int:
        nodes = self.store.get(ids)
        groups = [main.of(self.store.get(node.children)) for node in nodes]
        texts, embeddings = await self._summaries(groups)
        tokens = self.tokenizer.count(texts)
        rows = [(node.id, text, int(size)) for node, text, size in zip(nodes, texts, tokens, strict=True)]
        self.store.put_summaries(rows, np.asarray(embeddings, np.float32).reshape(-1, self.store.dimension))
        return sum(bool(text) for text in texts)


class _Grown:
    """The parents built so far, each with the sum of its leaves' vectors and the embedding of its summary."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.parents: list[Parent] = []
        self.sums: list[NDArray[np.float32]] = []
        self.embeddings: list[Any] = []


@dataclass(slots=True)
class _Layer:
    """The top layer of an unfinished tree: the nodes that get parents next.

    :param refs: numbers of the nodes, as in ``Parent.children``.
    :param sums: the sum of the vectors of each node's leaves, float32 [nodes, dimension].
    :param embeddings: of the summaries; empty where the clusterer groups nodes by the means of their leaves.
    """

    refs: list[int]
    sums: NDArray[np.float32]
    tokens: Ints
    documents: list[str]
    texts: list[str]
    embeddings: list[Any]

    @classmethod
    def of_leaves(cls, view: View, part: Ints) -> _Layer:
        sums: Any = view.matrix[view.row[part]] if len(part) else np.zeros((0, 1), np.float32)
        documents = [view.names[number] for number in view.document[part].tolist()]
        return cls(view.ids[part].tolist(), np.asarray(sums), view.tokens[part], documents, [], [])

    def __len__(self) -> int:
        return len(self.refs)

    def items(self) -> ClusterItems:
        vectors = np.asarray(self.embeddings, np.float32) if self.embeddings else _unit(self.sums)
        return ClusterItems(vectors, self.tokens, self.documents, np.arange(len(self)))

    def above(
        self,
        groups: Sequence[Ints],
        height: int,
        grown: _Grown,
        texts: list[str],
        embeddings: list[Any],
        tokens: list[int],
    ) -> _Layer:
        """Return the layer of the groups' parents; without summaries, the node of a lone group moves up unchanged."""
        refs, sums, sizes, documents = [], [], [], []
        for place, group in enumerate(groups):
            if len(group) == 1 and not texts:
                (only,) = group.tolist()
                refs.append(self.refs[only])
                sums.append(self.sums[only])
                sizes.append(int(self.tokens[only]))
                documents.append(self.documents[only])
                continue
            owners = {self.documents[member] for member in group.tolist()}
            document = owners.pop() if len(owners) == 1 else ""
            children = tuple(self.refs[member] for member in group.tolist())
            size = tokens[place] if texts else tokens[0]
            text = texts[place] if texts else ""
            grown.parents.append(Parent(children, height, document, text, size if text else 0))
            grown.sums.append(self.sums[group].sum(axis=0))
            grown.embeddings.append(embeddings[place] if text else None)
            refs.append(-len(grown.parents))
            sums.append(grown.sums[-1])
            sizes.append(size)
            documents.append(document)
        return _Layer(refs, np.stack(sums), np.asarray(sizes), documents, texts, embeddings)


def _unit(vectors: Any) -> Vectors:
    found = np.asarray(vectors, np.float32)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-12), np.float32)
