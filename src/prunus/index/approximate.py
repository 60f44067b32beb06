"""An approximate index for dense search: a graph of near vectors (HNSW) by FAISS (extra ``faiss``).

It is useful from some hundred thousand nodes on; below, exact search takes milliseconds. It is built in memory from a
view, is never written to disk, and can measure its recall against exact search.
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
"""Vectors that are added at a time; bounds the copy in memory."""


class Approximate:
    """Approximate nearest-neighbour search over the embedded nodes of one view.

    :param view: one state of the index; a later state needs a new object.
    :param links: links of each vector in the graph (M of Malkov and Yashunin 2018).
    :param effort: candidates of a search (ef); more raise the recall and take longer.
    :param build_effort: candidates while the graph is built.
    :param threads: threads for building and searching.
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
        """Return (indices into the view, cosines) of about the ``count`` nearest nodes, best first."""
        wanted = min(count, len(self._places))
        if wanted < 1:
            return np.zeros(0, np.int64), np.zeros(0)
        chosen = self._faiss.SearchParametersHNSW(efSearch=max(self.effort, wanted))
        query = np.ascontiguousarray(np.asarray(vector, np.float32)[None])
        scores, found = self._index.search(query, wanted, params=chosen)
        valid = found[0] >= 0
        return self._places[found[0][valid]], scores[0][valid].astype(np.float64)

    def similarities(self, vector: Vectors, count: int = 1000) -> NDArray[np.float64]:
        """Return cosines as :meth:`View.similarities` does, float64 [n]; they are exact for the nodes that are found.

        The other nodes get the cosine of the last node found, and nodes without an embedding get -2.

        :param count: how many nodes are searched.
        """
        places, scores = self.nearest(vector, count)
        found = np.full(len(self._view.ids), -2.0)
        if len(places):
            found[self._places] = scores.min()
            found[places] = scores
        return found

    def recall(self, questions: Vectors | Sequence[Vectors], count: int = 10) -> float:
        """Return the mean share of the exact ``count`` nearest nodes that approximate search finds too, 0 to 1.

        :param questions: vectors, float32 [n, dimension].
        """
        shares = []
        for vector in questions:
            exact = np.argsort(-self._view.similarities(vector), kind="stable")[: min(count, len(self._places))]
            found, _ = self.nearest(vector, count)
            shares.append(float(np.isin(exact, found).mean()) if len(exact) else 1.0)
        return float(np.mean(shares)) if shares else 1.0
