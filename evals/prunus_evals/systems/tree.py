"""Summary trees over the documents of a question: ``tree:TREE@option=value``.

TREE is ``ward``, ``raptor``, ``contiguous``, ``segments`` or ``random``. One tree covers all documents of a question.

``way``      ``collapsed`` (default): the best nodes of all layers; ``flat``: the best chunks, without a tree;
             ``traversal``: the best roots, then the best of their children, and so on; ``beam``: the best leaves that
             a search from the roots reaches; ``root``: the summaries of the top layer alone; ``hybrid``: the
             retrieval of ``prunus ask --index``
``ranker``   ``dense`` (default), ``bm25`` or ``hybrid``, for ``collapsed`` and ``flat``
``embedder`` ``static`` (default), ``minilm``, ``e5``, ``bge``, ``dpr``, or a spec
``start``, ``count``  the highest layer that is retrieved from, counted from the leaves (0), and how many layers there
             are from it down (RAPTOR, Table 8); for ``collapsed``
``top``      nodes that ``traversal`` chooses on each layer (5)
``llm``      spec of a language model that writes the summaries; without one they are extractive
``costs``    ``yes``: note tokens and seconds by stage

Facts of a reply: ``layers``: retrieved nodes by layer; ``height``: the top layer of the tree. The last trees are held:
systems that differ in retrieval alone share a tree, and its time stands with the first of them.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from prunus.core.errors import PrunusError
from prunus.core.ports import Ints
from prunus.core.registry import make_engine
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.retrieve import Retrieved
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import index, readers
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.index_tasks import IndexQuestion
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import read
from prunus_evals.systems._stages import COSTS, Stages
from prunus_evals.systems._variants import Kinds, Variant
from prunus_evals.systems._variants import read as read_variant
from prunus_evals.tokens import Counter

WAYS = ("collapsed", "flat", "traversal", "beam", "root", "hybrid")
VARIANTS = (*index.TREES, *(f"ward@way={way}" for way in WAYS[1:]), "ward@way=flat@ranker=bm25", "ward@ranker=bm25")
OPTIONS: Kinds = {
    "way": WAYS,
    "ranker": ("dense", "bm25", "hybrid"),
    "embedder": str,
    "start": int,
    "count": int,
    "top": int,
    "llm": str,
    **COSTS,
}
HELD = 4
"""Trees that are held."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a tree is built.

    :param flat: only the chunks are made, and no tree.
    :param llm: spec of the model that writes summaries; '' for extractive ones.
    """

    tree: str
    embedder: str
    flat: bool = False
    llm: str = ""


@dataclass(slots=True, weakref_slot=True)
class Grown:
    """A tree, the tokens of its documents' chunks and of its summaries, and the seconds that it took."""

    index: index.Index
    leaves: int
    summaries: int
    height: int
    seconds: float


