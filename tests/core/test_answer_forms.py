"""Questions for a telephone number or an address of mail."""

from __future__ import annotations

import pytest

import prunus
from prunus.core.text.answer_forms import asked_form, holds_hours, holds_mail, holds_money, holds_phone, holds_street


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
    for text in (
        "Write to ann.b+c@mail.river.org.",
        "ceo@kftpl.com +91",
        "info [at] river.de",
        "john@hotel.com",
        "name@river.org",
    ):
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
        form = asked_form(query)
        assert form is not None and form.held is holds_phone, query
    for query in ("What is the email address of Ann?", "What's her e-mail?", "Quelle est l'adresse e-mail ?"):
        form = asked_form(query)
        assert form is not None and form.held is holds_mail, query
    for query in (
        "Who invented the telephone?",
        "What email tools exist?",
        "How many phone numbers are there?",
        "phones",
    ):
        assert asked_form(query) is None, query


@pytest.mark.parametrize(
    "text",
    [
        "5200 North Lake Rd", "8407 Central Ave, Suite 2079", "945 Broad St., Augusta", "2130 W. 7th Street", "P.O. Box 1214",
        "Merced, CA 95343", "70 Queen Victoria Street", "EC4N 4SJ", "Lange Straße 5", "Hauptstr. 12", "Bahnhofplatz 1",
        "12 rue de Rivoli", "Calle Mayor 8", "建国路93号",
    ],
)  # fmt: skip
def test_streets(text: str) -> None:
    assert holds_street(text)


@pytest.mark.parametrize(
    "text",
    ["Email address", "4.0 X4 NVME Solid State Drive", "a way of 5 steps", "2 St. Bernards", "Rows 12 to 15", "x"],
)
def test_what_is_no_street(text: str) -> None:
    assert not holds_street(text)


def test_hours() -> None:
    for text in (
        "Mon – Fri 10am – 9pm",
        "Sat 10:00-18:00",
        "9 a.m. to 5 p.m.",
        "Mo-Fr 8 bis 16 Uhr",
        "open 24/7",
        "9h à 17h",
    ):
        assert holds_hours(text), text
    for text in ("Tue, Mar 04, 12:54 AM", "7-10 days", "at 4:00 PM", "pages 10-12", "score 3:2", "2010-2012", ""):
        assert not holds_hours(text), text
    form = asked_form("What are the opening hours of the library?")
    assert form is not None and form.held is holds_hours and "library" in form.about


def test_amounts_that_may_be_a_price() -> None:
    for text in ("$1,772.00", "1.772,00 €", "20 euros", "Sale price £5", "US$ 30 a month"):
        assert holds_money(text), text
    for text in ("Free shipping over £149", "Save $15", "$40.00 off", "a voucher worth €50", "12 pages", ""):
        assert not holds_money(text), text


def test_which_questions_ask_for_an_address_or_the_price_of_it() -> None:
    for query in ("What is the address?", "postal address of the museum", "Wie lautet die Anschrift?"):
        form = asked_form(query)
        assert form is not None and form.held is holds_street and not form.own, query
    for query in (
        "How much does it cost?",
        "What is the price?",
        "price",
        "Was kostet das?",
        "How much is this course?",
    ):
        form = asked_form(query)
        assert form is not None and form.held is holds_money and form.own, query
    for query in ("How much does a seat for children cost?", "What is the IP address?", "Who addressed the crowd?"):
        assert asked_form(query) is None, query


def test_hours_of_a_form_that_is_not_known_are_found_by_words() -> None:
    page = "<h1>Baths</h1><table><tr><th>Opening hours<th>From<th>To<tr><td>Weekdays<td>8<td>20</table><p>Warm water."
    assert "Weekdays" in prunus.ask("What are the opening hours?", page).text


SHOP = """<title>Oak bench | River Shop</title><header>Free shipping over $90. Gift cards from $20.</header><main>
<h1>Oak bench</h1><p>$249.00</p><p>A bench of solid oak for two people that stays outside in any weather for years.</p>
<p>People who paid $300 for a bench of pine were less content after a winter than those who bought this one.</p></main>
<aside><h2>You may also like</h2><ul><li>Pine stool <b>$35.00</b><li>Lamp <b>$15.00</b></ul></aside>"""


def test_of_several_pages_no_price_is_the_one_that_is_meant() -> None:
    other = "<title>Fees</title><h1>Fees</h1><p>€5<p>The guided tour of the harbour does cost seven euros a person."
    found = prunus.ask("How much does it cost?", [SHOP, other], options=prunus.Options(min_confidence=0))
    assert all(citation.confidence != 0.6 for citation in found.citations)


def test_the_price_is_that_of_what_the_page_is_about() -> None:
    for query in ("How much does it cost?", "What is the price?"):
        assert prunus.ask(query, SHOP).citations[0].quote.startswith("$249.00"), query
        assert "$249.00" in prunus.prune(SHOP, query, 60, "text").text


def test_lines_of_an_address_come_together() -> None:
    page = PAGE.replace("Main Street 5 ·", "<br>5 Main Street<br>Hanover, NH 03755<br>")
    assert "5 Main Street\nHanover, NH 03755" in prunus.ask("What is the address?", page).citations[0].quote


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


def test_the_number_comes_without_the_menu_around_it() -> None:
    menu = "".join(f"<li><a href=/{name}>{name.title()}</a>" for name in ("tickets", "jobs", "press", "privacy"))
    for footer in (
        f"<div>Telephone: (511) 555-1234<ul>{menu}</ul></div>",
        f"<ul>{menu}<li>(511) 555-1234<li><a href=/terms>Terms</a></ul>",
        f"<div><a href=tel:1>(511) 555-1234</a></div><nav><ul>{menu}</ul></nav>",
    ):
        page = PAGE.replace("511 555 1234", "").replace("</footer>", f"{footer}</footer>")
        [found] = prunus.ask("What is the phone number?", page).citations
        assert found.quote.endswith("(511) 555-1234") and "Jobs" not in found.quote, footer


def test_the_number_of_somebody_else_is_no_answer() -> None:
    with pytest.raises(prunus.NothingFound):
        prunus.ask("What is the phone number of the Ritz hotel in Paris?", PAGE)
    with pytest.raises(prunus.NothingFound):
        prunus.ask("What is the email address?", PAGE.replace("desk@library-hanover.de", "Write to us"))
