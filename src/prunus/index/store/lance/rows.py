"""The rows of an index in LanceDB: their columns, their checksums, and what a change does to them.

A row has two checksums: ``body`` covers the text, ``seal`` the other columns, the vectors and ``body``. ``lexis``
covers the stemmed words. Texts and words are checked when they are read, all other columns when the arrays of a state
are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....core.ports import Ints, Vectors
from ....core.seal import seal
from ...nodes import Growth, IndexedDocument, Leaf, Node, Parent, View
from ...seals import Damaged, check
from .._words import clean
from .tables import Change, Snapshot, among, rows_among
from .words import COLUMNS, Rows, lexis

_CHECKED: Final = 1000
"""Nodes that are looked at together in the search for damage."""

NONE: Final = -1
"""The number of the document of a node above several documents."""

RECORD: Final = ("number", "id", "title", "url", "digest", "language", "metadata", "body")
"""The columns of a document under its seal."""
_LEAF: Final = ("id", "document", "place", "first", "last", "tokens", "words", "lexis", "body")
"""The columns of a leaf under its seal, beside its vector."""
_PARENT: Final = ("id", "layer", "document", "tokens", "words", "lexis", "body")
"""The columns of a parent under its seal, beside its children and its vectors."""
_WHOLE: Final = (
    "id",
    "layer",
    "document",
    "children",
    "text",
    "tokens",
    "own",
    "routing",
    "words",
    "lexis",
    "body",
    "seal",
)


def schemas(arrow: Any, dimension: int) -> dict[str, Any]:
    """Return the columns of the tables.

    :param arrow: the module ``pyarrow``.
    """
    whole, text, large = arrow.int64(), arrow.string(), arrow.large_string()
    vector = arrow.list_(arrow.float32(), dimension)
    sealed = [("words", whole), ("lexis", whole), ("body", whole), ("seal", whole)]
    lexis = [("terms", arrow.list_(text)), ("counts", arrow.list_(arrow.float32()))]
    return {
        "documents": arrow.schema(
            [("number", whole), *((name, text) for name in RECORD[1:-1]), ("text", large),
             ("source", arrow.large_binary()), ("body", whole), ("seal", whole)]
        ),
        "leaves": arrow.schema(
            [("id", whole), ("document", whole), ("place", whole), ("first", whole), ("last", whole), ("text", text),
             ("tokens", whole), ("above", text), ("own", vector), *lexis, *sealed]
        ),
        "parents": arrow.schema(
            [("id", whole), ("layer", whole), ("document", whole), ("children", arrow.list_(whole)), ("text", text),
             ("tokens", whole), ("own", vector), ("routing", vector), *lexis, *sealed]
        ),
        "notes": arrow.schema([("name", text), ("text", text), ("seal", whole)]),
    }  # fmt: skip


# --- writing -----------------------------------------------------------------------------------


def put_documents(change: Change, documents: Sequence[tuple[IndexedDocument, Sequence[Leaf], Vectors]]) -> None:
    """Write documents with their leaves."""
    records: list[dict[str, Any]] = []
    leaves: list[dict[str, Any]] = []
    for document, chunks, vectors in documents:
        number, change.next_document = change.next_document, change.next_document + 1
        records.append(_document_row(number, document))
        for place, (leaf, vector) in enumerate(zip(chunks, vectors, strict=True)):
            leaves.append(_leaf_row(change.next_node, number, place, leaf, vector, document.language))
            change.next_node += 1
    _add(change, "documents", records)
    _add(change, "leaves", leaves)


def _document_row(number: int, document: IndexedDocument) -> dict[str, Any]:
    metadata = json.dumps({**document.metadata}, ensure_ascii=False)
    fields = (document.id, document.title, document.url, document.digest, document.language, metadata, document.text)
    *record, text = (clean(field) for field in fields)
    body = seal(text, document.source)
    row: dict[str, Any] = dict(zip(RECORD, (number, *record, body), strict=True))
    return {**row, "text": text, "source": document.source, "seal": seal(*row.values())}


def _leaf_row(id: int, number: int, place: int, leaf: Leaf, vector: Vectors, language: str) -> dict[str, Any]:
    text, above = clean(leaf.text), json.dumps([clean(line) for line in leaf.above], ensure_ascii=False)
    row: dict[str, Any]
    row = {"id": id, "document": number, "place": place, "first": leaf.start, "last": leaf.end, "text": text,
           "tokens": leaf.tokens, "above": above, "own": np.asarray(vector, np.float32)}  # fmt: skip
    row |= lexis(text, " ".join(leaf.above), language)
    row["body"] = seal(text, above)
    row["seal"] = _leaf_seal([row[name] for name in _LEAF], row["own"])
    return row


def _parent_row(known: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """Return the row of a parent: its columns, some of them replaced, with its words and checksums."""
    row = {**known, **others}
    row["children"] = sorted({*row["children"]})
    row |= lexis(row["text"], "", "")
    row["body"] = seal(row["text"], "[]")
    row["seal"] = _parent_seal([row[name] for name in _PARENT], row["children"], row["own"], row["routing"])
    return row


def _add(change: Change, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    arrow = change.tables.arrow
    columns = []
    schema = schemas(arrow, change.record.dimension)[name]
    for column in schema:
        values = [row[column.name] for row in rows]
        if column.name in ("own", "routing"):
            columns.append(_vectors(arrow, values, change.record.dimension))
        else:
            columns.append(arrow.array(values, column.type))
    change.add(name, arrow.Table.from_arrays(columns, schema=schema))


def _vectors(arrow: Any, vectors: Sequence[Vectors | None], dimension: int) -> Any:
    """Return vectors as a column; None is a null."""
    matrix = np.zeros((len(vectors), dimension), np.float32)
    for place, vector in enumerate(vectors):
        if vector is not None:
            matrix[place] = vector
    missing = np.asarray([vector is None for vector in vectors])
    return arrow.FixedSizeListArray.from_arrays(
        arrow.array(matrix.ravel()), dimension, mask=arrow.array(missing) if missing.any() else None
    )


def drop_documents(change: Change, ids: Sequence[str]) -> int:
    """Delete documents, their leaves, and ancestors without children; the other ancestors lose their summaries.

    :returns: how many of the documents the index had.
    """
    found = rows_among(change, "documents", ["number"], "id", [clean(id) for id in dict.fromkeys(ids)])
    numbers = [row["number"] for row in found]
    if not numbers:
        return 0
    gone = {row["id"] for row in rows_among(change, "leaves", ["id"], "document", numbers)}
    change.drop("leaves", "document", numbers)
    change.drop("documents", "number", numbers)
    light = change.read("parents", ["id", "layer", "document", "children"]).to_pylist()
    touched: set[int] = set()
    left: dict[int, list[int]] = {}
    for row in sorted(light, key=lambda row: (row["layer"], row["id"])):  # children before their parents
        children = [child for child in row["children"] if child not in gone]
        if len(children) < len(row["children"]) or touched.intersection(children):
            if children:
                touched.add(row["id"])
                left[row["id"]] = children
            else:
                gone.add(row["id"])
    others = [row["id"] for row in light if row["document"] in set(numbers) and row["id"] not in gone | touched]
    rows = [
        _without_summary(
            row,
            children=left.get(row["id"], row["children"]),
            document=NONE if row["document"] in set(numbers) else row["document"],
        )
        if row["id"] in touched
        else _parent_row(row, document=NONE)
        for row in whole_parents(change, [*touched, *others])
    ]
    changed = {row["id"] for row in light} & (gone | touched | set(others))
    change.drop("parents", "id", sorted(changed))
    _add(change, "parents", rows)
    return len(numbers)


def _without_summary(row: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return _parent_row(row, text="", tokens=0, own=None, **others)


def whole_parents(state: Snapshot | Change, ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the whole rows of parents.

    :raises Damaged: one does not match its checksums, which a new checksum would hide.
    """
    found = rows_among(state, "parents", _WHOLE, "id", sorted(ids))
    for row in found:
        for name in ("own", "routing"):
            row[name] = None if row[name] is None else np.asarray(row[name], np.float32)
        check(f"the text of node {row['id']}", row["body"], row["text"], "[]")
        if row["seal"] != _parent_seal([row[name] for name in _PARENT], row["children"], row["own"], row["routing"]):
            raise Damaged(f"node {row['id']} does not match its checksum")
    return found


