"""``quotes`` (default): answers without a model by quoting the pages, and says that it quotes."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.types import Passage

LEAD = "The pages say:"
"""What stands above the quotes, so that nobody takes them for a written answer."""


def _shown(text: str) -> str:
    """Return a quote on one line: cells apart by bars, lines of a list or of code by slashes."""
    rows = (" | ".join(" ".join(cell.split()) for cell in row.split("\t") if cell.strip()) for row in text.split("\n"))
    return " / ".join(row for row in rows if row)


class Engine:
    """Composes the best passages, each with its citation marker."""

    name = "quotes"
    writes = False
    verbatim = True
    """It must be given words of pages alone, never those of a summary."""

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the passages in order, one a paragraph, marked [1], [2], …; behind a row what heads its columns."""
        lines = [LEAD]
        for number, passage in enumerate(passages, 1):
            words = _shown(passage.text)
            label = f" ({' '.join(passage.label.split())})" if passage.label else ""
            lines.append(f"\u201c{words}\u201d{label} [{number}]")
        return "\n\n".join(lines)
