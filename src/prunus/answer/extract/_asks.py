"""What the words of a question demand of a row: the most or least of something, a place in an order, a number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from ...core.text.answer_kinds import AnswerKind, asked_kinds
from ...core.text.bm25 import tokens
from ...core.text.numbers import bounded_float
from ._tables import value_in

_ASKS_EXTREME: Final = re.compile(
    r"(?<!\bat )\b(?:(?P<low>least|fewest|lowest|smallest|shortest|slowest|lightest|cheapest|youngest|minimum|worst"
    r"|narrowest|(?:kleinste|niedrigste|wenigste|k\u00fcrzeste|j\u00fcngste)[nrsm]?)"
    r"|most|highest|largest|larger|higher|biggest|bigger|greatest|greater|longest|tallest|fastest|quickest|heaviest"
    r"|oldest|best|top|maximum|deepest|widest|newest|latest|earliest|strongest|richest"
    r"|(?:h\u00f6chste|gr\u00f6\u00dfte|l\u00e4ngste|meiste|\u00e4lteste|beste|schnellste)[nrsm]?)\b"
    r"|(?P<zh_low>\u6700(?:\u5c11|\u5c0f|\u4f4e|\u77ed|\u6162|\u8f7b))|\u6700",
    re.IGNORECASE,
)
_RANK: Final = re.compile(
    r"\b(?:(second|2nd|zweit)|(third|3rd|dritt))[- ]?(?:most |least )?"
    r"(?=\w*est\b|most|least|highest|h\u00f6chste|gr\u00f6\u00dfte)",
    re.IGNORECASE,
)
_ASKS_END: Final = re.compile(
    r"\b(?:(?P<last>last|latest|final|newest|most recent|bottom|letzte[nrsm]?|sp\u00e4teste[nrsm]?)"
    r"|first|earliest|initial|erste[nrsm]?|fr\u00fcheste[nrsm]?)\b|(?P<zh_last>\u6700\u540e|\u6700\u5f8c)|\u9996\u5148|\u7b2c\u4e00|\u6700\u65e9",
    re.IGNORECASE,
)
_ASKS_AFTER: Final = re.compile(
    r"\b(?:after|next|follow(?:s|ed|ing)|below|beneath|listed under|subsequent(?: to)?|behind"
    r"|n\u00e4chste[nrsm]?|nach)\b",
    re.IGNORECASE,
)
_ASKS_BEFORE: Final = re.compile(
    r"\b(?:before|previous(?:ly)?(?: to)?|prior(?: to)?|preced(?:es|ed|ing)|above|ahead of|vorige[nrsm]?|vor)\b",
    re.IGNORECASE,
)
_EXCEPTED: Final = re.compile(
    r"\b(?:other than|besides?|except(?: for)?|apart from|aside from|in addition to|as well as|au\u00dfer|neben)"
    r"\s+([^,?;]+)",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(r"\b(?:other|another|else|andere[nrsm]?)\b", re.IGNORECASE)
_PLAIN: Final = r"(\d[\d,]*(?::\d\d)*(?:\.\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_AT_LEAST: Final = re.compile(
    rf"\b(?:at least|no less than|not less than|mindestens)\s(?:\w+\s)?{_PLAIN}\b"
    rf"|\b{_PLAIN}\s(?:or|and)\s(?:more|above|higher|over)\b",
    re.IGNORECASE,
)
_ABOVE: Final = re.compile(
    rf"\b(?:(?:more|greater|higher|larger|longer|later|better) than|over|above|exceed\w*|mehr als|\u00fcber)\s"
    rf"(?:\w+\s)?{_PLAIN}\b",
    re.IGNORECASE,
)
_AT_MOST: Final = re.compile(
    rf"\b(?:at most|no more than|not more than|up to|h\u00f6chstens)\s(?:\w+\s)?{_PLAIN}\b"
    rf"|\b{_PLAIN}\s(?:or|and)\s(?:less|fewer|below|lower|under)\b",
    re.IGNORECASE,
)
_BELOW: Final = re.compile(
    rf"\b(?:(?:less|fewer|lower|smaller|shorter|earlier) than|under|below|weniger als|unter)\s(?:\w+\s)?{_PLAIN}\b",
    re.IGNORECASE,
)
_DEMANDS: Final = ((_AT_LEAST, True, 0.0), (_AT_MOST, False, 0.0), (_ABOVE, True, 1e-6), (_BELOW, False, 1e-6))
_NO: Final = re.compile(r"\b(?:not?|never|zero|without|didn't|did not|kein\w*)\b", re.IGNORECASE)
_WORDS: Final = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_ORDINALS: Final = {
    word: number
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
}
_ORDINAL: Final = re.compile(r"\b(\d{1,4})(?:st|nd|rd|th)\b", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d[\d.,:]*\d|\d")
_COUNTED: Final = re.compile(r"\b(?:how many|wie viele|combien de|cu\u00e1nt[oa]s)\s+(\w+)(?:\s+(\w+))?", re.IGNORECASE)
_THING: Final = re.compile(
    r"\b(?:what|which|whose|name (?:a|an|the|one)|tell me (?:a|an|the)|list (?:a|an|the)|welche[rsnm]?|quel(?:le)?s?"
    r"|qu\u00e9)\s+(?:(?:is|was|are|were|did|does|has|had) (?:the )?)?"
    r"(?:(?:only|other|first|last|next|previous|name of (?:a|an|the)?|one of the) ?)*(\w+(?:\s\w+)?)",
    re.IGNORECASE,
)
_PERSON: Final = re.compile(r"\bwho(?:m|se)?\b|\bwer\b", re.IGNORECASE)
_PERSON_HEADS: Final = "name player driver rider winner athlete artist person candidate representative author director"
_WHEN_HEADS: Final = "date year season time day"
_WHEN: Final = re.compile(r"\bwhen\b|\bwann\b", re.IGNORECASE)
_WHERE_HEADS: Final = "location venue city place country site"
_WHERE: Final = re.compile(r"\bwhere\b|\bwo\b", re.IGNORECASE)

_SINCE: Final = "birth|born|built|found|year|date|opened|complet|establish|release|updated|jahr|datum"
_EXTENT: Final = "area|size|population|capacity|fl\u00e4che|einwohner"
_PLACED: Final = r"^(?:rank|pos|position|place|finish|#)\b|platz|rang"
_HINTS: Final = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), re.compile(heads, re.IGNORECASE), low)
    for words, heads, low in (
        (r"fastest|quickest|schnellste\w?", r"\btimes?\b|duration|zeit", True),
        (r"slowest", r"\btimes?\b|duration|zeit", False),
        (r"oldest|\u00e4lteste\w?", r"\bages?\b|\bold\b|lifespan|alter", False),
        (r"oldest|earliest|first|\u00e4lteste\w?", _SINCE, True),
        (r"youngest|j\u00fcngste\w?", r"\bages?\b|alter", True),
        (r"youngest|newest|latest|last|most recent", _SINCE, False),
        (r"tallest|highest|h\u00f6chste\w?", r"height|elevation|floors|altitude|peak|h\u00f6he", False),
        (r"shortest|k\u00fcrzeste\w?", r"length|height|time|duration|distance|l\u00e4nge", True),
        (r"longest|l\u00e4ngste\w?", r"length|time|duration|distance|years|l\u00e4nge", False),
        (r"largest|biggest|larger|bigger|greatest|gr\u00f6\u00dfte\w?", _EXTENT, False),
        (r"smallest|kleinste\w?", _EXTENT, True),
        (r"heaviest", r"weight|mass|gewicht", False),
        (r"lightest", r"weight|mass|gewicht", True),
        (r"cheapest|least expensive", r"price|cost|fee|preis", True),
        (r"most expensive", r"price|cost|fee|preis", False),
        (r"best|top|won the most|finished first", _PLACED, True),
        (r"worst", _PLACED, False),
        (r"attended|popular|crowd", r"attendance|viewers|zuschauer", False),
    )
)
"""What a superlative hints at: its words, the heads of columns, and whether the lowest number is meant."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """The highest or lowest of something is asked for.

    :param rank: 1 for the highest, 2 for the second highest, …
    """

    low: bool
    rank: int
    query: str

    def is_low(self, head: str) -> bool | None:
        """Tell whether the lowest number of a column is meant; None where the superlative does not hint at it."""
        for words, heads, low in _HINTS:
            if words.search(self.query) and heads.search(head):
                return low
        return None


@dataclass(frozen=True, slots=True)
class Demand:
    """A number has to be in a range, limits included."""

    least: float
    most: float

    def is_met(self, value: float) -> bool:
        """Tell whether a cell's number is in the range; years are compared with the year of a date."""
        bound = self.most if math.isinf(self.least) else self.least
        factor = 10000.0 if value >= 1e7 and 1000 <= bound < 3000 else 1.0
        return self.least * factor <= value <= self.most * factor


