"""An approximate index for dense search (FAISS, extra ``faiss``): a graph of near vectors (HNSW).

It pays from some hundred thousand nodes on; below, exact search takes milliseconds. It is made from a
view in memory and never written, and it tells its own recall against exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput, MissingExtra
from ..core.ports import Ints, Vectors
from .nodes import View

_ADDED: Final = 16_384
"""Vectors that are added at a time."""


class Approximate:
    """The nodes of one view that have an embedding, by approximate cosine.

    :param view: of the index; a later state needs a new one.
    :param links: of each vector in the graph (M of Malkov and Yashunin 2018).
    :param effort: candidates that a search goes through (ef); more find more and take longer.
    :param build_effort: the same while the graph is built.
    :param threads: of building and of searching.
    :raises MissingExtra: faiss is not installed.
    :raises BadInput: ``links`` is below 2, or an effort or ``threads`` below 1.
    """

    def __init__(
        self, view: View, *, links: int = 32, effort: int = 128, build_effort: int = 80, threads: int = 1
    ) -> None:
        try:
            import faiss
        except ImportError as error:
            raise MissingExtra(
                f"an approximate index needs faiss ({error}); run: pip install 'prunus[faiss]'", subject="faiss"
            ) from error
        if links < 2 or min(effort, build_effort, threads) < 1:
            raise BadInput(
                f"{links} links, efforts {effort} and {build_effort}, {threads} threads: give at least 2, 1, 1 and 1",
                subject="approximate",
            )
        self.version = view.version
        self.effort, self.threads = effort, threads
        self._faiss: Any = faiss
        self._view = view
        self._places: Ints = np.flatnonzero(view.row >= 0)
        self._index: Any = faiss.IndexHNSWFlat(view.matrix.shape[1], links, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = build_effort
        rows = view.row[self._places]
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(threads)  # faiss counts threads for the whole process
        try:
            for start in range(0, len(rows), _ADDED):
                self._index.add(np.ascontiguousarray(view.matrix[rows[start : start + _ADDED]], np.float32))
        finally:
            faiss.omp_set_num_threads(before)

    def nearest(self, vector: Vectors, count: int) -> tuple[Ints, NDArray[np.float64]]:
        """Return places in the view and cosines of about the ``count`` nearest nodes, best first."""
        wanted = min(count, len(self._places))
        if wanted < 1:
            return np.zeros(0, np.int64), np.zeros(0)
        chosen = self._faiss.SearchParametersHNSW(efSearch=max(self.effort, wanted))
        asked = np.ascontiguousarray(np.asarray(vector, np.float32)[None])
        scores, found = self._index.search(asked, wanted, params=chosen)
        there = found[0] >= 0
        return self._places[found[0][there]], scores[0][there].astype(np.float64)

    def similarities(self, vector: Vectors, count: int = 1000) -> NDArray[np.float64]:
        """Return what :meth:`View.similarities` does, exact for the nodes that are found.

        Nodes that are not found count as near as the last one that was; -2 where there is no embedding.

        :param count: nodes that are looked for.
        """
        places, scores = self.nearest(vector, count)
        found = np.full(len(self._view.ids), -2.0)
        if len(places):
            found[self._places] = scores.min()
            found[places] = scores
        return found

    def recall(self, questions: Vectors | Sequence[Vectors], count: int = 10) -> float:
        """Return the share of the ``count`` nodes that exact search finds first which this finds too.

        :param questions: vectors, float32 [n, dimension].
        """
        shares = []
        for vector in questions:
            exact = np.argsort(-self._view.similarities(vector), kind="stable")[: min(count, len(self._places))]
            found, _ = self.nearest(vector, count)
            shares.append(float(np.isin(exact, found).mean()) if len(exact) else 1.0)
        return float(np.mean(shares)) if shares else 1.0
