"""The stemmed words of texts in LanceDB, and BM25 as the other stores compute it.

Each row holds its distinct words with their weighted counts. In a small index, Lance finds the rows that hold a word of
the question, and the scores are computed from these rows; a large one has postings, which are made from the rows: see
``postings.py``. Lance's own full-text search is not used: its scores follow another formula.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints
from ....core.text.bm25 import stem, tokens
from ...seals import Damaged
from .._postings import packed
from .._words import K1, B, clean
from .tables import Snapshot, quoted

_LONGEST: Final = 400
"""Most letters of a word, as in a question's terms."""

COLUMNS: Final = ("id", "words", "terms", "counts", "lexis")


def lexis(text: str, above: str, language: str) -> dict[str, Any]:
    """Return the columns of the stemmed words of a node; a word of the headings ``above`` counts half."""
    counts: dict[str, float] = {}
    words = 0
    for part, weight in ((text, 1.0), (above, 0.5)):
        for word in stem(tokens(clean(part)), language):
            words += 1
            counts[word[:_LONGEST]] = counts.get(word[:_LONGEST], 0.0) + weight
    terms, weights = list(counts), np.asarray(list(counts.values()), np.float32)
    encoded = [term.encode() for term in terms]
    lengths = np.asarray([len(term) for term in encoded], "<i4")
    return {"terms": terms, "counts": weights.tolist(), "words": words,
            "lexis": _seal(b"".join(encoded), lengths.data.cast("B"), weights.data.cast("B"))}  # fmt: skip


def _seal(data: bytes | memoryview, lengths: memoryview, weights: memoryview) -> int:
    return zlib.crc32(weights, zlib.crc32(lengths, zlib.crc32(data)))


class Rows:
    """The words of some rows, checked.

    :param arrow: the module ``pyarrow``.
    :param table: an Arrow table with :data:`COLUMNS`.
    :raises Damaged: the words of a row do not match their checksum.
    """

    def __init__(self, arrow: Any, table: Any) -> None:
        self._arrow = arrow
        self.ids, self.words = (table.column(name).to_numpy().astype(np.int64) for name in ("id", "words"))
        terms, counts = (_joined(arrow, table.column(name)) for name in ("terms", "counts"))
        self._ends = np.asarray(terms.offsets.to_numpy(), np.int64)
        self._terms = terms.values
        self._weights = np.zeros(len(self._terms), np.float32)
        self._weights[self._ends[0] :] = counts.flatten().to_numpy()[: len(self._terms) - self._ends[0]]
        self._check(table.column("lexis").to_pylist())

    def _check(self, sealed: Sequence[int]) -> None:
        _, ends, data = self._terms.buffers()
        at = np.frombuffer(ends, np.int32)[self._terms.offset :][: len(self._terms) + 1]
        lengths = np.ascontiguousarray(np.diff(at), "<i4").data.cast("B")
        weights, text = self._weights.data.cast("B"), memoryview(data or b"")
        starts = at[self._ends].tolist() if len(at) else [0] * len(self._ends)
        ends_of = self._ends.tolist()
        for row, expected in enumerate(sealed):
            first, last = 4 * ends_of[row], 4 * ends_of[row + 1]
            if _seal(text[starts[row] : starts[row + 1]], lengths[first:last], weights[first:last]) != expected:
                raise Damaged(f"the words of node {self.ids[row]} do not match their checksum")

    def words_of_rows(self) -> tuple[Any, Ints, NDArray[np.float32]]:
        """Return the words of all rows as a dictionary array, and the row and the weighted count of each."""
        first, last = int(self._ends[0]), int(self._ends[-1])
        row = np.repeat(np.arange(len(self.ids)), np.diff(self._ends))
        return self._terms[first:last].dictionary_encode(), row, self._weights[first:last]

    def bm25(self, terms: Sequence[str], count: int, average: float) -> NDArray[np.float64]:
        """Return the BM25 score of each row, by the formula of SQLite's full text.

        :param count: number of all nodes of the kind.
        :param average: mean number of their words.
        """
        found = self._arrow.compute.index_in(self._terms, value_set=self._arrow.array(terms, self._terms.type))
        term = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        hits = np.flatnonzero(term >= 0)
        row = np.searchsorted(self._ends, hits, side="right") - 1
        holding = np.bincount(term[hits], minlength=len(terms))
        rarity = np.maximum(1e-6, np.log((count - holding + 0.5) / (holding + 0.5)))
        frequency = self._weights[hits].astype(np.float64)
        length = K1 * (1 - B + B * self.words[row] / (average or 1.0))
        scores = rarity[term[hits]] * frequency * (K1 + 1) / (frequency + length)
        return np.asarray(np.bincount(row, scores, minlength=len(self.ids)), np.float64)


def grouped(rows: Rows, places: Ints) -> tuple[Any, Ints, bytes]:
    """Return the words of rows as postings: the distinct terms, where those of each begin, and all, one after another.

    The postings of term ``n`` are bytes ``4 * starts[n]`` to ``4 * starts[n + 1]``, by their places.

    :param places: of each row, 0 to 65,535.
    """
    encoded, row, weights = rows.words_of_rows()
    codes = encoded.indices.to_numpy().astype(np.uint64)
    twice = np.minimum(np.rint(2 * weights), 0xFFFF).astype(np.uint64)
    keys = np.sort(codes << np.uint64(32) | places[row].astype(np.uint64) << np.uint64(16) | twice)
    counts = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=len(encoded.dictionary))
    starts = np.concatenate([[0], np.cumsum(counts)])
    at, weighted = ((keys >> np.uint64(16)) & np.uint64(0xFFFF), keys & np.uint64(0xFFFF))
    return encoded.dictionary, starts, packed(at.astype(np.int64), weighted.astype(np.int64))


def scanned(
    snapshot: Snapshot, name: str, terms: Sequence[str], count: int, average: float
) -> tuple[Ints, NDArray[np.float64]]:
    """Return the nodes of a table that hold a term, sorted, and their BM25 scores, from their rows.

    :raises Damaged: the words of one do not match their checksum.
    """
    if not terms:
        return np.zeros(0, np.int64), np.zeros(0)
    where = f"array_has_any(terms, [{', '.join(map(quoted, terms))}])"
    rows = Rows(snapshot.tables.arrow, snapshot.read(name, COLUMNS, where))
    order = np.argsort(rows.ids)
    return rows.ids[order], rows.bm25(terms, count, average)[order]


def _joined(arrow: Any, column: Any) -> Any:
    """Return a column in one piece."""
    return arrow.concat_arrays(column.chunks) if column.num_chunks else arrow.array([], column.type)
