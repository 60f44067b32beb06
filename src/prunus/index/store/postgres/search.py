"""Search by PostgreSQL's own means: nearest vectors by pgvector's HNSW, words by a GIN index over ``tsvector``.

Both give candidates; their cosines and BM25 scores are then computed in the same statement, from the full vectors and
the frequencies of the question's terms. What is approximate: which nodes are among the nearest (HNSW), and the means
and deviations of all scores, which are estimated by a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints, Vectors
from ...nodes import RUN, Candidates, NodeSearch, ScoreMoments
from .. import _words
from .._words import K1, B
from . import rows as _rows

LARGE: Final = 20_000
"""Leaves from which on a question reads candidates instead of all nodes."""
BUILDING: Final = 6 * 3_600
"""Most seconds for a statement that makes an index; a million vectors take minutes."""
KINDS: Final = {True: "layer = 0", False: "layer > 0 AND text <> ''"}
"""Conditions of leaves and of summaries."""
_INDEXES: Final = {True: "nodes_near_leaves", False: "nodes_near_summaries"}
_WIDEST: Final = 4_000
"""Most dimensions of a half-precision vector that HNSW takes."""
_VIEW: Final = 1_000
"""Nodes that HNSW keeps in view while it searches; pgvector allows no more."""
_MEMORY_MB: Final = 1_024
"""Most memory that is asked for while an index is made; a graph that is larger is made from the disk, slowly."""
_NO_ROOM: Final = ("53100", "53200", "58030")
"""SQLSTATE where the server finds no shared memory for workers, as in a container with a small /dev/shm."""
_MATCHES: Final = 10_000
"""Matches of words that are ranked: those of the rarest terms of a question. The other terms count in their scores."""
_SAMPLE: Final = 2_000
"""Nodes from which means and deviations are estimated."""
_RAREST: Final = 1e-6
"""Weight of a term that more than half of the nodes hold, as in SQLite."""


# --- the indexes of vectors ------------------------------------------------------------------------


def prepare(connection: Any, dimension: int, errors: type[Exception]) -> None:
    """Make the HNSW indexes of a large index that has none; others read and write meanwhile.

    They are of half-precision copies of the embeddings, which the table keeps in full precision.

    :param connection: in autocommit mode, with a time limit for statements of ``BUILDING``.
    :param errors: what the driver raises; an error for lack of shared memory is tried again without workers.
    """
    with connection.cursor() as cursor:
        if dimension > _WIDEST or not cursor.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchone()[0]:
            return
        lock = "SELECT {}(hashtext('prunus near ' || current_schema()))"
        if not cursor.execute(lock.format("pg_try_advisory_lock")).fetchone()[0]:
            return  # another process is at it
        try:
            (count,) = cursor.execute("SELECT count(*) FROM nodes WHERE layer = 0").fetchone()
            missing = [leaves for leaves in _INDEXES if not _is_made(cursor, leaves)] if count >= LARGE else []
            for leaves in missing:
                _make(cursor, leaves, (dimension, count), errors)
            if missing:
                cursor.execute("ANALYZE nodes")  # or the first questions are planned for an empty table
        finally:
            if not connection.closed:
                cursor.execute(lock.format("pg_advisory_unlock"))


def _is_made(cursor: Any, leaves: bool) -> bool:
    query = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
    return cursor.execute(query, (_INDEXES[leaves],)).fetchone() is not None


def _make(cursor: Any, leaves: bool, size: tuple[int, int], errors: type[Exception]) -> None:
    dimension, count = size
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {_INDEXES[leaves]}"
    make = (
        f"CREATE INDEX CONCURRENTLY {_INDEXES[leaves]} ON nodes "
        f"USING hnsw ((own::halfvec({int(dimension)})) halfvec_ip_ops) WHERE {KINDS[leaves]}"
    )
    wanted = min(_MEMORY_MB, 64 + count * (2 * dimension + 600) // 1_000_000)
    cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", (f"{wanted}MB",))
    try:
        cursor.execute(drop)  # what a stop left half made
        cursor.execute(make)
    except errors as error:
        if getattr(error, "sqlstate", "") not in _NO_ROOM:
            raise
        cursor.execute(drop)
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        cursor.execute(make)
        cursor.execute("RESET max_parallel_maintenance_workers")
    finally:
        if not cursor.connection.closed:
            cursor.execute("RESET maintenance_work_mem")


def _nearest(cursor: Any, search: NodeSearch, leaves: bool, documents: Sequence[int]) -> list[int]:
    """Return the nodes whose embeddings are nearest to the question's; exact within documents and without an index."""
    dimension, vector = len(search.vector), _rows.vector_text(search.vector)
    if documents:
        condition, values = f"{KINDS[leaves]} AND document = ANY(%s)", [list(documents)]
    else:
        condition, values = KINDS[leaves], []
        cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(_VIEW),))
    indexed = not documents and _is_made(cursor, leaves)
    far = f"own::halfvec({dimension}) <#> %s::halfvec({dimension})" if indexed else "own <#> %s::vector"
    limit = min(search.count, _VIEW) if indexed else search.count
    query = f"SELECT id FROM nodes WHERE {condition} AND own IS NOT NULL ORDER BY {far} LIMIT %s"  # noqa: S608 - ours
    return [id for (id,) in cursor.execute(query, (*values, vector, limit)).fetchall()]


