"""Search in PostgreSQL: exact BM25 from postings, and the nearest vectors of a large index by HNSW.

HNSW finds candidates by half-precision vectors; their cosines are then computed from the full ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints, Vectors
from ...nodes import RUN, Candidates, ScoreMoments, Search
from .._best import around, largest, moments_of, scores_of
from .._postings import bm25
from . import rows as _rows
from .near import KINDS, nearest
from .postings import State, hits, sums

_SAMPLE: Final = 2_000
"""Leaves from which the spread of the cosines is estimated."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What BM25 and the reach of neighbours need of all leaves, or of all summaries.

    :param words, tokens: means of a node.
    :param sample: embeddings of some of them, float32 [n, dimension].
    """

    count: int
    words: float
    tokens: float
    sample: Vectors | None = None


def sizes_of(cursor: Any, state: State, leaves: bool) -> Sizes:
    """Return the sizes of the leaves or of the summaries, without a sample."""
    count, words, tokens = sums(cursor, state, leaves)
    return Sizes(count, words / max(1, count), tokens / max(1, count))


def sampled(cursor: Any, leaves: bool, dimension: int) -> Vectors:
    """Return the embeddings of nodes of a kind with evenly spread numbers."""
    cursor.execute(
        "WITH ends AS (SELECT min(id) AS first, max(id) AS last FROM nodes) "  # noqa: S608 - ours
        f"SELECT vector_send(own) FROM nodes WHERE {KINDS[leaves]} AND own IS NOT NULL AND id IN (SELECT first + "
        f"(last - first) * step / {_SAMPLE} FROM ends, generate_series(0, {_SAMPLE}) step)"
    )
    rows = [_rows.read_vector(data) for (data,) in cursor.fetchall()]
    return np.stack(rows) if rows else np.zeros((0, dimension), np.float32)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks the leaves, or the summaries.

    :param sizes: with a sample, where candidates are wanted.
    :param terms: stemmed as these nodes are.
    """

    leaves: bool
    sizes: Sizes
    terms: Sequence[str]


def matched(cursor: Any, state: State, asked: Asked) -> tuple[Ints, NDArray[np.float64]]:
    """Return the nodes that hold a term, sorted, and their BM25 scores."""
    found = hits(cursor, state, asked.terms, asked.leaves)
    return bm25(found, asked.sizes.count, asked.sizes.words)


# --- candidates ------------------------------------------------------------------------------


def candidates(
    cursor: Any,
    state: State,
    search: Search,
    asked: Sequence[Asked],
    documents: Sequence[int],
) -> Candidates:
    """Return the best nodes by cosine and by BM25 with the leaves around them.

    :param cursor: returns binary data, and sees one state of the index.
    :param asked: of the leaves, then of the summaries where they are wanted.
    :param documents: numbers of the documents to search; () is all.
    """
    vector = _rows.vector_text(search.vector)
    reach = search.reach_of(asked[0].sizes.tokens)
    columns: list[list[NDArray[Any]]] = []
    spreads = []
    for part in asked:
        ids, scores = matched(cursor, state, part)
        allowed = np.arange(len(ids))
        if documents:
            allowed = np.flatnonzero(np.isin(ids, _nodes_of(cursor, documents)))
        best = {*nearest(cursor, vector, len(search.vector), part.leaves, search.count, documents)}
        best.update(ids[largest(allowed, scores[allowed], search.count)].tolist())
        wanted = np.asarray(sorted(best), np.int64)
        siblings = np.zeros(len(wanted), np.int64)
        if part.leaves:
            wanted, siblings = _around(cursor, state, wanted, reach)
        *known, cosine = _described(cursor, wanted, vector)
        columns.append([*known, cosine, scores_of(known[0], ids, scores), siblings[np.searchsorted(wanted, known[0])]])
        moments = moments_of(float(scores.sum()), float(scores @ scores), part.sizes.count)
        spreads.append(ScoreMoments(_cosine_spread(part.sizes.sample, search.vector), moments))
    spreads.append(ScoreMoments((0.0, 0.0), (0.0, 0.0)))  # where no summaries are asked
    make: Any = Candidates  # the columns are in the order of its fields
    result: Candidates = make(*map(np.concatenate, zip(*columns, strict=True)), reach, *spreads[:2])
    return result


def _cosine_spread(sample: Vectors | None, vector: Vectors) -> tuple[float, float]:
    """Estimate mean and deviation of the cosines of all nodes by a sample."""
    if sample is None or not len(sample):
        return 0.0, 0.0
    cosines = sample @ np.asarray(vector, np.float32)
    return float(cosines.mean()), float(cosines.std())


def _nodes_of(cursor: Any, documents: Sequence[int]) -> Ints:
    cursor.execute("SELECT id FROM nodes WHERE document = ANY(%s)", (list(documents),))
    return np.asarray([id for (id,) in cursor.fetchall()], np.int64)


def _around(cursor: Any, state: State, best: Ints, reach: int) -> tuple[Ints, Ints]:
    """Return some leaves and those around them whose scores count, and the number of leaves of each document."""
    columns = state.columns
    new = best >= state.after
    ids: Ints = np.zeros(0, np.int64)
    siblings: Ints = np.zeros(0, np.int64)
    if not new.all():
        places = columns.places(best[~new])
        places = around(places, columns.siblings[places].astype(np.int64), columns.documents, reach)
        ids, siblings = columns.ids(places), columns.siblings[places].astype(np.int64)
    if new.any():
        span = f"least({int(reach)}, greatest(1, size.siblings / {RUN}))"
        cursor.execute(
            "SELECT DISTINCT m.id, size.siblings FROM nodes b CROSS JOIN LATERAL (SELECT count(*) AS siblings "  # noqa: S608 - ours
            "FROM nodes WHERE document = b.document AND layer = 0) size JOIN nodes m ON m.document = b.document "
            f"AND m.layer = 0 AND m.place BETWEEN b.place - {span} AND b.place + {span} WHERE b.id = ANY(%s)",
            (best[new].tolist(),),
        )
        more: Any = np.asarray(cursor.fetchall(), np.int64).reshape(-1, 2).T
        ids, siblings = np.concatenate([ids, more[0]]), np.concatenate([siblings, more[1]])
    order = np.argsort(ids)
    return ids[order], siblings[order]


def _described(cursor: Any, ids: Ints, vector: str) -> list[NDArray[Any]]:
    """Return the columns id, layer, document, place, tokens and cosine of nodes, in the order of the whole view."""
    cursor.execute(
        "SELECT id, layer, coalesce(document, -1), place, tokens, -(own <#> %s::vector) FROM nodes WHERE id = ANY(%s) "
        "ORDER BY layer > 0, CASE layer WHEN 0 THEN document END, CASE layer WHEN 0 THEN place ELSE id END",
        (vector, ids.tolist()),
    )
    rows = cursor.fetchall()
    whole = np.asarray([row[:5] for row in rows], np.int64).reshape(-1, 5).T
    return [*whole, np.asarray([row[5] for row in rows], np.float64)]
