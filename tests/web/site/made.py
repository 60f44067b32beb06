"""A site made by code, on a real socket: lists of all kinds, redirects, duplicates, traps, and pages that change."""

from __future__ import annotations

import gzip
import random
import re
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.web.fetch.server import Request, Server, reply

WORDS = """tide harbour gauge sluice basin pier bolt quay ferry lock water level station record storm mean annual drum paper
    clock float chart bridge mill reading table height metre error survey datum""".split()
WALL = """<!doctype html><title>Just a moment...</title><noscript>Enable JavaScript and cookies to continue</noscript>
<script>window._cf_chl_opt={cvId:'3'}</script><div id="challenge-error-text">Checking your browser</div>"""
ROBOTS = "User-agent: *\nDisallow: /private\n"


def prose(number: int, words: int = 120) -> str:
    """Return text that belongs to a number alone."""
    chosen = random.Random(number)
    sentences = (" ".join(chosen.choices(WORDS, k=9)).capitalize() for _ in range(words // 9 + 1))
    return f"Chapter {number} says: " + ". ".join(sentences) + "."


@dataclass
class MadePage:
    """A page of the site.

    :param changed: when it was changed last, seconds since 1970.
    """

    body: str
    changed: float
    kind: str = "text/html; charset=utf-8"

    @property
    def etag(self) -> str:
        return f'"{hash((self.body, "etag")) & 0xFFFFFFFF:x}"'


class MadeSite(Server):
    """Serves a site; ``pages`` may be changed while it runs.

    ``bytes`` counts what was sent, heads included; ``times`` when each request came; ``asked`` the paths.

    :param count: chapters under ``/guide/``, which a sitemap names.
    :param words: of each chapter.
    :param seconds: that each answer takes.
    """

    def __init__(self, count: int = 20, words: int = 120, seconds: float = 0.0) -> None:
        super().__init__()
        self.routes = self._respond
        self.bytes, self.times, self.asked = 0, list[float](), Counter[str]()
        self.seconds = seconds
        self.count = count
        self.busy: set[str] = set()  # paths that answer 429 once
        self.down: set[str] = set()  # paths that answer 503
        self.slow: dict[str, float] = {}  # seconds that a path takes
        self.redirects: dict[str, str] = {}
        self.robots = ROBOTS
        self.lists = True
        self.validators = True
        self.fresh = "no-cache"
        self._counting = threading.Lock()
        self._sessions = 0
        long_ago = time.time() - 40 * 86_400
        chapters = "".join(f"<li><a href='/guide/{n}.html'>Chapter {n}</a>" for n in range(1, count + 1))
        self.pages: dict[str, MadePage] = {
            "/": MadePage(
                f"""<title>Home</title><link rel=alternate type=application/rss+xml href=/feed.xml>
                <h1>Tide office</h1><p>{prose(-1)}
                <a href=guide/>Guide</a> <a href=/about.html?utm_source=home>About</a> <a href=/about.html#team>Team</a>
                <a href=/copy.html>Copy</a> <a href=/old>Old</a> <a href=/away>Away</a> <a href=/private/x.html>Private</a>
                <a rel=nofollow href=/login.html>Log in</a> <a href=/quiet.html>Quiet</a> <a href=/calendar/2024/01/>Calendar</a>
                <a href=/walled.html>Walled</a> <a href=/missing.html>Missing</a> <a href=http://other.example/>Other</a>
                <a href=/chart.png>Chart</a> <a href=mailto:a@b.example>Mail</a> <a href=/inside>Inside</a>""",
                long_ago,
            ),
            "/guide/": MadePage(f"<title>Guide</title><h1>Guide</h1><p>{prose(-2)}<ul>{chapters}</ul>", long_ago),
            "/about.html": MadePage(f"<title>About</title><h1>About</h1><p>{prose(-3)}<a href=/>Home</a>", long_ago),
            "/copy.html": MadePage(f"<title>About</title><h1>About</h1><p>{prose(-3)}<a href=./>Home</a>", long_ago),
            "/moved.html": MadePage(f"<title>Moved</title><h1>Moved</h1><p>{prose(-4)}", long_ago),
            "/quiet.html": MadePage(
                f"<title>Quiet</title><meta name=robots content=noindex><p>{prose(-5)}<a href=/behind.html>Behind</a>",
                long_ago,
            ),
            "/behind.html": MadePage(f"<title>Behind</title><p>{prose(-6)}", long_ago),
            "/login.html": MadePage(f"<title>Log in</title><p>{prose(-7)}", long_ago),
            "/news/1.html": MadePage(f"<title>News 1</title><p>{prose(-8)}", long_ago),
            "/news/2.html": MadePage(f"<title>News 2</title><p>{prose(-9)}", long_ago),
            "/plain.html": MadePage(f"<title>Plain</title><p>{prose(-10)}", long_ago),
            "/named.html": MadePage(f"<title>Named</title><p>{prose(-11)}", long_ago),
            "/walled.html": MadePage(WALL, long_ago),
            "/private/x.html": MadePage(f"<title>Private</title><p>{prose(-12)}", long_ago),
        }
        for n in range(1, count + 1):
            self.pages[f"/guide/{n}.html"] = MadePage(self.chapter(n, words), long_ago)
        self.redirects |= {"/old": "/moved.html", "/away": "http://other.example/", "/inside": "http://10.0.0.1/secret"}

    def chapter(self, n: int, words: int = 120) -> str:
        """Return the source of a chapter; ``{session}`` is another one in each answer."""
        after = f"<a href='/guide/{n % self.count + 1}.html?PHPSESSID={{session}}'>next</a>"
        return f"<title>Chapter {n}</title><h1>Chapter {n}</h1><p>{prose(n, words)}</p>{after}"

    def change(self, path: str, body: str = "") -> None:
        """Change a page now."""
        self.pages[path] = MadePage(body or self.pages[path].body + "<p>And the gauge was moved.", time.time())

    def since(self) -> tuple[int, int]:
        """Return the requests and bytes since the last call."""
        with self._counting:
            counted = sum(self.asked.values()), self.bytes
            self.asked.clear()
            self.bytes = 0
            self.times.clear()
        return counted

    def most_in_a_second(self) -> int:
        """Return the most requests within one second."""
        times = sorted(self.times)
        return max((sum(begin <= moment < begin + 1.0 for moment in times) for begin in times), default=0)

    # --- answers -----------------------------------------------------------------------------

    def _respond(self, request: Request, connection: socket.socket) -> None:
        with self._counting:
            self.times.append(time.monotonic())
            self.asked[request.target] += 1
            self._sessions += 1
        if wait := self.slow.get(request.target, self.seconds):
            time.sleep(wait)
        data = self._reply(request)
        with self._counting:
            self.bytes += len(data)
        connection.sendall(data)

    def _reply(self, request: Request) -> bytes:
        path = request.target.partition("?")[0]
        if path in self.down:
            return reply(b"down", status="503 Service Unavailable")
        if path in self.busy:
            self.busy.discard(path)
            return reply(b"slower", "Retry-After: 1", status="429 Too Many Requests")
        if path in self.redirects:
            return reply(b"", f"Location: {self.redirects[path]}", status="301 Moved Permanently")
        if path == "/robots.txt":
            named = f"Sitemap: {self.url('/sitemaps.xml')}\n" if self.lists else ""
            return reply(self.robots + named, "Content-Type: text/plain")
        if self.lists and (listed := self._list(path)) is not None:
            return reply(listed, "Content-Type: application/octet-stream")
        if calendar := re.fullmatch(r"/calendar/(\d+)/(\d+)/", path):
            year, month = int(calendar[1]), int(calendar[2])
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)
            body = f"<title>{year}-{month}</title><p>Tides of {year}-{month}. <a href='/calendar/{year}/{month:02}/'>next</a>"
            return reply(body, "Content-Type: text/html")
        page = self.pages.get(path)
        if page is None:
            return reply("not here", status="404 Not Found")
        modified = datetime.fromtimestamp(page.changed, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        heads = [f"Content-Type: {page.kind}"]
        if self.validators:
            heads += [f"ETag: {page.etag}", f"Last-Modified: {modified}", f"Cache-Control: {self.fresh}"]
            if page.etag in request.headers.get("if-none-match", ""):
                return reply(b"", *heads, status="304 Not Modified")
        return reply(page.body.replace("{session}", f"{self._sessions:032x}"), *heads)

    def _list(self, path: str) -> bytes | None:
        """Return a file that lists pages: an index of sitemaps, gzip, news, text, RSS, llms.txt."""
        if path == "/sitemaps.xml":
            names = "".join(
                f"<sitemap><loc>{self.url(name)}</loc></sitemap>"
                for name in ("/guide.xml.gz", "/news.xml", "/plain.txt")
            )
            return f"<?xml version='1.0'?><sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{names}</sitemapindex>".encode()
        if path == "/guide.xml.gz":
            entries = "".join(
                f"<url><loc>{self.url(name)}</loc><lastmod>{_iso(page.changed)}</lastmod></url>"
                for name, page in self.pages.items()
                if name.startswith("/guide/")
            )
            return gzip.compress(
                f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>".encode()
            )
        if path == "/news.xml":
            spaces = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'"
            date = _iso(self.pages["/news/1.html"].changed)
            news = f"<n:news><n:publication_date>{date}</n:publication_date></n:news>"
            picture = "<image:image xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'><image:loc>/x.html</image:loc></image:image>"
            return f"<urlset {spaces}><url><loc>{self.url('/news/1.html')}</loc>{news}{picture}</url></urlset>".encode()
        if path == "/plain.txt":
            return self.url("/plain.html").encode()
        if path == "/feed.xml":
            item = (
                f"<item><link>{self.url('/news/2.html')}</link><pubDate>Tue, 05 Nov 2024 10:00:00 GMT</pubDate></item>"
            )
            return f"<rss version='2.0'><channel><link>{self.url()}</link>{item}</channel></rss>".encode()
        if path == "/llms.txt":
            return b"# Tide office\n\n- [Named](/named.html): what the others do not name\n"
        return None


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
