"""The arithmetic of RFC 9111: how long a stored response is fresh, and how old it is. Seconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..retry import http_date

HEURISTIC_STATUSES: Final = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
"""Final status codes that may be kept without being told how long (RFC 9110 §15.1; 206 is a part of a page)."""

HEURISTIC_SHARE: Final = 0.1
"""Share of the time since the last change for which a page is taken to stay as it is (RFC 9111 §4.2.2)."""

HEURISTIC_MOST: Final = 86_400.0
"""Seconds for which a page may be fresh at most without its server saying so."""

_FAR: Final = 2_147_483_648  # what a cache reads larger numbers of seconds as (RFC 9111 §1.2.2)
_LONGEST: Final = 8192  # code points of a header that are read
_DIRECTIVE: Final = re.compile(r"""[\s,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,;"]*))?""")


def directives(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the directives of Cache-Control by lower-case name; of a repeated one the first counts."""
    found: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(headers.get("cache-control", "")[:_LONGEST]):
        found.setdefault(name.lower(), value.strip('"').strip())
    return found


def seconds(value: str | None) -> float | None:
    """Read a number of seconds; None where it is not one."""
    text = (value or "").strip()
    return float(min(int(text[:20]), _FAR)) if text.isascii() and text.isdigit() else None


def date(headers: Mapping[str, str], name: str) -> float | None:
    """Read a header that is an HTTP date; None where it is absent or not one."""
    found = http_date(headers.get(name, ""))
    return None if found is None else found.timestamp()


def lifetime(headers: Mapping[str, str], status: int, answered: float) -> float:
    """Return for how many seconds from its origin a response is fresh (RFC 9111 §4.2.1, for a private cache).

    ``s-maxage`` is for shared caches alone and is passed over.

    :param answered: when the response came, in place of a Date that it lacks.
    """
    found = directives(headers)
    if "no-cache" in found:
        return 0.0
    if "max-age" in found:
        return seconds(found["max-age"]) or 0.0
    made = date(headers, "date")
    made = answered if made is None else made
    if "expires" in headers:
        ends = date(headers, "expires")  # "0" and the like have expired
        return max(0.0, ends - made) if ends is not None else 0.0
    changed = date(headers, "last-modified")
    if status in HEURISTIC_STATUSES and changed is not None:
        return min(max(0.0, (made - changed) * HEURISTIC_SHARE), HEURISTIC_MOST)
    return 0.0


def is_explicit(headers: Mapping[str, str]) -> bool:
    """Tell whether a response says itself for how long it may be kept."""
    found = directives(headers)
    return "max-age" in found or "expires" in headers or "public" in found or "private" in found


def age(headers: Mapping[str, str], requested: float, answered: float, now: float) -> float:
    """Return the seconds since a response left its origin (RFC 9111 §4.2.3).

    A clock that was set back since then makes it old for ever: nobody knows better.
    """
    if answered > now + 1.0:
        return float(_FAR)
    made = date(headers, "date")
    apparent = max(0.0, answered - made) if made is not None else 0.0
    corrected = (seconds(headers.get("age")) or 0.0) + max(0.0, answered - requested)
    return max(apparent, corrected) + max(0.0, now - answered)
