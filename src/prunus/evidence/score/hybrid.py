"""``hybrid`` (default): BM25 and embeddings together, with signals from the surroundings of a block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder
from ..blocks import Blocks
from . import bm25, embedding
from ._graph import neighbours_of
from ._signals import coverage, group_means, groups, headings, link_density, neighbours, rank_headers_below_rows, scaled

_AGGREGATE: Final = re.compile(
    r"\b(?:most|least|first|last|next|previous|before|after|only|highest|lowest|largest|smallest|biggest|longest"
    r"|shortest|oldest|youngest|earliest|latest|top|bottom|fewe(?:r|st)|more|less|total|number of|how (?:many|much)"
    r"|same|both|each|every|all|listed|below|above|than|best|worst|average|difference|between|greatest|final|second"
    r"|third|consecutive|ever|never|not)\b",
    re.IGNORECASE,
)
"""Words of a question that compares the rows of a table rather than asks for a single row."""


@dataclass(frozen=True, slots=True)
class HybridWeights:
    """Weights of the parts of a hybrid score; BM25 counts 1. Chosen on the dev half (docs/lab/log.md).

    :param dense: cosine of question and block.
    :param section, table: mean score of the best blocks in the block's section or table.
    :param aggregate: addition to ``table`` where the question compares rows.
    :param coverage: share of the question's terms that the whole table holds.
    :param neighbour: the better score of the two neighbours.
    :param position: 1 at the start of the document, falling towards 0.
    :param links: deduction for the share of words that are links (navigation, references).
    :param heading: factor for a block that is only a heading.
    :param linked: in graphs, the best score among the blocks that name the block's node.
    """

    dense: float = 0.5
    section: float = 0.2
    table: float = 0.4
    aggregate: float = 0.3
    coverage: float = 0.3
    neighbour: float = 0.3
    position: float = 0.3
    links: float = 0.2
    heading: float = 0.8
    linked: float = 0.8


class Engine:
    """A weighted sum: BM25 + dense + section + table + coverage + neighbours + position - links.

    BM25 and cosine are each divided by their largest value; cosines are counted from those of unrelated texts. Min-max,
    z-scores and reciprocal ranks keep no more evidence, by measurement (docs/models.md).
    """

    name = "hybrid"
    second_stage = False
    one_prompt = False
    least_share = 0.0
    tree = None

    def __init__(self, embedder: Embedder, weights: HybridWeights | None = None) -> None:
        self.embedder = embedder
        self.weights = weights or HybridWeights()

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score per block, float64 [n]; only the order and the ratios of scores have a meaning."""
        count = len(blocks)
        if not count:
            return np.zeros(0)
        lexical = bm25.Engine().score(query, blocks)
        dense = embedding.Engine(self.embedder).beside_words(query, blocks)
        return fused(query, blocks, lexical, dense, self.weights)[1]


def compares(query: str) -> bool:
    """Tell whether a question compares the rows of a table rather than asks for a single row."""
    return bool(_AGGREGATE.search(query))


def fused(
    query: str,
    blocks: Blocks,
    lexical: NDArray[np.float64],
    dense: NDArray[np.float64],
    weights: HybridWeights,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add BM25, cosines and the signals from the surroundings.

    :param lexical: BM25 of each block, float64 [n].
    :param dense: cosine of each block, float64 [n].
    :returns: BM25 and cosine alone, and the whole sum; both float64 [n].
    """
    base = scaled(np.clip(lexical, 0.0, None)) + weights.dense * scaled(np.clip(dense, 0.0, None))
    documents = [block.document for block in blocks.blocks]
    result = base + weights.neighbour * neighbours(base, documents)
    result += weights.section * group_means(base, groups(blocks, "section"))
    tables = groups(blocks, "table")
    more = weights.aggregate if compares(query) else 0.0
    result += (weights.table + more) * group_means(base, tables)
    result += weights.coverage * coverage(bm25.index_of(blocks), query, tables)
    result += weights.position * _position(documents)
    links = link_density(blocks)
    result -= weights.links * links
    graph = neighbours_of(blocks)
    if graph is not None:  # its links are what it says, no navigation
        result += weights.linked * graph.named(base) + weights.links * links * graph.inside
    return base, rank_headers_below_rows(np.where(headings(blocks), result * weights.heading, result), blocks)


def _position(documents: list[int]) -> NDArray[np.float64]:
    """Return 1 at the first block of each document, falling towards 0."""
    document = np.asarray(documents)
    starts = np.searchsorted(document, document, side="left")
    return np.asarray(1.0 / (1.0 + 0.2 * (np.arange(len(document)) - starts)), np.float64)
