"""Shared by the systems: what each stage reads, hands on and takes.

Counting the tokens of whole pages takes longer than pruning them. So stages are noted only for the option
``@costs=yes``, and the time of counting is in no stage. With that option an engine computes everything itself: it takes
no vector, score or tree that was made for another system, question or page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from prunus_evals.records import Stage
from prunus_evals.tokens import Counter

COSTS = {"costs": ("yes", "no")}
"""The option of every system that notes its stages."""


@dataclass(slots=True)
class StageTimer:
    """The stages of a system so far; without ``wanted`` nothing is counted."""

    counter: Counter
    wanted: bool
    found: list[Stage] = field(default_factory=list)

    def note(
        self,
        name: str,
        seconds: float,
        before: Sequence[str] | int,
        after: Sequence[str] | int,
        skipped: float | None = None,
    ) -> None:
        """Note a stage.

        :param before, after: the texts that it read and handed on, or their tokens.
        """
        if self.wanted:
            self.found.append(Stage(name, self._tokens(before), self._tokens(after), seconds, skipped))

    def _tokens(self, texts: Sequence[str] | int) -> int:
        return texts if isinstance(texts, int) else sum(self.counter.count(list(texts)))

    def copy(self) -> StageTimer:
        """Return the stages so far, to which those of one question can be added."""
        return StageTimer(self.counter, self.wanted, list(self.found))
