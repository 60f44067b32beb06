"""Approximate nearest vectors: all vectors as codes of 4 bits for two numbers (FAISS, product quantisation).

A question is compared with the codes of all vectors. Their cosines only choose candidates; the exact cosines of these
come from the matrix. Without FAISS all vectors are compared exactly, which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints, Vectors

_SAMPLE: Final = 50_000
"""Vectors from which the codes are learned."""
_PART: Final = 65_536
"""Vectors that are added at a time; bounds the memory."""


def faiss() -> Any:
    """Return the module, None where it is not installed."""
    try:
        import faiss as found
    except ImportError:
        return None
    return found


def codes_of(matrix: Callable[[Ints], Vectors], rows: Ints, dimension: int) -> NDArray[np.uint8]:
    """Return the codes of the vectors of some rows, as FAISS stores them; nothing without FAISS, or for few vectors.

    :param matrix: returns the vectors of some rows.
    """
    module = faiss()
    if module is None or len(rows) < 1000:
        return np.zeros(0, np.uint8)
    chosen = np.random.default_rng(20261124).choice(len(rows), min(len(rows), _SAMPLE), replace=False)
    sample = matrix(rows[np.sort(chosen)])
    mean = sample.mean(axis=0)  # vectors of texts share a direction, which would take up the codes
    parts = dimension // 2 if dimension % 2 == 0 else dimension
    index = module.IndexPQFastScan(dimension, parts, 4, module.METRIC_INNER_PRODUCT)
    index.train(sample - mean)
    for start in range(0, len(rows), _PART):
        index.add(matrix(rows[start : start + _PART]) - mean)
    return np.asarray(module.serialize_index(index), np.uint8)


class Nearest:
    """The nearest of many vectors.

    :param codes: the codes of :func:`codes_of`; the caller has checked them.
    """

    def __init__(self, codes: NDArray[np.uint8]) -> None:
        self._index = faiss().deserialize_index(np.array(codes))

    def of(self, vector: Vectors, count: int) -> Ints:
        """Return the numbers of about ``count`` vectors with the greatest inner products, in any order."""
        _, found = self._index.search(vector[None], count)
        return np.asarray(found[0][found[0] >= 0], np.int64)


def dots(vectors: Vectors, vector: Vectors) -> NDArray[np.float32]:
    """Return the inner products of vectors and one vector, in this thread: BLAS would wake others for so little."""
    return np.asarray(np.einsum("ij,j->i", vectors, vector), np.float32)
