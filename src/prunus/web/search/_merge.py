"""Several searches as one: reciprocal rank fusion, no page twice, fail-over, and a breaker for each provider."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import SearchProvider
from ...core.text.bm25 import tokens
from ...core.types import Hit, Results, SearchRequest
from ._wire import SearchFailed

RRF: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke, Büttcher: SIGIR 2009)."""

ALIKE: Final = 0.9
"""Jaccard likeness of the word triples of two hits from which they are one page under two addresses."""

_LEAST: Final = 8
"""Words that a hit must show before its text may make it a double."""

_COMPARED: Final = 200
"""Hits whose texts are compared, and words of each; all pairs are looked at."""

_TRACKING: Final = re.compile(
    r"utm_\w+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|igshid|mc_[ce]id|_hs\w+|ref_src|srsltid|spm"
)
_SAFE_PATH: Final = "/:@!$&'()*+,;=-._~"


def canonical(url: str) -> str:
    """Return what two addresses of one page share: no scheme, ``www.``, default port, fragment or tracking.

    For comparing only; it is no address.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    if parts.scheme not in ("http", "https"):
        return url
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    place = f"{host}:{port}" if port and port not in (80, 443) else host
    path = quote(unquote(parts.path, errors="replace"), safe=_SAFE_PATH, errors="replace").rstrip("/")
    fields = [
        pair for pair in parse_qsl(parts.query[:4_000], keep_blank_values=True) if not _TRACKING.fullmatch(pair[0])
    ]
    query = urlencode(sorted(fields), errors="replace")
    return f"{place}{path}{'?' + query if query else ''}"


def fuse(lists: Sequence[Sequence[Hit]], constant: int = RRF) -> list[Hit]:
    """Merge ranked lists: each hit counts 1 / (constant + rank) in every list, best first, no page twice.

    Hits of one page are joined: the best-placed one stays, with the longest snippet and text of them all
    and the names of all engines; ranks are written anew. Equal sums keep the order of the lists.
    """
    places: dict[str, float] = {}
    joined: dict[str, Hit] = {}
    for hits in lists:
        seen: set[str] = set()
        for rank, hit in enumerate(hits, 1):
            key = canonical(hit.url)
            joined[key] = _joined(joined[key], hit) if key in joined else hit
            if key not in seen:
                seen.add(key)
                places[key] = places.get(key, 0.0) + 1.0 / (constant + rank)
    order = sorted(places, key=lambda key: -places[key])  # stable
    return [replace(hit, rank=rank) for rank, hit in enumerate(_distinct([joined[key] for key in order]), 1)]


def _joined(one: Hit, other: Hit) -> Hit:
    """Return the first hit with what the other one knows better."""
    engines = dict.fromkeys([*one.engine.split("+"), *other.engine.split("+")])
    return replace(
        one,
        title=one.title or other.title,
        snippet=max(one.snippet, other.snippet, key=len),
        text=max(one.text, other.text, key=len),
        published=one.published or other.published,
        engine="+".join(name for name in engines if name),
    )


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Leave out a hit that says, nearly word for word, what a better one says."""
    kept: list[Hit] = []
    shown: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        triples = _triples(hit) if len(kept) < _COMPARED else frozenset()
        double = next((at for at, other in enumerate(shown) if _alike(triples, other)), -1)
        if double >= 0:
            kept[double] = _joined(kept[double], hit)
        else:
            kept.append(hit)
            shown.append(triples)
    return kept


def _triples(hit: Hit) -> frozenset[tuple[str, ...]]:
    words = tokens(f"{hit.title} {hit.snippet}"[:4_000])[:_COMPARED]
    return frozenset(zip(words, words[1:], words[2:], strict=False)) if len(words) >= _LEAST else frozenset()


