"""``marginalia``: Marginalia Search, the small and text-heavy web; without a key it is asked as the public.

What it sends is under CC BY-NC-SA 4.0, unless a commercial key says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, at


class Engine(Provider):
    """Asks for web results. The shared public key is often asked too often."""

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
        results = at(data, "results")
        if not isinstance(results, list):
            return None
        return [{**row, "snippet": row.get("description")} if isinstance(row, Mapping) else row for row in results]