def put_tree(change: Change, parents: Sequence[Parent], routing: Vectors, embeddings: Vectors) -> list[int] | None:
    """Replace the tree; return the numbers of the parents, or None where a child is not in the index."""
    change.clear("parents")
    numbers = _numbers(change, {parent.document for parent in parents})
    known = {*change.read("leaves", ["id"]).column("id").to_pylist()}
    vectors = iter(embeddings)
    ids: list[int] = []
    rows = []
    for parent, mean in zip(parents, routing, strict=True):
        ids.append(change.next_node)
        change.next_node += 1
        children = [child if child >= 0 else ids[-1 - child] for child in parent.children]
        if not children or not known.issuperset(children):
            return None
        known.add(ids[-1])
        own = np.asarray(next(vectors), np.float32) if parent.text else None
        rows.append(
            _parent_row(
                {"id": ids[-1], "layer": parent.layer, "document": numbers.get(parent.document, NONE)},
                children=children, text=clean(parent.text), tokens=parent.tokens, own=own, routing=_float32(mean),
            )
        )  # fmt: skip
    _add(change, "parents", rows)
    return ids


def put_growth(change: Change, growth: Growth) -> None:
    """Apply a growth."""
    numbers = _numbers(change, {*growth.documents, *(parent.document for parent in growth.parents)})
    real = {-1 - place: change.next_node + place for place in range(len(growth.parents))}
    change.next_node += len(growth.parents)
    children = {
        real.get(node, node): [real.get(child, child) for child in below] for node, below in growth.children.items()
    }
    gone = set(growth.gone)
    light = change.read("parents", ["id", "children"]).to_pylist()
    below_gone = {row["id"]: [child for child in row["children"] if child not in gone] for row in light
                  if gone.intersection(row["children"])}  # fmt: skip
    children = {**below_gone, **children}
    count = len(growth.parents)
    dirty = {
        node: (_float32(growth.routing[count + place]), numbers.get(document, NONE))
        for place, (node, document) in enumerate(zip(growth.dirty, growth.documents, strict=True))
    }
    rows = []
    for row in whole_parents(change, sorted(({*children} | {*dirty}) - gone - {*real.values()})):
        below = children.get(row["id"], row["children"])
        if row["id"] in dirty:
            mean, number = dirty[row["id"]]
            rows.append(_without_summary(row, children=below, routing=mean, document=number))
        else:
            rows.append(_parent_row(row, children=below))
    changed = [row["id"] for row in rows]
    for place, parent in enumerate(growth.parents):
        id = real[-1 - place]
        known = {"id": id, "layer": parent.layer, "document": numbers.get(parent.document, NONE)}
        rows.append(_without_summary(known, children=children.get(id, []), routing=_float32(growth.routing[place])))
    change.drop("parents", "id", sorted({*changed} | gone))
    _add(change, "parents", rows)


