"""Shards: a large layer is split by direction, so that each part is clustered by itself, in any process.

The split is spherical k-means on a sample. It depends on the vectors and the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Ints, Vectors
from ._linkage import halves

_SAMPLE: Final = 64
"""Items drawn for each centre."""
_STEPS: Final = 8
"""Steps of k-means; later steps move few items."""
_BLOCK: Final = 8192
"""Items that are compared with the centres at a time; bounds the memory."""


class LayerVectors:
    """Some rows of a matrix, which may be mapped into memory: only what is asked for is read.

    :param rows: int [n]; None takes all rows of the matrix.
    """

    def __init__(self, matrix: Vectors, rows: Ints | None = None) -> None:
        self._matrix, self._rows = matrix, rows
        self.dimension = int(matrix.shape[1])

    def __len__(self) -> int:
        return len(self._matrix) if self._rows is None else len(self._rows)

    def __getitem__(self, places: Any) -> Vectors:
        return np.asarray(self._matrix[places if self._rows is None else self._rows[places]], np.float32)

    def directions(self, places: Any) -> Vectors:
        """Return rows of unit norm; a row of zeros stays."""
        result = self[places]
        return np.asarray(result / np.maximum(np.linalg.norm(result, axis=-1, keepdims=True), 1e-12), np.float32)


def shards(rows: LayerVectors, size: int, seed: int) -> Iterator[Ints]:
    """Yield the shards of a layer: disjoint places in ascending order, which cover it.

    :param size: items that a shard has on average, half of what it has at most.
    """
    count = len(rows)
    centres = _centres(rows, -(-count // size), seed)
    nearest = np.empty(count, np.int32)
    for start in range(0, count, _BLOCK):
        block = rows.directions(np.arange(start, min(count, start + _BLOCK)))
        nearest[start : start + len(block)] = (block @ centres.T).argmax(axis=1)
    order = np.argsort(nearest, kind="stable")
    for members in np.split(order, np.searchsorted(nearest[order], np.arange(1, len(centres)))):
        if len(members) <= 2 * size:
            if len(members):
                yield members
        else:
            for part in halves(rows.directions(members), np.arange(len(members)), 2 * size):
                yield members[part]


def _centres(rows: LayerVectors, wanted: int, seed: int) -> NDArray[np.float32]:
    """Return the centres of spherical k-means on a sample, float32 [wanted, dimension]."""
    draw = np.random.default_rng(seed)
    count = len(rows)
    sample = rows.directions(np.sort(draw.choice(count, min(count, _SAMPLE * wanted), replace=False)))
    sample = np.nan_to_num(sample)
    centres = sample[_apart(sample, wanted, draw)]
    for _ in range(_STEPS):
        nearest = np.concatenate(
            [(sample[at : at + _BLOCK] @ centres.T).argmax(axis=1) for at in range(0, len(sample), _BLOCK)]
        )
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centres)
    return np.asarray(centres, np.float32)


def _apart(sample: Vectors, wanted: int, draw: np.random.Generator) -> list[int]:
    """Draw items as k-means++ does: the farther from those drawn before, the likelier."""
    chosen = [0]
    far = np.maximum(1 - sample @ sample[0], 0).astype(np.float64)
    while len(chosen) < wanted:
        total = far.sum()
        place = int(draw.choice(len(sample), p=far / total)) if total > 0 else len(chosen) % len(sample)
        chosen.append(place)
        far = np.minimum(far, np.maximum(1 - sample @ sample[place], 0))
    return chosen
