"""``block_ids``: a language model says how likely the number of each block is.

What ``generative`` asks with paths of tags, asked with plain numbers: the blocks are listed as text, each
behind its number, and the model is asked for the number of the one that answers. No training is needed,
as models know lists; no tag is shown, so the prompt is shorter; and nothing of the page's structure is
either. One prompt for all blocks, read once.

Numbers of several digits are exact: the numbers, as the tokenizer writes them (one token for ``123`` in
one, three in another), are merged into the same token tree as paths are. Where ``1`` ends and ``12`` goes
on, the end of the reply is a child beside the next digit. exp(score) over all blocks sums to 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..html.numbering import Numbered
from ..ports import Branches, PathScorer
from ..prompts.render import Quoted, render
from ._trie import grow, log_probabilities, summed
from .generative import Scored, pieces_of


class Engine:
    """Log probability of each block's number given the list of blocks and the question.

    :param path_scorer: the language model.
    :param model: which it was, from the spec; kept for messages.
    """

    name = "block_ids"
    fine = True
    one_prompt = True

    def __init__(self, path_scorer: PathScorer, model: str = "") -> None:
        self.path_scorer = path_scorer
        self.model = model

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return log P of each block's number, float64 [n]: 0 for a block that is alone.

        :raises OverWindow: the list is over the model's window; prune it by a cheaper scorer first.
        """
        return self.tree(query, blocks).scores if len(blocks) else np.zeros(0)

    def tree(self, query: str, blocks: Blocks) -> Scored:
        """Return the token tree of the numbers with its probabilities.

        :raises OverWindow: the list is over the model's window.
        """
        ids = [str(number) for number in range(1, len(blocks) + 1)]
        listed = "\n".join(f"[{name}] {' '.join(text.split())}" for name, text in zip(ids, blocks.texts, strict=True))
        tree, leaves = grow(self.path_scorer.encode(ids), self.path_scorer.stop)
        branches = Branches([])
        if len(tree.branching):  # one block: nothing to ask
            prompt = render("block_ids", blocks=Quoted(listed), question=query)
            branches = self.path_scorer.branches(prompt, tree)
        own = log_probabilities(tree, branches)
        shown = Numbered(listed, ids, list(range(len(blocks))))
        scores, pieces = summed(tree, own)[leaves], pieces_of(self.path_scorer, tree)
        return Scored(shown, tree, own, leaves, scores, branches, pieces)
