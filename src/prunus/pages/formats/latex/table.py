"""Convert a LaTeX ``tabular`` to a table; ``\\multicolumn`` and ``\\multirow`` become spans."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ....core.text.numbers import bounded_int
from .._common.write import Cell, note, table
from .._sheets.grid import has_header
from .source import TexSource

_SPLIT: Final = re.compile(r"\\\\\*?|\\tabularnewline\b|\\cr\b|\\(?:begin|end)\s*\{[^{}]*\}|\\[\s\S]|[{}&]|%[^\n]*\n?")
_RULE: Final = re.compile(
    r"\s*\\(hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot|specialrule(?:\{[^}]*\}){3}"
    r"|c(?:line|midrule)\s*+(?:\([^)]*\))?\s*+\{[^}]*\}|addlinespace(?:\[[^\]]*\])?|hhline\s*\{[^}]*\}"
    r"|rowcolor\s*(?:\[[^\]]*\])?\{[^}]*\}|noalign\s*\{[^}]*\}|morecmidrules|\[[^\]]*\])"
)
_SKIP: Final = re.compile(r"\s*\[[-\d.\s]*(?:pt|em|ex|cm|mm|in)\]")
_SPAN: Final = re.compile(r"\s*\\(multicolumn|multirow)(?![a-zA-Z])\*?")
_TAG: Final = re.compile(r"<[^<>]*>")
_MAX_SPAN: Final = 1000  # columns or rows of a cell


@dataclass(slots=True)
class Grid:
    """The rows of a table as raw LaTeX.

    :param headers: number of header rows above the first separating rule; -1 without such a rule.
    :param left_out: number of cells beyond the limit.
    """

    rows: list[list[str]]
    headers: int
    left_out: int


def split(body: str, max_cells: int) -> Grid:
    """Split the body of a table at ``\\\\`` and ``&``, outside braces and inner environments."""
    rows: list[list[str]] = [[]]
    start = depth = nesting = cells = left_out = 0
    header_end, hlines = -1, []

    def end_cell(end: int) -> None:
        nonlocal cells, left_out
        cells += 1
        if cells <= max_cells:
            rows[-1].append(body[start:end])
        else:
            left_out += 1

    for found in _SPLIT.finditer(body):
        mark = found[0]
        if mark in "{}":
            depth = max(0, depth + (1 if mark == "{" else -1))
        elif mark.startswith(("\\begin", "\\end")) and mark.endswith("}"):
            nesting = max(0, nesting + (1 if mark[1] == "b" else -1))
        elif depth or nesting or mark[0] == "%":
            continue
        elif mark == "&":
            end_cell(found.start())
            start = found.end()
        elif mark.startswith("\\\\") or mark in ("\\tabularnewline", "\\cr"):
            end_cell(found.start())
            start = found.end()
            rows.append([])
    end_cell(len(body))
    kept: list[list[str]] = []
    for row in rows:
        if not row:
            continue
        row[0], rules = _without_rules(row[0])
        if kept and ({"midrule", "endhead", "endfirsthead"} & set(rules)) and header_end < 0:
            header_end = len(kept)
        hlines += [len(kept)] * rules.count("hline")
        if any(text.strip() for text in row):
            kept.append(row)
    if header_end < 0 and len(kept) > 2 and {0, 1} <= set(hlines) <= {0, 1, len(kept)}:
        header_end = 1  # a line above and below the first row, and at most one at the end
    return Grid(kept, header_end if header_end <= 4 else -1, left_out)


def _without_rules(text: str) -> tuple[str, list[str]]:
    """Remove the rules at the start of a row; return the rest and the names of the rules."""
    rules: list[str] = []
    skip = _SKIP.match(text)
    place = skip.end() if skip else 0
    while found := _RULE.match(text, place):
        rules.append(re.split(r"[^a-z]", found[1], maxsplit=1)[0])
        place = found.end()
    return text[place:], rules


def to_markup(body: str, inline: Callable[[str], str], max_cells: int, caption: str = "") -> str:
    """Return the body of a ``tabular`` as an HTML table.

    :param inline: converts the LaTeX of a cell to HTML.
    :param max_cells: cells that are shown; a note gives the number of further cells.
    """
    grid = split(body, max_cells)
    covered_rows: dict[int, int] = {}  # column → number of further rows that a cell above covers
    places = 2 * max_cells  # columns that the cells of the table may cover; further cells have one column each
    rows: list[list[str | Cell]] = []
    for raw in grid.rows:
        row: list[str | Cell] = []
        column = 0
        for text in raw:
            colspan, rowspan, inner = _spans(text)
            places -= colspan
            colspan = colspan if places >= 0 else 1
            markup = inline(inner)
            covered = all(covered_rows.get(place, 0) for place in range(column, column + colspan))
            if covered and not markup.strip():
                for place in range(column, column + colspan):
                    covered_rows[place] -= 1
                column += colspan
                continue
            for place in range(column, column + colspan):
                covered_rows[place] = rowspan - 1
            row.append(Cell(markup, colspan, rowspan) if colspan > 1 or rowspan > 1 else markup)
            column += colspan
        rows.append(row)
    headers = grid.headers
    if headers < 0:
        texts = [[_TAG.sub("", cell if isinstance(cell, str) else cell.markup) for cell in row] for row in rows[:200]]
        headers = int(has_header(texts))
    left = note(f"{grid.left_out:,} cells of this table are not shown.") if grid.left_out else ""
    return table(rows, headers, caption) + left if rows else ""


def _spans(text: str) -> tuple[int, int, str]:
    """Return the number of columns and rows that a cell covers, and its LaTeX content."""
    colspan = rowspan = 1
    for _ in range(2):
        found = _SPAN.match(text)
        if not found:
            break
        source = TexSource(text[found.end() :])
        if found[1] == "multirow":
            source.option()
        size = source.argument().strip().lstrip("-=")
        number = bounded_int(size, 1, least=1, most=_MAX_SPAN)
        if found[1] == "multirow":
            source.option()
            source.argument()
            source.option()
            rowspan = number
        else:
            source.argument()
            colspan = number
        text = source.argument()
    return colspan, rowspan, text
