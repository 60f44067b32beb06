"""Which version of a documentation is the latest, by the paths of its pages: ``/en/stable/``, ``/v2/``, ``/3.11/``."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final, TypeAlias

from ...core.text.numbers import bounded_int
from ..door.url import Url

Rank: TypeAlias = tuple[int, tuple[float, ...]]

_NUMBERS: Final = re.compile(
    r"(v(?:er)?\.?-?)?(\d{1,4}(?:\.\d{1,3}){0,3})(\.x)?(?:[-._]?(a|b|rc|alpha|beta|dev|pre|preview|snapshot)[-.]?\d{0,3})?",
    re.IGNORECASE,
)
_NAMES: Final = {
    **dict.fromkeys("stable current lts".split(), 4),
    **dict.fromkeys("latest release".split(), 3),
    **dict.fromkeys("dev devel development next nightly main master edge unstable canary".split(), -1),
}
"""Names of versions, better ones with larger numbers: what a site calls stable is what it wants to be read."""

_RELEASED: Final = 2
_PREVIEW: Final = 0
_UNNAMED: Final[Rank] = (5, ())
"""The version whose paths name none, where the same pages stand below others that do, as Docusaurus has it."""


class Versions:
    """Learns the versions of a site from its addresses, in any order.

    A number without a dot or a ``v`` counts only beside other versions: ``/docs/17/`` beside ``/docs/current/`` is
    one, ``/chapter/3/`` is none. Versions have pages below them: ``/releases/4.2/`` alone is a page about one.
    """

    def __init__(self) -> None:
        self._best: dict[str, Rank] = {}
        self._numbers: dict[str, Rank] = {}  # the best plain number, which may be no version
        self._trees: set[str] = set()  # places of versions that have pages below them
        self._without: dict[str, set[str]] = defaultdict(set)  # where versions stand, by the rest of their addresses
        self._plain: set[str] = set()
        self._same: dict[tuple[str, Rank], Rank] = {}  # the rank of a version that another name leads to

    def note(self, url: Url) -> None:
        """Take up an address."""
        address = _address(url)
        found = _version(address)
        if found is None:
            self._plain.add(address)
            for place in self._without.get(address, ()):
                self._best[place] = _UNNAMED
            return
        place, rest, rank, sure = found
        best = self._best if sure else self._numbers
        best[place] = max(best.get(place, rank), rank)
        if rest and sure:
            self._trees.add(place)
            self._without[place + rest].add(place)
            if place + rest in self._plain:
                self._best[place] = _UNNAMED

    def lead(self, source: Url, target: Url) -> bool:
        """Take up a redirect: ``/latest/a`` leads to ``/2.1/a``, so 2.1 is the latest; return whether that is new."""
        found, named = _version(_address(target)), _version(_address(source))
        if found is None or (named is not None and named[0] != found[0]):
            return False
        place, _, rank, _ = found
        of_source = _UNNAMED if named is None else named[2]
        if of_source <= self._same.get((place, rank), rank):
            return False
        self._same[place, rank] = of_source
        self._best[place] = max(self._best.get(place, of_source), of_source)
        return True

    def is_older(self, url: Url) -> bool:
        """Tell whether an address is of another version than the latest one that is known."""
        found = _version(_address(url))
        if found is None:
            return False
        place, _, rank, _ = found
        rank = self._same.get((place, rank), rank)
        best = self._best.get(place) if place in self._trees else None
        return best is not None and rank < max(best, self._numbers.get(place, best))


def _address(url: Url) -> str:
    return url.netloc.removeprefix("www.") + url.target.partition("?")[0]


def _version(address: str) -> tuple[str, str, Rank, bool] | None:
    """Return what stands before the version in an address and behind it, its rank, and whether it surely is one."""
    parts = address.split("/")
    for number, part in enumerate(parts[1:], 1):
        before, behind = "/".join(parts[:number]) + "/", "/".join(parts[number + 1 :])
        name = part.lower()
        if name in _NAMES:
            return before, behind, (_NAMES[name], ()), True
        match = _NUMBERS.fullmatch(name)
        if match:
            mark, numbers, any_below, preview = match.groups()
            sure = bool(mark or any_below or preview or "." in numbers)
            if sure or len(numbers) < 3:
                known = tuple(bounded_int(one, 0, most=9_999) for one in numbers.split("."))
                newest = (float("inf"),) if any_below or not sure else ()  # /3/ and /3.x/ are the newest of 3
                return before, behind, (_PREVIEW if preview else _RELEASED, (*known, *newest)), sure
    return None
