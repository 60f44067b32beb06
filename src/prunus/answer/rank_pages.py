"""Mixed ranking of pages (Internet-SAG §3.2): a page's snippet and its whole content are scored as two items.

The items of all pages compete, so n pages have 2n items. An item is scored against the keywords, and a page has the
score of its better item. The order of the providers' hits selects the candidates but never enters a score: shuffled
candidates give the same ranking.

Additions to the paper are off by default (:class:`Beyond`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput
from ..core.ports import Embedder, Floats, Reranker
from ..core.text.bm25 import BM25
from ..core.text.likeness import Likeness
from ..core.text.numbers import bounded_int, in_ascii
from ..core.text.words import guess_language, sentence_spans
from ..core.types import Hit

Scores = Callable[[str, Sequence[str]], Floats]
"""Maps keywords and texts to one number a text; higher is better."""

_PASSAGE: Final = 600
"""About how many code points a passage has, where a content is scored by its passages."""

_BEST: Final = 3
"""Passages whose mean score is the score of a content."""

_HALF_LIFE: Final = 30.0
"""Days in which the freshness of a page falls to one half."""

_DIGITS: Final = 9
"""Decimals of a score that count: the last digits of a sum depend on the order of the batch."""

_DATE: Final = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page to be ranked.

    :param hit: the provider's hit.
    :param content: the page's whole visible text; '' where the page could not be read.
    :param published: the date that the page gives; '' takes the date of the hit.
    """

    hit: Hit
    content: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True)
class Beyond:
    """Additions to the paper's ranking; the defaults are the paper.

    :param passages: score a content by the mean of its best three passages instead of by its whole text.
    :param diversity: subtracted for each better page of the same site; scores are scaled to 0 to 1 before.
    :param freshness: added for a page of today, half of it for a page of 30 days ago; scores are scaled to 0 to 1
        before. Needs ``now``.
    """

    passages: bool = False
    diversity: float = 0.0
    freshness: float = 0.0


PAPER: Final = Beyond()
"""The paper's ranking, without additions."""


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page in the ranking.

    :param place: from 1.
    :param score: the score of its better item, with the additions of :class:`Beyond`.
    :param by: which item is the better.
    :param snippet, content: the scores of the items; -inf for an empty item.
    :param published: the page's or the hit's date; '' where unknown.
    """

    hit: Hit
    place: int
    score: float
    by: Literal["snippet", "content"]
    snippet: float
    content: float
    published: str = ""


def rank(
    keywords: Sequence[str],
    candidates: Sequence[Candidate],
    scores: Scores,
    top: int = 5,
    beyond: Beyond = PAPER,
    now: datetime | None = None,
) -> list[RankedPage]:
    """Return the best distinct pages, best first.

    :param keywords: one text per query of the plan; an item is scored against each query, and its best score counts.
    :param scores: the scoring function, as ``by_embedder``, ``by_hybrid`` and ``by_reranker`` return.
    :param top: most pages that are returned.
    :param now: the current time, for ``beyond.freshness``.
    :raises BadInput: there are no keywords, or ``freshness`` is on without ``now``, or the scores are not one finite
        number a text.
    """
    queries = [query for query in dict.fromkeys(keywords) if query.strip()]
    if not queries:
        raise BadInput("ranking: there are no keywords", subject="keywords")
    if beyond.freshness and now is None:
        raise BadInput("ranking: freshness needs the current time; give now", subject="now")
    pages = _distinct(candidates)
    snippets = [page.hit.snippet.strip() or page.hit.title.strip() for page in pages]
    contents = [_passages(page.content) if beyond.passages else [page.content] for page in pages]
    items = [(place, 0, text) for place, text in enumerate(snippets) if text]
    items += [(place, 1, text) for place, texts in enumerate(contents) for text in texts if text.strip()]
    found = np.full((len(pages), 2), -np.inf)
    if items:
        values = _best(queries, [text for _, _, text in items], scores)
        kinds: dict[tuple[int, int], list[float]] = {}
        for (place, kind, _), value in zip(items, values.tolist(), strict=True):
            kinds.setdefault((place, kind), []).append(value)
        for (place, kind), passages in kinds.items():
            found[place, kind] = float(np.mean(sorted(passages, reverse=True)[:_BEST]))
    return _placed(pages, found, top, beyond, now)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return each page once, sorted by address, so that the order of the hits has no influence."""
    pages: dict[str, Candidate] = {}
    for candidate in sorted(
        candidates,
        key=lambda candidate: (candidate.hit.url, candidate.content, candidate.hit.snippet, candidate.hit.title),
    ):
        known = pages.get(candidate.hit.url)
        if known is None or (len(candidate.content), len(candidate.hit.snippet)) > (
            len(known.content),
            len(known.hit.snippet),
        ):
            pages[candidate.hit.url] = candidate
    return list(pages.values())


