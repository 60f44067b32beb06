"""``searxng:http://host``: a self-hosted SearXNG metasearch engine.

Its JSON format is off by default, and then it responds with 403: add ``json`` under ``search: formats:`` in
its ``settings.yml``. Its limiter, where it is on, takes a program for a bot and responds with 429: add the address of
this machine to ``pass_ip`` in its ``limiter.toml``. The number of results per page depends on its engines, and cannot
be requested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.errors import BadInput
from ...core.types import SearchRequest
from ._wire import (
    MAX_COUNT,
    Ask,
    Provider,
    country_of,
    language_of,
    query_with_sites,
    time_range,
    value_at,
    web_address,
)

_HINTS = {
    403: "; the JSON format of SearXNG may be off: add json to search.formats in its settings.yml",
    429: "; its limiter refuses programs: add this machine to botdetection.ip_lists.pass_ip in its limiter.toml",
}
_TOPICS = {"news": "news", "science": "science", "it": "it"}


class Engine(Provider):
    """Requests results of an instance; a key is sent as a bearer token, for a reverse proxy before the instance."""

    name: ClassVar[str] = "searxng"
    wants_key: ClassVar[bool] = False
    filters: ClassVar[frozenset[str]] = frozenset(
        {"page", "language", "country", "time_range", "include_domains", "exclude_domains", "topic"}
    )
    languages: ClassVar[Mapping[str, str]] = {"zh-hans": "zh-CN", "zh-hant": "zh-TW"}
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
                "language": self.language(request),
                "pageno": request.page,
                "time_range": time_range(request)[0],
                "safesearch": 1 if request.safe_search else 0,
            },
            {"authorization": f"Bearer {self._key}"} if self._key else {},
        )

    def language(self, request: SearchRequest) -> str:
        """Return a language, with the region of the country where one is wanted, as ``de-CH``."""
        code = super().language(request)  # Chinese is told by the region
        if code or not request.language:
            return code
        return "-".join(part for part in (language_of(request), _region(request)) if part)

    def country(self, request: SearchRequest) -> str:
        """Return the country, which SearXNG takes as a part of the language only."""
        return country_of(request) if request.language else ""

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return answers and infoboxes that name a page, then the results."""
        results = value_at(data, "results")
        if not isinstance(results, list):
            return None
        answers = [
            {**row, "snippet": row.get("answer")}
            for row in _objects(data, "answers")
            if web_address(row.get("url"))  # one without a page is computed, as that of a calculator
        ]
        result = [
            {**row, "snippet": row.get("content"), "published": row.get("publishedDate")}
            if isinstance(row, Mapping)
            else row
            for row in results
        ]
        return [*answers, *(box for row in _objects(data, "infoboxes") if (box := _infobox(row))), *result]

    def failed_sources(self, data: Mapping[str, Any]) -> list[str]:
        """Return the engines of the instance that did not answer; a response without results may have no other sign."""
        listed = value_at(data, "unresponsive_engines")
        pairs = [pair for pair in listed if isinstance(pair, list | tuple)] if isinstance(listed, list) else []
        return [f"{pair[0]} ({pair[1]})" for pair in pairs if len(pair) >= 2]

    def hint(self, status: int) -> str:
        """See :class:`prunus.web.search._wire.Provider`."""
        return _HINTS.get(status, "")


def _region(request: SearchRequest) -> str:
    """Return the region of a language tag, else the country of the request."""
    parts = re.split("[-_]", request.language)[1:]
    return next((part.upper() for part in parts if len(part) == 2), country_of(request))


def _objects(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = value_at(data, name)
    return [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []


def _infobox(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return an infobox as a result: its page, its text, and its table; None where it names no page."""
    links = [link.get("url") for link in _objects(row, "urls")]
    url = next((link for link in (row.get("id"), *links) if web_address(link)), None)
    if url is None:
        return None
    table = [
        f"{line['label']}: {line['value']}"
        for line in _objects(row, "attributes")
        if isinstance(line.get("label"), str) and isinstance(line.get("value"), str)
    ]
    content = row.get("content")
    snippet = " · ".join([*([content] if isinstance(content, str) and content else []), *table])
    return {"url": url, "title": row.get("infobox"), "snippet": snippet}
