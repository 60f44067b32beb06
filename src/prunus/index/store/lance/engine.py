"""``lance``: an index in a table of Lance, in a folder or on object storage, without a server.

Lance searches it: words by its inverted index, vectors by its own index or by comparing all. A change is one commit of
Lance; an index that was killed at any moment holds every acknowledged change. One writer succeeds at a time; one that
was overtaken begins again. Readers see one state and never wait.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....core.errors import BadInput
from ....core.ports import Vectors
from ....core.text.secrets import hide_logins
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
    read_json,
)
from .._words import clean, terms_of
from . import search as _search
from .rows import (
    LEAF,
    NODE,
    PARENT,
    SUMMARY,
    WHOLE,
    WORDS,
    About,
    Change,
    about_row,
    crc_of,
    document_key,
    ints,
    matrix,
    read_document,
    sha256_of,
)
from .table import ABOUT, Absent, LanceTable

LAYOUT: Final = 3
_COMPACTED: Final = 64
"""Changes after which files are joined and the indexes of Lance take in new rows."""
_INDEXED: Final = 50_000
"""Vectors from which on they get an index; fewer are compared one and all."""
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^?#]+")


class Engine:
    """An index in a table of Lance.

    :param uri: a folder, or an address of object storage (``s3://bucket/prefix``), whose credentials Lance reads from
        the environment; they are never shown.
    :param embedder: identity of the embedder of the vectors; '' opens an index of any embedder.
    :param dimension: dimension of the vectors; 0 opens an index of any dimension.
    :param create: create an index where there is none; needs ``embedder`` and ``dimension``.
    :param wait: seconds to wait for other writers; object storage that does not answer fails after about twice as long.
    :param exact_nodes: most nodes that a question scores one and all; a larger index is searched approximately.
    :raises MissingExtra: pylance is not installed.
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
        address = str(uri)
        if "://" not in address:
            address = str(Path(address).expanduser())
        elif not _REMOTE.fullmatch(address):
            raise BadInput("lance: write the address as s3://bucket/prefix", subject="store")
        self.location = f"lance:{hide_logins(address)}"
        self._exact_nodes = exact_nodes
        self._table = LanceTable(address, self.location, wait)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._known: tuple[tuple[int, int], int, dict[bool, _search.Statistics]] = ((-1, 0), 0, {})
        self.embedder, self.dimension = self._opened(embedder, dimension, create)

    def _opened(self, embedder: str, dimension: int, create: bool) -> tuple[str, int]:
        """Return embedder and dimension of the index, which is created where it is missing and ``create`` is given."""
        try:
            about = self._about(self._table.latest())
        except Absent:
            self._check_place()
            if not create:
                raise NoIndex(
                    f"{self.location}: there is no index; make one with prunus index add", subject=self.location
                ) from None
            if not embedder or dimension < 1:
                raise BadInput(
                    f"{self.location}: a new index needs an embedder and its dimension", subject=self.location
                ) from None
            first = {"layout": LAYOUT, "embedder": embedder, "dimension": dimension, "version": 0, "number": 0}
            self._table.create([about_row({**first, "next_document": 1, "next_node": 1})], dimension)
            about = self._about(self._table.latest())
        known, size = about["embedder"], about["dimension"]
        if (embedder and embedder != known) or (dimension and dimension != size):
            raise BadInput(
                f"{self.location}: its vectors are of {known} ({size} dimensions), not of {embedder or known} "
                f"({dimension or size}); use that embedder, or build it again",
                subject=self.location,
            )
        return known, size

    def _check_place(self) -> None:
        """Check that an index may be made here.

        :raises BadInput: the place holds something else, as an index of an older layout.
        """
        folder = self._table.folder
        try:
            there = {path.name for path in folder.iterdir()} if folder is not None and folder.exists() else set()
            if folder is not None and not there:
                folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.location}: not a folder of an index ({error.strerror})", subject=self.location
            ) from error
        if "commits.lance" in there:
            raise BadInput(
                f"{self.location}: an index of an older layout; build it again in another folder", subject=self.location
            )
        if there:
            raise BadInput(
                f"{self.location}: there is no index, but other files; name another folder", subject=self.location
            )

    # --- documents ---------------------------------------------------------------------------

    def add(self, document: IndexedDocument, leaves: Sequence[Leaf], vectors: Vectors) -> None:
        """Add or replace a document; on return it is durable."""
        self.add_many([(document, leaves, vectors)])

    def add_many(self, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        for document, leaves, vectors in documents:
            check_vectors(self.dimension, document.id, len(leaves), vectors)
        latest = {clean(document.id): (document, leaves, vectors) for document, leaves, vectors in documents}

        def put(change: Change) -> None:
            change.drop_documents([*latest])
            for document, leaves, vectors in latest.values():
                change.put_document(document, leaves, vectors)

        self._changed(put)

    def delete(self, document: str) -> bool:
        """Remove a document with its leaves and the summaries above; return False where the index lacks it."""
        return self.delete_many([document]) == 1

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents in one change; return how many the index had."""
        count: int = self._changed(lambda change: change.drop_documents([clean(id) for id in documents]))
        return count

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents without their texts, in the order in which they were added."""
        rows = self._table.rows(self._table.latest(), ["id", "record"], "kind = 'document'")
        return [read_document(self._table, row) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def document(self, id: str) -> IndexedDocument:
        """Return a document with its text and page.

        :raises BadInput: the document is not in the index, or is damaged.
        """
        version = self._table.latest()
        columns = ["key", "record", "text", "source", "sha256"]
        result = self._table.among(version, columns, "key", [document_key(id)], "kind = 'document'").to_pylist()
        if not result:
            raise BadInput(f"{self.location}: there is no document {id!r}", subject=id)
        if sha256_of(result[0]) != result[0]["sha256"]:
            raise self._table.damaged(f"document {id}")
        return read_document(self._table, result[0])

    # --- the tree ----------------------------------------------------------------------------

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors | None = None) -> list[int]:
        """Replace the tree above the leaves; return the numbers of the parents. See the store ``file``."""
        check_vectors(self.dimension, "tree", len(parents), routing)
        own = np.zeros((0, self.dimension), np.float32) if embeddings is None else embeddings
        check_vectors(self.dimension, "tree", sum(bool(parent.text) for parent in parents), own)

        def put(change: Change) -> list[int]:
            known = {row["id"] for row in change.rows(["id"], LEAF)}
            change.drop_nodes([row["id"] for row in change.rows(["id"], PARENT)])
            numbers = change.numbers({parent.document for parent in parents})
            vectors = iter(own)
            ids: list[int] = []
            for parent, mean in zip(parents, routing, strict=True):
                ids.append(change.new_node())
                children = [child if child >= 0 else ids[-1 - child] for child in parent.children]
                if not children or not known.issuperset(children):
                    raise BadInput("the index changed while its tree was built; build it again", subject=self.location)
                known.add(ids[-1])
                own_vector = next(vectors) if parent.text else None
                row: dict[str, Any] = {
                    "id": ids[-1],
                    "layer": parent.layer,
                    "document": numbers.get(parent.document, -1),
                }
                row |= {"children": children, "text": parent.text, "tokens": parent.tokens}
                change.put_parent({**row, "own": own_vector, "routing": mean})
            return ids

        ids: list[int] = self._changed(put)
        return ids

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; return False and change nothing where the index is not at ``growth.version``."""
        check_vectors(self.dimension, "growth", len(growth.parents) + len(growth.dirty), growth.routing)

        def put(change: Change) -> bool:
            if change.about["version"] != growth.version:
                change.cancelled = True
                return False
            change.put_growth(growth)
            return True

        done: bool = self._changed(put)
        return done

    def put_summaries(self, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries (node, text, tokens) and their embeddings; deleted nodes are skipped."""
        check_vectors(self.dimension, "summaries", len(summaries), vectors)
        given = {node: (text, count, at) for at, (node, text, count) in enumerate(summaries)}

        def put(change: Change) -> None:
            for row in change.parents(given):
                text, count, at = given[row["id"]]
                change.put_parent({**row, "text": text, "tokens": count, "own": vectors[at]})

        self._changed(put)

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every parent without a summary, lowest layers first."""
        rows = self._table.rows(self._table.latest(), ["layer", "id"], f"{PARENT} AND text = ''")
        return sorted((row["layer"], row["id"]) for row in rows)

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        rows = self._table.rows(self._table.latest(), ["id", "children"], PARENT)
        return {row["id"]: row["children"] for row in sorted(rows, key=lambda row: int(row["id"])) if row["children"]}

    # --- retrieval ---------------------------------------------------------------------------

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order; missing numbers are left out."""
        version, wanted = self._table.latest(), [int(id) for id in ids]
        rows = self._table.among(version, NODE, "id", wanted, "kind = 'node'").to_pylist()
        for row in rows:
            if row["crc"] != crc_of(row):
                raise self._table.damaged(f"the text of node {row['id']}")
        numbers = sorted({row["document"] for row in rows if row["document"] >= 0})
        documents = self._table.among(version, ["id", "key"], "id", numbers, "kind = 'document'").to_pylist()
        names = {row["id"]: row["key"].partition(" ")[2] for row in documents}
        result = {}
        for row in rows:
            try:
                above = tuple(read_json(row["above"], list[str]))
            except ValueError as error:
                raise self._table.damaged(f"the text of node {row['id']}") from error
            result[row["id"]] = Node(
                row["id"], row["layer"], names.get(row["document"], ""), row["place"], row["first"], row["last"],
                row["text"], row["tokens"], above, tuple(row["children"] or ()),
            )  # fmt: skip
        return [result[id] for id in wanted if id in result]

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 score of every node with a term of the query; higher is better.

        :param layer: ``leaves`` or ``summaries``; term statistics are counted for each separately.
        """
        version, leaves = self._table.latest(), layer == "leaves"
        terms = terms_of(query, self._languages(version))
        return _search.matches(self._table, version, LEAF if leaves else SUMMARY, terms)

    def candidates(self, search: NodeSearch) -> Candidates | None:
        """Return the nodes that may be the best for a question; None where the index has few nodes.

        :raises BadInput: a document is not in the index.
        """
        version = self._table.latest()
        key = (int(version.version), self.dimension)
        if self._known[0] != key:
            self._known = (key, int(version.count_rows("kind = 'node'")), {})
        _, nodes, kept = self._known
        if nodes <= self._exact_nodes:
            return None
        kinds = {}
        for leaves in [True, False] if search.summaries else [True]:
            if leaves not in kept:
                where = LEAF if leaves else SUMMARY
                kept[leaves] = _search.statistics(self._table, version, where, self._languages(version))
            kinds[leaves] = kept[leaves]
        return _search.candidates(self._table, version, search, kinds, self.location)

    def version(self) -> int:
        """Return the number of the state, without reading the nodes."""
        return int(self._about(self._table.latest())["version"])

    def view(self) -> View:
        """Return all nodes as arrays; cached for each state of the index."""
        with self._lock:
            version = self._table.latest()
            number = int(self._about(version)["version"])
            if self._view is None or self._view.version != number:
                self._view = self._read_view(version, number)
            return self._view

    def _read_view(self, version: Any, number: int) -> View:
        documents = sorted(
            self._table.rows(version, ["id", "record"], "kind = 'document'"), key=lambda row: int(row["id"])
        )
        index = {row["id"]: at for at, row in enumerate(documents)}
        records = [read_document(self._table, row) for row in documents]
        table = self._table.read(
            version, ["id", "layer", "document", "place", "tokens", "own", "routing"], "kind = 'node'"
        )
        columns = [ints(table, name) for name in ("id", "layer", "document", "place", "tokens")]
        columns[2] = np.asarray([index.get(number, -1) for number in columns[2].tolist()], np.int64)
        order = np.lexsort((columns[0], columns[3], np.where(columns[1] == 0, columns[2], 0), columns[1] > 0))
        own, with_own = matrix(table.column("own"), self.dimension)
        means, with_mean = matrix(table.column("routing"), self.dimension)
        rows = np.full(table.num_rows, -1, np.int64)
        rows[with_own] = np.arange(len(own))
        routing = rows.copy()
        routing[with_mean] = len(own) + np.arange(len(means))
        ordered = [np.asarray(column[order], np.int64) for column in (*columns, rows, routing)]
        languages = sorted({record.language for record in records})
        make: Any = View  # the columns are in the order of its fields
        result: View = make(
            *ordered, np.concatenate([own, means]), [record.id for record in records], languages, number
        )
        return result

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes by layer, tokens by layer, embedder, bytes."""
        version = self._table.latest()
        table = self._table.read(version, ["layer", "tokens"], "kind = 'node'")
        layer, count = ints(table, "layer"), ints(table, "tokens")
        layers = sorted({*layer.tolist()})
        return {
            "folder": self.location,
            "embedder": self.embedder,
            "dimension": self.dimension,
            "documents": len(self._table.rows(version, ["id"], "kind = 'document'")),
            "nodes": {each: int((layer == each).sum()) for each in layers},
            "tokens": {each: int(count[layer == each].sum()) for each in layers},
            "unsummarised": len(self.unsummarised()),
            "bytes": self.size(),
        }

    def size(self) -> int:
        """Return the bytes of the files of the index; on object storage, those of the present state."""
        return self._table.size()

    def damage(self) -> list[str]:
        """Read everything that is stored; return each damaged part in one line."""
        result: list[str] = []
        try:
            for row in self._table.rows(self._table.latest(), [*WHOLE, *WORDS], "kind = 'node'"):
                if row["crc"] != crc_of(row):
                    result.append(f"{self.location}: damaged (the text of node {row['id']})")
            for document in self.documents():
                try:
                    self.document(document.id)
                except BadInput as error:
                    result.append(str(error).partition(";")[0])
        except BadInput as error:
            result.append(str(error).partition(";")[0])
        return result

    def compact(self) -> None:
        """Write few large files instead of many, let Lance's indexes take in new rows, and remove old versions."""
        self._table.compact()

    def prepare(self) -> None:
        """Let Lance's indexes take in what was added; make that of the vectors of a large index that has none."""
        self._table.index(_INDEXED, LEAF)

    # --- notes -------------------------------------------------------------------------------

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin with ``prefix``, sorted by name."""
        rows = self._table.rows(self._table.latest(), ["key", "record"], "kind = 'note'")
        named = {row["key"].partition(" ")[2]: row["record"] for row in rows}
        return {name: named[name] for name in sorted(named) if name.startswith(clean(prefix))}

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, all of them or none; an empty text deletes a note. The version stays as it is."""

        def put(change: Change) -> None:
            for name, text in notes.items():
                change.put_note(clean(name), clean(text))

        self._changed(put, nodes=False)

    # --- inside ------------------------------------------------------------------------------

    def _about(self, version: Any) -> About:
        rows = self._table.rows(version, ["record"], f"key = '{ABOUT}'")
        try:
            layout = read_json(rows[0]["record"], dict[str, Any])["layout"]
            if layout == LAYOUT:
                about: About = read_json(rows[0]["record"], About)
                if getattr(version.schema.field("own").type, "list_size", 0) != about["dimension"]:
                    raise ValueError("vectors of another dimension")
                return about
        except (IndexError, ValueError, KeyError) as error:
            raise self._table.damaged("its first row") from error
        raise BadInput(
            f"{self.location}: an index of layout {layout!r:.20}, and this version reads {LAYOUT}; build it again",
            subject=self.location,
        )

    def _changed(self, work: Any, nodes: bool = True) -> Any:
        """Make the writes of ``work`` one change, or none where it raises; return what it returns.

        :param nodes: documents or nodes change, not only notes.
        """

        def once(version: Any) -> tuple[Any, int]:
            change = Change(self._table, version, self._about(version), self.dimension)
            result = work(change)
            if not change.cancelled:
                change.commit(nodes)
            return result, change.about["number"]

        result, number = self._table.changed(once)
        if number and number % _COMPACTED == 0:
            self.compact()
        return result

    def _languages(self, version: Any) -> list[str]:
        rows = self._table.rows(version, ["id", "record"], "kind = 'document'")
        return sorted({read_document(self._table, row).language for row in rows})
