"""Crawls that clients of Firecrawl's shape start and then ask after: they live in this process, for a while.

What must outlast the server is a job of an index, or ``prunus index add --site``.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from ...core.errors import BadInput, PrunusError
from ...core.sync import in_a_thread
from ...core.types import Page
from ...web.site.queue import SiteQueue
from ...web.site.scope import SiteRules
from ...web.site.walk import SiteWalk
from ..errors import RequestRefused, note_bug
from ..work import Busy
from .reading import LoadedPage, Shape

MOST_PAGES: Final = 500
"""Pages of a crawl at most."""
_OF_ALL, _OF_ONE = 8, 2  # crawls that run at the same time, of all clients and of one
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Letters of the results of all crawls at most."""
_KEPT: Final = 600.0
"""Seconds for which the results of a crawl that has ended are kept."""


@dataclass(slots=True)
class Crawl:
    """One crawl.

    :param owner: the name of the key that started it.
    :param documents: the pages as they were written for the client.
    :param errors: address and reason of each page that could not be read.
    """

    id: str
    owner: str
    start: str
    status: Literal["scraping", "completed", "failed", "cancelled"] = "scraping"
    documents: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    size: int = 0
    warning: str = ""
    ends: float = 0.0
    task: asyncio.Task[None] | None = None

    @property
    def expires(self) -> str:
        """When the results are dropped, ISO 8601."""
        left = self.ends - time.monotonic() if self.ends else _KEPT
        return (datetime.now(UTC) + timedelta(seconds=left)).isoformat(timespec="seconds")


Write = Callable[[LoadedPage], dict[str, Any]]
"""Makes plain data of a page that was read, as the client asked for it."""


class Crawls:
    """The crawls of a server."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._crawls: dict[str, Crawl] = {}

    def start(self, owner: str, start: str, rules: SiteRules, main: bool, write: Write) -> Crawl:
        """Start a crawl.

        :param main: choose the main content of each page.
        :param write: makes plain data of a page that was read; it is called in a thread.
        :raises Busy: too many crawls run.
        """
        self._forget()
        running = [crawl for crawl in self._crawls.values() if crawl.status == "scraping"]
        if len(running) >= _OF_ALL or sum(crawl.owner == owner for crawl in running) >= _OF_ONE:
            raise Busy(30)
        crawl = Crawl(secrets.token_hex(16), owner, start)
        self._crawls[crawl.id] = crawl
        crawl.task = asyncio.create_task(self._run(crawl, rules, main, write))
        return crawl

    def find(self, id: str, owner: str) -> Crawl:
        """Return a crawl.

        :raises RequestRefused: 404; this key has no such crawl.
        """
        self._forget()
        crawl = self._crawls.get(id)
        if crawl is None or crawl.owner != owner:
            raise RequestRefused(404, "there is no such crawl; results are kept for ten minutes", param="id")
        return crawl

    def cancel(self, crawl: Crawl) -> None:
        """End a crawl; what it has read stays for a while.

        :raises RequestRefused: 409; it has ended already.
        """
        if crawl.status != "scraping":
            raise RequestRefused(409, f"the crawl is {crawl.status} already", param="id")
        crawl.status, crawl.ends = "cancelled", time.monotonic() + _KEPT
        if crawl.task is not None:
            crawl.task.cancel()

    def _forget(self) -> None:
        now = time.monotonic()
        for id in [crawl.id for crawl in self._crawls.values() if crawl.ends and crawl.ends < now]:
            del self._crawls[id]

    async def _run(self, crawl: Crawl, rules: SiteRules, main: bool, write: Write) -> None:
        server = self._shape.server
        walk = SiteWalk(server.settings, crawl.start, rules, SiteQueue())
        try:
            async with asyncio.timeout(server.options.job_seconds), aclosing(walk.visits()) as visits:
                async for visit in visits:
                    if visit.page is not None:
                        await self._take(crawl, visit.entry.url, visit.page, main, write)
                        walk.kept(visit.entry.url)
                    elif visit.error is not None:
                        self._failed(crawl, visit.entry.url, visit.error)
                    if sum(other.size for other in self._crawls.values()) > _MOST_BYTES:
                        crawl.warning = "the results of all crawls here are too large; this one ended early"
                        break
            crawl.status = "completed" if crawl.documents else "failed"
        except TimeoutError:
            crawl.status, crawl.warning = "completed", f"ended after {server.options.job_seconds:g} seconds"
        except PrunusError as error:
            crawl.status = "failed"
            self._failed(crawl, crawl.start, error)
        except Exception as error:
            note_bug(error, "a crawl")
            crawl.status = "failed"
        finally:
            crawl.ends = time.monotonic() + _KEPT

    async def _take(self, crawl: Crawl, url: str, page: Page, main: bool, write: Write) -> None:
        """Write a page that was fetched, when a turn comes: crawls compute no more than other requests of their key."""

        def written() -> tuple[dict[str, Any], int]:
            read = self._shape.cleaned(url, replace(page, url=url), main)
            if isinstance(read, PrunusError):
                raise read
            made = write(read)
            return made, len(json.dumps(made))

        try:
            made, size = await self._shape.server.workers.within(lambda: in_a_thread(written), crawl.owner)
        except PrunusError as error:  # a page that takes too long, or has too many cells, ends no crawl
            self._failed(crawl, url, error)
        else:
            crawl.documents.append(made)
            crawl.size += size

    def _failed(self, crawl: Crawl, url: str, error: PrunusError) -> None:
        crawl.errors.append({
            "id": f"{len(crawl.errors) + 1}", "url": url, "error": self._shape.line(error),
            "code": "BAD_INPUT" if isinstance(error, BadInput) else "OUTSIDE_FAILED",
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        })  # fmt: skip
