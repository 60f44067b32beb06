"""Cache freshness by RFC 9111: how long a stored response is fresh, and how old it is.

Points in time are seconds since 1970. Header names are in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...core.text.numbers import bounded_int
from ..retry import http_date

HEURISTIC_STATUSES: Final = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
"""Statuses whose responses may be cached without explicit freshness (RFC 9110 §15.1); 206, a part of a page, is not."""

HEURISTIC_SHARE: Final = 0.1
"""Heuristic freshness as a share of the time since Last-Modified (RFC 9111 §4.2.2)."""

HEURISTIC_MOST: Final = 86_400.0
"""Longest heuristic freshness, in seconds."""

_FAR: Final = 2_147_483_648  # larger numbers of seconds count as this (RFC 9111 §1.2.2)
_LONGEST: Final = 8192  # code points of a header that are parsed
_DIRECTIVE: Final = re.compile(r"""([!#$%&'*+.^_`|~0-9A-Za-z-]++)(?:\s*+=\s*+("(?:[^"\\]|\\.)*"|[^\s,;"]*))?""")


def directives(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the Cache-Control directives by lower-case name; the first of a repeated directive counts."""
    rules: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(headers.get("cache-control", "")[:_LONGEST]):
        rules.setdefault(name.lower(), value.strip('"').strip())
    return rules


def seconds(value: str | None) -> float | None:
    """Parse a number of seconds; None if the value is not a number."""
    number = bounded_int(value, -1, least=-1, most=_FAR)
    return float(number) if number >= 0 else None


def date(headers: Mapping[str, str], name: str) -> float | None:
    """Parse a header as an HTTP date; None if it is absent or no date."""
    moment = http_date(headers.get(name, ""))
    return None if moment is None else moment.timestamp()


def lifetime(headers: Mapping[str, str], status: int, answered: float) -> float:
    """Return the freshness lifetime of a response in seconds (RFC 9111 §4.2.1, for a private cache).

    ``s-maxage`` is for shared caches only and is ignored.

    :param answered: when the response arrived; stands in for a missing Date header.
    """
    rules = directives(headers)
    if "no-cache" in rules:
        return 0.0
    if "max-age" in rules:
        return seconds(rules["max-age"]) or 0.0
    generated = date(headers, "date")
    generated = answered if generated is None else generated
    if "expires" in headers:
        expires = date(headers, "expires")  # an invalid date, such as "0", means expired
        return max(0.0, expires - generated) if expires is not None else 0.0
    changed = date(headers, "last-modified")
    if status in HEURISTIC_STATUSES and changed is not None:
        return min(max(0.0, (generated - changed) * HEURISTIC_SHARE), HEURISTIC_MOST)
    return 0.0


def is_explicit(headers: Mapping[str, str]) -> bool:
    """Tell whether a response has explicit freshness or is marked as cacheable."""
    rules = directives(headers)
    return "max-age" in rules or "expires" in headers or "public" in rules or "private" in rules


def age(headers: Mapping[str, str], requested: float, answered: float, now: float) -> float:
    """Return the age of a response in seconds (RFC 9111 §4.2.3).

    If the clock was set back after the response arrived, the true age is unknown and the response counts as very old.

    :param requested, answered: when the request was sent, and when the response arrived.
    """
    if answered > now + 1.0:
        return float(_FAR)
    generated = date(headers, "date")
    apparent = max(0.0, answered - generated) if generated is not None else 0.0
    corrected = (seconds(headers.get("age")) or 0.0) + max(0.0, answered - requested)
    return max(apparent, corrected) + max(0.0, now - answered)
