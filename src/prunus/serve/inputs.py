"""Turn the bodies of requests into the arguments of the library; only what the operator enabled gets through."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial
from pathlib import PureWindowsPath
from typing import Annotated, TypeAlias

from fastapi import Depends, Request

from ..answer.chat import Conversation
from ..api.answers import Choices
from ..core.errors import BadInput, PrunusError
from ..core.options import Limits, Options, WebOptions
from ..core.ports import LLM
from ..core.settings import Settings
from ..core.text.near import did_you_mean
from ..core.types import Message, Page
from ..engines import formats, one_engine
from ..index.terms import Retrieval
from ..pages.sources import Source, is_address
from ..web.reader import PageReader
from .errors import RequestRefused
from .keys import NO_KEY
from .options import ServeOptions
from .server import Server
from .wire import AskRequest, PageGiven, PruneRequest


def sources_of(pages: Sequence[PageGiven], options: ServeOptions, param: str = "pages") -> list[Source]:
    """Return the pages of a request as sources; nothing is fetched yet. No source is ever a path.

    :raises BadInput: there are too many pages, or a page cannot be decoded.
    :raises RequestRefused: a page is to be fetched, and the operator does not allow it.
    """
    if len(pages) > options.pages:
        raise BadInput(f"{len(pages)} pages; this server takes {options.pages} at once", subject=param)
    several = len(pages) > 1
    return [
        source_of(page, options, f"{param}.{number}", f"{param}.{number}" if several else "")
        for number, page in enumerate(pages)
    ]


def source_of(given: PageGiven, options: ServeOptions, name: str, called: str = "") -> Source:
    """Return one page of a request as a source; the errors are those of :func:`sources_of`.

    :param name: the place of the page in the request, for errors.
    :param called: how a page without an address and a name is called in the result.
    """
    url = given.url.strip()
    called = PureWindowsPath(given.name.strip()).name or called
    if url and not is_address(url):
        raise BadInput(
            f"{name}.url: {url[:200]} is no address; it begins with http:// or https://", subject=f"{name}.url"
        )
    try:
        media_type = formats().media_type(given.type) if given.type else ""
    except BadInput as error:
        raise BadInput(f"{name}.type: {error}", subject=f"{name}.type") from None
    if given.html is not None:
        return Page(given.html, url=url or called, final_url=url, media_type=media_type)
    if given.base64 is not None:
        try:
            content = base64.b64decode(given.base64, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput(f"{name}.base64: this is no Base64", subject=f"{name}.base64") from None
        return Page(content, url=url or called, final_url=url, media_type=media_type)
    if not options.fetch:
        raise RequestRefused(403, "this server fetches no pages; send their content", param=f"{name}.url")
    return url


def addresses_of(addresses: Sequence[str], options: ServeOptions, field: str) -> list[str]:
    """Return the addresses of a request, stripped.

    :raises BadInput: one is no address, or there are too many.
    :raises RequestRefused: the operator lets clients name no addresses.
    """
    if len(addresses) > options.pages:
        raise BadInput(f"{len(addresses)} pages; this server takes {options.pages} at once", subject=field)
    stripped = [address.strip() for address in addresses]
    for address in stripped:
        if not is_address(address):
            raise BadInput(
                f"{field}: {address[:200]!r} is no address; it begins with http:// or https://", subject=field
            )
    if stripped and not options.fetch:
        raise RequestRefused(403, "this server fetches no pages; the operator switched it off", param=field)
    return stripped


async def fetched(url: str, settings: Settings) -> Page:
    """Fetch a page; cancelling this ends the transfer.

    :raises PrunusError: the address is refused, or the page cannot be fetched.
    """
    async with aclosing(fetched_each([url], settings)) as pages:
        page = await anext(pages)
    if isinstance(page, PrunusError):
        raise page
    return page


async def fetched_each(
    sources: Sequence[str | Page | PrunusError], settings: Settings
) -> AsyncGenerator[Page | PrunusError, None]:
    """Yield the page or the error of each source, in order; addresses are fetched, closing this ends the transfers."""
    async with AsyncExitStack() as stack:
        pages: AsyncGenerator[Page | PrunusError, None] | None = None
        for source in sources:
            if not isinstance(source, str):
                yield source
                continue
            if pages is None:  # the first address: files alone need no reader
                urls = [one for one in sources if isinstance(one, str)]
                pages = await stack.enter_async_context(aclosing(PageReader(settings).fetch_many(urls)))
            yield await anext(pages)


def budget_of(budget: int | None, options: ServeOptions) -> int | None:
    """Return the budget of a request.

    :raises BadInput: it is above the operator's limit.
    """
    if budget is not None and budget > options.budget:
        raise BadInput(f"a budget of {budget} tokens; this server gives {options.budget} at most", subject="budget")
    return budget


def pruning_of(body: PruneRequest) -> Options:
    """Return the options of pruning."""
    return Options(
        max_words=body.max_words,
        breadcrumbs=body.breadcrumbs,
        fill=body.fill,
        links=body.links,
        images=body.images,
        emphasis=body.emphasis,
    )


def reading_settings(settings: Settings, shown_only: bool) -> Settings:
    """Return the settings by which the pages of a request are read."""
    return replace(settings, shown_only=True) if shown_only else settings


def choices_of(body: AskRequest, settings: Settings, options: ServeOptions, places: Sequence[str] = ()) -> Choices:
    """Return the choices of a question.

    :param places: the indexes of the question, from :func:`index_place`.
    :raises BadInput: a search is needed and not enabled, or the budget is too large.
    """
    if (body.search or not (body.pages or places)) and not settings.search:
        field = "search" if body.search else "pages"
        raise BadInput("this server has no search provider; give pages or an index", subject=field)
    web = body.web
    made = Options(
        extractor=f"sentences:{body.quotes}" if body.quotes else "",
        search=settings.search if body.search else "",
        min_confidence=body.min_confidence,
        limits=Limits(
            tokens=int(_least(body.max_tokens, options.tokens)),
            usd=_least(body.max_usd, options.usd),
            seconds=options.seconds,
        ),
        web=WebOptions(
            language=web.language,
            country=web.country,
            time_range=web.time_range,
            topic=web.topic,
            include_domains=tuple(web.include_domains),
            exclude_domains=tuple(web.exclude_domains),
            pages=web.pages,
        ),
    )
    choices = Choices(
        settings=reading_settings(settings, body.shown_only), options=made, budget=budget_of(body.budget, options)
    )
    if places:
        choices["index"] = list(places)
        choices["retrieval"] = Retrieval(documents=tuple(body.documents), since=body.since, max_age=body.max_age)
    elif body.documents or body.since or body.max_age:
        raise BadInput("documents, since and max_age are of indexes; name one in indexes", subject="indexes")
    return choices


def _least(asked: float, allowed: float) -> float:
    """Return the smaller of two limits, where 0 is none."""
    return min(asked, allowed) if asked and allowed else asked or allowed


def caller_of(request: Request) -> str:
    """Return the name of the key of a request, :data:`~prunus.serve.server.NO_KEY` where the server needs none."""
    return getattr(request.state, "caller", NO_KEY)


Caller: TypeAlias = Annotated[str, Depends(caller_of)]
"""The name of the request's key, as an argument of a route."""


