"""Read and write the rows of the index's tables; the caller brings the connection and the transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ....core.text.bm25 import QUERY_NOISE, stem, tokens
from ...nodes import Growth, IndexedDocument, Leaf, Node

_TERMS: Final = 64
"""Most words of a question that are searched, the first ones."""

_SLICE: Final = 500
"""Node numbers in one SQL statement; SQLite limits the parameters of a statement."""


def clean(text: str) -> str:
    """Return text that SQLite accepts: a lone surrogate becomes '?', so that spans stay valid."""
    return text.encode("utf-8", "replace").decode("utf-8")


def meta(file: sqlite3.Connection) -> dict[str, Any]:
    """Return the table ``meta``: embedder, dimension, generation, rows, version, look_again."""
    return dict(file.execute("SELECT name, value FROM meta"))


def put_meta(file: sqlite3.Connection, **values: Any) -> None:
    """Write values of the table ``meta``."""
    file.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


def put_document(file: sqlite3.Connection, document: IndexedDocument) -> int:
    """Write a document's record; return its number."""
    metadata = json.dumps({**document.metadata}, ensure_ascii=False)
    fields = (document.id, document.title, document.url, document.digest, document.language, metadata, document.text)
    row = (*(clean(field) for field in fields), document.source)
    found = file.execute(
        "INSERT INTO documents (id, title, url, digest, language, metadata, text, source) VALUES (?,?,?,?,?,?,?,?)", row
    )
    return int(found.lastrowid or 0)


def put_leaves(file: sqlite3.Connection, number: int, leaves: Sequence[Leaf], row: int, language: str) -> None:
    """Write a document's leaves; their vectors are in the matrix from ``row`` on."""
    for place, leaf in enumerate(leaves):
        text = clean(leaf.text)
        above = json.dumps([clean(line) for line in leaf.above], ensure_ascii=False)
        vector_row = row + place
        values = (0, number, place, leaf.start, leaf.end, text, leaf.tokens, above, vector_row, vector_row)
        node = put_node(file, values)
        put_terms(file, "leaf_terms", node, text, " ".join(leaf.above), language)


def put_node(file: sqlite3.Connection, values: tuple[Any, ...]) -> int:
    """Write a node; return its number."""
    found = file.execute(
        "INSERT INTO nodes (layer, document, place, first, last, text, tokens, above, own, routing) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        values,
    )
    return int(found.lastrowid or 0)


def put_terms(file: sqlite3.Connection, table: str, node: int, text: str, above: str, language: str) -> None:
    """Write the stemmed words of a node into a full-text table."""
    words = " ".join(stem(tokens(clean(text)), language))
    lead = " ".join(stem(tokens(clean(above)), language))
    file.execute(f"INSERT INTO {table} (rowid, text, above) VALUES (?, ?, ?)", (node, words, lead))  # noqa: S608 - a name of ours


def matched(file: sqlite3.Connection, table: str, query: str, languages: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield (node, BM25) of every node with a term of the query, stemmed in every language of the index."""
    words = tokens(clean(query))
    words = [word for word in words if word not in QUERY_NOISE] or words
    words = list(dict.fromkeys(words))[:_TERMS]
    terms = sorted({term for language in languages or [""] for term in stem(words, language)})[: 2 * _TERMS]
    if terms:
        match = " OR ".join('"' + term.replace('"', "") + '"' for term in terms)
        statement = f"SELECT rowid, -bm25({table}, 1.0, 0.5) FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - a name of ours
        yield from file.execute(statement, (match,))


def nodes(file: sqlite3.Connection, ids: Sequence[int]) -> list[Node]:
    """Return the nodes of these numbers, in their order; missing numbers are left out."""
    found: dict[int, Node] = {}
    for part in sliced(ids):
        marks = ",".join("?" * len(part))
        children: dict[int, list[int]] = {}
        for parent, child in file.execute(f"SELECT parent, child FROM edges WHERE parent IN ({marks})", part):  # noqa: S608 - question marks
            children.setdefault(parent, []).append(child)
        query = (
            "SELECT n.id, n.layer, coalesce(d.id, ''), n.place, n.first, n.last, n.text, n.tokens, n.above "  # noqa: S608
            f"FROM nodes n LEFT JOIN documents d ON d.number = n.document WHERE n.id IN ({marks})"
        )
        make: Any = Node  # the columns are in the order of its fields
        for row in file.execute(query, part):
            found[row[0]] = make(*row[:8], tuple(json.loads(row[8])), tuple(children.get(row[0], ())))
    return [found[id] for id in ids if id in found]


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
        file.execute("UPDATE nodes SET text = '', tokens = 0, own = -1 WHERE id = ? AND layer > 0", (id,))
        file.execute("DELETE FROM summary_terms WHERE rowid = ?", (id,))


def drop(file: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete nodes, and their ancestors that have no child left; the other ancestors lose their summaries."""
    above = ancestors(file, ids)
    todo = list(ids)
    while todo:
        parents: set[int] = set()
        for id in todo:
            parents |= {parent for (parent,) in file.execute("SELECT parent FROM edges WHERE child = ?", (id,))}
            file.execute("DELETE FROM edges WHERE child = ? OR parent = ?", (id, id))
            file.execute("DELETE FROM nodes WHERE id = ?", (id,))
            file.execute("DELETE FROM leaf_terms WHERE rowid = ?", (id,))
            file.execute("DELETE FROM summary_terms WHERE rowid = ?", (id,))
        todo = [
            id
            for id in sorted(parents)
            if not file.execute("SELECT 1 FROM edges WHERE parent = ? LIMIT 1", (id,)).fetchone()
        ]
    drop_summaries(file, above)


def sliced(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield numbers in slices that fit one SQL statement."""
    for start in range(0, len(ids), _SLICE):
        yield ids[start : start + _SLICE]


def put_growth(file: sqlite3.Connection, growth: Growth, row: int) -> None:
    """Apply a growth; its means of leaves are in the matrix from ``row`` on."""
    numbers = {id: number for number, id in file.execute("SELECT number, id FROM documents")}
    real: dict[int, int] = {}
    for place, parent in enumerate(growth.parents):
        values = (parent.layer, numbers.get(parent.document), -1, 0, 0, "", 0, "[]", -1, row + place)
        real[-1 - place] = put_node(file, values)
    for id in growth.gone:
        file.execute("DELETE FROM edges WHERE parent = ? OR child = ?", (id, id))
        file.execute("DELETE FROM nodes WHERE id = ?", (id,))
        file.execute("DELETE FROM summary_terms WHERE rowid = ?", (id,))
    for node in growth.children:
        file.execute("DELETE FROM edges WHERE parent = ?", (node,))
    for node, children in growth.children.items():
        pairs = [(real.get(node, node), real.get(child, child)) for child in children]
        file.executemany("INSERT INTO edges VALUES (?, ?)", pairs)
    drop_summaries(file, growth.dirty)
    first = row + len(growth.parents)
    for place, (node, document) in enumerate(zip(growth.dirty, growth.documents, strict=True)):
        row_values = (first + place, numbers.get(document), node)
        file.execute("UPDATE nodes SET routing = ?, document = ? WHERE id = ?", row_values)
