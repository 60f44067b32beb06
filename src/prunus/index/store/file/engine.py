"""``file`` (default): an index in one folder, with a SQLite file and a matrix that is mapped into memory.

    index.sqlite3          documents, nodes, edges, full text, notes, and the checksums of everything
    vectors.<n>.f32        float32 rows, little-endian; the database names the valid generation n
    nodes.bin, search.bin  of a large index: its nodes as arrays, and its search; made from the others where missing

Every change is one transaction: an index that was killed at any moment opens, and holds every acknowledged change.
One process writes at a time and other writers wait; readers see one state and never wait.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from ....core.errors import BadInput
from ....core.ports import Vectors
from ....core.sqlite import checksum, reading, writing
from ....core.text.numbers import bounded_int
from ....core.text.words import guess_language
from ...nodes import (
    EXACT_NODES,
    Candidates,
    Growth,
    IndexedDocument,
    Leaf,
    Node,
    NodeSearch,
    NoIndex,
    Parent,
    View,
    check_vectors,
)
from . import rows as _rows
from .database import (
    FILE,
    WORDS,
    Damaged,
    Database,
    check,
    check_schema,
    check_structure,
    check_words,
    checked_rows,
    meta,
    put_meta,
    seal_words,
)
from .large import LargeSearch, NodeColumns, large_search, node_columns, store_columns, stored_columns
from .vectors import MatrixRows, VectorFiles, sync_folder

_DEAD_ROWS: Final = 1024
"""Fewest dead rows (of deleted nodes) in the matrix before it is compacted."""
_SUMMARIES: Final = WORDS[1:]
"""The full-text table of the summaries."""
_COPIED: Final = 4096
"""Rows that are copied at a time during compaction; bounds the memory."""


class Engine:
    """An index in a folder.

    :param folder: the folder of the index; created where it is missing and ``create`` is given.
    :param embedder: identity of the embedder of the vectors; '' opens an index of any embedder.
    :param dimension: dimension of the vectors; 0 opens an index of any dimension.
    :param create: create an index where there is none; needs ``embedder`` and ``dimension``.
    :param wait: seconds to wait for another writer.
    :param exact_nodes: most nodes that a question scores one and all; a larger index is searched approximately.
    :raises BadInput: there is no index, or it is damaged, or it has another layout, embedder or dimension.
    """

    name = "file"

    def __init__(
        self,
        folder: str | Path,
        embedder: str = "",
        dimension: int = 0,
        *,
        create: bool = False,
        wait: float = 30.0,
        exact_nodes: int = EXACT_NODES,
    ) -> None:
        self.folder = Path(folder).expanduser()
        self.location = str(self.folder)
        self._database = Database(self.folder, wait)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._exact_nodes = exact_nodes
        self._checked_in: dict[str, str] = {}  # each part that has been checked or written here, and in which state
        self._columns: NodeColumns | None = None
        self._search: tuple[str, LargeSearch | None] = ("", None)
        about = self._about()
        if not about and self._database.path.is_file() and any(self.folder.glob("vectors.*.f32")):
            raise self._database.damaged("its tables are gone")
        if create and not about:
            self._create(embedder, dimension)
            about = self._about()
        if not about:
            error_class = NoIndex if self._is_new() else BadInput
            raise error_class(f"{self.folder}: there is no index; make one with prunus index add", subject=str(folder))
        self.embedder = str(about.get("embedder", ""))
        self.dimension = bounded_int(about.get("dimension"), 0, most=2**20)
        self._vectors = VectorFiles(self.folder, self.dimension)
        self._check(embedder, dimension)

    def _is_new(self) -> bool:
        """Tell whether an index may be created here.

        It may where the folder is missing or empty, or holds a file without tables: another process creates the index
        at this moment, or was killed while it did.
        """
        if (self.folder / FILE).is_file():
            return True
        try:
            return not self.folder.exists() or (self.folder.is_dir() and not any(self.folder.iterdir()))
        except OSError:
            return False

    def _about(self) -> dict[str, Any]:
        """Return the table ``meta``; {} where there is no index (or its creator was killed)."""
        if not (self.folder / FILE).is_file():
            return {}
        with self._database.opened() as file:
            (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return meta(file) if tables else {}

    def _create(self, embedder: str, dimension: int) -> None:
        if not embedder or dimension < 1:
            raise BadInput(f"{self.folder}: a new index needs an embedder and its dimension", subject=str(self.folder))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.folder}: cannot be created ({error.strerror})", subject=str(self.folder)) from error
        about: dict[str, str | int] = {"embedder": embedder, "dimension": dimension}
        about |= {"generation": 1, "rows": 0, "version": 0, "look_again": _DEAD_ROWS}
        self._database.create(about)
        sync_folder(self.folder)

    def _check(self, embedder: str, dimension: int) -> None:
        if (embedder and embedder != self.embedder) or (dimension and dimension != self.dimension):
            raise BadInput(
                f"{self.folder}: its vectors are of {self.embedder} ({self.dimension} dimensions), not of "
                f"{embedder or self.embedder} ({dimension or self.dimension}); use that embedder, or build it again",
                subject=str(self.folder),
            )

    # --- documents ---------------------------------------------------------------------------

    def add(self, document: IndexedDocument, leaves: Sequence[Leaf], vectors: Vectors) -> None:
        """Add or replace a document; on return it is durable.

        :param vectors: embeddings of the leaves, float32 [leaves, dimension].
        :raises BadInput: the vectors have another shape.
        """
        self.add_many([(document, leaves, vectors)])

    def add_many(self, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        for document, leaves, vectors in documents:
            check_vectors(self.dimension, document.id, len(leaves), vectors)
        with self._changing() as (file, about):
            row = about["rows"]
            for document, leaves, _ in documents:
                self._drop_document(file, document.id)
                number = _rows.put_document(file, document)
                _rows.put_leaves(file, number, leaves, row, document.language)
                row += len(leaves)
            if row > about["rows"]:
                self._append(file, about, np.concatenate([vectors for _, leaves, vectors in documents if leaves]))

    def delete(self, document: str) -> bool:
        """Remove a document with its leaves and the summaries above; return False where the index lacks it."""
        return self.delete_many([document]) == 1

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents in one transaction; return how many the index had."""
        with self._changing() as (file, _):
            return sum(self._drop_document(file, document) for document in documents)

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents without their texts, in the order in which they were added."""
        with self._reading() as (file, _):
            return [
                IndexedDocument(id, "", title, url, digest, language, _rows.metadata_of(id, metadata))
                for _, id, title, url, digest, language, metadata, *_ in checked_rows(file, "documents")
            ]

    def document(self, id: str) -> IndexedDocument:
        """Return a document with its text and page.

        :raises BadInput: the document is not in the index.
        """
        with self._reading() as (file, _):
            result = _rows.document(file, id)
        if result is None:
            raise BadInput(f"{self.folder}: there is no document {id!r}", subject=id)
        return result

    # --- the tree ----------------------------------------------------------------------------

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors | None = None) -> list[int]:
        """Replace the tree above the leaves; return the numbers of the parents.

        :param routing: the means of the leaves of the parents, float32 [parents, dimension].
        :param embeddings: of the summaries, one for each parent with a text, float32 [texts, dimension].
        :raises BadInput: the index has changed since the tree was built, or vectors have another shape.
        """
        check_vectors(self.dimension, "tree", len(parents), routing)
        with_text = [parent for parent in parents if parent.text]
        embeddings = np.zeros((0, self.dimension), np.float32) if embeddings is None else embeddings
        check_vectors(self.dimension, "tree", len(with_text), embeddings)
        with self._changing(_SUMMARIES) as (file, about):
            file.execute("DELETE FROM edges")
            for (parent,) in file.execute("SELECT id FROM nodes WHERE layer > 0").fetchall():
                _rows.drop_node(file, parent)
            numbers = {id: number for number, id in file.execute("SELECT number, id FROM documents")}
            known = {node for (node,) in file.execute("SELECT id FROM nodes")}
            first = about["rows"]
            after = first + len(parents)
            ids: list[int] = []
            for index, parent in enumerate(parents):
                row = after if parent.text else -1
                after += bool(parent.text)
                number = numbers.get(parent.document)
                text = _rows.clean(parent.text)
                values = (parent.layer, number, -1, 0, 0, text, parent.tokens, _rows.NOT_ABOVE, row, first + index)
                ids.append(_rows.put_node(file, values))
                children = [child if child >= 0 else ids[-1 - child] for child in parent.children]
                if not children or not known.issuperset(children):
                    raise BadInput(
                        "the index changed while its tree was built; build it again", subject=str(self.folder)
                    )
                known.add(ids[-1])
                file.executemany("INSERT INTO edges VALUES (?, ?)", [(ids[-1], child) for child in children])
                if parent.text:
                    _rows.put_terms(file, "summary_terms", ids[-1], parent.text, "", guess_language(parent.text))
                _rows.put_checksum(file, ids[-1])
            self._append(file, about, np.concatenate([routing, embeddings]))
        return ids

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; return False and change nothing where the index is not at ``growth.version``."""
        check_vectors(self.dimension, "growth", len(growth.parents) + len(growth.dirty), growth.routing)
        with self._changing(_SUMMARIES) as (file, about):
            current = bool(about["version"] == growth.version)
            if current:
                _rows.put_growth(file, growth, about["rows"])
                self._append(file, about, growth.routing)
        return current

    def put_summaries(self, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries (node, text, tokens) and their embeddings; deleted nodes are skipped."""
        check_vectors(self.dimension, "summaries", len(summaries), vectors)
        with self._changing(_SUMMARIES) as (file, about):
            for index, (node, text, tokens) in enumerate(summaries):
                _rows.put_summary(file, node, text, tokens, about["rows"] + index)
            self._append(file, about, vectors)

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every parent without a summary, lowest layers first."""
        with self._reading() as (file, _):
            return list(file.execute("SELECT layer, id FROM nodes WHERE layer > 0 AND text = '' ORDER BY layer, id"))

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        result: dict[int, list[int]] = {}
        with self._reading() as (file, about):
            self._once("edges", about, lambda: check_structure(file, "edges"))
            for parent, child in file.execute("SELECT parent, child FROM edges ORDER BY parent, child"):
                result.setdefault(parent, []).append(child)
        return result

    # --- retrieval ---------------------------------------------------------------------------

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order; missing numbers are left out."""
        with self._reading() as (file, about):
            result = _rows.nodes(file, [int(id) for id in ids])
            if self._is_large(about):
                missing = sorted({int(id) for id in ids} - {node.id for node in result})
                if np.isin(missing, self._node_columns(file, about).columns[0]).any():
                    raise Damaged("rows of its nodes are missing")
                if any(node.layer for node in result):
                    self._once("edges", about, lambda: check_structure(file, "edges"))
        return result

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 score of every node with a term of the query; higher is better.

        :param layer: ``leaves`` or ``summaries``; term statistics are counted for each separately.
        """
        table = "leaf_terms" if layer == "leaves" else "summary_terms"
        languages = self.view().languages
        with self._reading() as (file, about):
            self._once("words", about, lambda: check_words(file, about))
            return dict(_rows.matched(file, table, query, languages))

    def candidates(self, search: NodeSearch) -> Candidates | None:
        """Return the nodes that may be the best for a question; None where there are few nodes, or no room for files.

        :raises BadInput: a document is not in the index.
        """
        with self._reading() as (file, about):
            result = self._searched(file, about) if self._is_large(about) else None
            return result.candidates(search, self.location) if result else None

    def version(self) -> int:
        """Return the number of the state, without reading the nodes."""
        with self._database.opened() as file:
            return int(meta(file)["version"])

    def prepare(self) -> None:
        """Make the files of a large index, where they are missing or too old."""
        with self._reading() as (file, about):
            if self._is_large(about):
                self._searched(file, about)

    def view(self) -> View:
        """Return all nodes as arrays; cached for each state of the index."""
        with self._lock, self._database.opened() as file:
            while self._view is None or self._view.version != meta(file)["version"]:
                about = meta(file)
                try:
                    with reading(file):
                        self._view = self._read_view(file)
                except Damaged:  # another process may have compacted the matrix between the two reads
                    if meta(file)["generation"] == about["generation"]:
                        raise
            return self._view

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes by layer, tokens by layer, embedder, bytes."""
        view = self.view()
        layers = sorted({*view.layer.tolist()})
        return {
            "folder": str(self.folder),
            "embedder": self.embedder,
            "dimension": self.dimension,
            "documents": len(self.documents()),
            "nodes": {layer: int(np.count_nonzero(view.layer == layer)) for layer in layers},
            "tokens": {layer: int(view.tokens[view.layer == layer].sum()) for layer in layers},
            "unsummarised": len(self.unsummarised()),
            "bytes": self.size(),
        }

    def size(self) -> int:
        """Return the bytes of the files of the index."""
        total = 0
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # a writer has just removed it
                total += path.stat().st_size if path.is_file() else 0
        return total

    def compact(self) -> None:
        """Write a new matrix without dead rows."""
        with self._database.opened() as file, writing(file):
            about = meta(file)
            self._check_before_writing(file, about)
            self._compact(file, about)
            _end(file)
        self._clear()

    def damage(self) -> list[str]:
        """Check everything that is stored; return each damaged part in one line."""
        result: list[str] = []
        with self._database.opened() as file, reading(file):
            about = meta(file)
            checks: list[Callable[[], object]] = [
                lambda: check_structure(file),
                lambda: check_schema(file, about),
                *(partial(checked_rows, file, table) for table in ("documents", "notes", "nodes")),
                lambda: check_words(file, about),
                lambda: VectorFiles(self.folder, self.dimension).rows(file, about["generation"], about["rows"]).all(),
            ]
            ids = [id for (id,) in file.execute("SELECT id FROM documents ORDER BY number")]
            checks += [partial(_rows.document, file, id) for id in ids]
            checks += [partial(_rows.nodes, file, [id]) for (id,) in file.execute("SELECT id FROM nodes ORDER BY id")]
            for one in checks:
                try:
                    one()
                except Damaged as error:
                    result.append(f"{error.path or self._database.path}: damaged ({error})")
        return result

    # --- notes -------------------------------------------------------------------------------

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin with ``prefix``."""
        result = {}
        with self._reading() as (file, _):
            query = "SELECT name, text, checksum FROM notes WHERE substr(name, 1, ?) = ? ORDER BY name"
            for name, text, known in file.execute(query, (len(prefix), prefix)):
                check(f"note {name}", known, name, text)
                result[name] = text
        return result

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, all of them or none; an empty text deletes a note. The version stays as it is."""
        with self._database.opened() as file, writing(file):
            self._check_before_writing(file, meta(file))
            for name, text in notes.items():
                file.execute("DELETE FROM notes WHERE name = ?", (name,))
                if text:
                    row = (name, _rows.clean(text))
                    file.execute("INSERT INTO notes VALUES (?, ?, ?)", (*row, checksum(*row)))

    # --- inside ------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, words: Sequence[str] = WORDS) -> Iterator[tuple[sqlite3.Connection, dict[str, Any]]]:
        """Hold the write transaction; the body's writes become one change, or none where it raises.

        :param words: the full-text tables that may change.
        """
        with self._database.opened() as file, writing(file):
            about = meta(file)
            self._check_before_writing(file, about)
            yield file, about
            put_meta(file, version=about["version"] + 1)
            compacted = self._compact_if_due(file)
            seal_words(file, words)
            state = _end(file)
        # another process waits for the lock until here, so the state is known to be whole
        self._checked_in |= dict.fromkeys(("tables", "everything", "words", "edges"), state)
        if compacted:
            self._clear()

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, dict[str, Any]]]:
        """Hold a read transaction on tables that have been checked."""
        with self._database.opened() as file, reading(file):
            about = meta(file)
            self._once("tables", about, lambda: self._node_columns(file, about))
            yield file, about

    def _once(self, part: str, about: dict[str, Any], checked: Callable[[], object]) -> None:
        """Check a part, unless it has been checked or written by this object in this state."""
        if self._checked_in.get(part) != about["state"]:
            checked()
            self._checked_in[part] = about["state"]

    def _is_large(self, about: dict[str, Any]) -> bool:
        return bool(about["nodes"] > self._exact_nodes)

    def _node_columns(self, file: sqlite3.Connection, about: dict[str, Any]) -> NodeColumns:
        """Return the nodes of the state that a transaction reads; what they are read from has been checked.

        That is all tables. In a large index whose nodes are in a file, it is this file, and rows are checked when they
        are read.
        """
        result = self._columns
        if result is None or result.state != about["state"]:
            check_schema(file, about)
            checked_rows(file, "notes")
            large = self._is_large(about)
            result = stored_columns(self.folder, about["state"]) if large else None
            if result is None:
                check_structure(file, "documents", "nodes", "edges", "notes")
                self._checked_in["edges"] = about["state"]
                result = node_columns(file, about["state"])
                if large:
                    store_columns(self.folder, result)
            self._columns = result
        return result

    def _searched(self, file: sqlite3.Connection, about: dict[str, Any]) -> LargeSearch | None:
        """Return the search of the state that a transaction reads; None where its file cannot be written."""
        with self._lock:
            if self._search[0] != about["state"]:
                nodes = self._node_columns(file, about)
                result = large_search(self.folder, about, file, nodes, self._matrix(file, about))
                self._search = (about["state"], result) if result else ("", None)
            return self._search[1]

    def _matrix(self, file: sqlite3.Connection, about: dict[str, Any]) -> MatrixRows:
        return self._vectors.rows(file, about["generation"], about["rows"])

    def _check_before_writing(self, file: sqlite3.Connection, about: dict[str, Any]) -> None:
        """Check all that a change could rest on, so that no damage gets the checksum of what is whole."""

        def everything() -> None:
            check_structure(file)
            check_schema(file, about)
            for table in ("documents", "notes", "nodes"):
                checked_rows(file, table)

        self._once("everything", about, everything)
        self._once("words", about, lambda: check_words(file, about))

    def _compact_if_due(self, file: sqlite3.Connection) -> bool:
        """Compact the matrix where most rows are dead; return whether it was compacted.

        The live rows are counted only after the matrix has grown by as much again, because counting reads all nodes.
        """
        about = meta(file)
        if about["rows"] <= about["look_again"]:
            return False
        live = _live(file)
        due = bool(about["rows"] - live > max(_DEAD_ROWS, live))
        if due:
            self._compact(file, about)
        rows = live if due else about["rows"]
        put_meta(file, look_again=rows + max(_DEAD_ROWS, live))
        return due

    def _clear(self) -> None:
        """Delete the matrices of older generations; the transaction keeps others from writing a new one."""
        with self._database.opened() as file, writing(file):
            self._vectors.clear(meta(file)["generation"])

    def _append(self, file: sqlite3.Connection, about: dict[str, Any], vectors: Vectors) -> None:
        if len(vectors):
            self._vectors.write(file, about["generation"], about["rows"], [vectors])
            put_meta(file, rows=about["rows"] + len(vectors))

    def _compact(self, file: sqlite3.Connection, about: dict[str, Any]) -> None:
        used = {row for pair in file.execute("SELECT own, routing FROM nodes") for row in pair if row >= 0}
        rows = np.asarray(sorted(used), np.int64)
        old = self._matrix(file, about).all()
        generation = about["generation"] + 1
        self._vectors.path(generation).unlink(missing_ok=True)  # left by a killed writer
        file.execute("DELETE FROM blocks")
        parts = (np.asarray(old[rows[at : at + _COPIED]]) for at in range(0, len(rows), _COPIED))
        self._vectors.write(file, generation, 0, parts)
        place = {int(row): new for new, row in enumerate(rows)}
        moved = [
            (place.get(own, -1), place.get(routing, -1), id)
            for id, own, routing in file.execute("SELECT id, own, routing FROM nodes").fetchall()
        ]
        file.executemany("UPDATE nodes SET own = ?, routing = ? WHERE id = ?", moved)
        for *_, id in moved:
            _rows.put_checksum(file, id)
        put_meta(file, generation=generation, rows=len(rows), version=about["version"] + 1)

    def _drop_document(self, file: sqlite3.Connection, id: str) -> bool:
        row = file.execute("SELECT number FROM documents WHERE id = ?", (_rows.clean(id),)).fetchone()
        if row is None:
            return False
        leaves = [leaf for (leaf,) in file.execute("SELECT id FROM nodes WHERE document = ? AND layer = 0", row)]
        _rows.drop(file, leaves)
        file.execute("DELETE FROM documents WHERE number = ?", row)
        return True

    def _read_view(self, file: sqlite3.Connection) -> View:
        about = meta(file)
        result = self._node_columns(file, about)
        self._checked_in["tables"] = about["state"]
        matrix = self._matrix(file, about).all()
        make: Any = View  # the columns are in the order of its fields
        return cast(View, make(*result.columns[:7], matrix, result.names, result.languages, about["version"]))


def _end(file: sqlite3.Connection) -> str:
    """Name the state after a change, and return its name."""
    state = uuid.uuid4().hex
    (count,) = file.execute("SELECT count(*) FROM nodes").fetchone()
    put_meta(file, state=state, nodes=count)
    return state


def _live(file: sqlite3.Connection) -> int:
    """Return the number of matrix rows that a node uses."""
    query = "SELECT total(own >= 0) + total(routing >= 0 AND routing <> own) FROM nodes"
    return int(file.execute(query).fetchone()[0])
