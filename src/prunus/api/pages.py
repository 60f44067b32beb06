"""`clean`, `read`, `prune` and `extract`: pages cleaned, pruned for a question, and the passages that answer it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ..core.confidence import chosen_segments
from ..core.errors import BadInput, Failures, OutsideFailed, PrunusError, errors_of_page
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import run
from ..core.text.near import did_you_mean
from ..core.types import Metadata, OutputFormat, Page, Passage
from ..engines import answer_engines, formats, one_engine, prune_engines
from ..evidence.context import Context
from ..evidence.documents import Documents, read_pages
from ..evidence.prune import prune as prune_documents
from ..evidence.segments import segments
from ..pages.metadata import read_metadata
from ..pages.read import clean_page, read_page
from ..pages.sources import Fetch, Reading, Source, as_page, each_source, is_address
from ..pages.tree import Tree
from ..pages.write.selection import main_part
from ..pages.write.style import CLEAN, Style
from ..pages.write.whole import write_tree
from ..web.reader import fetch_with, snapshot_store
from .arguments import check_choices, question_of

_FORMATS = get_args(OutputFormat)


def clean(
    page: Source,
    format: OutputFormat = "html",
    style: Style = CLEAN,
    *,
    main: bool = False,
    shown_only: bool = False,
) -> str:
    """Clean a page losslessly: keep what a reader sees, drop everything else (HtmlRAG §3.2).

    :param page: HTML as str or bytes, a path, an address, or a Page.
    :param format: ``html`` (compact and valid), ``markdown`` or ``text``.
    :param style: what is written; ``Style(full=True)`` writes full HTML.
    :param main: keep only the page's own content with its title, tables, code, lists and figures; drop menus, cookie
        banners, related links, share bars and footers. A page on which nothing looks like content is kept whole, and
        so is a document that is no HTML. A small model chooses, so this is not lossless.
    :param shown_only: keep only what a document shows: no speaker notes, comments, hidden sheets and slides. The other
        functions follow the setting of that name.
    :raises BadPage: the page is empty, binary, too large, or shows no text.

    >>> clean("<div><script>x</script><p>Hello <b>world</b></p></div>")
    '<p>Hello <b>world</b>'
    """
    check_format(format)
    read = _one_page(page)
    known = formats(replace(load_settings(), shown_only=True)) if shown_only else formats()
    tree = clean_page(read, known.to_html, main)
    with errors_of_page(read.url or "page"):
        return write_tree(tree, format, style, main_part(tree))


def _one_page(page: Source) -> Page:
    """Read one page; load the settings only where the page is a file or an address."""
    if isinstance(page, str) and is_address(page):
        [fetched] = fetch_with(load_settings())([page.strip()])
        if isinstance(fetched, PrunusError):
            raise fetched
        return fetched
    return as_page(page, load_settings().max_file_mb if isinstance(page, Path) else 0, lambda: formats().suffixes)


def metadata(page: Source) -> Metadata:
    """Return what a page or document says about itself: title, authors, dates, language, site, description, address.

    :param page: HTML as str or bytes, a path, an address, or a Page.
    :raises BadPage: the page is empty, binary or too large.

    >>> metadata('<title>Tides</title><meta name="author" content="Ada Moor">').authors
    ('Ada Moor',)
    """
    read = _one_page(page)
    with errors_of_page(read.url or "page"):
        return read_metadata(read, formats().to_html)


def read(
    pages: Source | Iterable[Source],
    *,
    strict: bool = True,
    keep: bool = False,
    done: Callable[[Page], None] | None = None,
    settings: Settings | None = None,
) -> Documents:
    """Read and clean pages once, to use them for many questions with :func:`prune` and :func:`ask`.

    :param pages: one page or several; a folder gives the pages in it, an address the page there.
    :param strict: raise at the first page that cannot be read; else note it in the documents' failures and go on.
    :param keep: store a snapshot of each page, so that citations can be checked later; of a fetched page a snapshot is
        always stored.
    :param done: called with each page after it was fetched or read from disk, before it is cleaned.
    :raises BadInput: with ``strict``, a page cannot be read; without it, no page can be read.
    """
    settings = settings or load_settings()
    return read_with(fetch_with(settings), pages, settings, strict, keep, done)


def read_with(
    fetch: Fetch,
    pages: Source | Iterable[Source],
    settings: Settings,
    strict: bool,
    keep: bool,
    done: Callable[[Page], None] | None,
) -> Documents:
    """Read pages as :func:`read` does.

    :param fetch: fetches the addresses among the pages.
    """

    def each() -> Generator[Page | PrunusError, None, None]:
        store = snapshot_store(settings) if keep else None
        with closing(each_source(pages, reading_with(settings, fetch))) as sources:
            for page in sources:
                if isinstance(page, Page):
                    if store is not None:
                        store(page)
                    if done is not None:
                        done(page)
                yield page

    with closing(each()) as found:  # also where a page cannot be read: what is fetched ahead ends now
        return read_pages(found, formats(settings).to_html, strict=strict)


def reading_with(settings: Settings, fetch: Fetch | None = None) -> Reading:
    """Return the limits and the fetcher with which sources are read under these settings.

    :param fetch: another fetcher than that of the settings.
    """
    fetch = fetch or fetch_with(settings)
    return Reading(lambda: formats().suffixes, settings.max_files, settings.max_file_mb, fetch)


def read_each(
    pages: Sequence[Source], settings: Settings | None = None, main: bool = False
) -> Generator[Tree | PrunusError, None, None]:
    """Yield the tree of each page, or the error that prevented it; one page is in memory at a time.

    Addresses are fetched ahead while the caller works on an earlier page; closing the generator ends the fetching.

    :param pages: files, addresses, HTML, bytes, Pages; no folders.
    :param main: choose each page's main content, see :attr:`.Tree.main`.
    """
    settings = settings or load_settings()
    with closing(each_source(pages, reading_with(settings))) as sources:
        for page in sources:
            try:
                tree = page if isinstance(page, PrunusError) else read_page(page, formats(settings).to_html, main)
            except (BadInput, OutsideFailed) as error:
                tree = error
            yield tree


def with_links(documents: Documents, question: str, count: int, settings: Settings | None = None) -> Documents:
    """Return the documents and, after them, the pages of their most promising links.

    :param count: number of links to follow; pages that cannot be read are noted in the documents' failures.
    """
    from ..web.reader import follow  # here: most calls follow no links

    settings = settings or load_settings()
    trees, failures = list(documents.trees), Failures(documents.failures)
    known = {tree.snapshot for tree in trees}
    embedder = one_engine("embedder", settings)
    for page in follow(settings, trees, question, count, embedder):
        try:
            if isinstance(page, PrunusError):
                raise page
            tree = read_page(page, formats(settings).to_html)
        except (BadInput, OutsideFailed) as error:
            failures.note(error)
            continue
        if tree.snapshot not in known:  # two addresses may lead to the same page
            known.add(tree.snapshot)
            trees.append(tree)
    return Documents(trees, failures)


def metadata_each(
    pages: Sequence[Source], settings: Settings | None = None
) -> Generator[Metadata | PrunusError, None, None]:
    """Yield what each page says about itself, or the error that prevented it; one page is in memory at a time.

    :param pages: files, addresses, HTML, bytes, Pages; no folders.
    """
    settings = settings or load_settings()
    with closing(each_source(pages, reading_with(settings))) as sources:
        for page in sources:
            known: Metadata | PrunusError
            try:
                if isinstance(page, PrunusError):
                    raise page
                with errors_of_page(page.url or "page"):
                    known = read_metadata(page, formats(settings).to_html)
            except (BadInput, OutsideFailed) as error:
                known = error
            yield known


class Pruner:
    """Prunes for any number of questions with the same engines, which are constructed once.

    :raises BadInput: an engine's spec is unknown, or the engine lacks a package or a setting.
    """

    def __init__(self, options: Options | None = None, settings: Settings | None = None) -> None:
        check_choices(None, options, settings)
        self.options, self.settings = options or Options(), settings or load_settings()
        self._engines = prune_engines(self.settings, self.options)

    def prune(
        self, documents: Documents, question: str, budget: int | None = None, format: OutputFormat = "html"
    ) -> Context:
        """Keep the evidence for a question; see :func:`prune`."""
        return self.task(documents, question, budget, format)(documents)

    def task(
        self, pages: Source | Iterable[Source] | Documents, question: str, budget: int | None, format: OutputFormat
    ) -> Callable[[Documents], Context]:
        """Check the arguments of :func:`prune`, and return the function that prunes the pages when they are read.

        :raises BadInput: an argument is wrong.
        """
        check_format(format)
        question = question_of(question, pages, "prune(pages, question)")
        check_choices(budget, None, None)
        tokens = self.settings.budget if budget is None else budget
        return lambda documents: prune_documents(documents, question, tokens, format, self.options, self._engines)


def prune(
    pages: Source | Iterable[Source] | Documents,
    question: str,
    budget: int | None = None,
    format: OutputFormat = "html",
    options: Options | None = None,
    settings: Settings | None = None,
) -> Context:
    """Keep the evidence for a question that fits a token budget (HtmlRAG §3.3–3.4.1).

    :param pages: one page or several (str is HTML), or the result of :func:`read`.
    :param question: what the evidence is for.
    :param budget: tokens of the output, never exceeded; by default that of the settings (4,096).
    :param format: the format that the budget holds for; the Context can render the other formats, too.
    :raises BadInput: a page, the question, the budget or an engine's name cannot be used.
    """
    pruner = Pruner(options, settings)
    task = pruner.task(pages, question, budget, format)
    return task(pages if isinstance(pages, Documents) else read(pages, settings=pruner.settings))


def extract(
    question: str,
    pages: Source | Iterable[Source] | Documents,
    budget: int | None = None,
    options: Options | None = None,
    settings: Settings | None = None,
) -> list[Passage]:
    """Return the passages that bear on a question, best first; [] where none does.

    :param pages: one page or several (str is HTML), or the result of :func:`read`.
    :param budget: tokens of evidence to extract from; by default that of the settings (4,096).
    """
    question = question_of(question, pages, "extract(question, pages)")
    check_choices(budget, options, settings)
    options, settings = options or Options(), settings or load_settings()
    engines = answer_engines(settings, options)
    documents = pages if isinstance(pages, Documents) else read(pages, settings=settings)
    tokens = settings.budget if budget is None else budget
    context = prune_documents(documents, question, tokens, "html", options, engines)
    tagged = segments(context.kept, {tree.document: tree for tree in documents.trees})
    found = run(lambda: engines.extractor.extract(question, tagged))
    return [segment.passage for segment in chosen_segments(found, tagged, engines.min_confidence)]


def check_format(format: str) -> None:
    """Refuse an output format that there is not.

    :raises BadInput: no such format.
    """
    if format not in _FORMATS:
        hint = did_you_mean(str(format), _FORMATS)
        raise BadInput(f"unknown format {format!r}; the formats are: {', '.join(_FORMATS)}{hint}", subject=str(format))