def need_scope(request: Request, scope: str) -> None:
    """Refuse a request whose key lacks a scope.

    :raises RequestRefused: 403.
    """
    key = getattr(request.state, "key", None)
    if key is not None and scope not in key.scopes:
        raise RequestRefused(403, f"the key {key.name} may not {scope}")


def judge_of(server: Server) -> LLM:
    """Return the language model of a server as judge of claims, within the limits of one request.

    :raises BadInput: the server has none.
    """
    if not server.settings.llm:
        raise BadInput("this server has no language model; leave judge out", subject="judge")
    model: LLM = one_engine("llm", server.settings, Options(limits=server.options.limits), server.engines)
    return model


async def index_place(name: str, server: Server, caller: str, param: str = "indexes") -> str:
    """Return the place of an index that a caller may ask: one that the operator named, or one that the caller made.

    :param caller: from :func:`caller_of`.
    :param param: the field of the request that names the index.
    :raises RequestRefused: 404; the caller has no such index, whether or not others have one.
    """
    operators = server.options.indexes
    if name in operators:
        return operators[name]
    if result := await server.workers.lookup(partial(server.created.find, caller, name)):
        return server.created.place(result.id)
    raise await no_index(name, server, caller, param)


async def no_index(name: str, server: Server, caller: str, param: str) -> RequestRefused:
    """Return the refusal of a name that stands for no index of the caller."""
    hint = did_you_mean(name, await index_names(server, caller))
    return RequestRefused(404, f"no index is called {name[:100]!r}{hint}", param=param)


async def index_names(server: Server, caller: str) -> list[str]:
    """Return the names of all indexes that a caller may ask: the operator's, then the caller's own."""
    own = await server.workers.lookup(partial(server.created.of, caller)) if server.created.home else []
    return list(dict.fromkeys([*server.options.indexes, *(index.name for index in own)]))


def conversation_of(turns: Sequence[tuple[str, str]], chat: Conversation | None = None) -> Conversation | None:
    """Return earlier turns as a conversation; None where there are none.

    :param turns: pairs of role (``user`` or ``assistant``) and text, the oldest first.
    :param chat: the conversation that gets the turns; by default a new one.
    """
    if not turns:
        return chat
    chat = chat or Conversation()
    chat.turns = [Message("user" if role == "user" else "assistant", text) for role, text in turns]
    return chat
