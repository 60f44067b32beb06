"""Pages over HTTP: redirects, retries, limits, politeness and concurrency. All requests use the egress door.

A host gets a bounded number of requests at once, with a pause between two of them. A failure ends only its own page.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx

from ...core.errors import BadPage, OutsideFailed, PrunusError, errors_of_page
from ...core.types import Page
from ...pages.clean.elements import scheme_of
from ...pages.links import refresh_target
from ..door.egress import Egress
from ..door.errors import BUSY, FetchFailed, RefusedUrl, printable_url
from ..door.transport import LOCATION
from ..door.url import Url, resolve
from ..retry import Retries, http_date, retry_after, wait_hint

if TYPE_CHECKING:
    from .cache import Cache
    from .robots import Robots


_MOST_HOSTS: Final = 4096  # hosts whose next request time is remembered


_LONGEST_DELAY: Final = 60.0
"""Longest pause that robots.txt may require, in seconds; the pages of a host that requires more fail."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and randomness, which tests replace.

    :param monotonic: returns monotonic seconds, for waiting.
    :param now: returns seconds since 1970, for records.
    :param sleep: waits for some seconds.
    :param jitter: returns a random number from 0 to 1, so that many clients do not retry at the same moment.
    """

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class HostTurns:
    """Slots and pauses of each host, within one event loop.

    :param per_host: most concurrent requests to one host.
    :param next_at: earliest time of the next request to each host, monotonic seconds; outlives the event loop.
    """

    def __init__(self, per_host: int, clock: Clock, next_at: dict[str, float]) -> None:
        self._per_host = per_host
        self._clock = clock
        self._next_at = next_at
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}
        self._robots_locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Hold a slot of a host for the duration of the context."""
        self._users[host] = self._users.get(host, 0) + 1
        try:
            async with self._slots.setdefault(host, asyncio.Semaphore(self._per_host)):
                yield
        finally:
            self._users[host] -= 1
            if not self._users[host]:  # forgotten with its last user: a batch may visit any number of hosts
                del self._users[host], self._slots[host]
                self._robots_locks.pop(host, None)

    def robots_lock(self, host: str) -> asyncio.Lock:
        """Return the lock under which a host's robots.txt is read, so that only one request reads it."""
        return self._robots_locks.setdefault(host, asyncio.Lock())

    async def wait(self, host: str, delay: float) -> None:
        """Wait until the host may be requested, and reserve ``delay`` seconds after this request."""
        now = self._clock.monotonic()
        start = max(now, self._next_at.get(host, now))
        self._hold_until(host, start + delay)
        if start > now:
            await self._clock.sleep(start - now)

    def hold(self, host: str, seconds: float) -> None:
        """Delay all requests to a busy host by some seconds."""
        self._hold_until(host, self._clock.monotonic() + seconds)

    def _hold_until(self, host: str, moment: float) -> None:
        now = self._clock.monotonic()
        if moment > max(now, self._next_at.get(host, now)):
            self._next_at[host] = moment
        if len(self._next_at) > _MOST_HOSTS:
            passed = [name for name, next_time in self._next_at.items() if next_time <= now]
            for name in passed or [next(iter(self._next_at))]:
                del self._next_at[name]


Conditions: TypeAlias = Callable[[str], Mapping[str, str] | None]
"""From a URL to request headers, see :class:`HttpFetcher`."""

Result: TypeAlias = tuple[int, Page | PrunusError]
"""Position of the URL, and its page or error."""

Work: TypeAlias = Callable[[str], Awaitable[Page | PrunusError]]


async def run_all(work: Work, urls: Iterable[str], limit: int, ordered: bool) -> AsyncGenerator[Result, None]:
    """Yield the result of ``work`` for every URL; closing the generator cancels and awaits all tasks.

    An iterator that has no URL now is asked again after the next result, which may have brought some.

    :param limit: most URLs under way, finished but not yet yielded ones included.
    :param ordered: whether to yield in the order of the URLs; else the first finished comes first.
    """
    running: deque[asyncio.Task[Result]] = deque()
    source, positions = iter(urls), count()

    async def numbered(position: int, url: str) -> Result:
        return position, await work(url)

    try:
        while True:
            while len(running) < max(1, limit) and (url := next(source, None)) is not None:
                running.append(asyncio.get_running_loop().create_task(numbered(next(positions), url)))
            if not running:
                return
            finished = running[0] if ordered else await _first_finished(running)
            result = await finished
            running.remove(finished)
            yield result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _first_finished(running: Iterable[asyncio.Task[Result]]) -> asyncio.Task[Result]:
    """Wait for the first finished task."""
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return next(task for task in running if task in done)


