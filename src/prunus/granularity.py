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
