"""E-mail: header fields, text and names of attachments; wrong charsets are corrected."""

from __future__ import annotations

import quopri
from base64 import b64encode
from email.message import EmailMessage
from typing import Any

import pytest
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.eml import Engine


def message(subject: str = "Tides & ports") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Date"] = (
        "Ann Müller <ann@example.org>",
        "ben@example.org",
        "Wed, 01 May 2024 10:00:00 +0000",
    )
    made["Subject"] = subject
    made.set_content("Hello Ben,\n\nthe ferry leaves at noon.\n")
    return made


FIELDS = "<dl><dt>From<dd>Ann Müller &lt;ann@example.org><dt>To<dd>ben@example.org<dt>Date<dd>Wed, 01 May 2024 10:00:00 +0000</dl>"
HEAD = f"<title>Tides & ports</title><h1>Tides & ports</h1>{FIELDS}"
TEXT = "<p>Hello Ben,<p>the ferry leaves at noon."


def test_a_plain_message() -> None:
    assert cleaned(Engine(), message().as_bytes()) == HEAD + TEXT


def test_the_html_version_is_shown_and_attachments_are_named() -> None:
    made = message()
    made.add_alternative(
        "<html><head><title>x</title></head><body><p>Hello <b>Ben</b> <img src='cid:map' alt='A map'>"
        "<table><tr><td colspan=2>a</table><!-- open",
        subtype="html",
    )
    made.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Fähre.pdf")
    made.add_attachment("a,b\n", subtype="csv", filename="ports.csv")
    assert cleaned(Engine(), made.as_bytes()) == (
        f'{HEAD}<p>Hello <b>Ben</b> <img src=cid:map alt="A map"></p><table><tr><td colspan=2>a</table>'
        "<section><h2>Attachments</h2><ul><li>Fähre.pdf<li>ports.csv</ul></section>"
    )


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", ""])
def test_a_message_that_is_utf_16_or_text_is_read_whatever_charset_it_declares(codec: str) -> None:
    words = "From: ann@example.org\nSubject: Fähre\nContent-Type: text/plain; charset=iso-8859-1\n\nMürwik um zwölf.\n"
    found = cleaned(Engine(), words.encode(codec) if codec else words)
    assert "<h1>Fähre</h1>" in found and "<p>Mürwik um zwölf." in found


def test_an_html_version_that_shows_nothing_gives_way_to_plain_text() -> None:
    made = message()
    made.add_alternative("<p hidden>nothing</p>", subtype="html")
    assert cleaned(Engine(), made.as_bytes()) == HEAD + TEXT


@pytest.mark.parametrize(("encoding", "body"), [("base64", b64encode), ("quoted-printable", quopri.encodestring)])
def test_a_message_inside_that_is_encoded_is_read(encoding: str, body: Any) -> None:
    inner = "From: c@x.org\r\nSubject: Inner\r\n\r\nThe lock = open, since 9\u202fMay.\r\n".encode()
    outer = (
        b"From: a@x.org\nSubject: Outer\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n"
        b"Content-Transfer-Encoding: " + encoding.encode() + b"\n\n" + body(inner) + b"\n--b--\n"
    )
    text = tree_of(Engine(), outer).canonical
    assert "Inner" in text and "The lock = open, since 9" in text and "=3D" not in text


def test_an_invitation_says_when_and_where_beside_the_words_of_the_mail() -> None:
    made = message("Tides meeting")
    made.set_content("Please come.")
    made.add_alternative(
        "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VTIMEZONE\r\nDTSTART:19700329T020000\r\nEND:VTIMEZONE\r\n"
        "BEGIN:VEVENT\r\nSUMMARY:Tides\\, and\r\n  ports\r\nDTSTART;TZID=Europe/Berlin:20240304T103000\r\nDTEND:20240304T113000Z\r\n"
        "LOCATION:Pier 4\r\nORGANIZER;CN=Ina Wolf:mailto:ina@x.org\r\nATTENDEE:mailto:bo@x.org\r\n"
        "BEGIN:VALARM\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        subtype="calendar",
    )
    text = " ".join(tree_of(Engine(), made.as_bytes()).canonical.split())
    assert (
        "Please come." in text
        and "Event Tides, and ports" in text
        and "Place Pier 4 Organizer Ina Wolf Invited bo@x.org" in text
    )
    assert "Start 2024-03-04 10:30 (Europe/Berlin) End 2024-03-04 11:30 UTC" in text
    assert "1970" not in text and "Reminder" not in text


def test_lines_that_the_writer_ended_stay_lines_and_wrapped_lines_are_joined() -> None:
    made = message()
    made.set_content(
        "Dear Bo,\n\nthe gauge at the northern pier was read twice a day in the whole\nof May, and nothing was found.\n\n"
        "Ina Wolf\nPier 4\n12345 Port\n\n> Was it read?\n> And when?\n"
    )
    html = cleaned(Engine(), made.as_bytes())
    assert "the whole\nof May" in html or "the whole of May" in html
    assert "Ina Wolf<br>Pier 4<br>12345 Port" in html and "Was it read?<br>> And when?" in html


