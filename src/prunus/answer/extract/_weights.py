"""The learned parts of the extractor ``sentences``: a score for each segment, and whether anything answers at all.

``weights.npz`` holds the scorer, a linear part and boosted trees; ``weights.json`` the scale of its scores and the
weights of the bar. ``prunus train quotes`` learns both again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...models import boosted
from ._bearing import BEARING, Numbers, Seen, bearing
from ._features import NAMES

BAR: Final = 0.45
"""Nothing is quoted where the chance that the pages answer is below this. Chosen on the dev half: of pages whose chance
is stated as .40 to .50, half answer.
"""

MARGIN: Final = {"one": 5.4, "first": 2.7, "last": 1.35, "bridge": 1.35, "missing": 5.4}
"""By how much a further segment may be worse than the best one, in scores: 1 is e times less likely.

``one``: segments of one page. ``first``, ``last``: of several pages, where the chosen segments hold none of the
question's terms, and where they hold all; ``first`` also for a page of which nothing is chosen, if it says as much of
the question. ``bridge`` is added to a segment of a page that a chosen segment names, and ``missing`` times the share of
the terms that it holds and no chosen one does. Chosen by hand on the dev halves.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What was learned.

    :param segment: scores segments by their features (``_features.NAMES``).
    :param scale: scores are multiplied by it: their softmax over a page's segments is then the chance of each.
    :param bears: weight of each sign that pages bear on a question (``_bearing.BEARING``).
    """

    segment: boosted.Boosted
    scale: float
    bears: Numbers

    def scores(self, seen: Seen) -> Numbers:
        """Return the score of each segment [segments]."""
        return self.scale * self.segment.scores(seen.features)

    def chance(self, seen: Seen, scores: Numbers) -> float:
        """Return the chance, from 0 to 1, that the pages answer the question; 0 for a question without terms."""
        if not len(seen.shares):
            return 0.0
        return 1 / (1 + math.exp(-(bearing(seen, scores) @ self.bears).item()))


def weights_of(segment: boosted.Boosted, stored: Mapping[str, Any]) -> Weights:
    """Return the weights of a scorer and of a mapping of ``weights.json``.

    :raises ValueError: they are of other features.
    """
    bears = stored["bears"]
    if segment.names != NAMES or {*bears} != {*BEARING}:
        raise ValueError("the weights of quotes are of other features; learn them again: prunus train quotes")
    return Weights(segment, float(stored["scale"]), np.asarray([bears[name] for name in BEARING], np.float64))


def read(path: Path) -> Weights:
    """Read the weights of ``path``, a JSON file, and of the ``.npz`` file beside it.

    :raises BadInput: the scorer is missing or damaged.
    :raises ValueError: they are of other features.
    """
    return weights_of(boosted.load(path.with_suffix(".npz")), json.loads(path.read_text("utf-8")))


@cache
def weights() -> Weights:
    """Return the weights of this version; they are read once."""
    return read(Path(__file__).with_name("weights.json"))
