"""Mixed ranking of pages (Internet-SAG §3.2): a page's snippet and its whole content are scored as two items.

The items of all pages compete, so n pages have 2n items. An item is scored against the keywords, and a page has the
score of its better item. The order of the providers' hits selects the candidates but never enters a score: shuffled
candidates give the same ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput
from ..core.ports import Embedder, Floats, Reranker
from ..core.text.bm25 import BM25
from ..core.text.likeness import Likeness, dot_products
from ..core.text.words import guess_language
from ..core.types import Hit

Scores = Callable[[str, Sequence[str]], Floats]
"""Maps keywords and texts to one number a text; higher is better."""

_DIGITS: Final = 9
"""Decimals of a score that count: the last digits of a sum depend on the order of the batch."""


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
class RankedPage:
    """A page in the ranking.

    :param place: from 1.
    :param score: the score of its better item.
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
) -> list[RankedPage]:
    """Return the best distinct pages, best first.

    :param keywords: one text per query of the plan; an item is scored against each query, and its best score counts.
    :param scores: the scoring function, as ``by_embedder``, ``by_hybrid`` and ``by_reranker`` return.
    :param top: most pages that are returned.
    :raises BadInput: there are no keywords or the scores are not one finite number a text.
    """
    queries = [query for query in dict.fromkeys(keywords) if query.strip()]
    if not queries:
        raise BadInput("ranking: there are no keywords", subject="keywords")
    pages = _distinct(candidates)
    snippets = [page.hit.snippet.strip() or page.hit.title.strip() for page in pages]
    items = [(index, 0, text) for index, text in enumerate(snippets) if text]
    items += [(index, 1, page.content) for index, page in enumerate(pages) if page.content.strip()]
    result = np.full((len(pages), 2), -np.inf)
    if items:
        values = _best(queries, [text for _, _, text in items], scores)
        for (index, kind, _), value in zip(items, values.tolist(), strict=True):
            result[index, kind] = value
    best = result.max(1) if len(pages) else np.zeros(0)
    order = [index for index in np.argsort(-best, kind="stable").tolist() if np.isfinite(best[index])]
    ranked = []
    for at, index in enumerate(order[:top], 1):
        page, (snippet, content) = pages[index], result[index].tolist()
        by: Literal["snippet", "content"] = "content" if content > snippet else "snippet"
        published = page.published or page.hit.published
        ranked.append(RankedPage(page.hit, at, float(best[index]), by, snippet, content, published))
    return ranked


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


# --- ways of scoring -----------------------------------------------------------------------------


def by_embedder(embedder: Embedder) -> Scores:
    """Score by the cosine of keywords and text, as the paper does with BGE-M3."""

    def scores(query: str, texts: Sequence[str]) -> Floats:
        return np.asarray(
            dot_products(embedder.embed(texts, "document"), embedder.embed([query], "query")[0]), np.float64
        )

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
        cosines = meaning.beside_words(query, vector, dot_products(embedder.embed(texts, "document"), vector))
        return np.asarray(_topped(lexical) + dense * _topped(np.clip(cosines, 0, None)), np.float64)

    return scores


def _topped(values: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = float(values.max()) if len(values) else 0.0
    return values / largest if largest > 0 else values
