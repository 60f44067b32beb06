"""Weights of the extractor ``sentences``: learned ones, and margins that were chosen by hand.

``weights.json`` holds the learned weights; ``prunus train quotes`` learns them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ._features import BEARING, NAMES, Numbers, Question

MARGIN: Final = {"one": 4.0, "first": 2.0, "last": 1.0, "bridge": 1.0, "missing": 4.0}
"""By how much a further segment may be worse than the best one.

``one``: segments of one page. ``first``, ``last``: of several pages, where the chosen segments hold none of the
question's terms, and where they hold all; ``first`` also for a page of which nothing is chosen, if it says as much of
the question. ``bridge`` is added to a segment of a page that a chosen segment names, and ``missing`` times the share of
the terms that it holds and no chosen one does. Chosen by hand on the dev halves.
"""

READ_SIGNS: Final = ("read_most", "read_best", "read_three", "score_best")
"""The most that a reader adds, what it adds to the best segment, to the best three in the mean; and the best score."""

_ROW: Final = NAMES.index("row")
_LOOKED_AT: Final = 3
"""Best segments that tell whether the pages bear on the question."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The learned weights.

    :param text, row: weight of each feature (``_features.NAMES``), in other segments and in rows of tables.
    :param bears: weight of each sign that pages bear on a question (``_features.BEARING``).
    :param bears_read: the same where a reader has read the segments, with the signs :data:`READ_SIGNS` behind.
    """

    text: Numbers
    row: Numbers
    bears: Numbers
    bears_read: Numbers

    def scores(self, features: Numbers) -> Numbers:
        """Return the score of each segment [segments]."""
        return np.where(features[:, _ROW] > 0, features @ self.row, features @ self.text)

    def answers(self, question: Question, scores: Numbers, added: Numbers | None = None) -> bool:
        """Tell from the best segments whether the pages bear on the question at all.

        :param added: what a reader added to the scores.
        """
        if not question.terms:
            return False
        signs = question.bearing(best(scores))
        if added is None:
            return bool((signs @ self.bears).item() >= 0)
        return bool((np.concatenate([signs, read_signs(scores, added)]) @ self.bears_read).item() >= 0)


def read_signs(scores: Numbers, added: Numbers) -> Numbers:
    """Return what a reader's numbers tell of whether the pages answer, in the order of :data:`READ_SIGNS`."""
    places = best(scores)
    return np.asarray([added.max(), added[places[0]], added[places].mean(), scores[places[0]]]) / 10


def best(scores: Numbers) -> list[int]:
    """Return the places of the best three segments, best first."""
    places: list[int] = np.argsort(-scores, kind="stable")[:_LOOKED_AT].tolist()
    return places


def weights_of(stored: Mapping[str, Any]) -> Weights:
    """Return the weights that a mapping of ``weights.json`` holds.

    :raises ValueError: they are of other features.
    """
    segment, bears, read = (stored.get(name, {}) for name in ("segment", "bears", "bears_read"))
    if {*segment} != {*NAMES} or {*bears} != {*BEARING} or {*read} != {*BEARING, *READ_SIGNS}:
        raise ValueError("the weights of quotes are of other features; learn them again: prunus train quotes")
    text, row = np.asarray([segment[name] for name in NAMES], np.float64).T
    signs = np.asarray([bears[name] for name in BEARING], np.float64)
    return Weights(text, row, signs, np.asarray([read[name] for name in (*BEARING, *READ_SIGNS)], np.float64))


@cache
def weights() -> Weights:
    """Return the weights of this version; they are read once."""
    return weights_of(json.loads(Path(__file__).with_name("weights.json").read_text("utf-8")))
