"""``quotes`` (default): answers without a model, by quoting the pages."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.types import Passage

LEAD = "The pages say:"
"""The line above the quotes, so that nobody takes them for a written answer."""


def _on_one_line(text: str) -> str:
    """Return a quote on one line: bars separate cells, slashes separate the lines of a list or of code."""
    rows = (" | ".join(" ".join(cell.split()) for cell in row.split("\t") if cell.strip()) for row in text.split("\n"))
    return " / ".join(row for row in rows if row)


def _with_gaps(row: str) -> str:
    """Return a row of a table on one line, with its empty cells in place."""
    return " ".join(row.replace("\t", " | ").split())


class Engine:
    """Composes the best passages, each with its citation marker."""

    name = "quotes"
    writes = False
    verbatim = True
    """Passages must be words of pages, never of a summary: the answer claims to quote."""

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the passages in order, one a paragraph, marked [1], [2], …; a row is followed by its table header."""
        lines = [LEAD]
        for number, passage in enumerate(passages, 1):
            words = _with_gaps(passage.shown) if passage.shown else _on_one_line(passage.text)
            label = f" ({' '.join(passage.label.split())})" if passage.label else ""
            lines.append(f"\u201c{words}\u201d{label} [{number}]")
        return "\n\n".join(lines)