__all__ = ["Clock", "FetchRules", "HttpFetcher"]

ACCEPT: Final = "text/html,application/xhtml+xml,text/markdown;q=0.9,application/pdf;q=0.9,text/*;q=0.9,*/*;q=0.8"
"""HTML is asked for first, because citations are to be found in the page that a person opens."""
KEPT: Final = frozenset(
    "content-type content-language content-disposition content-location last-modified etag cache-control expires "
    "date age vary link location retry-after x-robots-tag content-signal".split()
)
"""Response headers that a page keeps."""

_TYPE: Final = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127})\s*(?:;|$)")
_CHARSET: Final = re.compile(r""";\s*+charset\s*+=\s*+["']?\s*+([A-Za-z0-9_.:+-]{1,40})""", re.IGNORECASE)

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HTML: Final = ("", "text/html", "application/xhtml+xml")
_REFRESH_SECONDS: Final = 5  # a page that shows itself longer is meant to be read
_STALE_ALLOWED: Final = ("connect", "cut", "dns", "timeout")
_MAX_OTHER_BODY: Final = 64 * 1024
"""Most bytes to read of the body of a redirect or an error; a body read to its end leaves the connection reusable."""


@dataclass(frozen=True, slots=True)
class FetchRules:
    """Politeness and retries, in seconds; the egress door holds the limits of one exchange.

    :param at_once: most concurrent pages.
    :param per_host: most concurrent requests to one host.
    :param delay: shortest pause between two requests to a host; robots.txt may require a longer one.
    :param retries: retries after a busy response (429, 5xx) or a broken connection.
    :param backoff: pause before the first retry; doubled for each further one, and varied by half.
    :param max_wait: longest wait that Retry-After may ask for.
    :param languages: the Accept-Language header; '' sends none.
    """

    at_once: int = 16
    per_host: int = 4
    delay: float = 0.0
    retries: int = 3
    backoff: float = 0.5
    max_wait: float = 30.0
    languages: str = ""


