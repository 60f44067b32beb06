"""Which questions are about a whole and not about a particular subject."""

from __future__ import annotations

import re
from typing import Final

from .bm25 import QUERY_NOISE, tokens

_WHOLE: Final = re.compile(
    r"\b(?:tl ?;? ?dr|what(?:'s|’s| is) (?:this|it|here)|learn"
    r"|about|summar\w*|overview\w*|outlines?|outlined?|describe|explain|recap\w*|gist|synops\w*|whole|entire|overall"
    r"|general(?:ly)?|main(?:ly)?|major|key|central|most|important|briefly|short(?:ly)?|brief"
    r"|discuss\w*|points?|topics?|themes?|subjects?|plots?|morals?|messages?|contents?|ideas?|conclusions?|takeaways?"
    r"|stor(?:y|ies)|meetings?|books?|documents?|texts?|articles?|papers?|reports?|chapters?|collections?"
    r"|(?:web)?(?:pages?|sites?)"
    r"|talk\w*|happen\w*|write|written|give|say|says|said"
    r"|zusammen\w*|fasse|überblick|übersicht|hauptpunkte|wichtigsten?|themen?|inhalt\w*|geschichte|dokumente?|text\w*"
    r"|artikel\w*|handlung|ganzen?|gesamten?|worum|geht|(?:web)?seiten?|diese[rsnm]?|hier|steht|auf|es"
    r"|résum\w*|aperçu|thèmes?|histoire|quoi|parle|cet(?:te)?|ce|page|article|texte|resum\w*|tema|temas|historia|trata"
    r"|esta|este|página|texto|artículo)\b"
    r"|总结|概述|概括|介绍|网页|网站|这个|本文|全文|文章|故事|会议|主要|内容|主题|讲了|说了|什么|这篇|这本|书|一下|请|的|了"
    r"|لخص|تلخيص|ملخص|النص|القصة|المقال|الموضوع|الرئيسي\w*",
    re.IGNORECASE,
)


_PART: Final = re.compile(
    r"(?:who|whose|whom|which|when|where|how (?:many|much|old|long|often)|wer|wann|wo|welche[rs]?|wie ?viele?"
    r"|qui|quand|où|combien|quién|cuándo|dónde|cuánt[oa]s?)\b",
    re.IGNORECASE,
)
"""How a question begins that asks for a person, a date, a place, a number or one of several."""


def is_broad(query: str) -> bool:
    """Tell whether a question names no particular subject: all its content words are about a whole.

    "Summarize the whole meeting" is broad. "Summarize the discussion about trends" is not: the leaves about trends
    answer it better than a summary.
    """
    if _PART.match(query.strip()):
        return False
    remaining, found = _WHOLE.subn(" ", query.lower())
    return bool(found) and all(word in QUERY_NOISE or len(word) == 1 for word in tokens(remaining))
