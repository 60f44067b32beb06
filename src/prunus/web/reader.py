"""Settings → the egress door, the fetcher, the cache and the snapshots. Loaded only where something is fetched."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..core.errors import BadInput, BadPage, MissingExtra, OutsideFailed, PrunusError
from ..core.settings import Settings
from ..core.types import Page
from ..pages.clean.walk import clean_tree
from ..pages.sources import Fetch, is_address

if TYPE_CHECKING:
    import httpx

    from ..core.ports import Embedder
    from ..pages.tree import Tree
    from .door.egress import Egress
    from .fetch.browser import BrowserFetcher
    from .fetch.cache import Cache
    from .fetch.http import HttpFetcher
    from .fetch.snapshots import Snapshots

T = TypeVar("T")

_MIB: Final = 1024 * 1024
_HTML: Final = ("", "text/html", "application/xhtml+xml")


def make_door(settings: Settings) -> Egress:
    """Return the only way to the network, with what the settings allow."""
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
    """The door, made when an engine first goes through it: most calls never do (port: Door)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._door: Egress | None = None

    def _made(self) -> Egress:
        if self._door is None:
            self._door = make_door(self._settings)
        return self._door

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """See :class:`prunus.core.ports.Door`."""
        return self._made().client(endpoint, seconds=seconds)

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        """See :class:`prunus.core.ports.Door`."""
        return self._made().async_client(endpoint, seconds=seconds)


def open_cache(settings: Settings, door: Egress | None = None) -> Cache:
    """Return the cache of fetched pages.

    :param door: the way to the network, where there is one already.
    """
    from .fetch.cache import Cache
    from .fetch.http import HttpFetcher

    asked = HttpFetcher(door or make_door(settings), _fetch_rules(settings)).request_headers
    return Cache(settings.folder / "cache", max_bytes=settings.cache_mb * _MIB, request_headers=asked)


def open_snapshots(settings: Settings) -> Snapshots:
    """Return the store of pages that answers were made from."""
    from .fetch.snapshots import Snapshots

    return Snapshots(settings.folder / "snapshots", max_bytes=settings.snapshots_mb * _MIB)


def _fetch_rules(settings: Settings) -> Any:
    from .fetch.http import FetchRules

    return FetchRules(
        at_once=settings.at_once,
        per_host=settings.per_host,
        delay=settings.delay,
        max_delay=settings.max_delay,
        retries=settings.retries,
        languages=settings.languages,
    )


