"""Mend a damaged index: build it again from the documents that are whole in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import BadInput
from ..core.options import Options
from ..core.registry import make_engine
from ..core.settings import Settings
from ..engines import Maker
from ..index.nodes import IndexedDocument, NoIndex
from ..index.store._named import engine_of
from ..index.terms import BUILT, COST, Built
from .cutting import identity_of
from .index import Index


@dataclass(frozen=True, slots=True)
class Mended:
    """The result of mending an index.

    :param documents: how many documents the index holds again.
    :param lost: what was too damaged: documents that must be added again, or the build settings.
    :param aside: the folder that keeps the damaged index; None where nothing was damaged.
    """

    documents: int = 0
    lost: list[str] = field(default_factory=list)
    aside: Path | None = None


def mend(index: str, settings: Settings) -> Mended:
    """Build a damaged index again from the documents that are whole in it; the damaged folder is kept beside it.

    Summaries by a model are missing afterwards. Those that the folder ``home`` keeps are not paid for again.

    :raises BadInput: there is no index, or it is in a database, or no document is whole, or the settings name another
        embedder than that of the index.
    """
    engine, at = engine_of(index, settings.store)
    if "folder" not in at:
        raise BadInput(
            f"{index}: --mend is for an index in a folder; remove the damaged documents and add them again",
            subject=str(index),
        )
    try:
        if not make_engine("store", engine, **at).damage():
            return Mended()
    except NoIndex:
        raise
    except BadInput:  # too damaged to open
        pass
    return _mended(Path(index).expanduser(), settings)


def _mended(folder: Path, settings: Settings) -> Mended:
    from ..index.store.file.salvage import salvaged

    found = salvaged(folder)
    if not found.documents:
        raise BadInput(
            f"{folder}: no document in it is whole; build it again with prunus index add in another folder",
            subject=str(folder),
        )
    beside = folder.with_name(f"{folder.name}.mending")
    shutil.rmtree(beside, ignore_errors=True)  # of a run that was stopped
    notes = json.loads(found.notes.get(BUILT, "{}"))
    built = Built(preset=notes.get("preset", ""), embedder=notes.get("embedder", ""))
    options = Options(embedder=built.named_embedder)
    embedder, dimension = identity_of(Maker(settings, options).make("embedder"))
    if found.embedder not in ("", embedder):
        raise BadInput(
            f"{folder}: this index was built with the embedder {found.embedder}, not with {embedder}; set embedder "
            "to that one",
            subject=str(folder),
        )
    store = make_engine("store", "file", folder=beside, embedder=embedder, dimension=dimension, create=True)
    store.put_notes({name: text for name, text in found.notes.items() if name in (BUILT, COST)})
    opened = Index(store, settings, options)
    if BUILT not in found.notes:
        found.lost.append("the settings it was built with (now the defaults)")
    opened.builder.add(_sources(found.documents))
    opened.update()
    aside = next(place for place in _places(folder) if not place.exists())
    folder.rename(aside)
    beside.rename(folder)
    return Mended(len(found.documents), found.lost, aside)


def _sources(documents: Sequence[IndexedDocument]) -> Iterator[Any]:
    from ..index.evidence import page_tree
    from ..index.leaves import DocumentSource

    for document in documents:
        tree = page_tree(document)
        yield DocumentSource(
            document.id,
            tree,
            "" if tree else document.text,
            document.title,
            document.url,
            document.digest,
            document.language,
            dict(document.metadata),
            document.source,
        )


def _places(folder: Path) -> Iterator[Path]:
    """Yield names for the damaged folder."""
    yield folder.with_name(f"{folder.name}.damaged")
    for number in range(2, 1000):
        yield folder.with_name(f"{folder.name}.damaged-{number}")
