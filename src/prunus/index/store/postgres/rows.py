"""The tables of an index in PostgreSQL; the caller brings the connection and the transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ....core.ports import Vectors
from ....core.text.words import guess_language
from ...nodes import Growth, IndexedDocument, Leaf, Node, View
from .. import _words
from .._words import clean

LAYOUT: Final = 4

SCHEMA: Final = """
CREATE TABLE about (layout int NOT NULL, embedder text NOT NULL, dimension int NOT NULL, version bigint NOT NULL);
CREATE TABLE notes (name text PRIMARY KEY, text text NOT NULL);
CREATE TABLE documents (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, title text NOT NULL,
    url text NOT NULL, digest text NOT NULL, language text NOT NULL, metadata text NOT NULL, text text NOT NULL,
    source bytea NOT NULL, sha256 bytea NOT NULL, leaves int NOT NULL DEFAULT 0);
CREATE SEQUENCE node_numbers;
CREATE TABLE nodes (
    id bigint PRIMARY KEY DEFAULT nextval('node_numbers'), layer int NOT NULL, document bigint REFERENCES documents,
    place int NOT NULL, first int NOT NULL, last int NOT NULL, text text NOT NULL, tokens int NOT NULL,
    above text NOT NULL, own vector({dimension}), routing vector({dimension}), terms tsvector NOT NULL,
    words int NOT NULL);
ALTER TABLE nodes ALTER COLUMN own SET STORAGE {storage};
CREATE INDEX nodes_by_document ON nodes (document, layer, place);
CREATE INDEX nodes_by_term ON nodes USING gin (terms);
CREATE TABLE edges (
    parent bigint NOT NULL REFERENCES nodes ON DELETE CASCADE, child bigint NOT NULL REFERENCES nodes ON DELETE CASCADE,
    PRIMARY KEY (parent, child));
CREATE INDEX edges_by_child ON edges (child);
"""

_INSIDE: Final = 1_536
"""Most bytes of an embedding that is kept in its row."""

_NODE: Final = (
    "INSERT INTO nodes (id, layer, document, place, first, last, text, tokens, above, own, routing, terms, words) "
    "VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s::vector,%s::vector,%s::tsvector,%s)"
)

_COPY: Final = (
    "COPY nodes (id, layer, document, place, first, last, text, tokens, above, own, terms, words) "
    "FROM STDIN (FORMAT BINARY)"
)
_COPIED: Final = 1_000
"""Leaves of one statement: each goes into the index of vectors, too, and a statement has a limit of time."""

_TYPES: Final = "int8 int4 int8 int4 int4 int4 text int4 text bytea bytea int4".split()
"""Types of its columns; vectors and tsvectors are given as their bytes."""


def storage(dimension: int) -> str:
    """Return where the table keeps embeddings: in the row where they are short, as a question reads thousands of them.

    A row is kept below two kilobytes, and the texts move out first. Longer embeddings in rows would leave most of a
    page empty.
    """
    return "main" if 4 * dimension <= _INSIDE else "external"


def vector_text(vector: Vectors) -> str:
    """Return a vector as text for pgvector; each number keeps its float32 value."""
    return "[" + ",".join(map(repr, np.asarray(vector, np.float32).tolist())) + "]"


def numbers(cursor: Any, count: int) -> list[int]:
    """Draw numbers for new nodes; a number is never used twice."""
    cursor.execute("SELECT nextval('node_numbers') FROM generate_series(1, %s)", (count,))
    return sorted(number for (number,) in cursor.fetchall())


def put_document(cursor: Any, document: IndexedDocument) -> int:
    """Write a document's record; return its number."""
    metadata = json.dumps({**document.metadata}, ensure_ascii=False)
    fields = (document.id, document.title, document.url, document.digest, document.language, metadata, document.text)
    cursor.execute(
        "INSERT INTO documents (id, title, url, digest, language, metadata, text, source, sha256) "
        "VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s) RETURNING number",
        (*(texts := [clean(field) for field in fields]), document.source, _sha256(*texts, document.source)),
    )
    return int(cursor.fetchone()[0])


class DamagedDocument(Exception):
    """What is stored is not what was written; the text says of what."""


def _sha256(*fields: str | bytes) -> bytes:
    """Return one hash of fields; moving letters from one to the next changes it."""
    total = hashlib.sha256()
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        total.update(len(data).to_bytes(8, "big") + data)
    return total.digest()


