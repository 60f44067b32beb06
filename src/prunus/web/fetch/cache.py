"""The HTTP cache on disk: a private cache by RFC 9111, with stale-if-error of RFC 5861.

What may be kept, for how long it is fresh, how it is asked for again, and when it may stand in for
a server that fails. One file holds it (:mod:`._store`): safe with several processes and after a
kill at any moment, bounded in bytes, and every content is checked against its hash before it is
given out.

An entry is the answer to one request: where an address redirects, the redirect and the page that it
leads to are two entries.
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

from ...core.types import Page
from ._freshness import HEURISTIC_STATUSES, age, date, directives, is_explicit, lifetime, seconds
from ._store import CacheRow, Store, StoreInfo, bytes_of, known_of, page_of

DEFAULT_MAX_BYTES: Final = 1024 * 1024 * 1024
"""Bytes that the cache may hold."""

DEFAULT_STALE_IF_ERROR: Final = 86_400.0
"""Seconds past its freshness for which a page may stand in for a server that fails, where that says nothing."""

_NEVER_KEPT: Final = frozenset(
    """set-cookie set-cookie2 cookie authorization www-authenticate authentication-info proxy-authenticate
    proxy-authentication-info proxy-authorization proxy-connection connection keep-alive te trailer
    transfer-encoding upgrade""".split()
)
"""Headers that belong to one visitor or one connection."""

_OF_THE_CONTENT: Final = frozenset({"content-encoding", "content-length", "content-range", "content-type"})
"""Headers that a 304 must not change: they describe the content that is kept (RFC 9111 §3.2)."""

_UNDERSTOOD: Final = HEURISTIC_STATUSES | {302, 303, 307}
_GONE: Final = (404, 410)
_MOST_HEADERS: Final = 65_536  # code points of headers that an entry may have
_MOST_VARIANTS: Final = 8  # answers of one address that differ by what was asked for
_ANY: Final = "*"
_ETAG: Final = re.compile(r'(W/)?("?)[!#-\x7e]{1,1024}\2', re.ASCII)


class Cache:
    """Pages by address. Safe to use from several threads and processes.

    :param folder: where the file lies; made if it is not there.
    :param max_bytes: what may be kept; the least recently used goes first.
    :param request_headers: what every request carries, to tell variants apart (Vary).
    :param stale_if_error: seconds past its freshness for which a page may stand in for a server that
        fails, where the server says nothing; 0 never.
    :param clock: seconds since 1970.
    :raises BadInput: the folder cannot be made or written.
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
        self._asked = _lower(request_headers or {})
        self._stale_if_error = stale_if_error
        self._clock = clock

    def fresh(self, url: str) -> Page | None:
        """Return the page that may be used without asking its server, or None.

        Its ``Age`` and ``Cache-Status`` headers say that it comes from here (RFC 9111 §4, RFC 9211).
        """
        row = self._matching(url)
        if row is None:
            return None
        left = self._left(row)
        return self._page(row, url, f"hit; ttl={left:.0f}") if left > 0 else None

    def validators(self, url: str) -> dict[str, str]:
        """Return the headers that make a request conditional; none where there is nothing to compare with."""
        rows = self._store.rows(_key(url))
        headers = [row.meta["headers"] for row in rows]
        found = {}
        tags = list(dict.fromkeys(known["etag"] for known in headers if _ETAG.fullmatch(known.get("etag", ""))))
        if tags:
            found["if-none-match"] = ", ".join(tags)
        if len(rows) == 1 and date(headers[0], "last-modified") is not None:
            found["if-modified-since"] = headers[0]["last-modified"]
        return found

    def stored(
        self,
        url: str,
        page: Page,
        response_headers: Mapping[str, str],
        request_time: float,
        response_time: float,
        *,
        authorised: bool = False,
    ) -> None:
        """Keep a response if it may be kept; what it supersedes goes either way.

        Never kept: what says ``no-store``, parts (206), answers to a request that carried credentials,
        cookies, and errors that do not say for how long they hold. An error other than 404 and 410
        supersedes nothing, so that the older page can stand in for it.

        :param url: the address of the request that got this response, not of the first in a chain.
        :param response_headers: all headers; names in any case.
        :param request_time, response_time: seconds since 1970.
        :param authorised: the request carried credentials of any kind.
        """
        if authorised:
            return
        key, headers = _key(url), _kept(response_headers)
        wanted = self._may_keep(page.status, headers, response_time)
        if wanted or page.status < 400 or page.status in _GONE:
            for row in self._store.rows(key):
                if self._matches(row) or "no-store" in directives(headers):
                    self._store.remove(key, row.variant)
        if not wanted:
            return
        for row in self._store.rows(key)[_MOST_VARIANTS - 1 :]:
            self._store.remove(key, row.variant)
        meta = {
            "page": {**known_of(page), "headers": _kept(page.headers)},
            "headers": headers,
            "requested": request_time,
            "answered": response_time,
        }
        self._store.put(key, self._variant(headers), meta, bytes_of(page))

    def revalidated(self, url: str, response_headers: Mapping[str, str], now: float) -> Page | None:
        """Return the page that the server has confirmed (304), fresh again by the headers that came.

        :param now: when the answer came, seconds since 1970.
        :returns: None where no entry is the one that it confirms (removed, or replaced by another
            process): the caller asks again, without validators.
        """
        came = _kept(response_headers)
        row = self._confirmed(url, came)
        if row is None:
            return None
        told = {name: value for name, value in came.items() if name not in _OF_THE_CONTENT}
        headers = {**row.meta["headers"], **told}
        if "age" in headers and "age" not in came:
            del headers["age"]  # it told the age of the answer before
        known = row.meta["page"]
        shown = {name: told.get(name, value) for name, value in known["headers"].items()}
        confirmed = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        known = {**known, "headers": shown, "fetched_at": confirmed}
        meta = {"page": known, "headers": headers, "requested": now, "answered": now}
        content = self._store.content(row)
        if content is None:
            return None
        variant = self._variant(headers)
        if "no-store" in directives(came):
            self._store.remove(row.name, row.variant)
        elif variant == row.variant:
            self._store.annotate(row, meta)
        else:  # the server chose, for this request, what it had answered to another
            self._store.put(row.name, variant, meta, content)
        page = page_of(known, content, row.body)
        return replace(page, url=url, headers={**shown, "cache-status": "prunus; fwd=stale; fwd-status=304"})

    def stale(self, url: str) -> Page | None:
        """Return a page that may stand in for a server that fails, or None (RFC 5861 §4, RFC 9111 §4.2.4)."""
        row = self._matching(url)
        if row is None:
            return None
        rules = directives(row.meta["headers"])
        if "no-cache" in rules or "must-revalidate" in rules:
            return None
        allowed = seconds(rules["stale-if-error"]) if "stale-if-error" in rules else self._stale_if_error
        left = self._left(row)
        return self._page(row, url, f"hit; ttl={left:.0f}") if left > 0 or -left <= (allowed or 0.0) else None

    def info(self) -> StoreInfo:
        """Return what is kept now, where, and how much may be."""
        return self._store.info()

    def clear(self) -> int:
        """Remove everything; return how many entries there were.

        :raises BadInput: the file is busy or cannot be written.
        """
        return self._store.clear()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # --- which entry -----------------------------------------------------------------------------

    def _matching(self, url: str) -> CacheRow | None:
        """Return the latest entry that answers a request as ours is."""
        return next((row for row in self._store.rows(_key(url)) if self._matches(row)), None)

    def _matches(self, row: CacheRow) -> bool:
        return row.variant == self._variant(row.meta["headers"]) != _ANY

    def _variant(self, headers: Mapping[str, str]) -> str:
        """Return what of our request an answer depends on (RFC 9111 §4.1); ``*`` is known to nobody."""
        names = sorted({name.strip().lower() for name in headers.get("vary", "").split(",") if name.strip()})
        if "*" in names:
            return _ANY
        return json.dumps({name: " ".join(self._asked.get(name, "").split()) for name in names})

    def _confirmed(self, url: str, came: Mapping[str, str]) -> CacheRow | None:
        """Return the entry that a 304 speaks of (RFC 9111 §4.3.4)."""
        rows = self._store.rows(_key(url))
        for name in ("etag", "last-modified"):
            if name in came:
                same = [row for row in rows if _opaque(row.meta["headers"].get(name, "")) == _opaque(came[name])]
                return same[0] if same else None
        return rows[0] if len(rows) == 1 else next((row for row in rows if self._matches(row)), None)

    # --- what of it ------------------------------------------------------------------------------

    def _may_keep(self, status: int, headers: Mapping[str, str], answered: float) -> bool:
        """Tell whether a response may be kept, and would ever be of use (RFC 9111 §3)."""
        rules = directives(headers)
        if status < 200 or status in (206, 304) or sum(map(len, headers.values())) > _MOST_HEADERS:
            return False
        if "no-store" in rules and not ("must-understand" in rules and status in _UNDERSTOOD):
            return False
        if status not in HEURISTIC_STATUSES and not is_explicit(headers):
            return False
        compared = bool(_ETAG.fullmatch(headers.get("etag", ""))) or date(headers, "last-modified") is not None
        stands_in = not rules.keys() & {"no-cache", "must-revalidate"} and self._variant(headers) != _ANY
        return compared or stands_in or lifetime(headers, status, answered) > 0

    def _left(self, row: CacheRow) -> float:
        """Return the seconds for which an entry stays fresh; below 0 when it is stale."""
        headers, answered = row.meta["headers"], row.meta["answered"]
        fresh_for = lifetime(headers, row.meta["page"]["status"], answered)
        return fresh_for - age(headers, row.meta["requested"], answered, self._clock())

    def _page(self, row: CacheRow, url: str, status: str) -> Page | None:
        """Return an entry's page, with the headers that say where it comes from."""
        content = self._store.content(row)
        if content is None:
            return None
        known: Mapping[str, Any] = row.meta["page"]
        old = age(row.meta["headers"], row.meta["requested"], row.meta["answered"], self._clock())
        page = page_of(known, content, row.body)
        headers = {**page.headers, "age": f"{old:.0f}", "cache-status": f"prunus; {status}"}
        return replace(page, url=url, headers=headers)


def _key(url: str) -> str:
    """Return what an address is kept under: without its fragment, which no server sees."""
    return url.partition("#")[0]


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be kept, by lower-case name."""
    lower = _lower(headers)
    private = {name.strip().lower() for name in lower.get("connection", "").split(",")}
    return {name: value for name, value in lower.items() if name not in _NEVER_KEPT and name not in private}


def _opaque(validator: str) -> str:
    """Return a validator without its mark of weakness: a 304 may confirm weakly (RFC 9110 §13.1.2)."""
    return validator.strip().removeprefix("W/")
