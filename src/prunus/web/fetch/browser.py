"""Pages that need JavaScript, rendered with an installed Chromium (``pip install 'prunus[browser]'``).

All traffic of the browser passes the egress door, through a loopback proxy that only this browser can use
(:mod:`prunus.web.door.proxy`): the door resolves, checks and dials every host, for pages, images, scripts,
frames and WebSockets alike. The browser itself resolves no name, opens no UDP socket, keeps no data between
two pages, and gets nothing of this process's environment. Time, bytes and page size are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ...core.errors import MissingExtra
from ...core.installation import pip_install
from ...core.types import Page
from ..door.errors import FetchFailed
from ..door.proxy import CheckingDoor, PinningProxy
from ._visit import BrowserRules, Visit

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["NAMES", "SWITCHES", "BrowserFetcher", "BrowserRules", "find_browser"]

NAMES: Final = (
    "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "chromium-headless-shell",
    "chrome-headless-shell", "microsoft-edge-stable", "microsoft-edge", "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)  # fmt: skip
"""Program names and paths of browsers to look for, in this order."""

SWITCHES: Final = (
    "--disable-quic",  # QUIC is UDP, which would bypass the proxy
    "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # the browser's own resolver finds no host
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-client-side-phishing-detection",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--disable-speech-api",
    "--disable-notifications",
    "--disable-print-preview",
    "--disable-webgl",
    "--disable-gpu",
    "--mute-audio",
    "--no-first-run",
    "--js-flags=--max-old-space-size=512",  # MiB of memory for the scripts of a page
)
"""Command-line switches in addition to Playwright's. Playwright sets the proxy for each page, loopback included."""

_NOWHERE: Final = "http://127.0.0.1:9"  # proxy for traffic that belongs to no page; no server listens there
_CLOSE_SECONDS: Final = 10.0  # a browser that hangs while closing is abandoned after this


def find_browser(executable: str = "") -> str:
    """Return the path of an installed Chromium.

    :param executable: name or path of the browser; '' tries :data:`NAMES`.
    :raises MissingExtra: no browser was found; the message says what to install or set.
    """
    names = (executable,) if executable else NAMES
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        reason = f"{executable} is not a program" if executable else "no Chromium is installed under a usual name"
        raise MissingExtra(
            f"{reason}; install Chromium or Chrome, or set the path of a browser", subject=executable or "browser"
        )
    return path


class BrowserFetcher:
    """Renders pages with a browser (a :class:`prunus.core.ports.Fetcher`).

    As an ``async`` context manager it keeps one browser for all pages, with a new profile for each page; otherwise
    every page starts a new browser.

    :param door: the egress door.
    :param rules: limits, and which browser to start.
    :param allowed: called with each URL that the main frame loads, redirects included as far as the browser
        reports them; raises if robots.txt forbids the URL.
    :raises MissingExtra: Playwright or a browser is missing.
    """

    def __init__(
        self,
        door: CheckingDoor,
        rules: BrowserRules | None = None,
        *,
        allowed: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        try:
            import playwright.async_api  # noqa: F401  (reports a missing package before any page is fetched)
        except ImportError as error:
            raise MissingExtra(
                f"rendering needs Playwright: {pip_install('browser')}", subject="prunus[browser]"
            ) from error
        self.rules = rules or BrowserRules()
        self.executable = find_browser(self.rules.executable)
        self._door = door
        self._allowed = allowed
        self._browser: Browser | None = None
        self._stack: contextlib.AsyncExitStack | None = None

    async def __aenter__(self) -> BrowserFetcher:
        self._stack = contextlib.AsyncExitStack()
        self._browser = await self._stack.enter_async_context(self._launch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._stack is not None:
            await self._stack.aclose()
        self._browser = self._stack = None

    async def fetch(self, url: str) -> Page:
        """Return a page after its scripts have run, as UTF-8 HTML.

        :raises RefusedUrl: the URL or the target of a redirect is refused.
        :raises FetchFailed: the page did not load, or not in time.
        :raises BadPage: it is a download, not a web page, or over the limit of size.
        :raises MissingExtra: the browser does not start.
        """
        self._door.check_url(url)
        try:
            async with asyncio.timeout(self.rules.total_seconds):
                if self._browser is not None and self._browser.is_connected():
                    return await self._render(self._browser, url)
                async with self._launch() as browser:
                    return await self._render(browser, url)
        except TimeoutError as error:
            why = f"the browser did not finish within {self.rules.total_seconds:g} s"
            raise FetchFailed(url, "timeout", why) from error

    @contextlib.asynccontextmanager
    async def _launch(self) -> AsyncIterator[Browser]:
        """Start a browser, and close it afterwards."""
        from playwright.async_api import Error, async_playwright

        root = hasattr(os, "geteuid") and os.geteuid() == 0
        sandbox = not root if self.rules.sandbox is None else self.rules.sandbox
        with tempfile.TemporaryDirectory(prefix="prunus-browser-", ignore_cleanup_errors=True) as home:
            manager = async_playwright()
            driver = await manager.start()
            try:
                try:
                    browser = await driver.chromium.launch(
                        executable_path=self.executable,
                        args=list(SWITCHES),
                        chromium_sandbox=sandbox,
                        proxy={"server": _NOWHERE},
                        env={"HOME": home, "PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": home},
                        handle_sigint=False,
                        timeout=self.rules.total_seconds * 1000,
                    )
                except Error as error:
                    raise MissingExtra(_launch_failure(self.executable, str(error)), subject=self.executable) from error
                try:
                    yield browser
                finally:
                    with contextlib.suppress(Error, TimeoutError):
                        await asyncio.wait_for(browser.close(), _CLOSE_SECONDS)
            finally:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(driver.stop(), _CLOSE_SECONDS)

    async def _render(self, browser: Browser, url: str) -> Page:
        """Render one page with a new profile and a new proxy."""
        from playwright.async_api import Error

        async with PinningProxy(self._door, self.rules.max_bytes) as proxy:
            context = await browser.new_context(
                proxy={"server": proxy.url, "username": proxy.username, "password": proxy.password},
                accept_downloads=False,
                service_workers="block",
                permissions=[],
                ignore_https_errors=False,
                user_agent=_user_agent(browser.version, getattr(self._door, "user_agent", "")),
                viewport={"width": 1280, "height": 1600},
            )
            try:
                return await Visit(self.rules, self._door, proxy, self._allowed).page(context, url)
            finally:
                with contextlib.suppress(Error, TimeoutError):
                    await asyncio.wait_for(context.close(), _CLOSE_SECONDS)


def _user_agent(version: str, prunus_agent: str) -> str:
    """Return an honest User-Agent header: the browser and its version, headless, and Prunus."""
    engine = f"AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/{version} Safari/537.36"
    return f"Mozilla/5.0 (X11; Linux x86_64) {engine} {prunus_agent}".strip()


def _launch_failure(executable: str, message: str) -> str:
    """Return in one line why a browser did not start."""
    if "No usable sandbox" in message:
        return f"{executable}: its sandbox does not work here; allow user namespaces, or switch it off (sandbox=False)"
    lines = [line.strip(" -\t") for line in message.split("\n") if line.strip()]
    error_line = next((line for line in lines if "rror" in line), lines[0] if lines else "no reason given")
    return f"{executable}: the browser does not start ({error_line[:200]}); install Chromium, or set another path"
