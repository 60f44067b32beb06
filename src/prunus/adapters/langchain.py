"""LangChain: :class:`PrunusRetriever` finds evidence; :class:`PrunusLoader` loads pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core.confidence import HARDLY
from ..core.errors import MissingExtra
from ..core.installation import pip_install
from ..core.settings import Settings
from ..core.sync import run
from ..core.types import OutputFormat
from .evidence import Evidence, Given, Text, whole_pages

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingExtra(f"LangChain is not installed; run: {pip_install('langchain')}", subject="langchain") from error


class PrunusRetriever(BaseRetriever):
    """Finds the evidence for a question; one document for each page, the best page first.

    :param pages, index, search: exactly one of them: pages, as addresses, paths or ``prunus.Page``; an index; search
        providers.
    :param k: documents at most; ``invoke(question, k=2)`` overrides it.
    :param budget: tokens of all documents of a question together; by default that of the index or the settings.
    :param format: ``markdown``, ``html`` or ``text``.
    :param min_confidence: chance that the evidence answers, 0 to 1, below which there is no document; 0 returns all.
    :param options, settings: see :func:`prunus.ask`.
    :raises BadInput: there is not exactly one of pages, index and search.
    """

    pages: Any = None
    index: Any = None
    search: str = ""
    k: int = 4
    budget: int | None = None
    format: OutputFormat = "markdown"
    min_confidence: float = HARDLY
    options: Any = None
    settings: Any = None
    _evidence: Evidence = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the choices; nothing is read yet."""
        super().model_post_init(context)
        names = ("pages", "index", "search", "budget", "format", "min_confidence", "options", "settings")
        self._evidence = Evidence(**{name: getattr(self, name) for name in names})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [_document(text) for text in run(lambda: self._evidence.find(query, self.k if k is None else k))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [_document(text) for text in await self._evidence.find(query, self.k if k is None else k)]


class PrunusLoader(BaseLoader):
    """Loads pages and documents, cleaned; one document for each page.

    :param pages: one or several: addresses, files or folders as text or ``Path``, or ``prunus.Page``.
    :param format: ``markdown``, ``html`` or ``text``.
    :param main: keep only a page's own content, without menus and banners.
    :param strict: raise at a page that cannot be read; else leave it out.
    """

    def __init__(
        self,
        pages: Given | Iterable[Given],
        format: OutputFormat = "markdown",
        *,
        main: bool = False,
        strict: bool = True,
        settings: Settings | None = None,
    ) -> None:
        self._pages, self._format = pages, format
        self._main, self._strict, self._settings = main, strict, settings

    def lazy_load(self) -> Iterator[Document]:
        """Yield the documents; one page is in memory at a time."""
        found = whole_pages(self._pages, self._format, main=self._main, strict=self._strict, settings=self._settings)
        return map(_document, found)


def _document(text: Text) -> Document:
    source = {"source": text.metadata["url"]}  # the key that LangChain's own loaders use
    return Document(page_content=text.text, metadata=source | text.metadata)