def document(cursor: Any, id: str) -> IndexedDocument | None:
    """Return a document with its text and page; None where the index lacks it.

    :raises DamagedDocument: it does not match its checksum.
    """
    columns = "id, title, url, digest, language, metadata, text, source, sha256"
    cursor.execute(f"SELECT {columns} FROM documents WHERE id = %s", (clean(id),))  # noqa: S608 - ours
    row = cursor.fetchone()
    if row is None:
        return None
    *fields, source, sha256 = row
    if bytes(sha256) != _sha256(*fields, bytes(source)):
        raise DamagedDocument(f"document {id}")
    _, title, url, digest, language, metadata, text = fields
    return IndexedDocument(id, text, title, url, digest, language, json.loads(metadata), bytes(source))


def leaf_rows(leaves: Sequence[Leaf], vectors: Vectors, language: str) -> list[tuple[Any, ...]]:
    """Return the rows of a document's leaves without their numbers; it takes time and needs no connection."""
    rows = []
    for index, (leaf, vector) in enumerate(zip(leaves, np.asarray(vectors, ">f4"), strict=True)):
        above = json.dumps([clean(line) for line in leaf.above], ensure_ascii=False)
        terms, words = _words.packed(leaf.text, " ".join(leaf.above), language)
        text = clean(leaf.text)
        own = len(vector).to_bytes(2, "big") + b"\0\0" + vector.tobytes()
        rows.append((index, leaf.start, leaf.end, text, leaf.tokens, above, own, terms, words))
    return rows


def put_leaves(cursor: Any, documents: Sequence[tuple[int, Sequence[tuple[Any, ...]]]]) -> None:
    """Write the leaves of documents: (number of the document, its rows from :func:`leaf_rows`)."""
    leaves = [(number, *row) for number, rows in documents for row in rows]
    ids = iter(numbers(cursor, len(leaves)))
    for start in range(0, len(leaves), _COPIED):
        with cursor.copy(_COPY) as copy:
            copy.set_types(_TYPES)
            for number, *row in leaves[start : start + _COPIED]:
                copy.write_row((next(ids), 0, number, *row))
    cursor.executemany(
        "UPDATE documents SET leaves = %s WHERE number = %s", [(len(rows), number) for number, rows in documents]
    )


def put_parents(cursor: Any, parents: Sequence[tuple[Any, ...]]) -> None:
    """Write parents: (number, layer, number of the document, text, tokens, embedding, mean of the leaves)."""
    rows = []
    for id, layer, document, text, tokens, own, routing in parents:
        terms, words = _words.vector_of(text, "", guess_language(text))
        known = (id, layer, document, -1, 0, 0, clean(text), tokens, "[]")
        vectors = (None if own is None else vector_text(own), vector_text(routing))
        rows.append((*known, *vectors, terms, words))
    cursor.executemany(_NODE, rows)


def put_edges(cursor: Any, pairs: Sequence[tuple[int, int]]) -> None:
    """Write edges: (parent, child)."""
    cursor.executemany("INSERT INTO edges VALUES (%s, %s) ON CONFLICT DO NOTHING", list(pairs))


def documents_by_id(cursor: Any, ids: Sequence[str] = ()) -> dict[str, int]:
    """Return the numbers of documents by id; () is all documents."""
    if ids:
        cursor.execute("SELECT id, number FROM documents WHERE id = ANY(%s)", ([clean(id) for id in ids],))
    else:
        cursor.execute("SELECT id, number FROM documents")
    return dict(cursor.fetchall())


def drop_summaries(cursor: Any, ids: Sequence[int]) -> None:
    """Delete the summaries of nodes whose leaves have changed: their text, words and vector."""
    cursor.execute(
        "UPDATE nodes SET text = '', tokens = 0, own = NULL, terms = '', words = 0 WHERE id = ANY(%s) AND layer > 0",
        (list(ids),),
    )


def drop_document(cursor: Any, id: str) -> bool:
    """Delete a document, its leaves, and ancestors without children; the other ancestors lose their summaries.

    :returns: False where the index lacks the document.
    """
    cursor.execute("SELECT number FROM documents WHERE id = %s", (clean(id),))
    row = cursor.fetchone()
    if row is None:
        return False
    cursor.execute(
        "WITH RECURSIVE up(id) AS (SELECT e.parent FROM edges e JOIN nodes n ON n.id = e.child "
        "WHERE n.document = %s AND n.layer = 0 UNION SELECT e.parent FROM edges e JOIN up ON up.id = e.child) "
        "SELECT id FROM up",
        row,
    )
    above = [parent for (parent,) in cursor.fetchall()]
    cursor.execute("DELETE FROM nodes WHERE document = %s AND layer = 0", row)
    while above:
        cursor.execute(
            "DELETE FROM nodes n WHERE n.id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM edges WHERE parent = n.id) "
            "RETURNING n.id",
            (above,),
        )
        gone = {parent for (parent,) in cursor.fetchall()}
        above = [parent for parent in above if parent not in gone]
        if not gone:
            break
    drop_summaries(cursor, above)
    cursor.execute("UPDATE nodes SET document = NULL WHERE document = %s", row)
    cursor.execute("DELETE FROM documents WHERE number = %s", row)
    return True


