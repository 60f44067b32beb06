"""``postgres``: an index in PostgreSQL with pgvector and full-text search, for many writers and several machines.

One schema of the database holds one index. A writer locks the index for one short transaction, so writers wait for each
other and never conflict; readers see one state and never wait. The address (DSN) may hold a password, so no message
shows any part of it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ....core.errors import BadInput, OutsideFailed
from ....core.ports import Vectors
from ....core.text.words import guess_language
from ...nodes import Candidates, Growth, IndexedDocument, Leaf, Node, NodeSearch, NoIndex, Parent, View, check_vectors
from .. import _words
from . import rows as _rows
from . import search as _search
from .pool import Pool, Unanswered, reason_of

_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}")

log = logging.getLogger("prunus.index")


class Engine:
    """An index in a PostgreSQL database.

    :param dsn: the address in libpq's form (``postgresql://user:password@host/database``); never shown.
    :param embedder: identity of the embedder of the vectors; '' opens an index of any embedder.
    :param dimension: dimension of the vectors; 0 opens an index of any dimension.
    :param create: create an index where there is none; needs ``embedder`` and ``dimension``.
    :param wait: seconds to wait for a connection and for another writer; one statement may take ten times as long.
    :param schema: the schema that holds the index.
    :raises MissingExtra: psycopg is not installed.
    :raises BadInput: there is no index, or it has another layout, embedder or dimension.
    :raises OutsideFailed: the server cannot be reached, or has no pgvector.
    """

    name = "postgres"

    def __init__(
        self,
        dsn: str,
        embedder: str = "",
        dimension: int = 0,
        *,
        create: bool = False,
        wait: float = 30.0,
        schema: str = "prunus",
    ) -> None:
        if not _SCHEMA_NAME.fullmatch(schema):
            raise BadInput(
                "the name of a schema is up to 40 of a-z, 0-9 and _, not beginning with 0-9", subject="schema"
            )
        self.location = f"postgres:{schema}"
        self._schema = schema
        self._pool = Pool(dsn, wait, schema)
        self._view: View | None = None
        self._known: dict[tuple[int, bool], _search.KindStatistics] = {}
        try:
            self.embedder, self.dimension = self._open(embedder, dimension, create)
        except BaseException:
            self.close()
            raise

    def _open(self, embedder: str, dimension: int, create: bool) -> tuple[str, int]:
        """Return embedder and dimension of the index, which is created where it is missing and ``create`` is given."""
        about = self._about()
        if create and not about:
            self._create(embedder, dimension)
            about = self._about()
        if not about:
            raise NoIndex(f"{self.location}: there is no index; make one with prunus index add", subject=self.location)
        layout, known, size = about
        if layout != _rows.LAYOUT:
            raise BadInput(
                f"{self.location}: an index of layout {layout}, and this version reads {_rows.LAYOUT}; build it again",
                subject=self.location,
            )
        if (embedder and embedder != known) or (dimension and dimension != size):
            raise BadInput(
                f"{self.location}: its vectors are of {known} ({size} dimensions), not of {embedder or known} "
                f"({dimension or size}); use that embedder, or build it again",
                subject=self.location,
            )
        return known, size

    def close(self) -> None:
        """Close the open connections; the next call opens a new one."""
        self._pool.close()

    # --- documents ---------------------------------------------------------------------------

    def add(self, document: IndexedDocument, leaves: Sequence[Leaf], vectors: Vectors) -> None:
        """Add or replace a document; on return it is durable."""
        self.add_many([(document, leaves, vectors)])

    def add_many(self, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
        """Add or replace documents, all of them or none; on return they are durable."""
        for document, leaves, vectors in documents:
            check_vectors(self.dimension, document.id, len(leaves), vectors)
        latest = {
            _words.clean(document.id): (document, _rows.leaf_rows(leaves, vectors, document.language))
            for document, leaves, vectors in documents
        }
        with self._changing() as (cursor, _):  # other writers wait from here on
            put = []
            for document, rows in latest.values():
                _rows.drop_document(cursor, document.id)
                put.append((_rows.put_document(cursor, document), rows))
            _rows.put_leaves(cursor, put)

    def delete(self, document: str) -> bool:
        """Remove a document with its leaves and the summaries above; return False where the index lacks it."""
        return self.delete_many([document]) == 1

    def delete_many(self, documents: Sequence[str]) -> int:
        """Remove documents in one transaction; return how many the index had."""
        with self._changing() as (cursor, _):
            return sum(_rows.drop_document(cursor, document) for document in documents)

    def documents(self) -> list[IndexedDocument]:
        """Return the records of all documents without their texts, in the order in which they were added."""
        with self._reading() as cursor:
            cursor.execute("SELECT id, title, url, digest, language, metadata FROM documents ORDER BY number")
            return [
                IndexedDocument(id, "", title, url, digest, language, json.loads(metadata))
                for id, title, url, digest, language, metadata in cursor.fetchall()
            ]

    def document(self, id: str) -> IndexedDocument:
        """Return a document with its text and page.

        :raises BadInput: the document is not in the index.
        """
        with self._reading() as cursor:
            result = _rows.document(cursor, id)
        if result is None:
            raise BadInput(f"{self.location}: there is no document {id!r}", subject=id)
        return result

    # --- the tree ----------------------------------------------------------------------------

    def replace_tree(self, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors | None = None) -> list[int]:
        """Replace the tree above the leaves; return the numbers of the parents. See the store ``file``."""
        check_vectors(self.dimension, "tree", len(parents), routing)
        summary_vectors = iter(np.zeros((0, self.dimension), np.float32) if embeddings is None else embeddings)
        check_vectors(
            self.dimension,
            "tree",
            sum(bool(parent.text) for parent in parents),
            embeddings if embeddings is not None else routing[:0],
        )
        with self._changing() as (cursor, _):
            cursor.execute("DELETE FROM nodes WHERE layer > 0")
            cursor.execute("SELECT id FROM nodes")
            known = {parent for (parent,) in cursor.fetchall()}
            documents = _rows.documents_by_id(cursor)
            ids = _rows.numbers(cursor, len(parents))
            rows, pairs = [], []
            for id, parent, mean in zip(ids, parents, routing, strict=True):
                children = [child if child >= 0 else ids[-1 - child] for child in parent.children]
                if not children or not known.issuperset(children):
                    raise BadInput("the index changed while its tree was built; build it again", subject=self.location)
                known.add(id)
                vector = next(summary_vectors) if parent.text else None
                rows.append(
                    (id, parent.layer, documents.get(parent.document), parent.text, parent.tokens, vector, mean)
                )
                pairs += [(id, child) for child in children]
            _rows.put_parents(cursor, rows)
            _rows.put_edges(cursor, pairs)
        return ids

    def grow(self, growth: Growth) -> bool:
        """Change a part of the tree; return False and change nothing where the index is not at ``growth.version``."""
        check_vectors(self.dimension, "growth", len(growth.parents) + len(growth.dirty), growth.routing)
        with self._changing() as (cursor, version):
            if version == growth.version:
                _rows.put_growth(cursor, growth)
            return version == growth.version

    def put_summaries(self, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
        """Write summaries (node, text, tokens) and their embeddings; deleted nodes are skipped."""
        check_vectors(self.dimension, "summaries", len(summaries), vectors)
        rows = []
        for (node, text, tokens), vector in zip(summaries, vectors, strict=True):
            terms, words = _words.vector_of(text, "", guess_language(text))
            text = _words.clean(text)
            rows.append((text, tokens, _rows.vector_text(vector), terms, words, node))
        with self._changing() as (cursor, _):
            cursor.executemany(
                "UPDATE nodes SET text = %s, tokens = %s, own = %s::vector, terms = %s::tsvector, words = %s "
                "WHERE id = %s AND layer > 0",
                rows,
            )

    def unsummarised(self) -> list[tuple[int, int]]:
        """Return (layer, node) of every parent without a summary, lowest layers first."""
        with self._reading() as cursor:
            query = "SELECT layer, id FROM nodes WHERE layer > 0 AND text = '' ORDER BY layer, id"
            return list(cursor.execute(query).fetchall())

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent."""
        result: dict[int, list[int]] = {}
        with self._reading() as cursor:
            for parent, child in cursor.execute("SELECT parent, child FROM edges ORDER BY parent, child").fetchall():
                result.setdefault(parent, []).append(child)
        return result

    # --- retrieval ---------------------------------------------------------------------------

    def get(self, ids: Sequence[int]) -> list[Node]:
        """Return the nodes of these numbers, in their order; missing numbers are left out."""
        with self._reading() as cursor:
            return _rows.nodes(cursor, ids)

    def lexical(self, query: str, layer: str = "leaves") -> dict[int, float]:
        """Return the BM25 score of every node with a term of the query; higher is better.

        :param layer: ``leaves`` or ``summaries``; term statistics are counted for each separately.
        """
        with self._reading(binary=True) as cursor:
            kind = self._statistics(cursor, leaves=layer == "leaves")
            return _search.matches(cursor, _search.term_weights(cursor, query, kind))

    def candidates(self, search: NodeSearch) -> Candidates | None:
        """Return the nodes that may be the best for a question; None where the index is small enough to read it all.

        :raises BadInput: a document is not in the index.
        """
        with self._reading(binary=True) as cursor:
            if self._statistics(cursor, leaves=True).count < _search.LARGE:
                return None
            known = _rows.documents_by_id(cursor, search.documents) if search.documents else {}
            for id in search.documents:
                if id not in known:
                    raise BadInput(f"{self.location}: there is no document {id!r}", subject=id)
            kinds = [self._statistics(cursor, leaves) for leaves in ([True, False] if search.summaries else [True])]
            asked = [_search.term_weights(cursor, search.query, kind) for kind in kinds]
            return _search.candidates(cursor, search, asked, sorted(known.values()))

    def _statistics(self, cursor: Any, leaves: bool) -> _search.KindStatistics:
        """Return the statistics of a kind of nodes; they are kept for a few states."""
        (version,) = cursor.execute("SELECT version FROM about").fetchone()
        known = self._known.get((version, leaves)) or _search.kind_statistics(cursor, leaves, self.dimension)
        self._known = {**dict(list(self._known.items())[-3:]), (version, leaves): known}
        return known

    def version(self) -> int:
        """Return the number of the state, without reading the nodes."""
        with self._reading() as cursor:
            return int(cursor.execute("SELECT version FROM about").fetchone()[0])

    def view(self) -> View:
        """Return all nodes as arrays; cached for each state of the index."""
        with self._reading(binary=True) as cursor:
            (version,) = cursor.execute("SELECT version FROM about").fetchone()
            known = self._view  # read once: another thread may replace it by a newer one
            if known is None or known.version != version:
                known = self._view = _rows.view(cursor, version, self.dimension)
            return known

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, nodes by layer, tokens by layer, embedder, bytes."""
        with self._reading() as cursor:
            query = "SELECT layer, count(*), sum(tokens)::bigint FROM nodes GROUP BY layer ORDER BY layer"
            layers = cursor.execute(query).fetchall()
            (documents,) = cursor.execute("SELECT count(*) FROM documents").fetchone()
        return {
            "folder": self.location,
            "embedder": self.embedder,
            "dimension": self.dimension,
            "documents": documents,
            "nodes": {layer: count for layer, count, _ in layers},
            "tokens": {layer: tokens for layer, _, tokens in layers},
            "unsummarised": len(self.unsummarised()),
            "bytes": self.size(),
        }

    def size(self) -> int:
        """Return the bytes of the tables of the index, with those of deleted rows that are not freed yet."""
        with self._reading() as cursor:
            (size,) = cursor.execute(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace s "
                "ON s.oid = c.relnamespace WHERE s.nspname = %s AND c.relkind = 'r'",
                (self._schema,),
            ).fetchone()
        return int(size or 0)

    def damage(self) -> list[str]:
        """Check every document against its hash; return each damaged one in one line."""
        result: list[str] = []
        with self._reading() as cursor:
            for (id,) in cursor.execute("SELECT id FROM documents ORDER BY number").fetchall():
                try:
                    _rows.document(cursor, id)
                except _rows.DamagedDocument as error:
                    result.append(f"{self.location}: damaged ({error})")
        return result

    def prepare(self) -> None:
        """Make the indexes of the vectors of a large index that has none; others read and write on.

        A failure changes nothing but the speed of questions.
        """
        try:
            with self._connected() as connection, self._pool.patient(connection, _search.BUILDING):
                _search.prepare(connection, self.dimension, self._pool.psycopg.Error)
        except OutsideFailed as error:  # the documents are durable already
            log.warning("%s; vectors have no index yet, and questions compare all of them", error)

    def compact(self) -> None:
        """Do nothing: PostgreSQL's vacuum frees the space of deleted rows."""

    # --- notes -------------------------------------------------------------------------------

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin with ``prefix``."""
        with self._connected() as connection:
            query = 'SELECT name, text FROM notes WHERE starts_with(name, %s) ORDER BY name COLLATE "C"'
            return dict(connection.execute(query, (_words.clean(prefix),)).fetchall())

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, all of them or none; an empty text deletes a note. The version stays as it is."""
        with self._connected() as connection, connection.transaction():
            for name, text in sorted(notes.items()):  # one order for all writers: they wait, and never deadlock
                name, text = _words.clean(name), _words.clean(text)
                if text:
                    connection.execute(
                        "INSERT INTO notes VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
                        (name, text),
                    )
                else:
                    connection.execute("DELETE FROM notes WHERE name = %s", (name,))

    # --- inside ------------------------------------------------------------------------------

    def _about(self) -> tuple[int, str, int] | None:
        with self._reading() as cursor:
            (there,) = cursor.execute("SELECT to_regclass(%s)", (f"{self._schema}.about",)).fetchone()
            result = cursor.execute("SELECT layout, embedder, dimension FROM about").fetchone() if there else None
            return (int(result[0]), str(result[1]), int(result[2])) if result else None

    def _create(self, embedder: str, dimension: int) -> None:
        """Create the tables; of two processes that try at once, the second finds them made."""
        if not embedder or dimension < 1:
            raise BadInput(f"{self.location}: a new index needs an embedder and its dimension", subject=self.location)
        with self._connected() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"prunus {self._schema}",))
            self._administer(cursor, "CREATE EXTENSION IF NOT EXISTS vector", "create the extension vector")
            if not cursor.execute("SELECT to_regnamespace(%s)", (self._schema,)).fetchone()[0]:
                self._administer(cursor, f"CREATE SCHEMA {self._schema}", "create a schema in this database")
            if cursor.execute("SELECT to_regclass(%s)", (f"{self._schema}.about",)).fetchone()[0]:
                return
            for statement in _rows.SCHEMA.strip().split(";\n"):
                cursor.execute(statement.format(dimension=int(dimension), storage=_rows.storage(dimension)))
            cursor.execute("INSERT INTO about VALUES (%s, %s, %s, 0)", (_rows.LAYOUT, embedder, dimension))

    def _administer(self, cursor: Any, statement: str, what: str) -> None:
        """Run a statement that needs a right of its own."""
        try:
            cursor.execute(statement)
        except self._pool.psycopg.errors.InsufficientPrivilege:
            way_out = "let an administrator do it, or grant CREATE on the database"
            raise OutsideFailed(
                f"{self.location}: this user may not {what}; {way_out}", subject=self.location
            ) from None

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Lend a connection; no message shows the address."""
        try:
            with self._pool.lent() as connection:
                yield connection
        except _rows.DamagedDocument as error:
            way_out = "restore the database, or remove the document and add it again"
            raise BadInput(f"{self.location}: damaged ({error}); {way_out}", subject=self.location) from error
        except (self._pool.psycopg.Error, Unanswered) as error:
            raise OutsideFailed(
                f"{self.location}: the database failed ({reason_of(error)})", subject=self.location
            ) from None

    @contextmanager
    def _reading(self, binary: bool = False) -> Iterator[Any]:
        """Hold a read transaction: all reads see one state of the index, whatever others write."""
        with self._connected() as connection, connection.transaction(), connection.cursor(binary=binary) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield cursor

    @contextmanager
    def _changing(self) -> Iterator[tuple[Any, int]]:
        """Hold the write lock; the body's writes become one change, or none where it raises."""
        with self._connected() as connection, connection.transaction(), connection.cursor() as cursor:
            (version,) = cursor.execute("SELECT version FROM about FOR UPDATE").fetchone()
            yield cursor, version
            cursor.execute("UPDATE about SET version = version + 1")
