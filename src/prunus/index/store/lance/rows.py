"""The rows of an index in Lance, and what one writer changes of them."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict

import numpy as np

from ....core.ports import Ints, Vectors
from ....core.text.bm25 import stem, tokens
from ....core.text.words import guess_language
from ...nodes import Growth, IndexedDocument, Leaf, read_json
from .._words import clean
from .table import ABOUT, LanceTable

LEAF: Final = "kind = 'node' AND layer = 0"
PARENT: Final = "kind = 'node' AND layer > 0"
SUMMARY: Final = f"{PARENT} AND text <> ''"
"""Conditions of leaves, of parents, and of parents with a summary."""
WORDS: Final = ("words", "own_words", "above_words")
"""The columns of a node's words: how many, those of its text, and those of its headings."""
NODE: Final = "id layer document place first last text tokens above children crc".split()
WHOLE: Final = [*NODE, "own", "routing"]


def document_key(id: str) -> str:
    """Return the key of a document's row."""
    return f"document {clean(id)}"


def about_row(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row that every change writes."""
    return {"key": ABOUT, "kind": ABOUT, "record": json.dumps(about, ensure_ascii=False)}


class About(TypedDict):
    """What the first row tells of the whole index."""

    layout: int
    embedder: str
    dimension: int
    version: int
    number: int
    next_document: int
    next_node: int


def read_document(table: LanceTable, row: Mapping[str, Any]) -> IndexedDocument:
    """Return the document of a row, with its text and page where the row has them.

    :raises BadInput: its record is damaged.
    """
    try:
        record: IndexedDocument = read_json(row["record"], IndexedDocument)
    except ValueError as error:
        raise table.damaged("the record of a document") from error
    return replace(record, text=row.get("text") or "", source=row.get("source") or b"")


def sha256_of(row: Mapping[str, Any]) -> bytes:
    """Return the hash of a document's row."""
    total = hashlib.sha256()
    for data in (row["record"].encode(), row["text"].encode(), row["source"]):
        total.update(len(data).to_bytes(8, "big") + data)
    return total.digest()


def crc_of(row: Mapping[str, Any]) -> int:
    """Return the checksum of what is read of a node."""
    return zlib.crc32(repr([row.get(name) or 0 for name in NODE if name != "crc"]).encode())


def _words_of(text: str, above: str, language: str) -> dict[str, Any]:
    """Return the stemmed words as Lance's full-text index takes them, parted by spaces, and how many they are."""
    own, head = (stem(tokens(clean(part)), language) for part in (text, above))
    return dict(zip(WORDS, (len(own) + len(head), " ".join(own), " ".join(head)), strict=True))


def ints(table: Any, name: str) -> Ints:
    """Return a column as int64."""
    return np.asarray(table.column(name).to_numpy(), np.int64)


def matrix(column: Any, dimension: int) -> tuple[Vectors, Ints]:
    """Return the vectors of a column, float32 [vectors, dimension], and the rows that have one."""
    valid = np.flatnonzero(column.is_valid().to_numpy())
    flat = column.combine_chunks().flatten().to_numpy() if len(valid) else np.zeros(0, np.float32)
    return np.asarray(flat, np.float32).reshape(-1, dimension), np.asarray(valid, np.int64)


class Change:
    """What one writer changes; it counts from :meth:`commit` on."""

    def __init__(self, table: LanceTable, version: Any, about: About, dimension: int) -> None:
        self.table, self.version, self.about, self._dimension = table, version, about, dimension
        self.cancelled = False
        self._put: dict[str, dict[str, Any]] = {}
        self._drop: set[str] = set()

    def rows(self, columns: Sequence[str], where: str) -> list[dict[str, Any]]:
        """Return rows of the state before the change."""
        return self.table.rows(self.version, columns, where)

    def commit(self, nodes: bool) -> None:
        """Write the change."""
        self.about = {**self.about, "number": self.about["number"] + 1, "version": self.about["version"] + nodes}
        rows = [*self._put.values(), about_row(self.about)]
        self.table.commit(self.version, rows, sorted(self._drop - {*self._put}), self._dimension)

    def new_node(self) -> int:
        """Draw a number for a node; a number is never used twice."""
        number = self.about["next_node"]
        self.about = {**self.about, "next_node": number + 1}
        return number

    def numbers(self, ids: set[str]) -> dict[str, int]:
        """Return the numbers of documents by id."""
        wanted = {document_key(id): id for id in ids if id}
        result = self.table.among(self.version, ["key", "id"], "key", wanted, "kind = 'document'").to_pylist()
        return {wanted[row["key"]]: row["id"] for row in result}

    def put_note(self, name: str, text: str) -> None:
        """Write a note; an empty text deletes it."""
        key = f"note {name}"
        if text:
            self._put[key] = {"key": key, "kind": "note", "record": text}
        else:
            self._drop.add(key)

    def put_document(self, document: IndexedDocument, leaves: Sequence[Leaf], vectors: Vectors) -> None:
        """Write a document with its leaves."""
        number = self.about["next_document"]
        self.about = {**self.about, "next_document": number + 1}
        fields = {name: clean(getattr(document, name)) for name in ("id", "title", "url", "digest", "language")}
        key = document_key(document.id)
        record = json.dumps({**fields, "metadata": {**document.metadata}}, ensure_ascii=False)
        row: dict[str, Any] = {"key": key, "kind": "document", "id": number, "tokens": len(leaves)}
        row |= {"record": clean(record), "text": clean(document.text)}
        row["source"] = document.source
        self._put[key] = {**row, "sha256": sha256_of(row)}
        for at, (leaf, vector) in enumerate(zip(leaves, vectors, strict=True)):
            id, above = self.new_node(), [clean(line) for line in leaf.above]
            self._put_node(
                id, layer=0, document=number, place=at, spot=number << 32 | at, first=leaf.start, last=leaf.end,
                text=clean(leaf.text),
                tokens=leaf.tokens, above=json.dumps(above, ensure_ascii=False), own=vector,
                **_words_of(leaf.text, " ".join(above), document.language),
            )  # fmt: skip

    def put_parent(self, row: Mapping[str, Any]) -> None:
        """Write a parent: id, layer, document, children, text, tokens, own, routing."""
        parent = {"place": -1, "first": 0, "last": 0, "above": "[]", **row}
        parent |= {"children": sorted({*row["children"]}), "text": clean(row["text"])}
        self._put_node(**parent, **_words_of(row["text"], "", guess_language(row["text"])))

    def _put_node(self, id: int, **columns: Any) -> None:
        key = f"node {id}"
        row = {"key": key, "kind": "node", "id": id, **columns}
        self._put[key] = {**row, "crc": crc_of(row)}
        self._drop.discard(key)

    def drop_nodes(self, ids: Sequence[int]) -> None:
        """Delete nodes."""
        self._drop.update(f"node {id}" for id in ids)

    def parents(self, ids: Any) -> list[dict[str, Any]]:
        """Return the whole rows of parents."""
        rows: list[dict[str, Any]] = self.table.among(self.version, WHOLE, "id", sorted(ids), PARENT).to_pylist()
        return rows

    def drop_documents(self, ids: Sequence[str]) -> int:
        """Delete documents, their leaves, and ancestors without children; the other ancestors lose their summaries.

        :returns: how many of the documents the index had.
        """
        numbers = self.numbers({*ids})
        if not numbers:
            return 0
        self._drop.update(document_key(id) for id in numbers)
        leaves = self.table.among(self.version, ["id"], "document", sorted(numbers.values()), LEAF)
        gone = {*leaves.column("id").to_pylist()}
        touched: dict[int, list[int]] = {}
        documents = {*numbers.values()}
        light = self.rows(["id", "layer", "document", "children"], PARENT)
        for row in sorted(light, key=lambda row: (row["layer"], row["id"])):  # children before their parents
            children = [child for child in row["children"] if child not in gone]
            if not children:
                gone.add(row["id"])
            elif len(children) < len(row["children"]) or not touched.keys().isdisjoint(children):
                touched[row["id"]] = children
        self.drop_nodes([*gone])
        freed = {row["id"] for row in light if row["document"] in documents} - gone
        for row in self.parents({*touched} | freed):
            document = -1 if row["document"] in documents else row["document"]
            if row["id"] in touched:
                row |= {"children": touched[row["id"]], "text": "", "tokens": 0, "own": None}
            self.put_parent({**row, "document": document})
        return len(numbers)

    def put_growth(self, growth: Growth) -> None:
        """Apply a growth."""
        numbers = self.numbers({*growth.documents, *(parent.document for parent in growth.parents)})
        real = {-1 - at: self.new_node() for at in range(len(growth.parents))}
        gone = set(growth.gone)
        children = {
            row["id"]: [child for child in row["children"] if child not in gone]
            for row in self.rows(["id", "children"], PARENT)
            if gone.intersection(row["children"])
        }
        children |= {
            real.get(node, node): [real.get(child, child) for child in below] for node, below in growth.children.items()
        }
        count = len(growth.parents)
        dirty = {
            node: (growth.routing[count + at], numbers.get(document, -1))
            for at, (node, document) in enumerate(zip(growth.dirty, growth.documents, strict=True))
        }
        self.drop_nodes([*gone])
        for row in self.parents(({*children} | {*dirty}) - gone - {*real.values()}):
            row["children"] = children.get(row["id"], row["children"])
            if row["id"] in dirty:
                mean, document = dirty[row["id"]]
                row |= {"text": "", "tokens": 0, "own": None, "routing": mean, "document": document}
            self.put_parent(row)
        for at, parent in enumerate(growth.parents):
            id = real[-1 - at]
            new = {"id": id, "layer": parent.layer, "document": numbers.get(parent.document, -1)}
            empty = {"text": "", "tokens": 0, "own": None, "routing": growth.routing[at]}
            self.put_parent({**new, **empty, "children": children.get(id, [])})
