"""Write passages as quotes: each on one line, with the number of its citation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.types import Passage


def quote_lines(passages: Sequence[Passage], numbers: Iterable[int]) -> list[str]:
    """Return a paragraph for each passage: its words, the header of its table, and the number of its citation."""
    lines = []
    for number, passage in zip(numbers, passages, strict=False):
        words = _with_gaps(passage.shown) if passage.shown else _on_one_line(passage.text)
        label = f" ({' '.join(passage.label.split())})" if passage.label else ""
        lines.append(f"\u201c{words}\u201d{label} [{number}]")
    return lines


def _on_one_line(text: str) -> str:
    """Return a quote on one line: bars separate cells, slashes separate the lines of a list or of code."""
    rows = (" | ".join(" ".join(cell.split()) for cell in row.split("\t") if cell.strip()) for row in text.split("\n"))
    return " / ".join(row for row in rows if row)


def _with_gaps(row: str) -> str:
    """Return a row of a table on one line, with its empty cells in place."""
    return " ".join(row.replace("\t", " | ").split())
