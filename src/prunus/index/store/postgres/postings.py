"""The postings of words in PostgreSQL, made when documents are in, so that a question reads no texts for BM25.

:func:`prepare` makes them for a large index, over ranges of the nodes' numbers. The newest nodes have none: their words
are looked up in the table ``nodes``. Triggers note the nodes that are deleted or written again; those that are noted
do not count in the postings, and those that are still there are looked up, too. So the scores are exact at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....core.ports import Ints
from .. import _postings, _words
from .._postings import Hits, unpacked
from .near import KINDS
from .pool import alone

_TABLES: Final = ("posting_parts", "postings", "posting_stale")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS posting_parts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, made timestamptz NOT NULL DEFAULT clock_timestamp(),
    first bigint NOT NULL, after bigint NOT NULL, nodes int NOT NULL, words bytea NOT NULL);
CREATE TABLE IF NOT EXISTS postings (
    part bigint NOT NULL, leaves boolean NOT NULL, term text NOT NULL, nodes bytea NOT NULL,
    PRIMARY KEY (part, leaves, term));
ALTER TABLE postings ALTER COLUMN nodes SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS posting_stale (id bigint NOT NULL, gone boolean NOT NULL);
CREATE INDEX IF NOT EXISTS posting_stale_by_id ON posting_stale (id);
CREATE OR REPLACE FUNCTION note_stale() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    AS 'BEGIN INSERT INTO posting_stale SELECT id, TG_OP = ''DELETE'' FROM was; RETURN NULL; END';
CREATE OR REPLACE TRIGGER nodes_deleted AFTER DELETE ON nodes REFERENCING OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION note_stale();
CREATE OR REPLACE TRIGGER nodes_changed AFTER UPDATE ON nodes REFERENCING OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION note_stale()
"""
"""Postings do not shrink when they are compressed. A stale node may be noted several times: a note that another process
makes meanwhile must not be lost with the notes that :func:`prepare` deletes."""
_MEMORY_MB: Final = 256
"""Memory that the server may use to collect the postings of a part."""


@dataclass(frozen=True, slots=True)
class Part:
    """Postings of the nodes with numbers from ``first`` to before ``after``."""

    number: int
    made: float
    first: int
    after: int
    nodes: int


Lengths = dict[Part, Ints]
"""The number of words of each node of a part, by its number less ``first``."""


def parts(cursor: Any) -> list[Part]:
    """Return the parts in the order of their numbers; none where this user may not read them."""
    cursor.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) "
        "AND has_table_privilege(oid, 'SELECT')",
        (list(_TABLES),),
    )
    if cursor.fetchone()[0] < len(_TABLES):
        return []
    cursor.execute("SELECT number, extract(epoch FROM made)::float8, first, after, nodes FROM posting_parts ORDER BY 3")
    return [Part(*row) for row in cursor.fetchall()]


# --- making them -----------------------------------------------------------------------------


def prepare(connection: Any, large: int) -> None:
    """Make the postings that a search of the present state wants; another process that is at it is left alone.

    Writers and readers go on meanwhile. A stop leaves the postings as they were.

    :param connection: in autocommit mode, with a time limit for statements that takes minutes.
    :param large: leaves from which on an index has postings.
    """
    with connection.cursor() as cursor, alone(cursor, "prunus postings") as mine:
        if not mine:
            return
        if not parts(cursor):
            if cursor.execute("SELECT count(*) FROM nodes WHERE layer = 0").fetchone()[0] < large:
                return
            with connection.transaction():
                for statement in _SCHEMA.strip().split(";\n"):
                    cursor.execute(statement)
        with _one_state(connection, cursor):
            made = _extend(cursor)
        cursor.execute(
            "SELECT number FROM posting_parts JOIN posting_stale ON id >= first AND id < after "
            "GROUP BY number HAVING count(*) >= %s",
            (_postings.FEWEST,),
        )
        for (number,) in cursor.fetchall():
            with _one_state(connection, cursor):
                (part,) = (each for each in parts(cursor) if each.number == number)
                _replace(cursor, [part], [(part.first, part.after)])
            made = True
        if made:
            cursor.execute("ANALYZE postings, posting_parts, posting_stale")


@contextmanager
def _one_state(connection: Any, cursor: Any) -> Iterator[None]:
    """Hold a transaction that sees one state of the index: what others write meanwhile is noted as stale."""
    with connection.transaction():
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(
            "SELECT set_config('work_mem', %s || 'MB', true) WHERE pg_size_bytes(current_setting('work_mem')) < %s",
            (str(_MEMORY_MB), _MEMORY_MB << 20),
        )
        yield


def _extend(cursor: Any) -> bool:
    """Make postings of the nodes that have none, where they are many; return whether they were.

    The parts before them that are not full and not larger are made anew with them, so that few parts remain.
    """
    known = parts(cursor)
    after = known[-1].after if known else 0
    cursor.execute("SELECT count(*), min(id), max(id) FROM nodes WHERE id >= %s", (after,))
    count, first, last = cursor.fetchone()
    if count < _postings.FEWEST:
        return False
    smaller: list[Part] = []
    for part in reversed(known):
        if part.nodes > count or part.after - part.first >= _postings.WIDTH:
            break
        smaller.append(part)
        first, count = part.first, count + part.nodes
    starts = range(first, last + 1, _postings.WIDTH)
    _replace(cursor, smaller, [(start, min(start + _postings.WIDTH, last + 1)) for start in starts])
    return True


