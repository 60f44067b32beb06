"""Ways to put scores of different kinds on one scale and add them up.

Every way returns numbers from 0 to the sum of the weights, so that what is added later (position,
neighbours) weighs the same whichever way was taken. Measured against each other in docs/embedders.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ._signals import scaled, standardised

Fusion = Literal["largest", "minmax", "zscore", "rrf"]

RRF_CONSTANT: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""

_Values = NDArray[np.float64]


def fuse(parts: Sequence[_Values], weights: Sequence[float], way: Fusion) -> _Values:
    """Return the weighted sum of scores of the same items, float64 [n].

    :param parts: one array a scorer; negative numbers count as 0.
    :param way: ``largest``: each part divided by its largest; ``minmax``: each stretched from 0 to 1;
        ``zscore``: each at mean 0 and deviation 1; ``rrf``: 1 / (60 + rank), nothing for a score of 0.
    """
    if way == "largest":
        return np.asarray(
            sum(weight * scaled(np.clip(part, 0.0, None)) for part, weight in zip(parts, weights, strict=True))
        )
    put = _WAYS[way]
    total = np.asarray(sum(weight * put(np.clip(part, 0.0, None)) for part, weight in zip(parts, weights, strict=True)))
    return _minmax(total) * float(sum(weights))


def _minmax(values: _Values) -> _Values:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _reciprocal_ranks(values: _Values) -> _Values:
    """Return 1 / (60 + rank), rank from 1; equal values share the better rank, and 0 has none."""
    ordered = np.sort(-values)
    ranks = np.searchsorted(ordered, -values, side="left") + 1
    return np.where(values > 0, 1.0 / (RRF_CONSTANT + ranks), 0.0)


_WAYS: Final[Mapping[str, Callable[[_Values], _Values]]] = {
    "minmax": _minmax,
    "zscore": standardised,
    "rrf": _reciprocal_ranks,
}
