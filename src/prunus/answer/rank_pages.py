"""Mixed ranking of pages (Internet-SAG §3.2): each snippet and each whole content is an item of its own.

For n pages there are 2n items, of all keyword lists together. An item is scored against the keywords; a
page counts as the better of its two items. The order in which providers sent the pages only selects the
candidates: it never enters a score, and shuffled candidates give the same ranking.

What goes beyond the paper is off unless it is switched on (:class:`Beyond`).
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
from ..core.text.words import guess_language, sentence_spans
from ..core.types import Hit

Scores = Callable[[str, Sequence[str]], Floats]
"""Keywords and texts to one number a text; higher is better."""

_PASSAGE: Final = 600
"""Code points of a passage, about, where a content is scored by its best."""

_BEST: Final = 3
"""Passages that a content is the mean of."""

_HALF_LIFE: Final = 30.0
"""Days after which a page is half as fresh."""

_DIGITS: Final = 9
"""Decimals that count: batches of another order add up to another last digit."""

_DATE: Final = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page to be ranked.

    :param hit: as a provider sent it.
    :param content: its whole visible text; '' where it could not be read.
    :param published: as the page says; '' takes what the provider says.
    """

    hit: Hit
    content: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True)
class Beyond:
    """Switches beyond the paper; all off is the paper.

    :param passages: a content counts as the mean of its best three passages, not as one long text.
    :param diversity: taken off for each better page of the same site, where the scores span 0 to 1.
    :param freshness: added for a page of today, half of it for one of 30 days ago; ``now`` must be given. For
        questions that need it.
    """

    passages: bool = False
    diversity: float = 0.0
    freshness: float = 0.0


PAPER: Final = Beyond()


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page in its place.

    :param score: the better of its two items, with what was switched on.
    :param by: which of the two.
    :param snippet, content: their scores; -inf where there is none.
    :param published: as far as it is known.
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

    :param keywords: one text a keyword list, the main one and the auxiliary ones; an item is scored against each,
        and the best counts.
    :param scores: one of ``by_embedder``, ``by_hybrid``, ``by_reranker``, or any function of its kind.
    :param top: pages at most.
    :raises BadInput: no keywords, or freshness without a clock.
    """
    asked = [one for one in dict.fromkeys(keywords) if one.strip()]
    if not asked:
        raise BadInput("ranking: there are no keywords", subject="keywords")
    if beyond.freshness and now is None:
        raise BadInput("ranking: freshness needs to know what time it is", subject="now")
    pages = _distinct(candidates)
    snippets = [page.hit.snippet.strip() or page.hit.title.strip() for page in pages]
    contents = [_passages(page.content) if beyond.passages else [page.content] for page in pages]
    items = [(place, 0, text) for place, text in enumerate(snippets) if text]
    items += [(place, 1, text) for place, texts in enumerate(contents) for text in texts if text.strip()]
    found = np.full((len(pages), 2), -np.inf)
    if items:
        values = _best(asked, [text for _, _, text in items], scores)
        kinds: dict[tuple[int, int], list[float]] = {}
        for (place, kind, _), value in zip(items, values.tolist(), strict=True):
            kinds.setdefault((place, kind), []).append(value)
        for (place, kind), several in kinds.items():
            found[place, kind] = float(np.mean(sorted(several, reverse=True)[:_BEST]))
    return _placed(pages, found, top, beyond, now)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return each page once, by address, in an order that owes nothing to the providers'."""
    pages: dict[str, Candidate] = {}
    for one in sorted(candidates, key=lambda one: (one.hit.url, one.content, one.hit.snippet, one.hit.title)):
        known = pages.get(one.hit.url)
        if known is None or (len(one.content), len(one.hit.snippet)) > (len(known.content), len(known.hit.snippet)):
            pages[one.hit.url] = one
    return list(pages.values())


def _best(keywords: Sequence[str], texts: Sequence[str], scores: Scores) -> NDArray[np.float64]:
    """Return the score of each text by the keyword list that it suits best."""
    found = np.full(len(texts), -np.inf)
    for one in keywords:
        values = np.asarray(scores(one, texts), np.float64)
        if values.shape != (len(texts),) or not np.isfinite(values).all():
            raise BadInput("ranking: the scorer did not give one finite number a text", subject="scores")
        found = np.maximum(found, np.round(values, _DIGITS))
    return found


def _placed(
    pages: Sequence[Candidate], found: NDArray[np.float64], top: int, beyond: Beyond, now: datetime | None
) -> list[RankedPage]:
    """Return the pages by their scores and what is switched on; equal scores go by address."""
    own = found.max(1) if len(pages) else np.zeros(0)
    dates = [page.published or page.hit.published for page in pages]
    value = own.copy()
    if beyond.diversity or beyond.freshness:
        value = _scaled(own)
        if beyond.freshness and now is not None:
            value += beyond.freshness * np.asarray([_fresh(date, now) for date in dates])
    left = [place for place in range(len(pages)) if np.isfinite(own[place])]
    taken: dict[str, int] = {}
    chosen: list[RankedPage] = []
    while left and len(chosen) < top:
        sites = {place: taken.get(_site(pages[place].hit.url), 0) for place in left}
        worth = {place: round(float(value[place]) - beyond.diversity * sites[place], _DIGITS) for place in left}
        best = max(left, key=lambda place: (worth[place], -place))
        left.remove(best)
        site = _site(pages[best].hit.url)
        taken[site] = taken.get(site, 0) + 1
        snippet, content = found[best].tolist()
        by: Literal["snippet", "content"] = "content" if content > snippet else "snippet"
        chosen.append(RankedPage(pages[best].hit, len(chosen) + 1, worth[best], by, snippet, content, dates[best]))
    return chosen


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values from 0 to 1; without any spread, 0."""
    real = values[np.isfinite(values)]
    spread = float(real.max() - real.min()) if len(real) else 0.0
    low = float(real.min()) if len(real) else 0.0
    scaled = (np.where(np.isfinite(values), values, low) - low) / (spread or 1.0)
    return np.asarray(scaled, np.float64)


def _fresh(published: str, now: datetime) -> float:
    """Return 1 for today, one half for 30 days ago, 0 for a date that is not known or lies ahead."""
    match = _DATE.search(published)
    if not match:
        return 0.0
    try:
        day = datetime(int(match[1]), int(match[2]), int(match[3] or 1), tzinfo=UTC)
    except ValueError:
        return 0.0
    clock = now if now.tzinfo else now.replace(tzinfo=UTC)
    days = (clock - day).total_seconds() / 86_400
    return math.pow(0.5, max(0.0, days) / _HALF_LIFE) if days > -1 else 0.0


def _site(url: str) -> str:
    """Return the host of an address, without ``www.``; a file's folder counts as its site."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return (host or url.rpartition("/")[0]).removeprefix("www.")


def _passages(text: str) -> list[str]:
    """Cut a text into runs of sentences."""
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
    """Score by a model that reads keywords and text together."""
    return reranker.rerank


def by_hybrid(embedder: Embedder, dense: float = 0.5) -> Scores:
    """Score by BM25 among these texts and by cosine, each on the scale of its largest value.

    :param dense: weight of the cosine; BM25 counts 1.
    """

    def scores(query: str, texts: Sequence[str]) -> Floats:
        lexical = BM25(texts, language=guess_language(query)).scores(query)
        cosine = np.clip(by_embedder(embedder)(query, texts), 0, None)
        return np.asarray(_topped(lexical) + dense * _topped(np.asarray(cosine, np.float64)), np.float64)

    return scores


def _topped(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = float(values.max()) if len(values) else 0.0
    return values / largest if largest > 0 else values
