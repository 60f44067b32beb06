"""The port of scorers: what scores blocks for a question."""

from __future__ import annotations

from typing import Protocol

from ..core.ports import Floats
from .blocks import Blocks


class Scorer(Protocol):
    """Scores blocks for a question."""

    def score(self, query: str, blocks: Blocks) -> Floats:
        """Return one number a block, float [n]; higher is better."""
        ...
