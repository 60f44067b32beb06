"""What an answer says about itself: type, charset, dates, the headers that matter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from ..retry import http_date
from ..types import Page

KEPT: Final = frozenset(
    "content-type content-language content-disposition content-location last-modified etag cache-control expires "
    "date age vary link location retry-after x-robots-tag".split()
)
"""Headers that a page keeps."""

_TYPE: Final = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127})\s*(?:;|$)")
_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?\s*([A-Za-z0-9_.:+-]{1,40})""", re.IGNORECASE)


def page_of(url: str, status: int, headers: Mapping[str, str], content: bytes, now: float) -> Page:
    """Return one answer as a page.

    ``published`` is the Last-Modified date, for want of a better one: many servers say when a file was
    copied. What the page says about itself goes before it.

    :param headers: by lower-case name.
    :param now: when it was read, seconds since 1970.
    """
    kind = headers.get("content-type", "")
    found, charset = _TYPE.match(kind), _CHARSET.search(kind)
    changed = http_date(headers.get("last-modified", ""))
    return Page(
        content,
        url=url,
        final_url=url,
        media_type=found.group(1).lower() if found else "",
        charset=charset.group(1).lower() if charset else "",
        status=status,
        fetched_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        published=changed.isoformat(timespec="seconds") if changed else "",
        snapshot=hashlib.sha256(content).hexdigest(),
        headers={name: value for name, value in headers.items() if name in KEPT},
    )
