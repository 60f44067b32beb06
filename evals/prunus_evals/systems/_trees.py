"""Shared by ``tree`` and the studies of trees: summary trees over the documents of questions, and what they cost.

One tree covers all documents of a question. Texts are cut as they are, so that the places of leaves are places in the
documents; pages of HTML are cleaned and cut along their structure, as ``prunus index add`` does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from prunus.core.errors import PrunusError
from prunus.core.ports import LLM, Ints
from prunus.core.registry import make_engine
from prunus.core.text.words import sentences
from prunus.index.bill import described
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.nodes import Node, View
from prunus.index.retrieve import RetrievalWeights, Retriever
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import provenance, readers, trees
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import Document
from prunus_evals.store import Store as RunStore
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import read
from prunus_evals.tokens import Counter

HELD = 4
"""Trees that are held."""

BUILT = "built.json"

TREES = {"ward": "ward", "raptor": "raptor", "contiguous": "contiguous", "segments": "contiguous:segments"}
TREES |= {"random": "random"}
"""The clusterer of each tree."""


@dataclass(slots=True)
class Index:
    """The index of documents, as a system asks it."""

    store: Store
    embedder: Any
    counter: Any
    documents: Mapping[str, str]
    _tree: trees.Tree | None = None
    _spans: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)

    def retriever(self, **weights: Any) -> Retriever:
        """Return a retriever with these weights."""
        return Retriever(self.store, self.embedder, self.counter, RetrievalWeights(**weights))

    def spans(self, node: Node) -> list[tuple[str, int, int]]:
        """Return the spans of the documents that a node contains: (document, start, end).

        The sentences of an extractive summary count where they stand in the leaves below it.
        """
        if node.layer == 0:
            return [(node.document, node.start, node.end)]
        if node.id not in self._spans:
            self._spans[node.id] = self._find_sentences(node)
        return self._spans[node.id]

    def _find_sentences(self, node: Node) -> list[tuple[str, int, int]]:
        leaves = self.store.get(self.retriever().leaves_of(node.id))
        found = []
        for sentence in sentences(node.text):
            words = [re.escape(word) for word in sentence.split()]
            pattern = re.compile(r"\s+".join(words)) if words else None
            for leaf in leaves if pattern else ():
                match = pattern.search(leaf.text) if pattern else None
                if match:
                    found.append((leaf.document, leaf.start + match.start(), leaf.start + match.end()))
                    break
        return found

    def beam(self, question: str, budget: int) -> Sequence[Node]:
        """Return the leaves that a beam search reaches, nearest first, up to the first that would exceed the budget."""
        view = self.store.view()
        self._tree = self._tree or trees.Tree(view, self.store.edges())
        vector = np.asarray(self.embedder.embed([question], "query")[0], np.float32)
        found, _ = self._tree.reached(vector)
        best = found[np.argsort(-(self._tree.means[found] @ vector), kind="stable")]
        total = np.cumsum(view.tokens[best] + 2)  # an empty line between two leaves costs up to two tokens
        return self.store.get(view.ids[best[total <= budget]].tolist())


@dataclass(frozen=True, slots=True)
class Recipe:
    """How trees are built.

    :param tree: one of :data:`TREES`.
    :param embedder: short name (``e5``, ``bge``, ``dpr``) or spec of the embedder.
    :param llm: spec of the language model that writes the summaries; '' for extractive ones.
    :param flat: only the chunks are made, and no tree.
    :raises UnknownName: there is no such tree, embedder or language model.
    """

    tree: str = "ward"
    embedder: str = "static"
    llm: str = ""
    flat: bool = False

    def __post_init__(self) -> None:
        if self.tree not in TREES:
            raise UnknownName(f"unknown tree {self.tree}; the trees are: {', '.join(TREES)}")
        _embed.embedder(self.embedder)
        _model(self.llm)

    @property
    def name(self) -> str:
        """The name in tables."""
        summaries = f"summaries by {self.llm}" if self.llm else "extractive summaries"
        return f"{self.tree} tree, {self.embedder} vectors, {summaries}"

    @property
    def caveat(self) -> str:
        """What tables must say of the model that wrote the summaries; '' for nothing."""
        model = _model(self.llm)
        return "" if model is None else readers.caveat(self.llm, bool(model.real))


@cache
def _model(spec: str) -> LLM | None:
    """Return the language model of a spec; None for ''."""
    return readers.model(spec) if spec else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What it cost to build a tree.

    :param tokens: tokens of the documents, as their chunks hold them.
    :param read: tokens of all children of all parents: what a summarizer read, without its prompt.
    :param written: tokens of all summaries.
    :param seconds: wall time: reading, cutting, embedding, clustering and summarizing. Only a tree that was built for
        its costs has the whole time; see :func:`grown`.
    :param at: when the tree was built, in UTC.
    """

    tokens: int
    read: int
    written: int
    seconds: float
    at: str = ""


