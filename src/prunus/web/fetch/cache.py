"""The HTTP cache on disk: a private cache by RFC 9111, with stale-if-error of RFC 5861.

This module decides which responses to store, how long they are fresh, how to revalidate them, and when a stale page
may replace a failed request. :mod:`._store` holds them in one file, which is safe with several processes and after a
kill at any moment, and bounded in bytes. Content is checked against its hash before use.

An entry is the response to one request: a redirect and the page at its target are two entries.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...core.text.numbers import bounded_int
from ...core.types import Page
from ..retry import http_date
from ._store import CacheRow, Store, StoreInfo, page_bytes, page_fields, restore_page

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


DEFAULT_MAX_BYTES: Final = 1024 * 1024 * 1024
"""Most bytes that the cache holds, unless configured otherwise."""

DEFAULT_STALE_IF_ERROR: Final = 86_400.0
"""Seconds for which a stale page may replace a failed request, unless its server sets ``stale-if-error``."""

_NEVER_STORED: Final = frozenset(
    """set-cookie set-cookie2 cookie authorization www-authenticate authentication-info proxy-authenticate
    proxy-authentication-info proxy-authorization proxy-connection connection keep-alive te trailer
    transfer-encoding upgrade""".split()
)
"""Headers that belong to one client or one connection; never stored."""

_CONTENT_HEADERS: Final = frozenset({"content-encoding", "content-length", "content-range", "content-type"})
"""Headers that a 304 must not update, because they describe the stored content (RFC 9111 §3.2)."""

_UNDERSTOOD: Final = HEURISTIC_STATUSES | {302, 303, 307}
_GONE: Final = (404, 410)
_MOST_HEADERS: Final = 65_536  # most code points of an entry's headers
_MOST_VARIANTS: Final = 8  # responses of one URL that differ by request headers (Vary)
_ANY: Final = "*"
_ETAG: Final = re.compile(r'(W/)?("?)[!#-\x7e]{1,1024}\2', re.ASCII)


class Cache:
    """Cached pages by URL. Safe to use from several threads and processes.

    :param folder: folder of the file; created if missing.
    :param max_bytes: most bytes to store; the least recently used page is evicted first.
    :param request_headers: headers of every request, which select among variants of a page (Vary).
    :param stale_if_error: seconds for which a stale page may replace a failed request, unless the server sets
        ``stale-if-error``; 0 for never.
    :param clock: returns seconds since 1970.
    :raises BadInput: the folder cannot be created or written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        request_headers: Mapping[str, str] | None = None,
        stale_if_error: float = DEFAULT_STALE_IF_ERROR,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = Store(folder / "cache.sqlite", max_bytes, clock)
        self._request_headers = _lower(request_headers or {})
        self._stale_if_error = stale_if_error
        self._clock = clock

    def fresh(self, url: str) -> Page | None:
        """Return the fresh page of a URL, which needs no request; None without a fresh page.

        Its ``Age`` and ``Cache-Status`` headers tell that it comes from the cache (RFC 9111 §4, RFC 9211).
        """
        row = self._matching(url)
        if row is None:
            return None
        seconds_fresh = self._seconds_fresh(row)
        return self._page(row, url, f"hit; ttl={seconds_fresh:.0f}") if seconds_fresh > 0 else None

    def validators(self, url: str) -> dict[str, str]:
        """Return the headers that make a request conditional; empty without a stored validator."""
        rows = self._store.rows(_key(url))
        headers = [row.meta["headers"] for row in rows]
        conditions = {}
        tags = list(dict.fromkeys(stored["etag"] for stored in headers if _ETAG.fullmatch(stored.get("etag", ""))))
        if tags:
            conditions["if-none-match"] = ", ".join(tags)
        if len(rows) == 1 and date(headers[0], "last-modified") is not None:
            conditions["if-modified-since"] = headers[0]["last-modified"]
        return conditions

    def store(
        self,
        url: str,
        page: Page,
        response_headers: Mapping[str, str],
        request_time: float,
        response_time: float,
        *,
        authorised: bool = False,
    ) -> None:
        """Store a response if the rules allow it, and remove the entries that it supersedes.

        Never stored: ``no-store`` responses, parts (206), responses to requests with credentials or cookies, and
        errors without explicit freshness. An error that is not stored, other than 404 and 410, removes
        nothing, so that the older page can still replace the failed request.

        :param url: URL of the request for this response, not the first URL of a chain of redirects.
        :param response_headers: all headers; names in any case.
        :param request_time, response_time: when the request was sent and the response arrived, seconds since 1970.
        :param authorised: whether the request carried credentials of any kind.
        """
        if authorised:
            return
        key, headers = _key(url), _storable_headers(response_headers)
        may_store = self._may_store(page.status, headers, response_time)
        if may_store or page.status < 400 or page.status in _GONE:
            for row in self._store.rows(key):
                if self._matches(row) or "no-store" in directives(headers):
                    self._store.remove(key, row.variant)
        if not may_store:
            return
        for row in self._store.rows(key)[_MOST_VARIANTS - 1 :]:
            self._store.remove(key, row.variant)
        meta = {
            "page": {**page_fields(page), "headers": _storable_headers(page.headers)},
            "headers": headers,
            "requested": request_time,
            "answered": response_time,
        }
        self._store.put(key, self._variant(headers), meta, page_bytes(page))

    def revalidate(self, url: str, response_headers: Mapping[str, str], now: float) -> Page | None:
        """Return the page that the server confirmed with a 304, and refresh its entry with the new headers.

        :param response_headers: headers of the 304; names in any case.
        :param now: when the 304 arrived, seconds since 1970.
        :returns: None if no entry matches the 304 (removed, or replaced by another process): the caller repeats
            the request without validators.
        """
        new_headers = _storable_headers(response_headers)
        row = self._confirmed(url, new_headers)
        if row is None:
            return None
        updates = {name: value for name, value in new_headers.items() if name not in _CONTENT_HEADERS}
        headers = {**row.meta["headers"], **updates}
        if "age" in headers and "age" not in new_headers:
            del headers["age"]  # the age of the earlier response
        fields = row.meta["page"]
        page_headers = {name: updates.get(name, value) for name, value in fields["headers"].items()}
        confirmed = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        fields = {**fields, "headers": page_headers, "fetched_at": confirmed}
        meta = {"page": fields, "headers": headers, "requested": now, "answered": now}
        content = self._store.content(row)
        if content is None:
            return None
        variant = self._variant(headers)
        if "no-store" in directives(new_headers):
            self._store.remove(row.name, row.variant)
        elif variant == row.variant:
            self._store.annotate(row, meta)
        else:  # the 304 selects an entry that was stored for other request headers
            self._store.put(row.name, variant, meta, content)
        page = restore_page(fields, content, row.body)
        return replace(page, url=url, headers={**page_headers, "cache-status": "prunus; fwd=stale; fwd-status=304"})

    def stale(self, url: str) -> Page | None:
        """Return a page that may replace a failed request, or None (RFC 5861 §4, RFC 9111 §4.2.4)."""
        row = self._matching(url)
        if row is None:
            return None
        rules = directives(row.meta["headers"])
        if "no-cache" in rules or "must-revalidate" in rules:
            return None
        allowed = seconds(rules["stale-if-error"]) if "stale-if-error" in rules else self._stale_if_error
        seconds_fresh = self._seconds_fresh(row)
        usable = seconds_fresh > 0 or -seconds_fresh <= (allowed or 0.0)
        return self._page(row, url, f"hit; ttl={seconds_fresh:.0f}") if usable else None

    def info(self) -> StoreInfo:
        """Return the size, path and limit of the cache."""
        return self._store.info()

    def clear(self) -> int:
        """Remove all entries; return their number.

        :raises BadInput: the file is locked or cannot be written.
        """
        return self._store.clear()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # --- finding the entry -----------------------------------------------------------------------------

    def _matching(self, url: str) -> CacheRow | None:
        """Return the latest entry that matches our request headers."""
        return next((row for row in self._store.rows(_key(url)) if self._matches(row)), None)

    def _matches(self, row: CacheRow) -> bool:
        return row.variant == self._variant(row.meta["headers"]) != _ANY

    def _variant(self, headers: Mapping[str, str]) -> str:
        """Return the request headers that select a response (Vary, RFC 9111 §4.1) as JSON; ``*`` matches no request."""
        names = sorted({name.strip().lower() for name in headers.get("vary", "").split(",") if name.strip()})
        if "*" in names:
            return _ANY
        return json.dumps({name: " ".join(self._request_headers.get(name, "").split()) for name in names})

    def _confirmed(self, url: str, new_headers: Mapping[str, str]) -> CacheRow | None:
        """Return the entry that a 304 confirms (RFC 9111 §4.3.4)."""
        rows = self._store.rows(_key(url))
        for name in ("etag", "last-modified"):
            if name in new_headers:
                tag = _opaque_tag(new_headers[name])
                return next((row for row in rows if _opaque_tag(row.meta["headers"].get(name, "")) == tag), None)
        return rows[0] if len(rows) == 1 else next((row for row in rows if self._matches(row)), None)

    # --- rules and pages ------------------------------------------------------------------------------

    def _may_store(self, status: int, headers: Mapping[str, str], answered: float) -> bool:
        """Tell whether a response may be stored, and could ever be reused (RFC 9111 §3)."""
        rules = directives(headers)
        if status < 200 or status in (206, 304) or sum(map(len, headers.values())) > _MOST_HEADERS:
            return False
        if "no-store" in rules and not ("must-understand" in rules and status in _UNDERSTOOD):
            return False
        if status not in HEURISTIC_STATUSES and not is_explicit(headers):
            return False
        has_etag = bool(_ETAG.fullmatch(headers.get("etag", "")))
        can_be_revalidated = has_etag or date(headers, "last-modified") is not None
        can_replace_failure = not rules.keys() & {"no-cache", "must-revalidate"} and self._variant(headers) != _ANY
        return can_be_revalidated or can_replace_failure or lifetime(headers, status, answered) > 0

    def _seconds_fresh(self, row: CacheRow) -> float:
        """Return the seconds for which an entry stays fresh; negative for a stale entry."""
        headers, answered = row.meta["headers"], row.meta["answered"]
        fresh_for = lifetime(headers, row.meta["page"]["status"], answered)
        return fresh_for - age(headers, row.meta["requested"], answered, self._clock())

    def _page(self, row: CacheRow, url: str, status: str) -> Page | None:
        """Return an entry's page, with ``Age`` and ``Cache-Status`` headers."""
        content = self._store.content(row)
        if content is None:
            return None
        fields: Mapping[str, Any] = row.meta["page"]
        age_seconds = age(row.meta["headers"], row.meta["requested"], row.meta["answered"], self._clock())
        page = restore_page(fields, content, row.body)
        headers = {**page.headers, "age": f"{age_seconds:.0f}", "cache-status": f"prunus; {status}"}
        return replace(page, url=url, headers=headers)


def _key(url: str) -> str:
    """Return the key of a URL: the URL without its fragment, which is never sent."""
    return url.partition("#")[0]


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _storable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be stored, by lower-case name."""
    lower = _lower(headers)
    private = {name.strip().lower() for name in lower.get("connection", "").split(",")}
    return {name: value for name, value in lower.items() if name not in _NEVER_STORED and name not in private}


def _opaque_tag(validator: str) -> str:
    """Return a validator without its weakness mark: a 304 compares weakly (RFC 9110 §13.1.2)."""
    return validator.strip().removeprefix("W/")
