"""The row of a table that a question asks for: the one with the most of a column, the first by date, the next one.

The words of the question choose the table, its column and the rows that count; code chooses the row, and says how. It
finds none where the question is not understood: then the other features of a segment tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Segment
from ...core.text.bm25 import stem, tokens
from ...core.text.numbers import bounded_float

_LOWEST: Final = (
    "least fewest lowest smallest shortest slowest lightest cheapest youngest minimum worst earliest closest nearest"
    " kleinste niedrigste wenigste kürzeste jüngste billigste"
).split()
_HIGHEST: Final = (
    "most highest largest biggest greatest longest tallest fastest quickest heaviest oldest best maximum latest newest"
    " deepest widest größte höchste längste meiste älteste beste schnellste teuerste neueste"
).split()
_EXTREME: Final = re.compile(rf"\b(?P<word>{'|'.join((*_LOWEST, *_HIGHEST))})[nrsm]?\b", re.I)
_END: Final = re.compile(r"\b(?:(?P<last>last|final|letzte[nrsm]?)|first|erste[nrsm]?)\b", re.I)
_AFTER: Final = re.compile(r"\b(?:after|follow(?:s|ed|ing)|next|nach)\b", re.I)
_BEFORE: Final = re.compile(r"\b(?:before|previous|prior to|preced(?:es|ed|ing)|vor)\b", re.I)
_OTHERWISE: Final = re.compile(
    r"\bhow (?:many|much|long)\b|\bthan\b|\bat (?:least|most)\b|\btop (?:\d|ten|five|three)|\b(?:last|first) name"
    r"|\bnumber of times\b|\bdifference\b|\b(?:second|third|fourth|2nd|3rd|4th)\b|\bwie viele?\b",
    re.I,
)
"""What such a word may belong to in a question that asks for no single row."""

_TIMES: Final = re.compile(r"\b(?:time|result|mark)\b", re.I)
_SPEEDS: Final = re.compile(r"\bspeed\b", re.I)
_SIZES: Final = re.compile(r"\b(?:area|size|population|capacity)\b", re.I)
_SPANS: Final = re.compile(r"\b(?:length|duration|time|distance|days?|weeks?|years?|reign|term)\b", re.I)
_HEIGHTS: Final = re.compile(r"\b(?:height|elevation|altitude|floors?)\b", re.I)
_WEIGHTS: Final = re.compile(r"\b(?:weight|mass)\b", re.I)
_PRICES: Final = re.compile(r"\b(?:price|cost|fee)\b", re.I)
_AGES: Final = re.compile(r"\bage\b", re.I)
_BORN: Final = re.compile(r"\b(?:born|birth|year|date|built|founded|established|opened|completed)\b", re.I)
_DATES: Final = re.compile(r"\b(?:date|year|time|season|born|built|released|founded|opened)\b", re.I)
_MEANT: Final = {
    "oldest": ((_AGES, 1), (_BORN, -1)), "youngest": ((_AGES, 1), (_BORN, -1)), "newest": ((_DATES, 1),),
    "latest": ((_DATES, 1),), "earliest": ((_DATES, 1),), "longest": ((_SPANS, 1),), "shortest": ((_SPANS, 1),),
    "tallest": ((_HEIGHTS, 1),), "highest": ((_HEIGHTS, 1),), "lowest": ((_HEIGHTS, 1),), "largest": ((_SIZES, 1),),
    "biggest": ((_SIZES, 1),), "smallest": ((_SIZES, 1),), "fastest": ((_SPEEDS, 1), (_TIMES, -1)),
    "slowest": ((_SPEEDS, 1), (_TIMES, -1)), "heaviest": ((_WEIGHTS, 1),), "lightest": ((_WEIGHTS, 1),),
    "cheapest": ((_PRICES, 1),),
}  # fmt: skip
"""Heads of the columns that a word means where the question names none; -1: their lowest number is the most."""

_RANK: Final = re.compile(r"\b(?:rank|ranking|position|pos|place)\b|^#$", re.I)
_BY_RANK: Final = frozenset({"highest", "best", "lowest", "worst"})
_DATE_HEAD: Final = re.compile(r"\b(?:date|year|season|day|opened|built|completed|founded)\b", re.I)
_TOTAL: Final = re.compile(r"(?:totals?|sum|average|overall|mean|notes?|source)\b", re.I)

_CLOCK: Final = re.compile(r"(?<![\d:])(?:(\d{1,2}):)?(\d{1,2}):(\d\d(?:\.\d{1,6})?)(?![\d:])")
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAY: Final = re.compile(
    rf"(?:\b(\d{{1,2}})\s)?\b({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?(?:\s(\d{{1,2}})\b(?!\d))?(?:,?\s(\d{{4}}))?", re.I
)
_YEAR: Final = re.compile(r"\b(?:1\d|20)\d\d\b")
_FIGURE: Final = re.compile(r"[-\u2212]?\d{1,12}(?:[,.\u2009\u202f]\d{1,6}){0,4}")
_GROUPING: Final = re.compile(r"[,\u2009\u202f](?=\d{3})")
_CELL: Final = 80
"""Letters of a cell that are looked at for its number."""

_LEAST_ROWS: Final = 3
_NAMED_WITHIN: Final = 6
"""Words behind "most" and its kin among which the name of a column stands."""


class RowQuestion(Protocol):
    """What is known of a question and its segments (:class:`._features.Question`)."""

    query: str
    language: str
    tagged: Sequence[Segment]
    terms: list[str]
    shares: NDArray[np.float64]

    @property
    def held(self) -> NDArray[np.bool_]: ...
    @property
    def held_above(self) -> NDArray[np.bool_]: ...
    @property
    def likeness(self) -> NDArray[np.float64]: ...
    @property
    def runs(self) -> list[list[int]]: ...
    def head(self, text: str) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class AskedRow:
    """The row that a question asks for.

    :param place: of its segment.
    :param how: why it is the row, in words, as "largest of Capacity".
    """

    place: int
    how: str


@dataclass(frozen=True, slots=True)
class _Table:
    places: list[int]
    heads: list[str]
    cells: list[list[str]]
    words: list[list[frozenset[str]]]

    def numbers(self, column: int) -> list[float | None]:
        return [amount(row[column]) for row in self.cells]


def asked_row(question: RowQuestion) -> AskedRow | None:
    """Return the row that a question asks for; None where it asks for none, or the table or the column is unclear."""
    query = question.query
    asks_place = bool(_AFTER.search(query) or _BEFORE.search(query))
    if not asks_place and (not (_EXTREME.search(query) or _END.search(query)) or _OTHERWISE.search(query)):
        return None
    table = _table(question)
    if table is None:
        return None
    found = _neighbour(question, table) if asks_place else None
    if found is None and not _OTHERWISE.search(query):
        found = _extreme(question, table) or _by_date(question, table)
    return found


def amount(cell: str) -> float | None:
    """Return the number of a cell by which rows are ordered: a time in seconds, a day as 20240131, else its figure."""
    cell = cell[:_CELL]
    clock = _CLOCK.search(cell)
    if clock:
        hours, minutes, seconds = map(_figure, (clock[1], clock[2], clock[3]))
        return hours * 3600 + minutes * 60 + seconds
    day, year = _DAY.search(cell), _YEAR.search(cell)
    if day:
        years = _figure(day[4] or (year.group() if year else None))
        return years * 10_000 + _MONTHS.index(day[2].lower()) * 100 + _figure(day[1] or day[3])
    figure = _FIGURE.search(cell)
    if figure is None:
        return None
    digits = _GROUPING.sub("", figure.group().replace("\u2212", "-"))
    return bounded_float(digits.replace(",", "."), None, least=-1e18, most=1e18)


def _figure(digits: str | None) -> float:
    return bounded_float(digits or "0", 0.0, least=0, most=1e6)


def _table(question: RowQuestion) -> _Table | None:
    """Return the table whose headings and cells hold most of the question's terms; None where there is no table."""
    held, likeness = question.held | question.held_above, question.likeness
    best, result = (-1.0, 0.0), None
    for table in _tables(question):
        covered = (held[table.places].any(axis=0) @ question.shares).item() if len(question.shares) else 0.0
        value = (round(covered, 3), float(likeness[table.places].max()))
        if value > best:
            best, result = value, table
    return result


