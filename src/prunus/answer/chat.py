"""A conversation: its turns, and the sources that its answers cited, which stay citable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ..core.types import Answer, Message
from .check import Reference

_KEPT: Final = 12
"""Sources that are kept, the latest: each is shown to the model again at every turn."""

_TURNS: Final = 20


class Conversation:
    """What was asked and answered so far. Give the same object to each call of one conversation.

    Sources keep their numbers over the turns. Where answers are quotes, without a model, every answer numbers its
    own.
    """

    def __init__(self) -> None:
        self.turns: list[Message] = []
        self.references: list[Reference] = []

    def take(self, question: str, answer: Answer, references: Sequence[Reference], cited: Collection[int]) -> None:
        """Take a turn in: its question, its answer, and those of the references that the answer cited, by number."""
        self.turns += [Message("user", question), Message("assistant", answer.text)]
        self.turns = self.turns[-_TURNS:]
        known = {one.key: one for one in self.references}
        known |= {one.key: one for one in references if one.number in cited or one.key in known}
        self.references = sorted(known.values(), key=lambda one: one.number)[-_KEPT:]
