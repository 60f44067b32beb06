"""What the stores share that search a large index: the best of many nodes, and the leaves around them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Ints
from ..nodes import RUN


def largest(places: Ints, values: NDArray[Any], count: int) -> Ints:
    """Return the places of the ``count`` largest values, in any order."""
    return places[np.argpartition(-values, count - 1)[:count]] if len(places) > count else places


def around(best: Ints, siblings: Ints, document: Ints, reach: int) -> Ints:
    """Return the places of some leaves and of the leaves around them whose scores count, sorted.

    :param siblings: of each of the best leaves, the number of all leaves of its document.
    :param document: of every leaf; the leaves of a document are in their order, one after the other.
    :param reach: leaves on each side that count, at most.
    """
    allowed = np.minimum(np.maximum(1, siblings // RUN), reach)
    result = [best]
    for step in range(1, int(allowed.max(initial=0)) + 1):
        for places in (best - step, best + step):
            inside = (allowed >= step) & (places >= 0) & (places < len(document))
            inside[inside] = document[places[inside]] == document[best[inside]]
            result.append(places[inside])
    return np.unique(np.concatenate(result))


def scores_of(ids: Ints, matches: Ints, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of nodes; 0 for one that does not match.

    :param matches: the nodes that match, sorted.
    :param scores: of each of them.
    """
    if not len(matches):
        return np.zeros(len(ids))
    at = np.minimum(np.searchsorted(matches, ids), len(matches) - 1)
    return np.where(matches[at] == ids, scores[at], 0.0)


def moments_of(total: float, squares: float, count: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of values, from their sum, the sum of their squares and their number.

    Of no values both are 0.
    """
    mean = total / max(1, count)
    return mean, math.sqrt(max(0.0, squares / max(1, count) - mean * mean))
