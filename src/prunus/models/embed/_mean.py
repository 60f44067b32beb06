"""The mean of the vectors of a text's pieces, for embedders with one vector a piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_PIECES = 1_024
"""Pieces whose vectors are gathered at once; a single text may have more."""

Rows = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Returns the vectors of pieces, float32 [pieces, width]."""


def mean_vectors(rows: Rows, width: int, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the mean of each text's vectors, of unit norm, float32 [texts, width]; no pieces: a fixed vector.

    :param rows: returns the vectors of pieces.
    :param width: numbers of a vector.
    :param ids: the pieces of each text.
    """
    vectors = np.zeros((len(ids), width), np.float32)
    lengths = np.fromiter((len(row) for row in ids), np.int64, len(ids))
    filled = np.flatnonzero(lengths)
    shares = np.cumsum(lengths[filled]) // _PIECES
    for part in np.split(filled, np.flatnonzero(np.diff(shares)) + 1):  # bounded memory: some texts at a time
        if not len(part):
            continue
        flat = np.concatenate([np.asarray(ids[i], np.int64) for i in part])
        bounds = np.concatenate([[0], np.cumsum(lengths[part])[:-1]])
        vectors[part] = np.add.reduceat(rows(flat), bounds, axis=0)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[norms[:, 0] == 0, 0] = 1.0
    norms[norms == 0] = 1.0
    return np.asarray(vectors / norms, np.float32)
