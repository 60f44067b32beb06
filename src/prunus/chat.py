"""A conversation: its turns, and the sources that its answers cited, which stay citable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .support import Reference
from .types import Answer, Message

_KEPT: Final = 12
"""Sources that are kept, the latest: each is shown to the model again at every turn."""

_TURNS: Final = 20


class Turns:
    """What was asked and answered so far. Give the same object to each call of one conversation.

    Sources keep their numbers over the turns. Where answers are quotes, without a model, every answer numbers its
    own.
    """

    def __init__(self) -> None:
        self.turns: list[Message] = []
        self.references: list[Reference] = []

    def take(self, question: str, answer: Answer, references: Sequence[Reference]) -> None:
        """Take a turn in: its question, its answer, and the pages that the answer cited."""
        self.turns += [Message("user", question), Message("assistant", answer.text)]
        self.turns = self.turns[-_TURNS:]
        cited = {citation.document for citation in answer.citations}
        known = {one.tree.document: one for one in self.references}
        for one in references:
            if one.tree.document in cited or one.tree.document in known:
                known[one.tree.document] = one
        self.references = sorted(known.values(), key=lambda one: one.number)[-_KEPT:]
