"""Shared by ``tree`` and the studies of trees: summary trees over the documents of questions, and what they cost.

One tree covers all documents of a question. Texts are cut as they are, so that the places of leaves are places in the
documents; pages of HTML are cleaned and cut along their structure, as ``prunus index add`` does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from prunus.core.errors import PrunusError
from prunus.core.ports import Ints
from prunus.core.registry import make_engine
from prunus.index.bill import described
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import index, readers
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import Document
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import read
from prunus_evals.tokens import Counter

HELD = 4
"""Trees that are held."""

BUILT = "built.json"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How trees are built.

    :param tree: one of :data:`prunus_evals.index.TREES`.
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
        if self.tree not in index.TREES:
            raise UnknownName(f"unknown tree {self.tree}; the trees are: {', '.join(index.TREES)}")
        _embed.embedder(self.embedder)
        if self.llm:
            readers.model(self.llm)

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.tree} tree, {self.embedder} vectors, summaries by {self.llm or 'extractive'}"

    @property
    def caveat(self) -> str:
        """What tables must say of the model that wrote the summaries; '' for nothing."""
        return readers.caveat(self.llm, not self.llm.startswith("scripted:")) if self.llm else ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What it cost to build a tree.

    :param tokens: tokens of the documents, as their chunks hold them.
    :param read: tokens of all children of all parents: what a summarizer read, without its prompt.
    :param written: tokens of all summaries.
    :param seconds: wall time: reading, cutting, embedding, clustering and summarizing.
    """

    tokens: int
    read: int
    written: int
    seconds: float


@dataclass(slots=True, weakref_slot=True)
class Grown:
    """A tree, and what it cost."""

    index: index.Index
    cost: Cost

    @property
    def height(self) -> int:
        """The top layer; 0 without a tree."""
        return int(self.index.store.view().layer.max(initial=0))

    def layers(self) -> list[dict[str, Any]]:
        """Return the nodes, tokens, children and compression of each layer, the leaves first."""
        found: list[dict[str, Any]] = described(self.index.store)["layers"]
        return found


class _Counted:
    """The counter of the evaluation as an engine of Prunus."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def count(self, texts: Sequence[str]) -> Ints:
        return np.asarray(self._counter.count(texts), np.int64)


def grown(documents: Sequence[Document], recipe: Recipe, counter: Counter, folder: Path | None = None) -> Grown | None:
    """Return the tree over documents; None where they are all empty. The last trees are held.

    :param folder: where trees are kept, and opened again; without one, a tree lasts as long as it is held.
    :raises EvalError: it cannot be built; the message says which documents.
    """
    key: Any = counter  # its protocol does not say that it can be a key
    return _held(tuple(one for one in documents if one.content.strip()), recipe, key, folder)


@lru_cache(maxsize=HELD)
def _held(documents: tuple[Document, ...], recipe: Recipe, counter: Counter, folder: Path | None) -> Grown | None:
    if not documents:
        return None
    place = folder / _digest(documents, recipe) if folder else Path(tempfile.mkdtemp(prefix="prunus-tree-"))
    try:
        found = _opened(documents, recipe, counter, place, folder)
    except PrunusError as error:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
        raise EvalError(f"{recipe.name} of {', '.join(one.id for one in documents)}: {error}") from error
    if folder is None:
        weakref.finalize(found, shutil.rmtree, place, ignore_errors=True)
    return found


def _digest(documents: Sequence[Document], recipe: Recipe) -> str:
    identity = _embed.embedder(recipe.embedder).identity
    known = json.dumps([asdict(recipe), identity, [asdict(one) for one in documents]], sort_keys=True)
    return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:24]


def _opened(documents: Sequence[Document], recipe: Recipe, counter: Counter, place: Path, folder: Path | None) -> Grown:
    """Return a tree that was built before, or build it."""
    vectors, tokens = _embed.embedder(recipe.embedder), _Counted(counter)
    store = Store(place, vectors.identity, vectors.dimension, create=True)
    made = index.Index(store, vectors, tokens, {one.id: one.content for one in documents})
    done = place / BUILT
    if not done.exists():
        start = time.perf_counter()
        settings = PAPER if recipe.tree == "raptor" else BuildSettings()
        clusterer = make_engine("clusterer", index.TREES[recipe.tree])
        builder = Builder(store, vectors, tokens, clusterer, _summarizer(recipe, tokens, folder), settings)
        builder.add(map(_source, documents))
        if not recipe.flat:
            asyncio.run(builder.build())
        done.write_text(json.dumps(asdict(_cost(store, time.perf_counter() - start))))
    return Grown(made, Cost(**json.loads(done.read_text())))


def _summarizer(recipe: Recipe, tokens: Any, folder: Path | None) -> Any:
    if not recipe.llm:
        return make_engine("summarizer", "extractive", embedder=_embed.embedder(recipe.embedder), tokenizer=tokens)
    kept = {"kept": folder / "summaries.sqlite"} if folder else {}
    return make_engine("summarizer", "llm", llm=readers.model(recipe.llm), **kept)


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
    return Cost(leaves, read, sum(tokens[parent] for parent in edges), seconds)
