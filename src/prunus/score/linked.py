"""``linked``: the hybrid score, and what the links among the pages at hand say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..html.blocks import Blocks
from ..ports import Embedder
from . import hybrid
from ._links import link_scores


class Engine:
    """A block gains by the page that it links to, and by the pages that link to its own.

    Worth trying on the pages of one site. On the example site it raised the rank of the answer by a
    hundredth, within the noise: it is no default (docs/log.md).
    """

    name = "linked"
    needs = ("embedder",)

    def __init__(self, embedder: Embedder) -> None:
        self._inner = hybrid.Engine(embedder)

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score a block, float64 [n]; only their order means something."""
        return link_scores(blocks, self._inner.score(query, blocks))
