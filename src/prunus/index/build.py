"""Builds the tree: documents into leaves, leaves into layers, layers into summaries (RAPTOR §3).

Adding is durable document by document. The tree above the leaves is one change. A clusterer that needs
no summaries fixes all layers first, so the bill is known before it is paid, and summaries can come later.
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
from .nodes import IndexedDocument, Leaf, NodeStore, Parent, View

Scope = Literal["collection", "document"]
"""Whether one tree stands over all documents, or one over each."""

_LEAST: Final = 8
"""Tokens that a summary needs to say anything."""

_TRIES: Final = 5
"""Times that the tree is grown when somebody else changes the index meanwhile."""

_BATCH_LEAVES: Final = 1000
"""Leaves that are added in one transaction, whole documents."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document that is to be added: a cleaned page, or plain text.

    :param id: by which it is replaced or removed later.
    :param source: the page as :func:`prunus.index.found.packed` keeps it; b'' where leaves need be text alone.
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

    :param chunk_tokens, chunk_cap: as in :func:`prunus.index.chunk.chunk_text`.
    :param structure: cut pages along their structure; False cuts their text alone, as the paper does.
    :param above_share: share of headings and leads in the vector of a leaf; the weight of pages' blocks.
    :param summary_tokens: of a summary.
    :param scope: one tree over the collection, or one over each document.
    :param limits: of a group.
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
"""The paper's: chunks of 100 tokens of plain text, embedded alone."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What summaries will ask of a model at most: calls, and tokens of prompt and completion."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


class Builder:
    """Adds documents, builds the tree above them and writes its summaries.

    :param store: where everything is kept.
    :param embedder: of leaves and summaries.
    :param tokenizer: counts chunks and summaries.
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

    # --- leaves ------------------------------------------------------------------------------

    def add(self, sources: Iterable[DocumentSource], done: Callable[[str], None] = lambda id: None) -> int:
        """Add or replace documents; return how many chunks they gave. The tree is not touched.

        :param done: called with the id of each document that is on the disk.
        """
        total = 0
        for batch in self._batches(sources):
            chunks = [leaf for _, leaves in batch for leaf in leaves]
            vectors = self._embedded(chunks)
            given, start = [], 0
            for document, leaves in batch:
                given.append((document, leaves, vectors[start : start + len(leaves)]))
                start += len(leaves)
            self.store.add_many(given)
            total += len(chunks)
            for document, _ in batch:
                done(document.id)
        return total

    def _batches(self, sources: Iterable[DocumentSource]) -> Iterator[list[tuple[IndexedDocument, list[Leaf]]]]:
        batch: list[tuple[IndexedDocument, list[Leaf]]] = []
        size = 0
        for source in sources:
            document, chunks = self._cut(source)
            leaves = [Leaf(one.start, one.end, one.text, one.tokens, one.above) for one in chunks]
            batch.append((document, leaves))
            size += len(leaves) + 1
            if size >= _BATCH_LEAVES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

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

    def _embedded(self, leaves: Sequence[Leaf]) -> Vectors:
        """Embed leaves; what stands above many of them is embedded once."""
        if not leaves:
            return np.zeros((0, self.store.dimension), np.float32)
        own: Any = self.embedder.embed([leaf.text for leaf in leaves], "document")
        above = [" ".join(leaf.above) for leaf in leaves]
        share = self.settings.above_share
        if share and any(above):
            places: dict[str, int] = {}
            for line in above:
                if line:
                    places.setdefault(line, len(places))
            lead = self.embedder.embed(list(places), "document")
            rows = np.asarray([places.get(line, -1) for line in above])
            own = np.where((rows >= 0)[:, None], (1 - share) * own + share * lead[np.maximum(rows, 0)], own)
        return _unit(own)

    # --- the tree ----------------------------------------------------------------------------

    async def build(self, summaries: bool = True) -> None:
        """Build the tree above all leaves anew, in place of the one that is there.

        :param summaries: write them too; a clusterer that needs them writes them in any case.
        :raises OutsideFailed: a model failed; what it has said is kept, and the old tree stands where the
            clusterer needs summaries.
        """
        view = self.store.view()
        grown = _Grown(self.store.dimension)
        for part in self._parts(view):
            layer = _Layer.of_leaves(view, part)
            await self._grow(layer, grown)
        said = [vector for vector in grown.own if vector is not None]
        own = np.stack(said) if said else np.zeros((0, self.store.dimension), np.float32)
        self.store.replace_tree(grown.parents, _unit(np.asarray(grown.sums, np.float32).reshape(-1, own.shape[1])), own)
        if summaries and not self.clusterer.needs_summaries:
            await self.summarize()

    def _parts(self, view: View) -> Iterator[Ints]:
        """Yield the leaves of each tree, as places in the view."""
        leaves = np.arange(view.leaves)
        if self.settings.scope == "collection":
            yield leaves
        else:
            for _, places in groupby(leaves.tolist(), key=lambda place: view.document[place]):
                yield np.asarray(list(places))

    async def _grow(self, layer: _Layer, grown: _Grown) -> None:
        """Put layers above some leaves until one root, or as few as the clusterer leaves, is there."""
        last = self.clusterer.last_layer
        height = 0
        while len(layer) > last:
            groups = self.clusterer.layer(layer.items(), self.settings.limits)
            if len(groups) >= len(layer):
                return
            height += 1
            texts: list[str] = []
            own: list[Any] = []
            if self.clusterer.needs_summaries:
                below = layer.texts or self._leaf_texts(layer)
                texts, own = await self._said([[below[place] for place in group.tolist()] for group in groups])
            layer = layer.above(groups, height, grown, texts, own, self._planned(texts))

    def _planned(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of summaries, as far as they are there."""
        return [int(one) for one in self.tokenizer.count(texts)] if texts else [self.settings.summary_tokens]

    def _leaf_texts(self, layer: _Layer) -> list[str]:
        return [node.text for node in self.store.get(layer.refs)]

    async def _said(self, batch: list[list[str]]) -> tuple[list[str], list[Any]]:
        """Summarise groups and embed what was said."""
        found = await self.summarizer.summarize(batch, self.settings.summary_tokens)
        texts = [one.text for one in found]
        return texts, list(_unit(self.embedder.embed(texts, "document")))

    async def update(self, summaries: bool = True) -> None:
        """Take documents that were added into the tree, and close the gaps of those that were removed.

        Nodes above unchanged leaves alone keep their summaries. Where there is no tree yet, where there is
        one of each document, and for a clusterer that needs summaries, the tree is built anew.

        :param summaries: write those that are missing.
        :raises OutsideFailed: other processes change the index all the time.
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
            raise OutsideFailed(f"{place}: the index changes all the time; try again", subject=place)
        if summaries:
            await self.summarize()
        return None

    # --- summaries ---------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """Return what the summaries that are missing will ask of a model at most, prompt's own words aside."""
        missing = [node for _, node in self.store.unsummarised()]
        wanted, planned = set(missing), self.settings.summary_tokens
        prompt = 0
        edges = self.store.edges()
        for node in missing:
            for child in self.store.get(edges.get(node, [])):
                prompt += planned if child.id in wanted else child.tokens
        return Estimate(len(missing), prompt, planned * len(missing))

    async def summarize(self, batch: int = 64) -> int:
        """Write the summaries that are missing, lowest layers first; return how many.

        Each batch is kept when it is done, so that a run that was killed goes on there.

        :param batch: nodes that are summarised and kept together.
        """
        written = 0
        for _, rows in groupby(self.store.unsummarised(), key=lambda row: row[0]):
            missing = [node for _, node in rows]
            for start in range(0, len(missing), batch):
                written += await self._summarized(missing[start : start + batch])
        return written

    async def _summarized(self, ids: list[int]) -> int:
        nodes = self.store.get(ids)
        groups = [[child.text for child in self.store.get(node.children)] for node in nodes]
        texts, own = await self._said(groups)
        tokens = self.tokenizer.count(texts)
        said = [(node.id, text, int(size)) for node, text, size in zip(nodes, texts, tokens, strict=True)]
        self.store.put_summaries(said, np.asarray(own, np.float32).reshape(-1, self.store.dimension))
        return sum(bool(text) for text in texts)


class _Grown:
    """Parents as they come, and for each the sum of its leaves and the embedding of its summary."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.parents: list[Parent] = []
        self.sums: list[NDArray[np.float32]] = []
        self.own: list[Any] = []


@dataclass(slots=True)
class _Layer:
    """Nodes that get parents next.

    :param refs: nodes as :class:`Parent` counts its children.
    :param sums: the sum of each node's leaves.
    :param own: embeddings of summaries, where the clusterer wants those; else means of leaves count.
    """

    refs: list[int]
    sums: NDArray[np.float32]
    tokens: Ints
    documents: list[str]
    texts: list[str]
    own: list[Any]

    @classmethod
    def of_leaves(cls, view: View, part: Ints) -> _Layer:
        sums: Any = view.matrix[view.row[part]] if len(part) else np.zeros((0, 1), np.float32)
        documents = [view.names[number] for number in view.document[part].tolist()]
        return cls(view.ids[part].tolist(), np.asarray(sums), view.tokens[part], documents, [], [])

    def __len__(self) -> int:
        return len(self.refs)

    def items(self) -> ClusterItems:
        vectors = np.asarray(self.own, np.float32) if self.own else _unit(self.sums)
        return ClusterItems(vectors, self.tokens, self.documents, np.arange(len(self)))

    def above(
        self, groups: Sequence[Ints], height: int, grown: _Grown, texts: list[str], own: list[Any], tokens: list[int]
    ) -> _Layer:
        """Make the parents of groups; a lone node goes up as it is where no summary is wanted of it."""
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
            grown.own.append(own[place] if text else None)
            refs.append(-len(grown.parents))
            sums.append(grown.sums[-1])
            sizes.append(size)
            documents.append(document)
        return _Layer(refs, np.stack(sums), np.asarray(sizes), documents, texts, own)


def _unit(vectors: Any) -> Vectors:
    found = np.asarray(vectors, np.float32)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-12), np.float32)
