"""The HNSW indexes of the vectors in PostgreSQL: each over a range of the nodes' numbers, made when documents are in.

pgvector makes an index of many vectors at once several times faster than it adds them one by one, and an insert into
it holds up the writer. So no leaf is ever added to an index: :func:`prepare` makes one over the leaves that have none,
once they are many. It replaces the indexes before it that are not larger. So few indexes remain, and a leaf is indexed
about log2(N / LARGE) times at most. The newest leaves have no index and are scanned.

The indexes are of half-precision copies of the embeddings, which the table keeps in full precision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from .pool import alone

LARGE: Final = 20_000
"""Leaves from which on a question reads candidates instead of all nodes, and without an index at most."""
BUILDING: Final = 6 * 3_600
"""Most seconds for a statement that makes an index; a million vectors take minutes."""
_WIDEST: Final = 4_000
"""Most dimensions of a half-precision vector that HNSW takes."""
_LOOKED_AT: Final = (200, 1_000)
"""Least and most nodes that HNSW keeps in view while it searches; pgvector allows at most 1,000."""
_LINKS: Final = 600
"""Bytes of a node of the graph besides its vector, in memory while the index is made."""
_MEMORY_MB: Final = 1_024
"""Most memory that is asked for while an index is made; a graph that is larger is made from the disk, slowly."""
_LEAVES: Final = "nodes_near_leaves"
_SUMMARIES: Final = "nodes_near_summaries"
_NAME: Final = re.compile(rf"{_LEAVES}(?:_(\d+)_(\d+))?")
_ALL: Final = (0, (1 << 63) - 1)
"""The range of the only index that earlier versions made, and add each leaf to."""
_NO_ROOM: Final = ("53100", "53200", "58030")
"""SQLSTATE where the server finds no shared memory for workers, as in a container with a small /dev/shm."""

KINDS: Final = {True: "layer = 0", False: "layer > 0 AND text <> ''"}
"""Conditions of leaves and of summaries."""


@dataclass(frozen=True, slots=True)
class Segment:
    """An index over the leaves with numbers from ``first`` to before ``after``."""

    name: str
    first: int
    after: int


def segments(cursor: Any) -> list[Segment]:
    """Return the indexes of leaves in the order of their numbers, without those whose leaves a wider one has."""
    found: list[Segment] = []
    for segment in sorted(_made(cursor), key=lambda each: (each.first, -each.after)):
        if not found or segment.after > found[-1].after:
            found.append(segment)
    return found


def _names(cursor: Any, valid: bool) -> list[str]:
    """Return the names of the indexes of vectors, of those that are whole or of the others."""
    cursor.execute(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "WHERE indrelid = 'nodes'::regclass AND indisvalid = %s AND starts_with(relname, 'nodes_near_')",
        (valid,),
    )
    return [name for (name,) in cursor.fetchall()]


def _broken(cursor: Any) -> list[str]:
    return [name for name in _names(cursor, valid=False) if name == _SUMMARIES or _NAME.fullmatch(name)]


def _made(cursor: Any) -> list[Segment]:
    matches = [match for name in _names(cursor, valid=True) if (match := _NAME.fullmatch(name))]
    return [Segment(match[0], *(map(int, match.groups()) if match[1] else _ALL)) for match in matches]


def prepare(connection: Any, dimension: int, errors: type[Exception]) -> None:
    """Make the indexes that a search of the present state wants; another process that is at it is left alone.

    Writers and readers go on meanwhile. What a stop leaves half made is removed by the next call.

    :param connection: in autocommit mode, with a time limit for statements of ``BUILDING``.
    :param errors: what the driver raises; an error for lack of shared memory is tried again without workers.
    """
    with connection.cursor() as cursor:
        if dimension > _WIDEST or not _can_near(cursor):
            return
        with alone(cursor, "prunus near") as mine:
            if mine:
                _extend(cursor, dimension, errors)


def _extend(cursor: Any, dimension: int, errors: type[Exception]) -> None:
    known = segments(cursor)
    for name in [*_broken(cursor), *(each.name for each in _made(cursor) if each not in known)]:
        _drop(cursor, name)
    first = known[-1].after if known else 0
    cursor.execute("SELECT count(*), max(id) FROM nodes WHERE layer = 0 AND id >= %s", (first,))
    count, last = cursor.fetchone()
    if not known and count < LARGE:
        return
    _make(cursor, _SUMMARIES, KINDS[False], (dimension, count), errors)
    if count < LARGE:
        return
    smaller: list[Segment] = []
    for segment in reversed(known):
        cursor.execute(
            "SELECT count(*) FROM nodes WHERE layer = 0 AND id >= %s AND id < %s", (segment.first, segment.after)
        )
        (size,) = cursor.fetchone()
        if size > count:
            break
        smaller.append(segment)
        first, count = segment.first, count + size
    made = Segment(f"{_LEAVES}_{first}_{last + 1}", first, last + 1)
    kind = f"{KINDS[True]} AND id >= {made.first} AND id < {made.after}"
    _make(cursor, made.name, kind, (dimension, count), errors)
    for segment in smaller:
        _drop(cursor, segment.name)
    cursor.execute("ANALYZE nodes")  # or the first questions are planned for an empty table


def _make(cursor: Any, name: str, kind: str, size: tuple[int, int], errors: type[Exception]) -> None:
    dimension, count = size
    statement = (
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON nodes "
        f"USING hnsw ((own::halfvec({int(dimension)})) halfvec_ip_ops) WHERE {kind}"
    )
    wanted = min(_MEMORY_MB, 1 + count * (2 * dimension + _LINKS) // 1_000_000)
    cursor.execute(
        "SELECT set_config('maintenance_work_mem', %s || 'MB', false) "
        "WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < %s",
        (str(wanted), wanted << 20),
    )
    try:
        cursor.execute(statement)
    except errors as error:
        if getattr(error, "sqlstate", "") not in _NO_ROOM:
            raise
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        cursor.execute(statement)
        cursor.execute("RESET max_parallel_maintenance_workers")
    finally:
        if not cursor.connection.closed:
            cursor.execute("RESET maintenance_work_mem")


def _drop(cursor: Any, name: str) -> None:
    cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _can_near(cursor: Any) -> bool:
    """Tell whether the server's pgvector has half-precision vectors, and HNSW with it (0.7 and later)."""
    return bool(cursor.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchone()[0])


