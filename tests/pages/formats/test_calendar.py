"""Calendars: what is when, where and with whom."""

from __future__ import annotations

import pytest

import prunus

EVENT = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:Harbour day
{fields}
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
END:VCALENDAR
"""


def shown(fields: str, name: str = "a.ics") -> list[str]:
    """Return the lines of a calendar with one event of some fields."""
    content = EVENT.format(fields=fields).replace("\n", "\r\n").encode()
    return prunus.clean(prunus.Page(content=content, url=name), "text").split("\n")


FIELDS = {
    "DTSTART:20260801T100000Z": ["Start", "2026-08-01 10:00 UTC"],
    'DTSTART;TZID="Europe/Berlin":20260801T100000': ["Start", "2026-08-01 10:00 (Europe/Berlin)"],
    "DTSTART;VALUE=DATE:20260704": ["Start", "2026-07-04"],
    "DTEND;VALUE=DATE:20260301": ["End", "2026-02-28"],
    "DTEND:20260301T000000": ["End", "2026-03-01 00:00"],
    "DTEND;VALUE=DATE:00010101": ["End", "00010101"],
    "DTSTART;VALUE=DATE:20260704\nDTEND;VALUE=DATE:20260705": ["Start", "2026-07-04", "End", "2026-07-04"],
    "DTSTART;VALUE=DATE:20260704\nDTEND;VALUE=DATE:20260704": ["Start", "2026-07-04", "End", "2026-07-04"],
    "DTSTART:soon": ["Start", "soon"],
    "LOCATION:Quay 3\\, Old Port": ["Place", "Quay 3, Old Port"],
    "DESCRIPTION:Bring boots\n  and rope.\\nCome early.": ["Description", "Bring boots and rope.", "Come early."],
    'ORGANIZER;CN="Lee: Ann":mailto:ann@example.org': ["Organizer", "Lee"],
    "ATTENDEE:MAILTO:bob@example.org\nATTENDEE;CN=Cid:mailto:c@example.org": ["Invited", "bob@example.org, Cid"],
    "x": [],
}


@pytest.mark.parametrize("fields", FIELDS)
@pytest.mark.parametrize("name", ["a.ics", ""])
def test_fields_of_an_event(fields: str, name: str) -> None:
    assert shown(fields, name) == ["Harbour day", *FIELDS[fields]]


def test_a_calendar_has_its_name_and_a_heading_for_each_event_and_task() -> None:
    content = "BEGIN:VCALENDAR\nX-WR-CALNAME:Port\nBEGIN:VEVENT\nSUMMARY:A\nEND:VEVENT\nBEGIN:VTODO\nSUMMARY:B\nEND:VTODO\nEND:VCALENDAR"
    assert (
        prunus.clean(prunus.Page(content=content.encode(), url="a.ics"), "markdown") == "Port\n\n# Port\n\n## A\n\n## B"
    )


@pytest.mark.parametrize("content", [b"BEGIN:VCALENDAR\nEND:VCALENDAR", b"x", b" "])
def test_a_calendar_without_an_event_is_named(content: bytes) -> None:
    with pytest.raises(prunus.BadPage, match=r"a\.ics"):
        prunus.clean(prunus.Page(content=content, url="a.ics"))
