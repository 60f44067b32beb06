"""Labels: the block of a pruned page that answers a question (HtmlRAG §3.4.2, training data).

A block is right when its visible text holds the gold answer, normalised and at word boundaries. Where the place of the
answer is known (the gold table, the element), only blocks of that place count, so that an equal number elsewhere in
the page is not a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import prunus
from prunus.core.settings import Settings
from prunus.engines import prune_engines
from prunus.evidence.blocks import Blocks
from prunus.evidence.prune import asked_blocks
from prunus.evidence.two_stage import Engines
from prunus_evals.bm25 import BM25
from prunus_evals.metrics import matching
from prunus_evals.records import Question

COARSE_WORDS = 256
"""Words of a block in the first stage at most (HtmlRAG §4.4)."""

FINE_WORDS = 128
"""Words of a block in the generative stage at most (HtmlRAG §4.4)."""


@dataclass(frozen=True, slots=True)
class PrunerRecipe:
    """The preparation of pages for the generative stage.

    :param first_stage: the scorer that prunes a page to a budget.
    :param coarse, fine: words of a block in the first and the second stage at most.
    :param prompt: one of ``prunus.evidence.numbered_paths.PROMPTS``; by default the published one.
    """

    first_stage: str = "trees"
    coarse: int = COARSE_WORDS
    fine: int = FINE_WORDS
    prompt: str = "htmlrag"


PUBLISHED = PrunerRecipe()
"""The recipe of the paper, except its first stage, which was an embedding model."""


def pruned(documents: prunus.Documents, question: str, budget: int, recipe: PrunerRecipe) -> Blocks:
    """Return the finer blocks that the first stage leaves of a page, with their paths in the whole page.

    They are the blocks that ``prunus.prune`` with :func:`options_of` asks a second scorer to rank.

    :param budget: tokens that the first stage keeps.
    :raises prunus.core.errors.BadBudget: the first stage keeps nothing.
    """
    return asked_blocks(documents, question, budget, "html", options_of(budget, recipe), _engines(recipe.first_stage))


def options_of(budget: int, recipe: PrunerRecipe) -> prunus.Options:
    """Return the options of ``prunus.prune`` that give a second scorer, which is still to be named, a recipe's blocks.

    :param budget: tokens that the first stage keeps.
    """
    return prunus.Options(
        scorer=recipe.first_stage, coarse_budget=budget, coarse_words=recipe.coarse, max_words=recipe.fine
    )


@cache
def _engines(first_stage: str) -> Engines:
    return prune_engines(Settings(), prunus.Options(scorer=first_stage))


def gold_blocks(blocks: Blocks, question: Question) -> list[int]:
    """Return the indexes of the blocks that hold the gold answer; [] where it was pruned away.

    Where a question has several answers, the blocks that hold most of them are returned.
    """
    texts = [matching.normalise(text) for text in blocks.texts]
    answers = [matching.normalise(answer) for answer in question.answers]
    held = [sum(matching.occurs(answer, text) for answer in answers) for text in texts]
    place = in_place(texts, question)
    if place is not None:
        held = [count if inside else 0 for count, inside in zip(held, place, strict=True)]
    most = max(held, default=0)
    return [index for index, count in enumerate(held) if most and count == most]


def in_place(texts: Sequence[str], question: Question) -> list[bool] | None:
    """Return for each block's text whether it is at the known place of the answer; None where no place is known.

    A block is in the gold table when it holds a whole row of the table (of two words or more).
    """
    if question.gold_table is not None:
        rows = _rows(question.gold_table)
        lines = [f" {' '.join(matching.words(text))} " for text in texts]
        return [any(row in line for row in rows) for line in lines]
    if question.element_id is not None:
        element = matching.normalise(matching.element_text(question.html, "tid", question.element_id))
        return [matching.occurs(element, text) for text in texts]
    return None


@lru_cache(maxsize=64)
def _rows(table: str) -> list[str]:
    """Return the rows of a gold table with two words or more, as lines of words."""
    return [form for row in matching.gold_table(table).rows for form in row if form.count(" ") > 2]


def target_block(blocks: Blocks, gold: Sequence[int], question: str) -> int:
    """Return the gold block whose path is taught: the best for the question by BM25, then the first.

    The paper does not say which block is taught where several hold the answer.
    """
    scores = BM25(blocks.texts).scores(question)
    return max(gold, key=lambda index: (scores[index], -index))
