"""`ask`, `astream`, `Chat` and `search`, with async twins: answers from pages, indexes and the web, and search hits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack

from ..answer.chat import Conversation
from ..core.errors import BadInput
from ..core.events import Event, answer_of
from ..core.options import Options, WebOptions
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..core.text.near import did_you_mean
from ..core.types import Answer, Message, Results, SearchRequest
from ..engines import SharedEngines, answer_engines, search_engine, web_engines
from ..evidence.documents import Documents
from ..pages.clean.parse import without_surrogates
from ..pages.sources import Source
from .arguments import check_choices, question_of
from .async_api import aread

if TYPE_CHECKING:
    from ..index.terms import Retrieval
    from ..record.player import Player
    from ..record.recorder import Recorder
    from .index import Index


Pages: TypeAlias = "Source | Iterable[Source] | Documents | None"
"""The pages for a question: one or several sources, documents that were read before, or none."""


class Choices(TypedDict, total=False):
    """The optional arguments of :func:`ask`, :func:`astream` and :class:`Chat`; see :func:`astream`."""

    search: str
    index: Index | str | Path | Sequence[Index | str | Path]
    retrieval: Retrieval | None
    budget: int | None
    options: Options | None
    settings: Settings | None


class Taped(Protocol):
    """A run that is recorded or replayed; see :mod:`prunus.api.runs`."""

    recorder: Recorder | Player
    """Intercepts every call from the engines to the outside: records it, or answers it from the record."""

    def start(self, question: str, options: Options, budget: int | None, documents: Documents | None) -> None:
        """Note the question and the choices of the run, before its first event."""
        ...

    def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Return the events of the run, passed through."""
        ...


async def astream(question: str, pages: Pages = None, **choices: Unpack[Choices]) -> AsyncIterator[Event]:
    """Answer a question as a stream of events, ending in ``done``.

    :param pages: one page or several, or the result of :func:`read`; without pages and indexes the web is searched.
    :param search: search providers separated by commas, as ``searxng:http://localhost:8888,wikipedia``; by default
        those of the settings. With ``pages``, both the pages and the search are used.
    :param index: one index or several, as :class:`Index` objects or folders; can be combined with pages and a search.
    :param retrieval: how to retrieve from the indexes.
    :param budget: tokens of evidence; by default that of the settings where it is set there, else as many as fit the
        model's window (4,096 without a model).
    :param options: engines and other choices of this call.
    :param settings: by default those of ``prunus.toml`` and the environment.
    :raises TypeError: an argument is unknown.
    """
    async with aclosing(stream(question, pages, choices)) as events:
        async for event in events:
            yield event


async def stream(
    question: str,
    pages: Pages,
    choices: Choices,
    chat: Conversation | None = None,
    taped: Taped | None = None,
    shared: SharedEngines | None = None,
) -> AsyncGenerator[Event, None]:
    """Answer a question; the library, the command line and batches all call this function.

    :param choices: see :func:`astream`.
    :param chat: the earlier turns; this turn is added to it.
    :param taped: records the run, or replays it.
    :param shared: engines that other answers with the same settings share.
    """
    from ..answer.run import Asked
    from ..answer.write import answer_from, answer_from_web  # here: `clean` and `prune` load no module of answers

    for name in set(choices) - set(Choices.__annotations__):
        hint = did_you_mean(name, Choices.__annotations__)
        raise TypeError(f"unknown argument {name!r}; the arguments are: {', '.join(Choices.__annotations__)}{hint}")
    question = question_of(question, pages, "ask(question, pages)")
    check_choices(choices.get("budget"), choices.get("options"), choices.get("settings"))
    settings, options = choices.get("settings") or load_settings(), choices.get("options") or Options()
    options = replace(options, search=choices["search"]) if choices.get("search") else options
    options = replace(options, web=_web_options(options.web, settings))
    index = choices.get("index", ())
    indexes = list(index) if isinstance(index, Sequence) and not isinstance(index, str) else [index]
    no_pages = pages is None or (isinstance(pages, tuple | list) and not pages)
    by_search = bool(options.search) or (no_pages and not indexes)
    recorder = taped.recorder if taped is not None else None
    engines = await in_a_thread(  # the first call reads weights from disk
        lambda: answer_engines(settings, options, web=by_search, recorder=recorder, shared=shared)
    )
    documents: Documents | None = None
    if isinstance(pages, Documents):
        documents = pages
    elif pages is not None and not no_pages:
        documents = await aread(pages, strict=False, keep=True, settings=settings)
    budget = choices.get("budget")
    if budget is None and settings.budget != Settings().budget:
        budget = settings.budget  # a budget that the user set holds, whatever the model's window
    opened_indexes = None
    if indexes:
        from ..index.evidence import Indexes  # here: most calls use no index
        from .index import opened

        opened_indexes = Indexes(
            await in_a_thread(lambda: opened(indexes, settings, options)), choices.get("retrieval")
        )
    asked = Asked(question, budget, options, chat=chat, indexes=opened_indexes)
    if by_search:
        events = answer_from_web(asked, engines, documents)
    else:
        events = answer_from(documents or Documents([]), asked, engines)
    if taped is not None:
        taped.start(asked.question, options, budget, documents)
        events = taped.events(events)
    async for event in events:
        yield event


