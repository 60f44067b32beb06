"""Rendering in a real Chromium: the page it reads, the hosts it cannot reach, and its limits."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import extras
from tests.extras import need
from tests.web.fetch.server import Answer, Server, door_to, redirect_to, respond, respond_bytes

from prunus import clean
from prunus.core.errors import BadPage, MissingExtra
from prunus.core.types import Page
from prunus.web.door.egress import FetchFailed, RefusedUrl
from prunus.web.fetch.browser import BrowserFetcher, BrowserRules, find_browser

HTML = "Content-Type: text/html; charset=utf-8"

Read = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> str:
    """The path of an installed Chromium; without one these tests skip, or fail if all extras are required."""
    need("playwright.async_api")
    try:
        return find_browser()
    except MissingExtra as error:
        if extras.ALL:
            pytest.fail(f"PRUNUS_ALL_EXTRAS is set, but {error}")
        pytest.skip(str(error))


@pytest.fixture
def read(browser: str) -> Read:
    """Read a page with a browser whose door allows the given servers and no other internal host."""

    def run(url: str, *servers: Server, names: dict[str, list[str]] | None = None, **rules: Any) -> Page:
        rules = {"executable": browser, "total_seconds": 60.0, **rules}
        return asyncio.run(BrowserFetcher(door_to(*servers, names=names), BrowserRules(**rules)).fetch(url))

    return run


def site(**pages: str | Answer) -> Server:
    """A server of HTML pages by name; ``index`` is ``/``."""
    routes = {}
    for name, page in pages.items():
        routes["/" if name == "index" else f"/{name}"] = respond(page, HTML) if isinstance(page, str) else page
    return Server(routes)


# --- what is read --------------------------------------------------------------------------------

FILLED = """<!doctype html><title>Tides</title><noscript>Enable JavaScript.</noscript><div id="root"></div><script>
fetch("/data").then(answer => answer.json()).then(data => setTimeout(() => {
  document.getElementById("root").innerHTML = "<h1>" + data.title + "</h1><p onclick='x()'>High water &amp; low water: 4 &lt; 5.</p>";
}, 400));</script>"""


@pytest.mark.full
def test_a_page_that_fills_itself_by_script_is_read(read: Read) -> None:
    data = respond('{"title": "Gezeiten von Velmar – 潮汐"}', "Content-Type: application/json")
    with site(index=FILLED, data=data) as server:
        page = read(server.url("/#top"), server)
    assert (
        clean(page, format="markdown").strip()
        == "Tides\n\n# Gezeiten von Velmar – 潮汐\n\nHigh water & low water: 4 < 5."
    )
    assert (page.url, page.final_url, page.status) == (server.url("/#top"), server.url("/#top"), 200)
    assert (page.media_type, page.charset, len(page.snapshot)) == ("text/html", "utf-8", 64)
    agent = server.requests[0].headers["user-agent"]
    assert "HeadlessChrome" in agent and "Prunus/" in agent
    assert b"<script" not in page.content and b"onclick" not in page.content  # type: ignore[operator]


STRUCTURE = """<!doctype html><title>Parts</title><base href="/base/"><script type="application/ld+json">{"a": "</" }</script>
<style>.x{}</style><x-card><b slot="name">Named</b> loose <i>kept</i></x-card><x-plain>not shown</x-plain>
<iframe src="/frame" width=400 height=200></iframe><iframe srcdoc="<p>Tiny pixel" width=1 height=1></iframe>
<img src="a.png" alt="A gauge"><pre>  two
 lines</pre><a href="other.html">Other</a><textarea>typed</textarea><template><p>template</p></template><script>
customElements.define("x-card", class extends HTMLElement { constructor() { super();
  this.attachShadow({mode: "open"}).innerHTML = "<h2><slot name=name></slot></h2><p>Shadow: <slot></slot></p><slot name=none>Fallback</slot>"; }});
