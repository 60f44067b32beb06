"""What an answer says about itself: type, charset, dates, the headers that matter, how long to wait."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from ..types import Page

KEPT: Final = frozenset(
    "content-type content-language content-disposition content-location last-modified etag cache-control expires "
    "date age vary link location retry-after x-robots-tag".split()
)
"""Headers that a page keeps."""

_TYPE: Final = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127})\s*(?:;|$)")
_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?\s*([A-Za-z0-9_.:+-]{1,40})""", re.IGNORECASE)
_SECONDS: Final = re.compile(r"\s*([0-9]{1,9})\s*")


def page_of(url: str, status: int, headers: Mapping[str, str], content: bytes, now: float) -> Page:
    """Return one answer as a page.

    ``published`` is the Last-Modified date, for want of a better one: many servers say when a file was
    copied. What the page says about itself goes before it.

    :param headers: by lower-case name.
    :param now: when it was read, seconds since 1970.
    """
    kind = headers.get("content-type", "")
    found, charset = _TYPE.match(kind), _CHARSET.search(kind)
    return Page(
        content,
        url=url,
        final_url=url,
        media_type=found.group(1).lower() if found else "",
        charset=charset.group(1).lower() if charset else "",
        status=status,
        fetched_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        published=_date(headers.get("last-modified", "")),
        snapshot=hashlib.sha256(content).hexdigest(),
        headers={name: value for name, value in headers.items() if name in KEPT},
    )


def wait_asked(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds that Retry-After asks to wait; negative where it does not say."""
    value = headers.get("retry-after", "")
    found = _SECONDS.fullmatch(value)
    if found:
        return float(found.group(1))
    moment = _moment(value)
    return max(0.0, moment.timestamp() - now) if moment is not None else -1.0


def _date(value: str) -> str:
    """Return an HTTP date in ISO form; '' for none."""
    moment = _moment(value)
    return moment.isoformat(timespec="seconds") if moment is not None else ""


def _moment(value: str) -> datetime | None:
    """Read an HTTP date."""
    try:
        moment = parsedate_to_datetime(value[:60])
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
