"""A summariser that is made when it is first asked: adding documents to an index needs no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ...core.ports import Summarizer
from ...core.types import Summary


class LazySummarizer:
    """Asks the summariser that ``made`` returns.

    :param made: called once, at the first summary.
    """

    def __init__(self, made: Callable[[], Summarizer]) -> None:
        self._made = made

    @cached_property
    def _inner(self) -> Summarizer:
        return self._made()

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary a group."""
        return await self._inner.summarize(batch, max_tokens)
