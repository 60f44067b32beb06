"""``marginalia``: Marginalia Search, an index of small, text-heavy sites; works without a key.

Its results are under CC BY-NC-SA 4.0, unless a commercial key grants another licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, value_at


class Engine(Provider):
    """Requests web results. Without a key it uses the shared public one, which is often over its rate limit."""

    name: ClassVar[str] = "marginalia"
    home: ClassVar[str] = "https://api2.marginalia-search.com"
    wants_key: ClassVar[bool] = False
    filters: ClassVar[frozenset[str]] = frozenset({"page"})
    largest: ClassVar[int] = 100

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        return Ask(
            f"{self.address}/search",
            {
                "query": request.query,
                "count": min(request.count, self.largest),
                "page": request.page,
                "nsfw": 1 if request.safe_search else 0,
            },
            {"api-key": self._key or "public"},
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = value_at(data, "results")
        if not isinstance(results, list):
            return None
        return [{**row, "snippet": row.get("description")} if isinstance(row, Mapping) else row for row in results]
