"""``brave``: Brave Search, an index of its own; a key is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, at, time_range, with_sites

_LAST_PAGE = 10
_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Engine(Provider):
    """Asks for web results; further snippets of a page are joined to its first."""

    name: ClassVar[str] = "brave"
    home: ClassVar[str] = "https://api.search.brave.com/res/v1"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains", "exclude_domains"}
    )

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        name, first, last = time_range(request)
        return Ask(
            f"{self.address}/web/search",
            {
                "q": with_sites(request)[:400],  # its limit
                "count": min(request.count, self.largest),
                "offset": min(request.page, _LAST_PAGE) - 1,
                "search_lang": request.language,
                "country": request.country.upper(),
                "freshness": f"{first}to{last}" if first else _FRESHNESS.get(name, ""),
                "safesearch": "moderate" if request.safe_search else "off",
                "extra_snippets": "true",
                "text_decorations": "false",
            },
            {"x-subscription-token": self._key},
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """An answer without ``web`` has no web results: that is how it says that there are none."""
        if "web" not in data:
            return [] if at(data, "type") == "search" else None
        results = at(data, "web", "results")
        return [self._row(row) for row in results] if isinstance(results, list) else None

    @staticmethod
    def _row(row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        more = row.get("extra_snippets")
        snippets = [row.get("description"), *(more if isinstance(more, list) else [])]
        said = " … ".join(one for one in snippets if isinstance(one, str) and one)
        return {**row, "snippet": said, "published": row.get("page_age")}