@pytest.mark.parametrize(
    ("delsp", "joined"), [("; delsp=yes", "五月 12 50x"), ("; DelSp=no", "五 月 12  50 x"), ("", "五 月 12  50 x")]
)
def test_a_wrapped_line_goes_on_without_its_space_where_the_mail_says_so(delsp: str, joined: str) -> None:
    mail = f"From: a@b.org\nContent-Type: text/plain; charset=utf-8; format=flowed{delsp}\n\n五 \n月 12  \n50 \nx\n-- \nAnn"
    found = tree_of(Engine(), mail.encode()).canonical
    assert found.split("\n")[-3:] == [" ".join(joined.split()), "--", "Ann"]


def test_messages_inside_messages_to_a_depth() -> None:
    made = message("level 0")
    for level in range(1, 5):
        outer = message(f"level {level}")
        outer.add_attachment(made)
        made = outer
    found = cleaned(Engine(max_depth=2), made.as_bytes())
    assert found.count("<section>") == 3 and "<h3>level 2</h3>" in found
    assert "<section><h4>Attachments</h4><ul><li>level 1</ul></section>" in found and "level 0" not in found


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (b"Content-Type: text/plain; charset=utf-8", "Glücksburg an der Förde".encode("cp1252")),
        (b"Content-Type: text/plain; charset=klingon", "Glücksburg an der Förde".encode()),
        (b"Content-Type: text/plain; charset=us-ascii", "Glücksburg an der Förde".encode()),
        (b"X-None: 1", "Glücksburg an der Förde".encode()),
        (b"Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable", b"Gl=FCcksburg an der F=F6rde"),
        (b"Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64", b"R2zDvGNrc2J1cmcgYW4gZGVyIEbDtnJkZQ=="),
    ],
)  # fmt: skip
def test_a_wrong_charset_is_corrected(header: bytes, body: bytes) -> None:
    assert "Glücksburg an der Förde" in cleaned(Engine(), b"From: a\n" + header + b"\n\n" + body)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (b"=?utf-8?q?F=C3=A4hre?= =?utf-8?b?IG5hY2ggS8O2bG4=?=", "Fähre nach Köln"), ("Fähre".encode(), "Fähre"),
        ("Fähre".encode("cp1252"), "Fähre"), (b"=?klingon?q?x=41?=", "xA"), (b"=?utf-8?b?broken", "=?utf-8?b?broken"), (b"a\n  b", "a b"),
    ],
)  # fmt: skip
def test_the_subject_is_decoded(subject: bytes, expected: str) -> None:
    assert f"<h1>{expected}</h1>" in cleaned(Engine(), b"From: a\nSubject: " + subject + b"\n\nx")


def test_a_mailbox_is_its_messages() -> None:
    box = b"".join(
        b"From ann@example.org Wed May  1 10:00:00 2024\n" + message(f"Nr {n}").as_bytes() + b"\n" for n in range(3)
    )
    found = cleaned(Engine(), box)
    assert found.count("<article>") == 3 and [f"<h1>Nr {n}</h1>" in found for n in range(3)] == [True] * 3
    assert "Messages 1 to 2 of 3 are shown." in cleaned(Engine(max_messages=2), box)


BAD = {
    "empty": (b"", "empty"), "words": (b"just words", "no e-mail message"), "binary": (b"\x00\x01\x02" * 90, "binary"),
    "header only": (b"X-A: b\n\n", "holds no text"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_message_is_one_clear_line(content: bytes, reason: str) -> None:
    with pytest.raises(BadPage, match=reason):
        Engine().to_html(Page(content, url="x.eml"))


def nested(depth: int) -> bytes:
    return (
        b"From: a\n"
        + b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(depth))
        + b"\nx"
    )


HOSTILE = {
    "nested": nested(3000), "many parts": b"From: a\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 50_000,
    "a long header": b"From: " + b"=?utf-8?q?a?= " * 100_000 + b"\n\nx", "many headers": b"From: a\n" * 200_000 + b"\nx",
    "messages": b"From: a\n" + b"Content-Type: message/rfc822\n\n" * 3000 + b"x", "mailbox": b"From a\n\n" * 100_000,
    "parameters": b"From: a\nContent-Type: text/plain; " + b"a*0*=x; " * 20_000 + b"\n\nx",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_messages_take_seconds_at_most(content: bytes) -> None:
    with at_most(10):
        try:
            assert len(Engine().to_html(Page(content))) < 10_000_000
        except BadPage as error:
            assert "nested" in str(error) or "no text" in str(error)  # noqa: PT017 - some are refused


def test_damage_gives_html_or_one_clear_line() -> None:
    made = message()
    made.add_alternative("<p>Hello <b>Ben</b>", subtype="html")
    made.add_attachment(b"x", maintype="application", subtype="pdf", filename="Fähre.pdf")
    assert survives_damage(Engine(), made.as_bytes(), rounds=200) > 100


def test_pieces_of_a_parameter_with_and_without_numbers_leave_the_text_readable() -> None:
    mixed = b'Subject: Tides\nContent-Type: multipart/mixed; boundary="x"; a*0=b; a*=c\n\n--x\n\nIt opened in 1932.\n--x--\n'
    assert "1932" in Engine().to_html(Page(mixed, url="x.eml"))