def _tables(question: RowQuestion) -> Iterator[_Table]:
    for run in question.runs:
        rows = [question.tagged[place] for place in run]
        cells = [(row.shown or row.text).split("\t") for row in rows]
        label = next((row.label for row in rows if row.label), "")
        heads = label.partition("; ")[0].split(" | ") if label else cells[0]
        kept = [
            number
            for number in range(0 if label else 1, len(run))
            if len(cells[number]) == len(heads) and not _TOTAL.match(next(filter(str.strip, cells[number]), ""))
        ]
        if len(kept) >= _LEAST_ROWS:
            own = [cells[number] for number in kept]
            yield _Table([run[n] for n in kept], heads, own, [[question.head(cell) for cell in row] for row in own])


def _rows_named(question: RowQuestion, table: _Table, but: frozenset[str]) -> list[int]:
    """Return the rows that count: those of which the question says a whole cell, column by column.

    :param but: the words of the column and of the question that are used up.
    """
    said = question.head(question.query)
    kept = list(range(len(table.cells)))
    for column in range(len(table.heads)):
        held = [row for row in kept if table.words[row][column] <= said and table.words[row][column] - but]
        kept = held or kept
    return kept


def _extreme(question: RowQuestion, table: _Table) -> AskedRow | None:
    match = _EXTREME.search(question.query)
    if match is None:
        return None
    word = match["word"].lower()
    low = word in _LOWEST
    numeric = [
        column
        for column in range(len(table.heads))
        if 2 * sum(number is not None for number in table.numbers(column)) >= len(table.cells)
    ]
    column = _named(question, table.heads, numeric, question.query[match.end() :])
    if column < 0:
        column, sign = _meant(table.heads, numeric, word)
        low ^= sign < 0
    if column < 0:
        return None
    head = table.heads[column]
    if _RANK.search(head) and word in _BY_RANK:
        low = not low
    numbers = table.numbers(column)
    used = question.head(head) | question.head(word)
    rows = [row for row in _rows_named(question, table, used) if numbers[row] is not None]
    if not rows:
        return None
    row = (min if low else max)(rows, key=lambda row: numbers[row] or 0.0)
    return AskedRow(table.places[row], f"{'smallest' if low else 'largest'} of {head}")