# --- words -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KindStatistics:
    """What a search needs of all leaves, or of all summaries, in one state.

    :param words, tokens: means of a node.
    :param languages: of the documents, for the stemmer.
    :param sample: embeddings of some of them, float32 [n, dimension].
    """

    leaves: bool
    count: int
    words: float
    tokens: float
    languages: Sequence[str]
    sample: Vectors


def kind_statistics(cursor: Any, leaves: bool, dimension: int) -> KindStatistics:
    """Count the leaves or the summaries, and read embeddings of nodes with evenly spread numbers."""
    cursor.execute(f"SELECT count(*), avg(words)::float8, avg(tokens)::float8 FROM nodes WHERE {KINDS[leaves]}")  # noqa: S608 - ours
    count, words, tokens = cursor.fetchone()
    cursor.execute("SELECT DISTINCT language FROM documents ORDER BY language")
    languages = [language for (language,) in cursor.fetchall()]
    cursor.execute(
        "WITH ends AS (SELECT min(id) AS first, max(id) AS last FROM nodes) "  # noqa: S608 - ours
        f"SELECT vector_send(own) FROM nodes WHERE {KINDS[leaves]} AND own IS NOT NULL AND id IN "
        "(SELECT first + (last - first) * step / %s FROM ends, generate_series(0, %s) step)",
        (_SAMPLE, _SAMPLE),
    )
    vectors = [_rows.read_vector(data) for (data,) in cursor.fetchall()]
    sample = np.stack(vectors) if vectors else np.zeros((0, dimension), np.float32)
    return KindStatistics(leaves, count, words or 0.0, tokens or 0.0, languages, sample)


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The terms of a question among the leaves, or among the summaries.

    :param terms: stemmed as these nodes are; the rarest first.
    :param holding: how many nodes hold each.
    """

    kind: KindStatistics
    terms: Sequence[str]
    holding: Sequence[int]

    @property
    def weights(self) -> list[float]:
        """The inverse document frequency of each term, by the formula of SQLite's full text."""
        return [
            max(_RAREST, float(np.log((self.kind.count - holding + 0.5) / (holding + 0.5)))) for holding in self.holding
        ]

    @property
    def ranked(self) -> list[str]:
        """The rarest terms: those whose matches are ranked."""
        together = np.cumsum(self.holding)
        return [term for term, total in zip(self.terms, together, strict=True) if total <= _MATCHES] or [
            *self.terms[:1]
        ]

    def score(self) -> tuple[str, list[Any]]:
        """Return the BM25 score of a node as SQL, with its values."""
        parts = [f"%s * f{number} / (f{number} + n)" for number in range(len(self.terms))]
        return " + ".join(parts) or "0", [weight * (K1 + 1) for weight in self.weights]

    def frequencies(self) -> tuple[str, list[Any]]:
        """Return the columns that the score needs, as SQL with its values; each begins with a comma."""
        sql = ", (%s::float8 + %s::float8 * words) AS n"
        values: list[Any] = [K1 * (1 - B), K1 * B / (self.kind.words or 1.0)]
        for number, term in enumerate(self.terms):
            # of one term, cover density is the sum of its weights: the weighted frequency
            sql += f", ts_rank_cd('{{0.5, 0.1, 0.1, 1}}', terms, %s::tsquery)::float8 AS f{number}"
            values.append(_words.any_of([term]))
        return sql, values


def term_weights(cursor: Any, query: str, kind: KindStatistics) -> TermWeights:
    """Return the terms of a question, stemmed as these nodes are, and count the nodes that hold each."""
    counted: list[tuple[int, str]] = []
    if terms := _words.terms_of(query, kind.languages):
        of_kind = KINDS[kind.leaves]
        sql = f"SELECT (SELECT count(*) FROM nodes WHERE terms @@ q::tsquery AND {of_kind}) FROM unnest(%s::text[]) q"  # noqa: S608 - ours
        cursor.execute(sql, ([_words.any_of([term]) for term in terms],))
        counted = sorted(zip((count for (count,) in cursor.fetchall()), terms, strict=True))
    counted = [(count, term) for count, term in counted if count]
    return TermWeights(kind, [term for _, term in counted], [count for count, _ in counted])


def matches(cursor: Any, asked: TermWeights) -> dict[int, float]:
    """Return the BM25 score of every node that holds a term."""
    if not asked.terms:
        return {}
    (columns, values), (score, weights) = asked.frequencies(), asked.score()
    cursor.execute(
        f"SELECT id, {score} FROM (SELECT id{columns} FROM nodes "  # noqa: S608 - ours
        f"WHERE terms @@ %s::tsquery AND {KINDS[asked.kind.leaves]}) m",
        (*weights, *values, _words.any_of(asked.terms)),
    )
    return dict(cursor.fetchall())


