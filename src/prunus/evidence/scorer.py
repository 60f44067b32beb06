"""The port of scorers, which score blocks for a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..core.ports import Floats
from .blocks import Blocks


class Scorer(Protocol):
    """Scores blocks for a question."""

    second_stage: bool
    """Whether it reads closely, and serves as the second of two stages."""
    one_prompt: bool
    """Whether it reads all blocks in one prompt."""

    @property
    def tree(self) -> Callable[[str, Blocks], Any] | None:
        """Scores as a token tree does (its ``scores``, float [n]), to be shown; None where there is no tree."""
        ...

    def score(self, query: str, blocks: Blocks) -> Floats:
        """Return one score per block, float [n]; higher is better."""
        ...
