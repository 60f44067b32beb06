"""``raptor``: the paper's clustering (RAPTOR §3): UMAP globally, then locally, Gaussian mixtures, BIC.

Values that the paper does not give are those of the authors' code: the defaults of :class:`Published`. Three things
differ: every step is seeded; a layer that is too small for UMAP or a mixture is one cluster; and a cluster that
clustering cannot make smaller is cut in order, where the authors' code recurses without end.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra
from ...core.installation import pip_install
from ...core.ports import ClusterItems, ClusterLimits, Ints, Vectors
from ._groups import windows

_DEEPEST: Final = 20
"""Most times that a cluster over the limit is clustered again."""


@dataclass(frozen=True, slots=True)
class Published:
    """Values that the paper does not give; the defaults are those of the authors' code.

    :param dimension: dimension to which UMAP reduces.
    :param global_neighbours: neighbours of UMAP over the whole layer; 0 is the square root of (items - 1).
    :param local_neighbours: neighbours of UMAP within a global cluster.
    :param metric: metric of UMAP.
    :param most_clusters: BIC is compared for fewer clusters than this number.
    :param membership: probability above which an item belongs to a cluster.
    :param last_layer: a layer of at most so many nodes gets no layer above it.
    """

    dimension: int = 10
    global_neighbours: int = 0
    local_neighbours: int = 10
    metric: str = "cosine"
    most_clusters: int = 50
    membership: float = 0.1
    last_layer: int = 11


class Engine:
    """Soft clusters of the summaries' embeddings; the layers may end in several roots.

    A cluster over ``limits.tokens`` is clustered again. ``limits.items`` and ``limits.fan_out`` are ignored, because
    the paper has no such limits.

    :raises MissingExtra: umap-learn or scikit-learn is not installed.
    """

    name = "raptor"
    needs_summaries = True

    def __init__(self, published: Published | None = None) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # umap warns of optional packages that are missing
                from sklearn.mixture import GaussianMixture
                from umap import UMAP
        except ImportError as error:
            raise MissingExtra(
                f"the clusterer raptor needs umap-learn and scikit-learn ({error}); run: {pip_install('raptor')}",
                subject="raptor",
            ) from error
        self.published = published or Published()
        self.last_layer = self.published.last_layer
        self._mixture: Any = GaussianMixture
        self._umap: Any = UMAP

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return groups that may overlap and cover the layer."""
        vectors = np.nan_to_num(np.asarray(items.vectors, np.float32))
        groups: list[Ints] = []
        todo = [(np.arange(len(vectors)), 0)] if len(vectors) else []
        while todo:
            part, depth = todo.pop()
            clusters = self._clusters(vectors[part], limits.seed)
            stuck = depth >= _DEEPEST or (depth > 0 and any(len(cluster) == len(part) for cluster in clusters))
            again: list[Ints] = []
            for cluster in clusters:
                members = part[cluster]
                if len(members) == 1 or int(np.sum(items.tokens[members])) <= limits.tokens:
                    groups.append(members)
                elif stuck:
                    groups += [
                        np.asarray(w, np.int64) for w in windows(members.tolist(), items.tokens, _no_count(limits))
                    ]
                else:
                    again.append(members)
            todo += [(members, depth + 1) for members in reversed(again)]
        return groups

    def _clusters(self, vectors: Vectors, seed: int) -> list[Ints]:
        """Cluster globally, then each global cluster locally; return the local clusters."""
        chosen = self.published
        count = len(vectors)
        if count <= chosen.dimension + 1:
            return [np.arange(count)]
        neighbours = chosen.global_neighbours or int((count - 1) ** 0.5)
        reduced = self._reduce(vectors, neighbours, seed)
        result: list[Ints] = []
        for cluster in self._soft(reduced, seed):
            if len(cluster) <= chosen.dimension + 1:
                result.append(cluster)
                continue
            local = self._reduce(vectors[cluster], chosen.local_neighbours, seed)
            result += [cluster[members] for members in self._soft(local, seed)]
        return result

    def _reduce(self, vectors: Vectors, neighbours: int, seed: int) -> NDArray[np.float64]:
        """Return the vectors reduced by UMAP, float64 [vectors, dimension]; zeros for vectors that are all equal."""
        chosen = self.published
        distinct = len(np.unique(vectors, axis=0))
        if distinct == 1:
            return np.zeros((len(vectors), chosen.dimension))
        # The spectral start, as published, finds dimension + 1 eigenvectors. With too few distinct points the solver
        # goes on with vectors that it draws without a seed; a random start has one.
        start = "spectral" if distinct > chosen.dimension + 1 else "random"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of disconnected graphs and few points: no user can act on them
            reducer = self._umap(
                n_neighbors=max(2, min(neighbours, len(vectors) - 1)),
                n_components=chosen.dimension,
                metric=chosen.metric,
                random_state=seed,
                n_jobs=1,
                init=start,
            )
            return np.nan_to_num(np.asarray(reducer.fit_transform(vectors), np.float64))

    def _soft(self, points: NDArray[np.float64], seed: int) -> list[Ints]:
        """Fit Gaussian mixtures, choose the mixture of least BIC, and return the members of each of its clusters."""
        if not np.any(points != points[0]):
            return [np.arange(len(points))]
        best: Any = None
        least = np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mixture that did not converge loses by its BIC
            for clusters in range(1, max(2, min(self.published.most_clusters, len(points)))):
                mixture = self._mixture(n_components=clusters, random_state=seed).fit(points)
                bic = float(mixture.bic(points))
                if bic < least:
                    best, least = mixture, bic
        likely = best.predict_proba(points)
        member = likely > self.published.membership
        nowhere = ~member.any(axis=1)  # with ten clusters or more, all probabilities may be low
        member[nowhere, likely[nowhere].argmax(axis=1)] = True
        return [np.flatnonzero(column) for column in member.T if column.any()]


def _no_count(limits: ClusterLimits) -> ClusterLimits:
    """Return the limits without those on numbers of items."""
    many = 2**31
    return ClusterLimits(limits.tokens, many, many, limits.seed)
