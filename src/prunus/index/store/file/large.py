"""Search a large index without reading all nodes: the file of its codes and words, and the nodes added since.

    search.bin     codes of the vectors, postings of the words, moments of the vectors; ids and seals of the nodes

The file belongs to the state in which it was made. A node counts as known where the file has its number and its seal.
Other nodes are fresh: their vectors are all compared, and their words are kept in memory. Nodes that are gone are
skipped. Where too many nodes are fresh or gone, the file is made anew.

What is approximate: which leaves are among the best by cosine (with FAISS), and, where nodes are fresh or gone,
the weights of terms, the mean length, and means and deviations, which are those of the file. Everything else is exact.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ....core.ports import Ints, Vectors
from ....core.seal import seal
from ...nodes import Candidates, NodeSearch, ScoreMoments
from ...seals import WORDS, Damaged, check_edges, check_schema, checked_batches, checked_rows
from .._best import around, largest, moments_of
from . import rows as _rows
from .arrays import Arrays, write_arrays
from .nearest import Nearest, codes_of, dots, faiss
from .postings import Lexicon, Postings
from .snapshot import NodeColumns, grown, read, state_of, store, stored
from .vectors import MatrixRows, VectorFiles

FILE: Final = "search.bin"
_FRESH: Final = 0.05
"""Share of nodes that may be fresh or gone before the file is made anew."""
_FEWEST: Final = 2000
"""Fresh or gone nodes that any index may have."""
_PART: Final = 8192

Moments = tuple[float, float]
"""Mean and standard deviation."""


class Held(dict[str, NDArray[Any]]):
    """Arrays in memory, with the methods of a file of arrays."""

    def part(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Return a slice along the first axis."""
        return self[name][start:stop]


# --- making the file -----------------------------------------------------------------------------


def make(file: sqlite3.Connection, folder: Path, snapshot: NodeColumns, rows: MatrixRows) -> None:
    """Write the file of the search.

    :raises Damaged: the words of a node, or vectors, do not match their checksum.
    :raises OSError: the disk is full, or the folder cannot be written.
    """
    columns, leaves = snapshot.columns, snapshot.leaves
    items = np.flatnonzero(columns[5] >= 0)
    arrays: dict[str, NDArray[Any]] = {"ids": columns[0], "seals": columns[7], "items": items}
    arrays["codes"] = codes_of(rows, columns[5][items], rows.dimension)
    for name, part in (("leaves", items[items < leaves]), ("summaries", items[items >= leaves])):
        arrays |= _sums(name, columns[5][part], rows)
    arrays |= words_of(file, columns[0][:leaves], "leaves").arrays()
    arrays |= words_of(file, columns[0][leaves:], "summaries").arrays()
    write_arrays(folder / FILE, snapshot.state, arrays)


def _sums(name: str, rows: Ints, matrix: MatrixRows) -> dict[str, NDArray[Any]]:
    """Return the mean of some vectors, and the mean of their outer products; they give the deviation of any cosine."""
    mean, square = np.zeros(matrix.dimension), np.zeros((matrix.dimension, matrix.dimension))
    for start in range(0, len(rows), _PART):
        part = matrix(rows[start : start + _PART])
        mean += part.sum(axis=0, dtype=np.float64)
        square += part.T @ part
    count = max(1, len(rows))
    return {f"{name}_mean": mean / count, f"{name}_square": square / count}


def words_of(file: sqlite3.Connection, ids: Ints, name: str) -> Postings:
    """Return the words of nodes, in their order; a node without a row in the full text has none.

    :raises Damaged: the words of a node do not match their checksum.
    """
    found = Postings(name)
    table = WORDS[0] if name == "leaves" else WORDS[1]
    for part in _rows.sliced(ids.tolist()):
        marks = ",".join("?" * len(part))
        query = (
            f"SELECT n.id, n.words, c.c0, c.c1 FROM nodes n LEFT JOIN {table}_content c ON c.id = n.id "  # noqa: S608
            f"WHERE n.id IN ({marks})"
        )
        known = {id: (sealed, text, above) for id, sealed, text, above in file.execute(query, part)}
        for id in part:
            sealed, text, above = known.get(id, (0, None, None))
            if text is None and not sealed:
                found.add("", "")
            elif text is None or above is None or seal(text, above) != sealed:
                raise Damaged(f"the full text of node {id} does not match its checksum")
            else:
                found.add(text, above)
    return found


# --- searching -----------------------------------------------------------------------------------


