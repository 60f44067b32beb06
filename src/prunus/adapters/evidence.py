"""Evidence and whole pages as texts with metadata, which each adapter turns into the type of its framework."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ..api.answers import found_pages
from ..api.async_api import aread
from ..api.index import Index
from ..api.pages import Pruner, check_format, read_each
from ..core.confidence import HARDLY
from ..core.errors import BadInput, NothingFound, PrunusError
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread
from ..core.text.broad import is_broad
from ..core.types import Metadata, OutputFormat, Page
from ..evidence.context import Context
from ..evidence.documents import Documents
from ..pages.metadata import known_metadata
from ..pages.sources import is_address, listed
from ..pages.write.selection import main_part
from ..pages.write.style import CLEAN
from ..pages.write.whole import write_tree

Given: TypeAlias = "str | bytes | Path | Page"
"""A page as these frameworks name it: an address or a path as text, a Path, or a Page or bytes that hold it."""


@dataclass(frozen=True, slots=True)
class Text:
    """One document for a framework.

    :param metadata: plain data; see docs/adapters.md.
    :param score: the score of its best block; None for a whole page.
    """

    text: str
    metadata: dict[str, Any]
    score: float | None = None


@dataclass(kw_only=True)
class Evidence:
    """Finds the evidence for questions in pages, in an index or on the web.

    :param pages: pages as :data:`Given`, or documents that were read before; they are read at the first question.
    :param index: an index, or its folder or address.
    :param search: search providers separated by commas.
    :param budget: tokens of all documents of a question together, document by document without the lines that part
        them; by default that of the index or the settings.
    :param format: format of the documents.
    :param min_confidence: chance, 0 to 1, that something in the evidence answers the question, below which there is
        none; it does not hold for a question that asks for an overview.
    :raises BadInput: there is not exactly one of pages, index and search, or the format is unknown.
    """

    pages: Given | Iterable[Given] | Documents | None = None
    index: Index | str | Path | None = None
    search: str = ""
    budget: int | None = None
    format: OutputFormat = "markdown"
    options: Options | None = None
    settings: Settings | None = None
    min_confidence: float = HARDLY
    _pruner: Pruner | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the choices; nothing is read yet."""
        check_format(self.format)
        if (self.pages is not None) + (self.index is not None) + bool(self.search) != 1:
            raise BadInput("give one of pages, index and search", subject="pages")

    async def find(self, question: str, most: int) -> list[Text]:
        """Return the evidence of the best pages for a question, best page first; [] where there is none.

        :param most: pages at most; the budget is spent on these.
        :raises BadInput: ``most`` is below 1, the question is empty, or a page, the index or an engine is wrong.
        :raises OutsideFailed: no search provider answered, or no page could be read.
        """
        if most < 1:
            raise BadInput(f"{most} documents are none; ask for 1 or more", subject="k")
        try:
            if self.index is not None:
                index = await in_a_thread(self._opened)
                context = await in_a_thread(
                    lambda: index.retrieve(question, self.budget, self.format, options=self.options)
                )
                return (await in_a_thread(lambda: self._texts(context)))[:most]
            documents = await self._documents(question, most)
            context = await in_a_thread(lambda: self._pruned(documents, question))
            ranking = list(_ranking(context))
            if len(ranking) > most:  # the whole budget for the best pages
                best = Documents([documents.trees[number] for number in sorted(ranking[:most])])
                context = await in_a_thread(lambda: self._pruned(best, question))
            return await in_a_thread(lambda: self._texts(context))
        except NothingFound:
            return []

    async def _documents(self, question: str, most: int) -> Documents:
        if self.search:
            options = self.options or Options()
            options = replace(options, web=replace(options.web, pages=most))
            return await found_pages(question, self.search, options, self.settings)
        if not isinstance(self.pages, Documents):
            given = self.pages
            sources = await in_a_thread(lambda: named(given))
            self.pages = await aread(sources, keep=True, settings=self.settings)
        return self.pages

    def _pruned(self, documents: Documents, question: str) -> Context:
        self._pruner = self._pruner or Pruner(self.options, self.settings)
        return self._pruner.prune(documents, question, self.budget, self.format)

    def _texts(self, context: Context) -> list[Text]:
        """Return the evidence document by document; [] where it hardly answers the question."""
        broad = self.min_confidence <= 0 or is_broad(context.question)
        return _texts(context) if broad or context.confidence() >= self.min_confidence else []

    def _opened(self) -> Index:
        if not isinstance(self.index, Index):
            place = self.index or ""
            self.index = Index.open(place, create=False, settings=self.settings, options=self.options)
        return self.index


def _ranking(context: Context) -> dict[int, float]:
    """Return the documents of which something was kept, each with the score of its best block, the best first."""
    best: dict[int, tuple[int, float]] = {}
    for block in context.kept:  # scores of different stages cannot be compared; those of the second are better
        best[block.document] = max(best.get(block.document, (0, 0.0)), (block.stage, block.score))
    order = sorted(best, key=lambda number: (*(-part for part in best[number]), number))
    return {number: round(best[number][1], 6) for number in order}


def _texts(context: Context) -> list[Text]:
    """Return the evidence of each document with the places of its blocks, the best document first."""
    blocks: dict[int, list[dict[str, Any]]] = {}
    for block in context.kept:
        place = {"path": block.path, "start": block.span.start, "end": block.span.end, "score": round(block.score, 6)}
        place["place"] = context.place(block)
        blocks.setdefault(block.document, []).append(place)
    found = []
    for number, score in _ranking(context).items():
        info = context.documents[number]
        metadata = _metadata(context.metadata(number), info.url, info.title, info.document)
        metadata |= {"score": score, "blocks": blocks[number]}
        found.append(Text(context.of(number), metadata, score))
    return found


def whole_pages(
    pages: Given | Iterable[Given],
    format: OutputFormat = "markdown",
    *,
    main: bool = False,
    strict: bool = True,
    settings: Settings | None = None,
) -> Iterator[Text]:
    """Yield each page cleaned and whole; a folder gives the pages in it, and one page is in memory at a time.

    :param main: keep only the page's own content, see :func:`prunus.clean`.
    :param strict: raise at a page that cannot be read; else leave it out.
    :raises BadInput: a page cannot be read.
    """
    check_format(format)
    with closing(read_each(named(pages), settings or load_settings(), main)) as trees:
        for tree in trees:
            if not isinstance(tree, PrunusError):
                text = write_tree(tree, format, CLEAN, main_part(tree))
                yield Text(text, _metadata(known_metadata(tree), tree.url, tree.title, tree.document))
            elif strict:
                raise tree


def named(pages: Any) -> list[Any]:
    """Return pages as sources of Prunus: text is an address or a path, because these frameworks name files so.

    :raises BadInput: there is no page.
    """
    return [Path(page) if isinstance(page, str) and not is_address(page) else page for page in listed(pages)]


def _metadata(known: Metadata, url: str, title: str, document: str) -> dict[str, Any]:
    return {
        "url": url,
        "title": known.title or title,
        "published": known.published,
        "authors": "; ".join(known.authors),
        "site": known.site,
        "document": document,
    }
