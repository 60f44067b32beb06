"""Read what is whole in a damaged index: its documents and notes, row by row."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ....core.seal import ERRORS, seal
from ...database import FILE
from ...evidence import is_whole
from ...nodes import IndexedDocument
from ...seals import RECORD, Damaged, meta

_MOST: Final = 1 << 20
"""Most numbers of documents that are tried where the list of documents itself is damaged."""


@dataclass(slots=True)
class Salvage:
    """What is whole in a damaged index.

    :param embedder: identity of the embedder of its vectors; '' where it is damaged.
    :param documents: the documents that can be indexed again, in their order.
    :param lost: names of the documents that cannot.
    """

    embedder: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    documents: list[IndexedDocument] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def salvaged(folder: Path) -> Salvage:
    """Return what is whole in the index of a folder; nothing is written."""
    found = Salvage()
    address = f"{(folder / FILE).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, isolation_level=None, uri=True)) as file:
            found.embedder = _embedder(file)
            found.notes = {
                name: text
                for name, text, sealed in _rows(file, "SELECT name, text, seal FROM notes")
                if seal(name, text) == sealed
            }
            for number in _numbers(file):
                document, name = _document(file, number)
                if document is not None:
                    found.documents.append(document)
                elif name:
                    found.lost.append(name)
    except ERRORS:  # no database any more: nothing is whole
        return found
    return found


def _embedder(file: sqlite3.Connection) -> str:
    try:
        return str(meta(file)["embedder"])
    except (Damaged, *ERRORS):
        return ""


def _rows(file: sqlite3.Connection, query: str, *values: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query, up to the first that cannot be read."""
    try:
        yield from file.execute(query, values)
    except ERRORS:
        return


def _numbers(file: sqlite3.Connection) -> list[int]:
    """Return the numbers of all documents; where their list is damaged, every number that there may be."""
    forwards = [number for (number,) in _rows(file, "SELECT number FROM documents ORDER BY number")]
    backwards = [number for (number,) in _rows(file, "SELECT number FROM documents ORDER BY number DESC")]
    if forwards == backwards[::-1]:
        return forwards
    last = max(number for number in [*forwards, *backwards] if isinstance(number, int))
    return list(range(1, min(last, _MOST) + 1))


def _document(file: sqlite3.Connection, number: int) -> tuple[IndexedDocument | None, str]:
    """Return a document, or None and its name; both are empty for a number without a document."""
    try:
        query = f"SELECT {RECORD}, seal FROM documents WHERE number = ?"  # noqa: S608 - ours
        row = file.execute(query, (number,)).fetchone()
        if row is None:
            return None, ""
        *record, sealed = row
        if seal(*record) != sealed:
            return None, f"document {number}"
        _, id, title, url, digest, language, metadata, body = record
    except ERRORS:
        return None, f"document {number}"
    found = IndexedDocument(id, "", title, url, digest, language, json.loads(metadata))
    try:
        text, source = file.execute("SELECT text, source FROM documents WHERE number = ?", (number,)).fetchone()
        if seal(text, source) == body:
            return replace(found, text=text, source=source), id
    except ERRORS:
        source = b""
    # the page is compressed with a checksum of its own, and the text is made of it again
    return (replace(found, source=source), id) if is_whole(source) else (None, id)