document.querySelector("x-plain").attachShadow({mode: "open"}).innerHTML = "<p>In the root</p>";
Element.prototype.getAttribute = Node.prototype.cloneNode = () => { throw new Error("no") };
Array.prototype.push = function () { document.title = "tampered"; return 0 };
</script>"""


@pytest.mark.full
def test_shadow_roots_and_frames_of_the_same_origin_are_read(read: Read) -> None:
    frame = '<title>F</title><p>In the frame, <a href="deep.html">deep</a></p><script>parent.document</script>'
    with site(index=STRUCTURE, frame=frame) as server:
        page = read(server.url(), server)
    html = str(page.content, "utf-8")  # type: ignore[arg-type]
    assert (
        '<h2><b slot="name">Named</b></h2>'.replace("<b ", '<slot name="name"><b ').replace("</b>", "</b></slot>")
        in html
    )
    text = clean(page, format="text")
    for words in (
        "Named",
        "Shadow: loose kept",
        "Fallback",
        "In the root",
        "In the frame, deep",
        "  two\n lines",
        "Other",
        "typed",
    ):
        assert words in text, words
    for words in ("not shown", "Tiny pixel", "template", "tampered"):
        assert words not in html, words
    assert f'href="{server.url("/deep.html")}"' in html, "links of a frame are made absolute: its base is lost"
    assert '<base href="/base/">' in html and 'href="other.html"' in html
    assert '<script type="application/ld+json">{"a": "<\\/" }</script>' in html
    assert "frames=1; shadow-roots=2" in page.headers["x-prunus-rendered"]


@pytest.mark.full
def test_one_browser_reads_many_pages_and_keeps_nothing_between_them(browser: str) -> None:
    script = """<title>S</title><p id=p></p><script>p.textContent = "seen: " + (document.cookie || localStorage.x || "nothing");
    document.cookie = "a=b"; localStorage.x = "c"</script>"""

    async def run(server: Server) -> list[Page]:
        async with BrowserFetcher(door_to(server), BrowserRules(browser)) as fetcher:
            first = await fetcher.fetch(server.url())
            return [first, *await asyncio.gather(fetcher.fetch(server.url()), fetcher.fetch(server.url()))]

    with site(index=script) as server:
        pages = asyncio.run(run(server))
    assert [clean(page, format="text").split("\n")[-1] for page in pages] == ["seen: nothing"] * 3
    assert not any("cookie" in request.headers for request in server.requests)


@pytest.mark.full
def test_popups_dialogs_and_permissions_lead_nowhere(read: Read) -> None:
    script = """<title>D</title><ul id=log></ul><script>
    const log = text => { const li = document.createElement("li"); li.textContent = text; document.getElementById("log").append(li); };
    alert("x"); log("prompt: " + prompt("name?")); log("popup: " + (window.open("/popup") ? "opened" : "none"));
    navigator.serviceWorker.register("/worker.js").then(() => log("worker asked"), () => log("worker refused"));
    navigator.geolocation.getCurrentPosition(() => log("place: yes"), () => log("place: no"));
    navigator.mediaDevices.getUserMedia({audio: true}).then(() => log("sound: yes"), () => log("sound: no"));
    log("notices: " + (window.Notification ? Notification.permission : "none"));
    setTimeout(() => log("done"), 500);</script>"""
    with site(index=script, popup="<p>Popup", **{"worker.js": "self.x = 1"}) as server:
        text = clean(read(server.url(), server), format="text")
    assert {"prompt: null", "place: no", "sound: no", "done"} <= {line.strip("- ") for line in text.split("\n")}
    assert "yes" not in text
    assert set(server.targets()) == {"/"}


@pytest.mark.full
def test_status_and_redirects_are_told(read: Read) -> None:
    with site(index=redirect_to("/there"), there=respond("<p>Gone, sorry.", HTML, status="410 Gone")) as server:
        page = read(server.url(), server)
    assert (page.status, page.final_url, page.url) == (410, server.url("/there"), server.url())


# --- what it cannot reach ------------------------------------------------------------------------

PROBES = """<!doctype html><title>Probes</title>
<link rel="preconnect" href="http://HOST"><link rel="dns-prefetch" href="//HOST"><link rel="prefetch" href="http://HOST/prefetch">
<link rel="stylesheet" href="http://HOST/style.css"><link rel="icon" href="http://HOST/icon"><link rel="manifest" href="http://HOST/manifest">
<img src="http://HOST/img"><img src="/away?img"><iframe src="http://HOST/frame"></iframe><iframe src="/away?frame"></iframe>
<object data="http://HOST/object"></object><embed src="http://HOST/embed"><video src="http://HOST/video" autoplay></video>
<script src="http://HOST/script.js"></script><form id=f action="http://HOST/form" method=post target=t></form><iframe name=t></iframe>
<a id=ping href="#x" ping="http://HOST/ping">x</a><ul id=log></ul><script>
const log = (name, end) => { const li = document.createElement("li"); li.textContent = name + ": " + end; document.getElementById("log").append(li); };
const tell = (name, promise) => promise.then(() => log(name, "reached"), () => log(name, "refused"));
tell("fetch", fetch("http://HOST/fetch", {mode: "no-cors"}).then(r => { if (r.type !== "opaque") throw 0; return r; }));
for (const host of ["localhost:PORT", "[::1]:PORT", "0.0.0.0:PORT", "2130706433:PORT", "[::ffff:7f00:1]:PORT", "127.0.0.1.nip.io:PORT", "inside.velmar.org:PORT"])
  tell(host, fetch("http://" + host + "/name", {mode: "no-cors"}).then(r => { if (r.type !== "opaque") throw 0; }));
