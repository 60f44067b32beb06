"""The postings of a large index in LanceDB: which nodes hold a word, without reading the rows of the nodes.

Three tables hold them, for leaves and parents (the *kinds*) apart:

- ``parts``: a range of node numbers, and the number of words of each node in it, 0 where there is no node.
- ``postings``: for each part and each word in it, the nodes that hold the word; see ``_postings.py``.
- ``stale``: nodes of the parts that were deleted or written anew since. What the parts say of them does not count.

Nodes above the last part, and parents that were written anew, are *loose*: their words are read from their rows, once
for each state. Where many are, a change makes postings for them. The tables are made when an index becomes large.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints
from ....core.seal import seal
from ...seals import Damaged, check
from .._postings import FEWEST, WIDTH, Hits, bm25, joined, unpacked
from .rows import check_sum
from .tables import KINDS, Change, Snapshot, among, quoted
from .words import COLUMNS, Rows, grouped, scanned

LOOSE: Final = 2 * FEWEST
"""Fewest loose nodes of a kind for which postings are made."""
_SHARE: Final = 100
"""In a very large index they are made when one in so many is loose: Lance indexes all postings anew each time."""
_STEP: Final = 4
"""Most parts that one change makes, so that it takes few seconds and another writer seldom comes in between."""


def schemas(arrow: Any) -> dict[str, Any]:
    """Return the columns of the tables.

    :param arrow: the module ``pyarrow``.
    """
    whole, text, data = arrow.int64(), arrow.string(), arrow.binary()
    return {
        "parts": arrow.schema(
            [("kind", text), ("first", whole), ("end", whole), ("nodes", whole), ("words", data), ("seal", whole)]
        ),
        "postings": arrow.schema([("kind", text), ("first", whole), ("term", text), ("nodes", data), ("seal", whole)]),
        "stale": arrow.schema([("kind", text), ("ids", data), ("seal", whole)]),
    }


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Posted:
    """What a state needs in memory to answer from postings.

    :param parts: of each part, by its first number, the number of words of each node; 0 where there is no node, or
        where the node is stale.
    :param loose: the words of the loose nodes, grouped; their places are those of ``ids`` and ``words``.
    :param ids, words: of the loose nodes.
    """

    kind: str
    parts: dict[int, NDArray[np.int32]]
    loose: dict[str, bytes]
    ids: Ints
    words: Ints

    def hits(self, snapshot: Snapshot, terms: Sequence[str]) -> list[Hits]:
        """Return the nodes that hold each term.

        :raises Damaged: postings do not match their checksum.
        """
        found: dict[str, list[Hits]] = {}
        if self.parts:
            where = f"kind = {quoted(self.kind)} AND term IN ({', '.join(map(quoted, terms))})"
            table = snapshot.read("postings", ["first", "term", "nodes", "seal"], where)
            columns = [table.column(name).to_pylist() for name in ("first", "term", "nodes", "seal")]
            for first, term, nodes, sealed in zip(*columns, strict=True):
                words = self.parts.get(first)
                if words is None or _row_seal(_part_seal(self.kind, first), term.encode(), nodes) != sealed:
                    raise Damaged(f"the postings of {term!r} do not match their checksum")
                hits = _hits(nodes, words)
                found.setdefault(term, []).append(Hits(first + hits.ids, hits.frequency, hits.words))
        for term in terms:
            if term in self.loose:
                hits = _hits(self.loose[term], self.words)
                found.setdefault(term, []).append(Hits(self.ids[hits.ids], hits.frequency, hits.words))
        return [joined(each) for each in found.values()]


def _hits(nodes: bytes, words: NDArray[Any]) -> Hits:
    """Return postings without those that do not count; the numbers of the nodes are their places."""
    places, frequency = unpacked(nodes)
    if len(places) and int(places.max()) >= len(words):
        raise Damaged("postings name a node outside their part")
    count = words[places]
    living = count > 0
    return Hits(places[living], frequency[living], count[living].astype(np.int64))


def matched(
    snapshot: Snapshot, name: str, posted: Posted | None, terms: Sequence[str], count: int, average: float
) -> tuple[Ints, NDArray[np.float64]]:
    """Return the nodes of a table that hold a term, sorted, and their BM25 scores.

    :param posted: the postings; without, all rows with a term are read.
    :raises Damaged: the words of one do not match their checksum.
    """
    if posted is None or not terms:
        return scanned(snapshot, name, terms, count, average)
    return bm25(posted.hits(snapshot, terms), count, average)


def posted(snapshot: Snapshot, kind: str) -> Posted | None:
    """Return the postings of a kind; None where there are none, or where so many nodes are loose that rows are read.

    :raises Damaged: a part is missing, or does not match its checksum.
    """
    if not snapshot.record.posted:
        return None
    parts = _parts(snapshot, kind, ["words"])
    stale = _stale(snapshot, kind)
    known: dict[int, NDArray[np.int32]] = {}
    for row in parts:
        words = np.frombuffer(row["words"], "<i4").astype(np.int32)
        low, high = np.searchsorted(stale, (row["first"], row["end"]))
        words[stale[low:high] - row["first"]] = 0
        known[row["first"]] = words
    count = _loose(snapshot, kind, parts, stale)
    if count > max(WIDTH, LOOSE):
        return None
    found = _loose_rows(snapshot, kind, max((row["end"] for row in parts), default=0), stale) if count else None
    if (0 if found is None else len(found.ids)) != count:
        raise Damaged(f"rows of the table {kind} are missing, or of its postings")
    none = np.zeros(0, np.int64)
    if found is None:
        return Posted(kind, known, {}, none, none)
    terms, starts, data = grouped(found, np.arange(count))
    ends = (4 * starts).tolist()
    each = (data[start:end] for start, end in pairwise(ends))
    return Posted(kind, known, dict(zip(terms.to_pylist(), each, strict=True)), found.ids, found.words)


def _parts(state: Snapshot | Change, kind: str, more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the rows of the parts of a kind, by their numbers; checked where their words are read, too."""
    columns = ["kind", "first", "end", "nodes", *more]
    rows = state.read("parts", [*columns, "seal"]).to_pylist()
    if isinstance(state, Snapshot):
        check_sum(state, "parts", [row["seal"] for row in rows])
    for row in rows if more else ():
        check(f"a part of the postings of {row['kind']}", row["seal"], *(row[name] for name in columns))
    return sorted((row for row in rows if row["kind"] == kind), key=lambda row: int(row["first"]))


