"""``mojeek``: Mojeek, an independent index. Needs a key, which is part of the URL, so no message shows that URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Kind, Provider, country_of, language_of, time_range, value_at

_BOOST = 10
"""Value that the API documentation recommends: ranks pages of the language or region higher, removes no others."""


class Engine(Provider):
    """Requests web results. The API filters by one domain at most; Prunus filters the results by all."""

    name: ClassVar[str] = "mojeek"
    home: ClassVar[str] = "https://www.mojeek.com"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains"}
    )
    largest: ClassVar[int] = 100

    def language(self, request: SearchRequest) -> str:
        """Return the two-letter code of ISO 639-1, which the API takes; '' for a language without one."""
        code = language_of(request).upper()
        return code if len(code) == 2 else ""

    def country(self, request: SearchRequest) -> str:
        """See :class:`prunus.web.search._wire.Provider`."""
        return country_of(request)

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        count = min(request.count, self.largest)
        name, first, last = time_range(request)
        since = name
        if name == "week":  # the API has no word for a week
            since = f"{datetime.fromtimestamp(self._now(), UTC) - timedelta(days=7):%Y%m%d}"
        elif first:
            since = f"{first:%Y%m%d}"
        language, country = self.language(request), self.country(request)
        return Ask(
            f"{self.address}/search",
            {
                "api_key": self._key,
                "q": request.query,
                "fmt": "json",
                "s": (request.page - 1) * count + 1,
                "t": count,
                "site": request.include_domains[0] if len(request.include_domains) == 1 else "",
                "since": since,
                "before": f"{last + timedelta(days=1):%Y%m%d}" if last else "",  # the API excludes this day
                "lb": language,
                "lbb": _BOOST if language else "",
                "rb": country,
                "rbb": _BOOST if country else "",
                "safe": 1 if request.safe_search else 0,
            },
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the results; the API reports a rate limit or a refused key with HTTP 200."""
        status = value_at(data, "response", "status")
        if isinstance(status, str) and status.upper() != "OK":
            low = status.lower()
            kind: Kind = "rate" if "limit" in low else "key" if "key" in low or "auth" in low else "refused"
            raise self._failed(status[:200], kind)
        results = value_at(data, "response", "results")
        if results is None and isinstance(value_at(data, "response", "head"), Mapping):
            return []
        if not isinstance(results, list):
            return None
        return [
            {**row, "snippet": row.get("desc"), "published": row.get("cdate") or row.get("date")}
            if isinstance(row, Mapping)
            else row
            for row in results
        ]
