"""What the columns of a LaTeX table write beside their cells: ``r@{.}l`` joins 3 and 14 into 3.14."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ....core.text.numbers import bounded_int
from . import words as vocabulary
from .source import TexSource

_MAX_COLUMNS: Final = 200
_INVISIBLE: Final = re.compile(
    r"\\(?:hspace|rule|color|columncolor|cellcolor|extracolsep|raggedright|raggedleft|centering|arraybackslash"
    r"|bfseries|itshape|ttfamily|sffamily|scshape|small|footnotesize|scriptsize|tiny|large|normalsize)(?![a-zA-Z])"
    r"\*?(?:\[[^\[\]]{0,80}\]|\{[^{}]{0,80}\}){0,4}"
)
_BLANK: Final = re.compile(r"\\(?:[,;:! ]|(?:quad|qquad|enspace|thinspace|space)(?![a-zA-Z]))|[~{}\s]")
_NAME: Final = re.compile(r"\\([a-zA-Z]+|[\s\S])")
_SIGN: Final = re.compile(
    r"\$(?:\s|\{\}|\\[,;:!]){0,9}(?:\\(pm|mp|times|cdot|to)|([-+=<>/:.,]))(?:\s|\{\}|\\[,;:!]){0,9}\$"
)
_SIGNS: Final = {"pm": "±", "mp": "∓", "times": "×", "cdot": "·", "to": "→", "-": "−"}
_COMMENT: Final = re.compile(r"(?<!\\)%[^\n]*\n?")


class Column(NamedTuple):
    """A column of a table.

    :param before: LaTeX before each of its cells.
    :param after: LaTeX after each of its cells.
    :param joint: LaTeX with which the cell of the next column goes on in the same cell; '' for a cell of its own.
    """

    before: str = ""
    after: str = ""
    joint: str = ""


class RawCell(NamedTuple):
    """A cell as LaTeX.

    :param columns: columns that it covers.
    :param rows: rows that it covers.
    :param alone: it is a ``\\multicolumn``, for which the columns of the table write nothing.
    """

    columns: int
    rows: int
    text: str
    alone: bool = False


def columns_of(spec: str) -> list[Column]:
    """Return the columns of a specification such as ``l@{.}r>{\\$}p{3cm}``."""
    columns: list[Column] = []
    between = before = left = ""
    for mark, text in _marks(spec):
        if mark in "@!":
            between += text
        elif mark == ">":
            before = text + before  # the later of two stands first
        elif mark == "<":
            if columns:
                columns[-1] = columns[-1]._replace(after=text + columns[-1].after)
        else:
            # a column to the right and one to the left meet at the sign between them: halves of one number
            meets = left in "rcSD" or (len(columns) > 1 and columns[-2].joint)
            columns = _between(columns, between, bool(between and meets and mark in "lc"))
            columns.append(Column(before if columns else between + before))
            between, before, left = "", "", mark
    return _between(columns, between, False)


def _between(columns: list[Column], text: str, joins: bool) -> list[Column]:
    """Return the columns with the text that stands after the last of them."""
    if not columns or not text:
        return columns
    last = columns[-1]
    return [*columns[:-1], last._replace(joint=text) if joins else last._replace(after=last.after + text)]


def _marks(spec: str, depth: int = 0) -> list[tuple[str, str]]:
    """Return the letters of a specification, and its ``@ ! > <`` with their texts. Copies of ``*{3}{…}`` are made."""
    source = TexSource(spec)
    marks: list[tuple[str, str]] = []
    while len(marks) < _MAX_COLUMNS and source.peek() not in ("", "}"):
        mark = source.argument()
        if mark == "*" and depth < 4:
            times = bounded_int(source.argument().strip(), 1, most=_MAX_COLUMNS)
            marks += (_marks(source.argument(), depth + 1) * times)[:_MAX_COLUMNS]
        elif mark in ("@", "!", ">", "<"):
            marks.append((mark, _shown(source.argument())))
        elif len(mark) == 1 and mark.isalpha():
            marks.append((mark, ""))
            while source.peek() == "{" or (source.peek() == "[" and source.option() is not None):
                if source.peek() == "{":
                    source.argument()
    return marks


def _shown(text: str) -> str:
    """Return the text that an ``@{…}`` prints; '' for white space, rules and code."""
    text = _SIGN.sub(lambda match: _SIGNS.get(match[1] or match[2], match[2]), _INVISIBLE.sub("", text))
    if not _BLANK.sub("", text) or "$" in text.replace("\\$", ""):
        return ""
    return text if all(name in vocabulary.SYMBOLS for name in _NAME.findall(text)) else ""


def dressed(cells: Sequence[RawCell], columns: Sequence[Column]) -> list[RawCell]:
    """Return the cells of a row with what their columns write, and with the halves of a number in one cell."""
    if not any(any(column) for column in columns):
        return list(cells)
    row: list[RawCell] = []
    place, joint = 0, ""
    for cell in cells:
        own = columns[place] if place < len(columns) else Column()
        covered = columns[place : place + cell.columns]
        text = _COMMENT.sub("", cell.text).strip()
        if text and not cell.alone:
            text = f"{own.before}{{}}{text}{{}}{own.after}"
        width = cell.columns - sum(bool(column.joint) for column in covered[: cell.columns - 1])
        if joint:
            left = row.pop()
            joint = " " if left.alone else joint
            text = f"{left.text}{{}}{joint}{{}}{text}" if left.text or text else ""
            cell = RawCell(left.columns, min(left.rows, cell.rows), text, cell.alone)
            width += left.columns - 1
        row.append(cell._replace(columns=width, text=text))
        joint = covered[-1].joint if len(covered) == cell.columns else ""
        place += cell.columns
    return row
