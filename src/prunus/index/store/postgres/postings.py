"""The postings of words in PostgreSQL, made when documents are in, so that a question reads no texts for BM25.

:func:`prepare` makes them for a large index, over ranges of the nodes' numbers, with some columns of the nodes that
clients keep in memory. The newest nodes have none: they are looked up in the table ``nodes``. Triggers note the nodes
that are deleted or written again; those that are noted do not count in the postings, and those that are still there are
looked up, too. So the scores are exact at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints
from .. import _postings, _words
from .._postings import Hits, joined, unpacked
from .near import KINDS
from .pool import alone

_TABLES: Final = ("posting_parts", "postings", "posting_stale")
_SCHEMA: Final = """
CREATE TABLE posting_parts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, made timestamptz NOT NULL DEFAULT clock_timestamp(),
    first bigint NOT NULL, after bigint NOT NULL, nodes int NOT NULL, words bytea NOT NULL, tokens bytea NOT NULL,
    documents bytea NOT NULL);
CREATE TABLE postings (
    part bigint NOT NULL, leaves boolean NOT NULL, term text NOT NULL, nodes bytea NOT NULL,
    PRIMARY KEY (part, leaves, term));
ALTER TABLE postings ALTER COLUMN nodes SET STORAGE EXTERNAL;
CREATE TABLE posting_stale (id bigint NOT NULL, gone boolean NOT NULL);
CREATE INDEX posting_stale_by_id ON posting_stale (id);
CREATE FUNCTION note_stale() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    AS 'BEGIN INSERT INTO posting_stale SELECT id, TG_OP = ''DELETE'' FROM was; RETURN NULL; END';
CREATE TRIGGER nodes_deleted AFTER DELETE ON nodes REFERENCING OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION note_stale();
CREATE TRIGGER nodes_changed AFTER UPDATE ON nodes REFERENCING OLD TABLE AS was
    FOR EACH STATEMENT EXECUTE FUNCTION note_stale()
"""
"""Postings do not shrink when they are compressed. A stale node may be noted several times: a note that another process
makes meanwhile must not be lost with the notes that :func:`prepare` deletes. All is made in one transaction."""
SUMMARY: Final = -1
NONE: Final = -2
_KINDS: Final = (">i4", ">i4", ">i8")
"""Numbers of the columns of a part."""
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


def _no_ids() -> Ints:
    return np.zeros(0, np.int64)


def _nothing() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of the numbers of some parts, part after part; a number without a node has 0 words and 0 tokens.

    :param starts: places of the first numbers of the parts.
    :param documents: numbers of the documents of leaves, ``SUMMARY`` for a summary, ``NONE`` for no such node.
    :param siblings: number of leaves of the document of each leaf. The leaves of a document follow one another.
    """

    parts: tuple[Part, ...] = ()
    starts: Ints = field(default_factory=_no_ids)
    words: NDArray[np.int32] = field(default_factory=_nothing)
    tokens: NDArray[np.int32] = field(default_factory=_nothing)
    documents: Ints = field(default_factory=_no_ids)
    siblings: NDArray[np.int32] = field(default_factory=_nothing)

    def places(self, ids: Ints) -> Ints:
        """Return the places of nodes that parts have."""
        part = np.searchsorted([each.first for each in self.parts], ids, side="right") - 1
        return np.asarray(ids - np.asarray([each.first for each in self.parts])[part] + self.starts[part], np.int64)

    def have(self, ids: Ints) -> NDArray[np.bool_]:
        """Tell of each number whether a part has it."""
        part = np.searchsorted([each.first for each in self.parts], ids, side="right") - 1
        return (part >= 0) & (ids < np.asarray([each.after for each in self.parts])[part])

    def ids(self, places: Ints) -> Ints:
        """Return the numbers at some places."""
        part = np.searchsorted(self.starts, places, side="right") - 1
        return np.asarray(places - self.starts[part] + np.asarray([each.first for each in self.parts])[part], np.int64)


@dataclass(frozen=True, slots=True)
class State:
    """The parts of one state of the index, and the nodes that do not count in them.

    :param after: the number from which on nodes have none.
    :param stale: nodes whose postings and columns do not count, sorted.
    :param again: whether some of them are still there.
    """

    columns: Columns
    after: int = 0
    stale: Ints = field(default_factory=_no_ids)
    again: bool = False


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
        if not cursor.execute("SELECT to_regclass(current_schema() || '.posting_stale')").fetchone()[0]:
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
            "INSERT INTO posting_parts (first, after, nodes, words, tokens, documents) SELECT %s, %s, count(id), "  # noqa: S608 - ours
            "string_agg(int4send(coalesce(words, 0)), '' ORDER BY at), "
            "string_agg(int4send(coalesce(tokens, 0)), '' ORDER BY at), "
            f"string_agg(int8send(CASE WHEN {KINDS[True]} THEN document WHEN {KINDS[False]} THEN {SUMMARY} "
            f"ELSE {NONE} END), '' ORDER BY at) FROM generate_series(%s::bigint, %s::bigint - 1) "
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