def _stale(state: Snapshot | Change, kind: str) -> Ints:
    """Return the stale nodes of a kind, sorted."""
    rows = state.read("stale", ["kind", "ids", "seal"]).to_pylist()
    if isinstance(state, Snapshot):
        check_sum(state, "stale", [row["seal"] for row in rows])
    for row in rows:
        check("the list of stale nodes", row["seal"], row["kind"], row["ids"])
    return np.unique(np.frombuffer(b"".join(row["ids"] for row in rows if row["kind"] == kind), "<i8").astype(np.int64))


def _loose(state: Snapshot | Change, kind: str, parts: Sequence[dict[str, Any]], stale: Ints) -> int:
    """Return the number of loose nodes: all, but those of the parts that are not stale."""
    counts: Mapping[str, int] = state.record.counts if isinstance(state, Snapshot) else state.counts
    return counts[kind] - sum(int(row["nodes"]) for row in parts) + len(stale)


def _loose_rows(snapshot: Snapshot, kind: str, end: int, stale: Ints) -> Rows:
    """Return the words of the loose nodes: those from ``end`` on, and stale parents that were not deleted."""
    again = [*among("id", stale.tolist())] if kind == "parents" else []
    found = [snapshot.read(kind, COLUMNS, where) for where in (f"id >= {end}", *again)]
    arrow = snapshot.tables.arrow
    return Rows(arrow, arrow.concat_tables(found))


# --- making ------------------------------------------------------------------------------------


def is_due(state: Snapshot | Change) -> bool:
    """Tell whether postings are to be made."""
    return any(_wanted(state, kind) for kind in KINDS)


def extend(change: Change) -> bool:
    """Make postings where nodes lack them; tell whether there are more to make, for another change.

    :raises Damaged: the words of a node do not match their checksum.
    """
    wanted = [(kind, *bounds) for kind in KINDS for bounds in _wanted(change, kind)]
    if wanted and not change.posted:
        for name, schema in schemas(change.tables.arrow).items():
            change.create(name, schema)
    for kind in KINDS:
        now = [(first, end) for of, first, end in wanted[:_STEP] if of == kind]
        if now:
            _make(change, kind, now)
    if wanted and len(wanted) <= _STEP:
        _index(change)
    return len(wanted) > _STEP


