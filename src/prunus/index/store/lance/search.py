"""Search in a large index without reading all nodes: Lance finds the nearest vectors, postings the words.

The nearest vectors come from Lance's index of short codes (RaBitQ, four bits a number), all of which are compared, or
from a scan of the column where there is none. BM25 scores are exact. The scores of the nodes that are found are exact;
mean and deviation of all cosines are estimated from a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ....core.ports import Ints, Vectors
from ...nodes import Candidates, ScoreMoments, Search
from ...seals import Damaged
from .._best import around, largest, moments_of, scores_of
from .._words import clean, terms_of
from . import rows as _rows
from .postings import Posted, matched, posted
from .tables import Change, Snapshot, rows_among

_SAMPLE: Final = 2000
"""Vectors from which mean and deviation of all cosines are estimated."""
_CELL: Final = 25_000
"""Vectors of a cell, about. Every question reads all cells: short questions lie far from the texts that answer them, so
the cells nearest to a question lack many of the nearest texts."""
_BITS: Final = 4
"""Bits of a number in a code."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The documents in the order of their leaves. The numbers of the leaves of a document follow one another.

    :param first: number of the first leaf of each.
    :param size: number of its leaves.
    :param offset: of the first leaf's row in the table; None where the rows are not in the order of the numbers.
    """

    document: Ints
    first: Ints
    size: Ints
    offset: Ints | None

    def offsets(self, ids: Ints) -> Ints | None:
        """Return the places of the rows of those nodes that are leaves; None where they are unknown."""
        if self.offset is None or not len(self.first):
            return None
        run = np.searchsorted(self.first, ids, side="right") - 1
        step = ids - self.first[run]
        inside = (run >= 0) & (step < self.size[run])
        return np.asarray(self.offset[run[inside]] + step[inside], np.int64)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of all texts of one kind in one state.

    :param average: mean number of words.
    :param tokens: mean number of tokens.
    :param languages: of the documents; [''] for summaries.
    :param runs: of leaves.
    :param posted: their postings, where there are some.
    :param sample: some of their vectors.
    """

    count: int
    average: float
    tokens: float
    languages: Sequence[str]
    runs: Runs
    posted: Posted | None
    sample: Vectors | None = None


def statistics(snapshot: Snapshot, name: str) -> Statistics:
    """Return the statistics of a table, without a sample.

    :raises Damaged: leaves are missing, or postings.
    """
    leaves = name == "leaves"
    more = ["id", "document"] if leaves else []
    table = snapshot.read(name, ["words", "tokens", *more], "" if leaves else "text <> ''")
    words, tokens = (table.column(column).to_numpy() for column in ("words", "tokens"))
    languages = snapshot.read("documents", ["language"]).column("language").to_pylist() if leaves else []
    none = np.zeros(0, np.int64)
    means = [float(values.mean()) if len(values) else 0.0 for values in (words, tokens)]
    runs = _runs(*(table.column(column).to_numpy() for column in more)) if leaves else _runs(none, none)
    return Statistics(len(words), means[0], means[1], sorted({*languages}) or [""], runs, posted(snapshot, name))


def _runs(ids: Ints, document: Ints) -> Runs:
    """Return the documents by the numbers of all leaves and of their documents."""
    ordered = bool((np.diff(ids) > 0).all())
    if not ordered:
        order = np.argsort(ids)
        ids, document = ids[order], document[order]
    start = np.flatnonzero(np.diff(document, prepend=-1))
    size = np.diff(start, append=len(ids))
    found = Runs(document[start], ids[start], size, start if ordered else None)
    if len(start) and ((ids[start + size - 1] - ids[start] != size - 1).any() or (np.diff(found.document) <= 0).any()):
        raise Damaged("rows of the table leaves are missing")
    return found


def sampled(snapshot: Snapshot, name: str) -> Vectors:
    """Return the vectors of some rows at equal distances, float32 [n, dimension]."""
    table = snapshot.tables.at(name, snapshot.record.versions[name])
    count = snapshot.record.counts[name]
    offsets = np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64).tolist() if count else []
    if not offsets:
        return np.zeros((0, snapshot.record.dimension), np.float32)
    with snapshot.tables.told(name):
        found = table.take_offsets(offsets).select(["own"]).to_arrow()
    return _rows.matrix_of(found.column("own"), snapshot.record.dimension)[0]


def candidates(snapshot: Snapshot, search: Search, known: Sequence[Statistics], place: str) -> Candidates:
    """Return the nodes that may be the best for a question.

    :param known: the statistics of the leaves, and of the summaries, with samples.
    :param place: names the index in messages.
    :raises BadInput: a document is not in the index.
    :raises Damaged: a row that is needed does not match its checksum.
    """
    vector = np.asarray(search.vector, np.float32)
    numbers = _numbers(snapshot, search.documents, place)
    reach = search.reach_of(known[0].tokens)
    parts = [_leaves(snapshot, search, vector, known[0], (numbers, reach))]
    if search.summaries:
        parts.append(_summaries(snapshot, search, vector, known[1], numbers))
    columns = [np.concatenate(pair) for pair in zip(*(part for part, _ in parts), strict=True)]
    spreads = [spread for _, spread in parts]
    make: Any = Candidates  # the columns are in the order of its fields
    result: Candidates = make(*columns, reach, spreads[0], spreads[-1])
    return result


