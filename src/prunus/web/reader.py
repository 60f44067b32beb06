"""Read pages as the settings say: egress door, fetcher, cache, snapshots, wall detection and browser.

The modules of :mod:`.door` and :mod:`.fetch` are imported inside functions, because most calls fetch nothing.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ..core.errors import BadInput, BadPage, MissingExtra, OutsideFailed, PrunusError, errors_of_page
from ..core.settings import Settings
from ..core.sync import in_a_thread
from ..core.types import Page
from ..pages.clean.walk import clean_tree
from ..pages.frame import data_of_frame
from ..pages.sources import Fetch, is_address

if TYPE_CHECKING:
    import httpx

    from ..core.ports import Embedder
    from ..pages.tree import Tree
    from .door.egress import Egress
    from .fetch.browser import BrowserFetcher
    from .fetch.cache import Cache
    from .fetch.http import Conditions, HttpFetcher
    from .fetch.snapshots import Snapshots

T = TypeVar("T")

_MIB: Final = 1024 * 1024
_NOT_MODIFIED: Final = 304
_HTML: Final = ("", "text/html", "application/xhtml+xml")


@dataclass(slots=True)
class FetchedSize:
    """The bytes of the pages that were fetched for a piece of work."""

    size: int = 0

    def add(self, count: int) -> None:
        """Count the bytes of one more page."""
        self.size += count


FETCHED: Final[ContextVar[FetchedSize | None]] = ContextVar("fetched", default=None)
"""Where the bytes of fetched pages are counted, by whoever shares out the time to compute on them."""


def make_door(settings: Settings) -> Egress:
    """Return the egress door with the permissions and limits of the settings."""
    from .door.egress import Egress, EgressRules

    rules = EgressRules(
        allow_hosts=settings.allow_hosts,
        ports=settings.ports,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        connect_seconds=settings.connect_seconds,
        read_seconds=settings.read_seconds,
        total_seconds=settings.total_seconds,
        max_wire_bytes=settings.max_file_mb * _MIB,
        max_bytes=settings.max_file_mb * _MIB,
        user_agent=settings.user_agent,
    )
    return Egress(rules)


class LazyDoor:
    """An egress door that is created at first use, because most calls never use the network (port: Door)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._door: Egress | None = None

    def _real_door(self) -> Egress:
        if self._door is None:
            self._door = make_door(self._settings)
        return self._door

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """See :class:`prunus.core.ports.Door`."""
        return self._real_door().client(endpoint, seconds=seconds)

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        """See :class:`prunus.core.ports.Door`."""
        return self._real_door().async_client(endpoint, seconds=seconds)


def open_cache(settings: Settings, door: Egress | None = None) -> Cache:
    """Return the cache of fetched pages.

    :param door: an existing egress door, whose request headers select the variants; None creates one.
    """
    from .fetch.cache import Cache
    from .fetch.http import HttpFetcher

    headers = HttpFetcher(door or make_door(settings), _fetch_rules(settings)).request_headers
    return Cache(settings.folder / "cache", max_bytes=settings.cache_mb * _MIB, request_headers=headers)


def open_snapshots(settings: Settings) -> Snapshots:
    """Return the store of page snapshots, against which citations are checked."""
    from .fetch.snapshots import Snapshots

    return Snapshots(settings.folder / "snapshots", max_bytes=settings.snapshots_mb * _MIB)


def _usable(settings: Settings, open_store: Callable[[Settings], T]) -> T | None:
    """Return a store of pages; warn and return None where ``home`` cannot be written, as in a read-only container."""
    try:
        return open_store(settings)
    except BadInput as error:
        reason = str(error).removeprefix(f"{error.subject}: ")  # the same for each store, so that it is shown once
        warnings.warn(f"{settings.folder}: {reason}; going on without", RuntimeWarning, stacklevel=1)
        return None


