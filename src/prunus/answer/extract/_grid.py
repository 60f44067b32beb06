"""What the tables of a page tell about a question: which table, which row, which cells and which column.

A table is a run of rows under the same headings. Every number is 0 outside of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Tagged
from ...core.text.bm25 import tokens
from ._asks import Asked
from ._tables import Cells, Table

Numbers = NDArray[np.float64]

GRID: Final = (
    "table_covered",  # share of the question's terms that the table, its header and its headings hold together
    "table_head",  # that its header holds
    "table_top",  # ``covered_all`` of its best row, over the best segment of the page
    "table_rows",  # its rows, logarithm over that of 100
    "table_place",  # 1 for the first table of the page, 1/2 for the second, …
    "row_place",  # the row's place in its table: 0 first, 1 last
    "row_behind",  # by how much ``covered_all`` is below that of the best row of its table
    "row_alone",  # 1 over the rows of its table that hold as much of the question or more
    "cell_whole",  # the terms of the best cell all of whose words the question holds
    "cells_whole",  # those of all such cells together
    "cell_number",  # a number of the question is all of a cell in a column that the question names
    "cell_ordinal",  # a number of the question is all of the row's first cell
    "meets",  # the number of a named column is as the question demands: at least 3, under 10
    "meets_other",  # that of another column, as a share of the columns
    "extreme",  # a row with the highest or lowest number of a column that the question names, where it asks for one
    "extreme_hinted",  # of a column that the superlative hints at, as "oldest" at an age
    "extreme_other",  # of other columns, as a share of them
    "extreme_best",  # the highest or lowest of a named column among the rows that hold most of the question
    "end_row",  # the first or last row of its table, where the question asks for the first or last
    "end_best",  # the first or last of the rows that hold most of the question
    "beside_row",  # how much of what the question names behind "after" or "before" the row on that side holds
    "beside_other",  # the same on the other side: tables may be sorted backwards
    "beside_anchor",  # how much of it the row itself holds, and so is not what is asked for
    "excepted",  # how much the row holds of what stands behind "other than"
    "other_row",  # ``covered`` of the row over the best of its table, where the question asks for another one
    "asked_cell",  # the row has a cell in the column of the thing that is asked for, with words that are new
    "asked_fits",  # that cell holds the kind of answer that is asked for
    "total",  # the first cell says that it is a sum
    "head_row",  # the first row of a table without a header, without a number
    "cells",  # cells of the row, over 10, at most 1
    "filled",  # share of them that are not empty
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sight:
    """What the question knows of its segments.

    :param held: whether each segment itself holds each term [segments, terms].
    :param everywhere: whether it, its label or its headings hold it [segments, terms].
    :param shares: weight of each term, 1 together [terms].
    :param terms: the stems of the question.
    :param words: the stems of each segment.
    :param stems: cuts a text into stems.
    :param content: cuts a text into stems without stop words.
    """

    held: NDArray[np.bool_]
    everywhere: NDArray[np.bool_]
    shares: Numbers
    terms: Sequence[str]
    words: Sequence[frozenset[str]]
    stems: Callable[[str], frozenset[str]]
    content: Callable[[str], list[str]]


def grid_features(
    tagged: Sequence[Tagged], runs: Sequence[Sequence[int]], sight: Sight, asked: Asked
) -> dict[str, Numbers]:
    """Return the numbers of :data:`GRID` [segments].

    :param runs: the places of the rows of each table.
    """
    found = {name: np.zeros(len(tagged)) for name in GRID}
    if not runs:
        return found
    top = max(1e-9, float((sight.everywhere @ sight.shares).max()))
    for number, run in enumerate(runs):
        reader = _Reader(Table.of([tagged[place] for place in run]), list(run), sight, asked)
        for name, values in reader.features(top).items():
            found[name][reader.places] = values
        found["table_place"][reader.places] = 1 / (1 + number)
    return found


class _Reader:
    """Reads one table for one question."""

    def __init__(self, table: Table, places: list[int], sight: Sight, asked: Asked) -> None:
        self.table, self.places, self.sight, self.asked = table, places, sight, asked
        self.terms = dict(zip(sight.terms, sight.shares.tolist(), strict=True))
        self.own = sight.everywhere[places] @ sight.shares
        self.named = {head for head in table.heads if sight.stems(head) & self.terms.keys()}
        self.headed = frozenset[str]().union(*(sight.stems(head) for head in table.heads))
        self.starts = {word[:2] for word in asked.words}
        self.best = self.own >= float(self.own.max()) - 1e-9

    def features(self, top: float) -> dict[str, Numbers]:
        """Return the numbers of each row.

        :param top: the most that any segment of the page holds of the question.
        """
        sight, rows = self.sight, self.table.rows
        near = float(self.own.max()) / top
        together = float(sight.everywhere[self.places].any(axis=0) @ sight.shares)
        found = {
            "table_covered": self._all(together),
            "table_head": self._all(sum(share for term, share in self.terms.items() if term in self.headed)),
            "table_top": self._all(near),
            "table_rows": self._all(np.log(len(rows)) / np.log(100)),
            "row_place": np.linspace(0, 1, len(rows)),
            "row_behind": float(self.own.max()) - self.own,
            "row_alone": 1 / np.maximum(1, (self.own[None, :] >= self.own[:, None] - 1e-9).sum(axis=1)),
            "cells": np.asarray([min(1.0, len(row) / 10) for row in rows]),
            "filled": np.asarray([sum(bool(text) for _, text in row) / len(row) for row in rows]),
            "total": np.asarray([self.table.is_total(place) for place in range(len(rows))], np.float64),
            "head_row": self._head_row(),
        }
        return found | self._cells() | self._demands() | self._extremes(near) | self._order(near) | self._column()

    def _all(self, value: float) -> Numbers:
        return np.full(len(self.places), value)

    def _head_row(self) -> Numbers:
        result = self._all(0.0)
        if self.table.unlabelled and not any(letter.isdigit() for _, text in self.table.rows[0] for letter in text):
            result[0] = 1.0
        return result

    def _cells(self) -> dict[str, Numbers]:
        """Compare the words of each cell with those of the question."""
        best, together = self._all(0.0), self._all(0.0)
        number, ordinal = self._all(0.0), self._all(0.0)
        for place, row in enumerate(self.table.rows):
            seen: set[str] = set()
            for column, (head, text) in enumerate(row):
                if not text or len(text) > 120:
                    continue
                start = text[:2].lower()
                if start.isalnum() and start.isascii() and start not in self.starts:
                    words = frozenset[str]()  # its first word is none of the question's: saves most of the stemming
                else:
                    words = self.sight.stems(text)
                if words and words <= self.terms.keys():
                    best[place] = max(best[place], sum(self.terms[word] for word in words))
                    seen |= words
                if self.asked.numbers and text.strip(".# ") in self.asked.numbers:
                    if head in self.named:
                        number[place] = 1.0
                    if column == 0:
                        ordinal[place] = 1.0
            together[place] = sum(self.terms[word] for word in seen)
        return {"cell_whole": best, "cells_whole": together, "cell_number": number, "cell_ordinal": ordinal}

    def _demands(self) -> dict[str, Numbers]:
        """Tell which rows have a number as the question demands."""
        named, other = self._all(0.0), self._all(0.0)
        if self.asked.demand is not None:
            columns = self.table.columns
            rest = sum(head not in self.named for head in columns)
            for head, cells in columns.items():
                for place, value in cells:
                    if self.asked.demand.is_met(value):
                        if head in self.named:
                            named[place] = 1.0
                        else:
                            other[place] += 1 / rest
        return {"meets": named, "meets_other": other}

    def _extremes(self, near: float) -> dict[str, Numbers]:
        """Tell which rows hold the highest or lowest number of a column."""
        names = ("extreme", "extreme_hinted", "extreme_other", "extreme_best")
        found = {name: self._all(0.0) for name in names}
        extreme = self.asked.extreme
        if extreme is None:
            return found
        columns = {head: cells for head, cells in self.table.columns.items() if 2 * len(cells) >= len(self.places)}
        rest = sum(head not in self.named for head in columns)
        for head, cells in columns.items():
            low = extreme.is_low(head)
            hinted = low is not None
            cells = [(place, value) for place, value in cells if not self.table.is_total(place)] or cells
            holders = _holders(cells, extreme.low if low is None else low, extreme.rank)
            if head in self.named:
                found["extreme"][holders] = near
            elif not hinted:
                found["extreme_other"][holders] += near / max(1, rest)
            if hinted:
                found["extreme_hinted"][holders] = near
            if head in self.named or hinted:
                few = [(place, value) for place, value in cells if self.best[place]]
                found["extreme_best"][_holders(few, extreme.low if low is None else low, extreme.rank)] = near
        return found

    def _order(self, near: float) -> dict[str, Numbers]:
        """Tell which rows are the first or last, or beside the one that the question names."""
        names = ("end_row", "end_best", "beside_row", "beside_other", "beside_anchor", "excepted", "other_row")
        found = {name: self._all(0.0) for name in names}
        asked = self.asked
        if asked.end:
            place = -1 if asked.end == "last" else 0
            found["end_row"][place] = near
            found["end_best"][np.flatnonzero(self.best)[place]] = near
        if asked.beside:
            anchor = self._tail(asked.beside_what)
            found["beside_anchor"] = anchor
            down, up = np.append(0.0, anchor[:-1]), np.append(anchor[1:], 0.0)
            after = asked.beside == "after"
            found["beside_row"], found["beside_other"] = (down, up) if after else (up, down)
        if asked.excepted:
            found["excepted"] = self._tail(asked.excepted)
        if asked.other:
            covered = self.sight.held[self.places] @ self.sight.shares
            found["other_row"] = covered / max(1e-9, float(covered.max()))
        return found

    def _tail(self, text: str) -> Numbers:
        """Return the share of the words of a part of the question, but those of heads, that each row itself holds."""
        wanted = {*self.sight.content(text)}
        wanted = wanted - self.headed or wanted
        return np.asarray([len(wanted & self.sight.words[place]) / max(1, len(wanted)) for place in self.places])

    def _column(self) -> dict[str, Numbers]:
        """Look at the cells in the column of the thing that is asked for."""
        new, fits = self._all(0.0), self._all(0.0)
        wanted = self.sight.stems(self.asked.thing) if self.asked.thing else frozenset()
        asked_for = {head for head in self.table.heads if wanted & self.sight.stems(head)}
        known = self.asked.words
        for place, row in enumerate(self.table.rows):
            for head, text in row:
                if text and head in asked_for and not known.issuperset(tokens(text[:120])):
                    new[place] = 1.0
                    fits[place] = max(fits[place], float(self.asked.fits(text)))
        return {"asked_cell": new, "asked_fits": fits}


def _holders(cells: Cells, low: bool, rank: int) -> list[int]:
    """Return the rows with the highest or lowest number, or the second, …; none where most are equal."""
    values = sorted({value for _, value in cells}, reverse=not low)
    if len(values) < rank or len(values) < 2:
        return []
    holders = [place for place, value in cells if value == values[rank - 1]]
    return holders if 2 * len(holders) <= len(cells) else []