class _Kind:
    """The leaves, or the summaries, of a state.

    :param first: the place of the first one in the snapshot.
    :param base: of each, its number among those of the file; -1 - i for the fresh one i.
    """

    def __init__(self, file: Arrays, name: str, first: int, base: Ints, fresh: Held) -> None:
        self.first, self._base = first, base
        self._lexicon = Lexicon(file, name)
        self._fresh = Lexicon(fresh, name, self._lexicon)
        self._mean, self._square = file[f"{name}_mean"], file[f"{name}_square"]
        self._places = np.full(self._lexicon.count, -1)
        known = base >= 0
        self._places[base[known]] = np.flatnonzero(known)
        self._new = np.flatnonzero(~known)

    def lexical(self, terms: Sequence[str], count: int) -> tuple[Ints, Callable[[Ints], NDArray[np.float64]], Moments]:
        """Return the best nodes by BM25, a function from nodes to their scores, and mean and deviation of all."""
        scores, matched = self._lexicon.scores(terms)
        fresh, _ = self._fresh.scores(terms)
        most = count * max(1, len(terms))  # a node is matched once for each term that it holds
        if len(matched) > most:
            matched = matched[np.argpartition(-scores[matched], most - 1)[:most]]
        best = self._places[np.unique(matched)]
        best = np.concatenate([best[best >= 0], self._new[fresh > 0]])

        def of(places: Ints) -> NDArray[np.float64]:
            base = self._base[places]
            found = np.zeros(len(base), np.float64)
            found[base >= 0] = scores[base[base >= 0]]
            found[base < 0] = fresh[-1 - base[base < 0]]
            return found

        moments = moments_of(float(scores.sum(dtype=np.float64)), float(np.dot(scores, scores)), len(scores))
        best = best[np.argsort(-of(best), kind="stable")[:count]]
        return best + self.first, lambda places: of(places - self.first), moments

    def cosines(self, vector: Vectors) -> Moments:
        """Return the mean and the deviation of the cosines of all vectors of the kind."""
        return moments_of(float(self._mean @ vector), float(vector @ self._square @ vector), 1)


class LargeSearch:
    """Searches one state of an index; threads may share it.

    :param arrays: the file of the search, of this state or of one before.
    :param file: the database, where the words of fresh nodes are.
    :raises Damaged: a file is damaged.
    """

    def __init__(self, arrays: Arrays, snapshot: NodeColumns, rows: MatrixRows, file: sqlite3.Connection) -> None:
        self._snapshot, self._arrays, self._rows, self.state = snapshot, arrays, rows, snapshot.state
        self._ids, self._layer, self._document, self._place, self._tokens, self._row = snapshot.columns[:6]
        self._leaves = leaves = snapshot.leaves
        self._known, base = _matched(arrays, snapshot.columns)
        fresh = np.flatnonzero(base < 0)
        stale = len(fresh) + int(np.count_nonzero(self._known < 0))
        self.is_usable = stale <= max(_FEWEST, _FRESH * len(self._ids))
        if not self.is_usable:
            return
        self._fresh = fresh[self._row[fresh] >= 0]
        self._items, codes = arrays["items"], arrays["codes"]
        self._nearest = Nearest(codes) if len(codes) and faiss() else None
        self._siblings = np.bincount(self._document[:leaves], minlength=len(snapshot.names))
        self._mean_tokens = float(self._tokens[:leaves].mean()) if leaves else 1.0
        self._kinds = []
        file_leaves = len(arrays["leaves_sizes"])
        for name, first, part, shift in (
            ("leaves", 0, base[:leaves], 0),
            ("summaries", leaves, base[leaves:], file_leaves),
        ):
            new = np.flatnonzero(part < 0)
            held = Held(words_of(file, self._ids[first + new], name).arrays())
            numbers = part - shift
            numbers[new] = -1 - np.arange(len(new))
            self._kinds.append(_Kind(arrays, name, first, numbers, held))

    def candidates(self, search: NodeSearch, place: str) -> Candidates:
        """Return the nodes that may be the best for a question.

        :param place: names the index in messages.
        :raises BadInput: a document is not in the index.
        :raises Damaged: a part that is needed does not match its checksum.
        """
        terms = _rows.terms_of(search.query, self._snapshot.languages)
        vector = np.asarray(search.vector, np.float32)
        kinds = self._kinds[: 2 if search.summaries else 1]
        reach = search.reach_of(self._mean_tokens)
        lexical = [kind.lexical(terms, search.count) for kind in kinds]
        if search.documents:
            chosen = self._of_documents(search.documents, place, search.summaries)
        else:
            best = [*self._near(vector, search), *(nodes for nodes, _, _ in lexical)]
            chosen = np.unique(np.concatenate(best))
            chosen = chosen[self._row[chosen] >= 0]
            leaves = chosen[chosen < self._leaves]
            siblings = self._siblings[self._document[leaves]]
            near = around(leaves, siblings, self._document[: self._leaves], reach)
            chosen = np.concatenate([near, chosen[chosen >= self._leaves]])
        leaf = chosen < self._leaves
        bm25 = np.concatenate([of(chosen[part]) for (_, of, _), part in zip(lexical, (leaf, ~leaf), strict=False)])
        cosine = dots(self._rows(self._row[chosen]), vector).astype(np.float64)
        spreads = [
            ScoreMoments(kind.cosines(vector), moments) for kind, (*_, moments) in zip(kinds, lexical, strict=True)
        ]
        document = self._document[chosen]
        siblings = np.where(leaf, self._siblings[np.maximum(document, 0)], 0)
        return Candidates(
            self._ids[chosen],
            self._layer[chosen],
            document,
            self._place[chosen],
            self._tokens[chosen],
            cosine,
            bm25,
            siblings,
            reach,
            leaves=spreads[0],
            summaries=spreads[-1],
        )

    def _near(self, vector: Vectors, search: NodeSearch) -> list[Ints]:
        """Return the best leaves by cosine, and the best summaries where they are wanted, as places."""
        many = search.count * (1 + search.summaries)
        if self._nearest:
            items = self._nearest.of(vector, 2 * many)
        else:
            cosines = self._rows.dots(vector)[self._row[np.maximum(self._known[self._items], 0)]]
            items = np.argpartition(-cosines, min(2 * many, len(cosines) - 1))[: 2 * many]
        places = self._known[self._items[items]]
        places = np.concatenate([places[places >= 0], self._fresh])
        cosines = dots(self._rows(self._row[places]), vector)
        kinds = [places < self._leaves, places >= self._leaves][: 2 if search.summaries else 1]
        return [largest(places[kind], cosines[kind], search.count) for kind in kinds]

    def _of_documents(self, documents: Sequence[str], place: str, summaries: bool) -> Ints:
        """Return the nodes of some documents that have a vector."""
        known = {name: number for number, name in enumerate(self._snapshot.names)}
        for name in documents:
            if name not in known:
                raise BadInput(f"{place}: there is no document {name!r}", subject=name)
        last = len(self._ids) if summaries else self._leaves
        inside = np.isin(self._document[:last], [known[name] for name in documents])
        return np.flatnonzero(inside & (self._row[:last] >= 0))