def put_summaries(change: Change, summaries: Sequence[tuple[int, str, int]], vectors: Vectors) -> None:
    """Write summaries (node, text, tokens) with their embeddings; deleted nodes are skipped."""
    given = {
        node: (clean(text), count, _float32(vector))
        for (node, text, count), vector in zip(summaries, vectors, strict=True)
    }
    rows = []
    for row in whole_parents(change, [*given]):
        text, count, vector = given[row["id"]]
        rows.append(_parent_row(row, text=text, tokens=count, own=vector))
    change.drop("parents", "id", [row["id"] for row in rows])
    _add(change, "parents", rows)


def put_notes(change: Change, notes: Mapping[str, str]) -> None:
    """Write notes; an empty text deletes a note."""
    cleaned = {clean(name): clean(text) for name, text in notes.items()}
    change.drop("notes", "name", [*cleaned])
    rows = [{"name": name, "text": text, "seal": seal(name, text)} for name, text in cleaned.items() if text]
    _add(change, "notes", rows)


def _numbers(change: Change, ids: set[str]) -> dict[str, int]:
    """Return the numbers of documents."""
    wanted = [clean(id) for id in ids if id]
    return {row["id"]: row["number"] for row in rows_among(change, "documents", ["id", "number"], "id", wanted)}


