"""A small ensemble of boosted regression trees with a linear part, read from one file and evaluated by numpy alone.

The file is an ``.npz`` of plain arrays, as ``prunus train blocks`` writes it. A row's score is ``bias`` plus the
linear part plus one leaf of each tree. Features are compared as float32, so that the thresholds, which are stored as
float32 too, send every row to the leaf to which training sent it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput

_FORM: Final = 1
"""Version of the file's form."""

_CELLS: Final = 1 << 18
"""Most cells (rows times splits) that are compared at a time: they fit a processor's cache."""

_MOST_BYTES: Final = 32 << 20
"""A larger file is no small model."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """Trees and a linear part. Nodes of all trees are numbered together; a leaf leads to itself.

    :param names: name of each feature, in the order of the columns that :meth:`scores` takes.
    :param feature: feature that a node compares, int [nodes]; 0 at a leaf.
    :param threshold: a row goes right where its feature is above it, float32 [nodes]; infinite at a leaf.
    :param child: nodes to the left and to the right, int [nodes, 2].
    :param leaf: value of a node, float64 [nodes]; 0 where it is no leaf.
    :param roots: first node of each tree, int [trees].
    :param weights: the linear part, float64 [features].
    :param bias: added to every score.
    :param depth: most comparisons from a root to a leaf.
    """

    names: tuple[str, ...]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    child: NDArray[np.int32]
    leaf: NDArray[np.float64]
    roots: NDArray[np.int32]
    weights: NDArray[np.float64]
    bias: float
    depth: int

    def scores(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """Return one score per row, float64 [rows]; unbounded, higher is better.

        :param features: finite numbers [rows, features], in the order of ``names``.
        :raises ValueError: the number of columns is not that of ``names``.
        """
        rows = np.ascontiguousarray(features, np.float32)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise ValueError(f"the model takes {len(self.names)} features a row, not an array of shape {rows.shape}")
        result = rows.astype(np.float64) @ self.weights + self.bias
        if len(self.roots) and len(rows):
            step = max(1, _CELLS // len(self.feature))
            for start in range(0, len(rows), step):
                result[start : start + step] += self._tree_sums(rows[start : start + step])
        return result

    def _tree_sums(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the sum of the leaves that each row reaches."""
        count = len(rows)
        # by columns: a whole column of rows is copied and compared at a time
        right = (np.ascontiguousarray(rows.T)[self.feature] > self.threshold[:, None]).ravel().view(np.int8)
        follow, place = self.child.ravel(), np.arange(count, dtype=np.int32)
        node = np.broadcast_to(self.roots[:, None], (len(self.roots), count))
        for _ in range(self.depth):
            node = follow.take(2 * node + right.take(node * count + place))
        return np.asarray(self.leaf.take(node).sum(axis=0), np.float64)


def load(path: Path) -> Boosted:
    """Read a model.

    :raises BadInput: the file is missing, or is no whole model.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:  # it leaves a damaged file open
            return _made(stored)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
        raise BadInput(f"{path.name} is no model of boosted trees: {reason}", subject=str(path)) from error


def _made(stored: Mapping[str, Any]) -> Boosted:
    """Make a model from the arrays of a file, and check that no node leads out of it or in a circle.

    :raises ValueError: the arrays do not fit together.
    """
    if stored["form"].item() != _FORM:
        raise ValueError(f"its form is {stored['form'].item()}, and this version reads form {_FORM}")
    names = tuple(str(name) for name in stored["names"])
    feature, child = stored["feature"].astype(np.int32), stored["child"].astype(np.int32)
    roots, threshold = stored["roots"].astype(np.int32), stored["threshold"].astype(np.float32)
    leaf, weights = stored["leaf"].astype(np.float64), stored["weights"].astype(np.float64)
    count = len(feature)
    if child.shape != (count, 2) or threshold.shape != (count,) or leaf.shape != (count,):
        raise ValueError("its trees are damaged")
    if weights.shape != (len(names),) or not np.isfinite(weights).all() or not np.isfinite(leaf).all():
        raise ValueError("its weights are damaged")
    if (feature < 0).any() or (count and feature.max() >= len(names)):
        raise ValueError("a tree asks for a feature that it lacks")
    own = np.arange(count, dtype=np.int32)
    ends = (child[:, 0] == own) & (child[:, 1] == own)
    forward = (child > own[:, None]).all(axis=1) & (child < count).all(axis=1)
    if not (ends | forward).all() or (roots < 0).any() or (len(roots) and roots.max() >= count):
        raise ValueError("a tree leads out of the file")
    return Boosted(
        names, feature, threshold, child, leaf, roots, weights, float(stored["bias"].item()), _depth(child, ends)
    )


def _depth(child: NDArray[np.int32], ends: NDArray[np.bool_]) -> int:
    """Return the most steps from any node to a leaf; children stand behind their parents."""
    depth = np.zeros(len(child), np.int64)
    for node in np.flatnonzero(~ends)[::-1]:
        depth[node] = 1 + depth[child[node]].max()
    return int(depth.max()) if len(depth) else 0


def write(model: Boosted, path: Path) -> None:
    """Write a model; the same model gives the same bytes."""
    with path.open("wb") as file:
        np.savez(
            file,
            form=np.asarray(_FORM),
            names=np.asarray(model.names, dtype=np.str_),
            feature=model.feature.astype(np.int16),
            threshold=model.threshold,
            child=model.child,
            leaf=model.leaf,
            roots=model.roots,
            weights=model.weights,
            bias=np.asarray(model.bias),
        )
