"""Rank the links of a page by how likely they lead to the answer of a question (``--follow N``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder
from ...core.text.bm25 import BM25
from ...core.text.likeness import Likeness
from ...core.text.words import guess_language
from ...pages.links import Link, canonical, links_of
from ...pages.tree import Tree

__all__ = ["NO_PAGE", "Promising", "promising_links", "score_links"]

_CHROME_WEIGHT: Final = 0.5  # of links that are only in menus and footers
_DENSE_WEIGHT: Final = 0.5  # of the similarity of embeddings beside BM25, whose best score is 1
_AROUND_WEIGHT: Final = 0.4  # of the surrounding text beside the link's own words
_DENSE_FLOOR: Final = 0.2  # likeness below which embeddings carry no signal
_MOST: Final = 2_000  # links of one page that are ranked

_ACTION: Final = re.compile(
    r"(?:^|[/_?&=-])(?:log[-_]?(?:in|out|off)|sign[-_]?(?:in|out|up)|register|account|cart|basket|checkout|wishlist|unsubscribe"
    r"|delete|remove|edit|vote|report|share|print|feed|rss|cookies?|privacy|terms|legal|imprint|impressum|subscribe)"
    r"(?:$|[/_?&=.-])",
    re.IGNORECASE,
)
"""Paths of actions, which a fetch must not trigger (log out, delete), and of pages about the site itself."""

NO_PAGE: Final = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|svg|ico|css|m?js|json|map|woff2?|ttf|mp[34]|webm|ogg|wav|avi|mov|zip|t?gz|bz2|xz|7z|rar"
    r"|exe|dmg|apk|deb|rpm|iso|bin)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Promising:
    """A link that may lead to the answer of a question.

    :param url: absolute; not yet checked by the egress door.
    :param text: link text; the texts of all links of the page to this URL.
    :param around: text around the link.
    :param chrome: whether the link is only in menus, headers or footers.
    :param score: higher is better; only the order is meaningful.
    """

    url: str
    text: str
    around: str
    chrome: bool
    score: float


def promising_links(tree: Tree, query: str, count: int, embedder: Embedder | None = None) -> list[Promising]:
    """Return the links of a page that most likely lead to the answer, the best first.

    The score is BM25 over the link text and the words of the URL, with the surrounding text as a weaker field,
    plus the similarity of embeddings if an embedder is given. Links in menus and footers count half. Links to the
    page itself, to files that are no pages, and to actions (log out, buy, delete) are omitted; several links to
    one page are merged. Links with a score of zero are not returned.

    :param count: most links to return.
    :param embedder: adds the similarity of meaning; None scores by words only.
    """
    links = _merged([link for link in links_of(tree) if _is_page(link.target)][:_MOST])
    if not links or count < 1:
        return []
    # no context for links in menus: it has nothing to do with them
    around = ["" if link.chrome else f"{link.heading}\n{link.around}" for link in links]
    language = guess_language(query, tree.lang or "en")
    targets = [link.target for link in links]
    scores = score_links([link.text for link in links], targets, around, query, language, embedder)
    scores = scores * np.where([link.chrome for link in links], _CHROME_WEIGHT, 1.0)
    order = np.argsort(-scores, kind="stable")[:count]
    return [
        Promising(links[i].target, links[i].text, links[i].around, links[i].chrome, float(scores[i]))
        for i in order
        if scores[i] > 0
    ]


def score_links(
    texts: Sequence[str],
    targets: Sequence[str],
    around: Sequence[str],
    query: str,
    language: str,
    embedder: Embedder | None = None,
) -> NDArray[np.float64]:
    """Return how much each link promises for a question, see :func:`promising_links`.

    :param around: the text around each link.
    """
    words = [f"{text}\n{_url_words(target)}" for text, target in zip(texts, targets, strict=True)]
    scores = BM25(words, around, language=language, above_weight=_AROUND_WEIGHT).scores(query)
    if scores.max() > 0:
        scores = scores / scores.max()
    if embedder is None:
        return scores
    meaning = Likeness(embedder)
    dense = _dense(meaning, query, texts)
    wider = _dense(meaning, query, [f"{text}\n{beside}" for text, beside in zip(texts, around, strict=True)])
    return scores + _DENSE_WEIGHT * np.maximum(dense, wider)


def _dense(meaning: Likeness, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the similarity of each text to the query, 0 to 1."""
    above = (meaning.of(query, texts, "query") - _DENSE_FLOOR) / (1 - _DENSE_FLOOR)
    return np.asarray(np.clip(above, 0.0, 1.0), np.float64)


def _merged(links: Sequence[Link]) -> list[Link]:
    """Merge the links to one page: keep the first URL, all texts, and ``chrome`` only if all of them are."""
    merged: dict[str, Link] = {}
    for link in links:
        key = canonical(link.target)
        earlier = merged.get(key)
        if earlier is None:
            merged[key] = link
            continue
        text = earlier.text if link.text in earlier.text else f"{earlier.text} / {link.text}"
        better = link if earlier.chrome and not link.chrome else earlier
        merged[key] = replace(better, text=text, target=earlier.target, chrome=earlier.chrome and link.chrome)
    return list(merged.values())


def _is_page(target: str) -> bool:
    """Tell whether a URL looks like a page, not a file or an action."""
    parts = urlsplit(target)
    return not NO_PAGE.search(parts.path) and not _ACTION.search(f"{parts.path}?{parts.query}")


def _url_words(target: str) -> str:
    """Return the words of a URL's path and query."""
    parts = urlsplit(target)
    return " ".join(_WORD.findall(unquote(f"{parts.path} {parts.query}")))
