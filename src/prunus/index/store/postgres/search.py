"""Search in PostgreSQL: exact BM25 computed by the server, and the nearest vectors of a large index by HNSW.

HNSW finds candidates by half-precision vectors; their cosines are then computed from the full ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...nodes import RUN, Candidates, ScoreMoments, Search
from .. import _words
from .._best import moments_of
from . import rows as _rows
from .near import KINDS, nearest

_SAMPLE: Final = 2_000
"""Leaves from which the spread of the cosines is estimated."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What BM25 and the reach of neighbours need of all leaves, or of all summaries.

    :param words, tokens: means of a node.
    """

    count: int
    words: float
    tokens: float


def sizes_of(cursor: Any, leaves: bool) -> Sizes:
    """Count the leaves or the summaries."""
    cursor.execute(
        "SELECT count(*), coalesce(avg(words), 0)::float8, coalesce(avg(tokens), 0)::float8 "  # noqa: S608 - ours
        f"FROM nodes WHERE {KINDS[leaves]}"
    )
    return Sizes(*cursor.fetchone())


# --- words -----------------------------------------------------------------------------------


def lexical(cursor: Any, terms: Sequence[str], sizes: Sizes, leaves: bool) -> dict[int, float]:
    """Return the BM25 score of every node with a term."""
    query, values = _scored(terms, sizes, leaves)
    cursor.execute(f"{query} SELECT id, score FROM scored", values)  # noqa: S608 - ours
    return dict(cursor.fetchall())


def _frequency(place: int) -> str:
    """Return SQL for the weighted frequency of a term: of one word, cover density is the sum of its weights."""
    return f"ts_rank_cd('{{0.5, 0.1, 0.1, 1}}', terms, %s::tsquery)::float8 AS f{place}"


def _score(place: int) -> str:
    return f"CASE WHEN f{place} > 0 THEN r{place} * f{place} * {_words.K1 + 1} / (f{place} + norm) ELSE 0 END"


def _norm(sizes: Sizes) -> str:
    return f"{_words.K1} * (1 - {_words.B} + {_words.B} * words / {sizes.words or 1.0!r}) AS norm"


def _scored(terms: Sequence[str], sizes: Sizes, leaves: bool) -> tuple[str, list[str]]:
    """Return SQL that begins a statement with the tables ``rare`` (r0, …) and ``scored`` (id, score), and its values.

    It is the formula of SQLite's full text, so that all stores rank alike.
    """
    places = range(len(terms))
    holding = [f"count(*) FILTER (WHERE f{place} > 0)" for place in places]
    rarity = [
        f"greatest(1e-6, ln(({sizes.count} - {held} + 0.5) / ({held} + 0.5))::float8) AS r{place}"
        for place, held in enumerate(holding)
    ]
    query = (
        f"WITH matched AS MATERIALIZED (SELECT id, {_norm(sizes)}, {', '.join(map(_frequency, places))} "  # noqa: S608 - ours
        f"FROM nodes WHERE {KINDS[leaves]} AND terms @@ %s::tsquery), "
        f"rare AS MATERIALIZED (SELECT {', '.join(rarity)} FROM matched), "
        f"scored AS MATERIALIZED (SELECT id, {' + '.join(map(_score, places))} AS score FROM matched, rare)"
    )
    return query, [*(_words.any_of([term]) for term in terms), _words.any_of(terms)]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks the leaves, or the summaries.

    :param terms: stemmed as these nodes are.
    """

    leaves: bool
    sizes: Sizes
    terms: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Words:
    """The best nodes by BM25.

    :param rarity: of each term.
    :param spread: of the scores of all nodes.
    """

    best: Sequence[int]
    rarity: Sequence[float]
    spread: tuple[float, float]


def _by_words(cursor: Any, asked: Asked, count: int, documents: Sequence[int]) -> _Words:
    if not asked.terms or not asked.sizes.count:
        return _Words((), [0.0] * len(asked.terms), (0.0, 0.0))
    query, values = _scored(asked.terms, asked.sizes, asked.leaves)
    within = "WHERE EXISTS (SELECT 1 FROM nodes n WHERE n.id = scored.id AND n.document = ANY(%s))" if documents else ""
    cursor.execute(
        f"{query}, best AS (SELECT id FROM scored {within} ORDER BY score DESC, id LIMIT {int(count)}) "  # noqa: S608 - ours
        "SELECT (SELECT array_agg(id) FROM best), (SELECT sum(score) FROM scored), "
        "(SELECT sum(score * score) FROM scored), rare.* FROM rare",
        [*values, *([list(documents)] if documents else [])],
    )
    best, total, squares, *rarity = cursor.fetchone()
    return _Words(best or (), rarity, moments_of(total or 0.0, squares or 0.0, asked.sizes.count))


