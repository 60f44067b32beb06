"""Haystack: :class:`PrunusRetriever` finds evidence; :class:`PrunusConverter` reads pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.confidence import HARDLY
from ..core.errors import MissingExtra
from ..core.installation import pip_install
from ..core.sync import run
from ..core.types import OutputFormat, Page
from .evidence import Evidence, Text, whole_pages

try:
    from haystack import Document, component
    from haystack.dataclasses import ByteStream
except ImportError as error:
    raise MissingExtra(f"Haystack is not installed; run: {pip_install('haystack')}", subject="haystack") from error


@component
class PrunusRetriever:
    """Finds the evidence for a question; one document for each page, the best page first.

    :param pages, index, search: exactly one of them: addresses, files or folders of pages; the folder or address of an
        index; search providers. Text only, so that a pipeline can be saved.
    :param top_k: documents at most.
    :param budget: tokens of all documents of a question together; by default that of the index or the settings.
    :param format: ``markdown``, ``html`` or ``text``.
    :param min_confidence: chance that the evidence answers, 0 to 1, below which there is no document; 0 returns all.
    :raises BadInput: there is not exactly one of pages, index and search.
    """

    def __init__(
        self,
        pages: list[str] | None = None,
        index: str | None = None,
        search: str = "",
        top_k: int = 4,
        budget: int | None = None,
        format: OutputFormat = "markdown",
        min_confidence: float = HARDLY,
    ) -> None:
        self.pages, self.index, self.search = pages, index, search  # Haystack saves a component by these attributes
        self.top_k, self.budget, self.format, self.min_confidence = top_k, budget, format, min_confidence
        self._evidence = Evidence(
            pages=pages, index=index, search=search, budget=budget, format=format, min_confidence=min_confidence
        )

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """Return the documents for a question.

        :param top_k: documents at most; by default that of the component.
        """
        return run(lambda: self._found(query, top_k))

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """Return the documents for a question without blocking the event loop; see :meth:`run`."""
        return await self._found(query, top_k)

    async def _found(self, query: str, top_k: int | None) -> dict[str, Any]:
        found = await self._evidence.find(query, self.top_k if top_k is None else top_k)
        return {"documents": [_document(text) for text in found]}


@component
class PrunusConverter:
    """Reads pages and documents of every format that Prunus knows, cleaned; one document for each page.

    :param format: ``markdown``, ``html`` or ``text``.
    :param main: keep only a page's own content, without menus and banners.
    :param strict: raise at a page that cannot be read; else leave it out.
    """

    def __init__(self, format: OutputFormat = "markdown", main: bool = False, strict: bool = True) -> None:
        self.format, self.main, self.strict = format, main, strict  # Haystack saves a component by these

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str | Path | ByteStream]) -> dict[str, Any]:
        """Return the documents of addresses, files, folders, and streams, as ``LinkContentFetcher`` gives them."""
        found = whole_pages(_pages(sources), self.format, main=self.main, strict=self.strict)
        return {"documents": [_document(text) for text in found]}


def _pages(sources: Iterable[str | Path | ByteStream]) -> list[Any]:
    pages: list[Any] = []
    for source in sources:
        if isinstance(source, ByteStream):
            url = str(source.meta.get("url") or source.meta.get("file_path") or "")
            source = Page(source.data, url=url, final_url=url, media_type=source.mime_type or "")
        pages.append(source)
    return pages


def _document(text: Text) -> Document:
    meta = {name: value for name, value in text.metadata.items() if name != "score"}  # it is a field of its own
    return Document(content=text.text, meta=meta, score=text.score)