def _numbers(snapshot: Snapshot, documents: Sequence[str], place: str) -> list[int]:
    found = rows_among(snapshot, "documents", ["id", "number"], "id", [clean(id) for id in documents])
    numbers = {row["id"]: row["number"] for row in found}
    for id in documents:
        if clean(id) not in numbers:
            raise BadInput(f"{place}: there is no document {id!r}", subject=id)
    return sorted(numbers.values())


Part = tuple[list[NDArray[Any]], ScoreMoments]


def _leaves(
    snapshot: Snapshot, search: Search, vector: Vectors, known: Statistics, scope: tuple[list[int], int]
) -> Part:
    """Return the columns of the leaves that were found, with the leaves around them, and the spread of the scores."""
    numbers, reach = scope
    terms, runs = terms_of(search.query, known.languages), known.runs
    matches, scores = matched(snapshot, "leaves", known.posted, terms, known.count, known.average)
    best = np.zeros(0, np.int64)
    if search.documents:
        picked = np.flatnonzero(np.isin(runs.document, numbers))
    else:
        best = np.union1d(_nearest(snapshot, "leaves", vector, search.count), largest(matches, scores, search.count))
        picked = np.unique(np.searchsorted(runs.first, best, side="right") - 1)
    sizes = runs.size[picked]
    ids = np.repeat(runs.first[picked] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    document, siblings = np.repeat(runs.document[picked], sizes), np.repeat(sizes, sizes)
    chosen = np.arange(len(ids))
    if not search.documents:
        places = np.flatnonzero(np.isin(ids, best))
        chosen = around(places, siblings[places], document, reach)
    found = _rows.checked_leaves(snapshot, ids[chosen], runs.offsets(ids[chosen]))
    if not np.array_equal(found.document, document[chosen]):
        raise Damaged("rows of the table leaves are missing")
    cosine = found.matrix @ vector
    columns = [ids[chosen], np.zeros(len(chosen), np.int64), document[chosen], found.place, found.tokens,
               cosine.astype(np.float64), scores_of(ids[chosen], matches, scores), siblings[chosen]]  # fmt: skip
    return columns, _spread(known, vector, scores)


def _summaries(snapshot: Snapshot, search: Search, vector: Vectors, known: Statistics, numbers: list[int]) -> Part:
    terms = terms_of(search.query, [""])
    matches, scores = matched(snapshot, "parents", known.posted, terms, known.count, known.average)
    if numbers:
        ids = np.sort([row["id"] for row in rows_among(snapshot, "parents", ["id"], "document", numbers)])
    else:
        ids = np.union1d(_nearest(snapshot, "parents", vector, search.count), largest(matches, scores, search.count))
    found = _rows.checked_summaries(snapshot, ids.astype(np.int64).tolist())
    columns = [found.ids, found.layer, found.document, np.full(len(found.ids), -1), found.tokens,
               (found.matrix @ vector).astype(np.float64), scores_of(found.ids, matches, scores),
               np.zeros(len(found.ids), np.int64)]  # fmt: skip
    return columns, _spread(known, vector, scores)


def _nearest(snapshot: Snapshot, name: str, vector: Vectors, count: int) -> Ints:
    """Return the numbers of the nodes with about the greatest cosines."""
    table = snapshot.tables.at(name, snapshot.record.versions[name])
    cells = snapshot.record.cells.get(name, 0)
    with snapshot.tables.told(name):
        query = table.search(vector, vector_column_name="own").distance_type("dot").select(["id", "_distance"])
        if cells:
            query = query.nprobes(cells)
        found = query.limit(count).to_arrow()
    return np.asarray(found.column("id").to_numpy(), np.int64)


def _spread(known: Statistics, vector: Vectors, scores: NDArray[np.float64]) -> ScoreMoments:
    """Return mean and deviation: exact for BM25, estimated from the sample for cosines."""
    moments = moments_of(float(scores.sum()), float(scores @ scores), known.count)
    cosines = known.sample @ vector if known.sample is not None and len(known.sample) else np.zeros(1, np.float32)
    return ScoreMoments((float(cosines.mean()), float(cosines.std())), moments)


def index(change: Change, name: str) -> int:
    """Make the indexes of a large table anew; return the number of cells of the index of vectors."""
    from lancedb.index import BTree, IvfRq, IvfSq

    cells = max(1, change.counts[name] // _CELL)
    codes: Any = IvfRq(distance_type="dot", num_partitions=cells, num_bits=_BITS)
    if change.record.dimension % 8:  # RaBitQ takes no other dimensions
        codes = IvfSq(distance_type="dot", num_partitions=cells)
    change.index(name, {"own": codes, "id": BTree(), "document": BTree()})
    return cells
