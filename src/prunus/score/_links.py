"""Links among the pages at hand: a block may be worth what it leads to, and a page what points to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..html.links import canonical, links_of
from ._signals import scaled

_TOP = 3


def link_scores(
    blocks: Blocks, scores: NDArray[np.float64], *, target: float = 0.1, sources: float = 0.1, chrome: float = 0.0
) -> NDArray[np.float64]:
    """Return scores into which the links among the documents are taken in.

    To a block's score, scaled to 1, is added the score of the best page that it links to (the mean of that page's
    best three blocks), and the score of the best block of another page that links to its own page: anchor texts and
    what stands around them are part of that block.

    :param target, sources: weights of the two; 0 leaves one out.
    :param chrome: factor for links in menus and footers, which link everything to everything.
    """
    own = scaled(scores)
    pages = {canonical(tree.url): number for number, tree in enumerate(blocks.trees) if tree.url}
    if len(pages) < 2 or not len(blocks):
        return own
    document = np.asarray([block.document for block in blocks.blocks])
    worth = [_page_score(own[document == number]) for number in range(len(blocks.trees))]
    leads_to = np.zeros(len(blocks))
    pointed_at = np.zeros(len(blocks.trees))
    for index, to, weight in _edges(blocks, pages, chrome):
        leads_to[index] = max(leads_to[index], weight * worth[to])
        pointed_at[to] = max(pointed_at[to], weight * own[index])
    return np.asarray(own + target * leads_to + sources * pointed_at[document], np.float64)


def _page_score(values: NDArray[np.float64]) -> float:
    return float(np.sort(values)[-_TOP:].mean()) if len(values) else 0.0


def _edges(blocks: Blocks, pages: dict[str, int], chrome: float) -> list[tuple[int, int, float]]:
    """List (block, document that it links to, weight)."""
    cached = blocks.cache.get("edges")
    known: list[tuple[int, int, bool]] = cached if isinstance(cached, list) else []
    if not isinstance(cached, list):
        starts: dict[int, list[tuple[int, int, int]]] = {}
        for index, block in enumerate(blocks.blocks):
            starts.setdefault(block.document, []).append((block.lo, block.hi, index))
        for number, tree in enumerate(blocks.trees):
            own = starts.get(number, [])
            place = 0
            for link in links_of(tree):
                to = pages.get(canonical(link.target), number)
                while place < len(own) and own[place][1] <= link.node:
                    place += 1
                if to != number and place < len(own) and own[place][0] <= link.node:
                    known.append((own[place][2], to, link.chrome))
        blocks.cache["edges"] = known
    return [(index, to, chrome if inside else 1.0) for index, to, inside in known if chrome or not inside]