def _replace(cursor: Any, old: Sequence[Part], ranges: Sequence[tuple[int, int]]) -> None:
    numbers = [part.number for part in old]
    cursor.execute("DELETE FROM postings WHERE part = ANY(%s)", (numbers,))
    cursor.execute("DELETE FROM posting_parts WHERE number = ANY(%s)", (numbers,))
    for first, after in ranges:
        cursor.execute("DELETE FROM posting_stale WHERE id >= %s AND id < %s", (first, after))
        cursor.execute(
            "INSERT INTO posting_parts (first, after, nodes, words) SELECT %s, %s, count(id), "
            "string_agg(int4send(coalesce(words, 0)), '' ORDER BY at) FROM generate_series(%s::bigint, %s::bigint - 1) "
            "AS wanted (at) LEFT JOIN nodes ON id = at HAVING count(id) > 0 RETURNING number",
            (first, after, first, after),
        )
        if not (row := cursor.fetchone()):  # all nodes of the range are gone
            continue
        # four bytes as `packed` has them; the place of a node does not fit into the upper half of a signed number
        cursor.execute(
            "INSERT INTO postings SELECT %s, leaves, lexeme, string_agg(int4send((((place + 32768) %% 65536 - 32768) "  # noqa: S608 - ours
            "* 65536 + cardinality(weights) + cardinality(array_remove(weights, 'D')))::int4), '') "
            "FROM (SELECT id - %s AS place, layer = 0 AS leaves, terms FROM nodes WHERE id >= %s AND id < %s "
            f"AND ({KINDS[True]} OR {KINDS[False]})) node "
            "CROSS JOIN unnest(terms) AS word (lexeme, positions, weights) GROUP BY leaves, lexeme",
            (row[0], first, first, after),
        )


# --- asking them -----------------------------------------------------------------------------


def hits(cursor: Any, terms: Sequence[str], leaves: bool, lengths: Lengths) -> list[Hits]:
    """Return the leaves or the summaries that hold each of the terms.

    :param cursor: returns binary data, and sees one state of the index.
    :param lengths: keeps those of the parts from one question to the next; threads may share it.
    """
    if not terms:
        return []
    known = parts(cursor)
    after = known[-1].after if known else 0
    stale, again = _stale(cursor, known)
    found: list[list[Hits]] = [[] for _ in terms]
    if known:
        of = _lengths(cursor, lengths, known)
        place = {term: at for at, term in enumerate(terms)}
        by_number = {part.number: part for part in known}
        cursor.execute(
            "SELECT part, term, nodes FROM postings WHERE part = ANY(%s) AND leaves = %s AND term = ANY(%s)",
            (list(by_number), leaves, list(terms)),
        )
        for number, term, data in cursor.fetchall():
            part = by_number[number]
            places, frequency = unpacked(data)
            if len(stale) and len(mask := stale[(stale >= part.first) & (stale < part.after)]):
                kept = np.isin(places + part.first, mask, invert=True)
                places, frequency = places[kept], frequency[kept]
            found[place[term]].append(Hits(places + part.first, frequency, of[part][places]))
    for at, looked_up in enumerate(_looked_up(cursor, terms, leaves, (after, again))):
        found[at].append(looked_up)
    return [_joined(each) for each in found]


def _stale(cursor: Any, known: Sequence[Part]) -> tuple[Ints, bool]:
    """Return the nodes whose postings do not count, and whether some of them are still there."""
    if not known:
        return np.zeros(0, np.int64), False
    cursor.execute("SELECT id, gone FROM posting_stale WHERE id < %s", (known[-1].after,))
    rows = cursor.fetchall()
    return np.unique(np.asarray([id for id, _ in rows], np.int64)), not all(gone for _, gone in rows)


def _lengths(cursor: Any, kept: Lengths, known: Sequence[Part]) -> Lengths:
    """Return the lengths of the parts; those that are not kept yet are read and kept, and those of other parts go."""
    found = {part: lengths for part in known if (lengths := kept.get(part)) is not None}
    new = {part.number: part for part in known if part not in found}
    if new:
        cursor.execute("SELECT number, words FROM posting_parts WHERE number = ANY(%s)", (list(new),))
        found.update((new[number], np.frombuffer(words, ">i4").astype(np.int64)) for number, words in cursor.fetchall())
        kept.update(found)
        for part in [*kept]:
            if part not in found:
                kept.pop(part, None)
    return found


def _looked_up(cursor: Any, terms: Sequence[str], leaves: bool, without: tuple[int, bool]) -> Iterator[Hits]:
    """Yield the hits of each term among the nodes without postings: from a number on, and those written again."""
    after, again = without
    # of one word, cover density is the sum of its weights
    frequencies = ", ".join("ts_rank_cd('{0.5, 0.1, 0.1, 1}', terms, %s::tsquery)::float8" for _ in terms)
    chosen = f"SELECT id, words, {frequencies} FROM nodes WHERE {KINDS[leaves]} AND terms @@ %s::tsquery"  # noqa: S608 - ours
    values: list[Any] = [*(_words.any_of([term]) for term in terms), _words.any_of(terms)]
    query = f"{chosen} AND id >= %s"
    values_of_all = [*values, after]
    if again:
        query += f" UNION ALL {chosen} AND id IN (SELECT id FROM posting_stale WHERE id < %s AND NOT gone)"  # noqa: S608 - ours
        values_of_all += [*values, after]
    cursor.execute(query, values_of_all)
    table: Any = np.asarray(cursor.fetchall(), np.float64).reshape(-1, 2 + len(terms)).T
    ids, words = table[:2].astype(np.int64)
    for frequency in table[2:]:
        holding = frequency > 0
        yield Hits(ids[holding], frequency[holding], words[holding])


def _joined(hits: Sequence[Hits]) -> Hits:
    columns = zip(*((each.ids, each.frequency, each.words) for each in hits), strict=True)
    make: Any = Hits  # the columns are in the order of its fields
    result: Hits = make(*map(np.concatenate, columns))
    return result