@dataclass(slots=True, weakref_slot=True)
class Grown:
    """A tree, and what it cost.

    :param height: the top layer; 0 without a tree.
    """

    index: Index
    cost: Cost
    height: int

    def layers(self) -> list[dict[str, Any]]:
        """Return the nodes, tokens, children and compression of each layer, the leaves first."""
        found: list[dict[str, Any]] = described(self.index.store)["layers"]
        return found


class _Still(Store):
    """The store of a tree that does not change any more: nodes are read once, and the last search by words is kept.

    Thousands of questions are asked of one tree at several budgets; else each would open the file several times.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        super().__init__(folder, embedder, dimension)
        self._whole: View | None = None
        self._nodes: dict[int, Node] = {}
        self._asked = ""
        self._found: dict[str, dict[int, float]] = {}

    def view(self) -> View:
        """Return all nodes as arrays."""
        self._whole = self._whole or super().view()
        return self._whole

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order."""
        new = [id for id in ids if id not in self._nodes]
        self._nodes |= {node.id: node for node in super().get(new)} if new else {}
        return [self._nodes[id] for id in ids if id in self._nodes]

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 scores of nodes."""
        if self._asked != query:
            self._asked, self._found = query, {}
        if layer not in self._found:
            self._found[layer] = super().lexical(query, layer)
        return self._found[layer]


class _Counted:
    """The counter of the evaluation as an engine of Prunus.

    :param hold: keep the last count: a short text is retrieved whole at several budgets, one after another.
    """

    def __init__(self, counter: Counter, hold: bool) -> None:
        self._counter = counter
        self._hold = hold
        self._last: tuple[list[str], Ints] = [], np.zeros(0, np.int64)

    def count(self, texts: Sequence[str]) -> Ints:
        if not self._hold or self._last[0] != [*texts]:
            self._last = [*texts], np.asarray(self._counter.count(texts), np.int64)
        return self._last[1]


def grown(
    documents: Sequence[Document], recipe: Recipe, counter: Counter, folder: Path | None = None, costs: bool = False
) -> Grown | None:
    """Return the tree over documents; None where they are all empty. The last trees are held.

    :param folder: where trees are kept, and opened again by the same code and versions; without one, a tree lasts as
        long as it is held.
    :param costs: the tree is built for its costs: its embedder holds no vectors, and a language model writes every
        summary anew. It is not held, and shared with no tree that is built for retrieval.
    :raises ReaderFailed: the model that writes the summaries failed.
    :raises EvalError: it cannot be built otherwise; the message says which documents.
    """
    key: Any = counter  # its protocol does not say that it can be a key
    full = tuple(one for one in documents if one.content.strip())
    return _grown(full, recipe, counter, folder, True) if costs else _held(full, recipe, key, folder)


@lru_cache(maxsize=HELD)
def _held(documents: tuple[Document, ...], recipe: Recipe, counter: Counter, folder: Path | None) -> Grown | None:
    return _grown(documents, recipe, counter, folder, False)


def _grown(
    documents: Sequence[Document], recipe: Recipe, counter: Counter, folder: Path | None, costs: bool
) -> Grown | None:
    if not documents:
        return None
    model = _identity(recipe.llm, folder) if folder else ""
    place = (
        folder / _digest(documents, recipe, costs, model) if folder else Path(tempfile.mkdtemp(prefix="prunus-tree-"))
    )
    summaries = folder / f"summaries-{_short(model)}.sqlite" if folder and not costs else None
    try:
        found = _opened(documents, recipe, counter, place, summaries, costs)
    except PrunusError as error:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
        name = f"{recipe.name} of {', '.join(one.id for one in documents)}"
        raise readers.failed(name, error, EvalError) from error
    if folder is None:
        weakref.finalize(found, shutil.rmtree, place, ignore_errors=True)
    return found


def _identity(llm: str, folder: Path) -> str:
    """Return what summaries depend on beside the text; what a server said of its model is noted in the folder."""
    if not llm:
        return ""
    with closing(RunStore(folder)) as store:
        return readers.identity(llm, store)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _digest(documents: Sequence[Document], recipe: Recipe, costs: bool, model: str) -> str:
    """Return the name of a kept tree: a digest of all that it depends on, with the code and the versions."""
    vectors = _embed.embedder(recipe.embedder)
    made_by = [vectors.identity, readers.files(vectors.name), model, provenance.code(), _versions(), costs]
    known = json.dumps([asdict(recipe), made_by, [asdict(one) for one in documents]], sort_keys=True)
    return _short(known)


@cache
def _versions() -> dict[str, str]:
    return provenance.versions()


def _opened(
    documents: Sequence[Document], recipe: Recipe, counter: Counter, place: Path, summaries: Path | None, costs: bool
) -> Grown:
    """Return a tree that was built before, or build it.

    :param summaries: the file that keeps the summaries of a language model.
    """
    vectors, tokens = _embed.embedder(recipe.embedder, hold=not costs), _Counted(counter, hold=not costs)
    done = place / BUILT
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)  # what a stop left of a tree that was being built
        vectors.embed(["."])  # a model is loaded once, whatever is built with it
        start = time.perf_counter()
        store = Store(place, vectors.identity, vectors.dimension, create=True)
        settings = PAPER if recipe.tree == "raptor" else BuildSettings()
        clusterer = make_engine("clusterer", TREES[recipe.tree])
        builder = Builder(store, vectors, tokens, clusterer, _summarizer(recipe, vectors, tokens, summaries), settings)
        builder.add(map(_source, documents))
        if not recipe.flat:
            asyncio.run(builder.build())
        new = done.with_suffix(".new")
        new.write_text(json.dumps(asdict(_cost(store, time.perf_counter() - start))))
        new.replace(done)
    opened = (Store if costs else _Still)(place, vectors.identity, vectors.dimension)
    made = Index(opened, vectors, tokens, {one.id: one.content for one in documents})
    return Grown(made, Cost(**json.loads(done.read_text())), int(opened.view().layer.max(initial=0)))


def _summarizer(recipe: Recipe, vectors: _embed.CachedEmbedder, tokens: Any, summaries: Path | None) -> Any:
    if not recipe.llm:
        return make_engine("summarizer", "extractive", embedder=vectors, tokenizer=tokens)
    kept = {"kept": summaries} if summaries else {}
    return make_engine("summarizer", "llm", llm=_model(recipe.llm), **kept)


def _source(document: Document) -> DocumentSource:
    pages = read([document]) if document.media_type == "text/html" else None
    if pages is None:
        return DocumentSource(document.id, text=document.content)
    return DocumentSource(document.id, pages.trees[0])


def _cost(store: Store, seconds: float) -> Cost:
    view, edges = store.view(), store.edges()
    tokens = dict(zip(view.ids.tolist(), view.tokens.tolist(), strict=True))
    read = sum(tokens[child] for children in edges.values() for child in children)
    leaves = int(view.tokens[view.layer == 0].sum())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Cost(leaves, read, sum(tokens[parent] for parent in edges), seconds, now)