def _best_matches(cursor: Any, asked: TermWeights, count: int, documents: Sequence[int]) -> list[int]:
    """Return the nodes with the best BM25 scores among those that hold one of the rarest terms."""
    if not asked.terms:
        return []
    (columns, values), (score, weights) = asked.frequencies(), asked.score()
    where = KINDS[asked.kind.leaves] + (" AND document = ANY(%s)" if documents else "")
    cursor.execute(
        f"SELECT id FROM (SELECT id{columns} FROM nodes WHERE terms @@ %s::tsquery AND {where}) m "  # noqa: S608 - ours
        f"ORDER BY {score} DESC, id LIMIT %s",
        (*values, _words.any_of(asked.ranked), *([list(documents)] if documents else []), *weights, count),
    )
    return [id for (id,) in cursor.fetchall()]


# --- candidates ------------------------------------------------------------------------------------


def candidates(cursor: Any, search: NodeSearch, asked: Sequence[TermWeights], documents: Sequence[int]) -> Candidates:
    """Return the best nodes by cosine and by BM25 with the leaves around them.

    :param cursor: returns binary data, and sees one state of the index.
    :param asked: of the leaves, then of the summaries where they are wanted.
    :param documents: numbers of the documents to search; () is all.
    """
    reach = search.reach_of(asked[0].kind.tokens)
    columns: list[list[NDArray[Any]]] = []
    spreads: list[ScoreMoments] = []
    for part in asked:
        best = {*_nearest(cursor, search, part.kind.leaves, documents)}
        best.update(_best_matches(cursor, part, search.count, documents))
        ids = _around(cursor, sorted(best), reach) if part.kind.leaves else np.asarray(sorted(best), np.int64)
        columns.append(_described(cursor, ids, search.vector, part))
        spreads.append(_moments(search.vector, part))
    spreads.append(ScoreMoments((0.0, 0.0), (0.0, 0.0)))  # where no summaries are asked
    make: Any = Candidates  # the columns are in the order of its fields
    result: Candidates = make(*map(np.concatenate, zip(*columns, strict=True)), reach, *spreads[:2])
    return result


def _around(cursor: Any, best: Sequence[int], reach: int) -> Ints:
    """Return some leaves and those around them whose scores count."""
    span = f"least({int(reach)}, greatest(1, d.leaves / {RUN}))"
    cursor.execute(
        "SELECT DISTINCT m.id FROM nodes b JOIN documents d ON d.number = b.document "  # noqa: S608 - ours
        "JOIN nodes m ON m.document = b.document AND m.layer = 0 "
        f"AND m.place BETWEEN b.place - {span} AND b.place + {span} WHERE b.id = ANY(%s)",
        (list(best),),
    )
    return np.asarray([id for (id,) in cursor.fetchall()], np.int64)


def _described(cursor: Any, ids: Ints, vector: Vectors, asked: TermWeights) -> list[NDArray[Any]]:
    """Return id, layer, document, place, tokens, cosine, BM25 and siblings of nodes, in the order of the whole view."""
    (columns, values), (score, weights) = asked.frequencies(), asked.score()
    cursor.execute(
        f"SELECT id, layer, coalesce(document, -1), place, tokens, leaves, -(own <#> %s::vector), {score} "  # noqa: S608 - ours
        "FROM (SELECT nodes.id, layer, document, place, tokens, own, "
        f"CASE layer WHEN 0 THEN leaves ELSE 0 END AS leaves{columns} "
        "FROM nodes LEFT JOIN documents ON number = document WHERE nodes.id = ANY(%s)) m "
        "ORDER BY layer > 0, CASE layer WHEN 0 THEN document END, CASE layer WHEN 0 THEN place ELSE id END",
        (_rows.vector_text(vector), *weights, *values, ids.tolist()),
    )
    result = cursor.fetchall()
    whole: Any = np.asarray([row[:6] for row in result], np.int64).reshape(-1, 6).T
    scores: Any = np.asarray([row[6:] for row in result], np.float64).reshape(-1, 2).T
    return [*whole[:5], *scores, whole[5]]


def _moments(vector: Vectors, asked: TermWeights) -> ScoreMoments:
    """Estimate means and deviations of all scores: of cosines by a sample, of BM25 by how many nodes hold each term.

    A term counts its weight in a node that holds it, as one of mean length does that holds it once; terms are taken as
    independent.
    """
    sample = asked.kind.sample
    cosines: Any = sample @ np.asarray(vector, np.float32) if len(sample) else np.zeros(1)
    shares = np.asarray(asked.holding, np.float64) / max(1, asked.kind.count)
    weights = np.asarray(asked.weights, np.float64)
    spread = float(np.sqrt((shares * (1 - shares) * weights**2).sum()))
    return ScoreMoments((float(cosines.mean()), float(cosines.std())), (float((shares * weights).sum()), spread))