class _TimeBudget:
    """The remaining network time of one page, redirects and retries included; waiting for a slot does not count."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds, self.left = url, seconds, seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the context and charge its time; cancel it when the time is used up.

        :raises FetchFailed: the time is used up.
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
    """State of one event loop: the client with its connections, and the turns of hosts."""

    loop: asyncio.AbstractEventLoop
    client: httpx.AsyncClient
    turns: HostTurns


class HttpFetcher:
    """Fetches pages. Inside ``async with`` it reuses connections between pages.

    :param door: the egress door, with the limits.
    :param rules: politeness and retries.
    :param cache: the HTTP cache; None for no cache.
    :param robots: the robots.txt rules; None ignores robots.txt, which only the operator may choose.
    :param clock: time and randomness.
    :param conditions: returns headers that make the request of a URL conditional, from what the caller keeps of its
        page. Where the server confirms that, the page has the status 304 and no content. Unless it returns None, the
        server is asked even where the cache has a fresh copy.
    """

    def __init__(
        self,
        door: Egress,
        rules: FetchRules | None = None,
        *,
        cache: Cache | None = None,
        robots: Robots | None = None,
        clock: Clock | None = None,
        conditions: Conditions | None = None,
    ) -> None:
        self._conditions = conditions
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

        :raises RefusedUrl: the door or robots.txt refuses the URL or the target of a redirect.
        :raises FetchFailed: the page cannot be fetched; for 4xx and 5xx with the status.
        """
        start = self._door.check_url(url)
        async with self._current() as session:
            page = await self._walk(session, start)
        return replace(page, url=url)

    async def fetch_many(
        self, urls: Iterable[str], limit: int = 0, *, ordered: bool = False
    ) -> AsyncGenerator[Result, None]:
        """Yield ``(position, page or error)`` for many URLs; a failure ends only its own page.

        URLs are taken from the iterable as slots become free, so it may be endless. Closing the generator, or
        cancelling its reader, cancels and awaits all requests under way; a loop that may end early should close
        the generator with :func:`contextlib.aclosing`.

        :param limit: most concurrent pages; 0 takes the limit of the rules.
        :param ordered: whether to yield in the order of the URLs; else the first finished comes first.
        """
        async with self._current() as session:

            async def fetch_one(url: str) -> Page | PrunusError:
                try:
                    with errors_of_page(url):
                        page = await self._walk(session, self._door.check_url(url))
                except PrunusError as error:
                    return error
                return replace(page, url=url)

            async with aclosing(run_all(fetch_one, urls, limit or self._rules.at_once, ordered)) as results:
                async for result in results:
                    yield result

    @property
    def request_headers(self) -> dict[str, str]:
        """Headers of every request; the cache selects variants by them (Vary)."""
        languages = {"accept-language": self._rules.languages} if self._rules.languages else {}
        return {**self._door.request_headers, "accept": ACCEPT, **languages}

    # --- one page --------------------------------------------------------------------------------

    async def _walk(self, session: _Session, url: Url) -> Page:
        """Follow redirects to a page; every step is checked, requested and cached separately."""
        limits = self._door.rules
        budget = _TimeBudget(str(url), limits.total_seconds)
        cookies = httpx.Cookies()  # for sites that set a cookie and check it after a redirect; a new jar for each page
        visited: set[tuple[str, str]] = set()
        for _ in range(limits.max_redirects + 1):
            page = await self._hop(session, url, cookies, budget)
            if page.status == HTTPStatus.NOT_MODIFIED and self._conditions is not None:
                return page
            refresh = page.status not in _REDIRECTS or "location" not in page.headers
            location = _refresh(_success_or_raise(page, self._clock.now())) if refresh else page.headers["location"]
            if not location:
                return page
            target = self._redirect_target(url, location)
            if refresh and str(target) == str(url):  # it loads itself again, for news
                return page
            if target.origin != url.origin:
                cookies.clear()
            step = (str(target), repr(sorted((cookie.name, cookie.value) for cookie in cookies.jar)))
            if step in visited:
                raise FetchFailed(str(url), "redirects", "it redirects in a loop")
            visited.add(step)
            url = target
        raise FetchFailed(str(url), "redirects", f"more than {limits.max_redirects} redirects")

    def _redirect_target(self, url: Url, location: str) -> Url:
        """Return the checked target of a redirect."""
        try:
            target = resolve(url, location)
            self._door.check_url(str(target))
        except RefusedUrl as error:
            why = f"it redirects to {printable_url(location)}: {error.why}"
            raise RefusedUrl(str(url), error.kind, why, error.way_out) from error
        return target

    async def _hop(self, session: _Session, url: Url, cookies: httpx.Cookies, budget: _TimeBudget) -> Page:
        """Return the response of one URL, from the cache or from its server."""
        key = str(url)
        cache = None if len(cookies) else self._cache
        is_kept = self._conditions is not None and self._conditions(key) is not None
        fresh = cache.fresh(key) if cache and not is_kept else None
        if fresh is not None:
            return fresh
        try:
            async with session.turns.slot(url.host):
                return await self._request_with_retries(session, url, cookies, budget)
        except FetchFailed as error:
            stale = cache.stale(key) if cache and (error.status in BUSY or error.kind in _STALE_ALLOWED) else None
            if stale is None:
                raise
            return stale

    async def _request_with_retries(
        self, session: _Session, url: Url, cookies: httpx.Cookies, budget: _TimeBudget
    ) -> Page:
        """Request one URL, with retries."""
        delay = self._rules.delay
        if self._robots is not None:
            async with session.turns.robots_lock(url.host):
                delay = max(delay, await self._robots.delay(session.client, url))
        if delay > _LONGEST_DELAY:
            why = f"the site asks for {delay:g} s between two requests, and at most {_LONGEST_DELAY:g} are waited"
            raise FetchFailed(str(url), "robots", why)

        async def attempt() -> Page:
            await session.turns.wait(url.host, delay)
            async with budget.running():
                return await self._request_once(session.client, url, cookies)

        async def pause(seconds: float) -> None:  # delays every request to this host
            budget.left -= seconds
            session.turns.hold(url.host, seconds)

        rules = self._rules
        retries = Retries(rules.retries + 1, rules.backoff, rules.max_wait, self._clock.jitter)
        return await retries.acall(attempt, sleep=pause, left=lambda: budget.left, may_pass=_may_pass)

    async def _request_once(self, client: httpx.AsyncClient, url: Url, cookies: httpx.Cookies) -> Page:
        """Send one request and return its response as a page; a page of a redirect or error may lack its content."""
        key = str(url)
        cache = self._cache
        asked = (self._conditions(key) if self._conditions is not None and not len(cookies) else None) or {}
        conditions = asked or (cache.validators(key) if cache and not len(cookies) else {})
        while True:
            request = client.build_request("GET", key, headers={**self.request_headers, **conditions})
            cookies.set_cookie_header(request)
            authorised = "cookie" in request.headers
            requested = self._clock.now()
            response = await client.send(request, stream=True)
            try:
                content, complete = await _read(response)
            finally:
                await response.aclose()
            answered = self._clock.now()
            cookies.extract_cookies(response)
            headers = dict(response.headers)  # lower-case names; repeated headers joined
            if self._robots is not None and (signal := self._robots.signal(url)):
                headers.setdefault("content-signal", signal)
            if LOCATION in response.extensions:
                headers["location"] = response.extensions[LOCATION]
            if response.status_code == HTTPStatus.NOT_MODIFIED and asked:
                return _page(key, response.status_code, headers, b"", answered)
            if response.status_code != HTTPStatus.NOT_MODIFIED or not conditions or cache is None:
                break
            confirmed = cache.revalidate(key, headers, answered)
            if confirmed is not None:
                return confirmed
            conditions = {}  # the entry was removed meanwhile: request the whole page
        page = _page(key, response.status_code, headers, content, answered)
        if cache and complete:
            cache.store(key, page, headers, requested, answered, authorised=authorised)
        if page.status >= 400 or page.status < 200:
            raise _status_error(page, answered)
        return page

    # --- connections -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _current(self) -> AsyncIterator[_Session]:
        """Yield the open session of this event loop, or a session for this call only."""
        session = self._session
        if session is not None and session.loop is asyncio.get_running_loop():
            yield session
            return
        async with self._opened() as temporary:
            yield temporary

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[_Session]:
        async with self._door.async_client() as client:
            turns = HostTurns(self._rules.per_host, self._clock, self._next_at)
            yield _Session(asyncio.get_running_loop(), client, turns)