@dataclass
class Asked:
    """What a question asks for, as far as its words show it."""

    query: str

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words in lower case."""
        return frozenset(tokens(self.query))

    @cached_property
    def extreme(self) -> Extreme | None:
        """The superlative of the question."""
        found = _ASKS_EXTREME.search(self.query)
        if found is None:
            return None
        rank = _RANK.search(self.query)
        number = 1 if rank is None else 2 if rank.group(1) else 3
        return Extreme(bool(found["low"] or found["zh_low"]), number, self.query)

    @cached_property
    def end(self) -> Literal["", "first", "last"]:
        """Whether the first or the last of something is asked for."""
        found = _ASKS_END.search(self.query)
        return "" if found is None else "last" if found["last"] or found["zh_last"] else "first"

    @cached_property
    def _beside(self) -> tuple[Literal["", "after", "before"], str]:
        after, before = _ASKS_AFTER.search(self.query), _ASKS_BEFORE.search(self.query)
        if self.demand is not None and not (before and before.group().lower() == "before"):
            after = None if after and after.group().lower() == "below" else after
            before = None if before and before.group().lower() == "above" else before
        found = after or before
        if found is None:
            return "", ""
        rest = self.query[found.end() :]
        again = (_ASKS_AFTER if after else _ASKS_BEFORE).match(rest.lstrip())  # "next after", "right before"
        return ("after" if after else "before"), rest.lstrip()[again.end() :] if again else rest

    @property
    def beside(self) -> Literal["", "after", "before"]:
        """Whether what comes after or before something is asked for."""
        return self._beside[0]

    @property
    def beside_what(self) -> str:
        """The rest of the question behind "after" or "before"; all of it where nothing is left."""
        rest = _ORDINAL.sub(r"\1", self._beside[1].split(",")[0])
        return rest if tokens(rest) else self.query

    @cached_property
    def excepted(self) -> str:
        """What stands behind "other than"."""
        found = _EXCEPTED.search(self.query)
        return found.group(1) if found else ""

    @property
    def other(self) -> bool:
        """Whether something else than what the question names is asked for."""
        return _OTHER.search(self.query) is not None

    @cached_property
    def demand(self) -> Demand | None:
        """The range that a number has to be in: at least 3, under 10."""
        for pattern, low, step in _DEMANDS:
            found = pattern.search(self.query)
            number = _number(next(filter(None, found.groups()))) if found else None
            if number is not None:
                return Demand(number + step, float("inf")) if low else Demand(float("-inf"), number - step)
        return None

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its numbers as digits, those in words and ordinals included; 0 where it says "no" or "not"."""
        found = {match.group() for match in _DIGITS.finditer(self.query)}
        found |= {match.group(1) for match in _ORDINAL.finditer(self.query)}
        words = self.query.lower().split()
        found |= {str(known[word]) for word in words for known in (_WORDS, _ORDINALS) if word in known}
        if _NO.search(self.query):
            found |= {"0", "-", "\u2013", "\u2014"}
        return frozenset(found)

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The words behind "how many"."""
        found = _COUNTED.search(self.query)
        return tuple(word.lower() for word in found.groups() if word) if found else ()

    @cached_property
    def thing(self) -> str:
        """The words that name the thing that is asked for: they may head its column."""
        found = _THING.search(self.query)
        parts = [found.group(1)] if found else []
        for pattern, heads in ((_PERSON, _PERSON_HEADS), (_WHEN, _WHEN_HEADS), (_WHERE, _WHERE_HEADS)):
            if pattern.search(self.query):
                parts.append(heads)
        return " ".join([*parts, *self.counted])

    def fits(self, text: str) -> bool:
        """Tell whether a text holds an answer of a kind that is asked for."""
        return any(kind.is_held(text, self.query) for kind in self.kinds)

    @cached_property
    def kinds(self) -> list[AnswerKind]:
        """The kinds of answer that are asked for."""
        return asked_kinds(self.query)


def _number(written: str) -> float | None:
    word = _WORDS.get(written.lower())
    if ":" in written:
        return value_in(written)
    return 1.0 * word if word is not None else bounded_float(written.replace(",", ""), None, least=-1e18, most=1e18)
