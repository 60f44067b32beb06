"""The cells of a PDF's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .lines import PdfPiece, Word
from .page import Boxes
from .reader import BOLD


@dataclass(slots=True)
class PdfCell:
    """A cell with the words in it."""

    words: list[Word] = field(default_factory=list)
    colspan: int = 1
    rowspan: int = 1
    head: bool = False

    @property
    def text(self) -> str:
        """The words with a space between any two."""
        return " ".join(word.text for word in self.words)


@dataclass(slots=True)
class Table:
    """A table: rows of cells, None where a cell above or to the left spans the place.

    :param box: x0, y0, x1, y1 on the page, in points.
    :param columns: left edges of the columns, and the right edge of the last column.
    """

    rows: list[list[PdfCell | None]]
    box: tuple[float, float, float, float]
    columns: list[float]
    caption: list[PdfPiece] = field(default_factory=list)


def cell_lines(cell: PdfCell) -> list[list[Word]]:
    """Return the words of a cell by line."""
    lines: list[list[Word]] = []
    for word in cell.words:
        if lines and abs(word.y - lines[-1][-1].y) < 0.5 * max(word.size, lines[-1][-1].size):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def meet(first: Box, second: Box) -> bool:
    """Tell whether two boxes overlap."""
    apart = first[0] >= second[2] or second[0] >= first[2] or first[1] >= second[3] or second[1] >= first[3]
    return not apart


def is_numeric(text: str) -> bool:
    """Tell whether a text is mostly digits."""
    digits = sum(letter.isdigit() for letter in text)
    return digits > 0 and digits * 2 >= sum(not letter.isspace() for letter in text) - 2


def mark_heads(table: Table, fills: Sequence[Sequence[float]]) -> None:
    """Mark the header row: it is bold or shaded unlike the next row, or it holds no numbers."""
    if len(table.rows) < 2:
        return
    first, second = table.rows[0], next((row for row in table.rows[1:] if any(row)), [])
    cells = [cell for cell in first if cell]
    filled = [cell for cell in cells if cell.words]
    if len(filled) < 2 and not (filled and len(cells) > 1 and not cells[0].words):
        return
    bold = [all(cell.words and _is_bold(cell) for cell in row if cell and cell.words) for row in (first, second)]
    boxes = Boxes(fills)
    shaded = [any(_is_shaded(cell, boxes) for cell in row if cell) for row in (first, second)]
    words_only = all(not is_numeric(cell.text) for cell in filled) and all(len(cell.text) < 80 for cell in filled)
    if (bold[0] and not bold[1]) or (shaded[0] and not shaded[1]) or words_only:
        depth = max((cell.rowspan for cell in cells), default=1)
        for row in table.rows[: min(depth, len(table.rows) - 1)]:
            for cell in row:
                if cell:
                    cell.head = True


def _is_bold(cell: PdfCell) -> bool:
    return all(word.flags & BOLD for word in cell.words)


def _is_shaded(cell: PdfCell, boxes: Boxes) -> bool:
    return any(boxes.at((word.x0 + word.x1) / 2, word.y - 0.3 * word.size) is not None for word in cell.words[:1])
