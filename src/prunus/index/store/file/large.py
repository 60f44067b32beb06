"""Search a large index without reading all nodes: two files of arrays, made from the database where they are missing.

    nodes.bin      the columns of all nodes in the order of the view, their checksums, the ids of the documents
    search.bin     codes of the vectors, postings of the words, moments of the vectors; ids and checksums of the nodes

``nodes.bin`` belongs to one state of the index, by its random name. ``search.bin`` serves later states, too: a node
counts as known where the file has its number and its checksum. Other nodes are fresh: their vectors are all compared,
and their words are kept in memory. Nodes that are gone are skipped. Where too many nodes are fresh or gone, the file is
made anew.

What is approximate: which leaves are among the best by cosine (with FAISS), and, where nodes are fresh or gone,
the weights of terms, the mean length, and means and deviations, which are those of the file. Everything else is exact.

With FAISS a question is compared with codes of all vectors, 4 bits for two numbers (product quantisation). These
cosines only choose candidates; the exact cosines of the candidates come from the matrix. Without FAISS all vectors are
compared exactly, which takes longer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ....core.ports import Ints, Vectors
from ....core.sqlite import checksum
from ...nodes import Candidates, NodeSearch, ScoreMoments
from .._best import around, largest, moments_of
from .._words import terms_of
from . import rows as _rows
from .arrays import read_arrays, write_arrays
from .database import WORDS, Damaged, checked_batches
from .postings import Arrays, Lexicon, Postings
from .vectors import MatrixRows

NODES: Final = "nodes.bin"
SEARCH: Final = "search.bin"
_FRESH: Final = 0.05
"""Share of nodes that may be fresh or gone before the file of the search is made anew."""
_FEWEST: Final = 2000
"""Fresh or gone nodes that any index may have."""
_PART: Final = 8192
_SAMPLE: Final = 50_000
"""Vectors from which the codes are learned."""
_CODED: Final = 65_536
"""Vectors that are coded at a time; bounds the memory."""
_COLUMNS: Final = [0, 1, 2, 3, 6, 7, 8, 11]
"""The columns of the view among :data:`NODE` and the checksum."""

Moments = tuple[float, float]
"""Mean and standard deviation."""


# --- all nodes of a state ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """All nodes of one state.

    :param state: the random name of the state.
    :param columns: int64 [8, n]: ids, layer, document, position, tokens, row, routing as in a view, and the checksums.
    :param names: the ids of the documents.
    """

    state: str
    columns: Ints
    names: list[str]
    languages: list[str]

    @property
    def leaves(self) -> int:
        """The number of leaves, which are the first nodes."""
        return int(np.searchsorted(self.columns[1] > 0, True))


def node_columns(file: sqlite3.Connection, state: str) -> NodeColumns:
    """Read the nodes and documents of the present state from the database; each row is checked.

    :raises Damaged: a row does not match its checksum.
    """
    documents = [row for batch in checked_batches(file, "documents") for row in batch]
    index = {row[0]: at for at, row in enumerate(documents)}
    parts = [np.zeros((12, 0), np.int64)]
    for batch in checked_batches(file, "nodes"):
        rows = [(id, layer, index.get(document, -1), *rest) for id, layer, document, *rest in batch]
        parts.append(np.asarray(rows, np.int64).T)
    columns = np.concatenate(parts, axis=1)
    leaf = columns[1] == 0
    order = np.lexsort((np.where(leaf, columns[3], columns[0]), np.where(leaf, columns[2], 0), ~leaf))
    languages = sorted({row[5] for row in documents})
    return NodeColumns(
        state, np.ascontiguousarray(columns[_COLUMNS][:, order]), [row[1] for row in documents], languages
    )


def stored_columns(folder: Path, state: str) -> NodeColumns | None:
    """Return the nodes from their file; None where it is missing, damaged, or of another state."""
    try:
        result, arrays = read_arrays(folder / NODES)
    except Damaged:
        return None
    if result["state"] != state:
        return None
    names, languages = json.loads(arrays["names"].tobytes())
    return NodeColumns(state, arrays["columns"], names, languages)


def store_columns(folder: Path, nodes: NodeColumns) -> None:
    """Write the file of the nodes; a folder that cannot be written stays without it."""
    names = np.frombuffer(json.dumps([nodes.names, nodes.languages]).encode(), np.uint8)
    with suppress(OSError):
        write_arrays(folder / NODES, {"state": nodes.state}, {"columns": nodes.columns, "names": names})


# --- making the file -----------------------------------------------------------------------------


def make_search(
    folder: Path, state: dict[str, Any], file: sqlite3.Connection, nodes: NodeColumns, rows: MatrixRows
) -> None:
    """Write the file of the search.

    :raises Damaged: the words of a node, or vectors, do not match their checksum.
    :raises OSError: the disk is full, or the folder cannot be written.
    """
    columns, leaves = nodes.columns, nodes.leaves
    items = np.flatnonzero(columns[5] >= 0)
    arrays: dict[str, NDArray[Any]] = {"ids": columns[0], "checksums": columns[7], "items": items}
    arrays["codes"] = _codes(rows, columns[5][items], rows.dimension)
    for name, part in (("leaves", items[items < leaves]), ("summaries", items[items >= leaves])):
        arrays |= _sums(name, columns[5][part], rows)
    arrays |= words_of(file, columns[0][:leaves], "leaves").arrays()
    arrays |= words_of(file, columns[0][leaves:], "summaries").arrays()
    write_arrays(folder / SEARCH, state, arrays)


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
    result = Postings(name)
    table = WORDS[0] if name == "leaves" else WORDS[1]
    for part in _rows.sliced(ids.tolist()):
        marks = ",".join("?" * len(part))
        query = (
            f"SELECT n.id, n.words, c.c0, c.c1 FROM nodes n LEFT JOIN {table}_content c ON c.id = n.id "  # noqa: S608
            f"WHERE n.id IN ({marks})"
        )
        known = {id: (words, text, above) for id, words, text, above in file.execute(query, part)}
        for id in part:
            words, text, above = known.get(id, (0, None, None))
            if text is None and not words:
                result.add("", "")
            elif text is None or above is None or checksum(text, above) != words:
                raise Damaged(f"the full text of node {id} does not match its checksum")
            else:
                result.add(text, above)
    return result


def _faiss() -> Any:
    """Return the module, None where it is not installed."""
    try:
        import faiss as found
    except ImportError:
        return None
    return found


def _codes(matrix: Callable[[Ints], Vectors], rows: Ints, dimension: int) -> NDArray[np.uint8]:
    """Return the codes of the vectors of some rows, as FAISS stores them; nothing without FAISS, or for few vectors.

    :param matrix: returns the vectors of some rows.
    """
    module = _faiss()
    if module is None or len(rows) < 1000:
        return np.zeros(0, np.uint8)
    chosen = np.random.default_rng(20261124).choice(len(rows), min(len(rows), _SAMPLE), replace=False)
    sample = matrix(rows[np.sort(chosen)])
    mean = sample.mean(axis=0)  # vectors of texts share a direction, which would take up the codes
    parts = dimension // 2 if dimension % 2 == 0 else dimension
    index = module.IndexPQFastScan(dimension, parts, 4, module.METRIC_INNER_PRODUCT)
    threads = module.omp_get_max_threads()
    module.omp_set_num_threads(1)  # threads that wait for each other take minutes where other work keeps the cores busy
    try:
        index.train(sample - mean)
        for start in range(0, len(rows), _CODED):
            index.add(matrix(rows[start : start + _CODED]) - mean)
    finally:
        module.omp_set_num_threads(threads)
    return np.asarray(module.serialize_index(index), np.uint8)


# --- searching -----------------------------------------------------------------------------------


class Nearest:
    """The nearest of many vectors.

    :param codes: the codes of :func:`codes_of`; the caller has checked them.
    """

    def __init__(self, codes: NDArray[np.uint8]) -> None:
        self._index = _faiss().deserialize_index(np.array(codes))

    def of(self, vector: Vectors, count: int) -> Ints:
        """Return the numbers of about ``count`` vectors with the greatest inner products, in any order."""
        _, match = self._index.search(vector[None], count)
        return np.asarray(match[0][match[0] >= 0], np.int64)


def _dots(vectors: Vectors, vector: Vectors) -> NDArray[np.float32]:
    """Return the inner products of vectors and one vector, in this thread: BLAS would wake others for so little."""
    return np.asarray(np.einsum("ij,j->i", vectors, vector), np.float32)


class _Kind:
    """The leaves, or the summaries, of a state.

    :param first: the place of the first one among all nodes.
    :param base: of each, its number among those of the file; -1 - i for the fresh one i.
    """

    def __init__(self, file: Arrays, name: str, first: int, base: Ints, fresh: Arrays) -> None:
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
            result = np.zeros(len(base), np.float64)
            result[base >= 0] = scores[base[base >= 0]]
            result[base < 0] = fresh[-1 - base[base < 0]]
            return result

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

    def __init__(self, arrays: Arrays, nodes: NodeColumns, rows: MatrixRows, file: sqlite3.Connection) -> None:
        self._nodes, self._rows = nodes, rows
        self._ids, self._layer, self._document, self._place, self._tokens, self._row = nodes.columns[:6]
        self._leaves = leaves = nodes.leaves
        self._known, base = _matched(arrays, nodes.columns)
        fresh = np.flatnonzero(base < 0)
        stale = len(fresh) + int(np.count_nonzero(self._known < 0))
        self.is_usable = stale <= max(_FEWEST, _FRESH * len(self._ids))
        if not self.is_usable:
            return
        self._fresh = fresh[self._row[fresh] >= 0]
        self._items, codes = arrays["items"], arrays["codes"]
        self._nearest = Nearest(codes) if len(codes) and _faiss() else None
        self._siblings = np.bincount(self._document[:leaves], minlength=len(nodes.names))
        self._mean_tokens = float(self._tokens[:leaves].mean()) if leaves else 1.0
        self._kinds = []
        file_leaves = len(arrays["leaves_sizes"])
        for name, first, part, shift in (
            ("leaves", 0, base[:leaves], 0),
            ("summaries", leaves, base[leaves:], file_leaves),
        ):
            new = np.flatnonzero(part < 0)
            held = words_of(file, self._ids[first + new], name).arrays()
            numbers = part - shift
            numbers[new] = -1 - np.arange(len(new))
            self._kinds.append(_Kind(arrays, name, first, numbers, held))

    def candidates(self, search: NodeSearch, place: str) -> Candidates:
        """Return the nodes that may be the best for a question.

        :param place: names the index in messages.
        :raises BadInput: a document is not in the index.
        :raises Damaged: a part that is needed does not match its checksum.
        """
        terms = terms_of(search.query, self._nodes.languages)
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
        cosine = _dots(self._rows(self._row[chosen]), vector).astype(np.float64)
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
            cosines = (self._rows.all() @ vector)[self._row[np.maximum(self._known[self._items], 0)]]
            items = np.argpartition(-cosines, min(2 * many, len(cosines) - 1))[: 2 * many]
        places = self._known[self._items[items]]
        places = np.concatenate([places[places >= 0], self._fresh])
        cosines = _dots(self._rows(self._row[places]), vector)
        kinds = [places < self._leaves, places >= self._leaves][: 2 if search.summaries else 1]
        return [largest(places[kind], cosines[kind], search.count) for kind in kinds]

    def _of_documents(self, documents: Sequence[str], place: str, summaries: bool) -> Ints:
        """Return the nodes of some documents that have a vector."""
        known = {name: number for number, name in enumerate(self._nodes.names)}
        for name in documents:
            if name not in known:
                raise BadInput(f"{place}: there is no document {name!r}", subject=name)
        last = len(self._ids) if summaries else self._leaves
        inside = np.isin(self._document[:last], [known[name] for name in documents])
        return np.flatnonzero(inside & (self._row[:last] >= 0))


def _matched(arrays: Arrays, columns: Ints) -> tuple[Ints, Ints]:
    """Return the place of each node of the file among all nodes, and the reverse; -1 where it is not there."""
    ids, checksums = arrays["ids"], arrays["checksums"]
    if np.array_equal(ids, columns[0]) and np.array_equal(checksums, columns[7]):
        return np.arange(len(ids)), np.arange(len(ids))
    known, base = np.full(len(ids), -1), np.full(columns.shape[1], -1)
    if len(ids) and columns.shape[1]:
        order = np.argsort(ids)
        at = order[np.minimum(np.searchsorted(ids, columns[0], sorter=order), len(ids) - 1)]
        same = (ids[at] == columns[0]) & (checksums[at] == columns[7])
        base[same] = at[same]
        known[at[same]] = np.flatnonzero(same)
    return known, base


def large_search(
    folder: Path, about: dict[str, Any], file: sqlite3.Connection, nodes: NodeColumns, rows: MatrixRows
) -> LargeSearch | None:
    """Return the search of a state; its file is made where it is missing, damaged or too old.

    :returns: None where the file cannot be written.
    :raises Damaged: the database or the matrix is damaged.
    """
    state = {"generation": about["generation"], "embedder": about["embedder"]}
    for _ in range(2):
        try:
            result, arrays = read_arrays(folder / SEARCH)
        except Damaged:
            result, arrays = {}, {}
        search = LargeSearch(arrays, nodes, rows, file) if result == state else None
        if search is not None and search.is_usable:
            return search
        try:
            make_search(folder, state, file, nodes, rows)
        except OSError:  # a full disk, a read-only folder: the exact way needs no file
            return None
    return None
