"""Pages that fill themselves by script, read with an installed Chromium (``pip install 'prunus[browser]'``).

Everything that the browser sends goes through the egress door, by a proxy on loopback that only it can use
(:mod:`._proxy`): hosts are resolved, checked and dialled there, for pages, pictures, scripts, frames and
sockets alike. The browser itself resolves no name, opens no UDP socket, keeps nothing between two pages and
sees none of this process's environment. Time, bytes and the size of the page are bounded.
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
"""Where an installed browser is looked for, in this order."""

SWITCHES: Final = (
    "--disable-quic",  # UDP, past the proxy
    "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # whatever would resolve by itself finds nothing
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
    "--js-flags=--max-old-space-size=512",  # MiB that the scripts of a page may hold
)
"""Beside what Playwright sets. The proxy, with ``<-loopback>``, is set for each page."""

_NOWHERE: Final = "http://127.0.0.1:9"  # the proxy of everything that belongs to no page: nobody answers
_CLOSING: Final = 10.0


def find_browser(executable: str = "") -> str:
    """Return the path of an installed Chromium.

    :raises MissingExtra: there is none; the message says what to install or set.
    """
    names = (executable,) if executable else NAMES
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        what = f"{executable} is no program" if executable else "no Chromium is installed under a usual name"
        raise MissingExtra(
            f"{what}; install Chromium or Chrome, or give the path of one", subject=executable or "browser"
        )
    return found


class BrowserFetcher:
    """Reads pages with a browser (a :class:`prunus.core.ports.Fetcher`).

    Used as an ``async`` context manager it keeps one browser for all its pages, with a new profile for each; else
    every page starts a browser of its own.

    :param door: the egress door.
    :param rules: limits, and which browser.
    :param allowed: asked before each page that the main frame loads, as far as the browser shows redirects
        (robots.txt); it raises what forbids the page.
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
            import playwright.async_api  # noqa: F401  (only to say early that it is missing)
        except ImportError as error:
            raise MissingExtra(
                "rendering needs Playwright: pip install 'prunus[browser]'", subject="prunus[browser]"
            ) from error
        self.rules = rules or BrowserRules()
        self.executable = find_browser(self.rules.executable)
        self._door = door
        self._allowed = allowed
        self._kept: Browser | None = None
        self._closing: contextlib.AsyncExitStack | None = None

    async def __aenter__(self) -> BrowserFetcher:
        self._closing = contextlib.AsyncExitStack()
        self._kept = await self._closing.enter_async_context(self._launched())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._closing is not None:
            await self._closing.aclose()
        self._kept = self._closing = None

    async def fetch(self, url: str) -> Page:
        """Return a page as it stands once its scripts have run, as UTF-8 HTML.

        :raises RefusedUrl: the address, or the one that it leads to, is refused.
        :raises FetchFailed: it did not come, or not in time.
        :raises BadPage: it is a download, no page, or over a limit.
        :raises MissingExtra: the browser does not start.
        """
        self._door.check_url(url)
        try:
            async with asyncio.timeout(self.rules.total_seconds):
                if self._kept is not None and self._kept.is_connected():
                    return await self._read(self._kept, url)
                async with self._launched() as browser:
                    return await self._read(browser, url)
        except TimeoutError as error:
            why = f"the browser was not done with it in {self.rules.total_seconds:g} s"
            raise FetchFailed(url, "timeout", why) from error

    @contextlib.asynccontextmanager
    async def _launched(self) -> AsyncIterator[Browser]:
        """Start a browser, and end it."""
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
                    raise MissingExtra(_why_not(self.executable, str(error)), subject=self.executable) from error
                try:
                    yield browser
                finally:
                    with contextlib.suppress(Error, TimeoutError):
                        await asyncio.wait_for(browser.close(), _CLOSING)
            finally:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(driver.stop(), _CLOSING)

    async def _read(self, browser: Browser, url: str) -> Page:
        """Read one page in a profile and through a proxy of its own."""
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
                    await asyncio.wait_for(context.close(), _CLOSING)


def _user_agent(version: str, ours: str) -> str:
    """Return an honest name: the browser's, that it has no window, and ours."""
    engine = f"AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/{version} Safari/537.36"
    return f"Mozilla/5.0 (X11; Linux x86_64) {engine} {ours}".strip()


def _why_not(executable: str, said: str) -> str:
    """Say in one line why a browser did not start."""
    if "No usable sandbox" in said:
        return f"{executable}: its sandbox does not work here; allow user namespaces, or switch it off (sandbox=False)"
    lines = [line.strip(" -\t") for line in said.split("\n") if line.strip()]
    telling = next((line for line in lines if "rror" in line), lines[0] if lines else "no reason given")
    return f"{executable}: the browser does not start ({telling[:200]}); install Chromium, or give another path"
