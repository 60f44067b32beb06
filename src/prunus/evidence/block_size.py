"""How fine to cut when nobody says: by page size, budget and question."""

from __future__ import annotations

import re
from typing import Final

FINE: Final = 48
"""Words a block for a fact (dev half of table_qa and page_qa)."""

COARSE: Final = 128
"""Words a block for an overview: whole paragraphs and small sections."""

_OVERVIEW: Final = re.compile(
    r"\b(?:summar\w*|overview|describe|explain|discuss|compare|outline|introduc\w+|about|why"
    r"|how (?:do|does|did|can|to|is|are)"
    r"|what (?:is|are) the (?:main|key|differences?|advantages?|steps?|reasons?)|tell me)\b"
    r"|总结|概述|介绍|为什么|如何|怎么",
    re.IGNORECASE,
)


def is_overview(query: str) -> bool:
    """Tell whether a question asks for an overview rather than a fact, by its words."""
    return bool(_OVERVIEW.search(query))


def max_words_for(words: int, budget: int, query: str) -> int:
    """Choose the words of a block.

    :param words: visible words of all pages.
    :param budget: tokens of evidence.
    :param query: the question; an overview wants coarser blocks than a fact.
    """
    wanted = COARSE if is_overview(query) else FINE
    if budget < 16 * wanted:  # fewer than about a dozen blocks would fit
        wanted = max(8, budget // 16)
    if words > 200_000:  # very large input: fewer, larger units keep the time down
        wanted = max(wanted, 96)
    return min(wanted, COARSE)


PUBLISHED_BUDGETS: Final = (8192, 4096)
"""Tokens after the first and after the second stage (HtmlRAG §4.4)."""

PUBLISHED_WORDS: Final = (256, 128)
"""Words a block in the first and in the second stage (HtmlRAG §4.4)."""


def coarse_budget_for(budget: int) -> int:
    """Choose the tokens that the first of two stages keeps: the published 8,192, and never below twice the budget.

    :param budget: tokens of evidence in the end.
    """
    return max(PUBLISHED_BUDGETS[0], 2 * budget)


def coarse_words_for(coarse_budget: int, fine_words: int) -> int:
    """Choose the words of a block in the first of two stages: the published 256 at 8,192 tokens, finer below.

    :param fine_words: words of a block in the second stage, which are never more.
    """
    return max(fine_words, min(PUBLISHED_WORDS[0], coarse_budget // 32))


def fine_words_for(budget: int, query: str) -> int:
    """Choose the words of a block in the second of two stages: the published 128 at the published budget or for an
    overview, as :func:`max_words_for` where a fact is asked for in fewer tokens.

    :param budget: tokens of evidence.
    """
    if budget >= PUBLISHED_BUDGETS[1]:
        return PUBLISHED_WORDS[1]
    return max_words_for(0, budget, query)
