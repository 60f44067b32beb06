"""``generative``: a language model gives the probability of each block's path (HtmlRAG §3.4.2).

The prompt shows the page with numbered tags. The paths of its blocks, as ``<html1><body><div2><p>``, are
merged into a tree of tokens, and the model gives probabilities only where that tree branches. The model
writes no reply. ``generative:MODEL`` runs a model on this machine; ``generative:BACKEND:…`` asks a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.checked_engines import declared
from ...core.errors import BadInput
from ...core.ports import Branches, Ints, PathScorer, TokenTree
from ..blocks import Blocks
from ..numbered_paths import PROMPTS, Numbered, number, path_prompt
from ._trie import grow, log_probabilities, sum_along_paths


@dataclass(frozen=True, slots=True)
class Scored:
    """The token tree of a page with the probability of each node.

    :param numbered: the paths, and the HTML that the model read.
    :param tree: the tree of tokens.
    :param log_p: log probability of each node given its parent, float64 [nodes].
    :param leaves: the node in which each block's path ends, int [blocks].
    :param scores: log probability of each block's path, float64 [blocks].
    :param branches: the logits from the model, and their cost.
    :param pieces: text of each node's token, for display; the token's number where the back-end has no text.
    """

    numbered: Numbered
    tree: TokenTree
    log_p: NDArray[np.float64]
    leaves: Ints
    scores: NDArray[np.float64]
    branches: Branches
    pieces: Sequence[str] = ()


def pieces_of(path_scorer: PathScorer, tree: TokenTree) -> list[str]:
    """Return the text of each node's token, '' for node 0; its number where the back-end cannot decode."""
    tokens = sorted({int(token) for token in tree.token[1:]})
    texts = path_scorer.decode(tokens) if path_scorer.decode is not None else [f"#{token}" for token in tokens]
    known = dict(zip(tokens, texts, strict=True))
    return ["", *(known[int(token)] for token in tree.token[1:])]


class Engine:
    """Log probability of each block's path, given page and question.

    exp(score) over all blocks sums to 1 (blocks that share a path count once). Scores are comparable
    within one call only.

    :param path_scorer: the language model.
    :param model: name of the model from the spec, for messages.
    :param prompt: ``paths``, ``htmlrag`` for models trained with the published prompt, ``htmlrag_released`` for the
        models that its authors released, or ``bare``; '' takes the one that the model was trained with, or ``paths``
        where that is not known.
    :raises BadInput: there is no such prompt.
    """

    name = "generative"
    second_stage = True
    one_prompt = True
    least_share = 0.0

    def __init__(self, path_scorer: PathScorer, model: str = "", prompt: str = "") -> None:
        prompt = prompt or declared(path_scorer, "path_scorer", "prompt") or "paths"
        if prompt not in PROMPTS:
            raise BadInput(f"generative: no prompt {prompt!r}; there are: {', '.join(PROMPTS)}", subject=prompt)
        self.path_scorer = path_scorer
        self.model = model
        self.prompt = prompt

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return the log probability of each block's path, float64 [n]; 0 for a single block.

        :raises OverWindow: the page is over the model's window; prune it by a cheaper scorer first.
        """
        if not len(blocks):
            return np.zeros(0)
        return self.tree(query, blocks).scores

    def tree(self, query: str, blocks: Blocks) -> Scored:
        """Return the whole token tree with its probabilities.

        :raises OverWindow: the page is over the model's window.
        """
        numbered = number(blocks, prompt=self.prompt)
        tree, leaves = grow(self.path_scorer.encode(numbered.paths), self.path_scorer.stop)
        branches = Branches([])
        if len(tree.branching):  # a tree of a single path needs no model
            branches = self.path_scorer.branches(path_prompt(query, numbered.html, self.prompt), tree)
        log_p = log_probabilities(tree, branches)
        scores, pieces = sum_along_paths(tree, log_p)[leaves], pieces_of(self.path_scorer, tree)
        return Scored(numbered, tree, log_p, leaves, scores, branches, pieces)
