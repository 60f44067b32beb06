"""Which addresses belong to a site, and where it never ends: calendars, filters, paths that repeat themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ...core.errors import BadInput
from ...core.text.near import did_you_mean
from ..door.url import Url
from ..fetch.links import NO_PAGE
from ..fetch.robots import matches, normal_path

Scope = Literal["prefix", "host", "domain"]

_NUMBER: Final = re.compile(r"\d+")
_LONGEST: Final = 2_000  # code points of an address
_DEEPEST: Final = 20  # parts of a path
_REPEATS: Final = 3  # times that a part of a path may stand in it


@dataclass(frozen=True, slots=True)
class SiteRules:
    """Which pages of a site are read, and how many.

    :param scope: ``prefix``: what begins like the start's folder; ``host``: the start's host; ``domain``: that and
        the hosts below it. ``www.`` and the scheme make no difference.
    :param include, exclude: patterns of paths as in robots.txt: ``/guide/`` is all below it, ``*`` any text, ``$`` the
        end; a pattern without ``/`` or ``*`` at its start may stand anywhere in the path and its query. Pages must
        match one of ``include``, if there are any, and none of ``exclude``; the start is always read.
    :param depth: links that may lie between the start and a page; what a sitemap, a feed or llms.txt names is at 1.
        0 is the start alone, None no limit.
    :param pages: pages at most.
    :param question: read the pages first whose links promise most for it; '' reads breadth first.
    :param alike: addresses at most that differ only in numbers, or in what stands after the ``?``, and that only links
        name: this ends calendars and filters.
    :param latest: of a documentation whose paths name versions, only the latest that is known; see
        :class:`.versions.Versions`. The start is always read.
    """

    scope: Scope = "prefix"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    pages: int = 10_000
    question: str = ""
    alike: int = 200
    latest: bool = False

    def __post_init__(self) -> None:
        if self.scope not in get_args(Scope):
            hint = did_you_mean(str(self.scope), get_args(Scope))
            raise BadInput(f"a site is a prefix, a host or a domain, not {self.scope!r}{hint}", subject="scope")
        if self.pages < 1 or self.alike < 1 or (self.depth is not None and self.depth < 0):
            raise BadInput("a site has at least one page, and a depth from 0", subject="site")


class SiteScope:
    """Tells which addresses belong to a site.

    :param start: the address of its first page, after redirects.
    """

    def __init__(self, start: Url, rules: SiteRules) -> None:
        self._place = _place(start)
        self._prefix = normal_path(start.target.partition("?")[0].rpartition("/")[0] + "/")
        self._rules = rules
        self._include = [_pattern(text) for text in rules.include]
        self._exclude = [_pattern(text) for text in rules.exclude]

    def refusal(self, url: Url) -> str:
        """Return why an address is left out, '' where it belongs to the site."""
        path = normal_path(url.target)
        bare = path.partition("?")[0]
        if not self._is_inside(url, bare):
            return "outside the site"
        if any(matches(pattern, path) for pattern in self._exclude):
            return "excluded"
        if self._include and not any(matches(pattern, path) for pattern in self._include):
            return "not included"
        if NO_PAGE.search(bare):
            return "no page by its suffix"
        parts = [part for part in bare.split("/") if part]
        if len(path) > _LONGEST or len(parts) > _DEEPEST or any(parts.count(part) > _REPEATS for part in set(parts)):
            return "a path without end"
        return ""

    def _is_inside(self, url: Url, bare: str) -> bool:
        place = _place(url)
        if self._rules.scope == "domain":
            return place == self._place or (place.endswith(f".{self._place}") and url.address is None)
        return place == self._place and (self._rules.scope == "host" or f"{bare}/".startswith(self._prefix))


def shape_of(url: Url) -> str:
    """Return what addresses have in common that differ only in numbers, or in what stands after the ``?``."""
    path, mark, _ = url.target.partition("?")
    return f"{_place(url)}{_NUMBER.sub('#', path)}{mark}"


def _place(url: Url) -> str:
    return url.netloc.removeprefix("www.")


def _pattern(text: str) -> str:
    return normal_path(text if text.startswith(("/", "*")) else f"*{text}")