# --- vectors ---------------------------------------------------------------------------------


def _cosine_spread(cursor: Any, vector: str, leaves: bool) -> tuple[float, float]:
    """Estimate mean and deviation of the cosines of all nodes of a kind, by nodes with evenly spread numbers."""
    cursor.execute(
        "WITH ends AS (SELECT min(id) AS first, max(id) AS last FROM nodes) "  # noqa: S608 - ours
        "SELECT coalesce(avg(cosine), 0), coalesce(stddev_pop(cosine), 0) FROM (SELECT -(own <#> %s::vector) AS cosine "
        f"FROM nodes WHERE {KINDS[leaves]} AND own IS NOT NULL AND id IN (SELECT first + (last - first) * step / "
        f"{_SAMPLE} FROM ends, generate_series(0, {_SAMPLE}) step)) found",
        (vector,),
    )
    mean, deviation = cursor.fetchone()
    return float(mean), float(deviation)


# --- candidates ------------------------------------------------------------------------------


def candidates(
    cursor: Any,
    search: Search,
    dimension: int,
    asked: Sequence[Asked],
    documents: Sequence[int],
) -> Candidates:
    """Return the best nodes by cosine and by BM25 with the leaves around them.

    :param asked: of the leaves, then of the summaries where they are wanted.
    :param documents: numbers of the documents to search; () is all.
    """
    vector = _rows.vector_text(search.vector)
    reach = search.reach_of(asked[0].sizes.tokens)
    table: list[tuple[Any, ...]] = []
    spreads = []
    for part in asked:
        words = _by_words(cursor, part, search.count, documents)
        best = {*nearest(cursor, vector, dimension, part.leaves, search.count, documents), *words.best}
        table += _described(cursor, sorted(best), vector, part, words.rarity, reach)
        spreads.append(ScoreMoments(_cosine_spread(cursor, vector, part.leaves), words.spread))
    whole = np.asarray([row[:6] for row in table], np.int64).reshape(len(table), 6).T
    scores = np.asarray([row[6:] for row in table], np.float64).reshape(len(table), 2).T
    spreads.append(ScoreMoments((0.0, 0.0), (0.0, 0.0)))
    ids, layer, document, place, tokens, siblings = whole
    cosine, bm25 = scores
    return Candidates(ids, layer, document, place, tokens, cosine, bm25, siblings, reach, spreads[0], spreads[1])


def _described(
    cursor: Any,
    best: Sequence[int],
    vector: str,
    asked: Asked,
    rarity: Sequence[float],
    reach: int,
) -> list[tuple[Any, ...]]:
    """Return (id, layer, document, place, tokens, siblings, cosine, BM25) of nodes and of the leaves around them."""
    places = range(len(asked.terms))
    rarities = "".join(f", {float(value)!r}::float8 AS r{place}" for place, value in enumerate(rarity))
    score = " + ".join(map(_score, places)) or "0::float8"
    frequencies = "".join(f", {_frequency(place)}" for place in places)
    around = "SELECT id, 0 AS siblings FROM unnest(%s::bigint[]) AS best (id)"
    order = "id"
    if asked.leaves:
        order = "document, place"
        span = f"least({int(reach)}, greatest(1, size.siblings / {RUN}))"
        around = (
            "SELECT DISTINCT m.id, size.siblings FROM nodes b CROSS JOIN LATERAL (SELECT count(*) AS siblings "  # noqa: S608 - ours
            "FROM nodes WHERE document = b.document AND layer = 0) size JOIN nodes m ON m.document = b.document "
            f"AND m.layer = 0 AND m.place BETWEEN b.place - {span} AND b.place + {span} WHERE b.id = ANY(%s)"
        )
    cursor.execute(
        f"SELECT id, layer, coalesce(document, -1), place, tokens, siblings, cosine, {score} FROM ("  # noqa: S608 - ours
        f"SELECT n.id, layer, document, place, tokens, siblings, -(own <#> %s::vector) AS cosine, {_norm(asked.sizes)}"
        f"{rarities}{frequencies} FROM ({around}) around JOIN nodes n ON n.id = around.id) described ORDER BY {order}",
        [vector, *(_words.any_of([term]) for term in asked.terms), list(best)],
    )
    return list(cursor.fetchall())
