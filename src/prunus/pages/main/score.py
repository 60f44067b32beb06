"""The model: two small networks that give each unit of a page a number from 0 to 1, of being the page's own content.

The first network sees the features of a unit. The second also sees what the first says of the units around it. Both are
trained by ``prunus train content``; their weights are in ``weights.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .features import FEATURES, Floats, Units, moved

_STEPS: Final = (-3, -2, -1, 1, 2, 3)
_SPANS: Final = (2, 5)
_FAR: Final = 4.0  # scaled features beyond this are cut off


class Network:
    """A network with one hidden layer.

    :param weights: ``mean`` and ``scale`` of each input; ``hidden`` a row of weights for each input; ``bias`` of the
        hidden units; ``out`` their weights; ``level``, the bias of the output.
    """

    def __init__(self, weights: Mapping[str, Any]) -> None:
        scale = np.asarray(weights["scale"], np.float32)
        self.mean, self.scale = np.asarray(weights["mean"], np.float32), scale
        self.hidden, self.bias = np.asarray(weights["hidden"], np.float32), np.asarray(weights["bias"], np.float32)
        self.out, self.level = np.asarray(weights["out"], np.float32), np.float32(weights["level"])

    def __call__(self, rows: Floats) -> Floats:
        """Return a number from 0 to 1 for each row."""
        scaled = ((rows - self.mean) / self.scale).clip(-_FAR, _FAR)
        sums = np.tanh(scaled @ self.hidden + self.bias) @ self.out + self.level
        return np.asarray(1 / (1 + np.exp(-sums.clip(-30, 30))), np.float32)


@cache
def networks() -> tuple[Network, Network]:
    """Return the trained networks; they are read once."""
    weights = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    if weights["features"] != list(FEATURES):
        raise ValueError("the weights of main content are of other features; train them again: prunus train content")
    return Network(weights["first"]), Network(weights["second"])


def score(units: Units) -> Floats:
    """Return for each unit how sure it is that it is the page's own content, from 0 to 1."""
    first, second = networks()
    return second(with_context(units, first(units.features)))


def with_context(units: Units, values: Floats) -> Floats:
    """Return the rows of the second network: the features, and the numbers of the first around each unit.

    :param values: the numbers of the first network.
    """
    words = units.words
    size = np.concatenate(([0.0], np.cumsum(words)))
    mass = np.concatenate(([0.0], np.cumsum(words * values)))
    whole = max(float(mass[-1]), 1.0)
    columns: list[NDArray[Any]] = [values, *(moved(values, step) for step in _STEPS)]
    for lo, hi in units.levels:
        columns += [(mass[hi] - mass[lo]) / np.maximum(size[hi] - size[lo], 1), (mass[hi] - mass[lo]) / whole]
    place = np.arange(len(words))
    begin, end = _best_run(words * (values - 0.4))
    columns += [
        (place >= begin) & (place < end), np.log1p(np.maximum(begin - place, 0)),
        np.log1p(np.maximum(place - end + 1, 0)), mass[:-1] / whole,
        np.full(len(words), mass[-1] / max(float(size[-1]), 1.0)),
    ]  # fmt: skip
    for span in _SPANS:
        lo, hi = np.maximum(place - span, 0), np.minimum(place + span + 1, len(words))
        columns.append((mass[hi] - mass[lo]) / np.maximum(size[hi] - size[lo], 1))
    context = np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
    return np.concatenate([units.features, context], axis=1)


def _best_run(gains: Floats) -> tuple[int, int]:
    """Return the run of units whose gains have the largest sum (Kadane's algorithm)."""
    best = total = 0.0
    start = begin = end = 0
    for place, gain in enumerate(gains.tolist()):
        total += gain
        if total <= 0:
            total, start = 0.0, place + 1
        elif total > best:
            best, begin, end = total, start, place + 1
    return begin, end
