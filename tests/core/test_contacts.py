"""Questions for a telephone number or an address of mail."""

from __future__ import annotations

import pytest

import prunus
from prunus.core.text.contacts import asked_contact, holds_mail, holds_phone


@pytest.mark.parametrize(
    "text",
    [
        "800.226.7529", "(209) 228-4400", "+91 9008-470-808", "PO Box 1214 • 541-410-2760", "Tel. 030 123456",
        "020 7946 0958", "01 23 45 67 89", "(0511) 123 45 67", "phone: 555-1234", "Call 1-800-275-2273 today.",
        "Rufnummer 0800/123 4567",
    ],
)  # fmt: skip
def test_numbers_of_telephones(text: str) -> None:
    assert holds_phone(text)


@pytest.mark.parametrize(
    "text",
    [
        "2019-2020", "12-05-1998", "2024-01-01 10:20", "ISBN 978-3-16-148410-0", "192.168.100.100", "version 1.2.3.4567",
        "100 000 000 euros", "555-1234", "from 1990-1995, 2001", "a score of 100-200", "12.345.678,90 €", "x",
    ],
)  # fmt: skip
def test_other_numbers(text: str) -> None:
    assert not holds_phone(text)


def test_addresses_of_mail_and_what_stands_in_empty_fields() -> None:
    for text in ("Write to ann.b+c@mail.river.org.", "ceo@kftpl.com +91", "info [at] river.de", "me@email-museum.org"):
        assert holds_mail(text), text
    for text in ("you@example.com", "name@company.com", "email@email.com", "your.name@river.org", "@river", "a@b", ""):
        assert not holds_mail(text), text


def test_which_questions_ask_for_one() -> None:
    for query in (
        "What is the phone number?",
        "Wie lautet die Telefonnummer?",
        "fax number of the bank",
        "Whose number can I call?",
    ):
        contact = asked_contact(query)
        assert contact is not None and contact.held is holds_phone, query
    for query in ("What is the email address of Ann?", "What's her e-mail?", "Quelle est l'adresse e-mail ?"):
        contact = asked_contact(query)
        assert contact is not None and contact.held is holds_mail, query
    for query in (
        "Who invented the telephone?",
        "What email tools exist?",
        "How many phone numbers are there?",
        "phones",
    ):
        assert asked_contact(query) is None, query


PAGE = """<title>City library of Hanover</title><nav><a href=/>Home</a> <a href=/c>Contact</a></nav><main>
<h1>City library of Hanover</h1><p>The library has thirty reading rooms and opened in 1898 near the town hall.</p>
<p>Ask for the phone number of a reading room at the desk.</p>
<form>Email address <input placeholder=you@example.com></form></main>
<footer>Main Street 5 · 511 555 1234 · <a href=/m>desk@library-hanover.de</a></footer>"""


def test_the_number_answers_and_words_about_numbers_do_not() -> None:
    for query in (
        "What is the phone number?",
        "phone number of the library in Hanover",
        "Wie lautet die Telefonnummer?",
    ):
        answer = prunus.ask(query, PAGE)
        assert "511 555 1234" in answer.citations[0].quote and answer.confidence == 0.9, query
        assert "511 555 1234" in prunus.prune(PAGE, query, 40, "text").text
    assert "desk@library-hanover.de" in prunus.ask("What is the email address?", PAGE).citations[0].quote


def test_the_number_of_somebody_else_is_no_answer() -> None:
    with pytest.raises(prunus.NothingFound):
        prunus.ask("What is the phone number of the Ritz hotel in Paris?", PAGE)
    with pytest.raises(prunus.NothingFound):
        prunus.ask("What is the email address?", PAGE.replace("desk@library-hanover.de", "Write to us"))