def nearest(cursor: Any, vector: str, dimension: int, leaves: bool, count: int, documents: Sequence[int]) -> list[int]:
    """Return the nodes whose embeddings are nearest to a vector; exact within some documents, and without an index."""
    kind = KINDS[leaves]
    if documents:
        query = f"SELECT id FROM nodes WHERE {kind} AND document = ANY(%s) ORDER BY own <#> %s::vector, id LIMIT %s"  # noqa: S608 - ours
        return [id for (id,) in cursor.execute(query, (list(documents), vector, count)).fetchall()]
    known: list[tuple[str, bool]] = []  # conditions, and whether an index has the nodes
    if leaves:
        made = segments(cursor)
        known = [(f"{kind} AND id >= {each.first} AND id < {each.after}", True) for each in made]
        known.append((f"{kind} AND id >= {made[-1].after}" if made else kind, False))
    else:
        known.append((kind, _SUMMARIES in _names(cursor, valid=True)))
    least, most = _LOOKED_AT
    cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(min(max(2 * count, least), most)),))
    parts: list[str] = []
    values: list[Any] = []
    for condition, indexed in known:
        far = f"own::halfvec({int(dimension)}) <#> %s::halfvec({int(dimension)})" if indexed else "own <#> %s::vector"
        parts.append(f"(SELECT id, {far} AS far FROM nodes WHERE {condition} ORDER BY far LIMIT %s)")  # noqa: S608 - ours
        values += [vector, min(count, most) if indexed else count]
    cursor.execute(" UNION ALL ".join(parts), values)
    best = sorted((far, id) for id, far in cursor.fetchall() if far is not None)
    return [id for _, id in best[:count]]
