"""`map_site`: the addresses of a site, from its lists and its links; and the queue and the walk that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from ..core.errors import BadInput, OutsideFailed
from ..core.ports import Embedder
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..engines import one_engine
from ..pages.sources import is_address
from ..web.site.queue import SiteQueue
from ..web.site.scope import SiteRules
from ..web.site.walk import SiteWalk


@dataclass(frozen=True, slots=True)
class SiteAddress:
    """One address of a site.

    :param lastmod: when the page was changed last, by a sitemap or feed, ISO 8601; '' where none says.
    :param source: what named it first: ``start``, ``sitemap``, ``feed``, ``llms.txt`` or ``link``.
    :param depth: links between the start and the page, at least as far as they were followed.
    """

    url: str
    lastmod: str
    source: str
    depth: int


@dataclass(frozen=True, slots=True)
class SiteMap:
    """The addresses of a site, each page once, in the order in which they were found.

    :param start: the address of the start, after redirects.
    :param left_out: how many addresses were left out, by reason.
    :param endless: what addresses look like of which there were too many, numbers as ``#``: calendars and filters.
    :param notes: lists that the site names and that could not be read.
    :param asked: requests for pages and lists.
    """

    start: str
    addresses: tuple[SiteAddress, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    endless: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asked: int = 0

    @property
    def urls(self) -> list[str]:
        """The addresses alone."""
        return [address.url for address in self.addresses]


def map_site(url: str, rules: SiteRules | None = None, settings: Settings | None = None) -> SiteMap:
    """Find the addresses of a site: from robots.txt, sitemaps, feeds, llms.txt and links.

    Only pages nearer to the start than the depth are read, for their links; the default depth is 1, which reads the
    start alone. With a question in the rules, addresses whose links and paths promise most for it come first.

    :param url: where the site begins; what counts as its site is that of the rules, by default its folder.
    :raises BadInput: the URL is refused.
    :raises OutsideFailed: the start cannot be read.
    """
    return run(lambda: amap_site(url, rules, settings))


async def amap_site(url: str, rules: SiteRules | None = None, settings: Settings | None = None) -> SiteMap:
    """Find the addresses of a site without blocking the event loop; see :func:`map_site`."""
    check_site(url)
    rules = rules or SiteRules()
    rules = replace(rules, depth=1) if rules.depth is None else rules
    queue = SiteQueue()
    chosen = settings if settings is not None else await in_a_thread(load_settings)
    walk = SiteWalk(chosen, url, rules, queue, embedder=_embedder(rules, chosen), purpose="map")
    async with aclosing(walk.visits()) as visits:
        async for visit in visits:
            if visit.entry.source == "start" and visit.error is not None:
                raise OutsideFailed(str(visit.error), subject=url)
    listed = queue.entries("read", "stored", "listed", "waiting")
    entries = await in_a_thread(lambda: walk.by_promise(listed)[: rules.pages])
    return SiteMap(
        queue.fact("base"),
        tuple(SiteAddress(entry.url, entry.lastmod, entry.source, entry.depth) for entry in entries),
        dict(walk.left_out),
        tuple(walk.endless),
        tuple(walk.notes),
        walk.asked,
    )


def check_site(url: str) -> None:
    """Refuse what is no address.

    :raises BadInput: it is none.
    """
    if not isinstance(url, str) or not is_address(url):
        raise BadInput(f"a site is an address, as https://example.org/, not {str(url)[:200]!r}", subject=str(url)[:200])


def open_queue(path: Path | None, url: str, rules: SiteRules) -> SiteQueue:
    """Open the queue of a site, which goes on with a run that was stopped.

    :param path: its file; None keeps it in memory.
    :raises BadInput: the address is none, or the file is that of another site or of other rules.
    """
    check_site(url)
    return SiteQueue(path, json.dumps([url.strip(), asdict(rules)]))


def site_walk(url: str, rules: SiteRules, queue: SiteQueue, settings: Settings, check_all: bool = False) -> SiteWalk:
    """Return the walk through a site; see :class:`~prunus.web.site.walk.SiteWalk`."""
    purpose: Literal["check", "read"] = "check" if check_all else "read"
    return SiteWalk(settings, url, rules, queue, embedder=_embedder(rules, settings), purpose=purpose)


def _embedder(rules: SiteRules, settings: Settings) -> Embedder | None:
    return one_engine("embedder", settings) if rules.question.strip() else None
