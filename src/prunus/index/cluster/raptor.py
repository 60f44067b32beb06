"""``raptor``: the published clustering (RAPTOR §3): UMAP globally then locally, Gaussian mixtures, BIC.

What the paper leaves open follows the authors' code: the defaults of :class:`Published`. What differs:
every step is seeded; layers too small for UMAP or for a mixture make one cluster; and a cluster that
clustering cannot make smaller is cut in order, where the authors' code recurses without end.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra
from ...core.ports import ClusterItems, ClusterLimits, Ints, Vectors
from ._groups import windows

_DEEPEST: Final = 20
"""Times that a cluster is clustered again because it is over the limit."""


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper leaves open; the defaults are those of the authors' code.

    :param dimension: that UMAP reduces to.
    :param global_neighbours: of UMAP over the whole layer; 0 is the root of the items less one.
    :param local_neighbours: of UMAP within a global cluster.
    :param metric: of UMAP.
    :param most_clusters: BIC is compared for fewer clusters than this.
    :param membership: probability above which an item is in a cluster.
    :param last_layer: a layer of so many nodes or fewer gets no layer above it.
    """

    dimension: int = 10
    global_neighbours: int = 0
    local_neighbours: int = 10
    metric: str = "cosine"
    most_clusters: int = 50
    membership: float = 0.1
    last_layer: int = 11


class Engine:
    """Soft clusters of summaries' own embeddings; the layers may end in several roots.

    A cluster over ``limits.tokens`` is clustered again; ``limits.items`` and ``limits.fan_out`` are not
    of the paper, and are not looked at.

    :raises MissingExtra: umap-learn or scikit-learn is not installed.
    """

    name = "raptor"
    needs_summaries = True

    def __init__(self, published: Published | None = None) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of packages that umap would use if they were there
                from sklearn.mixture import GaussianMixture
                from umap import UMAP
        except ImportError as error:
            raise MissingExtra(
                f"the clusterer raptor needs umap-learn and scikit-learn ({error}); run: pip install 'prunus[raptor]'",
                subject="raptor",
            ) from error
        self.published = published or Published()
        self.last_layer = self.published.last_layer
        self._mixture: Any = GaussianMixture
        self._umap: Any = UMAP

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return groups that may overlap and cover the layer."""
        vectors = np.nan_to_num(np.asarray(items.vectors, np.float32))
        found: list[Ints] = []
        todo = [(np.arange(len(vectors)), 0)] if len(vectors) else []
        while todo:
            part, depth = todo.pop()
            clusters = self._clusters(vectors[part], limits.seed)
            stuck = depth >= _DEEPEST or (depth > 0 and any(len(cluster) == len(part) for cluster in clusters))
            again: list[Ints] = []
            for cluster in clusters:
                members = part[cluster]
                if len(members) == 1 or int(np.sum(items.tokens[members])) <= limits.tokens:
                    found.append(members)
                elif stuck:
                    found += [
                        np.asarray(w, np.int64) for w in windows(members.tolist(), items.tokens, _no_count(limits))
                    ]
                else:
                    again.append(members)
            todo += [(members, depth + 1) for members in reversed(again)]
        return found

    def _clusters(self, vectors: Vectors, seed: int) -> list[Ints]:
        """Cluster globally, then each global cluster locally; return the local clusters."""
        chosen = self.published
        count = len(vectors)
        if count <= chosen.dimension + 1:
            return [np.arange(count)]
        neighbours = chosen.global_neighbours or int((count - 1) ** 0.5)
        reduced = self._reduce(vectors, neighbours, min(chosen.dimension, count - 2), seed)
        found: list[Ints] = []
        for cluster in self._soft(reduced, seed):
            if len(cluster) <= chosen.dimension + 1:
                found.append(cluster)
                continue
            local = self._reduce(vectors[cluster], chosen.local_neighbours, chosen.dimension, seed)
            found += [cluster[members] for members in self._soft(local, seed)]
        return found

    def _reduce(self, vectors: Vectors, neighbours: int, dimension: int, seed: int) -> NDArray[np.float64]:
        """Reduce with UMAP; points that are all the same have nothing to reduce."""
        if not np.any(vectors != vectors[0]):
            return np.zeros((len(vectors), dimension))
        chosen = self.published
        # the spectral start needs more points than dimensions; below, points start at random places
        start = "spectral" if len(vectors) > dimension + 2 else "random"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of graphs in several parts, and of few points: nothing a user can act on
            reducer = self._umap(
                n_neighbors=max(2, min(neighbours, len(vectors) - 1)),
                n_components=dimension,
                metric=chosen.metric,
                random_state=seed,
                n_jobs=1,
                init=start,
            )
            return np.nan_to_num(np.asarray(reducer.fit_transform(vectors), np.float64))

    def _soft(self, points: NDArray[np.float64], seed: int) -> list[Ints]:
        """Fit mixtures, take the one of least BIC, and return who belongs to each of its clusters."""
        if not np.any(points != points[0]):
            return [np.arange(len(points))]
        best: Any = None
        least = np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mixture that did not converge has a BIC that says so
            for clusters in range(1, max(2, min(self.published.most_clusters, len(points)))):
                mixture = self._mixture(n_components=clusters, random_state=seed).fit(points)
                bic = float(mixture.bic(points))
                if bic < least:
                    best, least = mixture, bic
        likely = best.predict_proba(points)
        belongs = likely > self.published.membership
        nowhere = ~belongs.any(axis=1)  # ten clusters or more may share an item evenly
        belongs[nowhere, likely[nowhere].argmax(axis=1)] = True
        return [np.flatnonzero(column) for column in belongs.T if column.any()]


def _no_count(limits: ClusterLimits) -> ClusterLimits:
    """Return limits of tokens alone."""
    many = 2**31
    return ClusterLimits(limits.tokens, many, many, limits.seed)