def put_growth(cursor: Any, growth: Growth) -> None:
    """Apply a growth."""
    known = documents_by_id(cursor)
    real = {-1 - index: id for index, id in enumerate(numbers(cursor, len(growth.parents)))}
    count = len(growth.parents)
    put_parents(
        cursor,
        [
            (real[-1 - index], parent.layer, known.get(parent.document), "", 0, None, growth.routing[index])
            for index, parent in enumerate(growth.parents)
        ],
    )
    cursor.execute("DELETE FROM nodes WHERE id = ANY(%s) AND layer > 0", (list(growth.gone),))
    cursor.execute("DELETE FROM edges WHERE parent = ANY(%s)", ([node for node in growth.children if node >= 0],))
    pairs = [
        (real.get(node, node), real.get(child, child)) for node, below in growth.children.items() for child in below
    ]
    put_edges(cursor, pairs)
    drop_summaries(cursor, growth.dirty)
    cursor.executemany(
        "UPDATE nodes SET routing = %s::vector, document = %s WHERE id = %s",
        [
            (vector_text(growth.routing[count + index]), known.get(document), node)
            for index, (node, document) in enumerate(zip(growth.dirty, growth.documents, strict=True))
        ],
    )


def nodes(cursor: Any, ids: Sequence[int]) -> list[Node]:
    """Return the nodes of these numbers, in their order; missing numbers are left out."""
    wanted = [int(id) for id in ids]
    children: dict[int, list[int]] = {}
    cursor.execute("SELECT parent, child FROM edges WHERE parent = ANY(%s) ORDER BY parent, child", (wanted,))
    for parent, child in cursor.fetchall():
        children.setdefault(parent, []).append(child)
    cursor.execute(
        "SELECT n.id, n.layer, coalesce(d.id, ''), n.place, n.first, n.last, n.text, n.tokens, n.above "
        "FROM nodes n LEFT JOIN documents d ON d.number = n.document WHERE n.id = ANY(%s)",
        (wanted,),
    )
    make: Any = Node  # the columns are in the order of its fields
    result = {}
    for *row, above in cursor.fetchall():
        result[row[0]] = make(*row, tuple(json.loads(above)), tuple(children.get(row[0], ())))
    return [result[id] for id in wanted if id in result]


def view(cursor: Any, version: int, dimension: int) -> View:
    """Return all nodes as arrays; the cursor must return binary data."""
    cursor.execute("SELECT number, id, language FROM documents ORDER BY number")
    names = cursor.fetchall()
    place = {number: index for index, (number, _, _) in enumerate(names)}
    cursor.execute(
        "SELECT id, layer, document, place, tokens, vector_send(own), vector_send(routing) FROM nodes "
        "ORDER BY layer > 0, CASE layer WHEN 0 THEN document END, CASE layer WHEN 0 THEN place ELSE id END"
    )
    columns: list[tuple[int, ...]] = []
    parts: list[Vectors] = []
    while batch := cursor.fetchmany(2000):
        for id, layer, document, position, tokens, own, routing in batch:
            row = len(parts) if own is not None else -1
            if own is not None:
                parts.append(read_vector(own))
            if routing is not None:
                parts.append(read_vector(routing))
            mean = len(parts) - 1 if routing is not None else row
            columns.append((id, layer, place.get(document, -1), position, tokens, row, mean))
    matrix = np.stack(parts) if parts else np.zeros((0, dimension), np.float32)
    table: Any = np.asarray(columns, np.int64).reshape(len(columns), 7).T
    make: Any = View  # the columns are in the order of its fields
    result: View = make(
        *table, matrix, [id for _, id, _ in names], sorted({language for *_, language in names}), version
    )
    return result


def read_vector(data: bytes) -> Vectors:
    """Return a vector from pgvector's binary format: two int16, then big-endian float32."""
    return np.frombuffer(data, ">f4", offset=4).astype(np.float32)
