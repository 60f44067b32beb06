"""Evidence for a question about a whole page, which shares no word with its answer: "What is this page about?".

The answer is the page's own content: what stands early in it, and what is most like the rest of it. The lead of a page
is hard to beat as its summary, and centroids are the usual way to choose more (Radev et al., IPM 2004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.ports import Segment, Vectors
from ..pages.main.keep import main_spans_in
from ..pages.tree import Tree
from .blocks import Blocks

_SPANS: Final = ("main spans", 0)
_LIKE: Final = 0.5
"""Weight of a block's likeness to the rest of its page; that of its place is 1."""
_LATER: Final = 0.3
"""How fast the weight of the place falls, by blocks of main content."""
_BESIDE: Final = 0.25
"""Factor of a block that is no main content. All three were chosen on the dev half (``docs/lab/log.md``)."""


class Embeddings(Protocol):
    """The embeddings of blocks (:class:`.embedding.Engine`)."""

    def centroid(self, blocks: Blocks, weights: NDArray[np.float64]) -> Vectors:
        """Return the mean of the blocks' vectors by weights, of length 1."""
        ...

    def cosines(self, question: Vectors, blocks: Blocks) -> NDArray[np.float64]:
        """Return the cosine of a vector and each block, float64 [n]."""
        ...


def central(blocks: Blocks, embeddings: Embeddings) -> NDArray[np.float64]:
    """Return how well each block says what the pages are about, from 0 to 1, float64 [n]; there is at least one."""
    shares = _main_shares(blocks)
    starts, lengths = _pages(blocks)
    of_page = np.repeat(np.maximum(np.add.reduceat(shares, starts), 1e-9), lengths)  # each page counts the same
    like = embeddings.cosines(embeddings.centroid(blocks, shares / of_page), blocks).clip(0)
    bears = (1 + (_LIKE * like + _place(blocks)) / (_LIKE + 1)) / 2  # all of the content does
    return np.asarray(bears * _BESIDE ** (1 - shares), np.float64)


def early(blocks: Blocks) -> NDArray[np.float64]:
    """Return how early in the content of its page each block stands, from 0 to 1, float64 [n]; there is at least one.

    Blocks that are no content have a quarter of that.
    """
    return np.asarray(_place(blocks) * _BESIDE ** (1 - _main_shares(blocks)), np.float64)


def _place(blocks: Blocks) -> NDArray[np.float64]:
    """Return 1 at the first block of main content of each page, falling towards 0."""
    content = _main_shares(blocks) > 0.5
    starts, lengths = _pages(blocks)
    passed = np.cumsum(content)
    return np.asarray(1 / (1 + _LATER * (passed - np.repeat(passed[starts] - content[starts], lengths))), np.float64)


def _pages(blocks: Blocks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first block of each page, and how many blocks it has."""
    starts = np.flatnonzero(np.diff([-1, *(block.document for block in blocks.blocks)]))
    return starts, np.diff([*starts, len(blocks)])


def of_main_content(tagged: Sequence[Segment], trees: Mapping[str, Tree]) -> list[Segment]:
    """Return the segments that are main content of their documents; all of a document none of whose segments is.

    :param tagged: the segments, those of a document together.
    :param trees: the documents by id; all segments of others are kept.
    """
    result: list[Segment] = []
    for document, group in groupby(tagged, key=lambda segment: segment.span.document):
        own = list(group)
        if document not in trees:
            result.extend(own)
            continue
        shares = _shares(trees[document], [(segment.span.start, segment.span.end) for segment in own])
        result.extend([segment for segment, share in zip(own, shares, strict=True) if share > 0.5] or own)
    return result


def _main_shares(blocks: Blocks) -> NDArray[np.float64]:
    """Return the share of each block's text that is main content of its page, float64 [n]."""
    known = blocks.cache.get("main shares")
    if isinstance(known, np.ndarray):
        return known
    shares: list[float] = []
    for document, group in groupby(range(len(blocks)), key=lambda place: blocks.blocks[place].document):
        shares.extend(_shares(blocks.trees[document], [blocks.span(place) for place in group]))
    result = blocks.cache["main shares"] = np.asarray(shares, np.float64)
    return result


def _shares(tree: Tree, slices: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the share of each slice of a document's canonical text that is main content, float64 [slices]."""
    if _SPANS not in tree.cache:  # once for pruning and for quotes
        markup, charset = tree._markup
        tree.cache[_SPANS] = main_spans_in(markup, charset, tree.canonical) if markup else None
    spans = tree.cache[_SPANS]
    if not spans:
        return np.ones(len(slices))
    begins, ends = np.asarray(spans, np.int64).reshape(-1, 2).T
    before = np.concatenate([[0], np.cumsum(ends - begins)])

    def kept(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.searchsorted(begins, offsets, "right") - 1
        inside = np.minimum(offsets, ends[place]) - begins[place]
        return np.where(place < 0, 0, before[place] + inside)

    start, end = np.asarray(slices, np.int64).reshape(-1, 2).T
    return np.asarray((kept(end) - kept(start)) / np.maximum(end - start, 1), np.float64)
