"""A summariser that is made at its first use, because adding documents to an index needs no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ...core.ports import Summarizer
from ...core.types import Summary


class LazySummarizer:
    """Passes calls on to a summariser that is made at the first call.

    :param make: makes the summariser; called once.
    """

    def __init__(self, make: Callable[[], Summarizer]) -> None:
        self._make = make

    @cached_property
    def _inner(self) -> Summarizer:
        return self._make()

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary for each group of texts."""
        return await self._inner.summarize(batch, max_tokens)
