"""Documents for an index: named, read one by one and cleaned; what cannot be read is noted, and the rest goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import BadInput, PrunusError
from ..core.settings import Settings
from ..core.types import Page
from ..engines import formats
from ..index.terms import Report
from ..pages.read import read_page, snapshot_of
from ..pages.sources import Source, as_page, each_source, is_address, is_folder, pages_of
from .pages import reading_with


def absolute(path: Path) -> str:
    """Return the id of a file."""
    return os.path.abspath(str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def named(documents: Source | Iterable[Source] | Mapping[str, Source], settings: Settings) -> dict[str, Source]:
    """Return the documents by id, folders as their files; nothing is read yet.

    :raises BadInput: nothing was given, or a folder holds no page.
    """
    if isinstance(documents, Mapping):
        for id, one in documents.items():
            if isinstance(one, Path) and is_folder(one):
                raise BadInput(f"{id}: {one} is a folder; give its files, or the folder alone", subject=str(one))
        return dict(documents)
    given = [documents] if isinstance(documents, str | bytes | Path | Page) else list(documents)
    found: dict[str, Source] = {}
    for one in given:
        if isinstance(one, Path) and is_folder(one):
            inside = pages_of(one, formats().suffixes, settings.max_files)
            found |= {absolute(path): path for path in inside}
        elif isinstance(one, Path):
            found[absolute(one)] = one
        elif isinstance(one, str) and is_address(one):
            found[one.strip()] = one.strip()
        else:
            page = as_page(one)
            found[page.url or snapshot_of(page.content)] = page
    if not found:
        raise BadInput("no document was given", subject="documents")
    return found


def each_document(
    given: Mapping[str, Source],
    known: Mapping[str, str],
    settings: Settings,
    report: Report,
    done: Callable[[str, str], None],
) -> Iterator[Any]:
    """Yield what is new or has changed; what cannot be read is noted, and the rest goes on."""
    from ..index.build import DocumentSource as Document
    from ..index.found import packed

    to_html = formats().to_html
    pages = each_source(given.values(), reading_with(settings)) if given else iter(())
    for id, page in zip(given, pages, strict=True):
        try:
            if isinstance(page, PrunusError):
                raise page
            digest = page.snapshot or snapshot_of(page.content)
            if known.get(id) == digest:
                report.unchanged.append(id)
                done(id, "unchanged")
                continue
            tree = read_page(page, to_html)
            source = packed(*tree._markup)
        except PrunusError as error:
            report.failures.note(error, id)
            done(id, "failed")
            continue
        about = {"published": tree.published} if tree.published else {}
        yield Document(id, tree, title=tree.title, url=tree.url, digest=digest, metadata=about, source=source)
