"""Pages that need JavaScript, rendered with an installed Chromium (the extra ``browser``).

All traffic of the browser passes the egress door, through a loopback proxy that only this browser can use
(:mod:`prunus.web.door.proxy`): the door resolves, checks and dials every host, for pages, images, scripts, frames and
WebSockets alike. The browser itself resolves no name, opens no UDP socket, keeps no data between two pages, and gets
nothing of this process's environment. Time, bytes and page size are bounded.

A page is loaded, observed until it is complete, and serialised as HTML by a script.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import BadPage, MissingExtra
from ...core.installation import pip_install
from ...core.types import Page
from ..door.errors import FetchFailed, RefusedUrl
from ..door.proxy import CheckingDoor, PinningProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Request, Response, Route
    from playwright.async_api import Page as Tab


SCRIPT: Final = r"""
(function (most) {
  const VOID = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));
  const SKIPPED = new Set("script style template noscript object embed applet canvas".split(" "));
  const BLANK = new Set(["SCRIPT", "STYLE"]);
  const URLS = new Set(["href", "src", "cite", "poster", "data"]);
  const parts = ["<!DOCTYPE html>"];
  let size = 15, frames = 0, shadows = 0, cut = false;
  const put = (text) => { parts.push(text); size += text.length; };
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const quoted = (text) => escape(text).replace(/"/g, "&quot;");
  const inner = (frame) => {
    try {
      const box = frame.getBoundingClientRect();
      const body = frame.contentDocument && frame.contentDocument.body;
      return body && box.width * box.height >= 10000 && frame.checkVisibility() ? body : null;
    } catch (error) { return null; }  // the frame has another origin
  };
  const open = (node, name, moved) => {
    let text = "<" + name;
    for (const attribute of node.attributes) {
      const key = attribute.name.toLowerCase();
      if (!/^[a-z][-a-z0-9_:.]*$/.test(key) || key.startsWith("on") || attribute.value.length > 100000) continue;
      let value = attribute.value;
      if (moved && URLS.has(key)) { try { value = new URL(value, node.baseURI).href; } catch (error) { continue; } }
      text += " " + key + '="' + quoted(value) + '"';
    }
    put(text + ">");
  };
  const children = (node) => {
    if (node.shadowRoot) { shadows += 1; return node.shadowRoot.childNodes; }
    if (node.localName === "slot" && node.getRootNode() instanceof ShadowRoot) {
      const assigned = node.assignedNodes();
      if (assigned.length) return assigned;
    }
    return node.childNodes;
  };
  const stack = [[document.documentElement, false]];
  while (stack.length) {
    const [node, moved] = stack.pop();
    if (typeof node === "string") { put(node); continue; }
    if (size > most) { cut = true; break; }
    if (node.nodeType === 3) { put(escape(node.data)); continue; }
    if (node.nodeType !== 1) continue;
    const name = node.localName.toLowerCase();
    if (!/^[a-z][-a-z0-9_:.]*$/.test(name)) continue;
    if (name === "script" && node.type === "application/ld+json") {
      put('<script type="application/ld+json">' + node.text.replace(/<\//g, "<\\/") + "</script>");
      continue;
    }
    if (SKIPPED.has(name)) continue;
    if (name === "iframe" || name === "frame") {
      const body = inner(node);
      if (!body) continue;
      frames += 1;
      put("<section>");
      stack.push(["</section>", true]);
      for (let i = body.childNodes.length - 1; i >= 0; i--) stack.push([body.childNodes[i], true]);
      continue;
    }
    open(node, name, moved);
    if (VOID.has(name)) continue;
    stack.push(["</" + name + ">", moved]);
    const list = children(node);
    for (let i = list.length - 1; i >= 0; i--) stack.push([list[i], moved]);
  }
  return { html: parts.join(""), cut: cut || size > most, frames, shadows };
})
"""
"""Argument: most code units to write. Returns html, cut (whether over that limit), and counts of frames and shadows."""

QUIET: Final = r"""
(function () {
  const body = document.body;
  const text = body ? body.innerText.length : 0;
  return [document.readyState, text, document.getElementsByTagName("*").length];
})
"""
"""Returns ready state, text length and element count; a page is complete once they stop changing."""


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
    """Renders pages with a browser.

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
            raise MissingExtra(f"rendering needs Playwright: {pip_install('browser')}", subject="playwright") from error
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
