"""``searxng:http://host``: a self-hosted SearXNG metasearch engine.

Its JSON format is off by default, and then it responds with 403: add ``json`` under ``search: formats:`` in
its ``settings.yml``. The number of results per page depends on its engines, and cannot be requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.errors import BadInput
from ...core.types import SearchRequest
from ._wire import MAX_COUNT, Ask, Provider, query_with_sites, time_range, value_at

_TOPICS = {"news": "news", "science": "science", "it": "it"}


class Engine(Provider):
    """Requests results of an instance; a key is sent as a bearer token, for a reverse proxy before the instance."""

    name: ClassVar[str] = "searxng"
    wants_key: ClassVar[bool] = False
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "time_range", "include_domains", "exclude_domains", "topic"}
    )
    largest: ClassVar[int] = MAX_COUNT

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        if not self.address:
            raise BadInput("search searxng needs a URL: searxng:https://host", subject=self.name)
        base = self.address.removesuffix("/search")
        return Ask(
            f"{base}/search",
            {
                "q": query_with_sites(request),
                "format": "json",
                "categories": _TOPICS.get(request.topic, "general"),
                "language": request.language,
                "pageno": request.page,
                "time_range": time_range(request)[0],
                "safesearch": 1 if request.safe_search else 0,
            },
            {"authorization": f"Bearer {self._key}"} if self._key else {},
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = value_at(data, "results")
        if not isinstance(results, list):
            return None
        return [
            {**row, "snippet": row.get("content"), "published": row.get("publishedDate")}
            if isinstance(row, Mapping)
            else row
            for row in results
        ]

    def hint(self, status: int) -> str:
        """See :class:`prunus.web.search._wire.Provider`."""
        return (
            "; the JSON format of SearXNG may be off: add json to search.formats in its settings.yml"
            if status == 403
            else ""
        )
