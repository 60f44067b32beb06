"""The sync face: the functions at the top of the package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from ..answer.chat import Turns
from ..core.errors import BadInput, Failures
from ..core.events import DoneEvent, Event
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..core.types import Answer, Context, Format, Page, Passage, Results, SearchRequest
from ..engines import Maker, assemble, engines_of, formats, web_of
from ..evidence.documents import Documents, read_pages
from ..evidence.engines import Engines
from ..evidence.prune import prune as prune_documents
from ..evidence.segments import segments
from ..pages.clean.parse import without_surrogates
from ..pages.read import clean_page
from ..pages.sources import Source, arrived, as_page, each_page, is_address
from ..pages.write.style import CLEAN, Style
from ..pages.write.whole import render_tree
from ..web.reader import fetch_with

if TYPE_CHECKING:
    from ..index.find import Indexes
    from ..index.terms import Retrieval
    from .index import Index

_FORMATS = ("html", "markdown", "text")


def clean(page: Source, format: Format = "html", style: Style = CLEAN) -> str:
    """Clean a page losslessly: what a reader sees stays, everything else goes (HtmlRAG §3.2).

    :param page: HTML as str or bytes, a path, an address, or a Page.
    :param format: ``html`` (compact and valid), ``markdown`` or ``text``.
    :param style: what is written; ``Style(full=True)`` writes full HTML.
    :raises BadPage: the page is empty, binary, too large, or shows no text.

    >>> clean("<div><script>x</script><p>Hello <b>world</b></p></div>")
    '<p>Hello <b>world</b>'
    """
    _check_format(format)
    return render_tree(clean_page(_one_page(page), formats().to_html), format, style)


def _one_page(page: Source) -> Page:
    """Read one page; of the settings only what it needs is looked at."""
    if isinstance(page, str) and is_address(page):
        [found] = fetch_with(load_settings())([page.strip()])
        return arrived(found)
    return as_page(page, load_settings().max_file_mb if isinstance(page, Path) else 0)


def read(
    pages: Source | Iterable[Source], *, strict: bool = True, keep: bool = False, settings: Settings | None = None
) -> Documents:
    """Clean pages once, to ask them many questions with :func:`prune` and :func:`ask`.

    :param pages: one page or several; a folder stands for its pages, an address for what is there.
    :param strict: raise at the first page that cannot be read, or go on and note it.
    :param keep: keep a snapshot of each, so that citations can be checked later; of addresses one is always kept.
    """
    settings = settings or load_settings()
    known = formats()
    failures = Failures()
    noted = None if strict else failures
    given = each_page(pages, known.suffixes, settings.max_files, settings.max_file_mb, noted, fetch_with(settings))
    if keep:
        from ..web.reader import keep_each  # here: most calls keep nothing

        given = keep_each(settings, given)
    return read_pages(given, known.to_html, strict=strict, failures=failures)


def prune(
    pages: Source | Iterable[Source] | Documents,
    query: str,
    budget: int | None = None,
    format: Format = "html",
    options: Options | None = None,
) -> Context:
    """Keep the evidence for a question that fits a token budget (HtmlRAG §3.3–3.4.1).

    :param pages: one page or several (str is HTML), or what :func:`read` returned.
    :param query: the question.
    :param budget: tokens of the output, never exceeded; by default that of the settings (4,096).
    :param format: what the budget is given for; the Context holds the other formats too.
    :raises BadInput: a page, the question, the budget or an engine's name cannot be used.
    """
    _check_format(format)
    options = options or Options()
    settings = load_settings()
    engines = assemble(settings, options, answers=False)
    documents = pages if isinstance(pages, Documents) else read(pages, settings=settings)
    tokens = settings.budget if budget is None else budget
    return prune_documents(documents, without_surrogates(query), tokens, format, options, engines)


def extract(
    query: str,
    pages: Source | Iterable[Source] | Documents,
    budget: int | None = None,
    options: Options | None = None,
) -> list[Passage]:
    """Return the passages that bear on a question, best first; none where nothing does.

    :param budget: tokens of evidence that are looked at; by default that of the settings (4,096).
    """
    options, settings = options or Options(), load_settings()
    engines = assemble(settings, options)
    query = without_surrogates(query)
    documents = pages if isinstance(pages, Documents) else read(pages, settings=settings)
    tokens = settings.budget if budget is None else budget
    context = prune_documents(documents, query, tokens, "html", options, engines)
    tagged = segments(context.kept, {tree.document: tree for tree in documents.trees})
    chosen = run(lambda: _extract(engines, query, tagged)) or []
    by_tag = {one.tag: one for one in tagged}
    return [Passage(one.text, (one.span,), one.score, one.label) for one in (by_tag[tag] for tag in chosen)]


async def _extract(engines: Engines, query: str, tagged: Any) -> list[int] | None:
    return await engines.extractor.extract(query, tagged)


class Choices(TypedDict, total=False):
    """What :func:`ask` and its kin may be told besides the question and the pages."""

    search: str
    index: Index | str | Path | Sequence[Index | str | Path]
    retrieval: Retrieval | None
    budget: int | None
    options: Options | None


async def astream(
    question: str, pages: Source | Iterable[Source] | Documents | None = None, **choices: Unpack[Choices]
) -> AsyncIterator[Event]:
    """Answer a question as a stream of events, ending in ``done``.

    :param pages: one page or several, or what :func:`read` returned; without pages and indexes the web is searched.
    :param search: providers separated by commas, as ``searxng:http://localhost:8888,wikipedia``; by default those of
        the settings. With ``pages``, both are used.
    :param index: one index or several, opened or by their folders; alone, or with pages and a search.
    :param retrieval: how indexes are asked.
    :param budget: tokens of evidence; by default as the model's window allows, or that of the settings (4,096).
    :param options: engines and run choices.
    """
    async with aclosing(_stream(question, pages, choices)) as events:
        async for event in events:
            yield event


async def _stream(
    question: str,
    pages: Source | Iterable[Source] | Documents | None,
    choices: Choices,
    chat: Turns | None = None,
) -> AsyncGenerator[Event, None]:
    """See :func:`astream`."""
    from ..answer.from_web import answer_from_web
    from ..answer.run import Asked
    from ..answer.write import answer_from  # here: cleaning and pruning do without them

    for name in set(choices) - set(Choices.__annotations__):
        raise TypeError(f"there is no choice {name!r}; there are: {', '.join(Choices.__annotations__)}")
    settings, options = load_settings(), choices.get("options") or Options()
    options = replace(options, search=choices["search"]) if choices.get("search") else options
    maker = Maker(settings, options)
    engines = engines_of(maker)
    index = choices.get("index", ())
    indexes = [index] if not isinstance(index, Sequence) or isinstance(index, str) else list(index)
    none = pages is None or (isinstance(pages, tuple | list) and not pages)
    web = web_of(maker, engines) if options.search or (none and not indexes) else None
    documents: Documents | None = pages if isinstance(pages, Documents) else None
    if not none and documents is None:
        documents = await _read_quietly(cast(Any, pages), settings)
    budget = choices.get("budget")
    if budget is None and settings.budget != Settings().budget:
        budget = settings.budget
    asking = await _asking(indexes, choices.get("retrieval"), settings, options) if indexes else None
    asked = Asked(without_surrogates(question), budget, options, chat=chat, indexes=asking)
    if web is not None:
        events: AsyncIterator[Event] = answer_from_web(asked, engines, web, documents)
    else:
        events = answer_from(documents or Documents([]), asked, engines)
    async for event in events:
        yield event


async def _asking(
    indexes: Sequence[Index | str | Path], retrieval: Retrieval | None, settings: Settings, options: Options
) -> Indexes:
    from ..index.find import Indexes  # here: most calls ask no index
    from .index import opened

    return Indexes(await in_a_thread(lambda: opened(indexes, settings, options)), retrieval)


async def _read_quietly(pages: Source | Iterable[Source], settings: Settings) -> Documents:
    return await in_a_thread(lambda: read(pages, strict=False, keep=True, settings=settings))


def ask(
    question: str, pages: Source | Iterable[Source] | Documents | None = None, **choices: Unpack[Choices]
) -> Answer:
    """Answer a question from pages, indexes or the web, with citations that are checked against the pages.

    Without a model the answer is made of quotes. Works inside notebooks too.

    :param pages, search, index, retrieval, budget, options: see :func:`astream`.
    :raises NothingFound: nothing bears on the question.
    :raises OutsideFailed: no search provider answered, or no page could be read.
    """
    return run(lambda: _last(_stream(question, pages, choices)))


async def _last(events: AsyncGenerator[Event, None]) -> Answer:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, DoneEvent):
                return event.answer
    raise RuntimeError("the pipeline ended without an answer")


class Chat(Turns):
    """A conversation: each question may lean on those before, and what was cited before stays citable.

    >>> chat = Chat()
    >>> chat.ask("How deep is the stilling well?", search="local:examples/site").text  # doctest: +SKIP
    """

    def ask(
        self, question: str, pages: Source | Iterable[Source] | Documents | None = None, **choices: Unpack[Choices]
    ) -> Answer:
        """Answer the next question; see :func:`ask`."""
        return run(lambda: _last(_stream(question, pages, choices, self)))

    async def astream(
        self, question: str, pages: Source | Iterable[Source] | Documents | None = None, **choices: Unpack[Choices]
    ) -> AsyncIterator[Event]:
        """Answer the next question as a stream of events; see :func:`astream`."""
        async with aclosing(_stream(question, pages, choices, self)) as events:
            async for event in events:
                yield event


def search(query: str | SearchRequest, provider: str = "") -> Results:
    """Search, and return hits with warnings, cost and what is left of the provider's rate.

    :param query: the keywords, or a whole request with its filters.
    :param provider: specs separated by commas, as ``searxng:http://localhost:8888,wikipedia``; by default those of
        the settings. Several are asked at once and fused; no page comes twice.
    :raises BadInput: no provider is named, it needs a key, or the request cannot be asked.
    :raises OutsideFailed: no provider answered.

    >>> search("stilling well", "local:examples/site").hits[0].title  # doctest: +SKIP
    """
    request = SearchRequest(query) if isinstance(query, str) else query
    request = replace(request, query=without_surrogates(request.query))
    found = Maker(load_settings(), Options(search=provider)).search()
    return run(lambda: found.search(request))


def _check_format(format: str) -> None:
    if format not in _FORMATS:
        raise BadInput(f"no format is called {format!r}; there are: {', '.join(_FORMATS)}", subject=format)
