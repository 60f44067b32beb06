"""``trees``: boosted trees over dozens of features of a block, trained on questions with marked evidence.

The features are what ``hybrid`` adds up and more (:mod:`._block_features`); ``prunus train blocks`` trains the trees.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder
from ...core.text.answer_forms import asked_form
from ...core.text.broad import is_broad
from ...core.text.long_forms import with_long_forms
from ...models.boosted import Boosted, load
from ..blocks import Blocks
from ..whole import central, early
from . import embedding
from ._block_features import NAMES, features
from ._signals import rank_headers_below_rows

_MOST_ODDS: Final = 30.0
"""Log-odds beyond this are no surer."""

_FILE: Final = Path(__file__).with_name("blocks.npz")


class Engine:
    """Boosted trees over features of BM25, embeddings, the question, the block and what is around it."""

    name = "trees"
    second_stage = False
    one_prompt = False
    least_share = 0.4  # chosen on the dev half; at 0.5 questions of several hops lose their second paragraph
    tree = None

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score per block, float64 [n], from 0 to 1; higher is better.

        Its square is the chance that the block holds evidence, as trained: among a question's 50 best blocks by
        ``hybrid`` and 30 others. The root falls as slowly as the scores of ``hybrid``, which quotes know. For a
        question about a whole page, which no feature of the question fits, it is :func:`.central`. For one whose answer
        has a form of its own, as a telephone number, blocks that hold it come first.
        """
        if not len(blocks):
            return np.zeros(0)
        if is_broad(query):
            return rank_headers_below_rows(central(blocks, embedding.Engine(self.embedder)), blocks)
        query = with_long_forms(query, blocks.texts)
        odds = model().scores(features(query, blocks, self.embedder))
        scores = (1 / (1 + np.exp(-odds.clip(-_MOST_ODDS, _MOST_ODDS)))) ** 0.5
        form = asked_form(query)
        if form is not None and not (form.own and len(blocks.trees) > 1):
            held = np.asarray([form.held(text) for text in blocks.texts], np.float64)
            if form.own:
                held *= early(blocks)
            scores = (scores + held) / 2 if held.any() else scores
        return rank_headers_below_rows(scores, blocks)


@cache
def model() -> Boosted:
    """Return the trained trees; they are read once.

    :raises ValueError: they are of other features.
    """
    result = load(_FILE)
    if result.names != NAMES:
        raise ValueError("the trees of blocks are of other features; train them again: prunus train blocks")
    return result
