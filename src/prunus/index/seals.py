"""The checksums of an index in SQLite: how each part is sealed, and how damage is found.

A document and a node have two seals: ``body`` covers the text, ``seal`` the other columns and ``body``. A node's
``words`` covers its row of the full text, which SQLite reads when it deletes that row. Triggers keep the number and the
sum of the seals of each table, which tell of a row that is gone. ``blocks`` holds a seal for every :data:`BLOCK` rows
of the matrix. The full-text index is sealed as a whole, by the change that writes it.

Tables are checked as a whole, once for each state of the index that an object has not written itself. Texts are checked
when they are read.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..core.ports import Vectors
from ..core.seal import seal

BLOCK: Final = 256
"""Rows of the matrix under one checksum."""

WORDS: Final = ("leaf_terms", "summary_terms")
"""The full-text tables."""

RECORD: Final = "number, id, title, url, digest, language, metadata, body"
"""The columns of a document under its seal."""

NODE: Final = "id, layer, document, place, first, last, tokens, own, routing, body, words"
"""The columns of a node under its seal."""

_EDGE: Final = "(({row}parent * 1000003 + {row}child) & 4294967295)"
_SUMS: Final = {"documents": "{row}seal", "nodes": "{row}seal", "notes": "{row}seal", "edges": _EDGE}
"""What is summed over the rows of each table, as SQL."""

_SCHEMA: Final = """
ALTER TABLE notes ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN body INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN body INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN words INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
CREATE TABLE blocks (number INTEGER PRIMARY KEY, seal INTEGER NOT NULL);
CREATE TABLE totals (name TEXT PRIMARY KEY, count INTEGER NOT NULL, seals INTEGER NOT NULL) WITHOUT ROWID
"""


class Damaged(Exception):
    """A part of an index does not match its checksum.

    :param what: the part, for a message.
    :param path: the damaged file; None for the database.
    """

    def __init__(self, what: str, path: Path | None = None) -> None:
        super().__init__(what)
        self.path = path


# --- writing -------------------------------------------------------------------------------------


def matrix_file(folder: Path, generation: int) -> Path:
    """Return the file of the vectors."""
    return folder / f"vectors.{generation}.f32"


def add_seals(file: sqlite3.Connection, folder: Path) -> None:
    """Add the checksums to an index without any: a new one, or one of the layout before.

    :param folder: the folder of the index.
    :raises Damaged: the file of the vectors is missing or too short.
    """
    for statement in _SCHEMA.strip().split(";\n"):
        file.execute(statement)
    for name, text in file.execute("SELECT name, text FROM notes").fetchall():
        file.execute("UPDATE notes SET seal = ? WHERE name = ?", (seal(name, text), name))
    for number, text, source in file.execute("SELECT number, text, source FROM documents"):
        file.execute("UPDATE documents SET body = ? WHERE number = ?", (seal(text, source), number))
    for number, *fields in file.execute(f"SELECT number, {RECORD} FROM documents").fetchall():  # noqa: S608 - ours
        file.execute("UPDATE documents SET seal = ? WHERE number = ?", (seal(*fields), number))
    for id, text, above in file.execute("SELECT id, text, above FROM nodes"):
        file.execute("UPDATE nodes SET body = ? WHERE id = ?", (seal(text, above), id))
    for table in WORDS:
        for id, *fields in file.execute(f"SELECT id, c0, c1 FROM {table}_content"):  # noqa: S608 - ours
            file.execute("UPDATE nodes SET words = ? WHERE id = ?", (seal(*fields), id))
    for id, *fields in file.execute(f"SELECT id, {NODE} FROM nodes").fetchall():  # noqa: S608 - ours
        file.execute("UPDATE nodes SET seal = ? WHERE id = ?", (seal(*fields), id))
    for table, summed in _SUMS.items():
        file.execute(f"INSERT INTO totals VALUES ('{table}', 0, 0)")  # noqa: S608 - ours
        file.execute(f"UPDATE totals SET (count, seals) = ({_summed(table)}) WHERE name = '{table}'")  # noqa: S608
        events = [(event, f"count = count {sign} 1, seals = seals {sign} {summed.format(row=row)}")
                  for event, sign, row in (("INSERT", "+", "NEW."), ("DELETE", "-", "OLD."))]  # fmt: skip
        if table != "edges":
            events.append(("UPDATE OF seal", "seals = seals + NEW.seal - OLD.seal"))
        for event, change in events:
            update = f"UPDATE totals SET {change} WHERE name = '{table}'"  # noqa: S608 - ours
            file.execute(f"CREATE TRIGGER {table}_{event[:6]} AFTER {event} ON {table} BEGIN {update}; END")
    about = dict(file.execute("SELECT name, value FROM meta"))
    if about.get("rows"):
        put_blocks(file, 0, mapped(matrix_file(folder, about["generation"]), about["rows"], about["dimension"]))
    seal_words(file)
    put_meta(file, schema=_schema_seal(file))


def mapped(path: Path, rows: int, dimension: int) -> Vectors:
    """Return the first rows of a matrix, float32 [rows, dimension], mapped into memory.

    :raises Damaged: the file is missing or too short.
    """
    if not rows:
        return np.zeros((0, dimension), np.float32)
    try:
        return np.memmap(path, "<f4", "r", shape=(rows, dimension))
    except (OSError, ValueError) as error:
        raise Damaged("it is missing or too short", path) from error


def put_meta(file: sqlite3.Connection, **values: str | int) -> None:
    """Write values of the table ``meta``, and its seal."""
    file.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))
    rows = file.execute("SELECT name, value FROM meta WHERE name <> 'seal' ORDER BY name")
    file.execute("INSERT OR REPLACE INTO meta VALUES ('seal', ?)", (seal(*chain.from_iterable(rows)),))


def put_blocks(file: sqlite3.Connection, row: int, vectors: Vectors) -> None:
    """Seal vectors that are written from ``row`` on; the rows before it keep their seals."""
    start = 0
    while start < len(vectors):
        number, used = divmod(row + start, BLOCK)
        part = np.ascontiguousarray(vectors[start : start + BLOCK - used], "<f4")
        (before,) = file.execute("SELECT max(seal) FROM blocks WHERE number = ?", (number,)).fetchone()
        sealed = zlib.crc32(part.data, before if used and before else 0)
        file.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?)", (number, sealed))
        start += len(part)


def seal_words(file: sqlite3.Connection, tables: Sequence[str] = WORDS) -> None:
    """Seal the full-text tables that this transaction has changed."""
    file.execute("SAVEPOINT words")  # SQLite writes the words that it still holds in memory
    file.execute("RELEASE words")
    for table in tables:
        file.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?)", (table, *_words(file, table)))


# --- checking ------------------------------------------------------------------------------------


def meta(file: sqlite3.Connection) -> dict[str, Any]:
    """Return the table ``meta``: embedder, dimension, generation, rows, version, look_again, schema.

    :raises Damaged: it does not match its seal.
    """
    rows = dict(file.execute("SELECT name, value FROM meta ORDER BY name"))
    if rows.pop("seal", None) != seal(*chain.from_iterable(rows.items())):
        raise Damaged("its description does not match its checksum")
    return rows


def check_tables(file: sqlite3.Connection, about: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Check the schema and every row of the tables, without texts, vectors and full text.

    :returns: the columns :data:`NODE` of every node, and its seal.
    :raises Damaged: naming the table.
    """
    check_schema(file, about)
    for table in ("documents", "notes"):
        checked_rows(file, table)
    check_edges(file)
    return checked_rows(file, "nodes")


