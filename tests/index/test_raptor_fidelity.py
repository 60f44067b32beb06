"""``raptor`` against the paper: a slow reference in the paper's own words, on the same vectors.

RAPTOR §3 and its appendices: UMAP over the whole layer, then within each global cluster; Gaussian mixtures
whose number of clusters BIC chooses; membership above a probability, so that a node may have several
parents; a cluster that a summariser cannot read is clustered again; layers until clustering is infeasible.
What the paper leaves open is as in the authors' code; every step is seeded, which there it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import COUNTER
from tests.index.test_cluster import raptor, topics

from prunus.core.ports import ClusterItems, ClusterLimits
from prunus.core.types import Summary
from prunus.index.build import PAPER, Builder
from prunus.index.nodes import IndexedDocument, Leaf
from prunus.index.store.file.engine import Engine as Store

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]

DIMENSION = 10
THRESHOLD = 0.1
MOST = 50


def reduced(vectors: np.ndarray, neighbours: int) -> np.ndarray:
    """UMAP with the cosine metric; few neighbours show local structure, many show global."""
    from umap import UMAP

    made = UMAP(n_neighbors=neighbours, n_components=DIMENSION, metric="cosine", random_state=0, n_jobs=1)
    return np.asarray(made.fit_transform(vectors), np.float64)


def bic(mixture: Any, points: np.ndarray) -> float:
    """BIC = ln(N) k - 2 ln(L), of the paper's §3: k counts means, covariances and weights."""
    count, dimension = points.shape
    clusters = mixture.n_components
    parameters = clusters * dimension + clusters * dimension * (dimension + 1) / 2 + clusters - 1
    return float(np.log(count) * parameters - 2 * mixture.score_samples(points).sum())


def mixture(points: np.ndarray) -> list[list[int]]:
    """Soft clusters: P(k | x) above the threshold, by the mixture of least BIC."""
    from sklearn.mixture import GaussianMixture

    fitted = [GaussianMixture(k, random_state=0).fit(points) for k in range(1, min(MOST, len(points)))]
    best = min(fitted, key=lambda one: bic(one, points))
    likely = best.predict_proba(points)
    return [[i for i in range(len(points)) if likely[i, k] > THRESHOLD] for k in range(best.n_components)]


def clusters(vectors: np.ndarray, part: list[int]) -> list[list[int]]:
    """Cluster globally, then each global cluster locally."""
    if len(part) <= DIMENSION + 1:
        return [part]
    found = []
    for members in mixture(reduced(vectors[part], int((len(part) - 1) ** 0.5))):
        own = [part[i] for i in members]
        if own and len(own) <= DIMENSION + 1:
            found.append(own)
        elif own:
            found += [[own[i] for i in inner] for inner in mixture(reduced(vectors[own], 10)) if inner]
    return found


def layer(items: ClusterItems, most_tokens: int, part: Sequence[int]) -> list[list[int]]:
    """Cluster, and cluster again within whatever is over the summariser's limit."""
    done: list[list[int]] = []
    for group in clusters(items.vectors, list(part)):
        if len(group) == 1 or items.tokens[group].sum() <= most_tokens:
            done.append(group)
        else:
            done += layer(items, most_tokens, group)
    return done


@pytest.mark.parametrize(("count", "kinds", "noise", "tokens"), [(60, 6, 0.3, 1200), (90, 3, 0.8, 3500)])
def test_a_layer_is_what_the_published_procedure_makes_of_it(count: int, kinds: int, noise: float, tokens: int) -> None:
    engine = raptor()
    items, _ = topics(count, kinds, noise)
    wanted = layer(items, tokens, range(count))
    assert [group.tolist() for group in engine.layer(items, ClusterLimits(tokens=tokens))] == wanted
    assert len(wanted) > 2