def _float32(vector: Vectors) -> Vectors:
    return np.asarray(vector, np.float32)


# --- checksums ---------------------------------------------------------------------------------


def _crc(vector: Vectors | None) -> int:
    return NONE if vector is None else zlib.crc32(np.ascontiguousarray(vector, "<f4").tobytes())


def _leaf_seal(fields: Sequence[int], own: Vectors) -> int:
    return seal(*fields, _crc(own))


def _parent_seal(fields: Sequence[int], children: Sequence[int], own: Vectors | None, routing: Vectors) -> int:
    return seal(*fields, *children, _crc(own), _crc(routing))


def check_sum(snapshot: Snapshot, name: str, sealed: Sequence[int]) -> None:
    """Check that no row of a table is missing.

    :raises Damaged: one is.
    """
    if (len(sealed), sum(sealed)) != (snapshot.record.counts[name], snapshot.record.seals[name]):
        raise Damaged(f"rows of the table {name} are missing or changed")


# --- reading -----------------------------------------------------------------------------------


def records(snapshot: Snapshot) -> list[IndexedDocument]:
    """Return the records of all documents without their texts, in the order of their numbers."""
    found = snapshot.read("documents", [*RECORD, "seal"]).to_pylist()
    check_sum(snapshot, "documents", [row["seal"] for row in found])
    return [_record(row) for row in sorted(found, key=lambda row: int(row["number"]))]


def _record(row: Mapping[str, Any], text: str = "", source: bytes = b"") -> IndexedDocument:
    check(f"document {row['id']}", row["seal"], *(row[name] for name in RECORD))
    title, url, digest, language = (row[name] for name in ("title", "url", "digest", "language"))
    return IndexedDocument(row["id"], text, title, url, digest, language, json.loads(row["metadata"]), source)


def document(snapshot: Snapshot, id: str) -> IndexedDocument | None:
    """Return a document with its text and page; None where the index lacks it."""
    for row in rows_among(snapshot, "documents", [*RECORD, "text", "source", "seal"], "id", [clean(id)]):
        check(f"document {row['id']}", row["body"], row["text"], row["source"])
        return _record(row, row["text"], row["source"])
    return None


def nodes(snapshot: Snapshot, ids: Sequence[int], offsets: Ints | None = None) -> list[Node]:
    """Return the nodes of these numbers, in their order; missing numbers are left out.

    :param offsets: of the rows of the leaves among them, by which they are read faster; None where they are unknown.
    """
    wanted = [int(id) for id in ids]
    of_leaf = ["id", "document", "place", "first", "last", "text", "tokens", "above", "body"]
    of_parent = ["id", "layer", "document", "children", "text", "tokens", "body"]
    if offsets is None:
        rows = rows_among(snapshot, "leaves", of_leaf, "id", wanted)
    else:
        rows = snapshot.take("leaves", of_leaf, offsets).to_pylist()
    found_leaves = {row["id"] for row in rows}
    rows += rows_among(snapshot, "parents", of_parent, "id", [id for id in wanted if id not in found_leaves])
    numbers = sorted({row["document"] for row in rows} - {NONE})
    names = {row["number"]: row["id"] for row in rows_among(snapshot, "documents", ["number", "id"], "number", numbers)}
    found = {}
    for row in rows:
        above = row.get("above", "[]")
        check(f"the text of node {row['id']}", row["body"], row["text"], above)
        found[row["id"]] = Node(
            row["id"], row.get("layer", 0), names.get(row["document"], ""), row.get("place", -1), row.get("first", 0),
            row.get("last", 0), row["text"], row["tokens"], tuple(json.loads(above)), tuple(row.get("children", ())),
        )  # fmt: skip
    return [found[id] for id in wanted if id in found]


