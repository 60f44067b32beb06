"""Postings in the stores ``postgres`` and ``lance``: for each term the nodes that hold it, and BM25 from them.

The nodes are cut into parts by ranges of their numbers, each at most ``WIDTH`` wide. A posting takes four bytes: the
place of the node in its part, and twice its weighted frequency of the term (a word of the headings above counts half).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Ints
from ._words import K1, B

WIDTH: Final = 1 << 16
"""Most numbers of a part."""
FEWEST: Final = 2_000
"""Nodes without postings from which on a large index makes postings for them, or makes those of a part anew."""
_RAREST: Final = 1e-6
"""Weight of a term that more than half of the nodes hold, as in SQLite."""
_DENSE: Final = 1 << 27
"""Widest range of numbers over which scores are added up in one array."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The nodes that hold one term.

    :param ids: each once, in any order.
    :param frequency: weighted frequency of the term in each.
    :param words: number of words of each.
    """

    ids: Ints
    frequency: NDArray[np.float64]
    words: Ints


def packed(places: Ints, twice: Ints) -> bytes:
    """Return postings as bytes.

    :param places: of the nodes in their part, 0 to ``WIDTH`` - 1.
    :param twice: twice the weighted frequencies; those over 65,535 are cut.
    """
    return ((places.astype(np.uint32) << 16) | np.minimum(twice, 0xFFFF).astype(np.uint32)).astype(">u4").tobytes()


def unpacked(data: bytes | memoryview) -> tuple[Ints, NDArray[np.float64]]:
    """Return (places, frequencies) of postings."""
    values = np.frombuffer(data, ">u4").astype(np.int64)
    return np.asarray(values >> 16, np.int64), np.asarray((values & 0xFFFF) * 0.5, np.float64)


def joined(hits: Sequence[Hits]) -> Hits:
    """Return the hits of one term in several parts as one; there is at least one."""
    ids, frequency, words = zip(*((each.ids, each.frequency, each.words) for each in hits), strict=True)
    return Hits(np.concatenate(ids), np.concatenate(frequency), np.concatenate(words))


def bm25(hits: Sequence[Hits], count: int, average: float) -> tuple[Ints, NDArray[np.float64]]:
    """Return the nodes with a term, sorted, and their BM25 scores by the formula of SQLite's full text.

    :param hits: of each term.
    :param count: number of all nodes of the kind.
    :param average: mean number of their words.
    """
    ids = np.concatenate([np.zeros(0, np.int64), *(each.ids for each in hits)])
    if not len(ids):
        return ids, np.zeros(0)
    scores = np.concatenate([_scores(each, count, average) for each in hits])
    low, high = int(ids.min()), int(ids.max())
    if high - low < _DENSE:
        summed = np.bincount(ids - low, scores)
        places = np.flatnonzero(summed)
        return np.asarray(places + low, np.int64), np.asarray(summed[places], np.float64)
    found, back = np.unique(ids, return_inverse=True)
    return found, np.asarray(np.bincount(back, scores), np.float64)


def _scores(hits: Hits, count: int, average: float) -> NDArray[np.float64]:
    holding = len(hits.ids)
    rarity = max(_RAREST, math.log((count - holding + 0.5) / (holding + 0.5)))
    length = K1 * (1 - B + B * hits.words / (average or 1.0))
    return np.asarray(rarity * hits.frequency * (K1 + 1) / (hits.frequency + length), np.float64)
