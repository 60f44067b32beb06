"""``exa``: Exa, which searches by meaning and can return the text of pages. Needs a key; responses state the cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from ...core.text.numbers import bounded_float
from ...core.types import SearchRequest
from ._wire import Ask, Provider, country_of, time_range, value_at

_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}


class Engine(Provider):
    """Posts a query; the snippet joins the highlights of a page. The API has no second page of results."""

    name: ClassVar[str] = "exa"
    home: ClassVar[str] = "https://api.exa.ai"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"country", "time_range", "dates", "include_domains", "exclude_domains", "topic", "want_text"}
    )
    largest: ClassVar[int] = 100

    def country(self, request: SearchRequest) -> str:
        """See :class:`prunus.web.search._wire.Provider`; the API takes the two letters of ISO 3166-1."""
        return country_of(request)

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        contents: dict[str, Any] = {"highlights": True}
        if request.want_text:
            contents["text"] = True
        body: dict[str, Any] = {
            "query": request.query,
            "type": "auto",
            "numResults": min(request.count, self.largest),
            "contents": contents,
            "moderation": request.safe_search,
        }
        name, first, last = time_range(request)
        if name:
            first = (datetime.fromtimestamp(self._now(), UTC) - timedelta(days=_DAYS[name])).date()
        if first:
            body["startPublishedDate"] = f"{first}T00:00:00.000Z"
        if last:
            body["endPublishedDate"] = f"{last}T23:59:59.999Z"
        if request.include_domains:
            body["includeDomains"] = list(request.include_domains)
        if request.exclude_domains:
            body["excludeDomains"] = list(request.exclude_domains)
        if request.topic == "news":
            body["category"] = "news"
        if request.country:
            body["userLocation"] = self.country(request)
        return Ask(f"{self.address}/search", headers={"x-api-key": self._key}, body=body)

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = value_at(data, "results")
        return [self._row(row) for row in results] if isinstance(results, list) else None

    @staticmethod
    def _row(row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        values = row.get("highlights")
        highlights = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
        text = row.get("text")
        snippet = " … ".join(highlights) or (text[:500] if isinstance(text, str) else "")
        return {**row, "snippet": snippet, "published": row.get("publishedDate")}

    def cost(self, data: Mapping[str, Any]) -> float:
        """Return the cost that the response states, else the configured price."""
        dollars = value_at(data, "costDollars", "total")
        stated = None if isinstance(dollars, str) else bounded_float(dollars, None, least=-1.0)
        return stated if stated is not None and 0 <= stated < 1e6 else self._price
