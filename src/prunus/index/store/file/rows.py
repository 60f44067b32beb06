"""Read and write the rows of the index's tables; the caller brings the connection and the transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ....core.sqlite import checksum
from ....core.text.bm25 import stem, tokens
from ....core.text.words import guess_language
from ...nodes import Growth, IndexedDocument, Leaf, Node, read_json
from .._words import terms_of
from .database import NODE, RECORD, Damaged, check

NOT_ABOVE: Final = "[]"
"""The headings and leads above a node that is no leaf, as JSON."""

_SLICE: Final = 500
"""Node numbers in one SQL statement; SQLite limits the parameters of a statement."""


def metadata_of(id: str, stored: str) -> dict[str, str]:
    """Return the further fields of a document.

    :raises Damaged: they are none.
    """
    try:
        fields: dict[str, str] = read_json(stored, dict[str, str])
    except ValueError as error:
        raise Damaged(f"document {id}: {error}") from error
    return fields


def clean(text: str) -> str:
    """Return text that SQLite accepts: a lone surrogate becomes '?', so that spans stay valid."""
    return text.encode("utf-8", "replace").decode("utf-8")


def put_document(file: sqlite3.Connection, document: IndexedDocument) -> int:
    """Write a document's record; return its number."""
    metadata = json.dumps({**document.metadata}, ensure_ascii=False)
    fields = (document.id, document.title, document.url, document.digest, document.language, metadata, document.text)
    *record, text = (clean(field) for field in fields)
    body = body_digest(text, document.source)
    result = file.execute(
        "INSERT INTO documents (id, title, url, digest, language, metadata, text, source, body) "
        "VALUES (?,?,?,?,?,?,?,?,?)",
        (*record, text, document.source, body),
    )
    number = int(result.lastrowid or 0)
    file.execute("UPDATE documents SET checksum = ? WHERE number = ?", (checksum(number, *record, body), number))
    return number


def body_digest(text: str, source: bytes) -> bytes:
    """Return the SHA-256 of a document's text and page."""
    return hashlib.sha256(text.encode() + b"\0" + source).digest()


def document(file: sqlite3.Connection, id: str) -> IndexedDocument | None:
    """Return a document with its text and page; None where the index lacks it.

    :raises Damaged: it does not match its checksums.
    """
    query = f"SELECT {RECORD}, text, source, checksum FROM documents WHERE id = ?"  # noqa: S608 - ours
    row = file.execute(query, (clean(id),)).fetchone()
    if row is None:
        return None
    *record, text, source, known = row
    check(f"document {id}", known, *record)
    if body_digest(text, source) != record[-1]:
        raise Damaged(f"document {id} does not match its checksum")
    _, _, title, url, digest, language, metadata, _ = record
    return IndexedDocument(id, text, title, url, digest, language, metadata_of(id, metadata), source)


def put_leaves(file: sqlite3.Connection, number: int, leaves: Sequence[Leaf], row: int, language: str) -> None:
    """Write a document's leaves; their vectors are in the matrix from ``row`` on."""
    for index, leaf in enumerate(leaves):
        text = clean(leaf.text)
        above = json.dumps([clean(line) for line in leaf.above], ensure_ascii=False)
        vector_row = row + index
        values = (0, number, index, leaf.start, leaf.end, text, leaf.tokens, above, vector_row, vector_row)
        node = put_node(file, values)
        put_terms(file, "leaf_terms", node, text, " ".join(leaf.above), language)
        put_checksum(file, node)


def put_node(file: sqlite3.Connection, values: tuple[Any, ...]) -> int:
    """Write a node; return its number. The caller writes its checksum."""
    _, _, _, _, _, text, _, above, _, _ = values
    result = file.execute(
        "INSERT INTO nodes (layer, document, place, first, last, text, tokens, above, own, routing, body) "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (*values, checksum(text, above)),
    )
    return int(result.lastrowid or 0)


def put_summary(file: sqlite3.Connection, id: int, text: str, tokens: int, own: int) -> None:
    """Write the summary of a node, or '' with 0 tokens and -1 to delete it; a leaf or a deleted node is skipped."""
    text = clean(text)
    changed = file.execute(
        "UPDATE nodes SET text = ?, tokens = ?, own = ?, body = ? WHERE id = ? AND layer > 0",
        (text, tokens, own, checksum(text, NOT_ABOVE), id),
    )
    if changed.rowcount:
        drop_terms(file, "summary_terms", id)
        if text:
            put_terms(file, "summary_terms", id, text, "", guess_language(text))
        put_checksum(file, id)


def put_checksum(file: sqlite3.Connection, id: int) -> None:
    """Write the checksum of a node after a change of its columns; what it held before has been checked."""
    row = file.execute(f"SELECT {NODE} FROM nodes WHERE id = ?", (id,)).fetchone()  # noqa: S608 - ours
    file.execute("UPDATE nodes SET checksum = ? WHERE id = ?", (checksum(*row), id))


def put_terms(file: sqlite3.Connection, table: str, node: int, text: str, above: str, language: str) -> None:
    """Write the stemmed words of a node into a full-text table; the caller writes its checksum."""
    words = " ".join(stem(tokens(clean(text)), language))
    lead = " ".join(stem(tokens(clean(above)), language))
    file.execute(f"INSERT INTO {table} (rowid, text, above) VALUES (?, ?, ?)", (node, words, lead))  # noqa: S608 - a name of ours
    file.execute("UPDATE nodes SET words = ? WHERE id = ?", (checksum(words, lead), node))


