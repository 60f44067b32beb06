"""Answers at the public door: from pages, indexes and the web, as a stream of events or whole; and searching."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, Unpack

from ..answer.chat import Conversation
from ..core.events import Event, answer_of
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..core.types import Answer, Results, SearchRequest
from ..engines import Maker, engines_of, web_of
from ..evidence.documents import Documents
from ..pages.clean.parse import without_surrogates
from ..pages.sources import Source
from .pages import read

if TYPE_CHECKING:
    from ..index.terms import Retrieval
    from ..record.recorder import Tape
    from .index import Index

Pages: TypeAlias = "Source | Iterable[Source] | Documents | None"
"""Pages of a question: given, read already, or none."""


class Choices(TypedDict, total=False):
    """What :func:`ask` and its kin may be told besides the question and the pages."""

    search: str
    index: Index | str | Path | Sequence[Index | str | Path]
    retrieval: Retrieval | None
    budget: int | None
    options: Options | None
    settings: Settings | None


class Taped(Protocol):
    """A run that is recorded, or played back; see :mod:`prunus.api.runs`."""

    tape: Tape
    """Stands between the engines and the outside."""

    def start(self, question: str, options: Options, budget: int | None, documents: Documents | None) -> None:
        """Take down what is asked."""
        ...

    def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Pass the events on."""
        ...


async def astream(question: str, pages: Pages = None, **choices: Unpack[Choices]) -> AsyncIterator[Event]:
    """Answer a question as a stream of events, ending in ``done``.

    :param pages: one page or several, or what :func:`read` returned; without pages and indexes the web is searched.
    :param search: providers separated by commas, as ``searxng:http://localhost:8888,wikipedia``; by default those of
        the settings. With ``pages``, both are used.
    :param index: one index or several, opened or by their folders; alone, or with pages and a search.
    :param retrieval: how indexes are asked.
    :param budget: tokens of evidence; by default as the model's window allows, or that of the settings (4,096).
    :param options: engines and run choices.
    :param settings: by default those of ``prunus.toml`` and the environment.
    """
    async with aclosing(stream(question, pages, choices)) as events:
        async for event in events:
            yield event


async def stream(
    question: str, pages: Pages, choices: Choices, chat: Conversation | None = None, taped: Taped | None = None
) -> AsyncGenerator[Event, None]:
    """Answer a question: the one way of the library, the command line and batches.

    :param choices: see :func:`astream`.
    :param chat: earlier turns; takes this one in.
    :param taped: records the run, or plays it back.
    """
    from ..answer.from_web import answer_from_web  # here: cleaning and pruning do without them
    from ..answer.run import Asked
    from ..answer.write import answer_from

    for name in set(choices) - set(Choices.__annotations__):
        raise TypeError(f"there is no choice {name!r}; there are: {', '.join(Choices.__annotations__)}")
    settings, options = choices.get("settings") or load_settings(), choices.get("options") or Options()
    options = replace(options, search=choices["search"]) if choices.get("search") else options
    maker = Maker(settings, options, taped.tape if taped is not None else None)
    engines = engines_of(maker)
    index = choices.get("index", ())
    indexes = list(index) if isinstance(index, Sequence) and not isinstance(index, str) else [index]
    none = pages is None or (isinstance(pages, tuple | list) and not pages)
    web = web_of(maker, engines) if options.search or (none and not indexes) else None
    documents: Documents | None = None
    if isinstance(pages, Documents):
        documents = pages
    elif pages is not None and not none:
        given = pages
        documents = await in_a_thread(lambda: read(given, strict=False, keep=True, settings=settings))
    budget = choices.get("budget")
    if budget is None and settings.budget != Settings().budget:
        budget = settings.budget
    found = None
    if indexes:
        from ..index.find import Indexes  # here: most calls ask no index
        from .index import opened

        found = Indexes(await in_a_thread(lambda: opened(indexes, settings, options)), choices.get("retrieval"))
    asked = Asked(without_surrogates(question), budget, options, chat=chat, indexes=found)
    if web is not None:
        events = answer_from_web(asked, engines, web, documents)
    else:
        events = answer_from(documents or Documents([]), asked, engines)
    if taped is not None:
        taped.start(asked.question, options, budget, documents)
        events = taped.events(events)
    async for event in events:
        yield event


def ask(question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
    """Answer a question from pages, indexes or the web, with citations that are checked against the pages.

    Without a model the answer is made of quotes. Works inside notebooks too.

    :param pages, search, index, retrieval, budget, options, settings: see :func:`astream`.
    :raises NothingFound: nothing bears on the question.
    :raises OutsideFailed: no search provider answered, or no page could be read.
    """
    return run(lambda: answer_of(stream(question, pages, choices)))


class Chat(Conversation):
    """A conversation: each question may lean on those before, and what was cited before stays citable.

    >>> chat = Chat()
    >>> chat.ask("How deep is the stilling well?", search="local:examples/site").text  # doctest: +SKIP
    """

    def ask(self, question: str, pages: Pages = None, **choices: Unpack[Choices]) -> Answer:
        """Answer the next question; see :func:`ask`."""
        return run(lambda: answer_of(stream(question, pages, choices, self)))

    async def astream(self, question: str, pages: Pages = None, **choices: Unpack[Choices]) -> AsyncIterator[Event]:
        """Answer the next question as a stream of events; see :func:`astream`."""
        async with aclosing(stream(question, pages, choices, self)) as events:
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