def view(snapshot: Snapshot) -> View:
    """Return all nodes as arrays.

    :raises Damaged: a row is missing, or does not match its checksum.
    """
    dimension = snapshot.record.dimension
    documents = sorted(
        snapshot.read("documents", ["number", "id", "language"]).to_pylist(), key=lambda row: int(row["number"])
    )
    place = {row["number"]: index for index, row in enumerate(documents)}
    leaves = snapshot.read("leaves", [*_LEAF, "own", "seal"])
    parents = snapshot.read("parents", [*_PARENT, "children", "own", "routing", "seal"])
    count = leaves.num_rows
    own, with_own = matrix_of(parents.column("own"), dimension)
    means, _ = matrix_of(parents.column("routing"), dimension)
    matrix = np.concatenate([matrix_of(leaves.column("own"), dimension)[0], own, means])
    own_rows = np.full(parents.num_rows, -1, np.int64)
    own_rows[with_own] = count + np.arange(len(own))
    routing_rows = count + len(own) + np.arange(parents.num_rows)
    _check_leaves(snapshot, leaves, matrix)
    _check_parents(snapshot, parents, matrix, own_rows, routing_rows)
    leaf_rows = np.arange(count)
    first = [_ints(leaves, "id"), np.zeros(count, np.int64), _places(leaves, place), _ints(leaves, "place"),
             _ints(leaves, "tokens"), leaf_rows, leaf_rows]  # fmt: skip
    then = [_ints(parents, "id"), _ints(parents, "layer"), _places(parents, place), np.full(parents.num_rows, -1),
            _ints(parents, "tokens"), own_rows, routing_rows]  # fmt: skip
    order = np.concatenate([np.lexsort((first[3], first[2])), count + np.argsort(then[0], kind="stable")])
    columns = [np.concatenate(pair)[order] for pair in zip(first, then, strict=True)]
    make: Any = View  # the columns are in the order of its fields
    languages = sorted({row["language"] for row in documents})
    result: View = make(*columns, matrix, [row["id"] for row in documents], languages, snapshot.record.version)
    return result


def matrix_of(column: Any, dimension: int) -> tuple[Vectors, Any]:
    """Return the vectors of a column, float32 [vectors, dimension], and the rows that have one."""
    valid = np.flatnonzero(column.is_valid().to_numpy())
    flat = column.combine_chunks().flatten().to_numpy() if len(valid) else np.zeros(0, np.float32)
    return np.asarray(flat, np.float32).reshape(-1, dimension), valid


def _ints(table: Any, name: str) -> Any:
    return table.column(name).to_numpy().astype(np.int64)


def _places(table: Any, place: Mapping[int, int]) -> Any:
    return np.asarray([place.get(number, -1) for number in table.column("document").to_pylist()], np.int64)


def _check_leaves(snapshot: Snapshot, leaves: Any, matrix: Vectors) -> None:
    sealed = leaves.column("seal").to_pylist()
    check_sum(snapshot, "leaves", sealed)
    _check_vectors([leaves.column(name).to_pylist() for name in _LEAF], sealed, matrix)


def _check_vectors(columns: Sequence[Sequence[int]], sealed: Sequence[int], matrix: Vectors) -> None:
    data = np.ascontiguousarray(matrix, "<f4").reshape(-1).view(np.uint8).data
    step = 4 * matrix.shape[1]
    for place, (expected, *fields) in enumerate(zip(sealed, *columns, strict=True)):
        if seal(*fields, zlib.crc32(data[place * step : (place + 1) * step])) != expected:  # as _leaf_seal does
            raise Damaged(f"node {fields[0]} does not match its checksum")


def _check_parents(snapshot: Snapshot, parents: Any, matrix: Vectors, own_rows: Any, routing_rows: Any) -> None:
    sealed = parents.column("seal").to_pylist()
    check_sum(snapshot, "parents", sealed)
    columns = [parents.column(name).to_pylist() for name in _PARENT]
    children = parents.column("children").to_pylist()
    for index, fields in enumerate(zip(*columns, strict=True)):
        own = matrix[own_rows[index]] if own_rows[index] >= 0 else None
        if _parent_seal(fields, children[index], own, matrix[routing_rows[index]]) != sealed[index]:
            raise Damaged(f"node {fields[0]} does not match its checksum")


