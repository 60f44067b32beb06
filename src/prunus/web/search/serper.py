"""``serper``: Google's results through Serper. Needs a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.types import SearchRequest
from ._wire import Ask, Provider, country_of, language_of, query_with_sites, time_range, value_at


class Engine(Provider):
    """Posts a query; the topic ``news`` requests news results."""

    name: ClassVar[str] = "serper"
    home: ClassVar[str] = "https://google.serper.dev"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains", "exclude_domains", "topic"}
    )
    # Google's codes of its surface, https://developers.google.com/custom-search/docs/xml_results_appendices, in small
    # letters; what is not in this table has the code of ISO 639
    languages: ClassVar[Mapping[str, str]] = {
        "he": "iw",
        "pt-br": "pt-br",
        "pt": "pt-pt",
        "zh-hans": "zh-cn",
        "zh-hant": "zh-tw",
    }
    largest: ClassVar[int] = 100

    def language(self, request: SearchRequest) -> str:
        """See :class:`prunus.web.search._wire.Provider`."""
        return super().language(request) or language_of(request)

    def country(self, request: SearchRequest) -> str:
        """See :class:`prunus.web.search._wire.Provider`."""
        return country_of(request).lower()

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        body: dict[str, Any] = {
            "q": query_with_sites(request),
            "num": min(request.count, self.largest),
            "page": request.page,
        }
        if request.country:
            body["gl"] = self.country(request)
        if request.language:
            body["hl"] = self.language(request)
        name, first, last = time_range(request)
        if name:
            body["tbs"] = f"qdr:{name[0]}"
        elif first and last:
            body["tbs"] = f"cdr:1,cd_min:{first:%m/%d/%Y},cd_max:{last:%m/%d/%Y}"
        if request.safe_search:
            body["safe"] = "active"
        path = "news" if request.topic == "news" else "search"
        return Ask(f"{self.address}/{path}", headers={"x-api-key": self._key}, body=body)

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = data.get("organic", data.get("news"))
        if results is None:  # without results the response holds only the parameters
            return [] if isinstance(value_at(data, "searchParameters"), Mapping) else None
        if not isinstance(results, list):
            return None
        return [
            {**row, "url": row.get("link"), "published": row.get("date")} if isinstance(row, Mapping) else row
            for row in results
        ]
