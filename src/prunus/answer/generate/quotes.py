"""``quotes`` (default): answers without a model, by quoting the pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ...core.types import Passage
from ..cite import quote_lines

LEAD = "The pages say:"
"""The line above the quotes, so that nobody takes them for a written answer."""


class Engine:
    """Composes the best passages, each with its citation marker."""

    name = "quotes"
    writes = False
    verbatim = True
    """Passages must be words of pages, never of a summary: the answer claims to quote."""

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the passages in order, one a paragraph, marked [1], [2], …; a row is followed by its table header."""
        return "\n\n".join([LEAD, *quote_lines(passages, count(1))])
