"""``tavily``: Tavily, a search for language models that can return the text of pages. Needs a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, time_range, value_at

_TOPICS = ("general", "news", "finance")


class Engine(Provider):
    """Posts a query. The API has no second page of results, and takes no country codes, so no country filter."""

    name: ClassVar[str] = "tavily"
    home: ClassVar[str] = "https://api.tavily.com"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"time_range", "dates", "include_domains", "exclude_domains", "topic", "want_text"}
    )

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        name, first, last = time_range(request)
        body: dict[str, Any] = {
            "query": request.query,
            "max_results": min(request.count, self.largest),
            "search_depth": "basic",
            "topic": request.topic if request.topic in _TOPICS else "general",
            "include_raw_content": "text" if request.want_text else False,
        }
        if name:
            body["time_range"] = name
        elif first and last:
            body |= {"start_date": str(first), "end_date": str(last)}
        if request.include_domains:
            body["include_domains"] = list(request.include_domains)
        if request.exclude_domains:
            body["exclude_domains"] = list(request.exclude_domains)
        return Ask(f"{self.address}/search", headers={"authorization": f"Bearer {self._key}"}, body=body)

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = value_at(data, "results")
        if not isinstance(results, list):
            return None
        return [
            {
                **row,
                "snippet": row.get("content"),
                "text": row.get("raw_content"),
                "published": row.get("published_date"),
            }
            if isinstance(row, Mapping)
            else row
            for row in results
        ]
