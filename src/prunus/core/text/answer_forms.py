"""Questions whose answer has a form of its own, as a telephone number, an address, hours or a price; texts with one.

Pages write "Call us" or nothing beside a number, and "Email address" beside an empty field: words do not find them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .answer_kinds import MONEY
from .bm25 import QUERY_NOISE, tokens

_OTHER: Final = re.compile(
    r"(?:how (?:many|much|long|old)|when|why|wann|warum|wie ?viele?|pourquoi|quand|combien|cuánt[oa]s)\b", re.IGNORECASE
)
"""How a question begins that asks for a number, a time or a reason, whatever else it names."""
_GENERIC: Final = re.compile(r"\b(?:lautet|give|tell|find|show|need|know|get|page|site|website|seite)\b", re.IGNORECASE)
"""Words of a question that do not say whose number or address is meant."""
_ASKS_PHONE: Final = re.compile(
    r"\b(?:(?:tele)?phone|fax|mobile|cell|contact|hotline) (?:numbers?|no)\b"
    r"|\b(?:number|phone) (?:to|can i|do i) call\b"
    r"|\b(?:telefon|ruf|fax|handy)nummer\b|\bnuméro de (?:téléphone|fax)|\bnúmero de (?:teléfono|fax)|电话号码|电话是",
    re.IGNORECASE,
)
_ASKS_MAIL: Final = re.compile(
    r"\be-?mail[- ]?(?:address|adresse|id\b)|\b(?:the|their|your|his|her|its|whose|'s) e-?mail\s*\?*$"
    r"|\badresse (?:e-?mail|électronique)|\b(?:correo electrónico|dirección de e-?mail)|邮箱|电子邮件地址",
    re.IGNORECASE,
)
_PHONE: Final = re.compile(
    r"(?<![\w.,/@-])[+(]?\d{1,6}\)?(?:[ \u00a0./\u2010-\u2013-]{1,2}\(?\d{2,8}\)?){1,6}(?![\w@])"
)
_NATIONAL: Final = re.compile(r"(?:1\D)?[2-9]\d\d\D\d{3}\D\d{4}|0[1-9](?:\D?\d){7,10}")
"""As North America writes numbers, or with the 0 that many countries dial first."""
_DATED: Final = re.compile(r"(?:1[89]|20)\d\d\D\d{1,4}(?:\D\d{1,2})?|\d{1,2}\D\d{1,2}\D(?:1[89]|20)\d\d")
_LABELLED: Final = re.compile(
    r"\b(?:tel(?:e(?:ph|f)on[eo]?)?|ph(?:one)?|call|dial|mobile?|cell|fax|hotline|whatsapp|t[ée]l[ée]phone|teléfono|fon"
    r"|rufnummer|customer service|number)\b|☎|📞|电话",
    re.IGNORECASE,
)
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}(?:@| ?[\[(]at[\])] ?)[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_EMPTY: Final = re.compile(
    r"(?:you|your[._-]?(?:name|e?mail)|someone)@|.*@(?:email|example|domain|yourdomain|company|your-?company)\.",
    re.IGNORECASE,
)
"""Addresses that stand in an empty field."""

_FEW, _MANY = 7, 15  # digits of a telephone number
_BEFORE: Final = 40
"""Code points before a number among which its label is looked for."""


_ASKS_PLACE: Final = re.compile(
    r"\b(?:postal|street|mailing|office|visiting|business|physical|store|shop)? ?address\b(?! (?:bar|book|line|space))"
    r"|\b(?:anschrift|postadresse|adresse postale|dirección postal)\b|地址",
    re.IGNORECASE,
)
_OTHER_ADDRESS: Final = re.compile(
    r"\b(?:e-?mail|web|ip|mac|url|internet|memory|site|page)\W{0,2}(?:address|adresse)|邮", re.I
)
_STREET: Final = re.compile(
    r"\b\d{1,6}[A-Za-z]?,? (?:[NSEW]{1,2}\.? )?(?:(?-i:[^\W\d_a-z])[\w.'\u2019-]{0,20} |\d{1,3}(?:st|nd|rd|th) ){1,4}"
    r"(?:st|street|ave|avenue|rd|road|blvd|boulevard|(?<!state )(?<!hard )drive|dr|lane|ln|way|court|ct"
    r"|square|sq|place|pl|plaza|parkway|pkwy|highway|hwy|terrace|row|quay|close|crescent|circle|suite)\b"
    r"|\b\d{1,4},? (?:bis )?(?:rue|avenue|boulevard|place|quai|chemin|allée) [\w'\u2019-]"
    r"|\b(?-i:[^\W\d_a-z])[\w-]{1,30}(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|ufer|damm|laan|straat|plein) ?\d{1,4}"
    r"|\b(?:straße|strasse|str\.|platz|allee) \d{1,4}\b|\b(?:calle|piazza|avenida|plaza) [^\n]{0,30}?\d{1,4}\b"
    r"|\bp\.? ?o\.? box \d|\bpostfach \d|\b(?-i:[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2})\b"
    r"|\b(?-i:[A-Z]{2}),? \d{5}(?:-\d{4})?\b"
    r"|[路街道][^\s，。]{0,6}\d{1,5}号",
    re.IGNORECASE,
)
_ASKS_HOURS: Final = re.compile(
    r"\b(?:open(?:ing)?|business|office|store|shop|visiting|visitor|museum|library) (?:hours|times)\b"
    r"|\bhours of (?:operation|business|opening)\b|\böffnungszeiten\b|\bheures d['\u2019]ouverture|\bhorarios?\b"
    r"|营业时间",
    re.IGNORECASE,
)
_HOURS: Final = re.compile(
    r"(?<![\w:.])\d{1,2}(?:[:.]\d\d)?\s?(?:[ap]\.?m\.?|uhr|h)?\s?(?:[-\u2010-\u2015]|to|until|till|bis|à|a)\s?"
    r"\d{1,2}(?:[:.]\d\d)?\s?(?:[ap]\.?m\b|uhr\b|h\b|(?<=[:.]\d\d)(?!\d))|\b(?:open )?24 hours\b|\b24/7\b",
    re.IGNORECASE,
)
_ASKS_PRICE: Final = re.compile(
    r"\b(?:how much (?:is|does|do|are|would|will)|what (?:does|do|is the|'s the|are the) (?:price|cost|it|this|they)"
    r"|price|costs?|was kostet|wie teuer|preis|combien (?:coûte|ça)|prix|cuánto (?:cuesta|vale)|precio|多少钱|价格)\b",
    re.IGNORECASE,
)
_NO_PRICE: Final = re.compile(
    r"\b(?:shipping|delivery|orders? (?:over|above)|save|off|discount|coupon|vouchers?|gift card|value"
    r"|versand\w*|livraison|envío)\b",
    re.IGNORECASE,
)
_OF_PRICES: Final = re.compile(
    r"\b(?:how much|costs?|kostet|teuer|preis|prix|coûte|cuesta|vale|precio|price|cost|buy|product|item|course"
    r"|one|there|now)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What a question asks for, where that has a form of its own.

    :param held: tells whether a text holds one.
    :param about: the question without the words for it: whose it is.
    :param own: it is that of what a page is about, and so stands early in its main content. Of several pages it is not
        clear which one is meant.
    :param only: a text without one is no answer; else there are more forms than are known here.
    """

    held: Callable[[str], bool]
    about: str
    own: bool = False
    only: bool = False