class _Counted:
    """The counter of the evaluation as an engine of Prunus."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def count(self, texts: Sequence[str]) -> Ints:
        return np.asarray(self._counter.count(texts), np.int64)


@lru_cache(maxsize=HELD)
def grown(documents: tuple[Document, ...], recipe: Recipe, counter: Counter) -> Grown | None:
    """Return the tree over documents; None where they are all empty.

    :raises EvalError: it cannot be built.
    """
    start = time.perf_counter()
    pages = read(documents)
    if pages is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="prunus-tree-"))
    try:
        made = _built(pages.trees, recipe, counter, folder)
    except PrunusError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise EvalError(f"the tree {recipe.tree} of {', '.join(one.id for one in documents)}: {error}") from error
    view = made.store.view()
    tokens = view.tokens[view.layer == 0].sum(), view.tokens[view.layer > 0].sum()
    found = Grown(made, int(tokens[0]), int(tokens[1]), int(view.layer.max(initial=0)), time.perf_counter() - start)
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _built(trees: Sequence[Any], recipe: Recipe, counter: Counter, folder: Path) -> index.Index:
    vectors, tokens = _embed.embedder(recipe.embedder), _Counted(counter)
    store = Store(folder / "index", vectors.identity, vectors.dimension, create=True)
    if recipe.llm:
        summaries = make_engine("summarizer", "llm", llm=readers.model(recipe.llm))
    else:
        summaries = make_engine("summarizer", "extractive", embedder=vectors, tokenizer=tokens)
    settings = PAPER if recipe.tree == "raptor" else BuildSettings()
    clusterer = make_engine("clusterer", index.TREES[recipe.tree])
    builder = Builder(store, vectors, tokens, clusterer, summaries, settings)
    builder.add(DocumentSource(str(number), tree) for number, tree in enumerate(trees))
    if not recipe.flat:
        asyncio.run(builder.build())
    return index.Index(store, vectors, tokens, {})


class Tree:
    """Retrieves from a summary tree."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._options = variant.options
        self._counter = counter
        way = variant.options.get("way", "collapsed")
        self._recipe = Recipe(
            "ward" if way == "flat" and variant.head != "raptor" else variant.head,
            _embed.spec_of(variant.options.get("embedder", "static")),
            way == "flat",
            variant.options.get("llm", ""),
        )
        if self._recipe.llm:
            readers.model(self._recipe.llm)  # a wrong spec is refused before anything runs

    @property
    def caveat(self) -> str:
        """What tables must say of the model that writes its summaries."""
        return readers.caveat(self._recipe.llm)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Build the tree once."""
        counter: Any = self._counter  # its protocol does not say that it can be a key
        return _Asker(grown(tuple(documents), self._recipe, counter), self._recipe, self._options, self._stages)

    def _stages(self) -> Stages:
        return Stages(self._counter, self._options.get("costs") == "yes")


class _Asker:
    def __init__(self, tree: Grown | None, recipe: Recipe, options: Mapping[str, Any], stages: Any) -> None:
        self._tree, self._recipe, self._options = tree, recipe, options
        self._stages = stages

    def ask(self, question: str, budget: int) -> Reply:
        if self._tree is None:
            return Reply("", "text")
        start = time.perf_counter()
        found = self._retrieved(self._tree, question, budget)
        layers = [node.layer for node in found.nodes]
        counted = {str(layer): layers.count(layer) for layer in sorted(set(layers))}
        stages: Stages = self._stages()
        tree = self._tree
        stages.note("build", tree.seconds, tree.leaves, tree.leaves + tree.summaries)
        stages.note("retrieve", time.perf_counter() - start, tree.leaves + tree.summaries, found.tokens)
        facts = {"layers": counted, "height": tree.height}
        return Reply(found.text, "text", stages=tuple(stages.found), facts=facts)

    def _retrieved(self, tree: Grown, question: str, budget: int) -> Retrieved:
        options, retriever = self._options, tree.index.retriever()
        way, ranker = options.get("way", "collapsed"), options.get("ranker", "dense")
        if way == "traversal":
            return retriever.traversal(question, options.get("top", 5), budget=budget, start=options.get("start", -1))
        if way == "hybrid":
            return retriever.hybrid(question, budget)
        if way == "beam":
            asked = IndexQuestion("", question, "", ())
            nodes = index.retrieve(tree.index, f"beam:{self._recipe.tree}", asked, budget, within=False)
            text = "\n\n".join(node.text for node in nodes)
            return Retrieved(question, nodes, [], text, sum(node.tokens for node in nodes))
        layers = (tree.height,) if way == "root" else layers_of(options, tree.height)
        if layers == ():
            layers = tuple(range(tree.height + 1))
        return retriever.collapsed(question, budget, tree=way != "flat", scorer=ranker, layers=layers)


def layers_of(options: Mapping[str, Any], height: int) -> tuple[int, ...]:
    """Return the layers from the highest that is wanted down; () for all. A layer above the tree's is its highest."""
    if "start" not in options and "count" not in options:
        return ()
    start = min(options.get("start", height), height)
    return tuple(range(max(0, start - options.get("count", start + 1) + 1), start + 1))


def _variant(variant: str) -> Variant:
    found = read_variant("tree", variant, OPTIONS)
    options = found.options
    if options.get("count") == 0 or options.get("top") == 0:
        raise UnknownName(f"tree:{variant}: a retrieval takes at least one layer and one node")
    return found


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed."""
    found = _variant(variant)
    return found.head in index.TREES and _embed.is_embedder(found.options.get("embedder", "static"))


def missing(variant: str) -> str:
    """Return which package a tree or an embedder lacks; '' where nothing is missing."""
    found = _variant(variant)
    gone = [name for name in ("umap", "sklearn") if found.head == "raptor" and find_spec(name) is None]
    return "pip install 'prunus[raptor]'" if gone else _embed.missing(found.options.get("embedder", "static"))


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant.

    :raises UnknownName: the language model cannot be made.
    """
    return Tree(f"tree:{variant}", _variant(variant), counter)
