"""``lance``: an index in tables of LanceDB, in a folder or on object storage, without a server.

A change appends versions to the tables and then replaces one record, which names the versions that belong together:
see ``tables.py``. An index that was killed at any moment holds every acknowledged change. One writer succeeds at a
time; one that was overtaken begins again. Readers see one state and never wait.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numpy as np

from ....core.errors import BadInput, MissingExtra, OutsideFailed
from ....core.installation import pip_install
from ....core.ports import Vectors
from ....core.text.secrets import hide_logins
from ...nodes import (
    EXACT_NODES,
    Candidates,
    Growth,
    IndexedDocument,
    Leaf,
    Node,
    NoIndex,
    Parent,
    Search,
    View,
    check_vectors,
)
from ...seals import Damaged
from .. import _words
from . import postings as _postings
from . import rows as _rows
from . import search as _search
from .tables import (
    COMMITS,
    KINDS,
    LAYOUT,
    LAYOUT_POSTED,
    POSTED,
    TABLES,
    Absent,
    Change,
    Record,
    Snapshot,
    Tables,
    Unreadable,
    again,
)

_COMMITS: Final = 64
"""Fewest changes before the tables are compacted."""
_FEWEST: Final = 1000
"""Fewest rows of a table with indexes of Lance."""
_MANY: Final = 1000
"""Rows that a change of many rows writes."""
_MOST_COMMITS: Final = 1024
"""Most changes before they are, even where they hold few rows beside those that were compacted before."""
_KEEP: Final = 3600.0
"""Seconds for which old versions stay when the tables are compacted: readers may still read them."""
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^?#]+")

T = TypeVar("T")


class Engine:
    """An index in tables of LanceDB.

    :param uri: a folder, or an address of object storage (``s3://bucket/prefix``), whose credentials Lance reads from
        the environment; they are never shown.
    :param embedder: identity of the embedder of the vectors; '' opens an index of any embedder.
    :param dimension: dimension of the vectors; 0 opens an index of any dimension.
    :param create: create an index where there is none; needs ``embedder`` and ``dimension``.
    :param wait: seconds to wait for other writers; object storage that does not answer fails after about twice as long.
    :param exact_nodes: most nodes that a question scores one and all; a larger index is searched approximately.
    :raises MissingExtra: lancedb is not installed.
    :raises BadInput: there is no index, or it is damaged, or it has another layout, embedder or dimension.
    :raises OutsideFailed: the object storage cannot be reached, or the folder cannot be written.
    """

    name = "lance"

    def __init__(
        self,
        uri: str | Path,
        embedder: str = "",
        dimension: int = 0,
        *,
        create: bool = False,
        wait: float = 30.0,
        exact_nodes: int = EXACT_NODES,
    ) -> None:
        try:
            import lancedb
            import pyarrow
            import pyarrow.compute
        except ImportError as error:
            raise MissingExtra(
                f"the store lance needs lancedb ({error}); run: {pip_install('lance')}", subject="lance"
            ) from error
        address = str(uri)
        if "://" not in address:
            address = str(Path(address).expanduser())
        elif not _REMOTE.fullmatch(address):
            raise BadInput("lance: write the address as s3://bucket/prefix", subject="store")
        self.place = f"lance:{hide_logins(address)}"
        self._wait, self._exact_nodes = wait, exact_nodes
        self._tables = Tables((lancedb, pyarrow), address, self.place, wait)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._known: dict[tuple[Any, ...], _search.Statistics] = {}
        self.embedder, self.dimension = self._opened(embedder, dimension, create)

    def _opened(self, embedder: str, dimension: int, create: bool) -> tuple[str, int]:
        """Return embedder and dimension of the index, which is created where it is missing and ``create`` is given."""
        record = self._tables.record()
        if record is None:
            self._check_place()
            if create:
                self._create(embedder, dimension)
                record = self._tables.record()
        if record is None:
            raise NoIndex(f"{self.place}: there is no index; make one with prunus index add", subject=self.place)
        self._check_layout(record)
        known, size = record.embedder, record.dimension
        if (embedder and embedder != known) or (dimension and dimension != size):
            raise BadInput(
                f"{self.place}: its vectors are of {known} ({size} dimensions), not of {embedder or known} "
                f"({dimension or size}); use that embedder, or build it again",
                subject=self.place,
            )
        return known, size

    def _check_layout(self, record: Record) -> None:
        if record.layout not in (LAYOUT, LAYOUT_POSTED):
            raise BadInput(
                f"{self.place}: an index of layout {record.layout}, and this version reads {LAYOUT_POSTED}; build it "
                "again",
                subject=self.place,
            )

    def _check_place(self) -> None:
        """Check that an index may be made here.

        :raises BadInput: the place holds something else, or an index whose record is gone.
        """
        folder = self._tables.folder
        ours = {f"{name}.lance" for name in (*TABLES, *POSTED, COMMITS)}
        try:
            if folder is not None and folder.exists() and not {path.name for path in folder.iterdir()} <= ours:
                raise BadInput(
                    f"{self.place}: there is no index, but other files; name another folder", subject=self.place
                )
        except OSError as error:
            raise BadInput(f"{self.place}: not a folder of an index ({error.strerror})", subject=self.place) from error
        if folder is not None and not (folder / "documents.lance").is_dir():
            return
        try:
            documents = self._tables.latest("documents")
            with self._tables.told("documents"):
                rows = documents.count_rows()
        except Absent:
            return
        if rows:
            raise self._tables.damaged("its record is gone")

    def _create(self, embedder: str, dimension: int) -> None:
        if not embedder or dimension < 1:
            raise BadInput(f"{self.place}: a new index needs an embedder and its dimension", subject=self.place)
        if self._tables.folder is not None:
            try:
                self._tables.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"{self.place}: cannot be created ({error.strerror})", subject=self.place) from error
        none = dict.fromkeys(TABLES, 0)
        record = Record(0, 0, LAYOUT, embedder, dimension, 1, 1, none, none, none)
        self._tables.create(_rows.schemas(self._tables.arrow, dimension), record)

    # --- documents ---------------------------------------------------------------------------

    def add(self, document: IndexedDocument, leaves: Sequence[Leaf], vectors: Vectors) -> None:
        """Add or replace a document; on return it is durable."""
        self.add_many([(document, leaves, vectors)])

    def add_many(self, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        for document, leaves, vectors in documents:
            check_vectors(self.dimension, document.id, len(leaves), vectors)
        last = {_words.clean(document.id): place for place, (document, _, _) in enumerate(documents)}
        kept = [documents[place] for place in sorted(last.values())]

        def put(change: Change) -> None:
            _rows.drop_documents(change, [*last])
            _rows.put_documents(change, kept)

        self._changed(put)

    def delete(self, document: str) -> bool:
        """Remove a document with its leaves and the summaries above; return False where the index lacks it."""
        return self.delete_many([document]) == 1

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents in one change; return how many the index had."""
        return self._changed(lambda change: _rows.drop_documents(change, documents))

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents without their texts, in the order in which they were added."""
        return self._read(_rows.records)

    def document(self, id: str) -> IndexedDocument:
        """Return a document with its text and page.

        :raises BadInput: the document is not in the index.
        """
        found = self._read(lambda snapshot: _rows.document(snapshot, id))
        if found is None:
            raise BadInput(f"{self.place}: there is no document {id!r}", subject=id)
        return found

    # --- the tree ----------------------------------------------------------------------------

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors | None = None) -> list[int]:
        """Replace the tree above the leaves; return the numbers of the parents. See the store ``file``."""
        check_vectors(self.dimension, "tree", len(parents), routing)
        own = np.zeros((0, self.dimension), np.float32) if embeddings is None else embeddings
        check_vectors(self.dimension, "tree", sum(bool(parent.text) for parent in parents), own)

        def put(change: Change) -> list[int]:
            ids = _rows.put_tree(change, parents, routing, own)
            if ids is None:
                raise BadInput("the index changed while its tree was built; build it again", subject=self.place)
            return ids

        return self._changed(put)

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; return False and change nothing where the index is not at ``growth.version``."""
        check_vectors(self.dimension, "growth", len(growth.parents) + len(growth.dirty), growth.routing)

        def put(change: Change) -> bool:
            current = change.record.version == growth.version
            if current:
                _rows.put_growth(change, growth)
            return current

        return self._changed(put)

    def put_summaries(self, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries (node, text, tokens) and their embeddings; deleted nodes are skipped."""
        check_vectors(self.dimension, "summaries", len(summaries), vectors)
        self._changed(lambda change: _rows.put_summaries(change, summaries, vectors))

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every parent without a summary, lowest layers first."""
        rows = self._read(lambda snapshot: snapshot.read("parents", ["layer", "id"], "text = ''").to_pylist())
        return sorted((row["layer"], row["id"]) for row in rows)

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        rows = self._read(lambda snapshot: snapshot.read("parents", ["id", "children"]).to_pylist())
        return {row["id"]: row["children"] for row in sorted(rows, key=lambda row: int(row["id"])) if row["children"]}

    # --- retrieval ---------------------------------------------------------------------------

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order; missing numbers are left out."""

        def found(snapshot: Snapshot) -> list[Node]:
            known = self._known.get(_key(snapshot.record, "leaves"))  # only where a question has read them
            offsets = None if known is None else known.runs.offsets(np.asarray(ids, np.int64))
            return _rows.nodes(snapshot, ids, offsets)

        return self._read(found)

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 score of every node with a term of the query; higher is better.

        :param layer: ``leaves`` or ``summaries``; term statistics are counted for each separately.
        """
        name = "leaves" if layer == "leaves" else "parents"

        def found(snapshot: Snapshot) -> dict[int, float]:
            known = self._statistics(snapshot, name)
            terms = _words.terms_of(query, known.languages)
            ids, scores = _postings.matched(snapshot, name, known.posted, terms, known.count, known.average)
            return dict(zip(ids.tolist(), scores.tolist(), strict=True))

        return self._read(found)

    def candidates(self, search: Search) -> Candidates | None:
        """Return the nodes that may be the best for a question; None where the index has few nodes.

        :raises BadInput: a document is not in the index.
        """

        def found(snapshot: Snapshot) -> Candidates | None:
            if not _is_large(snapshot.record, self._exact_nodes):
                return None
            kinds = ("leaves", "parents") if search.summaries else ("leaves",)
            known = [self._statistics(snapshot, name, sample=True) for name in kinds]
            return _search.candidates(snapshot, search, known, self.place)

        return self._read(found)

    def version(self) -> int:
        """Return the number of the state, without reading the nodes."""
        return self._record().version

    def view(self) -> View:
        """Return all nodes as arrays; cached for each state of the index."""

        def known(snapshot: Snapshot) -> View:
            if self._view is None or self._view.version != snapshot.record.version:
                self._view = _rows.view(snapshot)
            return self._view

        with self._lock:
            return self._read(known)

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes by layer, tokens by layer, embedder, bytes."""
        view = self.view()
        layers = sorted({*view.layer.tolist()})
        return {
            "folder": self.place,
            "embedder": self.embedder,
            "dimension": self.dimension,
            "documents": len(view.names),
            "nodes": {layer: int(np.count_nonzero(view.layer == layer)) for layer in layers},
            "tokens": {layer: int(view.tokens[view.layer == layer].sum()) for layer in layers},
            "unsummarised": len(self.unsummarised()),
            "bytes": self.size(),
        }

    def size(self) -> int:
        """Return the bytes of the files of the index; on object storage, those of the tables of the present state."""
        return self._read(lambda snapshot: self._tables.size(snapshot.record))

    def damage(self) -> list[str]:
        """Check everything that is stored; return each damaged part in one line."""

        def checked(snapshot: Snapshot) -> list[str]:
            found: list[str] = []
            try:
                for one in chain(_rows.each_check(snapshot), _postings.each_check(snapshot)):
                    try:
                        one()
                    except Damaged as error:
                        found.append(f"{self.place}: damaged ({error})")
            except Unreadable as error:
                found.append(str(error).partition(";")[0])
            return found

        return self._read(checked)

    def compact(self) -> None:
        """Write the tables in few files, and remove old versions that no reader may still read."""
        began = time.time()

        def written(change: Change) -> None:
            for name in (*TABLES, *(POSTED if change.posted else ())):
                change.compact(name)
            self._index(change)
            change.mark_compacted()

        self._changed(written, nodes=False)
        # what is older than this change is named by no record any more; younger versions may be another writer's
        self._tables.prune(time.time() - began + _KEEP)
        self._post()

    def _index(self, change: Change) -> None:
        """Make the indexes of Lance anew, if they are due."""
        if _is_index_due(change.record, self._exact_nodes):
            for name in KINDS:
                if len(change.read(name, ["id"], "own IS NOT NULL")) >= _FEWEST:
                    change.cells[name] = _search.index(change, name)
            change.indexed = change.counts["leaves"]

    def _post(self) -> None:
        """Make postings of a large index where nodes lack them, in as many changes as it takes."""
        while _is_large(self._record(), self._exact_nodes) and self._changed(_postings.extend, nodes=False):
            pass

    # --- notes -------------------------------------------------------------------------------

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin with ``prefix``."""
        return self._read(lambda snapshot: _rows.notes(snapshot, _words.clean(prefix)))

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, all of them or none; an empty text deletes a note. The version stays as it is."""
        self._changed(lambda change: _rows.put_notes(change, notes), nodes=False)

    # --- inside ------------------------------------------------------------------------------

    def _record(self) -> Record:
        record = self._tables.record()
        if record is None:
            raise BadInput(f"{self.place}: the index is gone", subject=self.place)
        self._check_layout(record)
        return record

    def _read(self, work: Callable[[Snapshot], T]) -> T:
        """Return what ``work`` reads from the present state, and once more where that has been removed meanwhile."""
        while True:
            record = self._record()
            try:
                return work(Snapshot(self._tables, record))
            except Damaged as error:
                raise self._tables.damaged(str(error)) from error
            except Unreadable:
                if self._record().number == record.number:
                    raise

    def _changed(self, work: Callable[[Change], T], nodes: bool = True) -> T:
        """Make the writes of ``work`` one change, or none where it raises; return what it returns.

        :param nodes: documents or nodes change, not only notes.
        """

        def once() -> tuple[T, Record, int]:
            change = Change(self._tables, self._record())
            try:
                result = work(change)
            except Damaged as error:
                raise self._tables.damaged(str(error)) from error
            before = change.record.written
            record = change.record if change.empty else change.commit(nodes)
            return result, record, record.written - before

        result, record, written = cast("tuple[T, Record, int]", again(once, self._wait, self.place))
        if nodes:
            with suppress(OutsideFailed, Unreadable):  # the change is stored; who reads the damage is told of it
                if _is_compaction_due(record):
                    self.compact()
                elif _is_index_due(record, self._exact_nodes):
                    self._changed(self._index, nodes=False)
                    self._post()
                elif self._may_lack_postings(record, written) and self._read(_postings.is_due):
                    self._post()
        return result

    def _may_lack_postings(self, record: Record, written: int) -> bool:
        """Tell whether to look: after a change of many rows, and once after some of few."""
        often = not record.posted or written >= _MANY or record.number % _COMMITS == 0
        return _is_large(record, self._exact_nodes) and often

    def _statistics(self, snapshot: Snapshot, name: str, sample: bool = False) -> _search.Statistics:
        """Return the statistics of a table; they are kept for a few states."""
        key = _key(snapshot.record, name)
        known = self._known.get(key) or _search.statistics(snapshot, name)
        if sample and known.sample is None:
            known = replace(known, sample=_search.sampled(snapshot, name))
        self._known = {**dict(list(self._known.items())[-3:]), key: known}
        return known


def _key(record: Record, name: str) -> tuple[Any, ...]:
    """Return what statistics of a table depend on."""
    return (name, record.version, record.versions[name], record.versions.get("parts"))


def _is_compaction_due(record: Record) -> bool:
    """Tell whether the tables are to be compacted.

    They are after many changes that wrote as many rows as there were, so that a large table is rarely written again; or
    after very many.
    """
    number, rows = record.compacted
    changes = record.number - number
    return changes >= _MOST_COMMITS or (changes >= _COMMITS and record.written >= rows)


def _is_large(record: Record, exact_nodes: int) -> bool:
    return record.counts["leaves"] + record.counts["parents"] > exact_nodes


def _is_index_due(record: Record, exact_nodes: int) -> bool:
    """Tell whether a large index needs indexes of Lance: it has none, or has grown by half since they were made.

    A question compares its vector with each vector that is not in the index.
    """
    return _is_large(record, exact_nodes) and record.counts["leaves"] >= max(_FEWEST, 1.5 * record.indexed)
