"""Find the rows inside the bands of a table whose rulings stand only between groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from .cells import PdfCell, Table, cell_lines, is_numeric
from .lines import Word, is_marker

_FULL: Final = 0.7  # share of a band's lines that a cell has at least if it shows the rows
_NUMBERS: Final = 0.6  # share of a cell's lines that are numbers in a column of numbers
_GAP: Final = 0.95  # em; words farther apart stand in different columns
_OPEN: Final = 0.5  # share of lines with such gaps from which on the rulings do not part the columns

Row = list[PdfCell | None]


def is_open(table: Table) -> bool:
    """Tell whether rulings frame whole groups of columns, so that the columns must be found otherwise."""
    lines = [line for row in table.rows for cell in row if cell for line in cell_lines(cell)]
    several = sum(any(_is_gap(left, right) for left, right in pairwise(line)) for line in lines)
    return len(lines) >= 3 and several >= _OPEN * len(lines)


def _is_gap(left: Word, right: Word) -> bool:
    return not is_marker(left.text) and bool(right.x0 - left.x1 > _GAP * max(left.size, right.size))


def split_bands(table: Table) -> None:
    """Divide each band that holds several rows with numbers into these rows."""
    rows: list[Row] = []
    reaching: list[tuple[PdfCell, int]] = []  # cells that reach down, and the bands that they still cover
    for number, band in enumerate(table.rows):
        parts = _parts(band)
        if number == 0 and len(parts) == 2:
            parts = []  # a header of two lines
        begun = [(cell, cell.rowspan) for cell in band if cell and cell.rowspan > 1]
        for cell, _ in [*reaching, *begun] if parts else []:
            cell.rowspan += len(parts) - 1
        reaching = [(cell, bands - 1) for cell, bands in [*reaching, *begun] if bands > 1]
        rows += parts or [band]
    table.rows = rows


def _parts(band: Row) -> list[Row]:
    """Return the rows of a band; an empty list where it is one row."""
    lines = {
        column: _lines(cell.words) for column, cell in enumerate(band) if cell and cell.rowspan == 1 and cell.words
    }
    several = [held for held in lines.values() if len(held) > 1]
    levels = [level[0].y for level in _lines(line[0] for held in several for line in held)]
    full = [held for held in several if len(held) >= _FULL * len(levels)]
    if len(full) < 2 or not any(_are_numbers(held) for held in full):
        return []
    parts: list[Row] = [[None] * len(band) for _ in levels]
    for column, cell in enumerate(band):
        if cell is None:
            continue
        held = lines.get(column, [])
        at = [_nearest(levels, line[0].y) for line in held]
        if cell.rowspan > 1:
            parts[0][column] = cell
        elif len(held) == 1 and abs(levels[at[0]] - held[0][0].y) > 0.35 * held[0][0].size:
            parts[0][column] = PdfCell(cell.words, cell.colspan, len(levels))  # centred beside the rows
        else:
            for part in parts:
                part[column] = PdfCell(colspan=cell.colspan)
            for level, line in zip(at, held, strict=True):
                target = parts[level][column]
                if target:
                    target.words += sorted(line, key=lambda word: word.order)
    return parts


def _lines(words: Iterable[Word]) -> list[list[Word]]:
    """Return words by line, from the top."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.y):
        if lines and word.y - lines[-1][0].y <= 0.5 * max(word.size, lines[-1][0].size):
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def _nearest(levels: Sequence[float], y: float) -> int:
    return min(range(len(levels)), key=lambda at: abs(levels[at] - y))


def _are_numbers(lines: Sequence[Sequence[Word]]) -> bool:
    """Tell whether most lines of a cell are numbers."""
    numbers = sum(is_numeric(" ".join(word.text for word in line)) for line in lines)
    return numbers >= _NUMBERS * len(lines)
