"""Questions for a telephone number or an address of mail, and texts that hold one.

Pages write "Call us" or nothing beside a number, and "Email address" beside an empty field: words do not find them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_OTHER: Final = re.compile(
    r"(?:how (?:many|much|long|old)|when|why|wann|warum|wie ?viele?|pourquoi|quand|combien|cuánt[oa]s)\b", re.IGNORECASE
)
_GENERIC: Final = re.compile(r"\b(?:lautet|give|tell|find|show|need|know|get|page|site|website|seite)\b", re.IGNORECASE)
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
    r"(?:you|your\.?(?:name|e?mail)|name|e?mail|user(?:name)?|someone|jane|john|jdoe)@(?:e?mail|example|domain|company)?\b"
    r"|.*@(?:example|domain|yourdomain|company|your-?company)\.",
    re.IGNORECASE,
)
"""Addresses that stand in an empty field."""

_FEW, _MANY = 7, 15  # digits of a telephone number
_BEFORE: Final = 40
"""Code points before a number among which its label is looked for."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A telephone number or an address of mail that a question asks for.

    :param held: tells whether a text holds one.
    :param about: the question without the words for it: whose it is.
    """

    held: Callable[[str], bool]
    about: str


def asked_contact(query: str) -> Contact | None:
    """Return what a question asks for; None where it asks for neither."""
    if _OTHER.match(query.strip()):
        return None
    for asks, held in ((_ASKS_MAIL, holds_mail), (_ASKS_PHONE, holds_phone)):
        about, found = asks.subn(" ", query)
        if found:
            return Contact(held, _GENERIC.sub(" ", about))
    return None


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