def test_a_node_may_have_several_parents() -> None:
    """Points half-way between two groups belong to both."""
    engine = raptor()
    points = np.concatenate([np.random.default_rng(0).normal(at, 1.0, size=(60, 2)) for at in (0.0, 3.5)])
    found = [group.tolist() for group in engine._soft(points, 0)]
    assert found == mixture(points)
    assert sum(map(len, found)) > len(points)


def unit(vectors: np.ndarray) -> np.ndarray:
    """UMAP answers the last bit of a vector: both sides must see the same."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12), np.float32)


class Vectors:
    """Embeds a text as the vector that it names; a summary names the mean of its children."""

    identity, dimension = "by name", 32

    def __init__(self, given: np.ndarray) -> None:
        self.known = {f"chunk {place}": vector for place, vector in enumerate(given)}

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> np.ndarray:
        return np.stack([self.known[text] for text in texts]).astype(np.float32)


class Means:
    """Summarises by naming: the summary of a group stands for the mean of its vectors."""

    identity = "means"

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.groups: list[list[list[str]]] = []

    def said(self, texts: Sequence[str]) -> str:
        name = f"({' + '.join(texts)})"
        mean = np.mean([self.vectors.known[text] for text in texts], axis=0)
        self.vectors.known[name] = (mean / np.linalg.norm(mean)).astype(np.float32)
        return name

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        self.groups.append([list(texts) for texts in batch])
        return [Summary(self.said(texts)) for texts in batch]


def test_the_whole_tree_is_what_the_published_recursion_makes(tmp_path: Path) -> None:
    need("umap")
    items, _ = topics(70, 14, 0.2)
    vectors = Vectors(items.vectors)
    store = Store(tmp_path / "index", vectors.identity, vectors.dimension, create=True)
    texts = list(vectors.known)
    leaves = [Leaf(10 * at, 10 * at + len(text), text, 100) for at, text in enumerate(texts)]
    store.add(IndexedDocument("d", " " * 1000), leaves, items.vectors)
    means = Means(vectors)
    asyncio.run(Builder(store, vectors, COUNTER, raptor(), means, PAPER).build())

    slow = Means(vectors)
    wanted: list[list[list[str]]] = []
    while len(texts) > DIMENSION + 1:
        size = np.full(len(texts), 100) if not wanted else COUNTER.count(texts)
        now = ClusterItems(unit(vectors.embed(texts)), size, ["d"] * len(texts), np.arange(len(texts)))
        groups = [[texts[i] for i in group] for group in layer(now, PAPER.limits.tokens, range(len(texts)))]
        if len(groups) >= len(texts):
            break
        wanted.append(groups)
        texts = [slow.said(group) for group in groups]
    assert means.groups == wanted
    edges = store.edges()
    roots = set(edges) - {child for children in edges.values() for child in children}
    assert len(roots) == len(texts) > 1  # the last layer is not forced into one root
    shown = {node.id: node for node in store.get(store.view().ids.tolist())}
    assert {shown[root].text for root in roots} == set(texts)


@pytest.mark.parametrize("count", [12, 13, 14, 20])
@pytest.mark.parametrize("neighbours", [3, 10])
def test_few_points_are_reduced_as_published(count: int, neighbours: int) -> None:
    """Twelve points are the fewest that are clustered; the published code gives them UMAP's usual start, too."""
    engine = raptor()
    for seed in range(3):
        points = np.random.default_rng(seed).normal(size=(count, 32)).astype(np.float32)
        assert np.array_equal(engine._reduce(points, neighbours, 0), reduced(points, neighbours))


@pytest.mark.parametrize("distinct", [2, 6, 11])
def test_repeated_points_are_reduced_alike_on_every_run(distinct: int) -> None:
    engine = raptor()
    points = np.random.default_rng(0).normal(size=(distinct, 32)).astype(np.float32)
    points = points[np.arange(24) % distinct]
    assert np.array_equal(engine._reduce(points, 10, 0), engine._reduce(points, 10, 0))