def _matched(arrays: Arrays, columns: Ints) -> tuple[Ints, Ints]:
    """Return the place of each node of the file in the snapshot, and the reverse; -1 where it is not there."""
    ids, seals = arrays["ids"], arrays["seals"]
    if np.array_equal(ids, columns[0]) and np.array_equal(seals, columns[7]):
        return np.arange(len(ids)), np.arange(len(ids))
    known, base = np.full(len(ids), -1), np.full(columns.shape[1], -1)
    if len(ids) and columns.shape[1]:
        order = np.argsort(ids)
        at = order[np.minimum(np.searchsorted(ids, columns[0], sorter=order), len(ids) - 1)]
        same = (ids[at] == columns[0]) & (seals[at] == columns[7])
        base[same] = at[same]
        known[at[same]] = np.flatnonzero(same)
    return known, base


# --- keeping the files ---------------------------------------------------------------------------


class LargeIndex:
    """The derived files of one folder: kept up to date, and made again where they are missing, damaged or too old.

    :param place: names the index in messages.
    """

    def __init__(self, folder: Path, vectors: VectorFiles) -> None:
        self._folder, self._vectors, self.location = folder, vectors, str(folder)
        self._snapshot: NodeColumns | None = None
        self._search: LargeSearch | None = None

    def snapshot(self, file: sqlite3.Connection, about: dict[str, Any]) -> NodeColumns:
        """Return the nodes of the state that a transaction reads.

        :raises Damaged: a table does not match its checksums.
        """
        state = state_of(file, about)
        known = self._snapshot or _stored(self._folder)
        if known is None or any(known.state[name] != state[name] for name in state):
            check_schema(file, about)
            checked_rows(file, "notes")
            known = grown(file, state, known) if known else None
            if known is None:
                checked_rows(file, "documents")
                check_edges(file)
                known = read(file, state, checked_batches(file, "nodes"))
                store(self._folder, known)
        elif self._snapshot is None:
            check_schema(file, about)
            checked_rows(file, "notes")
        self._snapshot = known
        return known

    def search(self, file: sqlite3.Connection, about: dict[str, Any]) -> LargeSearch | None:
        """Return the search of the state that a transaction reads; None where its file cannot be written."""
        snapshot = self.snapshot(file, about)
        if self._search is None or self._search.state != snapshot.state:
            rows = self._vectors.rows(about["generation"], about["rows"], file)
            found = self._opened(snapshot, rows, file)
            if found is None:
                try:
                    make(file, self._folder, snapshot, rows)
                except OSError:  # a full disk, a read-only folder: the exact way needs no file
                    return None
                found = self._opened(snapshot, rows, file)
            self._search = found
        return self._search

    def _opened(self, snapshot: NodeColumns, rows: MatrixRows, file: sqlite3.Connection) -> LargeSearch | None:
        """Return the search of the file, None where the file is missing, damaged or too old."""
        path = self._folder / FILE
        if not path.is_file():
            return None
        try:
            arrays = Arrays(path)
            same = all(arrays.state[name] == snapshot.state[name] for name in ("generation", "embedder"))
            found = LargeSearch(arrays, snapshot, rows, file) if same else None
        except Damaged as error:
            if error.path != path:
                raise
            return None
        return found if found and found.is_usable else None

    def forget(self) -> None:
        """Delete the file of the search, which is damaged."""
        self._search = None
        with suppress(OSError):
            (self._folder / FILE).unlink(missing_ok=True)


def _stored(folder: Path) -> NodeColumns | None:
    try:
        return stored(folder)
    except Damaged:
        return None
