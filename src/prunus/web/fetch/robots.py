"""robots.txt (RFC 9309): read once for each origin, obeyed by default.

What the standard leaves open: ``Crawl-delay`` is obeyed as the pause between two requests to the host;
a file is kept for an hour, and a failure to read it for a minute.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx

from ..door.egress import Egress
from ..door.errors import FetchFailed, RefusedUrl
from ..door.transport import LOCATION
from ..door.url import Url, resolve

MAX_BYTES: Final = 512 * 1024
"""What is read of a file; the standard asks for 500 KiB at least."""

_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_TOKEN: Final = re.compile(r"[A-Za-z_-]+")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NOBODY_THERE: Final = ("dns", "connect", "tls")
"""Failures of the host itself, which have nothing to do with its robots.txt."""

_WAY_OUT: Final = "the operator may set robots = false"


@dataclass(frozen=True, slots=True)
class Policy:
    """What one robots.txt says to one robot.

    :param rules: (path pattern, whether it allows), the longest first; where equal, allowing first.
    :param delay: seconds between two requests.
    """

    rules: tuple[tuple[str, bool], ...] = ()
    delay: float = 0.0

    def allows(self, target: str) -> bool:
        """Tell whether a path with its query may be read: the longest rule that matches decides (§2.2.2)."""
        path = _normal(target)
        if path.partition("?")[0] == "/robots.txt":
            return True
        return next((allow for pattern, allow in self.rules if _matches(pattern, path)), True)


def read_policy(text: str, agent: str) -> Policy:
    """Return what a robots.txt says to a robot.

    :param agent: product token, in any case; groups that name it are joined, else those for ``*`` hold.
    """
    own: list[tuple[str, str]] = []
    anyone: list[tuple[str, str]] = []
    named = False
    for agents, lines in _groups(text):
        if agent.lower() in agents:
            own += lines
            named = True
        elif "*" in agents:
            anyone += lines
    lines = own if named else anyone
    rules = [(_normal(value), key == "allow") for key, value in lines if key != "crawl-delay" and value]
    delays = [float(value) for key, value in lines if key == "crawl-delay" and _NUMBER.fullmatch(value)]
    rules.sort(key=lambda rule: (-len(rule[0]), not rule[1]))
    return Policy(tuple(rules), max(delays, default=0.0))


def _groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, str]]]]:
    """Yield the groups of a file: for whom, and their lines."""
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
        elif key in ("allow", "disallow", "crawl-delay") and agents:
            lines.append((key, value))
    yield agents, lines


def _normal(path: str) -> str:
    """Return a path so that equal ones look equal: octets outside ASCII escaped, unreserved ones not (§2.2.2)."""

    def plain(found: re.Match[str]) -> str:
        char = chr(int(found.group(1), 16))
        return char if char in _UNRESERVED else found.group().upper()

    return _ESCAPE.sub(plain, quote(path, safe="/%:@!$&'()*+,;=-._~?[]|"))


def _matches(pattern: str, path: str) -> bool:
    """Match a pattern with ``*`` and a final ``$``, in time linear in the path for each part of the pattern."""
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    last = parts.pop() if anchored and parts else None
    for part in parts:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if not anchored:
        return True
    return at == len(path) if last is None else len(path) - len(last) >= at and path.endswith(last)


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found at an origin, and until when it holds."""

    policy: Policy | None
    until: float
    why: str = ""
    kind: str = "robots"


class Robots:
    """Reads and remembers robots.txt, through the same door as everything.

    :param door: checks redirects; its user agent names the robot.
    :param keep: seconds for which a file holds.
    :param keep_failed: seconds for which a failure holds.
    :param seconds: for reading one file.
    :param clock: seconds from anywhere.
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
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._most, self._most_rules = 1000, 200_000

    async def delay(self, client: httpx.AsyncClient, url: Url) -> float:
        """Return the seconds to leave between two requests to a host, if its robots.txt lets us read the URL.

        :param client: of the same door.
        :raises RefusedUrl: it does not (kind ``robots``), or the host lies inside.
        :raises FetchFailed: it cannot be read, and then the standard forbids everything (§2.3.1.4).
        """
        known = self._known.get(url.origin)
        if known is None or known.until <= self._clock():
            known = await self._read(client, url)
            self._remember(url.origin, known)
        if known.policy is None:
            if known.kind in _NOBODY_THERE:
                raise FetchFailed(str(url), known.kind, known.why)
            why = f"{url.origin}/robots.txt {known.why}, and until it can be read nothing there may be"
            raise FetchFailed(str(url), "robots", f"{why}; {_WAY_OUT}")
        if not known.policy.allows(url.target):
            raise RefusedUrl(str(url), "robots", f"the site's robots.txt forbids {self.agent} to read it", _WAY_OUT)
        return known.policy.delay

    async def _read(self, client: httpx.AsyncClient, url: Url) -> _Known:
        """Read the file of an origin."""
        soon = self._clock() + self._keep_failed
        try:
            async with asyncio.timeout(self._seconds):
                status, text = await self._ask(client, url)
        except TimeoutError:
            return _Known(None, soon, f"did not come within {self._seconds:g} s")
        except FetchFailed as error:
            if error.kind in _NOBODY_THERE:
                return _Known(None, soon, error.why, error.kind)
            return _Known(None, soon, f"cannot be read ({error.why})")
        if status == 429 or status >= 500:
            return _Known(None, soon, f"answered {status}")
        policy = read_policy(text, self.agent) if 200 <= status < 300 else Policy()
        return _Known(policy, self._clock() + self._keep)

    async def _ask(self, client: httpx.AsyncClient, url: Url) -> tuple[int, str]:
        """Return status and text of an origin's file, at most :data:`MAX_BYTES` of it."""
        place = resolve(url, "/robots.txt")
        status, text, location = await _got(client, place)
        for _ in range(_MAX_REDIRECTS):
            if not location:
                return status, text
            try:
                place = self._door.check_url(str(resolve(place, location)))
                status, text, location = await _got(client, place)
            except RefusedUrl as error:  # the origin itself is well; its robots.txt lies where nobody may go
                raise FetchFailed(str(place), "redirects", f"it redirects to what is refused: {error.why}") from error
        return (404, "") if location else (status, text)  # too many redirects are no file (§2.3.1.2)

    def _remember(self, origin: str, known: _Known) -> None:
        """Keep what was found, within bounds: by files and by rules."""
        self._known[origin] = known
        self._known.move_to_end(origin)
        while len(self._known) > 1 and (len(self._known) > self._most or self._rules() > self._most_rules):
            self._known.popitem(last=False)

    def _rules(self) -> int:
        return sum(_sizes(self._known.values()))


def _sizes(known: Iterable[_Known]) -> Iterator[int]:
    return (len(one.policy.rules) if one.policy else 0 for one in known)


async def _got(client: httpx.AsyncClient, place: Url) -> tuple[int, str, str]:
    """Return status, text and, for a redirect, where it leads."""
    async with client.stream("GET", str(place)) as response:
        location = response.extensions.get(LOCATION, "") if response.status_code in _REDIRECTS else ""
        content = bytearray()
        async for data in response.aiter_raw():
            content += data
            if len(content) >= MAX_BYTES:
                break
    return response.status_code, content[:MAX_BYTES].decode("utf-8", "replace"), location