def _best(keywords: Sequence[str], texts: Sequence[str], scores: Scores) -> NDArray[np.float64]:
    """Return the best score of each text over all queries, float64 [texts]."""
    best = np.full(len(texts), -np.inf)
    for query in keywords:
        values = np.asarray(scores(query, texts), np.float64)
        if values.shape != (len(texts),) or not np.isfinite(values).all():
            raise BadInput("ranking: the scorer did not give one finite number a text", subject="scores")
        best = np.maximum(best, np.round(values, _DIGITS))
    return best


def _placed(
    pages: Sequence[Candidate], found: NDArray[np.float64], top: int, beyond: Beyond, now: datetime | None
) -> list[RankedPage]:
    """Return the best pages by score and additions; equal scores are ordered by address."""
    raw = found.max(1) if len(pages) else np.zeros(0)
    dates = [page.published or page.hit.published for page in pages]
    value = raw.copy()
    if beyond.diversity or beyond.freshness:
        value = _scaled(raw)
        if beyond.freshness and now is not None:
            value += beyond.freshness * np.asarray([_fresh(date, now) for date in dates])
    open_ = [place for place in range(len(pages)) if np.isfinite(raw[place])]
    taken: dict[str, int] = {}
    chosen: list[RankedPage] = []
    while open_ and len(chosen) < top:
        sites = {place: taken.get(_site(pages[place].hit.url), 0) for place in open_}
        worth = {place: round(float(value[place]) - beyond.diversity * sites[place], _DIGITS) for place in open_}
        best = max(open_, key=lambda place: (worth[place], -place))
        open_.remove(best)
        site = _site(pages[best].hit.url)
        taken[site] = taken.get(site, 0) + 1
        snippet, content = found[best].tolist()
        by: Literal["snippet", "content"] = "content" if content > snippet else "snippet"
        chosen.append(RankedPage(pages[best].hit, len(chosen) + 1, worth[best], by, snippet, content, dates[best]))
    return chosen


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale values to 0 to 1; equal values become 0."""
    real = values[np.isfinite(values)]
    spread = float(real.max() - real.min()) if len(real) else 0.0
    low = float(real.min()) if len(real) else 0.0
    scaled = (np.where(np.isfinite(values), values, low) - low) / (spread or 1.0)
    return np.asarray(scaled, np.float64)


def _fresh(published: str, now: datetime) -> float:
    """Return 1 for today, one half for 30 days ago, and 0 for a missing, invalid or future date."""
    match = _DATE.search(published)
    if not match:
        return 0.0
    try:
        year, month, day = (bounded_int(part, 0, most=9_999) for part in [*in_ascii(match[0]).split("-"), "1"][:3])
        moment = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return 0.0
    clock = now if now.tzinfo else now.replace(tzinfo=UTC)
    days = (clock - moment).total_seconds() / 86_400
    return math.pow(0.5, max(0.0, days) / _HALF_LIFE) if days > -1 else 0.0


def _site(url: str) -> str:
    """Return the host of an address without ``www.``; for a file, its folder."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return (host or url.rpartition("/")[0]).removeprefix("www.")


def _passages(text: str) -> list[str]:
    """Cut a text into passages of whole sentences."""
    found: list[str] = []
    begin = 0
    for start, end in sentence_spans(text):
        if start > begin and end - begin > _PASSAGE:
            found.append(text[begin:start])
            begin = start
    return [*found, text[begin:]]


# --- ways of scoring -----------------------------------------------------------------------------


def by_embedder(embedder: Embedder) -> Scores:
    """Score by the cosine of keywords and text, as the paper does with BGE-M3."""

    def scores(query: str, texts: Sequence[str]) -> Floats:
        return np.asarray(embedder.embed(texts, "document") @ embedder.embed([query], "query")[0], np.float64)

    return scores


def by_reranker(reranker: Reranker) -> Scores:
    """Score by a reranker, which reads keywords and text together."""
    return reranker.rerank


def by_hybrid(embedder: Embedder, dense: float = 0.5) -> Scores:
    """Score by BM25 over the texts and by cosine, each divided by its largest value.

    :param dense: weight of the cosine; BM25 counts 1.
    """
    meaning = Likeness(embedder)

    def scores(query: str, texts: Sequence[str]) -> Floats:
        lexical = BM25(texts, language=guess_language(query)).scores(query)
        vector = embedder.embed([query], "query")[0]
        cosines = meaning.beside_words(query, vector, embedder.embed(texts, "document") @ vector)
        return np.asarray(_topped(lexical) + dense * _topped(np.clip(cosines, 0, None)), np.float64)

    return scores


def _topped(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = float(values.max()) if len(values) else 0.0
    return values / largest if largest > 0 else values