def _named(question: RowQuestion, heads: Sequence[str], columns: Sequence[int], behind: str) -> int:
    """Return the column of which a word stands right behind "most" and its kin, the nearest first; -1 for none."""
    words = stem(tokens(behind)[:_NAMED_WITHIN], question.language)
    best, result = 0.0, -1
    for column in columns:
        head = question.head(heads[column])
        near = max((1 / (1 + place) for place, word in enumerate(words) if word in head), default=0.0)
        near *= (1 + len(head & {*words})) / (1 + len(head))
        if near > best:
            best, result = near, column
    return result


def _meant(heads: Sequence[str], columns: Sequence[int], word: str) -> tuple[int, int]:
    for pattern, sign in _MEANT.get(word, ()):
        for column in columns:
            if pattern.search(heads[column]):
                return column, sign
    return -1, 1


def _by_date(question: RowQuestion, table: _Table) -> AskedRow | None:
    """Return the first or the last row by the date that the table tells."""
    match = _END.search(question.query)
    column = next((column for column, head in enumerate(table.heads) if _DATE_HEAD.search(head)), -1)
    if match is None or column < 0:
        return None
    head, numbers = table.heads[column], table.numbers(column)
    used = question.head(match.group()).union(*(question.head(head) for head in table.heads))
    rows = _rows_named(question, table, used)
    if any(numbers[row] is None for row in rows):
        return None
    last = bool(match["last"])
    row = (max if last else min)(rows, key=lambda row: (numbers[row] or 0.0, row))
    return AskedRow(table.places[row], f"{'last' if last else 'first'} by {head}")


def _neighbour(question: RowQuestion, table: _Table) -> AskedRow | None:
    """Return the row after or before the one that the rest of the question names."""
    words = [frozenset[str]().union(*row) for row in table.words]
    for pattern, step in ((_AFTER, 1), (_BEFORE, -1)):
        for match in pattern.finditer(question.query):
            rest = {*stem(tokens(question.query[match.end() :]), question.language)}
            shares = {term: share for term, share in zip(question.terms, question.shares, strict=True) if term in rest}
            held = [sum(share for term, share in shares.items() if term in row) for row in words]
            top = max(held)
            if not top or top < 0.5 * sum(shares.values()) or held.count(top) > 1:
                continue
            row = held.index(top)
            if 0 <= row + step < len(words):
                name = next(filter(str.strip, table.cells[row]), "").strip()
                return AskedRow(table.places[row + step], f"{'after' if step > 0 else 'before'} {name}")
    return None