@dataclass(frozen=True, slots=True)
class Found:
    """Some nodes with their vectors, checked; the columns are int [n], the matrix is float32 [n, dimension]."""

    ids: Ints
    layer: Ints
    document: Ints
    place: Ints
    tokens: Ints
    matrix: Vectors


def checked_leaves(snapshot: Snapshot, ids: Ints, offsets: Ints | None) -> Found:
    """Return leaves in the order of their numbers; all must be there.

    :param ids: sorted.
    :param offsets: of their rows in the table, by which they are read faster; None where they are unknown.
    :raises Damaged: one is missing, or does not match its checksum.
    """
    columns = [*_LEAF, "own", "seal"]
    if offsets is None:
        parts = [snapshot.read("leaves", columns, where) for where in among("id", ids.tolist())]
    else:
        parts = [snapshot.take("leaves", columns, offsets)]
    if not len(ids):
        none = np.zeros(0, np.int64)
        return Found(none, none, none, none, none, np.zeros((0, snapshot.record.dimension), np.float32))
    table = snapshot.tables.arrow.concat_tables(parts)
    matrix = matrix_of(table.column("own"), snapshot.record.dimension)[0]
    _check_vectors([_ints(table, name).tolist() for name in _LEAF], _ints(table, "seal").tolist(), matrix)
    found = _ints(table, "id")
    order = np.argsort(found, kind="stable")
    if not np.array_equal(found[order], ids):
        raise Damaged("rows of the table leaves are missing")
    document, place, tokens = (_ints(table, name)[order] for name in ("document", "place", "tokens"))
    return Found(ids, np.zeros(len(ids), np.int64), document, place, tokens, matrix[order])


def checked_summaries(snapshot: Snapshot, ids: Sequence[int]) -> Found:
    """Return the summaries among some nodes, sorted by number; a parent without a text is left out.

    :raises Damaged: one does not match its checksum.
    """
    rows = [row for row in whole_parents(snapshot, ids) if row["own"] is not None]
    rows.sort(key=lambda row: int(row["id"]))
    matrix = np.stack([row["own"] for row in rows]) if rows else np.zeros((0, snapshot.record.dimension), np.float32)
    found, layer, document, tokens = (
        np.asarray([row[name] for row in rows], np.int64) for name in ("id", "layer", "document", "tokens")
    )
    return Found(found, layer, document, np.full(len(rows), -1), tokens, matrix)


def each_check(snapshot: Snapshot) -> Iterator[Any]:
    """Yield a function for each part of the index, which raises Damaged where the part is damaged."""
    yield lambda: view(snapshot)
    yield lambda: records(snapshot)
    yield lambda: notes(snapshot, "")
    for number in snapshot.read("documents", ["id"]).column("id").to_pylist():
        yield lambda id=number: document(snapshot, id)
    for name in ("leaves", "parents"):
        ids = snapshot.read(name, ["id"]).column("id").to_pylist()
        for start in range(0, len(ids), _CHECKED):
            part = ids[start : start + _CHECKED]
            try:
                nodes(snapshot, part)
            except Damaged:  # which of them are damaged
                for id in part:
                    yield lambda id=id: nodes(snapshot, [id])
        yield lambda name=name: Rows(snapshot.tables.arrow, snapshot.read(name, COLUMNS))


def notes(snapshot: Snapshot, prefix: str) -> dict[str, str]:
    """Return the notes whose names begin with ``prefix``, sorted by name."""
    found = snapshot.read("notes", ["name", "text", "seal"]).to_pylist()
    check_sum(snapshot, "notes", [row["seal"] for row in found])
    for row in found:
        check(f"note {row['name']}", row["seal"], row["name"], row["text"])
    kept = {row["name"]: row["text"] for row in found if row["name"].startswith(prefix)}
    return {name: kept[name] for name in sorted(kept)}
