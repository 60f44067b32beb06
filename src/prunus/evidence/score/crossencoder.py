"""``crossencoder``: a cheap scorer over all blocks, then a reranker over the best of them.

A cascade. The reranker reads the question and a block under its breadcrumbs together, which no vector
of the block alone can replace, and costs one pass of a model for each pair; so it sees the best
``candidates`` of the cheap scorer and no more. ``crossencoder:32`` sets their number. As the second of
two stages it ranks what the first left: the fine stage that a laptop affords.

Cost of a question: that of the cheap scorer, and at most ``candidates`` pairs, however large the
pages are. A cross-encoder of MiniLM's size (six layers of 384) takes about 30 ms of one core for a
pair of 80 words, so the default costs some two seconds of one core.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ...core.ports import Embedder, Reranker
from ..blocks import Blocks
from ..scorer import Scorer
from . import hybrid
from ._signals import above_texts, behind_their_rows

CANDIDATES = 64
"""Blocks that the reranker sees by default."""

ABOVE = 400
"""Code points of what stands above a block that are put before it."""

POINTS = 4_000
"""Code points of a block's text: what a reranker of 512 tokens reads at most; more only costs time."""


class Engine:
    """The reranker's order for the best candidates, then the cheap scorer's order for the rest.

    Scores of candidates lie from 1 to 2, of all other blocks from 0 to 1; within each, they are the
    engine's own numbers on another scale.

    :param reranker: reads question and text together.
    :param embedder: what the hybrid scorer needs.
    :param scorer: the cheap one; by default ``hybrid``.
    :param model: number of candidates, from the spec; '' is 64.
    """

    name = "crossencoder"
    fine = True
    one_prompt = False
    tree = None

    def __init__(
        self, reranker: Reranker, embedder: Embedder | None = None, scorer: Scorer | None = None, model: str = ""
    ) -> None:
        self.reranker = reranker
        if scorer is None:
            if embedder is None:
                raise BadInput("crossencoder needs a cheap scorer, or an embedder to make one", subject=self.name)
            scorer = hybrid.Engine(embedder)
        self.scorer = scorer
        self.candidates = _number(model)

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score a block, float64 [n]; only their order means something."""
        if not len(blocks):
            return np.zeros(0)
        texts = _texts_with_above(blocks)
        cheap = np.asarray(self.scorer.score(query, blocks), np.float64)
        best = np.argsort(-cheap, kind="stable")[: self.candidates]
        found = np.asarray(self.reranker.rerank(query, [texts[place] for place in best]), np.float64)
        scores = 0.999 * _stretched(cheap)  # below every candidate, also where the cheap scores are equal
        scores[best] = 1.0 + _stretched(found)
        return behind_their_rows(scores, blocks)


def _texts_with_above(blocks: Blocks) -> list[str]:
    """Return each block's text below its breadcrumbs: headings, caption and header of its table, its list's lead.

    Made once for all questions.
    """
    known = blocks.cache.get("crossencoder:texts")
    if isinstance(known, list):
        return known
    found = [
        (f"{above[:ABOVE]}\n{text}" if above else text)[:POINTS]
        for above, text in zip(above_texts(blocks), blocks.texts, strict=True)
    ]
    blocks.cache["crossencoder:texts"] = found
    return found


def _stretched(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale values to [0, 1] in their order; all 0.5 where they do not differ."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def _number(model: str) -> int:
    if not model:
        return CANDIDATES
    if not (model.isascii() and model.isdigit() and 0 < int(model) <= 10_000):
        raise BadInput(
            f"crossencoder:{model}: the number of candidates is from 1 to 10000, as crossencoder:32", subject=model
        )
    return int(model)
