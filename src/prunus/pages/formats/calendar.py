"""``calendar``: events and tasks of iCalendar files (RFC 5545), also of invitations in mails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from ...core.types import Page
from ._common.write import document, escape_lines, escape_text, note, page_error, text_of

_SHOWN: Final = ("VEVENT", "VTODO", "VJOURNAL")
_FIELDS: Final = {
    "DTSTART": "Start",
    "DTEND": "End",
    "DURATION": "Duration",
    "DUE": "Due",
    "RRULE": "Repeats",
    "LOCATION": "Place",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Invited",
    "STATUS": "Status",
    "URL": "Link",
    "DESCRIPTION": "Description",
}
_TIMES: Final = ("DTSTART", "DTEND", "DUE")
_FOLD: Final = re.compile(r"\n[ \t]")
_UNESCAPE: Final = re.compile(r"\\([nN,;\\])")
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(?:\d\d)?(Z?))?$")
_NAME: Final = re.compile(r'CN="?([^";:]+)')
_ZONE: Final = re.compile(r'TZID="?([^";:]+)')
_LINE: Final = re.compile(r'((?:[^":]|"[^"]*")*):')
"""Name and parameters of a line: a quoted value may hold a colon."""


class Engine:
    """Each event is a heading, its summary, with its fields as pairs. Alarms and rules of time zones are left out.

    :param max_events: events that are shown; default 5,000. A note gives the total.
    """

    name = "calendar"
    media_types = ("text/calendar",)
    suffixes = (".ics", ".ical", ".ifb")

    def __init__(self, max_events: int = 5000) -> None:
        self._max_events = max_events

    def to_html(self, page: Page) -> str:
        """Return the events as HTML.

        :raises BadPage: the content is empty or binary, or holds no event.
        """
        text = text_of(page, "a calendar")
        title, events = "", []
        for kind, pairs in _components(text):
            if kind == "VCALENDAR":
                title = "".join(pairs.get("X-WR-CALNAME", []))
            else:
                events.append(pairs)
        if not events:
            raise page_error(page, "this calendar holds no event")
        body = [f"<h1>{escape_text(title)}</h1>"] if title else []
        level = 2 if title or len(events) > 1 else 1
        for pairs in events[: self._max_events]:
            summary = ", ".join(pairs.get("SUMMARY", [])) or "Event"
            body.append(f"<section><h{level}>{escape_text(summary)}</h{level}>{_list(pairs)}</section>")
        if len(events) > self._max_events:
            body.append(note(f"Events 1 to {self._max_events:,} of {len(events):,} are shown."))
        return document(body, title)


def invitation(text: str) -> str:
    """Return the events of a calendar inside a mail as HTML: pairs of name and value."""
    events = [pairs for kind, pairs in _components(text) if kind != "VCALENDAR"]
    return "".join(_list(pairs, "Event") for pairs in events)


def _list(pairs: dict[str, list[str]], summary: str = "") -> str:
    """Return the fields of an event as a list of pairs.

    :param summary: what to call its summary; '' leaves it out.
    """
    shown = {summary: pairs.get("SUMMARY", [])} if summary else {}
    shown |= {label: pairs.get(field, []) for field, label in _FIELDS.items()}
    written = {label: escape_lines(", ".join(values)) for label, values in shown.items() if values}
    rows = "".join(f"<dt>{label}</dt><dd>{value}</dd>" for label, value in written.items())
    return f"<dl>{rows}</dl>" if rows else ""


def _components(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the kind and the fields of each event, task and note, and of the calendar itself when it ends."""
    inside: list[str] = []
    calendar: dict[str, list[str]] = {}
    pairs: dict[str, list[str]] = {}
    for line in _FOLD.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n"):
        named = _LINE.match(line)
        if not named:
            continue
        name, _, parameters = named[1].partition(";")
        name, value = name.strip().upper(), line[named.end() :].strip()
        if name == "BEGIN":
            inside.append(value.upper())
            pairs = {} if inside[-1] in _SHOWN else pairs
        elif name == "END" and inside:
            kind = inside.pop()
            if kind in _SHOWN and pairs:
                start, end = ("".join(pairs.get(name, [])) for name in ("DTSTART", "DTEND"))
                if len(start) == len(end) == len("2026-07-04") and end < start:  # a day that ends on itself
                    pairs["DTEND"] = [start]
                yield kind, pairs
                pairs = {}
        elif inside and value and (name == "SUMMARY" or name in _FIELDS) and inside[-1] in _SHOWN:
            pairs.setdefault(name, []).append(_value(name, parameters, value))
        elif inside[-1:] == ["VCALENDAR"] and name == "X-WR-CALNAME":
            calendar[name] = [_plain(value)]
    yield "VCALENDAR", calendar


def _value(name: str, parameters: str, value: str) -> str:
    """Return the value of a field as a reader is shown it."""
    if name in _TIMES:
        zone = _ZONE.search(parameters)
        return _moment(name, value) + (f" ({zone[1]})" if zone else "")
    if name in ("ORGANIZER", "ATTENDEE"):
        person = _NAME.search(parameters)
        return person[1] if person else re.sub("^mailto:", "", value, flags=re.I)
    return _plain(value)


def _plain(value: str) -> str:
    return _UNESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value).strip()


def _moment(name: str, value: str) -> str:
    """Return a day or a time as ``2026-07-04 10:00 UTC``. Files state the day after the last as the end of days."""
    found = _MOMENT.match(value)
    if not found:
        return value
    year, month, day, hour, minute, zulu = found.groups()
    if hour:
        return f"{year}-{month}-{day} {hour}:{minute}{' UTC' if zulu else ''}"
    if name == "DTEND":
        try:
            return str(date.fromisoformat(f"{year}-{month}-{day}") - timedelta(days=1))
        except (ValueError, OverflowError):  # no day of any year
            return value
    return f"{year}-{month}-{day}"
