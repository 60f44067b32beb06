"""``crossencoder``: a cheap scorer over all blocks, then a reranker over the best blocks.

The reranker reads the question together with a block and its breadcrumbs, which is more exact than
comparing vectors but costs one pass of a model per pair. So it reads only the best ``candidates`` of
the cheap scorer; ``crossencoder:32`` sets their number. As the second of two stages it ranks the
blocks that the first stage kept: a second stage that a laptop can afford.

A reranker may declare that the cheap score counts beside its own (``beside``), as ``prunus`` does.

Cost of a question: that of the cheap scorer and of at most ``candidates`` pairs, however large the
pages are. A cross-encoder of MiniLM's size (six layers of 384) takes about 30 ms of one core for a
pair of 80 words, so the default costs some two seconds of one core.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.checked_engines import declared
from ...core.errors import BadInput
from ...core.ports import Embedder, Reranker
from ..blocks import Blocks, Scorer
from . import trees
from ._signals import above_texts, labelled_texts, rank_headers_below_rows

CANDIDATES = 64
"""Blocks that the reranker reads by default."""

POINTS = 4_000
"""Most code points of a text for the reranker: a model of 512 tokens reads no more; more only costs time."""


class Engine:
    """Ranks the best candidates by the reranker, and the other blocks behind them by the cheap scorer.

    Scores of candidates lie in [1, 2], scores of all other blocks in [0, 1); both are the engines'
    numbers on another scale.

    :param reranker: reads question and text together.
    :param embedder: for the default cheap scorer.
    :param scorer: the cheap scorer; by default ``trees``.
    :param model: number of candidates, from the spec; '' is 64.
    :raises BadInput: neither a scorer nor an embedder is given, or the number is out of range.
    """

    name = "crossencoder"
    second_stage = True
    one_prompt = False
    least_share = 0.0
    tree = None

    def __init__(
        self, reranker: Reranker, embedder: Embedder | None = None, scorer: Scorer | None = None, model: str = ""
    ) -> None:
        self.reranker = reranker
        if scorer is None:
            if embedder is None:
                raise BadInput("crossencoder needs a cheap scorer, or an embedder to make one", subject=self.name)
            scorer = trees.Engine(embedder)
        self.scorer = scorer
        self.candidates = _candidates(model)

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score per block, float64 [n]; only the order of scores has a meaning."""
        if not len(blocks):
            return np.zeros(0)
        texts = _texts_with_above(blocks, declared(self.reranker, "reranker", "above"))
        cheap = np.asarray(self.scorer.score(query, blocks), np.float64)
        best = np.argsort(-cheap, kind="stable")[: self.candidates]
        reranked = np.asarray(self.reranker.rerank(query, [texts[place] for place in best]), np.float64)
        reranked = reranked + declared(self.reranker, "reranker", "beside") * _in_deviations(cheap[best])
        scores = 0.999 * _stretched(cheap)  # below every candidate, also where the cheap scores are equal
        scores[best] = 1.0 + _stretched(reranked)
        return rank_headers_below_rows(scores, blocks)


def _texts_with_above(blocks: Blocks, longest: int) -> list[str]:
    """Return each block's text below its breadcrumbs; the texts are made once for all questions.

    :param longest: most code points of headings and lead that are put before a block.
    """
    key = f"crossencoder:texts:{longest}"
    known = blocks.cache.get(key)
    if isinstance(known, list):
        return known
    texts = [
        (f"{above[:longest]}\n{text}" if above else text)[:POINTS]
        for above, text in zip(above_texts(blocks), labelled_texts(blocks), strict=True)
    ]
    blocks.cache[key] = texts
    return texts


def _in_deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values in standard deviations from their mean; all 0 where they are equal."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _stretched(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale values linearly to [0, 1]; all 0.5 where they are equal."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def _candidates(model: str) -> int:
    """Read the number of candidates from the spec."""
    if not model:
        return CANDIDATES
    if not (model.isascii() and model.isdigit() and 0 < int(model) <= 10_000):
        raise BadInput(
            f"crossencoder:{model}: give a number of candidates from 1 to 10000, as crossencoder:32", subject=model
        )
    return int(model)
