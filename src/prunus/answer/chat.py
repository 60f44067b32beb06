"""A conversation: its turns, and the sources that its answers cited, which later answers may cite again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from ..core.types import Answer, Message

if TYPE_CHECKING:  # checking loads numpy and more, which `import prunus` does not need
    from .check import Reference

_KEPT: Final = 12
"""Most sources that are kept, the latest ones; each costs tokens at every turn, because the model is shown it again."""

_TURNS: Final = 20
"""Most messages that are kept: ten questions with their answers."""


class Conversation:
    """The questions and answers so far. Pass the same object to each call of one conversation.

    Sources keep their numbers over the turns. Without a model, where answers are quotes, each answer numbers its quotes
    from 1.
    """

    def __init__(self) -> None:
        self.turns: list[Message] = []
        self.references: list[Reference] = []

    def take(self, question: str, answer: Answer, references: Sequence[Reference], cited: Collection[int]) -> None:
        """Add a turn.

        :param references: the sources that the generator was shown.
        :param cited: the numbers of the sources that the answer cites; only these are kept.
        """
        self.turns += [Message("user", question), Message("assistant", answer.text)]
        self.turns = self.turns[-_TURNS:]
        known = {reference.key: reference for reference in self.references}
        known |= {
            reference.key: reference for reference in references if reference.number in cited or reference.key in known
        }
        self.references = sorted(known.values(), key=lambda reference: reference.number)[-_KEPT:]
