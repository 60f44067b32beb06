"""Pages over HTTP: redirects, retries, limits, politeness, many at once. Everything goes through the door."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Final

import httpx

from ...core.errors import OutsideFailed, PrunusError
from ...core.types import Page
from ..door.egress import Egress
from ..door.errors import BUSY, FetchFailed, RefusedUrl, printable_url
from ..door.transport import LOCATION
from ..door.url import Url, resolve
from ..retry import Retries, http_date, retry_after, wish
from ._many import Result, each
from ._turns import Clock, HostTurns

if TYPE_CHECKING:
    from .cache import Cache
    from .robots import Robots

__all__ = ["Clock", "FetchRules", "HttpFetcher"]

ACCEPT: Final = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,*/*;q=0.8"
KEPT: Final = frozenset(
    "content-type content-language content-disposition content-location last-modified etag cache-control expires "
    "date age vary link location retry-after x-robots-tag".split()
)
"""Headers that a page keeps."""

_TYPE: Final = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127})\s*(?:;|$)")
_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?\s*([A-Za-z0-9_.:+-]{1,40})""", re.IGNORECASE)

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_OLD_WILL_DO: Final = ("connect", "cut", "dns", "timeout")
_IDLE_BODY: Final = 64 * 1024
"""Bytes of a redirect or an error that are read, so that its connection can be used again."""


@dataclass(frozen=True, slots=True)
class FetchRules:
    """How pages are fetched; the limits of one exchange are the door's. Seconds.

    :param at_once: pages at once.
    :param per_host: requests to one host at once.
    :param delay: least time between two requests to a host; robots.txt may ask for more.
    :param max_delay: a host that asks for longer pauses than this is not read further.
    :param retries: further tries where a host is busy (429, 5xx) or a connection breaks.
    :param backoff: before the first further try; it doubles, and varies by half.
    :param max_wait: longest wait that Retry-After may ask for.
    :param languages: Accept-Language; '' says nothing.
    """

    at_once: int = 16
    per_host: int = 4
    delay: float = 0.0
    max_delay: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    max_wait: float = 30.0
    languages: str = ""


class _Time:
    """What one page may still take while the network works for it; waiting for its turn does not count."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds, self.left = url, seconds, seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run something, and end it when the time is over.

        :raises FetchFailed: it is over.
        """
        begun = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self.left)):
                yield
        except TimeoutError as error:
            raise FetchFailed(self._url, "timeout", f"not finished within {self._seconds:g} s") from error
        finally:
            self.left -= time.monotonic() - begun


@dataclass(slots=True)
class _Session:
    """What belongs to one event loop: connections and turns."""

    loop: asyncio.AbstractEventLoop
    client: httpx.AsyncClient
    turns: HostTurns


