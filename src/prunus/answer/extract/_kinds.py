"""The kind of answer that a question asks for (a number, a date, a name), and whether a text holds one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(r"\d[\d.,:\u2009\u202f]*\d|\d")
_NUMBER_WORDS: Final = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand"
    r"|million|billion|half|third|quarter|dozen|once|twice|zwei|drei|vier|fünf|deux|trois|quatre|cinq|dos|tres|cuatro"
    r"|cinco)\b|[一二三四五六七八九十百千万亿两半]",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[:.]\d\d\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:today|yesterday|tomorrow|noon|midnight|spring|summer"
    r"|autumn|winter|century|seasons?|weeks?|months?|days?|hours?|minutes?)\b|[年月日号点]",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?<![.!?:\u201c\"]\s)(?<!^)\b[^\W\d_a-z][\w'\u2019-]+")


_PARTICLES: Final = frozenset("up out down off away back again about then so too very not no yes".split())
"""Words without content that stand in any sentence and that the stop list of BM25 lacks; left out of a question."""

_WORD: Final = re.compile(r"[\w'\u2019]+")


def content_words(query: str) -> str:
    """Return a question without its words without content; the whole question where it has no others."""
    words = [word for word in _WORD.findall(query) if word.casefold() not in _PARTICLES]
    return " ".join(words) or query


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """A kind of answer.

    :param asks: matches a question that asks for this kind.
    :param held: match an answer of this kind in a text.
    """

    name: str
    asks: re.Pattern[str]
    held: tuple[re.Pattern[str], ...]

    def is_held(self, text: str, query: str) -> bool:
        """Tell whether a text holds an answer of this kind; words of the question itself do not count."""
        known = query.casefold()
        return any(match.group().casefold() not in known for pattern in self.held for match in pattern.finditer(text))


KINDS: Final = (
    AnswerKind(
        "number",
        re.compile(
            r"\bhow (?:many|much|long|high|deep|far|fast|old|big|large|often|heavy|tall|wide|thick|late|early|hot)\b"
            r"|\bwhat (?:is the )?(?:number|percentage|height|depth|length|weight|size|temperatures?|distances?)\b"
            r"|\b(?:price|costs?|pay|population|number of|average)\b"
            r"|\bwie (?:viele?|hoch|lange?|weit|tief|teuer|oft|alt|groß)\b|\bcombien\b|\bcuánt[oa]s?\b"
            r"|多少|几[个年天次]|多[久长高深大紧]",
            re.IGNORECASE,
        ),
        (_NUMBER, _NUMBER_WORDS),
    ),
    AnswerKind(
        "date",
        re.compile(
            r"\bwhen\b|\b(?:what|which|until which|in which) (?:year|date|day|month|time|century)\b|\bwann\b|\bquand\b"
            r"|\bcuándo\b|什么时候|何时|哪[年天]",
            re.IGNORECASE,
        ),
        (_DATE, _NUMBER),
    ),
    AnswerKind("name", re.compile(r"\bwho(?:m|se)?\b|\bwer\b|\bqui\b|\bquién\b", re.IGNORECASE), (_NAME,)),
)
"""In the order in which they are tried."""


def answer_kind(query: str) -> AnswerKind | None:
    """Return the kind of answer that a question asks for; None where its words do not show it."""
    return next((kind for kind in KINDS if kind.asks.search(query)), None)
