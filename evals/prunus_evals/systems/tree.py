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

Facts of a reply: ``layers``: retrieved nodes by layer; ``height``: the top layer of the tree; of texts ``spans``, the
places of the evidence, which the metric ``span_recall`` reads. The last trees are held (:mod:`._trees`): systems that
differ in retrieval alone share a tree, and its time stands with the first of them. With ``@costs=yes`` every system
builds its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prunus.core.installation import pip_install
from prunus.index.retrieve import Retrieved
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._trees import TREES, Grown, Recipe, grown
from prunus_evals.systems._variants import Kinds, Variant
from prunus_evals.systems._variants import read as read_variant
from prunus_evals.tokens import Counter

WAYS = ("collapsed", "flat", "traversal", "beam", "root", "hybrid")
VARIANTS = (*TREES, *(f"ward@way={way}" for way in WAYS[1:]), "ward@way=flat@ranker=bm25", "ward@ranker=bm25")
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


class Tree:
    """Retrieves from a summary tree.

    :param folder: where trees are kept; without one they last as long as they are held.
    """

    def __init__(self, name: str, variant: Variant, counter: Counter, folder: Path | None = None) -> None:
        self.name = name
        self._options = variant.options
        self._counter = counter
        self._folder = folder
        self._costs = variant.options.get("costs") == "yes"
        flat = variant.options.get("way") == "flat"
        self._recipe = Recipe(
            "ward" if flat and variant.head != "raptor" else variant.head,  # their chunks are the same
            variant.options.get("embedder", "static"),
            "" if flat else variant.options.get("llm", ""),
            flat,
        )
        self.models = (*filter(None, [self._recipe.llm]), *_embed.models(self._recipe.embedder))
        self.caveat = self._recipe.caveat
        """What tables must say of the model that wrote the summaries."""

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Build the tree, or open it."""
        stages = StageTimer(self._counter, self._costs)
        places = all(document.media_type != "text/html" for document in documents)
        tree = grown(documents, self._recipe, self._counter, None if self._costs else self._folder, self._costs)
        return _Asker(tree, self._recipe, self._options, stages, places)


class _Asker:
    """
    :param places: whether the leaves' spans are places in the documents; they are not in HTML.
    """

    def __init__(
        self, tree: Grown | None, recipe: Recipe, options: Mapping[str, Any], stages: StageTimer, places: bool
    ) -> None:
        self._tree, self._recipe, self._options = tree, recipe, options
        self._stages, self._places = stages, places

    def ask(self, question: str, budget: int) -> Reply:
        tree = self._tree
        if tree is None:
            return Reply("", "text")
        start = time.perf_counter()
        found = self._retrieved(tree, question, budget)
        stages, cost = self._stages.copy(), tree.cost
        stages.note("build", cost.seconds, cost.tokens, cost.tokens + cost.written)
        stages.note("retrieve", time.perf_counter() - start, cost.tokens + cost.written, found.tokens)
        layers = [node.layer for node in found.nodes]
        counted = {str(layer): layers.count(layer) for layer in sorted(set(layers))}
        facts: dict[str, Any] = {"layers": counted, "height": tree.height}
        if self._places:
            facts["spans"] = [list(span) for node in found.nodes for span in tree.index.spans(node)]
        return Reply(found.text, "text", stages=tuple(stages.found), facts=facts)

    def _retrieved(self, tree: Grown, question: str, budget: int) -> Retrieved:
        options, retriever = self._options, tree.index.retriever()
        way, ranker = options.get("way", "collapsed"), options.get("ranker", "dense")
        if way == "traversal":
            return retriever.traversal(question, options.get("top", 5), budget=budget, start=options.get("start", -1))
        if way == "hybrid":
            return retriever.hybrid(question, budget)
        if way == "beam":
            nodes = tree.index.beam(question, budget)
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
    return found.head in TREES and _embed.is_embedder(found.options.get("embedder", "static"))


NEEDS = f"raptor: {pip_install('raptor')}; {_embed.NEEDS}; summaries: a language model, as @llm=SPEC"


def missing(variant: str) -> str:
    """Return which package a tree or an embedder lacks; '' where nothing is missing."""
    found = _variant(variant)
    gone = [name for name in ("umap", "sklearn") if found.head == "raptor" and find_spec(name) is None]
    return pip_install("raptor") if gone else _embed.missing(found.options.get("embedder", "static"))


def make(counter: Counter, variant: str, folder: Path | None = None) -> System:
    """Return the system of a variant.

    :param folder: where trees are kept, and opened again.
    :raises UnknownName: there is no such tree, or an engine cannot be made.
    """
    return Tree(f"tree:{variant}", _variant(variant), counter, folder)