def state_of(cursor: Any, kept: Columns) -> State:
    """Return the parts of the present state, and the nodes that do not count in them.

    :param cursor: returns binary data, and sees one state of the index.
    :param kept: columns of an earlier state, of which those of the same parts are not read again.
    """
    known = tuple(parts(cursor))
    if not known:
        return State(Columns())
    columns = kept if kept.parts == known else _read(cursor, known, kept)
    after = known[-1].after
    cursor.execute("SELECT id, gone FROM posting_stale WHERE id < %s", (after,))
    rows = cursor.fetchall()
    stale = np.unique(np.asarray([id for id, _ in rows], np.int64))
    return State(columns, after, stale[columns.have(stale)], not all(gone for _, gone in rows))


def _read(cursor: Any, known: tuple[Part, ...], kept: Columns) -> Columns:
    found: dict[Part, tuple[NDArray[Any], ...]] = {}
    for part, start in zip(kept.parts, kept.starts.tolist(), strict=True):
        rows = slice(start, start + part.after - part.first)
        found[part] = (kept.words[rows], kept.tokens[rows], kept.documents[rows])
    new = {part.number: part for part in known if part not in found}
    cursor.execute("SELECT number, words, tokens, documents FROM posting_parts WHERE number = ANY(%s)", (list(new),))
    for number, *columns in cursor.fetchall():
        found[new[number]] = tuple(
            np.frombuffer(data, kind).astype(kind.replace(">", "=")) for data, kind in zip(columns, _KINDS, strict=True)
        )
    words, tokens, documents = (np.concatenate(each) for each in zip(*(found[part] for part in known), strict=True))
    ends = np.cumsum([part.after - part.first for part in known])
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    edges = np.flatnonzero(np.diff(documents, prepend=NONE - 1, append=NONE - 1))
    siblings = np.repeat(np.diff(edges), np.diff(edges)).astype(np.int32)
    return Columns(known, starts, words, tokens, documents, siblings)


def sums(cursor: Any, state: State, leaves: bool) -> tuple[int, int, int]:
    """Return the number of all leaves or of all summaries, of their words and of their tokens."""
    columns = state.columns
    of_kind = columns.documents >= 0 if leaves else columns.documents == SUMMARY
    if len(state.stale):
        of_kind[columns.places(state.stale)] = False
    counted = "SELECT count(*) AS count, sum(words) AS words, sum(tokens) AS tokens FROM nodes WHERE"
    chosen, values = _without(state, leaves)
    cursor.execute(" UNION ALL ".join(f"{counted} {each}" for each in chosen), values)
    total = [int(of_kind.sum()), int(columns.words[of_kind].sum()), int(columns.tokens[of_kind].sum())]
    for row in cursor.fetchall():
        total = [known + int(more or 0) for known, more in zip(total, row, strict=True)]
    return total[0], total[1], total[2]


def hits(cursor: Any, state: State, terms: Sequence[str], leaves: bool) -> list[Hits]:
    """Return the leaves or the summaries that hold each of the terms; the cursor returns binary data."""
    if not terms:
        return []
    columns, stale = state.columns, state.stale
    found: list[list[Hits]] = [[] for _ in terms]
    if columns.parts:
        starts = {part.number: (part, start) for part, start in zip(columns.parts, columns.starts, strict=True)}
        at = {term: place for place, term in enumerate(terms)}
        cursor.execute(
            "SELECT part, term, nodes FROM postings WHERE part = ANY(%s) AND leaves = %s AND term = ANY(%s)",
            (list(starts), leaves, list(terms)),
        )
        for number, term, data in cursor.fetchall():
            part, start = starts[number]
            places, frequency = unpacked(data)
            if len(gone := stale[(stale >= part.first) & (stale < part.after)]):
                kept = np.isin(places + part.first, gone, invert=True)
                places, frequency = places[kept], frequency[kept]
            found[at[term]].append(Hits(places + part.first, frequency, columns.words[start + places].astype(np.int64)))
    for place, looked_up in enumerate(_looked_up(cursor, state, terms, leaves)):
        found[place].append(looked_up)
    return [joined(each) for each in found]


def _without(state: State, leaves: bool) -> tuple[list[str], list[int]]:
    """Return conditions, each with one value, for the nodes whose postings and columns do not count."""
    conditions = [f"{KINDS[leaves]} AND id >= %s"]
    if state.again:
        conditions.append(f"{KINDS[leaves]} AND id IN (SELECT id FROM posting_stale WHERE id < %s AND NOT gone)")  # noqa: S608 - ours
    return conditions, [state.after] * len(conditions)


def _looked_up(cursor: Any, state: State, terms: Sequence[str], leaves: bool) -> Iterator[Hits]:
    """Yield the hits of each term among the nodes whose postings do not count."""
    # of one word, cover density is the sum of its weights
    frequencies = ", ".join("ts_rank_cd('{0.5, 0.1, 0.1, 1}', terms, %s::tsquery)::float8" for _ in terms)
    queries, values = [], []
    for condition, value in zip(*_without(state, leaves), strict=True):
        queries.append(f"SELECT id, words, {frequencies} FROM nodes WHERE terms @@ %s::tsquery AND {condition}")  # noqa: S608 - ours
        values += [*(_words.any_of([term]) for term in terms), _words.any_of(terms), value]
    cursor.execute(" UNION ALL ".join(queries), values)
    table: Any = np.asarray(cursor.fetchall(), np.float64).reshape(-1, 2 + len(terms)).T
    ids, words = table[:2].astype(np.int64)
    for frequency in table[2:]:
        holding = frequency > 0
        yield Hits(ids[holding], frequency[holding], words[holding])
