"""The choices of a policy as a scorer: what it keeps ranks first, in the order of its choices; the rest as ``learned``.

``prunus prune page.html -q "…" --budget 512 --scorer train/prunus_train/policy/scorer.py:Scorer:policy/dqn.npz:512``.
Pruning fills the budget: what the policy dropped comes back where there is room. :meth:`Chooser.alone` is without that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prunus.core.options import Options
from prunus.core.ports import Embedder, TokenCounter
from prunus.evidence.block_size import max_words_for
from prunus.evidence.blocks import Blocks
from prunus.evidence.documents import Documents
from prunus.evidence.greedy import Selection, select
from prunus.evidence.prune import style_of
from prunus.evidence.recut import subset
from prunus.evidence.render import Rendering
from prunus.evidence.score import learned
from prunus.evidence.score._block_features import features
from prunus.evidence.score._signals import rank_headers_below_rows
from prunus.models.boosted import Boosted
from prunus_train.errors import DataBroken
from prunus_train.policy.episodes import Episodes, episode
from prunus_train.policy.network import Policy, load, walked


class Asked:
    """What an episode of a question is made of; the last one is kept, for policies that are asked one after another.

    :param trees: the trees that order the candidates.
    """

    def __init__(self, trees: Boosted, embedder: Embedder, counter: TokenCounter) -> None:
        self.trees, self.embedder, self.counter = trees, embedder, counter
        self._last: tuple[str, Blocks, NDArray[np.float32]] | None = None

    def features(self, query: str, blocks: Blocks) -> NDArray[np.float32]:
        """Return the features of all blocks, float32 [n, features]."""
        if self._last is None or self._last[0] != query or self._last[1] is not blocks:
            self._last = query, blocks, features(query, blocks, self.embedder)
        return self._last[2]

    def scores(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return what the trees say of each block, float64 [n]: the scores of ``learned``, before they are bounded."""
        return rank_headers_below_rows(self.trees.scores(self.features(query, blocks)), blocks)

    def episode(self, query: str, blocks: Blocks, budget: int) -> tuple[Episodes, NDArray[np.int64]]:
        """Return the episode, and the order of all blocks by the trees, int64 [n]."""
        return episode(query, blocks, self.features(query, blocks), self.trees, self.counter, budget)


class Chooser:
    """A policy at one budget, as a scorer of blocks.

    :param policy: None keeps every candidate that fits.
    """

    name = "policy"
    fine = False
    one_prompt = False
    tree = None

    def __init__(self, policy: Policy | None, budget: int, asked: Asked) -> None:
        self.policy, self.budget, self.asked = policy, budget, asked

    def ranked(self, query: str, blocks: Blocks) -> tuple[list[int], list[int]]:
        """Return the blocks that the policy keeps, in the order of its choices, and the others, best first."""
        made, order = self.asked.episode(query, blocks, self.budget)
        marks = walked(made, 0.0, self.policy).kept[0]
        first = [place for place, mark in zip(order.tolist(), marks.tolist(), strict=False) if mark]
        kept = set(first)
        return first, [place for place in order.tolist() if place not in kept]

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score per block, float64 [n], by rank alone: 1 for the first."""
        scores = np.zeros(len(blocks))
        if len(blocks):
            kept, rest = self.ranked(query, blocks)
            scores[[*kept, *rest]] = 1 - np.arange(len(blocks)) / len(blocks)
        return scores

    def alone(self, documents: Documents, query: str) -> Selection:
        """Return what pruning to HTML keeps if only the choices of the policy, and what they require, may be kept."""
        blocks = documents.blocks(max_words_for(documents.words, self.budget, query))
        kept, _ = self.ranked(query, blocks)
        required = {needed for place in kept for needed in blocks.blocks[place].requires}
        places = sorted({*kept, *required})
        part, value = subset(blocks, places), self.score(query, blocks)[places]
        rendering = Rendering("html", style_of(Options()), len(documents) > 1)
        return select(part, value, self.budget, self.asked.counter, rendering)


class Scorer(Chooser):
    """The engine: a policy of a file at one budget.

    :param model: the file and the budget, as ``policy/dqn.npz:512``.
    :raises DataBroken: the file is no policy, or no budget is named.
    """

    def __init__(self, embedder: Embedder, tokenizer: TokenCounter, model: str) -> None:
        path, _, budget = model.rpartition(":")
        if not path or not budget.isascii() or not budget.isdigit() or not int(budget[:9]):
            raise DataBroken(f"{model!r} names no policy and budget; write FILE:TOKENS, as policy/dqn.npz:512")
        super().__init__(load(Path(path)), int(budget[:9]), Asked(learned.model(), embedder, tokenizer))