tell("redirect", fetch("/away?fetch", {mode: "no-cors"}).then(r => { if (r.type !== "opaque") throw 0; }));
tell("https", fetch("https://HOST/tls", {mode: "no-cors"}));
for (const scheme of ["ws", "wss"])
  tell(scheme, new Promise((done, fail) => { const s = new WebSocket(scheme + "://HOST/socket"); s.onopen = done; s.onerror = fail; }));
tell("events", new Promise((done, fail) => { const s = new EventSource("http://HOST/events"); s.onopen = done; s.onerror = () => { s.close(); fail(); }; }));
tell("worker", new Promise((done, fail) => { const w = new Worker(URL.createObjectURL(new Blob([
  'fetch("http://HOST/worker", {mode: "no-cors"}).then(() => postMessage(1), () => postMessage(0))'])));
  w.onmessage = e => e.data ? done() : fail(); }));
navigator.sendBeacon("http://HOST/beacon", "x"); ping.click(); f.submit(); window.open("http://HOST/popup"); new Image().src = "http://HOST/image";
tell("transport", (async () => { const t = new WebTransport("https://127.0.0.1:UDP/"); await t.ready; })());
const peers = [];
for (const url of ["stun:127.0.0.1:UDP", "stun:localhost:UDP", "turn:127.0.0.1:UDP?transport=udp", "turn:HOST?transport=tcp", "turns:HOST?transport=tcp"]) {
  const peer = new RTCPeerConnection({iceServers: [{urls: url, username: "a", credential: "b"}], iceCandidatePoolSize: 1});
  peer.createDataChannel("x"); peer.createOffer().then(o => peer.setLocalDescription(o)); peers.push(peer);
  peer.onicecandidate = e => { if (e.candidate) log("candidate", e.candidate.candidate.split(" ")[7]); };
}
const going = setInterval(() => log("still", "going"), 200);
setTimeout(() => { clearInterval(going); log("all", "tried"); }, 2500);
</script>"""


class Listener:
    """A UDP socket that counts what arrives."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.received: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while data := self.socket.recv(65_536):
            self.received.append(data)

    def close(self) -> None:
        self.socket.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join(5)
        self.socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    one = Listener()
    yield one
    one.close()


def probing(inside: Server, listener: Listener) -> Server:
    page = (
        PROBES.replace("HOST", f"127.0.0.1:{inside.port}")
        .replace("UDP", str(listener.port))
        .replace("PORT", str(inside.port))
    )
    return site(index=page, away=redirect_to(inside.url("/redirected")))


@pytest.mark.full
@pytest.mark.slow
def test_a_page_that_calls_a_private_address_reaches_nothing(read: Read, listener: Listener) -> None:
    names = {"inside.velmar.org": ["127.0.0.1"]}
    with Server(respond("secret", HTML)) as inside, probing(inside, listener) as server:
        page = read(server.url(), server, names=names, blocked=frozenset(), settle_seconds=8.0)
        time.sleep(0.5)
        assert (inside.connections, listener.received) == (0, [])
    text = clean(page, format="text")
    assert "all: tried" in text and text.count("refused") >= 14
    assert "reached" not in text and "candidate" not in text
    assert "secret" not in text and int(page.headers["x-prunus-rendered"].rpartition("=")[2]) >= 1


