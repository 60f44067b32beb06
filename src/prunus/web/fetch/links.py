"""Which links of a page are worth following for a question (``--follow N``)."""

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
from ...core.text.words import guess_language
from ...pages.links import Link, canonical, links_of
from ...pages.tree import Tree

__all__ = ["Promising", "promising_links"]

_CHROME_WEIGHT: Final = 0.5
_DENSE_WEIGHT: Final = 0.5
_AROUND_WEIGHT: Final = 0.4
_DENSE_FLOOR: Final = 0.2  # cosine below which static embeddings say nothing
_MOST: Final = 2_000  # links of one page that are ranked

_ACTION: Final = re.compile(
    r"(?:^|[/_?&=-])(?:log[-_]?(?:in|out|off)|sign[-_]?(?:in|out|up)|register|account|cart|basket|checkout|wishlist|unsubscribe"
    r"|delete|remove|edit|vote|report|share|print|feed|rss|cookies?|privacy|terms|legal|imprint|impressum|subscribe)"
    r"(?:$|[/_?&=.-])",
    re.IGNORECASE,
)
"""Paths that do something, or speak of the site itself. A fetch must not log anybody out."""

_NO_PAGE: Final = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|svg|ico|css|m?js|json|map|woff2?|ttf|mp[34]|webm|ogg|wav|avi|mov|zip|t?gz|bz2|xz|7z|rar"
    r"|exe|dmg|apk|deb|rpm|iso|bin)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Promising:
    """A link that may lead to what a question asks for.

    :param url: absolute; not checked, which the egress door does.
    :param text: what the link says; all its texts, where a page links twice.
    :param score: higher is better; only the order means something.
    """

    url: str
    text: str
    around: str
    chrome: bool
    score: float


def promising_links(tree: Tree, query: str, count: int, embedder: Embedder | None = None) -> list[Promising]:
    """Return the links of a page that look most like leading to the answer, the best first.

    Ranked by BM25 over what the link says and the words of its address, with what stands around it as a weaker
    field, and by embeddings where there are any. Links in menus and footers count half. Links to this page, to
    files that are no pages, and those that do something (log out, buy, delete) are left out; two links to one page
    are one. What shares no word with the question, and no meaning that an embedder sees, is not returned.

    :param count: at most so many.
    """
    links = _merged([link for link in links_of(tree) if _is_page(link.target)][:_MOST])
    if not links or count < 1:
        return []
    said = [f"{link.text}\n{_words_of(link.target)}" for link in links]
    around = ["" if link.chrome else f"{link.heading}\n{link.around}" for link in links]  # menus stand by anything
    language = guess_language(query, tree.lang or "en")
    scores = BM25(said, around, language=language, above_weight=_AROUND_WEIGHT).scores(query)
    if scores.max() > 0:
        scores = scores / scores.max()
    if embedder is not None:
        dense = _dense(embedder, query, [link.text for link in links])
        wider = _dense(embedder, query, [f"{link.text}\n{beside}" for link, beside in zip(links, around, strict=True)])
        scores = scores + _DENSE_WEIGHT * np.maximum(dense, wider)
    scores = scores * np.where([link.chrome for link in links], _CHROME_WEIGHT, 1.0)
    order = np.argsort(-scores, kind="stable")[:count]
    return [
        Promising(links[i].target, links[i].text, links[i].around, links[i].chrome, float(scores[i]))
        for i in order
        if scores[i] > 0
    ]


def _dense(embedder: Embedder, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return how much each text means what the query means, 0 to 1."""
    cosine = embedder.embed(texts) @ embedder.embed([query], "query")[0]
    above = (cosine.astype(np.float64) - _DENSE_FLOOR) / (1 - _DENSE_FLOOR)
    return np.asarray(np.clip(above, 0.0, 1.0), np.float64)


def _merged(links: Sequence[Link]) -> list[Link]:
    """Make one of the links to one page: the first place, every text, and chrome only if all of them are."""
    known: dict[str, Link] = {}
    for link in links:
        key = canonical(link.target)
        before = known.get(key)
        if before is None:
            known[key] = link
            continue
        text = before.text if link.text in before.text else f"{before.text} / {link.text}"
        better = link if before.chrome and not link.chrome else before
        known[key] = replace(better, text=text, target=before.target, chrome=before.chrome and link.chrome)
    return list(known.values())


def _is_page(target: str) -> bool:
    """Tell whether an address may be a page that is only read."""
    parts = urlsplit(target)
    return not _NO_PAGE.search(parts.path) and not _ACTION.search(f"{parts.path}?{parts.query}")


def _words_of(target: str) -> str:
    """Return the words that stand in an address."""
    parts = urlsplit(target)
    return " ".join(_WORD.findall(unquote(f"{parts.path} {parts.query}")))