class HitReader:
    """Reads what a search found: addresses from the web, and files of the folders that it searched.

    :param folders: files are read from nowhere else, whatever a hit says.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path] = ()) -> None:
        self._settings = settings
        self._folders = [folder.resolve() for folder in folders]
        self._web: PageReader | None = None

    async def pages(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
        """Yield (address, page or error) as they come, each failing alone."""
        import asyncio

        from ..pages.sources import read_file

        addresses = []
        for url in urls:
            if is_address(url):
                addresses.append(url)
                continue
            path = Path(url)
            try:
                if not any(path.resolve().is_relative_to(folder) for folder in self._folders):
                    raise BadInput(f"{url[:200]}: a hit that lies in no folder that was searched", subject=url[:200])
                page = await asyncio.to_thread(read_file, path, self._settings.max_file_mb)
                for kept in keep_each(self._settings, [page]):
                    yield url, kept
            except PrunusError as error:
                yield url, error
        if addresses:
            self._web = self._web or PageReader(self._settings)
            async with aclosing(self._web.as_they_come(addresses)) as pages:
                async for found in pages:
                    yield found


class PageReader:
    """Reads pages from the web: cached, robots.txt obeyed, walls told from content, shells rendered.

    :param settings: what is allowed, and every limit.
    """

    def __init__(self, settings: Settings) -> None:
        from .fetch.http import HttpFetcher
        from .fetch.robots import Robots

        self.settings = settings
        door = make_door(settings)
        self._robots = Robots(door) if settings.robots else None
        cache = open_cache(settings, door) if settings.cache_mb else None
        self._door = door
        self._plain: HttpFetcher = HttpFetcher(door, _fetch_rules(settings), cache=cache, robots=self._robots)
        self._browser: BrowserFetcher | None = None
        self._no_browser = ""
        self._snapshots = open_snapshots(settings) if settings.snapshots_mb else None

    async def fetch(self, url: str) -> Page:
        """Return one page; ``page.wall`` says why it is no content, where it is none.

        :raises BadInput: the address is refused.
        :raises OutsideFailed: it cannot be read.
        """
        if self.settings.browser == "always":
            return self._kept(self._seen(await self._rendered(url)))
        try:
            page = await self._plain.fetch(url)
        except OutsideFailed as error:
            raise self._failed(error) from error
        return await self._finished(page)

    async def each(self, urls: Sequence[str]) -> AsyncGenerator[Page | PrunusError, None]:
        """Yield many pages in the order of their addresses, each failing alone."""
        if self.settings.browser == "always":
            for url in urls:
                yield await _or_error(self.fetch(url))
            return
        async with self._plain, aclosing(self._plain.fetch_many(urls, ordered=True)) as pages:
            async for _, page in pages:
                yield self._failed(page) if isinstance(page, PrunusError) else await _or_error(self._finished(page))

    async def as_they_come(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
        """Yield (address, page or error), the quickest first: a slow page holds up no other."""
        if self.settings.browser == "always":
            for url in urls:
                yield url, await _or_error(self.fetch(url))
            return
        async with self._plain, aclosing(self._plain.fetch_many(urls)) as pages:
            async for place, page in pages:
                if isinstance(page, PrunusError):
                    yield urls[place], self._failed(page)
                else:
                    yield urls[place], await _or_error(self._finished(page))

    def _kept(self, page: Page) -> Page:
        """Keep a page that was read, so that what is cited from it can be checked later."""
        if self._snapshots is not None and not page.wall:
            self._snapshots.put(page)
        return page

    async def _finished(self, page: Page) -> Page:
        """Look whether a page is content, render one that is an empty shell, keep what there is."""
        return self._kept(await self._shown(self._seen(page)))

    async def _shown(self, page: Page) -> Page:
        """Render an empty shell, where a browser may be used."""
        if page.wall.startswith("shell") and self.settings.browser == "auto" and not self._no_browser:
            try:
                return self._seen(await self._rendered(page.final_url or page.url, page))
            except (MissingExtra, OutsideFailed, BadPage) as error:
                self._no_browser = str(error) if isinstance(error, MissingExtra) else ""
                return replace(page, wall=f"{page.wall}; not rendered: {error}")
        return page

    async def _rendered(self, url: str, page: Page | None = None) -> Page:
        """Return a page as a browser shows it."""
        if self._browser is None:
            from .fetch.browser import BrowserFetcher, BrowserRules

            rules = BrowserRules(executable=self.settings.chromium, total_seconds=self.settings.total_seconds)
            self._browser = BrowserFetcher(self._door, rules, allowed=self._allowed if self._robots else None)
        found: Page = await self._browser.fetch(url)
        return replace(found, url=page.url) if page is not None else found

    async def _allowed(self, url: str) -> None:
        """Ask robots.txt before a browser loads a page."""
        if self._robots is not None:
            async with self._door.async_client() as client:
                await self._robots.delay(client, self._door.check_url(url))

    def _failed(self, error: PrunusError) -> PrunusError:
        """Say what kind of wall stands behind a status, where one does."""
        page: Page | None = getattr(error, "page", None)
        wall = self._seen(page).wall if page is not None else ""
        return OutsideFailed(f"{error} ({wall})", subject=error.subject) if wall else error

    def _seen(self, page: Page) -> Page:
        """Say of a page why it is no content, where it is none."""
        from .fetch.walls import detect

        if page.media_type.split(";")[0].strip().lower() not in _HTML or not page.content:
            return page
        try:
            tree = clean_tree(page.content, charset=page.charset, name=page.url)
        except BadPage:
            return page  # reading it says why
        wall = detect(page, tree)
        return page if wall is None else replace(page, wall=f"{wall.kind}: {wall.reason}")


def follow(
    settings: Settings, trees: Sequence[Tree], question: str, count: int, embedder: Embedder | None = None
) -> Iterator[Page | PrunusError]:
    """Fetch the links of pages that promise most for a question, each once, best first.

    :param count: links to follow, over all pages.
    :param embedder: judges the links beside their words, where one is given.
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


def keep_each(settings: Settings, pages: Iterable[Page]) -> Iterator[Page]:
    """Keep files and other pages that are asked about, as fetched pages are kept."""
    snapshots = open_snapshots(settings) if settings.snapshots_mb else None
    for page in pages:
        if snapshots is not None and not is_address(page.url):
            snapshots.put(page)
        yield page


async def _or_error(work: Coroutine[Any, Any, Page]) -> Page | PrunusError:
    """Return what came, or why nothing did."""
    try:
        return await work
    except PrunusError as error:
        return error


def fetch_each(settings: Settings, urls: Sequence[str]) -> Generator[Page | PrunusError, None, None]:
    """Yield pages in the order of their addresses; they are fetched while the caller works on those before.

    Closing the iterator, or Ctrl-C, ends all fetching at once.
    """
    with _loop() as call:
        pages = PageReader(settings).each(urls)
        try:
            while True:
                page = call(_next(pages))
                if page is None:
                    return
                yield page
        except GeneratorExit:  # the caller has seen enough; Ctrl-C ends in _loop, which cancels what still runs
            call(pages.aclose())
            raise


async def _next(pages: AsyncGenerator[Page | PrunusError, None]) -> Page | PrunusError | None:
    return await anext(pages, None)


@contextmanager
def _loop() -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """An event loop in a thread of its own, so that it runs on while the caller is busy, inside notebooks too."""
    import asyncio  # here: naming the door must not load it

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def call(work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    try:
        yield call
    finally:
        left = asyncio.run_coroutine_threadsafe(_cancel_all(), loop)
        left.result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        loop.close()


async def _cancel_all() -> None:
    """End what still runs in this loop."""
    import asyncio

    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def fetch_with(settings: Settings) -> Fetch:
    """Return what reads addresses with these settings; nothing is loaded before it is called."""

    def fetch(urls: Sequence[str]) -> Iterator[Page | PrunusError]:
        return fetch_each(settings, urls)

    return fetch
