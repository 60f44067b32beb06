"""``wikipedia``, ``wikipedia:de``: the search of one Wikipedia; needs no key.

The part after the colon is a language or a URL. As Wikipedia's API rules ask, requests run one after the
other, and the User-Agent of the egress door names Prunus.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from ...core.errors import BadInput
from ...core.ports import Door
from ...core.types import Results, SearchRequest
from ._wire import Ask, Provider, language_of, value_at

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,10}){0,2}")


class Engine(Provider):
    """Searches one Wikipedia: of the spec's language, else of the request's language, else the English one."""

    name: ClassVar[str] = "wikipedia"
    wants_key: ClassVar[bool] = False
    filters: ClassVar[frozenset[str]] = frozenset({"page", "language"})
    largest: ClassVar[int] = 50

    def __init__(self, model: str = "", door: Door | None = None, endpoint: str = "", seconds: float = 15.0) -> None:
        super().__init__(model, door, "", endpoint, seconds)
        self._lock_of_loop: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def lacks_address(self) -> bool:
        """Never: without an address it asks Wikipedia in the language of the request."""
        return False

    def _lock(self) -> asyncio.Lock:
        """Return the lock of this event loop; a lock works in one loop only."""
        loop = asyncio.get_running_loop()
        if self._lock_of_loop is None or self._lock_of_loop[0] is not loop:
            self._lock_of_loop = (loop, asyncio.Lock())
        return self._lock_of_loop[1]

    def _split(self, model: str) -> tuple[str, str]:
        if model.startswith(("http://", "https://")):
            return "", model
        if model and not _LANGUAGE.fullmatch(model):
            raise BadInput(f"search wikipedia: {model!r} is not a language; write wikipedia:de", subject=model)
        return model, ""

    def language(self, request: SearchRequest) -> str:
        """Return the language that begins the address of a Wikipedia."""
        return language_of(request)

    def _base(self, request: SearchRequest) -> str:
        language = self._model or self.language(request) or "en"
        return self.address or f"https://{language}.wikipedia.org"

    async def search(self, request: SearchRequest) -> Results:
        """See :class:`prunus.web.search._wire.Provider`."""
        async with self._lock():
            results = await super().search(request)
        if self._model and request.language and self.language(request) != self._model:
            warning = f"wikipedia: only the Wikipedia in {self._model} is asked"
            return Results(results.hits, (*results.warnings, warning), results.usd, results.remaining)
        return results

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        count = min(request.count, self.largest)
        base = self._base(request)
        params = {
            "action": "query",
            "list": "search",
            "srsearch": request.query[:300],  # the API's limit
            "srlimit": count,
            "sroffset": (request.page - 1) * count,
            "srprop": "snippet",
            "format": "json",
            "formatversion": 2,
        }
        return Ask(f"{base.removesuffix('/w/api.php')}/w/api.php", params)

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the results with a URL made of the title; the API reports errors with HTTP 200."""
        if isinstance(value_at(data, "error"), Mapping):
            raise self._failed(str(value_at(data, "error", "info") or "an error"), "refused")
        results = value_at(data, "query", "search")
        if not isinstance(results, list):
            return None
        base = self._base(request).removesuffix("/w/api.php")
        return [_row(row, base) for row in results]


def _row(row: Any, base: str) -> Any:
    title = row.get("title") if isinstance(row, Mapping) else None
    if not isinstance(title, str) or not title.strip():
        return row
    path = quote(title.strip().replace(" ", "_").encode("utf-8", "replace"), safe="/:(),'!*")
    return {**row, "url": f"{base}/wiki/{path}"}
