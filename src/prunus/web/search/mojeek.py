"""``mojeek``: Mojeek, an index of its own; a key is needed, and goes into the address, which no message shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Kind, Provider, at, time_range

_BOOST = 10
"""Recommended by its documentation: pages of a language or region come higher, others stay."""


class Engine(Provider):
    """Asks for web results; it limits a search to one domain at most, further ones are sorted out here."""

    name: ClassVar[str] = "mojeek"
    home: ClassVar[str] = "https://www.mojeek.com"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains"}
    )
    largest: ClassVar[int] = 100

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        count = min(request.count, self.largest)
        name, first, last = time_range(request)
        since = name
        if name == "week":  # it has no such word
            since = f"{datetime.fromtimestamp(self._now(), UTC) - timedelta(days=7):%Y%m%d}"
        elif first:
            since = f"{first:%Y%m%d}"
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
                "before": f"{last + timedelta(days=1):%Y%m%d}" if last else "",  # up to, but not including
                "lb": request.language.upper(),
                "lbb": _BOOST if request.language else "",
                "rb": request.country.upper(),
                "rbb": _BOOST if request.country else "",
                "safe": 1 if request.safe_search else 0,
            },
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """An answer says with HTTP 200, too, that a limit is reached or a key is refused."""
        status = at(data, "response", "status")
        if isinstance(status, str) and status.upper() != "OK":
            low = status.lower()
            kind: Kind = "rate" if "limit" in low else "key" if "key" in low or "auth" in low else "refused"
            raise self._failed(status[:200], kind)
        results = at(data, "response", "results")
        if results is None and isinstance(at(data, "response", "head"), Mapping):
            return []
        if not isinstance(results, list):
            return None
        return [
            {**row, "snippet": row.get("desc"), "published": row.get("cdate") or row.get("date")}
            if isinstance(row, Mapping)
            else row
            for row in results
        ]
