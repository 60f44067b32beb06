"""``random``: a control for evaluations. Its results show what a tree reaches with meaningless clusters."""

from __future__ import annotations

import numpy as np

from ...core.ports import ClusterItems, ClusterLimits, Ints
from ._groups import finish, whole_layer, windows


class Engine:
    """Groups items by a seeded random permutation."""

    name = "random"
    needs_summaries = False
    last_layer = 1

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return disjoint groups of about ``fan_out`` items that cover the layer."""
        result = whole_layer(items, limits)
        if result is not None:
            return result
        drawn = np.random.default_rng(limits.seed).permutation(len(items.tokens))
        return finish(list(windows(drawn.tolist(), items.tokens, limits)), items, limits)
