"""LlamaIndex: :class:`PrunusRetriever` finds evidence; :class:`PrunusReader` reads pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..api.index import Index
from ..core.confidence import HARDLY
from ..core.errors import MissingExtra
from ..core.installation import pip_install
from ..core.options import Options
from ..core.settings import Settings
from ..core.sync import run
from ..core.types import OutputFormat
from ..evidence.documents import Documents
from .evidence import Evidence, Given, Text, whole_pages

try:
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import Document, NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtra(
        f"LlamaIndex is not installed; run: {pip_install('llama-index')}", subject="llama-index"
    ) from error

_FOR_CODE = ["document", "score", "blocks"]
"""Metadata that neither a language model nor an embedder is shown; nor are empty ones."""


class PrunusRetriever(BaseRetriever):
    """Finds the evidence for a question; one node for each page, the best page first.

    :param pages, index, search: exactly one of them: pages, as addresses, paths or ``prunus.Page``; an index; search
        providers.
    :param top_k: nodes at most.
    :param budget: tokens of all nodes of a question together; by default that of the index or the settings.
    :param format: ``markdown``, ``html`` or ``text``.
    :param min_confidence: chance that the evidence answers, 0 to 1, below which there is no node; 0 returns all.
    :param options, settings: see :func:`prunus.ask`.
    :raises BadInput: there is not exactly one of pages, index and search.
    """

    def __init__(
        self,
        pages: Given | Iterable[Given] | Documents | None = None,
        *,
        index: Index | str | Path | None = None,
        search: str = "",
        top_k: int = 4,
        budget: int | None = None,
        format: OutputFormat = "markdown",
        min_confidence: float = HARDLY,
        options: Options | None = None,
        settings: Settings | None = None,
        **base: Any,
    ) -> None:
        super().__init__(**base)
        self._top_k = top_k
        self._evidence = Evidence(
            pages=pages,
            index=index,
            search=search,
            budget=budget,
            format=format,
            min_confidence=min_confidence,
            options=options,
            settings=settings,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run(lambda: self._aretrieve(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(text=text.text, **_metadata(text)), score=text.score)
            for text in await self._evidence.find(query_bundle.query_str, self._top_k)
        ]


class PrunusReader(BaseReader):
    """Reads pages and documents, cleaned; one document for each page.

    :param format: ``markdown``, ``html`` or ``text``.
    :param main: keep only a page's own content, without menus and banners.
    :param strict: raise at a page that cannot be read; else leave it out.
    """

    def __init__(
        self,
        format: OutputFormat = "markdown",
        *,
        main: bool = False,
        strict: bool = True,
        settings: Settings | None = None,
    ) -> None:
        self._format, self._main, self._strict, self._settings = format, main, strict, settings

    def lazy_load_data(self, pages: Given | Iterable[Given]) -> Iterator[Document]:
        """Yield the documents; one page is in memory at a time.

        :param pages: one or several: addresses, files or folders as text or ``Path``, or ``prunus.Page``. A document's
            id is its address or path, else the sha256 of its content.
        """
        found = whole_pages(pages, self._format, main=self._main, strict=self._strict, settings=self._settings)
        for text in found:
            id = text.metadata["url"] or text.metadata["document"]
            yield Document(text=text.text, id_=id, **_metadata(text))


def _metadata(text: Text) -> dict[str, Any]:
    hidden = [*_FOR_CODE, *(name for name, value in text.metadata.items() if value == "")]
    return {
        "metadata": text.metadata,
        "excluded_llm_metadata_keys": hidden,
        "excluded_embed_metadata_keys": hidden,
    }
