"""Build the summary tree: documents become leaves, leaves are grouped into layers, groups are summarised (RAPTOR §3).

Documents are added durably, in batches. The tree above the leaves is replaced in one transaction. With a clusterer that
needs no summaries, all layers exist before the first summary is written: the cost is known in advance, and summaries
can be written later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import OutsideFailed
from ..core.executor import Executor, in_process
from ..core.ports import Clusterer, ClusterItems, ClusterLimits, Embedder, Ints, Summarizer, TokenCounter, Vectors
from ..pages.main.keep import main_spans_in
from .cluster._shards import LayerVectors, shards
from .evidence import unpacked
from .grow import Growing
from .leaves import PAPER, BuildSettings, CutDocument, Cutter, DocumentSource, parts_of, unit
from .nodes import IndexedDocument, Node, NodeStore, Parent, View


class MainText:
    """Gives the texts of leaves without the parts of their pages that are not main content.

    Each page is cleaned once; what is kept of it are offsets.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._known: dict[int, bool] = {}  # by node: whether it holds main content
        self._spans: dict[str, Sequence[tuple[int, int]] | None] = {}

    def of(self, nodes: Sequence[Node]) -> list[str]:
        """Return the texts of a group of nodes; whole texts where none of them holds main content.

        A summary is whole where a leaf below it holds main content, else ''. Rows stand below the caption and the
        header of their table.
        """
        texts = [self._of_leaf(node) if node.layer == 0 else node.text if self._holds(node) else "" for node in nodes]
        texts = texts if any(texts) else [node.text for node in nodes]
        return [_below_lead(node, text) for node, text in zip(nodes, texts, strict=True)]

    def _holds(self, node: Node) -> bool:
        """Tell whether a node, or a leaf below it, holds main content."""
        known = self._known.get(node.id)
        if known is None:
            below = self._store.get(node.children) if node.layer else ()
            known = any(map(self._holds, below)) if node.layer else bool(self._of_leaf(node))
            self._known[node.id] = known
        return known

    def _of_leaf(self, leaf: Node) -> str:
        if leaf.document not in self._spans:
            self._spans[leaf.document] = _spans_of(self._store.document(leaf.document))
        spans = self._spans[leaf.document]
        if spans is None:
            return leaf.text
        parts = []
        place = max(0, bisect_right(spans, (leaf.start, leaf.start)) - 1)
        while place < len(spans) and spans[place][0] < leaf.end:
            start, end = max(spans[place][0], leaf.start), min(spans[place][1], leaf.end)
            if start < end:
                parts.append(leaf.text[start - leaf.start : end - leaf.start])
            place += 1
        return "\n".join(parts)


def _below_lead(node: Node, text: str) -> str:
    """Return the text of a node; where it begins with a row of a table, below the lead of the table."""
    return f"{node.above[-1]}\n{text}" if node.above and "\t" in text.partition("\n")[0].strip() else text


def _spans_of(document: IndexedDocument) -> Sequence[tuple[int, int]] | None:
    """Return the spans of a document's main content; None for all of it."""
    markup, charset = unpacked(document.source) if document.source else ("", "")
    return main_spans_in(markup, charset, document.text) if markup else None


__all__ = ["PAPER", "BuildSettings", "Builder", "Cutter", "DocumentSource"]

_MANY: Final = 4
"""A layer is clustered by shards where it has more nodes than so many shards: from there on shards cost no quality."""

_TRIES: Final = 5
"""Tries to update the tree while other processes change the index."""


