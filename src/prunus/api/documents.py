"""The documents that `Index.add` takes in: their ids, and reading and cleaning them one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput, PrunusError
from ..core.settings import Settings
from ..core.types import Page
from ..engines import formats
from ..index.terms import Report
from ..pages.metadata import known_metadata, title_of
from ..pages.read import ToHtml, read_page, snapshot_of
from ..pages.sources import Source, as_page, each_source, is_address, is_folder, pages_of
from .pages import reading_with

if TYPE_CHECKING:
    from ..index.leaves import DocumentSource


def absolute(path: Path) -> str:
    """Return the id of a file: its absolute path, as valid Unicode."""
    return os.path.abspath(str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def named(documents: Source | Iterable[Source] | Mapping[str, Source], settings: Settings) -> dict[str, Source]:
    """Return the documents by id, a folder as its files; nothing is read yet.

    :param documents: one source or several, or sources by their ids; see :meth:`Index.add` for the ids.
    :raises BadInput: there is no document, a folder holds no page, or a mapping contains a folder.
    """
    if isinstance(documents, Mapping):
        for id, source in documents.items():
            if isinstance(source, Path) and is_folder(source):
                raise BadInput(f"{id}: {source} is a folder; give its files, or the folder alone", subject=str(source))
        return dict(documents)
    sources = [documents] if isinstance(documents, str | bytes | Path | Page) else list(documents)
    by_id: dict[str, Source] = {}
    for source in sources:
        if isinstance(source, Path) and is_folder(source):
            inside = pages_of(source, formats().suffixes, settings.max_files)
            by_id |= {absolute(path): path for path in inside}
        elif isinstance(source, Path):
            by_id[absolute(source)] = source
        elif isinstance(source, str) and is_address(source):
            by_id[source.strip()] = source.strip()
        else:
            page = as_page(source, suffixes=lambda: formats().suffixes)
            by_id[page.url or snapshot_of(page.content)] = page
    if not by_id:
        raise BadInput("no document was given; give files, folders, addresses, HTML or Pages", subject="documents")
    return by_id


def each_document(
    sources: Mapping[str, Source],
    known: Mapping[str, str],
    settings: Settings,
    report: Report,
    done: Callable[[str, str], None],
) -> Iterator[Any]:
    """Yield the documents that are new or have changed; a document that cannot be read is noted, and the others go on.

    :param sources: the documents by id.
    :param known: the digest of each document in the index, by id.
    :param report: receives the unchanged documents and the failures.
    :param done: called with the id and ``unchanged`` or ``failed``.
    """
    to_html = formats(settings).to_html
    if not sources:
        return
    with closing(each_source(sources.values(), reading_with(settings))) as pages:
        for id, page in zip(sources, pages, strict=True):
            try:
                if isinstance(page, PrunusError):
                    raise page
                digest = page.snapshot or snapshot_of(page.content)
                if known.get(id) == digest:
                    report.unchanged.append(id)
                    done(id, "unchanged")
                    continue
                document = document_of(id, page, to_html)
            except PrunusError as error:
                report.failures.note(error, id)
                done(id, "failed")
                continue
            yield document


def document_of(id: str, page: Page, to_html: ToHtml) -> DocumentSource:
    """Return a page, read and cleaned, as a document to add.

    :param to_html: converts documents that are no HTML.
    :raises BadPage: the page cannot be read.
    """
    from ..index.evidence import packed
    from ..index.leaves import DocumentSource

    tree = read_page(page, to_html)
    digest = page.snapshot or snapshot_of(page.content)
    dates = {"published": known_metadata(tree).published or tree.published, "read_at": tree.read_at}
    metadata = {name: date for name, date in dates.items() if date}
    source = packed(*tree._markup)
    title = tree.title or title_of(tree)
    return DocumentSource(id, tree, title=title, url=tree.url, digest=digest, metadata=metadata, source=source)
