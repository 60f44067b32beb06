"""``random``: a control. What it reaches, a tree reaches without any sense in its clusters."""

from __future__ import annotations

import numpy as np

from ...core.ports import ClusterItems, ClusterLimits, Ints
from ._groups import finish, whole_layer, windows


class Engine:
    """Puts items together by a seeded draw."""

    name = "random"
    needs_summaries = False
    last_layer = 1

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return disjoint groups of about ``fan_out`` items that cover the layer."""
        found = whole_layer(items, limits)
        if found is not None:
            return found
        drawn = np.random.default_rng(limits.seed).permutation(len(items.tokens))
        return finish(list(windows(drawn.tolist(), items.tokens, limits)), items, limits)