def _web_options(given: WebOptions, settings: Settings) -> WebOptions:
    """Return the options of a web search; what the caller leaves at its default follows the setting ``web_options``.

    :raises BadInput: the setting names no option, or its value is of another type.
    """
    plain = WebOptions()
    chosen: dict[str, Any] = {}
    known = [field.name for field in fields(WebOptions)]
    for name, value in settings.web_options.items():
        if name not in known:
            raise BadInput(f"web_options: {name} is no option{did_you_mean(name, known)}", subject="web_options")
        default = getattr(plain, name)
        kind = list if isinstance(default, tuple) else type(default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadInput(f"web_options: {name} = {value!r} is not of type {kind.__name__}", subject="web_options")
        if getattr(given, name) == default:
            chosen[name] = value
    return replace(given, **chosen)


def ask(question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
    """Answer a question from pages, indexes or the web, with citations that are checked against the pages.

    Without a model the answer consists of quotes. Works inside notebooks, too.

    :param pages, search, index, retrieval, budget, options, settings: see :func:`astream`.
    :raises NothingFound: nothing bears on the question.
    :raises OutsideFailed: no search provider answered, or no page could be read.
    """
    return run(lambda: answer_of(stream(question, pages, choices)))


async def aask(question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
    """Answer a question without blocking the event loop; see :func:`ask`. Cancelling it cancels its requests."""
    return await answer_of(stream(question, pages, choices))


class Chat(Conversation):
    """A conversation: a question may refer to earlier turns, and passages that were cited before stay citable.

    >>> chat = Chat()
    >>> chat.ask("How deep is the stilling well?", search="local:examples/site").text  # doctest: +SKIP
    """

    def ask(self, question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
        """Answer the next question; see :func:`ask`."""
        return run(lambda: answer_of(stream(question, pages, choices, self)))

    async def aask(self, question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
        """Answer the next question without blocking the event loop; see :func:`aask`."""
        return await answer_of(stream(question, pages, choices, self))

    async def astream(self, question: str, pages: Pages = None, **choices: Unpack[Choices]) -> AsyncIterator[Event]:
        """Answer the next question as a stream of events; see :func:`astream`."""
        async with aclosing(stream(question, pages, choices, self)) as events:
            async for event in events:
                yield event


def search(query: str | SearchRequest, provider: str = "", settings: Settings | None = None) -> Results:
    """Search, and return hits with warnings, cost and the rest of the provider's rate limit.

    :param query: the keywords, or a request with filters.
    :param provider: specs separated by commas, as ``searxng:http://localhost:8888,wikipedia``; by default those of
        the settings. Several providers are called at the same time and their hits fused, each page once.
    :raises BadInput: no provider is named, a provider needs a key, or no provider can handle the request.
    :raises OutsideFailed: no provider answered.

    >>> search("stilling well", "local:examples/site").hits[0].title  # doctest: +SKIP
    """
    return run(lambda: asearch(query, provider, settings))


async def asearch(query: str | SearchRequest, provider: str = "", settings: Settings | None = None) -> Results:
    """Search without blocking the event loop; see :func:`search`. Cancelling it cancels its requests."""
    request = SearchRequest(query) if isinstance(query, str) else query
    if not isinstance(request, SearchRequest):
        raise BadInput(f"a search is for text or a SearchRequest, not {type(query).__name__}", subject="query")
    request = replace(request, query=without_surrogates(request.query))
    engine = await in_a_thread(lambda: search_engine(settings or load_settings(), Options(search=provider)))
    return await engine.search(request)


async def found_pages(
    question: str, search: str = "", options: Options | None = None, settings: Settings | None = None
) -> Documents:
    """Search for a question, and return the pages from which :func:`prunus.ask` would answer it, best first.

    :param search: search providers separated by commas; by default those of the settings.
    :raises NothingFound: there is no hit.
    :raises OutsideFailed: no provider answered, or no page could be read.
    """
    from ..answer.find_pages import FoundPages, Search, find_pages, plan_search  # here: they load asyncio
    from ..answer.trace import StageTimer

    question = question_of(question, None, "found_pages(question)")
    check_choices(None, options, settings)
    settings, chosen = settings or load_settings(), options or Options()
    options = replace(chosen, search=search or chosen.search, web=replace(chosen.web, always=True))
    web = await in_a_thread(lambda: web_engines(settings, options))
    stages = StageTimer(web.meter, options.trace)
    result = FoundPages()
    wanted = Search([Message("user", question)], web, options.web, stages)
    result.plan, failed = await plan_search(wanted)
    if failed:
        result.failures["planner"] = failed
    async for _ in find_pages(wanted, result):
        pass
    return Documents(result.trees[: options.web.pages], result.failures)
