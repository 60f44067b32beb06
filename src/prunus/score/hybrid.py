"""``hybrid`` (default): BM25 and embeddings together, with what surrounds a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..ports import Embedder
from . import bm25, embedding
from ._signals import group_means, groups, neighbours, scaled


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the parts of a hybrid score; BM25 counts 1. Chosen on the dev half."""

    dense: float = 0.5
    section: float = 0.2
    table: float = 0.2
    neighbour: float = 0.1
    position: float = 0.05


class Engine:
    """A normalised sum: BM25 + dense + section + table + neighbours + position."""

    name = "hybrid"
    needs = ("embedder",)

    def __init__(self, embedder: Embedder, weights: Weights | None = None) -> None:
        self.embedder = embedder
        self.weights = weights or Weights()

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score a block, float64 [n]; only their order and ratios mean something."""
        count = len(blocks)
        if not count:
            return np.zeros(0)
        weights = self.weights
        lexical = scaled(bm25.Engine().score(query, blocks))
        dense = embedding.Engine(self.embedder).score(query, blocks)
        dense = scaled(np.clip(dense, 0.0, None))
        own = lexical + weights.dense * dense
        documents = [block.document for block in blocks.blocks]
        result = own + weights.neighbour * neighbours(own, documents)
        result += weights.section * group_means(own, groups(blocks, "section"))
        result += weights.table * group_means(own, groups(blocks, "table"))
        result += weights.position * _position(documents)
        return result


def _position(documents: list[int]) -> NDArray[np.float64]:
    """Return 1 at each document's head, falling towards 0."""
    document = np.asarray(documents)
    starts = np.searchsorted(document, document, side="left")
    return np.asarray(1.0 / (1.0 + 0.2 * (np.arange(len(document)) - starts)), np.float64)
