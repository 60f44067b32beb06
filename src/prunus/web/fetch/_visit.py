"""One page in a browser: loaded, waited for, and written down as HTML."""

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
_QUIET_STEP: Final = 0.25  # seconds between two looks at a page
_HELD_UP: Final = 4.0  # seconds after which a script of the page is taken to run for ever
_PATIENCE: Final = 4  # such scripts, or sudden ends, of one page
_QUIET_LOOKS: Final = 4  # looks that must find the same


@dataclass(frozen=True, slots=True)
class BrowserRules:
    """How pages are rendered. Seconds and bytes.

    :param executable: the browser's path; '' for the first of the usual names.
    :param navigation_seconds: until the page has come; what has come by then is read.
    :param settle_seconds: that a page may go on filling itself after that.
    :param total_seconds: for one page, the start of the browser included.
    :param max_bytes: that may pass for one page, all that it loads included.
    :param max_page_bytes: of the rendered HTML, in code units.
    :param blocked: kinds of resource that are not loaded, by Playwright's names.
    :param sandbox: Chromium's own; None for on, unless this process is root, for whom it cannot work.
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
    """One page, from its address to its HTML."""

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
        self._chores: set[asyncio.Task[None]] = set()
        self._loading: set[Request] = set()

    async def page(self, context: BrowserContext, url: str) -> Page:
        """Load, wait, and write down."""
        from playwright.async_api import Error

        tab = self._tab = await context.new_page()
        self._session = await context.new_cdp_session(tab)
        tab.on("dialog", lambda dialog: self._later(dialog.dismiss()))
        context.on("page", lambda other: self._later(other.close()) if other is not tab else None)
        tab.on("request", lambda request: self._loading.add(request))
        tab.on("requestfinished", lambda request: self._loading.discard(request))
        tab.on("requestfailed", lambda request: self._loading.discard(request))
        await context.route("**/*", self._route)
        try:
            response = await tab.goto(url, wait_until="commit", timeout=self._rules.navigation_seconds * 1000)
            await self._settle(tab)
            return await self._written(context, tab, response, url)
        except Error as error:
            raise self._failure(url, str(error)) from error
        except TimeoutError as error:
            raise FetchFailed(url, "timeout", "its scripts run on and do not let it be read") from error

    async def _route(self, route: Route) -> None:
        """Let a request of the browser go out, or not; wherever it goes, the proxy checks the host."""
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
                self._forbidden = error  # raised again in _failure: here it would be lost in a callback
                await route.abort("accessdenied")
                return
        await route.continue_()

    def _is_foreign(self, request: Request) -> bool:
        """Tell whether a request belongs to another tab than ours: what a page opens is closed unread."""
        from playwright.async_api import Error

        try:
            return request.service_worker is None and request.frame.page is not self._tab
        except Error:  # a tab that is only being opened
            return True

    async def _settle(self, tab: Tab) -> None:
        """Wait until the page stays the same; one that never does is read as it stands."""
        clock = asyncio.get_running_loop().time
        here_by, settled_by = clock() + self._rules.navigation_seconds, 0.0
        last, same = None, 0
        while same < _QUIET_LOOKS and not self._proxy.exhausted:
            seen = await self._apart(QUIET, "")
            if seen and seen[0] != "loading":
                settled_by = settled_by or clock() + self._rules.settle_seconds
            if clock() > (settled_by or here_by):
                return
            quiet = seen == last and seen and seen[0] == "complete" and not self._loading
            same = same + 1 if quiet else 0
            last = seen
            await asyncio.sleep(_QUIET_STEP)

    async def _apart(self, script: str, argument: str) -> Any:
        """Run a script in a world of its own, in which the page has changed no function.

        A script of the page that holds everything up is ended; the page stays as it has left it.
        """
        from playwright.async_api import Error

        assert self._session is not None
        for left in reversed(range(_PATIENCE)):
            try:
                return await asyncio.wait_for(self._evaluate(self._session, script, argument), _HELD_UP)
            except TimeoutError:
                await asyncio.wait_for(self._session.send("Runtime.terminateExecution"), _HELD_UP)
            except Error:  # the page has just gone on to another
                if not left:
                    raise
                await asyncio.sleep(_QUIET_STEP)
        raise TimeoutError

    async def _evaluate(self, session: CDPSession, script: str, argument: str) -> Any:
        frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "prunus"})
        told = {
            "expression": f"({script})({argument})",
            "contextId": world["executionContextId"],
            "returnByValue": True,
        }
        return (await session.send("Runtime.evaluate", told))["result"].get("value")

    async def _written(self, context: BrowserContext, tab: Tab, response: Response | None, url: str) -> Page:
        """Write the page down, if it is one that may be read."""
        headers = await response.all_headers() if response is not None else {}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        final = tab.url
        self._check_arrival(url, final)
        if kind not in _PAGES:
            raise BadPage(f"{url}: this is {kind}, not a web page; fetch it as it is", subject=url)
        found = await self._apart(SCRIPT, str(self._rules.max_page_bytes))
        if self._proxy.exhausted:
            raise FetchFailed(url, "too-large", f"it loads more than {self._rules.max_bytes // _MIB} MiB")
        if not isinstance(found, dict) or found.get("cut"):
            size = f"{self._rules.max_page_bytes / _MIB:g} MiB"
            raise BadPage(f"{url}: the rendered page is over the limit of {size}", subject=url)
        content = str(found["html"]).encode("utf-8", "replace")
        kept = {str(name): headers[name] for name in _KEPT_HEADERS if name in headers}
        marks = f"frames={found['frames']}; shadow-roots={found['shadows']}; bytes={self._proxy.bytes}"
        return Page(
            content,
            url=url,
            final_url=final,
            media_type="text/html",
            charset="utf-8",
            status=response.status if response is not None else 200,
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            snapshot=hashlib.sha256(content).hexdigest(),
            headers={**kept, "x-prunus-rendered": f"{marks}; refused={len(self._proxy.refused)}"},
        )

    def _check_arrival(self, url: str, final: str) -> None:
        """Refuse a page that ended where the door does not lead.

        :raises RefusedUrl: with the door's reason.
        """
        if self._forbidden is not None:
            raise self._forbidden
        arrived = self._door.check_url(final)
        for place in (arrived.netloc, f"{arrived.host}:{arrived.port}"):
            if place in self._proxy.refused:
                raise RefusedUrl(url, "address", f"it leads to {self._proxy.refused[place]}", "nothing was read")

    def _failure(self, url: str, said: str) -> Exception:
        """Say in one line why a page did not come."""
        if self._forbidden is not None:
            return self._forbidden
        if "Download is starting" in said:
            return BadPage(f"{url}: this is a download, not a web page; fetch it as it is", subject=url)
        if self._proxy.exhausted:
            return FetchFailed(url, "too-large", f"it loads more than {self._rules.max_bytes // _MIB} MiB")
        if "ERR_TUNNEL_CONNECTION_FAILED" in said or "ERR_EMPTY_RESPONSE" in said or "ERR_PROXY" in said:
            for reason in self._proxy.refused.values():
                return RefusedUrl(url, "address", f"it leads to {reason}", "nothing was read")
            for reason in self._proxy.failed.values():
                return FetchFailed(url, "connect", f"the browser could not reach it ({reason})")
        if "Timeout" in said:
            return FetchFailed(url, "timeout", f"no page came in {self._rules.navigation_seconds:g} s")
        line = next((part for part in said.split("\n") if part.strip()), "no reason given")
        return FetchFailed(url, "browser", f"the browser could not read it ({line.strip()[:200]})")

    def _later(self, work: Awaitable[None]) -> None:
        """Do what an event asks for; that its tab has gone by then is no fault."""
        from playwright.async_api import Error

        async def chore() -> None:
            with contextlib.suppress(Error):
                await work

        task = asyncio.ensure_future(chore())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