@pytest.mark.full
@pytest.mark.slow
def test_the_same_page_reaches_it_where_nothing_is_in_between(browser: str, listener: Listener) -> None:
    """Proves that the probes above work: without our switches and our proxy, the browser reaches their targets."""
    from playwright.async_api import async_playwright

    async def run(url: str) -> None:
        async with async_playwright() as driver:
            plain = await driver.chromium.launch(executable_path=browser, chromium_sandbox=False)
            tab = await plain.new_page()
            await tab.goto(url, wait_until="commit")
            await tab.wait_for_function("document.body.innerText.includes('all: tried')", timeout=20_000)
            await plain.close()

    with Server(respond("secret", HTML)) as inside, probing(inside, listener) as server:
        asyncio.run(run(server.url()))
        reached = {target.partition("?")[0] for target in inside.targets()}
        assert {
            "/fetch",
            "/img",
            "/frame",
            "/socket",
            "/beacon",
            "/form",
            "/worker",
            "/events",
            "/redirected",
            "/name",
        } <= reached
        assert listener.received, "WebRTC's packets arrive"


@pytest.mark.full
def test_the_page_itself_is_refused_where_it_leads_inside(read: Read) -> None:
    with (
        Server(respond("<p>secret", HTML)) as inside,
        site(index=redirect_to(inside.url()), script=f"<script>location = '{inside.url()}'</script>") as server,
    ):
        for path in ("/", "/script"):
            with pytest.raises(RefusedUrl, match="loopback"):
                read(server.url(path), server)
        for url in (
            inside.url(),
            "file:///etc/passwd",
            "http://169.254.169.254/",
            "chrome://version",
            "http://inside.velmar.org/",
        ):
            with pytest.raises(RefusedUrl):
                read(url, server, names={"inside.velmar.org": ["127.0.0.1"]})
        assert inside.connections == 0


@pytest.mark.full
def test_what_forbids_a_page_is_asked_first(browser: str) -> None:
    async def robots(url: str) -> None:
        if "closed" in url:
            raise RefusedUrl(url, "robots", "robots.txt forbids it", "ask its owner")

    async def run(server: Server) -> None:
        fetcher = BrowserFetcher(door_to(server), BrowserRules(browser), allowed=robots)
        await fetcher.fetch(server.url())
        await fetcher.fetch(server.url("/closed"))

    with site(index="<p>Open.") as server:
        with pytest.raises(RefusedUrl, match="robots"):
            asyncio.run(run(server))
        assert server.targets() == ["/"]


# --- that it ends --------------------------------------------------------------------------------


@pytest.mark.full
def test_a_download_is_refused(read: Read, folder: Path) -> None:
    attached = respond("PK", "Content-Type: application/zip", "Content-Disposition: attachment; filename=x.zip")
    later = "<p>Text.<script>location = '/file'; const a = document.createElement('a'); a.href = 'data:,x'; a.download = 'y'; a.click()</script>"
    with site(file=attached, json=respond("{}", "Content-Type: application/json"), later=later) as server:
        with pytest.raises(BadPage, match="this is a download, not a web page"):
            read(server.url("/file"), server)
        assert clean(read(server.url("/later"), server), format="text") == "Text.", (
            "what a page starts is refused, the page is read"
        )
        with pytest.raises(BadPage, match="application/json, not a web page"):
            read(server.url("/json"), server)
    assert list(folder.iterdir()) == []