def _wanted(state: Snapshot | Change, kind: str) -> list[tuple[int, int]]:
    """Return the ranges of the parts to be made: those with many stale nodes, and those of loose nodes at the end."""
    known = state.record.posted if isinstance(state, Snapshot) else state.posted
    parts, stale = (_parts(state, kind), _stale(state, kind)) if known else ([], np.zeros(0, np.int64))
    loose = _loose(state, kind, parts, stale)
    old = [int(np.diff(np.searchsorted(stale, (row["first"], row["end"])))[0]) for row in parts]
    limits = [max(FEWEST, row["nodes"] // 4) for row in parts]
    many = max(LOOSE, min(WIDTH, sum(row["nodes"] for row in parts) // _SHARE))
    if kind == "parents" and loose > many:  # the stale ones are loose, too: leave at most half as many
        limits = [min(limit, many // (2 * len(parts))) for limit in limits]
    found = [(row["first"], row["end"]) for row, count, limit in zip(parts, old, limits, strict=True) if count > limit]
    if loose <= many:
        return found
    start = max((row["end"] for row in parts), default=0)
    tail = np.sort(state.read(kind, ["id"], f"id >= {start}").column("id").to_numpy())
    if not len(tail):
        return found
    at = int(tail[0])
    if parts and 2 * (parts[-1]["end"] - parts[-1]["first"]) < WIDTH:  # or the parts would be many small ones
        at = parts[-1]["first"]
        found = [bounds for bounds in found if bounds[0] != at]
    last = int(tail[-1])
    while at <= last:
        end = min(at + WIDTH, last + 1)
        found.append((at, end))
        above = tail[np.searchsorted(tail, end) :]
        at = int(above[0]) if len(above) else end
    return found


def _make(change: Change, kind: str, ranges: Sequence[tuple[int, int]]) -> None:
    """Make parts, in place of those that begin with the same numbers."""
    stale = _stale(change, kind)
    kept = np.ones(len(stale), bool)
    for first, end in ranges:
        low, high = np.searchsorted(stale, (first, end))
        kept[low:high] = False
        for name in ("parts", "postings"):
            change.delete(name, f"kind = {quoted(kind)} AND first = {first}")
        _make_part(change, kind, first, end)
    if not kept.all():
        change.drop("stale", "kind", [kind])
        change.add_stale(kind, stale[kept])


def _make_part(change: Change, kind: str, first: int, end: int) -> None:
    arrow = change.tables.arrow
    rows = Rows(arrow, change.read(kind, COLUMNS, f"id >= {first} AND id < {end}"))
    if not len(rows.ids):
        return
    words = np.zeros(end - first, "<i4")
    words[rows.ids - first] = rows.words
    values = (kind, first, end, len(rows.ids), words.tobytes())
    row = dict(zip(("kind", "first", "end", "nodes", "words"), values, strict=True))
    known = schemas(arrow)
    change.add("parts", arrow.Table.from_pylist([{**row, "seal": seal(*values)}], schema=known["parts"]))
    terms, starts, data = grouped(rows, rows.ids - first)
    count, ends = len(terms), (4 * starts).tolist()
    begun, view = _part_seal(kind, first), memoryview(data)
    sealed = [_row_seal(begun, term.encode(), view[start:stop])
              for term, start, stop in zip(terms.to_pylist(), ends[:-1], ends[1:], strict=True)]  # fmt: skip
    offsets = arrow.py_buffer(np.asarray(ends, np.int32))
    nodes = arrow.Array.from_buffers(arrow.binary(), count, [None, offsets, arrow.py_buffer(data)])
    columns = [arrow.repeat(kind, count), arrow.repeat(arrow.scalar(first, arrow.int64()), count), terms, nodes,
               arrow.array(sealed, arrow.int64())]  # fmt: skip
    change.add("postings", arrow.Table.from_arrays(columns, schema=known["postings"]))


def _index(change: Change) -> None:
    from lancedb.index import BTree

    if change.counts["postings"]:
        change.index("postings", {"term": BTree()})


# --- checksums ---------------------------------------------------------------------------------


def _part_seal(kind: str, first: int) -> int:
    return seal(kind, first)


def _row_seal(part: int, term: bytes, nodes: bytes | memoryview) -> int:
    """Return the checksum of one row of ``postings``; the seal of its part is that of kind and first number."""
    return zlib.crc32(nodes, zlib.crc32(term, zlib.crc32(len(term).to_bytes(4, "little"), part)))


def each_check(snapshot: Snapshot) -> Iterator[Any]:
    """Yield a function for each part of the postings, which raises Damaged where it is damaged."""
    if not snapshot.record.posted:
        return
    yield lambda: check_sum(snapshot, "postings", snapshot.read("postings", ["seal"]).column("seal").to_pylist())
    yield lambda: _check_places(snapshot)
    for kind in KINDS:
        yield lambda kind=kind: posted(snapshot, kind)
        rows = snapshot.read("parts", ["first"], f"kind = {quoted(kind)}")
        for first in rows.column("first").to_pylist():
            yield lambda kind=kind, first=first: _check_part(snapshot, kind, first)


def _check_places(snapshot: Snapshot) -> None:
    """Check that all postings are of parts."""
    named, known = (
        snapshot.read(name, ["kind", "first"]).group_by(["kind", "first"]).aggregate([]).to_pylist()
        for name in ("postings", "parts")
    )
    for row in named:
        if row not in known:
            raise Damaged(f"postings of {row['kind']} are of no part")


def _check_part(snapshot: Snapshot, kind: str, first: int) -> None:
    where = f"kind = {quoted(kind)} AND first = {first}"
    table, begun = snapshot.read("postings", ["term", "nodes", "seal"], where), _part_seal(kind, first)
    for batch in table.to_batches():
        for term, nodes, sealed in zip(*(batch.column(name).to_pylist() for name in range(3)), strict=True):
            if _row_seal(begun, term.encode(), nodes) != sealed:
                raise Damaged(f"the postings of {term!r} do not match their checksum")
