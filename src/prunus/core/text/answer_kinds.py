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

_YEAR: Final = re.compile(r"\b(?:1\d|20)\d\d\b|\d{1,4}\s?[年月日]")
_HAN_NAME: Final = re.compile(
    r"[\u4e00-\u9fff]{1,4}[·・][\u4e00-\u9fff]{1,6}|[\u4e00-\u9fff]{2,4}(?:先生|女士|教授|博士|将军|总统|国王|皇帝)"
)
_IN_PLACE: Final = re.compile(
    r"\b(?:in|at|near|from|to|on|of|im|am|aus|bei|nach|à|au|en|dans|de|em|no|na|a)\s(?:the\s|der\s"
    r"|den\s|la\s|le\s)?[^\W\d_a-z]\w+"
    r"|[在于位从至][^\s，。]{1,8}",
)
MONEY: Final = re.compile(
    r"[€$£¥₹]\s?\d|\d\s?[€$£¥]|(?<![\d.,])\d[\d.,]{0,30}+\s(?:\w{1,12}\s)?(?:euros?|dollars?|pounds?|usd|eur|yen)\b"
    r"|\d\s?[万亿]?[元円美]",
    re.IGNORECASE,
)
_PERCENT: Final = re.compile(r"\d\s?%|\b(?:percent|per cent|prozent|pour cent|por ciento)\b|百分之", re.IGNORECASE)
_MEASURE: Final = re.compile(
    r"\d\s?(?:mm|cm|km|m|kg|g|ft|feet|foot|inch(?:es)?|in|yards?|miles?|met(?:er|re)s?|kilomet(?:er"
    r"|re)s?|tons?|tonnes?|acres?|hectares?|ha"
    r"|°|degrees?|mph|km/h|kmh|seconds?|minutes?|hours?|days?|weeks?|months?|years?|stunden?|tage?n?"
    r"|jahren?|minuten|metern?|kilometern?)(?!\w)"
    r"|[\d一二三四五六七八九十百千]\s?(?:米|公里|千米|厘米|毫米|公斤|千克|吨|度|年|天|小时|分钟|秒|个月|牛)",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\b(?:because|since|due to|so that|in order to|caused? by|as a result|reasons?|therefore|weil|da"
    r"|denn|wegen|parce que|car|porque|perché)\b"
    r"|потому|因为|由于|原因|以便|为了|ので|ため|때문",
    re.IGNORECASE,
)
_MEANING: Final = re.compile(
    r"\b(?:is|are|was|were) (?:an?|the|one|any)\b|\b(?:means?|refers? to|stands? for|defined as"
    r"|known as|called)\b|\b(?:ist|sind|war) (?:eine?r?|der|die|das)\b"
    r"|\best (?:une?|le|la)\b|\bes (?:una?|el|la)\b|是[一指]?|指的?是|とは",
    re.IGNORECASE,
)


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
            r"|\bwhat (?:is the |was the )?(?:total )?(?:number|percentage|height|depth|length|weight"
            r"|size|temperatures?"
            r"|distances?|score|amount|rank)\b"
            r"|\b(?:price|costs?|pay|population|number of|average)\b"
            r"|\bwie (?:viele?|hoch|lange?|weit|tief|teuer|oft|alt|groß)\b|\bcombien\b"
            r"|\bcuánt[oa]s?\b|\bquant[oaie]s?\b"
            r"|多少|几[个年天次名位种项]|多[久长高深大紧]|いくつ|何[人年回個]|どのくらい|얼마|몇",
            re.IGNORECASE,
        ),
        (_NUMBER, _NUMBER_WORDS),
    ),
    AnswerKind(
        "date",
        re.compile(
            r"\bwhen\b|\b(?:what|which|until which|in which) (?:year|date|day|month|time|century|season)\b|\bwann\b"
            r"|\bin welchem (?:jahr|monat)\b|\bquand\b|\ben quelle année\b|\bcuándo\b|\ben qué año\b|\bquando\b"
            r"|什么时候|什么时间|何时|哪[一]?[年天]|いつ|언제",
            re.IGNORECASE,
        ),
        (_DATE, _YEAR),
    ),
    AnswerKind(
        "name",
        re.compile(
            r"\bwho(?:m|se)?\b|\bwer\b|\bwem\b|\bwen\b|\bqui\b|\bquién(?:es)?\b|\bchi\b|\bquem\b"
            r"|\bкто\b|谁|哪位|誰|누구",
            re.IGNORECASE,
        ),
        (_NAME, _HAN_NAME),
    ),
    AnswerKind(
        "place",
        re.compile(
            r"\bwhere\b|\b(?:what|which) (?:city|town|country|state|region|county|place|venue"
            r"|location|continent|island)\b"
            r"|\bwo(?:her|hin)?\b|\bin welche[mr] (?:stadt|land)\b|\boù\b|\bdónde\b|\bdove\b|\bonde\b|\bгде\b"
            r"|哪里|哪儿|哪个(?:国家|城市|地方)|どこ|어디",
            re.IGNORECASE,
        ),
        (_IN_PLACE,),
    ),
    AnswerKind(
        "money",
        re.compile(
            r"\bhow much (?:does|do|did|is|are|was|were|will|would|money)\b|\b(?:price|costs?|pay"
            r"|paid|fee|salary|budget|worth)\b"
            r"|\bwas kostet\b|\bprix\b|\bprecio\b|多少钱|价格|いくら",
            re.IGNORECASE,
        ),
        (MONEY,),
    ),
    AnswerKind(
        "percent",
        re.compile(
            r"\bpercent(?:age)?s?\b|\bper cent\b|\bprozent\b|\bpourcentage\b|\bporcentaje\b|\bshare of\b|百分",
            re.IGNORECASE,
        ),
        (_PERCENT,),
    ),
    AnswerKind(
        "measure",
        re.compile(
            r"\bhow (?:long|high|deep|far|fast|big|large|heavy|tall|wide|thick|hot|cold)\b"
            r"|\bwie (?:hoch|lange?|weit|tief|groß|schwer)\b"
            r"|\b(?:height|depth|length|weight|size|temperatures?|distances?|area|speed)\b|多[久长高深大紧重远]",
            re.IGNORECASE,
        ),
        (_MEASURE,),
    ),
    AnswerKind(
        "reason",
        re.compile(
            r"\bwhy\b|\breasons?\b|\bcauses?d?\b|\bwarum\b|\bwieso\b|\bpourquoi\b|\bpor qué\b"
            r"|\bperché\b|\bпочему\b|为什么|原因|なぜ|왜",
            re.IGNORECASE,
        ),
        (_REASON,),
    ),
    AnswerKind(
        "meaning",
        re.compile(
            r"^\W{0,3}what(?:'s| is| are| was| were| does)\b(?! the (?:number|price|name))|\bmean(?:s"
            r"|ing)?\b|\bstands? for\b|\bwas (?:ist|sind|bedeutet)\b"
            r"|\bqu'est-ce\b|\bqué es\b|是什么|什么是|什么意思|とは|무엇",
            re.IGNORECASE,
        ),
        (_MEANING,),
    ),
)
"""A question may ask for several of them, as for a number that is money."""


def asked_kinds(query: str) -> list[AnswerKind]:
    """Return the kinds of answer that a question asks for; none where its words do not show it."""
    return [kind for kind in KINDS if kind.asks.search(query)]
