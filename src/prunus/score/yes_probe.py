"""``yes_probe``: a language model is asked of each block whether it helps: P(yes) against P(no).

A pointwise cross-encoder made of any causal language model: one short prompt for each of the best
``CANDIDATES`` blocks of a cheap scorer, the question before the block, so that its beginning is read once
where the back-end keeps it. No model writes anything: only how likely ``yes``, ``Yes``, ``no`` and ``No``
are is read, with capitals and small letters together. Back-ends that read several prompts at once
(``transformers``) are given them in batches.

A prompt is never longer than a block, so no window is too small; and blocks are judged apart, so no block
is weighed against the others. Cost of a question: that of the cheap scorer, and at most 64 prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..ports import Branches, Embedder, PathScorer, Scorer, TokenTree
from ..prompts.render import Quoted, render
from ..types import Message
from ._cascade import cascade, cheap_scorer, texts_with_above
from ._trie import grow, log_probabilities, summed

CANDIDATES: Final = 64
"""Blocks that the model is asked of."""

YES: Final = ("yes", "Yes")
NO: Final = ("no", "No")


class Engine:
    """The model's order for the best candidates, by log P(yes) - log P(no); then the cheap scorer's for the rest.

    Scores of candidates lie from 1 to 2, of all other blocks from 0 to 1.

    :param path_scorer: the language model.
    :param embedder: what the hybrid scorer needs.
    :param scorer: the cheap one; by default ``hybrid``.
    :param model: which language model it was, from the spec; kept for messages.
    :param candidates: blocks that the model is asked of.
    """

    name = "yes_probe"
    fine = True

    def __init__(
        self,
        path_scorer: PathScorer,
        embedder: Embedder | None = None,
        scorer: Scorer | None = None,
        model: str = "",
        candidates: int = CANDIDATES,
    ) -> None:
        self.path_scorer = path_scorer
        self.scorer = cheap_scorer(scorer, embedder, self.name)
        self.model = model
        self.candidates = candidates

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score a block, float64 [n]; only their order means something."""
        if not len(blocks):
            return np.zeros(0)
        texts = texts_with_above(blocks)
        cheap = np.asarray(self.scorer.score(query, blocks), np.float64)
        return cascade(cheap, self.candidates, lambda best: self.probe(query, [texts[place] for place in best]), blocks)

    def probe(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log P(yes) - log P(no) for each text, float64 [n]."""
        tree, leaves = grow(self.path_scorer.encode([*YES, *NO]), self.path_scorer.stop)
        prompts = [render("yes_probe", question=query, block=Quoted(text)) for text in texts]
        found = np.zeros(len(texts))
        for place, branches in enumerate(self._branches(prompts, tree)):
            total = summed(tree, log_probabilities(tree, branches))[leaves]
            found[place] = np.logaddexp.reduce(total[: len(YES)]) - np.logaddexp.reduce(total[len(YES) :])
        return found

    def _branches(self, prompts: Sequence[Sequence[Message]], tree: TokenTree) -> list[Branches]:
        """Ask all prompts: at once where the back-end can, else one after the other."""
        together = getattr(self.path_scorer, "branches_of", None)
        if together is not None:
            return list(together(prompts, tree))
        return [self.path_scorer.branches(prompt, tree) for prompt in prompts]