def drip(request: object, connection: Any) -> None:
    """An endless page: a paragraph every tenth of a second."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>E</title>")
    while True:
        connection.sendall(b"<p>and on</p>\n")
        time.sleep(0.1)


@pytest.mark.full
@pytest.mark.slow
def test_endless_pages_are_cut_off_in_time(read: Read) -> None:
    never = Server(lambda request, connection: connection.recv(1) and None)
    routes = {
        "drip": drip,
        "loop": "<p>Before.<script>while (true) {}</script>",
        "grow": "<p>G<script>setInterval(() => document.body.append('x'), 5)</script>",
    }
    with never, site(**routes) as server:  # type: ignore[arg-type]
        quick = {"navigation_seconds": 2.0, "settle_seconds": 1.0, "total_seconds": 15.0}
        start = time.monotonic()
        assert clean(read(server.url("/drip"), server, **quick), format="text").count("and on") > 5
        assert "Gxx" in clean(read(server.url("/grow"), server, **quick), format="text").replace("\n", "")
        with pytest.raises(FetchFailed, match="within 2 s"):
            read(never.url(), never, **quick)
        assert clean(read(server.url("/loop"), server, **quick), format="text") == "Before."
        with pytest.raises(FetchFailed, match="within 3 s"):
            read(server.url("/loop"), server, **{**quick, "total_seconds": 3.0})
        assert time.monotonic() - start < 60, "a loaded machine takes half of that"


@pytest.mark.full
def test_too_many_bytes_and_too_large_a_page_are_one_clear_line(read: Read) -> None:
    many = "<p>M<script>(async () => { while (true) await fetch('/big') })()</script>"
    large = "<body><script>document.body.innerHTML = '<p>word word</p>'.repeat(70000)</script>"
    long = "<body><script>document.body.innerHTML = '<p>' + 'word '.repeat(220000)</script>"
    with site(index=many, big=respond("x" * 500_000), large=large, long=long) as server:
        with pytest.raises(FetchFailed, match=r"loads more than 2 MiB"):
            read(server.url(), server, max_bytes=2 * 1024 * 1024)
        for path in ("/large", "/long"):
            with pytest.raises(BadPage, match=r"over the limit of 1 MiB"):
                read(server.url(path), server, max_page_bytes=1024 * 1024)


@pytest.mark.full
def test_what_does_not_answer_is_one_clear_line(read: Read) -> None:
    with site(index=respond_bytes(b"no http\r\n\r\n")) as server:
        with pytest.raises(FetchFailed) as failed:
            read("http://nowhere.velmar.org/", server)
        assert "nowhere.velmar.org" in str(failed.value) and "\n" not in str(failed.value)
        with pytest.raises(FetchFailed) as failed:
            read(server.url(), server)
        assert "\n" not in str(failed.value)


@pytest.mark.full
def test_a_browser_that_is_killed_is_one_clear_line(browser: str) -> None:
    async def run(server: Server) -> None:
        async with BrowserFetcher(door_to(server), BrowserRules(browser, total_seconds=20)) as fetcher:
            assert fetcher._browser is not None
            waiting = asyncio.ensure_future(fetcher.fetch(server.url()))
            while not server.requests:
                await asyncio.sleep(0.01)
            await fetcher._browser.close()
            with pytest.raises(FetchFailed, match="browser"):
                await waiting

    with Server(lambda request, connection: server.wait(30)) as server:  # type: ignore[func-returns-value]
        asyncio.run(run(server))


@pytest.mark.full
def test_ctrl_c_ends_at_once_and_leaves_no_browser(browser: str) -> None:
    async def run(server: Server) -> float:
        waiting = asyncio.ensure_future(BrowserFetcher(door_to(server), BrowserRules(browser)).fetch(server.url()))
        while not server.requests:
            await asyncio.sleep(0.01)
        start = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return time.monotonic() - start

    with Server(lambda request, connection: server.wait(30)) as server:  # type: ignore[func-returns-value]
        assert asyncio.run(run(server)) < 10


# --- what is missing -----------------------------------------------------------------------------


def test_no_browser_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("prunus.web.fetch.browser.NAMES", ("chromium", "chrome"))
    with pytest.raises(MissingExtra, match=r"no Chromium is installed under a usual name; install Chromium"):
        find_browser()
    with pytest.raises(MissingExtra, match=r"/no/such is not a program"):
        find_browser("/no/such")


def test_without_playwright_the_pip_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "playwright.async_api", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[browser\]'"):
        BrowserFetcher(door_to())


@pytest.mark.full
def test_a_program_that_is_no_browser_is_one_clear_line(read: Read, tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    program.chmod(0o755)
    with Server() as server, pytest.raises(MissingExtra, match=r"the browser does not start") as missing:
        read(server.url(), server, executable=str(program))
    assert "\n" not in str(missing.value)
