"""``google:CX``: Google Custom Search; CX is the id of a search engine configured at Google.

The service is closed to new users and ends on 2027-01-01. Its API takes the key in the URL, so no message
shows that URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.errors import BadInput
from ...core.types import SearchRequest
from ._wire import Ask, Provider, country_of, query_with_sites, same, time_range, value_at

_LAST = 100
"""Last result that the API returns."""


class Engine(Provider):
    """Requests web results, at most ten per request."""

    name: ClassVar[str] = "google"
    home: ClassVar[str] = "https://customsearch.googleapis.com/customsearch/v1"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "dates", "include_domains", "exclude_domains"}
    )
    # the values of lr at https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list
    languages: ClassVar[Mapping[str, str]] = {
        **same("ar bg ca cs da de el en es et fi fr hr hu id is it ja ko lt lv nl no pl pt ro ru sk sl sr sv tr"),
        "he": "iw",
        "zh-hans": "zh-CN",
        "zh-hant": "zh-TW",
    }
    largest: ClassVar[int] = 10

    def _split(self, model: str) -> tuple[str, str]:
        return model, ""

    def country(self, request: SearchRequest) -> str:
        """See :class:`prunus.web.search._wire.Provider`; all countries have their ISO code but one."""
        code = country_of(request).lower()
        return "uk" if code == "gb" else code

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        if not self._model:
            raise BadInput("search google needs the id of a search engine: google:CX", subject=self.name)
        count = min(request.count, self.largest)
        start = (request.page - 1) * count + 1
        if start + count - 1 > _LAST:
            raise BadInput(f"search google: page {request.page} lies beyond result {_LAST}", subject="page")
        name, first, last = time_range(request)
        language = self.language(request)
        return Ask(
            self.address,
            {
                "key": self._key,
                "cx": self._model,
                "q": query_with_sites(request),
                "num": count,
                "start": start,
                "gl": self.country(request),
                "lr": f"lang_{language}" if language else "",
                "dateRestrict": f"{name[0]}1" if name else "",
                "sort": f"date:r:{first:%Y%m%d}:{last:%Y%m%d}" if first and last else "",
                "safe": "active" if request.safe_search else "off",
            },
        )

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the items; a response with ``searchInformation`` but without ``items`` has no results."""
        if "items" not in data:
            return [] if isinstance(value_at(data, "searchInformation"), Mapping) else None
        items = data["items"]
        if not isinstance(items, list):
            return None
        return [{**row, "url": row.get("link")} if isinstance(row, Mapping) else row for row in items]
