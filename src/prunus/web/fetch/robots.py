"""robots.txt (RFC 9309): read once for each origin, and obeyed by default.

Beyond the standard: ``Crawl-delay`` sets the pause between two requests to the host. A file is valid for an
hour; after a failure to read it, the next attempt is made a minute later.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx

from ...core.text.numbers import bounded_float
from ..door.egress import Egress
from ..door.errors import FetchFailed, RefusedUrl
from ..door.transport import LOCATION
from ..door.url import Url, resolve

MAX_BYTES: Final = 512 * 1024
"""Most bytes of a file to parse; the standard requires at least 500 KiB."""

_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_TOKEN: Final = re.compile(r"[A-Za-z_-]+")
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_SITEMAP: Final = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
_MOST_SITEMAPS: Final = 100  # of one file
_LONGEST_SIGNAL: Final = 300
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HOST_FAILURES: Final = ("dns", "connect", "tls")
"""Failures of the host itself, reported as such and not as a failure of its robots.txt."""

_WAY_OUT: Final = "the operator may set robots = false"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one robots.txt for one robot.

    :param rules: (path pattern, whether it allows), the longest pattern first; of equal length, allowing first.
    :param delay: seconds between two requests.
    :param sitemaps: the addresses of the file's ``Sitemap`` lines, which are for every robot.
    :param signal: what the site asks of who uses its pages (``Content-Signal``), as ``search=yes, ai-input=no``.
    """

    rules: tuple[tuple[str, bool], ...] = ()
    delay: float = 0.0
    sitemaps: tuple[str, ...] = ()
    signal: str = ""

    def allows(self, target: str) -> bool:
        """Tell whether a path with its query may be fetched: the longest matching rule decides (§2.2.2)."""
        path = normal_path(target)
        if path.partition("?")[0] == "/robots.txt":
            return True
        return next((allow for pattern, allow in self.rules if matches(pattern, path)), True)


def read_policy(text: str, agent: str) -> Policy:
    """Parse the rules of a robots.txt for one robot.

    :param agent: product token, in any case. All groups that name it apply together; without such a group, those
        for ``*`` apply.
    """
    named_lines: list[tuple[str, str]] = []
    wildcard_lines: list[tuple[str, str]] = []
    named = False
    for agents, lines in _groups(text):
        if agent.lower() in agents:
            named_lines += lines
            named = True
        elif "*" in agents:
            wildcard_lines += lines
    lines = named_lines if named else wildcard_lines
    rules = [(normal_path(value), key == "allow") for key, value in lines if key.endswith("allow") and value]
    delays = [bounded_float(value, 0.0) for key, value in lines if key == "crawl-delay" and _NUMBER.fullmatch(value)]
    rules.sort(key=lambda rule: (-len(rule[0]), not rule[1]))
    signal = ", ".join(value for key, value in lines if key == "content-signal")[:_LONGEST_SIGNAL]
    return Policy(tuple(rules), max(delays, default=0.0), tuple(_SITEMAP.findall(text)[:_MOST_SITEMAPS]), signal)


def _groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, str]]]]:
    """Yield the groups of a file: lower-case user agents, and (key, value) lines."""
    agents: set[str] = set()
    lines: list[tuple[str, str]] = []
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if lines:
                yield agents, lines
                agents, lines = set(), []
            token = _TOKEN.match(value)
            agents.add("*" if value.startswith("*") else token.group().lower() if token else "")
        elif key in ("allow", "disallow", "crawl-delay", "content-signal") and agents:
            lines.append((key, value))
    yield agents, lines


def normal_path(path: str) -> str:
    """Normalise a path for comparison: escape octets outside ASCII, unescape unreserved ones (§2.2.2)."""

    def unescape(escape: re.Match[str]) -> str:
        char = bytes.fromhex(escape.group(1)).decode("latin-1")
        return char if char in _UNRESERVED else escape.group().upper()

    return _ESCAPE.sub(unescape, quote(path, safe="/%:@!$&'()*+,;=-._~?[]|"))


def matches(pattern: str, path: str) -> bool:
    """Match a pattern with ``*`` and a final ``$``.

    Not a regular expression: a hostile pattern costs at most one linear search of the path per part.
    """
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    last = parts.pop() if anchored and parts else None
    for part in parts:
        start = path.find(part, position)
        if start < 0:
            return False
        position = start + len(part)
    if not anchored:
        return True
    return position == len(path) if last is None else len(path) - len(last) >= position and path.endswith(last)


@dataclass(frozen=True, slots=True)
class _Cached:
    """The cached result of one origin.

    :param policy: None if the file could not be read.
    :param until: end of validity, in seconds of the clock.
    :param why, kind: reason of the failure, for the message and in one word.
    """

    policy: Policy | None
    until: float
    why: str = ""
    kind: str = "robots"


