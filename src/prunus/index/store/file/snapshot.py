"""The nodes of one state of a large index, as arrays in a mapped file: opening reads them instead of all rows.

    nodes.bin      the columns of all nodes in the order of the view, the seal of each, the ids of the documents

The file tells the state that it belongs to: version, counts and sums of seals. Where documents were added since, the
added rows alone are read from the database, and the sums prove that no other row has changed. After any other change
all rows are read again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....core.ports import Ints
from ....core.seal import seal
from ...seals import NODE, RECORD, Damaged, total
from .arrays import Arrays, write_arrays

FILE: Final = "nodes.bin"
_KEPT: Final = [0, 1, 2, 3, 6, 7, 8, 11]
"""The columns of the view among :data:`NODE` and the seal."""
_FEW: Final = 0.1
"""Share of added nodes up to which the file of an older state is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """All nodes of one state.

    :param state: version, generation, rows; counts and sums of seals of ``nodes`` and ``documents``; the last numbers
        of both.
    :param columns: int64 [8, n]: ids, layer, document, place, tokens, row, routing as in a view, and the seals.
    """

    state: dict[str, Any]
    columns: Ints
    names: list[str]
    languages: list[str]

    @property
    def leaves(self) -> int:
        """The number of leaves, which are the first nodes."""
        return int(np.searchsorted(self.columns[1] > 0, True))


def state_of(file: sqlite3.Connection, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an index, without the last numbers."""
    state = {name: about[name] for name in ("version", "generation", "rows", "embedder")}
    return state | {table: list(total(file, table) or (0, 0)) for table in ("nodes", "documents")}


def read(file: sqlite3.Connection, state: dict[str, Any], nodes: Iterable[Sequence[tuple[Any, ...]]]) -> NodeColumns:
    """Return the snapshot of all rows.

    :param nodes: batches of the columns :data:`NODE` of every node, and its seal.
    """
    names = file.execute("SELECT number, id, language FROM documents ORDER BY number").fetchall()
    place = {number: at for at, (number, _, _) in enumerate(names)}
    columns = np.concatenate([np.zeros((12, 0), np.int64), *(_columns(rows, place) for rows in nodes)], axis=1)
    last = [int(columns[0].max(initial=0)), names[-1][0] if names else 0]
    languages = sorted({language for _, _, language in names})
    return NodeColumns(state | {"last": last}, _ordered(columns), [id for _, id, _ in names], languages)


def _columns(nodes: Sequence[tuple[Any, ...]], place: dict[int, int]) -> Ints:
    found = [(id, layer, place.get(document, -1), *rest) for id, layer, document, *rest in nodes]
    return np.asarray(found, np.int64).reshape(len(found), 12).T


def _ordered(columns: Ints) -> Ints:
    ids, layers, documents, places = columns[:4]
    leaf = layers == 0
    order = np.lexsort((np.where(leaf, places, ids), np.where(leaf, documents, 0), ~leaf))
    return np.ascontiguousarray(columns[_KEPT][:, order])


def stored(folder: Path) -> NodeColumns | None:
    """Return the snapshot of the file, of whatever state; None where it is missing.

    :raises Damaged: the file is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    file = Arrays(path)
    names, languages = json.loads(file["names"].tobytes())
    return NodeColumns(file.state, file["columns"], names, languages)


def store(folder: Path, snapshot: NodeColumns) -> None:
    """Write the file; a folder that cannot be written stays without it."""
    names = np.frombuffer(json.dumps([snapshot.names, snapshot.languages]).encode(), np.uint8)
    with suppress(OSError):
        write_arrays(folder / FILE, snapshot.state, {"columns": snapshot.columns, "names": names})


def grown(file: sqlite3.Connection, state: dict[str, Any], known: NodeColumns) -> NodeColumns | None:
    """Return the snapshot of a state from one before, where only documents were added since; else None."""
    same = ("generation", "embedder", "nodes", "documents")
    if all(known.state[name] == state[name] for name in same):
        return NodeColumns(known.state | state, known.columns, known.names, known.languages)
    if known.state["generation"] != state["generation"] or known.state["embedder"] != state["embedder"]:
        return None
    if state["nodes"][0] - known.state["nodes"][0] > max(1000, _FEW * known.state["nodes"][0]):
        return None
    last_node, last_document = known.state["last"]
    nodes = _added(file, "nodes", NODE, "id", last_node)
    documents = _added(file, "documents", RECORD, "number", last_document)
    for table, rows in (("nodes", nodes), ("documents", documents)):
        count, seals = known.state[table]
        if [count + len(rows), seals + sum(row[-1] for row in rows)] != state[table]:
            return None
    languages = {language for (language,) in file.execute("SELECT DISTINCT language FROM documents WHERE number > ?",
                                                          (last_document,))}  # fmt: skip
    names = [*known.names, *(row[1] for row in documents)]
    added = _ordered(_columns(nodes, {row[0]: len(known.names) + at for at, row in enumerate(documents)}))
    leaves, new = known.leaves, int(np.count_nonzero(added[1] == 0))
    parts = [known.columns[:, :leaves], added[:, :new], known.columns[:, leaves:], added[:, new:]]
    if (added[2, :new] < len(known.names)).any():  # a leaf of a document that was there before
        return None
    last = [max([last_node, *(row[0] for row in nodes)]), max([last_document, *(row[0] for row in documents)])]
    found = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return NodeColumns(state | {"last": last}, found, names, sorted({*known.languages, *languages}))


def _added(file: sqlite3.Connection, table: str, columns: str, key: str, last: int) -> list[tuple[Any, ...]]:
    query = f"SELECT {columns}, seal FROM {table} WHERE {key} > ? ORDER BY {key}"  # noqa: S608 - ours
    rows = file.execute(query, (last,)).fetchall()
    if any(seal(*row[:-1]) != row[-1] for row in rows):
        raise Damaged(f"a row of its {table} does not match its checksum")
    return rows