def _may_pass(error: OutsideFailed, tries: int) -> bool:
    """Tell whether a retry may help. A protocol error gets one retry: a reused connection may hold leftover bytes."""
    if not isinstance(error, FetchFailed) or error.kind in ("timeout", "dns"):  # no time left, or no such host
        return False
    return error.may_pass or (error.kind == "protocol" and tries == 1)


async def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """Return the body, and whether it is complete; without success, a body over ``_MAX_OTHER_BODY`` is not read."""
    limit = -1 if response.is_success else _MAX_OTHER_BODY
    parts: list[bytes] = []
    size = 0
    async for data in response.aiter_raw():
        parts.append(data)
        size += len(data)
        if 0 <= limit < size:
            return b"", False
    return b"".join(parts), True


def _page(url: str, status: int, headers: Mapping[str, str], content: bytes, now: float) -> Page:
    """Return a response as a page.

    ``published`` is the Last-Modified date for lack of a better one: on many servers it is only the date of the
    file. A date in the page itself takes precedence later.

    :param headers: by lower-case name.
    :param now: when the response arrived, seconds since 1970.
    """
    content_type = headers.get("content-type", "")
    type_match, charset = _TYPE.match(content_type), _CHARSET.search(content_type)
    changed = http_date(headers.get("last-modified", ""))
    return Page(
        content,
        url=url,
        final_url=url,
        media_type=type_match.group(1).lower() if type_match else "",
        charset=charset.group(1).lower() if charset else "",
        status=status,
        fetched_at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        published=changed.isoformat(timespec="seconds") if changed else "",
        snapshot=hashlib.sha256(content).hexdigest(),
        headers={name: value for name, value in headers.items() if name in KEPT},
    )


def _refresh(page: Page) -> str:
    """Return the address to which a page sends its readers by a ``<meta>`` element; '' where it is the page itself."""
    if page.media_type not in _HTML or not isinstance(page.content, bytes):
        return ""
    try:
        location = refresh_target(page.content, page.charset, _REFRESH_SECONDS)
    except BadPage:  # whoever reads the page says so
        return ""
    return location if scheme_of(location) in ("", "http", "https") else ""


def _success_or_raise(page: Page, now: float) -> Page:
    """Return the page of a complete success; raise for any other status."""
    if 200 <= page.status < 300 and page.status != HTTPStatus.PARTIAL_CONTENT:
        return page
    raise _status_error(page, now)


def _status_error(page: Page, now: float) -> FetchFailed:
    """Return the error for a response with another status than success."""
    try:
        phrase = HTTPStatus(page.status).phrase
    except ValueError:
        phrase = "an unknown status"
    wait = retry_after(page.headers, now)
    why = f"answered {page.status} ({phrase}){wait_hint(wait)}"
    failed = FetchFailed(page.final_url, "status", why, status=page.status, retry_after=wait)
    failed.page = page
    return failed
