"""One page in a browser: load it, wait until it is complete, serialise it as HTML."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import BadPage
from ...core.types import Page
from ..door.errors import FetchFailed, RefusedUrl
from ..door.proxy import CheckingDoor, PinningProxy
from ._rendered import QUIET, SCRIPT

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Request, Response, Route
    from playwright.async_api import Page as Tab

_MIB: Final = 1024 * 1024
_PAGES: Final = ("text/html", "application/xhtml+xml", "text/plain", "")
_KEPT_HEADERS: Final = ("content-language", "last-modified", "date")
_QUIET_STEP: Final = 0.25  # seconds between two observations of a page
_SCRIPT_SECONDS: Final = 4.0  # seconds after which a script of the page counts as endless
_MAX_INTERRUPTIONS: Final = 4  # endless scripts, or sudden navigations, tolerated in one page
_QUIET_LOOKS: Final = 4  # equal observations in a row that mean a complete page


@dataclass(frozen=True, slots=True)
class BrowserRules:
    """How pages are rendered. Seconds and bytes.

    :param executable: the browser's path; '' for the first installed browser with a usual name.
    :param navigation_seconds: time limit for loading the page; what has loaded by then is read.
    :param settle_seconds: time limit for the scripts of the page to change it after that.
    :param total_seconds: time limit of one page, the start of the browser included.
    :param max_bytes: most bytes of traffic for one page, all its resources included.
    :param max_page_bytes: most UTF-16 code units of the rendered HTML.
    :param blocked: kinds of resources not to load, by Playwright's names.
    :param sandbox: whether to use Chromium's sandbox; None uses it unless this process is root, where it cannot
        work.
    """

    executable: str = ""
    navigation_seconds: float = 20.0
    settle_seconds: float = 5.0
    total_seconds: float = 45.0
    max_bytes: int = 64 * _MIB
    max_page_bytes: int = 16 * _MIB
    blocked: frozenset[str] = frozenset({"image", "media", "font"})
    sandbox: bool | None = None


class Visit:
    """One page in a browser, from its URL to its HTML."""

    def __init__(
        self,
        rules: BrowserRules,
        door: CheckingDoor,
        proxy: PinningProxy,
        allowed: Callable[[str], Awaitable[None]] | None,
    ) -> None:
        self._rules = rules
        self._door = door
        self._proxy = proxy
        self._allowed = allowed
        self._tab: Tab | None = None
        self._session: CDPSession | None = None
        self._forbidden: Exception | None = None
        self._event_tasks: set[asyncio.Task[None]] = set()
        self._loading: set[Request] = set()

    async def page(self, context: BrowserContext, url: str) -> Page:
        """Load the page, wait until it is complete, and serialise it."""
        from playwright.async_api import Error

        tab = self._tab = await context.new_page()
        self._session = await context.new_cdp_session(tab)
        tab.on("dialog", lambda dialog: self._start_task(dialog.dismiss()))
        context.on("page", lambda opened: self._start_task(opened.close()) if opened is not tab else None)
        tab.on("request", lambda request: self._loading.add(request))
        tab.on("requestfinished", lambda request: self._loading.discard(request))
        tab.on("requestfailed", lambda request: self._loading.discard(request))
        await context.route("**/*", self._route)
        try:
            response = await tab.goto(url, wait_until="commit", timeout=self._rules.navigation_seconds * 1000)
            await self._settle(tab)
            return await self._serialise(context, tab, response, url)
        except Error as error:
            raise self._failure(url, str(error)) from error
        except TimeoutError as error:
            raise FetchFailed(url, "timeout", "its scripts run without end and block the reading") from error

    async def _route(self, route: Route) -> None:
        """Continue or abort a request of the browser; the proxy checks its host in any case."""
        request = route.request
        if request.resource_type in self._rules.blocked or self._is_foreign(request):
            await route.abort("blockedbyclient")
            return
        if request.is_navigation_request() and request.frame.parent_frame is None:
            try:
                self._door.check_url(request.url)
                if self._allowed is not None:
                    await self._allowed(request.url)
            except Exception as error:
                self._forbidden = error  # raised later by _failure: a callback would lose the error
                await route.abort("accessdenied")
                return
        await route.continue_()

    def _is_foreign(self, request: Request) -> bool:
        """Tell whether a request belongs to another tab; tabs that a page opens are closed unread."""
        from playwright.async_api import Error

        try:
            return request.service_worker is None and request.frame.page is not self._tab
        except Error:  # the frame of a tab that is still opening
            return True

    async def _settle(self, tab: Tab) -> None:
        """Wait until the page stops changing; a page that never does is read after the time limit."""
        clock = asyncio.get_running_loop().time
        load_deadline, settle_deadline = clock() + self._rules.navigation_seconds, 0.0
        previous, equal_looks = None, 0
        while equal_looks < _QUIET_LOOKS and not self._proxy.exhausted:
            state = await self._run_isolated(QUIET, "")
            if state and state[0] != "loading":
                settle_deadline = settle_deadline or clock() + self._rules.settle_seconds
            if clock() > (settle_deadline or load_deadline):
                return
            quiet = state == previous and state and state[0] == "complete" and not self._loading
            equal_looks = equal_looks + 1 if quiet else 0
            previous = state
            await asyncio.sleep(_QUIET_STEP)

    async def _run_isolated(self, script: str, argument: str) -> Any:
        """Run a script in an isolated world, where the page cannot have replaced any function.

        If an endless script of the page blocks it, that script is terminated; the page keeps its current state.
        """
        from playwright.async_api import Error

        assert self._session is not None
        for retries_left in reversed(range(_MAX_INTERRUPTIONS)):
            try:
                return await asyncio.wait_for(self._evaluate(self._session, script, argument), _SCRIPT_SECONDS)
            except TimeoutError:
                await asyncio.wait_for(self._session.send("Runtime.terminateExecution"), _SCRIPT_SECONDS)
            except Error:  # the page has just navigated to another URL
                if not retries_left:
                    raise
                await asyncio.sleep(_QUIET_STEP)
        raise TimeoutError

    async def _evaluate(self, session: CDPSession, script: str, argument: str) -> Any:
        frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "prunus"})
        arguments = {
            "expression": f"({script})({argument})",
            "contextId": world["executionContextId"],
            "returnByValue": True,
        }
        return (await session.send("Runtime.evaluate", arguments))["result"].get("value")

    async def _serialise(self, context: BrowserContext, tab: Tab, response: Response | None, url: str) -> Page:
        """Serialise the page, after checking its final URL, type and size."""
        headers = await response.all_headers() if response is not None else {}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        final_url = tab.url
        self._check_arrival(url, final_url)
        if kind not in _PAGES:
            raise BadPage(f"{url}: this is {kind}, not a web page; fetch it without the browser", subject=url)
        rendered = await self._run_isolated(SCRIPT, str(self._rules.max_page_bytes))
        if self._proxy.exhausted:
            raise FetchFailed(url, "too-large", f"it loads more than {self._rules.max_bytes // _MIB} MiB")
        if not isinstance(rendered, dict) or rendered.get("cut"):
            size = f"{self._rules.max_page_bytes / _MIB:g} MiB"
            raise BadPage(f"{url}: the rendered page is over the limit of {size}", subject=url)
        content = str(rendered["html"]).encode("utf-8", "replace")
        kept_headers = {str(name): headers[name] for name in _KEPT_HEADERS if name in headers}
        marks = f"frames={rendered['frames']}; shadow-roots={rendered['shadows']}; bytes={self._proxy.bytes}"
        return Page(
            content,
            url=url,
            final_url=final_url,
            media_type="text/html",
            charset="utf-8",
            status=response.status if response is not None else 200,
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            snapshot=hashlib.sha256(content).hexdigest(),
            headers={**kept_headers, "x-prunus-rendered": f"{marks}; refused={len(self._proxy.refused)}"},
        )

    def _check_arrival(self, url: str, final_url: str) -> None:
        """Check the final URL of the page with the door.

        :raises RefusedUrl: the door refuses it; the message says why.
        """
        if self._forbidden is not None:
            raise self._forbidden
        final = self._door.check_url(final_url)
        for host_and_port in (final.netloc, f"{final.host}:{final.port}"):
            if host_and_port in self._proxy.refused:
                reason = self._proxy.refused[host_and_port]
                raise RefusedUrl(url, "address", f"it leads to {reason}", "nothing was read")

    def _failure(self, url: str, message: str) -> Exception:
        """Return the error for a page that did not load, in one line."""
        if self._forbidden is not None:
            return self._forbidden
        if "Download is starting" in message:
            return BadPage(f"{url}: this is a download, not a web page; fetch it without the browser", subject=url)
        if self._proxy.exhausted:
            return FetchFailed(url, "too-large", f"it loads more than {self._rules.max_bytes // _MIB} MiB")
        if "ERR_TUNNEL_CONNECTION_FAILED" in message or "ERR_EMPTY_RESPONSE" in message or "ERR_PROXY" in message:
            for reason in self._proxy.refused.values():
                return RefusedUrl(url, "address", f"it leads to {reason}", "nothing was read")
            for reason in self._proxy.failed.values():
                return FetchFailed(url, "connect", f"the browser could not reach it ({reason})")
        if "Timeout" in message:
            return FetchFailed(url, "timeout", f"the page did not load within {self._rules.navigation_seconds:g} s")
        line = next((part for part in message.split("\n") if part.strip()), "no reason given")
        return FetchFailed(url, "browser", f"the browser could not read it ({line.strip()[:200]})")

    def _start_task(self, work: Awaitable[None]) -> None:
        """Start an event's action in a task; an error because its tab has closed is ignored."""
        from playwright.async_api import Error

        async def run() -> None:
            with contextlib.suppress(Error):
                await work

        task = asyncio.ensure_future(run())
        self._event_tasks.add(task)
        task.add_done_callback(self._event_tasks.discard)
