"""Weights of the extractor ``sentences``: learned ones, and margins that were chosen by hand.

``weights.json`` holds the learned weights; ``prunus train quotes`` learns them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ._features import BEARING, NAMES, Numbers, Question

MARGIN: Final = {"one": 4.0, "first": 2.5, "last": 1.0, "bridge": 1.0, "missing": 4.0}
"""By how much a further segment may be worse than the best one.

``one``: segments of one page. ``first``, ``last``: of several pages, where the chosen segments hold none of the
question's terms, and where they hold all; ``first`` also for a page of which nothing is chosen, if it says as much of
the question. ``bridge`` is added to a segment of a page that a chosen segment names, and ``missing`` times the share of
the terms that it holds and no chosen one does. Chosen by hand on the dev halves.
"""

OF_PASSAGE: Final = (
    "share",  # log-odds of its share in a softmax over the scores of all and of one elsewhere, over 6
    "score",  # its score, over 10
    "behind",  # by how much its score is worse than the best, over 10
    "its_cosine",  # of the question and the segment
    "its_names",  # share of the question's names and numbers that it or its headings hold
    "row",  # whether it is a row of a table
    "asked_row",  # whether it is the row that the question asks for by its place or by a number
)
"""What tells whether one segment answers, beside what tells whether its pages do (``_features.BEARING``)."""

READ_SIGNS: Final = ("read_most", "read_best", "read_three", "read_own")
"""The most that a reader adds, what it adds to the best segment, to the best three in the mean, and to the segment."""

SIGNS: Final = (*BEARING, *OF_PASSAGE)

_ROW: Final = NAMES.index("row")
_LOOKED_AT: Final = 3
"""Best segments that tell whether the pages bear on the question."""

_MOST_ODDS: Final = 6.0
_ELSEWHERE: Final = 10.0
"""Score that stands beside those of the segments, as the best of a page that does not answer has, in the middle.

So the only segment of a short page is not likely by itself.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """The learned weights.

    :param text, row: weight of each feature (``_features.NAMES``), in other segments and in rows of tables.
    :param sure: weight of each sign that a segment answers (:data:`SIGNS`).
    :param sure_read: the same where a reader has read the segments, with the signs :data:`READ_SIGNS` behind.
    """

    text: Numbers
    row: Numbers
    sure: Numbers
    sure_read: Numbers

    def scores(self, features: Numbers) -> Numbers:
        """Return the score of each segment [segments]."""
        return np.where(features[:, _ROW] > 0, features @ self.row, features @ self.text)

    def confidence(
        self, question: Question, scores: Numbers, places: Sequence[int], added: Numbers | None = None
    ) -> Numbers:
        """Return the chance that each of some segments answers the question, 0 to 1 [places].

        :param added: what a reader added to the scores.
        """
        if not question.terms:
            return np.zeros(len(places))
        weights = self.sure if added is None else self.sure_read
        return np.asarray(1 / (1 + np.exp(-signs(question, scores, places, added) @ weights)), np.float64)


def signs(question: Question, scores: Numbers, places: Sequence[int], added: Numbers | None = None) -> Numbers:
    """Return what tells whether each of some segments answers, in the order of :data:`SIGNS` [places, signs].

    :param added: what a reader added to the scores; then the signs :data:`READ_SIGNS` are behind.
    """
    top = best(scores)
    own = scores[list(places)]
    top_score = max(_ELSEWHERE, float(scores.max()))
    mass = np.exp(scores - top_score).sum() + np.exp(_ELSEWHERE - top_score)
    shares = np.clip(np.exp(own - top_score) / mass, 1e-9, 1 - 1e-9)
    features = question.features[list(places)]
    result = {
        "share": np.clip(np.log(shares / (1 - shares)), -_MOST_ODDS, _MOST_ODDS) / _MOST_ODDS,
        "score": own / 10,
        "behind": (own - scores.max()) / 10,
        "its_cosine": question.cosines[list(places)],
        "its_names": features[:, NAMES.index("names_all")],
        "row": features[:, _ROW],
        "asked_row": features[:, NAMES.index("asked_row")],
    }
    columns = [*np.tile(question.bearing(top), (len(own), 1)).T, *(result[name] for name in OF_PASSAGE)]
    if added is not None:
        pages = (added.max(), added[top[0]], added[top].mean())
        columns += [*np.tile(np.asarray(pages) / 10, (len(own), 1)).T, added[list(places)] / 10]
    return np.stack(columns, axis=1)


def best(scores: Numbers) -> list[int]:
    """Return the places of the best three segments, best first."""
    places: list[int] = np.argsort(-scores, kind="stable")[:_LOOKED_AT].tolist()
    return places


def weights_of(stored: Mapping[str, Any]) -> Weights:
    """Return the weights that a mapping of ``weights.json`` holds.

    :raises ValueError: they are of other features.
    """
    segment, sure, read = (stored.get(name, {}) for name in ("segment", "confidence", "confidence_read"))
    if {*segment} != {*NAMES} or {*sure} != {*SIGNS} or {*read} != {*SIGNS, *READ_SIGNS}:
        raise ValueError("the weights of quotes are of other features; learn them again: prunus train quotes")
    text, row = np.asarray([segment[name] for name in NAMES], np.float64).T
    alone = np.asarray([sure[name] for name in SIGNS], np.float64)
    return Weights(text, row, alone, np.asarray([read[name] for name in (*SIGNS, *READ_SIGNS)], np.float64))


@cache
def weights() -> Weights:
    """Return the weights of this version; they are read once."""
    return weights_of(json.loads(Path(__file__).with_name("weights.json").read_text("utf-8")))