def drop_terms(file: sqlite3.Connection, table: str, node: int) -> None:
    """Delete the words of a node from a full-text table, which may have none; the caller writes its checksum.

    :raises Damaged: the words are not those that were written; SQLite would leave some of them in its index.
    """
    row = file.execute(f"SELECT text, above FROM {table} WHERE rowid = ?", (node,)).fetchone()  # noqa: S608 - a name of ours
    (known,) = file.execute("SELECT words FROM nodes WHERE id = ?", (node,)).fetchone()
    if row or known:
        check(f"the full text of node {node}", known, *(row or ()))
        file.execute(f"DELETE FROM {table} WHERE rowid = ?", (node,))  # noqa: S608 - a name of ours
        file.execute("UPDATE nodes SET words = 0 WHERE id = ?", (node,))


def matched(file: sqlite3.Connection, table: str, query: str, languages: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield (node, BM25) of every node with a term of the query, stemmed in every language of the index."""
    terms = terms_of(query, languages)
    if terms:
        match = " OR ".join('"' + term.replace('"', "") + '"' for term in terms)
        statement = f"SELECT rowid, -bm25({table}, 1.0, 0.5) FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - a name of ours
        yield from file.execute(statement, (match,))


def nodes(file: sqlite3.Connection, ids: Sequence[int]) -> list[Node]:
    """Return the nodes of these numbers, in their order; missing numbers are left out."""
    result: dict[int, Node] = {}
    for part in sliced(ids):
        marks = ",".join("?" * len(part))
        children: dict[int, list[int]] = {}
        for parent, child in file.execute(f"SELECT parent, child FROM edges WHERE parent IN ({marks})", part):  # noqa: S608 - question marks
            children.setdefault(parent, []).append(child)
        query = (
            f"SELECT {NODE}, text, above, checksum, (SELECT d.id FROM documents d WHERE d.number = nodes.document) "  # noqa: S608
            f"FROM nodes WHERE id IN ({marks})"
        )
        for *row, text, above, known, name in file.execute(query, part):
            id, layer, _, place, first, last, tokens, _, _, body, _ = row
            check(f"node {id}", known, *row)
            check(f"the text of node {id}", body, text, above)
            below = tuple(children.get(id, ()))
            try:
                heads = tuple(read_json(above, list[str]))
            except ValueError as error:
                raise Damaged(f"the text of node {id}: {error}") from error
            result[id] = Node(id, layer, name or "", place, first, last, text, tokens, heads, below)
    return [result[id] for id in ids if id in result]


def ancestors(file: sqlite3.Connection, ids: Sequence[int]) -> list[int]:
    """Return the numbers of all ancestors of some nodes, sorted."""
    seen: set[int] = set()
    todo = list(ids)
    while todo:
        above: set[int] = set()
        for part in sliced(todo):
            marks = ",".join("?" * len(part))
            above |= {parent for (parent,) in file.execute(f"SELECT parent FROM edges WHERE child IN ({marks})", part)}  # noqa: S608
        todo = sorted(above - seen)
        seen |= above
    return sorted(seen)


def drop_summaries(file: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete the summaries of nodes whose leaves have changed: their text, words and vector."""
    for id in ids:
        put_summary(file, id, "", 0, -1)


def drop(file: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete nodes, and their ancestors that have no child left; the other ancestors lose their summaries."""
    above = ancestors(file, ids)
    todo = list(ids)
    while todo:
        parents: set[int] = set()
        for id in todo:
            parents |= {parent for (parent,) in file.execute("SELECT parent FROM edges WHERE child = ?", (id,))}
            file.execute("DELETE FROM edges WHERE child = ? OR parent = ?", (id, id))
            drop_node(file, id)
        todo = [
            id
            for id in sorted(parents)
            if not file.execute("SELECT 1 FROM edges WHERE parent = ? LIMIT 1", (id,)).fetchone()
        ]
    drop_summaries(file, above)


def drop_node(file: sqlite3.Connection, id: int) -> None:
    """Delete a node and its words; its edges stay. A node that is gone is skipped."""
    result = file.execute("SELECT layer FROM nodes WHERE id = ?", (id,)).fetchone()
    if result:
        drop_terms(file, "summary_terms" if result[0] else "leaf_terms", id)
        file.execute("DELETE FROM nodes WHERE id = ?", (id,))


def sliced(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield numbers in slices that fit one SQL statement."""
    for start in range(0, len(ids), _SLICE):
        yield ids[start : start + _SLICE]


def put_growth(file: sqlite3.Connection, growth: Growth, row: int) -> None:
    """Apply a growth; its means of leaves are in the matrix from ``row`` on."""
    numbers = {id: number for number, id in file.execute("SELECT number, id FROM documents")}
    real: dict[int, int] = {}
    for index, parent in enumerate(growth.parents):
        values = (parent.layer, numbers.get(parent.document), -1, 0, 0, "", 0, NOT_ABOVE, -1, row + index)
        real[-1 - index] = id = put_node(file, values)
        put_checksum(file, id)
    for id in growth.gone:
        file.execute("DELETE FROM edges WHERE parent = ? OR child = ?", (id, id))
        drop_node(file, id)
    for node in growth.children:
        file.execute("DELETE FROM edges WHERE parent = ?", (node,))
    for node, children in growth.children.items():
        pairs = [(real.get(node, node), real.get(child, child)) for child in children]
        file.executemany("INSERT INTO edges VALUES (?, ?)", pairs)
    drop_summaries(file, growth.dirty)
    first = row + len(growth.parents)
    for index, (node, document) in enumerate(zip(growth.dirty, growth.documents, strict=True)):
        row_values = (first + index, numbers.get(document), node)
        file.execute("UPDATE nodes SET routing = ?, document = ? WHERE id = ?", row_values)
        put_checksum(file, node)
