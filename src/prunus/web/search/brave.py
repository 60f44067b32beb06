"""``brave``: Brave Search, an independent index. Needs a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, query_with_sites, same, time_range, value_at

_LAST_PAGE = 10
_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Engine(Provider):
    """Requests web results; the snippet joins all snippets of a page."""

    name: ClassVar[str] = "brave"
    home: ClassVar[str] = "https://api.search.brave.com/res/v1"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains", "exclude_domains"}
    )

    # https://api-dashboard.search.brave.com/api-reference/web/search/get; Brave's MCP server 2.1.4 has the whole lists
    languages: ClassVar[Mapping[str, str]] = {
        **same(
            "ar eu bn bg ca zh-hans zh-hant hr cs da nl en en-gb et fi fr gl de gu he hi hu is it kn ko lv lt ms ml"
        ),
        **same("mr pl pt-br pt-pt pa ro ru sr sk sl es sv ta te th tr uk vi"),
        "ja": "jp",
        "no": "nb",
        "pt": "pt-pt",  # Portuguese of another country than Brazil
    }
    countries: ClassVar[Mapping[str, str]] = same(
        "AR AU AT BE BR CA CL DK FI FR DE HK IN ID IT JP KR MY MX NL NZ NO CN PL PT PH RU SA ZA ES SE CH TW TR GB US"
    )

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        name, first, last = time_range(request)
        return Ask(
            f"{self.address}/web/search",
            {
                "q": query_with_sites(request)[:400],  # the API's limit
                "count": min(request.count, self.largest),
                "offset": min(request.page, _LAST_PAGE) - 1,
                "search_lang": self.language(request),
                "country": self.country(request),
                "freshness": f"{first}to{last}" if first else _FRESHNESS.get(name, ""),
                "safesearch": "moderate" if request.safe_search else "off",
                "extra_snippets": "true",
                "text_decorations": "false",
            },
            {"x-subscription-token": self._key},
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the web results; a response of type ``search`` without ``web`` means that there are none."""
        if "web" not in data:
            return [] if value_at(data, "type") == "search" else None
        results = value_at(data, "web", "results")
        return [self._row(row) for row in results] if isinstance(results, list) else None

    @staticmethod
    def _row(row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        extra = row.get("extra_snippets")
        snippets = [row.get("description"), *(extra if isinstance(extra, list) else [])]
        joined = " … ".join(snippet for snippet in snippets if isinstance(snippet, str) and snippet)
        return {**row, "snippet": joined, "published": row.get("page_age")}
