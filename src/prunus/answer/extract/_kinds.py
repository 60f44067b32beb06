"""What kind of thing a question asks for, by its words, and whether a text holds one."""

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
"""Words that stand in any sentence: where a question has others, they choose none."""

_WORD: Final = re.compile(r"[\w'\u2019]+")


def telling_words(query: str) -> str:
    """Return a question without the words that stand in any sentence; as it is where it has no others."""
    told = [word for word in _WORD.findall(query) if word.casefold() not in _PARTICLES]
    return " ".join(told) or query


@dataclass(frozen=True, slots=True)
class Wanted:
    """A kind of thing that a question asks for.

    :param asks: words of a question that ask for it.
    :param held: what a text must hold, any of them; what the question itself says does not count.
    """

    name: str
    asks: re.Pattern[str]
    held: tuple[re.Pattern[str], ...]

    def is_held(self, text: str, query: str) -> bool:
        """Tell whether a text holds such a thing that the question does not name itself."""
        known = query.casefold()
        return any(found.group().casefold() not in known for pattern in self.held for found in pattern.finditer(text))


KINDS: Final = (
    Wanted(
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
    Wanted(
        "date",
        re.compile(
            r"\bwhen\b|\b(?:what|which|until which|in which) (?:year|date|day|month|time|century)\b|\bwann\b|\bquand\b"
            r"|\bcuándo\b|什么时候|何时|哪[年天]",
            re.IGNORECASE,
        ),
        (_DATE, _NUMBER),
    ),
    Wanted("name", re.compile(r"\bwho(?:m|se)?\b|\bwer\b|\bqui\b|\bquién\b", re.IGNORECASE), (_NAME,)),
)
"""In the order in which they are tried."""


def wanted(query: str) -> Wanted | None:
    """Return what a question asks for; None where its words do not say."""
    return next((kind for kind in KINDS if kind.asks.search(query)), None)
