"""Shared by the studies of trees: summary trees over the documents of questions, and retrieval from them as a system.

A tree is built once for the same documents, clusterer, embedder and summarizer, and kept in the folder of the run, with
what it cost. One tree covers all documents of a question, as in the paper, where a question has one document.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from prunus.core.errors import PrunusError
from prunus.core.registry import make_engine
from prunus.index.bill import described
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.nodes import Node
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import index, readers
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import Asker, Document, Reply
from prunus_evals.systems import _embed
from prunus_evals.visible import html_text

EXTRACTIVE = "extractive"
BUILT = "built.json"

Ranker = Literal["dense", "bm25"]
Way = Literal["collapsed", "flat", "traversal", "roots"]
"""``collapsed``: the best nodes of all layers; ``flat``: the best chunks; ``traversal``: from the roots down;
``roots``: the summaries of the top layer, whatever the question."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How trees are built.

    :param tree: one of :data:`prunus_evals.index.TREES`.
    :param embedder: short name (``e5``, ``bge``, ``dpr``) or spec of the embedder.
    :param summarizer: ``extractive``, or the spec of a language model.
    """

    tree: str = "ward"
    embedder: str = "static"
    summarizer: str = EXTRACTIVE

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.tree} tree, {self.embedder} vectors, summaries by {self.summarizer}"

    @property
    def caveat(self) -> str:
        """What tables must say of the model that wrote the summaries; '' for nothing."""
        scripted = self.summarizer.startswith("scripted:")
        return "" if self.summarizer == EXTRACTIVE else readers.caveat(self.summarizer, not scripted)


@dataclass(frozen=True, slots=True)
class Cost:
    """What it cost to build a tree.

    :param tokens: tokens of the document, as its chunks hold them.
    :param read: tokens of all children of all parents: what a summarizer read, without its prompt.
    :param written: tokens of all summaries.
    :param seconds: wall time: cutting, embedding, clustering and summarizing.
    """

    tokens: int
    read: int
    written: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Built:
    """A tree, and what it cost."""

    index: index.Index
    cost: Cost

    def layers(self) -> list[dict[str, Any]]:
        """Return the nodes, tokens, children and compression of each layer, the leaves first."""
        found: list[dict[str, Any]] = described(self.index.store)["layers"]
        return found


class Forest:
    """Builds trees, and keeps them in a folder.

    :raises UnknownName: there is no such tree, embedder or summarizer.
    """

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        if recipe.tree not in index.TREES:
            raise UnknownName(f"unknown tree {recipe.tree}; the trees are: {', '.join(index.TREES)}")
        self.recipe = recipe
        self._folder = folder
        try:
            self._embedder = _embed.embedder(recipe.embedder)
            self._clusterer = make_engine("clusterer", index.TREES[recipe.tree])
        except PrunusError as error:
            raise UnknownName(f"{recipe.name}: {error}") from error
        self._counter = make_engine("tokenizer", "llama2")
        self._summarizer = self._make_summarizer()
        self._open: tuple[Path, Built] | None = None

    def _make_summarizer(self) -> Any:
        if self.recipe.summarizer == EXTRACTIVE:
            return make_engine("summarizer", EXTRACTIVE, embedder=self._embedder, tokenizer=self._counter)
        self._folder.mkdir(parents=True, exist_ok=True)
        model = readers.model(self.recipe.summarizer)
        return make_engine("summarizer", "llm", llm=model, kept=self._folder / "summaries.sqlite")

    def tree(self, documents: Sequence[Document]) -> Built:
        """Return the tree of documents; one that was built before is opened.

        :raises EvalError: it cannot be built; the message says which documents.
        """
        texts = {document.id: _text(document) for document in documents}
        known = json.dumps([asdict(self.recipe), self._embedder.identity, texts], sort_keys=True)
        place = self._folder / hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:24]
        if self._open is None or self._open[0] != place:
            try:
                self._open = place, self._built(texts, place)
            except PrunusError as error:
                raise EvalError(f"{self.recipe.name} of {', '.join(texts)}: {error}") from error
        return self._open[1]

    def _built(self, texts: dict[str, str], place: Path) -> Built:
        store = Store(place, self._embedder.identity, self._embedder.dimension, create=True)
        made = index.Index(store, self._embedder, self._counter, texts)
        done = place / BUILT
        if not done.exists():
            start = time.perf_counter()
            settings = replace(PAPER if self.recipe.tree == "raptor" else BuildSettings(), scope="collection")
            builder = Builder(store, self._embedder, self._counter, self._clusterer, self._summarizer, settings)
            builder.add(DocumentSource(name, text=text) for name, text in texts.items())
            asyncio.run(builder.build())
            done.write_text(json.dumps(asdict(_cost(store, time.perf_counter() - start))))
        return Built(made, Cost(**json.loads(done.read_text())))


def _cost(store: Store, seconds: float) -> Cost:
    view, edges = store.view(), store.edges()
    tokens = dict(zip(view.ids.tolist(), view.tokens.tolist(), strict=True))
    read = sum(tokens[child] for children in edges.values() for child in children)
    leaves = int(view.tokens[view.layer == 0].sum())
    return Cost(leaves, read, sum(tokens[parent] for parent in edges), seconds)


def _text(document: Document) -> str:
    return html_text(document.content) if document.media_type == "text/html" else document.content


@dataclass(frozen=True, slots=True)
class TreeSystem:
    """Retrieval from trees, as a system of the harness.

    Its replies tell, as facts, how many nodes came from each layer (``layers``), the highest layer of the tree
    (``height``), and of texts the places of the evidence (``spans``), which the metric ``span_recall`` reads.

    :param layers: layers to retrieve from; () is all.
    :param top: nodes that a traversal chooses on each layer.
    """

    forest: Forest
    way: Way = "collapsed"
    ranker: Ranker = "dense"
    layers: tuple[int, ...] = ()
    top: int = 0

    @property
    def name(self) -> str:
        """The name in outcomes."""
        recipe = self.forest.recipe
        parts = ["study", recipe.tree, recipe.embedder, recipe.summarizer, self.way, self.ranker]
        parts += [f"layers={'+'.join(map(str, self.layers))}"] * bool(self.layers) + [f"top={self.top}"] * bool(
            self.top
        )
        return ":".join(re.sub(r"[\s,]", "_", part) for part in parts)

    @property
    def caveat(self) -> str:
        """What tables must say of the model that wrote the summaries."""
        return self.forest.recipe.caveat

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Build the tree, or open it."""
        places = all(document.media_type == "text/plain" for document in documents)
        return _Asker(self, self.forest.tree(documents).index, places)


class _Asker:
    """
    :param places: whether the leaves' spans are places in the documents; they are not in HTML.
    """

    def __init__(self, system: TreeSystem, tree: index.Index, places: bool) -> None:
        self._system, self._tree, self._places = system, tree, places
        self._retriever = tree.retriever()

    def ask(self, question: str, budget: int) -> Reply:
        system = self._system
        if system.way == "traversal":
            found = self._retriever.traversal(question, system.top, budget=budget)
        else:
            layers = (self._highest(),) if system.way == "roots" else system.layers
            found = self._retriever.collapsed(
                question, budget, tree=system.way != "flat", scorer=system.ranker, layers=layers
            )
        facts: dict[str, Any] = {"layers": _counted(found.nodes), "height": self._highest()}
        if self._places:
            facts["spans"] = [list(span) for node in found.nodes for span in self._tree.spans(node)]
        return Reply(found.text, "text", facts=facts)

    def _highest(self) -> int:
        return int(self._tree.store.view().layer.max(initial=0))


def _counted(nodes: Sequence[Node]) -> dict[str, int]:
    """Return how many nodes come from each layer."""
    layers = [node.layer for node in nodes]
    return {str(layer): layers.count(layer) for layer in sorted(set(layers))}