def _alike(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    if not one or not other:
        return False
    return len(one & other) >= ALIKE * len(one | other)


@dataclass(slots=True)
class Breaker:
    """Keeps a provider that fails again and again from being asked for a while.

    :param failures: in a row, after which it is left alone.
    :param pause: seconds; then one request tries it.
    """

    clock: Callable[[], float] = time.monotonic
    failures: int = 3
    pause: float = 30.0
    _failed: int = 0
    _until: float = 0.0

    @property
    def open(self) -> bool:
        """Whether the provider is left alone now."""
        return self.clock() < self._until

    def good(self) -> None:
        """Note that it answered."""
        self._failed, self._until = 0, 0.0

    def bad(self, error: Exception) -> None:
        """Note that it failed; a refused key, or a wish to be left alone, counts at once."""
        self._failed += 1
        wanted, at_once = 0.0, False
        if isinstance(error, SearchFailed):
            wanted, at_once = min(error.retry_after or 0.0, 3600.0), error.kind in ("key", "rate")
        if at_once or self._failed >= self.failures:
            self._until = self.clock() + max(self.pause, wanted)


class Merged:
    """Several providers as one (port: SearchProvider).

    :param providers: in the order in which they are preferred.
    :param way: ``merge`` asks all at once and fuses what comes; ``first`` asks the next only where one
        fails or finds nothing.
    :param seconds: after which the providers that have not answered are given up.
    :param clock: monotonic seconds, for the breakers.
    """

    name = "merged"
    lacks_key = False
    lacks_address = False

    def __init__(
        self,
        providers: Sequence[SearchProvider],
        way: Literal["merge", "first"] = "merge",
        seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not providers:
            raise BadInput("search: no provider was given", subject="search")
        self._providers = list(providers)
        self._breakers = [Breaker(clock) for _ in providers]
        self._way = way
        self._seconds = seconds

    async def search(self, request: SearchRequest) -> Results:
        """Return the merged hits; a provider that failed is a warning while another answered.

        :raises BadInput: the request, or the settings of every provider, cannot be used.
        :raises OutsideFailed: no provider answered; the message names each with its reason.
        """
        answers: list[Results] = []
        errors: list[Exception] = []
        if self._way == "merge":
            done = await asyncio.gather(*(self._one(at, request) for at in range(len(self._providers))))
        else:
            done = await self._in_order(request)
        for one in done:
            if isinstance(one, Results):
                answers.append(one)
            else:
                errors.append(one)
        if not answers:
            raise self._none(errors)
        hits = fuse([answer.hits for answer in answers])[: request.count]
        warnings = [warning for answer in answers for warning in answer.warnings] + [str(error) for error in errors]
        left = [answer.remaining for answer in answers if answer.remaining >= 0]
        usd = sum(answer.usd for answer in answers)
        return Results(tuple(hits), tuple(dict.fromkeys(warnings)), usd, min(left, default=-1))

    async def _in_order(self, request: SearchRequest) -> list[Results | Exception]:
        done: list[Results | Exception] = []
        for at in range(len(self._providers)):
            done.append(await self._one(at, request))
            found = done[-1]
            if isinstance(found, Results) and found.hits:
                break
        return done

    async def _one(self, at: int, request: SearchRequest) -> Results | Exception:
        """Ask one provider; what it fails with is returned, and noted."""
        provider, breaker = self._providers[at], self._breakers[at]
        name = provider.name
        if breaker.open:
            return OutsideFailed(f"search {name}: left alone for a while after it failed", subject=name)
        try:
            async with asyncio.timeout(self._seconds):
                found = await provider.search(request)
        except TimeoutError:
            late = OutsideFailed(f"search {name}: no answer within {self._seconds:g} s", subject=name)
            breaker.bad(late)
            return late
        except OutsideFailed as error:
            breaker.bad(error)
            return error
        except BadInput as error:
            return error
        breaker.good()
        return found

    @staticmethod
    def _none(errors: Sequence[Exception]) -> Exception:
        """Return what to raise where nobody answered."""
        if len(errors) == 1 or all(isinstance(error, BadInput) for error in errors):
            return errors[0]
        whole = "; ".join(dict.fromkeys(str(error) for error in errors))
        return OutsideFailed(f"no search provider answered: {whole}", subject="search")