class Builder:
    """Adds documents, builds the tree above them and writes its summaries.

    :param store: keeps documents, nodes and vectors.
    :param embedder: embeds leaves and summaries.
    :param tokenizer: counts the tokens of chunks and summaries.
    """

    executor: Executor
    """Clusters the shards of a large layer, by default in this process. The tree does not depend on it."""

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
        self.executor = in_process
        self.settings = settings or BuildSettings()
        self.cutter = Cutter(embedder, tokenizer, self.settings, store.dimension)

    # --- leaves ------------------------------------------------------------------------------

    def add(self, sources: Iterable[DocumentSource], done: Callable[[str], None] = lambda id: None) -> int:
        """Add or replace documents, without building the tree; return the number of their chunks.

        :param done: called with the id of each document as soon as it is durable.
        """
        return sum(self.put(self.cutter.cut_each(part), done) for part in parts_of(sources))

    def put(self, documents: Sequence[CutDocument], done: Callable[[str], None] = lambda id: None) -> int:
        """Add or replace documents that are cut and embedded, all of them or none; return the number of their chunks.

        :param documents: from a :class:`Cutter` with the embedder and the settings of this index, in any process.
        :param done: called with the id of each document when all are durable.
        """
        if documents:
            self.store.add_many(documents)
        for document, _, _ in documents:
            done(document.id)
        return sum(len(leaves) for _, leaves, _ in documents)

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
        self.store.replace_tree(grown.parents, grown.routing(), embeddings)
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
            groups = self._groups(layer)
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

    def _groups(self, layer: _Layer) -> list[Ints]:
        """Group the nodes of a layer; a large one by shards, which workers may do, so that memory is bounded."""
        clusterer, limits, size = self.clusterer, self.settings.limits, self.settings.shard_nodes
        if len(layer) <= _MANY * size or not getattr(clusterer, "by_shards", False):
            return clusterer.layer(layer.items(), limits)
        places = list(shards(layer.sums, size, limits.seed))
        found = self.executor(partial(_Grouping, clusterer, limits), map(layer.items, places))
        return [shard[group] for shard, groups in zip(places, found, strict=True) for group in groups]

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
        return texts, list(unit(self.embedder.embed(texts, "document")))

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
            growth = growing.grow()
            if growth.is_empty or self.store.grow(growth):  # no new state where nothing has changed
                break
        else:
            place = self.store.location
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
        self.sums: list[NDArray[np.float32]] = []  # of each layer, float32 [parents, dimension]
        self.embeddings: list[Any] = []

    def routing(self) -> Vectors:
        """Return the means of the leaves of all parents, as directions."""
        return np.concatenate([np.zeros((0, self.dimension), np.float32), *map(unit, self.sums)])


class _Grouping:
    """Groups one shard after the other, in this process or in a worker."""

    def __init__(self, clusterer: Clusterer, limits: ClusterLimits) -> None:
        self._clusterer, self._limits = clusterer, limits

    def __call__(self, items: ClusterItems) -> list[Ints]:
        return self._clusterer.layer(items, self._limits)


@dataclass(slots=True)
class _Layer:
    """The top layer of an unfinished tree: the nodes that get parents next.

    :param refs: numbers of the nodes, as in ``Parent.children``.
    :param sums: the sum of the vectors of each node's leaves, float32 [nodes, dimension]; leaves stay in their matrix.
    :param embeddings: of the summaries; empty where the clusterer groups nodes by the means of their leaves.
    """

    refs: list[int]
    sums: LayerVectors
    tokens: Ints
    documents: list[str]
    texts: list[str]
    embeddings: list[Any]

    @classmethod
    def of_leaves(cls, view: View, part: Ints) -> _Layer:
        sums = LayerVectors(view.matrix, view.row[part]) if len(part) else LayerVectors(np.zeros((0, 1), np.float32))
        documents = [view.names[number] for number in view.document[part].tolist()]
        return cls(view.ids[part].tolist(), sums, view.tokens[part], documents, [], [])

    def __len__(self) -> int:
        return len(self.refs)

    def items(self, places: Ints | None = None) -> ClusterItems:
        """Return the nodes at these places as a clusterer gets them; by default all."""
        if places is None:
            places = np.arange(len(self))
        embedded = bool(self.embeddings)
        vectors = np.asarray(self.embeddings, np.float32)[places] if embedded else self.sums.directions(places)
        documents = [self.documents[place] for place in places.tolist()]
        return ClusterItems(vectors, self.tokens[places], documents, places)

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
        refs, sizes, documents, made = [], [], [], []
        sums = np.empty((len(groups), self.sums.dimension), np.float32)
        for place, group in enumerate(groups):
            sums[place] = self.sums[group].sum(axis=0)
            if len(group) == 1 and not texts:
                (only,) = group.tolist()
                refs.append(self.refs[only])
                sizes.append(int(self.tokens[only]))
                documents.append(self.documents[only])
                continue
            made.append(place)
            owners = {self.documents[member] for member in group.tolist()}
            document = owners.pop() if len(owners) == 1 else ""
            children = tuple(self.refs[member] for member in group.tolist())
            size = tokens[place] if texts else tokens[0]
            text = texts[place] if texts else ""
            grown.parents.append(Parent(children, height, document, text, size if text else 0))
            grown.embeddings.append(embeddings[place] if text else None)
            refs.append(-len(grown.parents))
            sizes.append(size)
            documents.append(document)
        grown.sums.append(sums[made])
        return _Layer(refs, LayerVectors(sums), np.asarray(sizes), documents, texts, embeddings)