def _fetch_rules(settings: Settings) -> Any:
    from .fetch.http import FetchRules

    return FetchRules(
        at_once=settings.at_once,
        per_host=settings.per_host,
        delay=settings.delay,
        retries=settings.retries,
        languages=settings.languages,
    )


class HitReader:
    """Reads the pages of search hits: from the web, and from files in the searched folders.

    :param folders: the searched folders; files outside them are refused, whatever path a hit holds.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path] = ()) -> None:
        self._settings = settings
        self._folders = [folder.resolve() for folder in folders]
        self._web: PageReader | None = None

    async def pages(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
        """Yield (URL, page or error), the first finished first; a failure ends only its own page."""
        import asyncio

        from ..pages.sources import read_file

        web_urls = []
        for url in urls:
            if is_address(url):
                web_urls.append(url)
                continue
            path = Path(url)
            try:
                if not any(path.resolve().is_relative_to(folder) for folder in self._folders):
                    raise BadInput(f"{url[:200]}: this hit is not in a searched folder", subject=url[:200])
                page = await asyncio.to_thread(read_file, path, self._settings.max_file_mb)
                snapshot_store(self._settings)(page)
                yield url, page
            except PrunusError as error:
                yield url, error
        if web_urls:
            self._web = self._web or PageReader(self._settings)
            async with aclosing(self._web.fetch_as_completed(web_urls)) as pages:
                async for url_and_page in pages:
                    yield url_and_page


class PageReader:
    """Reads pages from the web: caches them, obeys robots.txt, detects walls, and renders empty shells.

    :param settings: permissions and limits.
    :param conditions: see :class:`.fetch.http.HttpFetcher`.
    """

    def __init__(self, settings: Settings, conditions: Conditions | None = None) -> None:
        from .fetch.http import HttpFetcher
        from .fetch.robots import Robots

        self.settings = settings
        door = make_door(settings)
        self._robots_files = Robots(door)
        self._robots = self._robots_files if settings.robots else None
        cache = _usable(settings, lambda _: open_cache(settings, door)) if settings.cache_mb else None
        self._door = door
        self._http: HttpFetcher = HttpFetcher(
            door, _fetch_rules(settings), cache=cache, robots=self._robots, conditions=conditions
        )
        self._browser: BrowserFetcher | None = None
        self._browser_missing = ""
        self._snapshots = _usable(settings, open_snapshots) if settings.snapshots_mb else None

    async def fetch(self, url: str) -> Page:
        """Return the page of a URL; for a wall, ``page.wall`` holds the kind and the reason.

        :raises BadInput: the URL is refused.
        :raises OutsideFailed: the page cannot be fetched or rendered.
        """
        if self.settings.browser == "always":
            return await self._finish(await self._render(url), rendered=True)
        try:
            page = await self._http.fetch(url)
        except OutsideFailed as error:
            raise self._explain_error(error) from error
        return await self._finish(page)

    async def fetch_many(self, urls: Iterable[str], limit: int = 0) -> AsyncGenerator[Page | PrunusError, None]:
        """Yield the page or error of every URL, in order; a failure ends only its own page.

        :param limit: see :meth:`.fetch.http.HttpFetcher.fetch_many`.
        """
        if self.settings.browser == "always":
            for url in urls:
                yield await _or_error(url, self.fetch(url))
            return
        async with self._http, aclosing(self._http.fetch_many(urls, limit, ordered=True)) as pages:
            async for _, page in pages:
                if isinstance(page, PrunusError):
                    yield self._explain_error(page)
                else:
                    yield await _or_error(page.url, self._finish(page))

    async def fetch_files(self, urls: Sequence[str]) -> AsyncGenerator[Page | PrunusError, None]:
        """Yield the file or error of every URL, in order, as it came: it is no page to show, such as a sitemap."""
        async with aclosing(self._http.fetch_many(urls, ordered=True)) as files:
            async for _, file in files:
                yield file

    async def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the robots.txt of a URL's origin names, whether or not its rules are obeyed."""
        async with self._door.async_client() as client:
            return await self._robots_files.sitemaps(client, self._door.check_url(url))

    def allows(self, url: str) -> bool:
        """Tell whether the door and the robots.txt that was read allow a URL."""
        try:
            checked = self._door.check_url(url)
        except BadInput:
            return False
        return self._robots is None or self._robots.allows(checked)

    def stored(self, snapshot: str, url: str) -> Page | None:
        """Return a page that was read before, from its snapshot; None where that is no longer kept."""
        try:
            return self._snapshots.get(snapshot, url) if self._snapshots is not None else None
        except BadPage:
            return None

    async def fetch_as_completed(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
        """Yield (URL, page or error), the first finished first, so that a slow page delays no other."""
        if self.settings.browser == "always":
            for url in urls:
                yield url, await _or_error(url, self.fetch(url))
            return
        async with self._http, aclosing(self._http.fetch_many(urls)) as pages:
            async for position, page in pages:
                if isinstance(page, PrunusError):
                    yield urls[position], self._explain_error(page)
                else:
                    yield urls[position], await _or_error(urls[position], self._finish(page))

    def _store_snapshot(self, page: Page) -> Page:
        """Store the snapshot of a page, so that citations of it can be checked later; a wall is not stored."""
        if self._snapshots is not None and not page.wall:
            self._snapshots.put(page)
        return page

    async def _finish(self, page: Page, rendered: bool = False) -> Page:
        """Detect a wall, render an empty shell, and store the snapshot; what parses and compresses runs in threads.

        :param rendered: the page comes from the browser already.
        """
        if (fetched := FETCHED.get()) is not None:
            fetched.add(len(page.content))
        if page.status == _NOT_MODIFIED:
            return page
        page = await in_a_thread(lambda: self._mark_wall(page))
        if not rendered:
            page = await self._render_if_shell(page)
        return await in_a_thread(lambda: self._store_snapshot(_with_words(page)))

    async def _render_if_shell(self, page: Page) -> Page:
        """Render a page that is an empty shell, if the settings allow a browser."""
        if page.wall.startswith("shell") and self.settings.browser == "auto" and not self._browser_missing:
            try:
                return self._mark_wall(await self._render(page.final_url or page.url, page))
            except (MissingExtra, OutsideFailed, BadPage) as error:
                self._browser_missing = str(error) if isinstance(error, MissingExtra) else ""
                return replace(page, wall=f"{page.wall}; not rendered: {error}")
        return page

    async def _render(self, url: str, page: Page | None = None) -> Page:
        """Return the rendered page of a URL.

        :param page: the unrendered page, whose original URL the result keeps.
        """
        if self._browser is None:
            from .fetch.browser import BrowserFetcher, BrowserRules

            rules = BrowserRules(executable=self.settings.chromium, total_seconds=self.settings.total_seconds)
            self._browser = BrowserFetcher(self._door, rules, allowed=self._check_robots if self._robots else None)
        rendered: Page = await self._browser.fetch(url)
        return replace(rendered, url=page.url) if page is not None else rendered

    async def _check_robots(self, url: str) -> None:
        """Check robots.txt before the browser loads a page."""
        if self._robots is not None:
            async with self._door.async_client() as client:
                await self._robots.delay(client, self._door.check_url(url))

    def _explain_error(self, error: PrunusError) -> PrunusError:
        """Add the reason to an error whose response is a wall."""
        from .door.errors import FetchFailed

        if not isinstance(error, FetchFailed) or error.page is None:
            return error
        wall = self._mark_wall(error.page).wall
        return FetchFailed(error.page.final_url, "wall", f"{error.why} ({wall})") if wall else error

    def _mark_wall(self, page: Page) -> Page:
        """Return the page with ``wall`` set if it is not content."""
        from .fetch.walls import detect

        if page.media_type.split(";")[0].strip().lower() not in _HTML or not page.content:
            return page
        try:
            with errors_of_page(page.url):
                wall = detect(page, clean_tree(page.content, charset=page.charset, name=page.url))
        except BadPage:
            return page  # the caller's own parse raises this error
        return page if wall is None else replace(page, wall=f"{wall.kind}: {wall.reason}")


def _with_words(page: Page) -> Page:
    """Return a shell that holds words for its scripts as a page that can be read, see :mod:`prunus.pages.frame`."""
    if not page.wall.startswith("shell"):
        return page
    tree = clean_tree(page.content, charset=page.charset, name=page.url)
    return replace(page, wall="") if data_of_frame(tree, page) else page


def follow(
    settings: Settings, trees: Sequence[Tree], question: str, count: int, embedder: Embedder | None = None
) -> Iterator[Page | PrunusError]:
    """Fetch the links of pages that most likely answer a question, each once, best first.

    :param count: most links to follow, over all pages.
    :param embedder: ranks links by meaning in addition to words; None ranks by words only.
    """
    from ..pages.links import canonical
    from .fetch.links import promising_links

    known = {canonical(tree.url) for tree in trees if tree.url}
    best: dict[str, float] = {}
    for tree in trees:
        if is_address(tree.url):
            for link in promising_links(tree, question, count, embedder):
                key = canonical(link.url)
                if key not in known:
                    best[link.url] = max(best.get(link.url, -1.0), link.score)
    wanted = sorted(best, key=lambda url: -best[url])[:count]
    return fetch_each(settings, wanted) if wanted else iter(())


def snapshot_store(settings: Settings) -> Callable[[Page], None]:
    """Return a function that stores the snapshot of a page that was not fetched, such as a local file."""
    snapshots = _usable(settings, open_snapshots) if settings.snapshots_mb else None

    def store(page: Page) -> None:
        if snapshots is not None and not is_address(page.url):
            snapshots.put(page)

    return store


async def _or_error(url: str, work: Coroutine[Any, Any, Page]) -> Page | PrunusError:
    """Return the page of an awaitable, or the error that it raised."""
    try:
        with errors_of_page(url):
            return await work
    except PrunusError as error:
        return error


def fetch_each(settings: Settings, urls: Sequence[str]) -> Generator[Page | PrunusError, None, None]:
    """Yield the page or error of every URL, in order; later pages are fetched while the caller uses earlier ones.

    Closing the generator, or Ctrl-C, cancels all requests.
    """
    yield from blocking(PageReader(settings).fetch_many(urls))


CLOSING: Final = 5.0
"""Seconds that what is still running may take to end."""


def blocking(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield the items of an asynchronous generator in plain code; it works ahead in a thread.

    Closing the generator, or Ctrl-C, closes the other.
    """
    with _loop() as call:
        try:
            while True:
                item = call(_next(items))
                if item is _END:
                    return
                yield cast("T", item)
        except GeneratorExit:  # the caller stopped early; after Ctrl-C _loop cancels the remaining tasks
            # not for ever: the garbage collector may close this in a thread that holds a lock which the loop waits for
            with suppress(TimeoutError):
                call(items.aclose(), CLOSING)
            raise


_END: Final = object()


async def _next(items: AsyncGenerator[T, None]) -> T | object:
    return await anext(items, _END)


@contextmanager
def _loop() -> Iterator[Callable[..., Any]]:
    """Run an event loop in a new thread: it runs while the caller is busy, and works inside notebooks too."""
    import asyncio  # here: importing this module must not load it

    loop = asyncio.new_event_loop()

    def turn() -> None:
        with closing(loop):
            loop.run_forever()
            loop.run_until_complete(_cancel_all())

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()

    def call(work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()
            raise

    try:
        yield call
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSING)


async def _cancel_all() -> None:
    """Cancel all other tasks of this loop."""
    import asyncio

    current = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not current]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def fetch_with(settings: Settings) -> Fetch:
    """Return a function that fetches URLs with these settings; it loads its modules at its first call."""

    def fetch(urls: Sequence[str]) -> Iterator[Page | PrunusError]:
        return fetch_each(settings, urls)

    return fetch