def check_schema(file: sqlite3.Connection, about: dict[str, Any]) -> None:
    """Check the schema.

    :raises Damaged: it does not match its checksum.
    """
    if _schema_seal(file) != about.get("schema"):
        raise Damaged("its schema does not match its checksum")


def check_edges(file: sqlite3.Connection) -> None:
    """Check the edges of the tree.

    :raises Damaged: they do not match their checksum.
    """
    if file.execute(_summed("edges")).fetchone() != total(file, "edges"):
        raise Damaged("its edges do not match their checksum")


_BATCH: Final = 50_000
_COLUMNS: Final = {"documents": RECORD, "notes": "name, text", "nodes": NODE}


def checked_rows(file: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Return every row of ``documents``, ``notes`` or ``nodes`` with its seal, checked.

    :raises Damaged: a row does not match its checksum, or rows are missing.
    """
    return [row for rows in checked_batches(file, table) for row in rows]


def checked_batches(file: sqlite3.Connection, table: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of :func:`checked_rows` in batches, so that not all of them need memory."""
    count = seals = 0
    found = file.execute(f"SELECT {_COLUMNS[table]}, seal FROM {table}")  # noqa: S608 - ours
    while rows := found.fetchmany(_BATCH):
        for row in rows:
            if seal(*row[:-1]) != row[-1]:
                raise Damaged(f"a row of its {table} does not match its checksum")
            seals += row[-1]
        count += len(rows)
        yield rows
    if (count, seals) != total(file, table):
        raise Damaged(f"rows of its {table} are missing")


def check_words(file: sqlite3.Connection) -> None:
    """Check the full-text tables.

    :raises Damaged: naming the table.
    """
    for table in WORDS:
        if _words(file, table) != total(file, table):
            raise Damaged(f"its full text ({table}) does not match its checksum")


def check_structure(file: sqlite3.Connection) -> None:
    """Check SQLite's own structure: pages, order of rows, and indexes against their tables.

    :raises Damaged: with SQLite's first finding.
    """
    (found,) = file.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise Damaged(" ".join(str(found).split()))


def check(what: str, sealed: object, *fields: str | bytes | int | None) -> None:
    """Check values that were read against their seal.

    :raises Damaged: naming ``what``.
    """
    if seal(*fields) != sealed:
        raise Damaged(f"{what} does not match its checksum")


def blocks(file: sqlite3.Connection) -> dict[int, int]:
    """Return the seals of the matrix by number of block."""
    return dict(file.execute("SELECT number, seal FROM blocks"))


def damaged_blocks(matrix: Vectors, sealed: dict[int, int], known: dict[int, int]) -> Iterator[int]:
    """Yield the blocks of a matrix that do not match their seals.

    :param known: seals of blocks that were checked before, by number; checked blocks are added.
    """
    for number in range(-(-len(matrix) // BLOCK)):
        if number not in sealed or known.get(number) != sealed[number]:
            part = np.ascontiguousarray(matrix[number * BLOCK : (number + 1) * BLOCK], "<f4")
            if zlib.crc32(part.data) == sealed.get(number):
                known[number] = sealed[number]
            else:
                yield number


def _summed(table: str) -> str:
    return f"SELECT count(*), coalesce(sum({_SUMS[table].format(row='')}), 0) FROM {table}"  # noqa: S608 - ours


def total(file: sqlite3.Connection, name: str) -> Any:
    """Return the (count, sum of seals) of a table, as its triggers keep it."""
    return file.execute("SELECT count, seals FROM totals WHERE name = ?", (name,)).fetchone()


def _schema_seal(file: sqlite3.Connection) -> int:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name"
    return seal(*chain.from_iterable(file.execute(query)))


def _words(file: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Return the number of nodes in a full-text index, and the checksum of the index."""
    checksum = 0
    for part in ("config", "data", "idx"):
        for row in file.execute(f"SELECT * FROM {table}_{part}"):  # noqa: S608 - ours
            checksum = seal(*row, before=checksum)
    # one text of all sizes: a row is small, and there are as many as nodes
    query = f"SELECT count(*), group_concat(id || ' ' || hex(sz)) FROM {table}_docsize"  # noqa: S608 - ours
    count, sizes = file.execute(query).fetchone()
    return count, seal(sizes, before=checksum)
