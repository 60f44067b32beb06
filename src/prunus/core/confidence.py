"""How sure an answer without a model is: the chance that a passage answers, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from .ports import Chosen, Segment

HARDLY: Final = 0.08
"""Chance of the best passage below which evidence is none. It is low: evidence says more than its best passage does."""


def chosen_segments(
    choices: Sequence[Chosen] | None, tagged: Sequence[Segment], min_confidence: float
) -> list[Segment]:
    """Return the segments that an extractor chose; [] where it is sure of none.

    :param min_confidence: the chance (:func:`likeliest`) that the pages must have. What has no confidence is taken as
        it is.
    """
    by_tag = {segment.tag: segment for segment in tagged}
    sure = likeliest(choices, tagged)
    if sure is not None and sure < min_confidence:
        return []
    return [replace(by_tag[choice.tag], choice=choice) for choice in choices or ()]


def likeliest(choices: Sequence[Chosen] | None, tagged: Sequence[Segment]) -> float | None:
    """Return the chance that a page answers by its best segment, of several pages that any of them does.

    A question may ask for several things, each on a page of its own. None where no chance is known.
    """
    by_tag = {segment.tag: segment for segment in tagged}
    best: dict[str, float] = {}
    for choice in choices or ():
        document = by_tag[choice.tag].span.document
        if choice.confidence is not None:
            best[document] = max(choice.confidence, best.get(document, 0.0))
    return any_of(list(best.values()))


def any_of(chances: Sequence[float | None]) -> float | None:
    """Return the chance that one of several passages answers; None where the chance of one is not known."""
    known = [chance for chance in chances if chance is not None]
    if not known or len(known) < len(chances):
        return None
    return round(1 - math.prod(1 - chance for chance in known), 3)


def unlikely(sure: float) -> str:
    """Return the sentence that says that evidence is not likely to answer."""
    return f"nothing that was kept is likely to answer the question (confidence {sure:.2f})"
