"""``quotes`` (default): answers without a model by quoting the pages, and says that it quotes."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Passage

LEAD = "The pages say:"
"""What stands above the quotes, so that nobody takes them for a written answer."""


class Engine:
    """Composes the best passages, each with its citation marker."""

    name = "quotes"

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the passages in order, one a paragraph, marked [1], [2], …"""
        lines = [LEAD]
        for number, passage in enumerate(passages, 1):
            words = " | ".join(" ".join(cell.split()) for cell in passage.text.split("\t") if cell.strip())
            lines.append(f"\u201c{words}\u201d [{number}]")
        return "\n\n".join(lines)
