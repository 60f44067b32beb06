"""Build an index in a folder again from the pages that it stores: a damaged one, or one of an older layout."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput
from ..core.options import Options
from ..core.registry import make_engine
from ..core.settings import Settings
from ..core.sqlite import ERRORS, check_files, checksum
from ..engines import one_engine
from ..index.nodes import IndexedDocument
from ..index.store._named import engine_of
from ..index.terms import BUILT, COST, PAGE, SITE, Built
from .cutting import identity_of
from .index import Index
from .indexed_sites import repetition_of

_MOST: Final = 1 << 20
"""Most numbers of documents that are tried where the list of documents itself is damaged."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of building an index again.

    :param documents: how many documents the index holds again.
    :param lost: what was too damaged: documents that must be added again, or the build settings.
    :param aside: the folder that keeps the index as it was.
    """

    documents: int
    lost: list[str]
    aside: Path


@dataclass(slots=True)
class _Stored:
    """What is whole in the index as it was."""

    embedder: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    documents: list[IndexedDocument] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def rebuild(index: str, settings: Settings) -> Rebuilt:
    """Build an index again from its stored pages, by the settings it was built with; the old folder is kept beside it.

    Summaries by a model are missing afterwards. Those that the folder ``home`` keeps are not paid for again.

    :raises BadInput: there is no index, or it is in a database, or no document is whole, or the settings name another
        embedder than that of the index.
    """
    from ..index.store.file.database import FILE

    if "folder" not in engine_of(index, settings.store)[1]:
        raise BadInput(
            f"{index}: rebuild is for an index in a folder; add the documents to a new index", subject=str(index)
        )
    folder = Path(index).expanduser()
    if not (folder / FILE).is_file():
        raise BadInput(f"{folder}: there is no index", subject=str(folder))
    result = _stored(folder / FILE)
    if not result.documents:
        raise BadInput(
            f"{folder}: no document in it is whole; build it again with prunus index add in another folder",
            subject=str(folder),
        )
    notes = json.loads(result.notes.get(BUILT, "{}"))
    built = Built(preset=notes.get("preset", ""), embedder=notes.get("embedder", ""))
    options = Options(embedder=built.named_embedder)
    embedder, dimension = identity_of(one_engine("embedder", settings, options))
    if result.embedder not in ("", embedder):
        raise BadInput(
            f"{folder}: this index was built with the embedder {result.embedder}, not with {embedder}; set embedder "
            "to that one",
            subject=str(folder),
        )
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # of a run that was stopped
    store = make_engine("store", "file", folder=new, embedder=embedder, dimension=dimension, create=True)
    store.put_notes(
        {name: text for name, text in result.notes.items() if name in (BUILT, COST) or name.startswith((SITE, PAGE))}
    )
    opened = Index(store, settings, options)
    if BUILT not in result.notes:
        result.lost.append("the settings it was built with (now the defaults)")
    opened.builder.add(_sources(result))
    opened.update()
    aside = folder.with_name(f"{folder.name}.old")
    if aside.exists():
        aside = next(path for n in count(2) if not (path := folder.with_name(f"{folder.name}.old-{n}")).exists())
    folder.rename(aside)
    new.rename(folder)
    return Rebuilt(len(result.documents), result.lost, aside)


def _sources(stored: _Stored) -> Iterator[Any]:
    from ..index.evidence import page_tree
    from ..index.leaves import DocumentSource

    repeated = repetition_of(stored.notes)
    for document in stored.documents:
        tree = page_tree(document)
        text = "" if tree else document.text
        metadata = dict(document.metadata)
        yield DocumentSource(
            document.id, tree, text, document.title, document.url, document.digest, document.language, metadata,
            document.source, repeated.get(document.id, frozenset()),
        )  # fmt: skip


# --- reading the old database --------------------------------------------------------------------


def _stored(path: Path) -> _Stored:
    """Return what is whole in a database of any layout; nothing is written.

    Rows have had a checksum since layout 2, in the column ``seal`` there.

    :raises BadInput: the file is a link or a pipe, or holds what no layout has.
    """
    check_files(path)
    result = _Stored()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", isolation_level=None, uri=True)) as file:
            if any(_rows(file, "SELECT 1 FROM sqlite_schema WHERE type IN ('view', 'trigger')")):
                raise BadInput(f"{path}: not an index of Prunus; it holds views or triggers", subject=str(path))
            columns = {row[1] for row in _rows(file, "PRAGMA table_info(documents)")}
            summed = next((name for name in ("checksum", "seal") if name in columns), "")
            for (embedder,) in _rows(file, "SELECT value FROM meta WHERE name = 'embedder'"):
                result.embedder = str(embedder)
            for name, text, known in _rows(file, f"SELECT name, text, {summed or 'NULL'} FROM notes"):  # noqa: S608 - ours
                if not summed or checksum(name, text) == known:
                    result.notes[name] = text
            for number in _numbers(file):
                _take(file, number, summed, result)
    except ERRORS:  # no database any more: what was read until here is whole
        pass
    return result


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


def _take(file: sqlite3.Connection, number: int, summed: str, found: _Stored) -> None:
    """Add a document to what is whole or to what is lost."""
    from ..index.evidence import is_whole
    from ..index.store.file.rows import body_digest

    extra = f"body, {summed}" if summed else "NULL, NULL"
    name = f"document {number}"
    try:
        row = file.execute(
            f"SELECT number, id, title, url, digest, language, metadata, {extra}, text, source "  # noqa: S608 - ours
            "FROM documents WHERE number = ?",
            (number,),
        ).fetchone()
        if row is None:
            return
        *record, body, known, text, source = row
        if summed and checksum(*record, body) != known:
            found.lost.append(name)
            return
        name = str(record[1])
        same = not summed or body in (body_digest(text, source), checksum(text, source))
        if not is_whole(source) and (source or not same):
            found.lost.append(name)
            return
        _, id, title, url, digest, language, metadata = record
        text = text if same else ""  # it is made from the page
        found.documents.append(IndexedDocument(id, text, title, url, digest, language, json.loads(metadata), source))
    except (*ERRORS, ValueError, TypeError, AttributeError):  # values of other types than ours
        found.lost.append(name)