class Robots:
    """Reads robots.txt files through the egress door, and caches them in memory.

    :param door: checks redirects; the first word of its user agent names the robot.
    :param keep: seconds for which a file is valid.
    :param keep_failed: seconds until the next attempt after a failure.
    :param seconds: time limit for reading one file.
    :param clock: returns monotonic seconds.
    """

    def __init__(
        self,
        door: Egress,
        *,
        keep: float = 3600.0,
        keep_failed: float = 60.0,
        seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._door = door
        token = _TOKEN.match(door.user_agent)
        self.agent = token.group() if token else "Prunus"
        self._keep, self._keep_failed, self._seconds = keep, keep_failed, seconds
        self._clock = clock
        self._cache: OrderedDict[str, _Cached] = OrderedDict()
        self._most, self._most_rules = 1000, 200_000  # bounds on memory: files, and rules of all files

    async def delay(self, client: httpx.AsyncClient, url: Url) -> float:
        """Check that robots.txt allows a URL; return the pause in seconds between two requests to its host.

        :param client: a client of the same door.
        :raises RefusedUrl: robots.txt forbids the URL (kind ``robots``), or the host is internal.
        :raises FetchFailed: robots.txt cannot be read, and then the standard forbids every URL (§2.3.1.4).
        """
        cached = await self._current(client, url)
        if cached.policy is None:
            if cached.kind in _HOST_FAILURES:
                raise FetchFailed(str(url), cached.kind, cached.why)
            why = f"{url.origin}/robots.txt {cached.why}; without it no page of the site may be read"
            raise FetchFailed(str(url), "robots", f"{why}; {_WAY_OUT}")
        if not cached.policy.allows(url.target):
            raise RefusedUrl(str(url), "robots", f"the site's robots.txt forbids {self.agent} to read it", _WAY_OUT)
        return cached.policy.delay

    def signal(self, url: Url) -> str:
        """Return what the robots.txt of a URL's origin asks of who uses its pages, if it was read; asks for none."""
        cached = self._cache.get(url.origin)
        return cached.policy.signal if cached is not None and cached.policy is not None else ""

    async def sitemaps(self, client: httpx.AsyncClient, url: Url) -> tuple[str, ...]:
        """Return the sitemaps that the robots.txt of a URL's origin names."""
        policy = (await self._current(client, url)).policy
        return policy.sitemaps if policy else ()

    def allows(self, url: Url) -> bool:
        """Tell whether a URL may be fetched by the files that were read; asks for none."""
        cached = self._cache.get(url.origin)
        return cached is None or cached.policy is None or cached.policy.allows(url.target)

    async def _current(self, client: httpx.AsyncClient, url: Url) -> _Cached:
        """Return the file of an origin, which is read where there is none that is valid."""
        cached = self._cache.get(url.origin)
        if cached is None or cached.until <= self._clock():
            cached = await self._read(client, url)
            self._remember(url.origin, cached)
        return cached

    async def _read(self, client: httpx.AsyncClient, url: Url) -> _Cached:
        """Read and parse the file of an origin."""
        retry_at = self._clock() + self._keep_failed
        try:
            async with asyncio.timeout(self._seconds):
                status, text = await self._fetch_following_redirects(client, url)
        except TimeoutError:
            return _Cached(None, retry_at, f"did not come within {self._seconds:g} s")
        except FetchFailed as error:
            if error.kind in _HOST_FAILURES:
                return _Cached(None, retry_at, error.why, error.kind)
            return _Cached(None, retry_at, f"cannot be read ({error.why})")
        if status == 429 or status >= 500:
            return _Cached(None, retry_at, f"answered {status}")
        policy = read_policy(text, self.agent) if 200 <= status < 300 else Policy()
        return _Cached(policy, self._clock() + self._keep)

    async def _fetch_following_redirects(self, client: httpx.AsyncClient, url: Url) -> tuple[int, str]:
        """Return the status and the text of an origin's file, at most :data:`MAX_BYTES`."""
        file_url = resolve(url, "/robots.txt")
        status, text, location = await _fetch_file(client, file_url)
        for _ in range(_MAX_REDIRECTS):
            if not location:
                return status, text
            try:
                file_url = self._door.check_url(str(resolve(file_url, location)))
                status, text, location = await _fetch_file(client, file_url)
            except RefusedUrl as error:  # the origin is allowed; only the target of its redirect is refused
                raise FetchFailed(str(file_url), "redirects", f"it redirects to a refused URL: {error.why}") from error
        return (404, "") if location else (status, text)  # too many redirects count as a missing file (§2.3.1.2)

    def _remember(self, origin: str, cached: _Cached) -> None:
        """Cache a result; evict the oldest beyond the bounds on files and rules."""
        self._cache[origin] = cached
        self._cache.move_to_end(origin)
        while len(self._cache) > 1 and (len(self._cache) > self._most or self._rule_count() > self._most_rules):
            self._cache.popitem(last=False)

    def _rule_count(self) -> int:
        return sum(len(cached.policy.rules) for cached in self._cache.values() if cached.policy)


async def _fetch_file(client: httpx.AsyncClient, file_url: Url) -> tuple[int, str, str]:
    """Return the status, the text and, for a redirect, the location."""
    async with client.stream("GET", str(file_url)) as response:
        location = response.extensions.get(LOCATION, "") if response.status_code in _REDIRECTS else ""
        content = bytearray()
        async for data in response.aiter_raw():
            content += data
            if len(content) >= MAX_BYTES:
                break
    return response.status_code, content[:MAX_BYTES].decode("utf-8", "replace"), location
