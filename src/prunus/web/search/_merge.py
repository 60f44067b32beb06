"""Several search providers as one: reciprocal rank fusion, deduplication, fail-over, and circuit breakers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import SearchProvider
from ...core.text.bm25 import tokens
from ...core.types import Hit, Results, SearchRequest
from ...pages.links import page_key
from ._wire import SearchFailed

RRF: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke, Büttcher: SIGIR 2009)."""

SIMILAR: Final = 0.9
"""Jaccard similarity of word triples from which two hits count as the same page under two URLs."""

_LEAST: Final = 8
"""Fewest words of a hit for deduplication by text."""

_COMPARED: Final = 200
"""Most hits to deduplicate by text, and most words of each; a bound because all pairs are compared."""


def fuse(lists: Sequence[Sequence[Hit]], constant: int = RRF) -> list[Hit]:
    """Merge ranked lists by reciprocal rank fusion, best first, each page once.

    A hit scores 1 / (constant + rank) in every list that contains it. Hits of one page are merged: the first hit
    stays, with the longest snippet and text of all, and the names of all engines. Ranks are renumbered. Equal
    scores keep the order of the lists.
    """
    scores: dict[str, float] = {}
    merged: dict[str, Hit] = {}
    for hits in lists:
        seen: set[str] = set()
        for rank, hit in enumerate(hits, 1):
            key = page_key(hit.url)
            merged[key] = _merge_hits(merged[key], hit) if key in merged else hit
            if key not in seen:
                seen.add(key)
                scores[key] = scores.get(key, 0.0) + 1.0 / (constant + rank)
    order = sorted(scores, key=lambda key: -scores[key])  # a stable sort keeps the order of equal scores
    return [replace(hit, rank=rank) for rank, hit in enumerate(_deduplicate([merged[key] for key in order]), 1)]


def _merge_hits(first: Hit, second: Hit) -> Hit:
    """Return the first hit, completed from the second: longer snippet and text, missing title and date."""
    engines = dict.fromkeys([*first.engine.split("+"), *second.engine.split("+")])
    return replace(
        first,
        title=first.title or second.title,
        snippet=max(first.snippet, second.snippet, key=len),
        text=max(first.text, second.text, key=len),
        published=first.published or second.published,
        engine="+".join(name for name in engines if name),
    )


def _deduplicate(hits: Sequence[Hit]) -> list[Hit]:
    """Merge every hit whose text is nearly the same as that of a better hit."""
    kept: list[Hit] = []
    kept_triples: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        triples = _triples(hit) if len(kept) < _COMPARED else frozenset()
        duplicate = next((at for at, earlier in enumerate(kept_triples) if _are_similar(triples, earlier)), -1)
        if duplicate >= 0:
            kept[duplicate] = _merge_hits(kept[duplicate], hit)
        else:
            kept.append(hit)
            kept_triples.append(triples)
    return kept


def _triples(hit: Hit) -> frozenset[tuple[str, ...]]:
    words = tokens(f"{hit.title} {hit.snippet}"[:4_000])[:_COMPARED]
    return frozenset(zip(words, words[1:], words[2:], strict=False)) if len(words) >= _LEAST else frozenset()


def _are_similar(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> bool:
    if not left or not right:
        return False
    return len(left & right) >= SIMILAR * len(left | right)


@dataclass(slots=True)
class Breaker:
    """A circuit breaker: after repeated failures a provider gets no requests for a while.

    :param clock: returns monotonic seconds.
    :param failures: failures in a row that open the breaker.
    :param pause: seconds until the next request.
    """

    clock: Callable[[], float] = time.monotonic
    failures: int = 3
    pause: float = 30.0
    _failed: int = 0
    _until: float = 0.0

    @property
    def open(self) -> bool:
        """Whether the provider gets no requests now."""
        return self.clock() < self._until

    def record_success(self) -> None:
        """Close the breaker after a successful request."""
        self._failed, self._until = 0, 0.0

    def record_failure(self, error: Exception) -> None:
        """Count a failure; a refused key or a rate limit opens the breaker at once."""
        self._failed += 1
        retry_after, at_once = 0.0, False
        if isinstance(error, SearchFailed):
            retry_after, at_once = min(error.retry_after or 0.0, 3600.0), error.kind in ("key", "rate")
        if at_once or self._failed >= self.failures:
            self._until = self.clock() + max(self.pause, retry_after)


class Merged:
    """Several search providers as one (port: SearchProvider).

    :param providers: in order of preference.
    :param way: ``merge`` queries all at once and fuses their hits; ``first`` queries the next provider only after
        a failure or an empty result.
    :param seconds: time limit of each provider.
    :param clock: returns monotonic seconds, for the breakers.
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
        """Return the merged hits; if at least one provider answers, the failures of others become warnings.

        :raises BadInput: the request, or the settings of every provider, cannot be used.
        :raises OutsideFailed: no provider answered; the message names each with its reason.
        """
        if self._way == "merge":
            outcomes = await asyncio.gather(*(self._query(at, request) for at in range(len(self._providers))))
        else:
            outcomes = await self._query_in_order(request)
        answers = [outcome for outcome in outcomes if isinstance(outcome, Results)]
        errors = [outcome for outcome in outcomes if not isinstance(outcome, Results)]
        if not answers:
            raise self._no_answer(errors)
        hits = fuse([answer.hits for answer in answers])[: request.count]
        warnings = [warning for answer in answers for warning in answer.warnings] + [str(error) for error in errors]
        remaining = [answer.remaining for answer in answers if answer.remaining >= 0]  # -1 is unknown
        usd = sum(answer.usd for answer in answers)
        return Results(tuple(hits), tuple(dict.fromkeys(warnings)), usd, min(remaining, default=-1))

    async def _query_in_order(self, request: SearchRequest) -> list[Results | Exception]:
        outcomes: list[Results | Exception] = []
        for at in range(len(self._providers)):
            outcome = await self._query(at, request)
            outcomes.append(outcome)
            if isinstance(outcome, Results) and outcome.hits:
                break
        return outcomes

    async def _query(self, at: int, request: SearchRequest) -> Results | Exception:
        """Query one provider; return its results or its error, and tell its breaker."""
        provider, breaker = self._providers[at], self._breakers[at]
        name = provider.name
        if breaker.open:
            return OutsideFailed(f"search {name}: paused after repeated failures", subject=name)
        try:
            async with asyncio.timeout(self._seconds):
                results = await provider.search(request)
        except TimeoutError:
            late = OutsideFailed(f"search {name}: no answer within {self._seconds:g} s", subject=name)
            breaker.record_failure(late)
            return late
        except OutsideFailed as error:
            breaker.record_failure(error)
            return error
        except BadInput as error:
            return error
        breaker.record_success()
        return results

    @staticmethod
    def _no_answer(errors: Sequence[Exception]) -> Exception:
        """Return the error to raise if no provider answered."""
        if len(errors) == 1 or all(isinstance(error, BadInput) for error in errors):
            return errors[0]
        reasons = "; ".join(dict.fromkeys(str(error) for error in errors))
        return OutsideFailed(f"no search provider answered: {reasons}", subject="search")
