"""Read a site: find its addresses, ask for each page once, follow its links, and end where it never would.

1. The start is read; where it leads by redirects is the site.
2. robots.txt, sitemaps, feeds and llms.txt name pages, often with the date of their last change.
3. Pages are asked for, breadth first or the most promising first, and name others by their links.

Results are taken in the order in which they were asked for, so that a site that answers alike is read alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import numpy as np

from ...core.errors import BadPage, OutsideFailed, PrunusError
from ...core.ports import Embedder
from ...core.settings import Settings
from ...core.sync import in_a_thread
from ...core.text.words import guess_language
from ...core.types import Page
from ...pages.clean.walk import clean_tree
from ...pages.links import Outline, canonical, outline_of, page_key
from ..door.errors import FetchFailed, RefusedUrl
from ..door.url import Url, parse_url
from ..fetch.links import score_links
from ..reader import PageReader
from .listings import Listing, read_listing
from .queue import Fate, SiteEntry, SiteQueue
from .scope import SiteRules, SiteScope, shape_of
from .versions import Versions

MOST_LISTS: Final = 500
"""Sitemaps, feeds and other lists of a site that are read at most."""

MOST_KNOWN: Final = 200_000
"""Addresses of a site that are remembered at most while it is read."""

MOST_FAILURES: Final = 25
"""Failures in a row, other than missing pages, after which a site is left alone."""

EARLIER: Final = "earlier"
"""Note of an address that an earlier run could not read: it is asked for again where it is named again."""

_RANKED: Final = 5_000  # waiting addresses that are compared with a question
_HTML: Final = ("", "text/html", "application/xhtml+xml")
_GONE: Final = (404, 410)
_NOT_MODIFIED: Final = 304
_ZONES: Final = timedelta(hours=12)  # a date without a time may be that of any place


@dataclass(frozen=True, slots=True)
class SiteVisit:
    """What became of one address.

    :param entry: the address, and what is known of it now.
    :param known: it was kept before.
    :param page: the page, if it is new or has changed.
    :param error: why it could not be read.
    """

    entry: SiteEntry
    known: bool
    page: Page | None = None
    error: PrunusError | None = None


class SiteWalk:
    """Reads one site.

    :param start: the address to begin with.
    :param queue: what is known of the site; a queue of an earlier run is gone on with.
    :param embedder: compares links with the question by meaning, too.
    :param purpose: ``read``: give the pages; ``map``: read only what is nearer than the depth, for its links;
        ``check``: give the pages, and ask also for those that have not changed by their sitemap.
    """

    def __init__(
        self,
        settings: Settings,
        start: str,
        rules: SiteRules,
        queue: SiteQueue,
        *,
        embedder: Embedder | None = None,
        purpose: Literal["read", "map", "check"] = "read",
    ) -> None:
        self.settings, self.start, self.rules, self.queue = settings, start, rules, queue
        self.left_out: Counter[str] = Counter()
        self.endless: dict[str, None] = {}  # shapes of addresses of which there were too many
        self.notes: list[str] = []  # lists that could not be read
        self.asked, self.bytes = 0, 0
        self._question, self._embedder = rules.question.strip(), embedder
        self._list_only, self._check_all = purpose == "map", purpose == "check"
        self._scope: SiteScope | None = None
        self._reader: PageReader
        self._flight: deque[SiteEntry] = deque()
        self._listed: dict[str, str] = {}
        self._refused: dict[str, None] = {}  # addresses that were left out, to count each once
        self._linked: set[str] = set()  # links as they are written: most pages of a site have the same ones
        self._base: Url | None = None
        self._alike: Counter[str] = Counter()
        self._versions = Versions()
        self._kept = 0
        self._keeps = False  # pages of an earlier run: then the server is asked for its lists, too, and no cache
        self._failed_in_a_row = 0

    async def visits(self) -> AsyncGenerator[SiteVisit, None]:
        """Yield what became of each address that was asked for.

        Who keeps a page says so by :meth:`kept`; after a kill, pages that are not kept come again.

        :raises BadInput: the start is refused.
        :raises OutsideFailed: the start, or one page after the other, cannot be read.
        """
        self._reader = await in_a_thread(lambda: PageReader(self.settings, self._conditions))
        for entry in self.queue.entries("failed"):  # of a run that was stopped
            self._put(entry, "waiting")
        for entry in self.queue.entries():
            if entry.source == "link" or self.rules.latest:
                known = parse_url(entry.url)
                self._alike[shape_of(known)] += entry.source == "link"
                self._versions.note(known)
                if entry.fate == "moved":
                    self._versions.lead(known, parse_url(entry.note))
        self._kept = self.queue.count("read", "stored", "check")
        self._keeps = self.queue.count("check") > 0
        for entry in self.queue.entries("read"):
            page = self._reader.stored(entry.snapshot, "")
            if page is None:
                self._put(entry, "waiting")
                self._kept -= 1
            else:
                yield SiteVisit(entry, False, replace(page, url=entry.url, final_url=entry.url))
        base = self.queue.fact("base")
        if base:
            self._base = parse_url(base)
            self._scope = SiteScope(self._base, self.rules)
            if self.queue.fact("listed") != "yes":
                for unchanged in await self._find():
                    yield unchanged
        else:
            url = str(parse_url(canonical(self.start.strip())))
            self.queue.add(SiteEntry(page_key(url), url, source="start"))
            self._versions.note(parse_url(url))
        # few ahead: what is under way at a kill is asked for again
        limit = self.settings.per_host * (1 if self._question else 2)
        async with aclosing(self._reader.fetch_many(_Takes(self._take), limit)) as results:
            async for result in results:
                for visit in await self._took(self._flight.popleft(), result):
                    yield visit
        self._leave_older(*self.queue.entries("waiting", "listed", "read", "stored"))
        over = self.queue.count("waiting")
        if over:
            self.left_out[f"over the limit of {self.rules.pages:,} pages"] = over

    def kept(self, url: str) -> None:
        """Note that a page is kept: it does not come again."""
        entry = self.queue.get(page_key(url))
        if entry is not None and entry.fate == "read":
            self._put(entry, "stored")

    def unreadable(self, url: str, why: str) -> None:
        """Note that a page came, and cannot be used."""
        entry = self.queue.get(page_key(url))
        if entry is not None:
            entry.note = why
            self._put(entry, "failed")

    # --- asking ------------------------------------------------------------------------------

    def _take(self) -> str | None:
        """Return the address to ask for next, None where there is none now."""
        flying = {entry.key for entry in self._flight}
        most = _RANKED if self._question else len(flying) + 1
        while True:
            free = [entry for entry in self.queue.waiting(most) if entry.key not in flying]
            if not free:
                return None
            if not self._leave_older(*free):
                break
        entry = free[0]
        if entry.fate == "waiting":
            coming = sum(other.fate == "waiting" for other in self._flight)
            if self._kept + coming >= self.rules.pages and not self._list_only:
                return None
            entry = self.by_promise(free)[0]
        self._flight.append(entry)
        self.asked += 1
        return entry.url

    def _leave_older(self, *entries: SiteEntry) -> int:
        """Leave out the addresses of older versions, if only the latest is wanted; return how many there are."""
        older = [
            entry
            for entry in (entries if self.rules.latest else ())
            if entry.source != "start" and self._versions.is_older(parse_url(entry.url))
        ]
        for entry in older:
            self._kept -= entry.fate in ("check", "read", "stored")
            self._put(entry, "older")
            self.left_out["an older version"] += 1
        return len(older)

    def by_promise(self, entries: Sequence[SiteEntry]) -> list[SiteEntry]:
        """Return addresses whose links and paths promise most for the question first; equal ones keep their order."""
        if not entries or not self._question:
            return list(entries)
        texts = [entry.words for entry in entries]
        urls = [entry.url for entry in entries]
        language = guess_language(self._question, "en")
        scores = score_links(texts, urls, [""] * len(urls), self._question, language, self._embedder)
        return [entries[place] for place in np.argsort(-scores, kind="stable").tolist()]

    def _conditions(self, url: str) -> Mapping[str, str] | None:
        """Return what makes the request for a page that is kept conditional; None where nothing is kept of the site."""
        for entry in self._flight:
            if entry.url == url and entry.fate == "check":
                tags = {"if-none-match": entry.etag, "if-modified-since": entry.modified}
                return {name: value for name, value in tags.items() if value}
        return {} if self._keeps else None

    # --- lists -------------------------------------------------------------------------------

    async def _find(self) -> list[SiteVisit]:
        """Read the lists of the site; return the kept pages that have not changed by them."""
        base = parse_url(self.queue.fact("base"))
        folder = base.target.partition("?")[0].rpartition("/")[0]
        folders = dict.fromkeys((f"{base.origin}/", f"{base.origin}{folder}/"))
        sitemaps = await self._reader.sitemaps(str(base))
        named = dict.fromkeys(sitemaps, "sitemap") | dict.fromkeys(self.queue.fact("feeds").split(), "feed")
        guesses = [("llms.txt", "llms.txt"), *([] if sitemaps else [("sitemap.xml", "sitemap")])]
        guessed = {
            f"{place}{name}": kind for name, kind in guesses for place in folders if f"{place}{name}" not in named
        }
        todo = named | guessed
        done: set[str] = set()
        while todo and len(done) < MOST_LISTS:
            batch = list(todo.items())[: MOST_LISTS - len(done)]
            todo = {}
            done.update(url for url, _ in batch)
            async with aclosing(self._reader.fetch_files([url for url, _ in batch])) as files:
                asked = iter(batch)
                async for file in files:
                    url, source = next(asked)
                    self.asked += 1
                    if isinstance(file, PrunusError):
                        if url not in guessed:
                            self.notes.append(str(file))
                        continue
                    self.bytes += len(file.content)
                    listing = await in_a_thread(_reading(file))
                    todo |= {other: source for other in listing.sitemaps if other not in done}
                    for address, lastmod in listing.pages.items():
                        self._offer(address, 1, source, lastmod=lastmod)
        if todo:
            self.left_out[f"lists over the limit of {MOST_LISTS}"] = len(todo)
        self.queue.put_fact("listed", "yes")
        unchanged = []
        for entry in [] if self._check_all else self.queue.entries("check"):
            if self._unchanged_by_list(entry):
                self._put(entry, "stored")
                unchanged.append(SiteVisit(entry, True))
        return unchanged

    def _unchanged_by_list(self, entry: SiteEntry) -> bool:
        """Tell whether a list says that a page has not changed since it was read.

        A date counts once it has passed: a page may change twice on one day.
        """
        lastmod = self._listed.get(entry.key, "")
        if not lastmod or lastmod != entry.lastmod or not entry.read_at:
            return False
        try:
            changed, read = datetime.fromisoformat(lastmod), datetime.fromisoformat(entry.read_at)
        except ValueError:
            return False
        if changed.tzinfo is None:
            changed = changed.replace(tzinfo=UTC) + _ZONES
            if len(lastmod) <= len("2024-01-01"):
                changed += timedelta(days=1)
        return changed < read

    def _offer(self, address: str, depth: int, source: str, words: str = "", lastmod: str = "") -> None:
        """Take up an address that a list or a page names, if it belongs to the site and is not known yet."""
        assert self._scope is not None and self._base is not None  # the start was read
        far = self.rules.depth is not None and depth > self.rules.depth
        if source == "link" and not far:
            if address in self._linked:
                return
            if len(self._linked) >= MOST_KNOWN:
                self._linked.clear()
            self._linked.add(address)
        try:
            url = parse_url(canonical(address))
        except RefusedUrl:
            self.left_out["no address that can be read"] += 1
            return
        if (url.scheme, self._base.scheme) == ("http", "https") and url.host == self._base.host and url.port == 80:
            url = parse_url(f"https://{self._base.netloc}{url.target}")  # a redirect less for each page
        key = page_key(str(url))
        if lastmod:
            self._listed[key] = lastmod
        if key in self._refused:
            return
        known = self.queue.get(key)
        if known is not None:
            late = known.fate in ("gone", "robots") and known.note == EARLIER
            if late or (known.fate in ("duplicate", "noindex", "moved", "outside") and lastmod > known.lastmod):
                self._put(known, "waiting")
            elif lastmod and known.fate in ("waiting", "listed"):
                known.lastmod = lastmod
                self.queue.put(known)
            return
        why = self._scope.refusal(url)
        if not why and not self._reader.allows(str(url)):
            why = "forbidden by robots.txt"
        if not why and not far and source == "link":
            shape = shape_of(url)
            self._alike[shape] += 1
            if self._alike[shape] > self.rules.alike:
                why = f"more than {self.rules.alike} alike"
                self.endless[shape] = None
        all_count = self._list_only and not self._question and not self.rules.latest
        most = self.rules.pages if all_count else MOST_KNOWN
        if not why and not far and self.queue.size >= most:
            why = f"over the limit of {self.queue.size:,} addresses"
        if why:
            self._refused[key] = None
            self.left_out[why] += 1
        elif not far:
            fate: Fate = "listed" if self._list_only and depth == self.rules.depth else "waiting"
            entry = SiteEntry(key, str(url), depth, source, words, fate, lastmod)
            self.queue.add(entry)
            if self.rules.latest:
                self._versions.note(url)
                self._leave_older(entry)

    # --- results -----------------------------------------------------------------------------

    async def _took(self, entry: SiteEntry, result: Page | PrunusError) -> list[SiteVisit]:
        """Note what became of an address, and take up the links of its page."""
        known = entry.fate == "check"
        if isinstance(result, PrunusError):
            return [self._failed(entry, known, result)]
        self._failed_in_a_row = 0
        self.bytes += len(result.content)
        if result.status == _NOT_MODIFIED:
            entry.read_at, entry.failures = result.fetched_at, 0
            entry.lastmod = self._listed.get(entry.key, entry.lastmod)
            self._put(entry, "stored")
            return [SiteVisit(entry, known)]
        if result.wall:
            wall = OutsideFailed(f"{entry.url}: no content, but a {result.wall}", subject=entry.url)
            return [self._failed(entry, known, wall)]
        outline, text = await in_a_thread(lambda: _look(result))
        visits = []
        scope = self._scope
        if scope is None:
            scope = self._settle(entry, result, outline)
            visits += await self._find()  # before the links of the start: what a list names has no limit of alikes
        target = str(parse_url(canonical(result.final_url or entry.url)))
        if known and page_key(target) != entry.key and scope.refusal(parse_url(target)):  # to a login, perhaps
            why = OutsideFailed(f"{entry.url}: it now leads out of the site, to {target}", subject=entry.url)
            return [*visits, self._failed(entry, known, why)]
        if page_key(target) != entry.key:
            other = self._moved(entry, target)
            visits.append(SiteVisit(entry, known))
            if known:
                self._kept -= 1
            if other is None:
                return visits
            entry, known = other, False
        elif not known:
            entry.url = target  # with https, www. or a slash, if the site wants that
        return [*visits, self._read(entry, known, replace(result, url=entry.url, final_url=entry.url), outline, text)]

    def _settle(self, entry: SiteEntry, page: Page, outline: Outline) -> SiteScope:
        """Note where the site is, now that its start was read."""
        self._base = parse_url(page.final_url or entry.url)
        self._scope = SiteScope(self._base, self.rules)
        self.queue.put_fact("base", str(self._base))
        self.queue.put_fact("feeds", " ".join(outline.feeds))
        return self._scope

    def _moved(self, entry: SiteEntry, target: str) -> SiteEntry | None:
        """Note that an address leads to another one; return that one if its page came by this."""
        assert self._scope is not None
        entry.note = target
        outside = entry.source != "start" and self._scope.refusal(parse_url(target))
        if outside:
            self._put(entry, "outside")
            return None
        self._put(entry, "moved")
        if self.rules.latest and self._versions.lead(parse_url(entry.url), parse_url(target)):
            for older in self.queue.entries("older"):
                if not self._versions.is_older(parse_url(older.url)):
                    self.left_out["an older version"] -= 1
                    self._put(older, "listed" if self._list_only and older.depth == self.rules.depth else "waiting")
        key = page_key(target)
        self.queue.add(SiteEntry(key, target, entry.depth, entry.source, entry.words))
        other = self.queue.get(key)
        coming = any(flying.key == key for flying in self._flight)
        return other if other is not None and other.fate in ("waiting", "listed") and not coming else None

    def _read(self, entry: SiteEntry, known: bool, page: Page, outline: Outline, text: str) -> SiteVisit:
        same = known and text == entry.text
        twin = None if same else self.queue.with_text(text)
        while twin is not None and self._leave_older(twin):  # most pages say the same in each version
            twin = self.queue.with_text(text)
        entry.etag, entry.modified = page.headers.get("etag", ""), page.headers.get("last-modified", "")
        entry.read_at, entry.note, entry.failures = page.fetched_at, "", 0
        entry.lastmod = self._listed.get(entry.key, entry.lastmod)
        entry.snapshot, entry.text = page.snapshot, text
        if twin is not None and twin.key != entry.key:
            entry.note = twin.url
            fate: Fate = "duplicate"
        elif outline.noindex:
            fate = "noindex"
        else:
            fate = "stored" if same else "read"
        self._put(entry, fate)
        self._kept += (fate in ("read", "stored")) - known
        if fate != "duplicate":  # its links are those of its twin
            for target, words in outline.links:
                self._offer(target, entry.depth + 1, "link", words)
        return SiteVisit(entry, known, page if fate == "read" else None)

    def _failed(self, entry: SiteEntry, known: bool, error: PrunusError) -> SiteVisit:
        """Note a failure; a page that is kept stays, unless it is gone."""
        if self._scope is None:  # not even the start can be read
            raise error
        entry.note = str(error)
        if isinstance(error, FetchFailed) and error.status in _GONE:
            self._put(entry, "gone")
            self._kept -= known
            if known:
                self.queue.revive(entry.text)
            return SiteVisit(entry, known, error=error)
        if isinstance(error, RefusedUrl):  # by robots.txt, or by the door after a redirect
            robots = error.kind == "robots"
            self.left_out["forbidden by robots.txt" if robots else "leads to a refused address"] += 1
            self._put(entry, "stored" if known else "robots" if robots else "outside")
            return SiteVisit(entry, known, error=error)
        entry.failures += 1
        self._put(entry, "stored" if known else "failed")
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= MOST_FAILURES:
            raise OutsideFailed(
                f"{self.start}: {MOST_FAILURES} pages in a row could not be read, the last because: {error}; "
                "run the same command again to go on",
                subject=self.start,
            )
        return SiteVisit(entry, known, error=error)

    def _put(self, entry: SiteEntry, fate: Fate) -> None:
        entry.fate = fate
        self.queue.put(entry)


class _Takes:
    """An iterator of the addresses to ask for. It may have some again after it had none."""

    def __init__(self, take: Callable[[], str | None]) -> None:
        self._take = take

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        url = self._take()
        if url is None:
            raise StopIteration
        return url


def _reading(file: Page) -> Callable[[], Listing]:
    return lambda: read_listing(file)


def _look(page: Page) -> tuple[Outline, str]:
    """Return what a page tells a crawler, and the sha256 of its text."""
    tag = page.headers.get("x-robots-tag", "")
    url = page.final_url or page.url
    if page.media_type in _HTML:
        try:
            outline = outline_of(page.content, url, page.charset, tag, "prunus")
            tree = clean_tree(page.content, charset=page.charset, name=url)
            return outline, hashlib.sha256(f"{tree.title}\n{tree.canonical}".encode("utf-8", "replace")).hexdigest()
        except BadPage:
            pass  # a document, or no page at all: whoever reads it says so
    return outline_of("", url, "", tag, "prunus"), page.snapshot
