"""What tells whether the pages bear on a question at all, from the best segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

BEARING: Final = (
    "one",  # 1
    "anywhere",  # share of the question's terms, by idf, that any segment or its headings hold
    "top",  # that the best segment or its headings hold
    "single",  # that one of the three best holds, the best of them
    "together",  # share of the terms that the three best hold together
    "cosine",  # best cosine of the three
    "cosine_most",  # best cosine of all segments
    "names",  # share of the question's names and numbers that are found anywhere; 1 where it has none
    "pairs",  # best ``pairs`` of the three
    "terms",  # terms of the question, over 12
    "share",  # how sure the choice of the best segment is: its share in the softmax over all scores
    "share_few",  # the share of the three best together
    "title",  # share of the terms that the title holds
    "rest",  # share of the terms that the title lacks, that the best segment holds
    "fits",  # whether the best segment holds the kind of answer that is asked for
    "table",  # whether it is a row
    "table_covered",  # share of the terms that its table holds, with header and headings
    "unspaced",  # whether the question is in a script without spaces between words
    "unspaced_anywhere", "unspaced_together", "unspaced_pairs", "unspaced_cosine",  # the same there
)  # fmt: skip

LOOKED_AT: Final = 3
"""Best segments that tell whether the pages bear on the question."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A question with its segments, as numbers.

    :param features: float32 [segments, features].
    :param columns: place of each feature's column, by its name.
    :param everywhere: whether each segment, its label or its headings hold each term [segments, terms].
    :param shares: weight of each term, 1 together [terms].
    :param cosines: of the question and each segment with its headings [segments].
    :param named: the places of the terms that are names or numbers.
    """

    features: NDArray[np.float32]
    columns: dict[str, int]
    everywhere: NDArray[np.bool_]
    shares: Numbers
    cosines: Numbers
    named: Sequence[int]

    def column(self, name: str, rows: Sequence[int]) -> Numbers:
        """Return a feature of some segments."""
        return self.features[rows, self.columns[name]].astype(np.float64)


def best(scores: Numbers) -> list[int]:
    """Return the places of the best three segments, best first."""
    places: list[int] = np.argsort(-scores, kind="stable")[:LOOKED_AT].tolist()
    return places


def shares_of(scores: Numbers) -> Numbers:
    """Return the share of each segment in the softmax over all scores."""
    grown = np.exp(scores - scores.max())
    result: Numbers = grown / grown.sum()
    return result


def bearing(seen: Seen, scores: Numbers) -> Numbers:
    """Return the signs that the pages bear on a question, in the order of :data:`BEARING`."""
    few = best(scores)
    top, everywhere, shares = few[:1], seen.everywhere, seen.shares
    cosines, chance = np.clip(seen.cosines, 0, None), shares_of(scores)
    unspaced = seen.column("q_unspaced", top).item()
    anywhere = (everywhere.any(axis=0) @ shares).item()
    together = float(everywhere[few].any(axis=0).mean()) if len(shares) else 0.0
    pairs, cosine = float(seen.column("pairs", few).max()), float(cosines[few].max())
    found = {
        "one": 1.0,
        "anywhere": anywhere,
        "top": (everywhere[top[0]] @ shares).item(),
        "single": float((everywhere[few] @ shares).max()),
        "together": together,
        "cosine": cosine,
        "cosine_most": float(cosines.max()),
        "names": float(everywhere[:, seen.named].any(axis=0).mean()) if seen.named else 1.0,
        "pairs": pairs,
        "terms": min(len(shares), 12) / 12,
        "share": float(chance[top].sum()),
        "share_few": float(chance[few].sum()),
        "title": seen.column("q_title", top).item(),
        "rest": seen.column("covered_rest", top).item(),
        "fits": 1.0 - seen.column("fits_none", top).item(),
        "table": seen.column("row", top).item(),
        "table_covered": seen.column("table_covered", top).item(),
        "unspaced": unspaced,
        "unspaced_anywhere": unspaced * anywhere,
        "unspaced_together": unspaced * together,
        "unspaced_pairs": unspaced * pairs,
        "unspaced_cosine": unspaced * cosine,
    }
    return np.asarray([found[name] for name in BEARING])
