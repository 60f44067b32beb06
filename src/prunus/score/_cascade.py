"""A cascade: a cheap scorer over all blocks, a dear one over the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..html.blocks import Blocks
from ..ports import Embedder, Scorer
from . import hybrid
from ._signals import above_texts, behind_their_rows

ABOVE = 400
"""Code points of what stands above a block that are put before it."""

POINTS = 4_000
"""Code points of a block's text: what a reranker of 512 tokens reads at most; more only costs time."""


def cheap_scorer(scorer: Scorer | None, embedder: Embedder | None, name: str) -> Scorer:
    """Return the cheap scorer: the one that was given, else ``hybrid``.

    :raises BadInput: neither it nor an embedder was given.
    """
    if scorer is not None:
        return scorer
    if embedder is None:
        raise BadInput(f"{name} needs a cheap scorer, or an embedder to make one", subject=name)
    return hybrid.Engine(embedder)


def cascade(
    cheap: NDArray[np.float64], candidates: int, dear: Callable[[Sequence[int]], NDArray[np.float64]], blocks: Blocks
) -> NDArray[np.float64]:
    """Return the dear scorer's order for the best candidates, then the cheap scorer's for the rest, float64 [n].

    Scores of candidates lie from 1 to 2, of all other blocks from 0 to 1.

    :param cheap: scores of all blocks.
    :param dear: returns the scores of the blocks that it is given by index.
    """
    best = np.argsort(-cheap, kind="stable")[:candidates]
    found = np.asarray(dear(best.tolist()), np.float64)
    scores = 0.999 * stretched(cheap)  # below every candidate, also where the cheap scores are equal
    scores[best] = 1.0 + stretched(found)
    return behind_their_rows(scores, blocks)


def texts_with_above(blocks: Blocks) -> list[str]:
    """Return each block's text below its breadcrumbs: headings, caption and header of its table, its list's lead.

    Made once for all questions.
    """
    known = blocks.cache.get("cascade:texts")
    if isinstance(known, list):
        return known
    found = [
        (f"{above[:ABOVE]}\n{text}" if above else text)[:POINTS]
        for above, text in zip(above_texts(blocks), blocks.texts, strict=True)
    ]
    blocks.cache["cascade:texts"] = found
    return found


def stretched(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale values to [0, 1] in their order; all 0.5 where they do not differ."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