class HttpFetcher:
    """Fetches pages (:class:`prunus.core.ports.Fetcher`). As ``async with`` it keeps its connections between pages.

    :param door: the egress door, with the limits.
    :param rules: politeness and retries.
    :param cache: where answers are kept; None keeps none.
    :param robots: what sites let robots read; None asks nobody, which is for the operator alone to choose.
    :param clock: time and chance.
    """

    def __init__(
        self,
        door: Egress,
        rules: FetchRules | None = None,
        *,
        cache: Cache | None = None,
        robots: Robots | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._door = door
        self._rules = rules or FetchRules()
        self._cache = cache
        self._robots = robots
        self._clock = clock or Clock()
        self._session: _Session | None = None
        self._next_at: dict[str, float] = {}
        self._stack: AsyncExitStack | None = None

    async def __aenter__(self) -> HttpFetcher:
        stack = AsyncExitStack()
        self._session = await stack.enter_async_context(self._opened())
        self._stack = stack
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = None
        if self._stack is not None:
            await self._stack.aclose()

    async def fetch(self, url: str) -> Page:
        """Return the page at a URL.

        :raises RefusedUrl: the URL, or one that it redirects to, is refused.
        :raises FetchFailed: it cannot be had; for 4xx and 5xx with the status.
        """
        start = self._door.check_url(url)
        async with self._current() as session:
            page = await self._walk(session, start)
        return replace(page, url=url)

    async def fetch_many(
        self, urls: Iterable[str], limit: int = 0, *, ordered: bool = False
    ) -> AsyncGenerator[Result, None]:
        """Yield ``(position, page or error)`` for many URLs, each failing alone.

        URLs are taken from the iterable as slots get free, so that there may be any number of them. When
        this is closed or its reader is cancelled, everything under way is cancelled and awaited; a loop that
        may be left early closes it at once with :func:`contextlib.aclosing`.

        :param limit: at once; 0 for the rules' own.
        :param ordered: in the order of the URLs, rather than as they come.
        """
        async with self._current() as session:

            async def one(url: str) -> Page | PrunusError:
                try:
                    page = await self._walk(session, self._door.check_url(url))
                except PrunusError as error:
                    return error
                return replace(page, url=url)

            async with aclosing(each(one, urls, limit or self._rules.at_once, ordered)) as results:
                async for result in results:
                    yield result

    @property
    def request_headers(self) -> dict[str, str]:
        """What every request carries, for a cache that tells variants apart."""
        languages = {"accept-language": self._rules.languages} if self._rules.languages else {}
        return {**self._door.request_headers, "accept": ACCEPT, **languages}

    # --- one page --------------------------------------------------------------------------------

    async def _walk(self, session: _Session, url: Url) -> Page:
        """Follow redirects to a page; each step is checked, asked and kept on its own."""
        limits = self._door.rules
        clock = _Time(str(url), limits.total_seconds)
        cookies = httpx.Cookies()  # for sites that set one and redirect to see it; no page sees another's
        been: set[tuple[str, str]] = set()
        for _ in range(limits.max_redirects + 1):
            page = await self._hop(session, url, cookies, clock)
            if page.status not in _REDIRECTS or "location" not in page.headers:
                return _content(page, self._clock.now())
            following = self._following(url, page.headers["location"])
            if following.origin != url.origin:
                cookies.clear()
            step = (str(following), repr(sorted((cookie.name, cookie.value) for cookie in cookies.jar)))
            if step in been:
                raise FetchFailed(str(url), "redirects", "it redirects in a loop")
            been.add(step)
            url = following
        raise FetchFailed(str(url), "redirects", f"more than {limits.max_redirects} redirects")

    def _following(self, url: Url, location: str) -> Url:
        """Return where a redirect leads, checked."""
        try:
            following = resolve(url, location)
            self._door.check_url(str(following))
        except RefusedUrl as error:
            why = f"it redirects to {printable_url(location)}: {error.why}"
            raise RefusedUrl(str(url), error.kind, why, error.way_out) from error
        return following

    async def _hop(self, session: _Session, url: Url, cookies: httpx.Cookies, clock: _Time) -> Page:
        """Return the answer to one address, from the cache or from its server."""
        key = str(url)
        cache = None if len(cookies) else self._cache
        kept = cache.fresh(key) if cache else None
        if kept is not None:
            return kept
        try:
            async with session.turns.at(url.host):
                return await self._tries(session, url, cookies, clock)
        except FetchFailed as error:
            old = cache.stale(key) if cache and (error.status in BUSY or error.kind in _OLD_WILL_DO) else None
            if old is None:
                raise
            return old

    async def _tries(self, session: _Session, url: Url, cookies: httpx.Cookies, clock: _Time) -> Page:
        """Ask a server, and again where that may help."""
        delay = self._rules.delay
        if self._robots is not None:
            async with session.turns.alone(url.host):
                delay = max(delay, await self._robots.delay(session.client, url))
        if delay > self._rules.max_delay:
            why = (
                f"the site asks for {delay:g} s between two requests, and at most {self._rules.max_delay:g} are waited"
            )
            raise FetchFailed(str(url), "robots", f"{why}; the operator may raise max_delay")

        async def attempt() -> Page:
            await session.turns.wait(url.host, delay)
            async with clock.running():
                return await self._ask(session.client, url, cookies)

        async def pause(seconds: float) -> None:  # the host rests, for all who want something of it
            clock.left -= seconds
            session.turns.hold(url.host, seconds)

        rules = self._rules
        retries = Retries(rules.retries + 1, rules.backoff, rules.max_wait, self._clock.jitter)
        return await retries.acall(attempt, sleep=pause, left=lambda: clock.left, may_pass=_may_pass)

    async def _ask(self, client: httpx.AsyncClient, url: Url, cookies: httpx.Cookies) -> Page:
        """Send one request; return what came, which for a redirect has no content."""
        key = str(url)
        cache = self._cache
        conditions = cache.validators(key) if cache and not len(cookies) else {}
        while True:
            request = client.build_request("GET", key, headers={**self.request_headers, **conditions})
            cookies.set_cookie_header(request)
            authorised = "cookie" in request.headers
            asked = self._clock.now()
            response = await client.send(request, stream=True)
            try:
                content, whole = await _read(response)
            finally:
                await response.aclose()
            answered = self._clock.now()
            cookies.extract_cookies(response)
            headers = dict(response.headers)  # by lower-case name, several of one name joined
            if LOCATION in response.extensions:
                headers["location"] = response.extensions[LOCATION]
            if response.status_code != HTTPStatus.NOT_MODIFIED or not conditions or cache is None:
                break
            confirmed = cache.revalidated(key, headers, answered)
            if confirmed is not None:
                return confirmed
            conditions = {}  # the entry went away meanwhile: ask for the whole
        page = _page(key, response.status_code, headers, content, answered)
        if cache and whole:
            cache.stored(key, page, headers, asked, answered, authorised=authorised)
        if page.status >= 400 or page.status < 200:
            raise _refusal(page, answered)
        return page

    # --- connections -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _current(self) -> AsyncIterator[_Session]:
        """Return the open session of this loop, or one for this call alone."""
        session = self._session
        if session is not None and session.loop is asyncio.get_running_loop():
            yield session
            return
        async with self._opened() as own:
            yield own

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[_Session]:
        async with self._door.async_client() as client:
            turns = HostTurns(self._rules.per_host, self._clock, self._next_at)
            yield _Session(asyncio.get_running_loop(), client, turns)


def _may_pass(error: OutsideFailed, tries: int) -> bool:
    """Tell whether another try may help; once where a connection that was used before holds what is left over."""
    if not isinstance(error, FetchFailed) or error.kind in ("timeout", "dns"):  # the page's time is over; nobody there
        return False
    return error.may_pass or (error.kind == "protocol" and tries == 1)


async def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """Return the body, and whether it is whole: of what is no page only the beginning is read."""
    most = -1 if response.is_success else _IDLE_BODY
    parts: list[bytes] = []
    size = 0
    async for data in response.aiter_raw():
        parts.append(data)
        size += len(data)
        if 0 <= most < size:
            return b"", False
    return b"".join(parts), True


def _page(url: str, status: int, headers: Mapping[str, str], content: bytes, now: float) -> Page:
    """Return one answer as a page.

    ``published`` is the Last-Modified date, for want of a better one: many servers say when a file was
    copied. What the page says about itself goes before it.

    :param headers: by lower-case name.
    :param now: when it was read, seconds since 1970.
    """
    kind = headers.get("content-type", "")
    found, charset = _TYPE.match(kind), _CHARSET.search(kind)
    changed = http_date(headers.get("last-modified", ""))
    return Page(
        content,
        url=url,
        final_url=url,
        media_type=found.group(1).lower() if found else "",
        charset=charset.group(1).lower() if charset else "",
        status=status,
        fetched_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        published=changed.isoformat(timespec="seconds") if changed else "",
        snapshot=hashlib.sha256(content).hexdigest(),
        headers={name: value for name, value in headers.items() if name in KEPT},
    )


def _content(page: Page, now: float) -> Page:
    """Return a page that has content, or raise for an answer that has none."""
    if 200 <= page.status < 300 and page.status != HTTPStatus.PARTIAL_CONTENT:
        return page
    raise _refusal(page, now)


def _refusal(page: Page, now: float) -> FetchFailed:
    """Return the error for an answer that is no page."""
    try:
        phrase = HTTPStatus(page.status).phrase
    except ValueError:
        phrase = "an unknown status"
    asked = retry_after(page.headers, now)
    why = f"answered {page.status} ({phrase}){wish(asked)}"
    failed = FetchFailed(page.final_url, "status", why, status=page.status, retry_after=asked)
    failed.page = page
    return failed
