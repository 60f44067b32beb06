"""Default block sizes, chosen by the size of the pages, the token budget and the question."""

from __future__ import annotations

import re
from typing import Final

FINE: Final = 48
"""Words per block for a question about a fact (chosen on the dev half of table_qa and page_qa)."""

COARSE: Final = 128
"""Words per block for an overview question: whole paragraphs and small sections."""

_OVERVIEW: Final = re.compile(
    r"\b(?:summar\w*|overview|describe|explain|discuss|compare|outline|introduc\w+|about|why"
    r"|how (?:do|does|did|can|to|is|are)"
    r"|what (?:is|are) the (?:main|key|differences?|advantages?|steps?|reasons?)|tell me)\b"
    r"|总结|概述|介绍|为什么|如何|怎么",
    re.IGNORECASE,
)


def is_overview(query: str) -> bool:
    """Tell by its words whether a question asks for an overview rather than for a fact."""
    return bool(_OVERVIEW.search(query))


def max_words_for(words: int, budget: int, query: str) -> int:
    """Choose the number of words per block.

    :param words: visible words of all pages.
    :param budget: tokens of evidence.
    :param query: the question; an overview gets coarser blocks than a fact.
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
"""Words per block in the first and in the second stage (HtmlRAG §4.4)."""


def coarse_budget_for(budget: int) -> int:
    """Choose how many tokens the first of two stages keeps: the published 8,192, or twice the budget if that is more.

    :param budget: tokens of evidence after both stages.
    """
    return max(PUBLISHED_BUDGETS[0], 2 * budget)


def coarse_words_for(coarse_budget: int, fine_words: int) -> int:
    """Choose the words per block in the first of two stages: the published 256 at 8,192 tokens, fewer for fewer tokens.

    :param coarse_budget: tokens that the first stage keeps.
    :param fine_words: words per block in the second stage; the first stage never cuts finer.
    """
    return max(fine_words, min(PUBLISHED_WORDS[0], coarse_budget // 32))


def fine_words_for(budget: int, query: str) -> int:
    """Choose the words per block in the second of two stages.

    From the published 4,096 tokens on, blocks have the published 128 words. Below, :func:`max_words_for` chooses.

    :param budget: tokens of evidence.
    """
    if budget >= PUBLISHED_BUDGETS[1]:
        return PUBLISHED_WORDS[1]
    return max_words_for(0, budget, query)