def asked_form(query: str) -> AnswerForm | None:
    """Return what a question asks for; None where its answer has no form of its own.

    A price only where nothing says of what: "How much does it cost?" asks for that of what the page is about.
    """
    for asks, held in (
        (_ASKS_MAIL, holds_mail),
        (_ASKS_PHONE, holds_phone),
        (_ASKS_PLACE, holds_street),
        (_ASKS_HOURS, holds_hours),
    ):
        about, found = ("", 0) if _OTHER.match(query.strip()) else asks.subn(" ", query)
        if found and not (held is holds_street and _OTHER_ADDRESS.search(query)):
            return AnswerForm(held, _GENERIC.sub(" ", about), only=held in (holds_mail, holds_phone))
    about, found = _ASKS_PRICE.subn(" ", query)
    about = _GENERIC.sub(" ", _OF_PRICES.sub(" ", about))
    if found and all(word in QUERY_NOISE or len(word) == 1 for word in tokens(about)):
        return AnswerForm(holds_money, "", own=True)
    return None


def holds_street(text: str) -> bool:
    """Tell whether a text holds a street with a number, a post box, or a postcode of Britain or the United States."""
    return _STREET.search(text) is not None


def holds_hours(text: str) -> bool:
    """Tell whether a text holds the times between which something is open."""
    return _HOURS.search(text) is not None


def holds_money(text: str) -> bool:
    """Tell whether a text holds an amount of money that may be a price: no bar for free shipping, no discount."""
    return MONEY.search(text) is not None and not _NO_PRICE.search(text)


def holds_mail(text: str) -> bool:
    """Tell whether a text holds an address of mail."""
    return any(not _EMPTY.match(found[0]) for found in _MAIL.finditer(text))


def holds_phone(text: str) -> bool:
    """Tell whether a text holds a telephone number: one with ``+`` or brackets, of a national form, or called so."""
    for found in _PHONE.finditer(text):
        number = found[0]
        digits = sum(letter.isdigit() for letter in number)
        if not _FEW <= digits <= _MANY or _DATED.fullmatch(number):
            continue
        before = text[max(0, found.start() - _BEFORE) : found.start()]
        if number[0] in "+(" or _NATIONAL.fullmatch(number) or _LABELLED.search(before):
            return True
    return False
