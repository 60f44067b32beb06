"""What the shapes share: pages read by their addresses, and what is written of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Request

from ...api.answers import Choices, asearch
from ...api.fill import FillChoices, filled_from
from ...api.pages import Pruner, read_each
from ...core.errors import BadInput, PrunusError, one_line
from ...core.events import answer_of
from ...core.options import Options
from ...core.sync import in_a_thread
from ...core.types import Answer, Hit, Metadata, OutputFormat, Page, SearchRequest
from ...evidence.context import Context
from ...evidence.documents import Documents
from ...pages.metadata import known_metadata
from ...pages.tree import Tree
from ...pages.write.selection import main_part
from ...pages.write.style import Style
from ...pages.write.whole import write_tree
from ..answering import ClientQuestion, events_of
from ..inputs import addresses_of, fetched_each, need_scope
from ..server import Server
from ..work import unless_left

T = TypeVar("T")

REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    kind: {"description": "An error in the form that the clients of this shape read"} for kind in ("4XX", "5XX")
}
"""The errors that the routes of shapes document."""
EVIDENCE: Final = 1_000
"""Tokens of the evidence of a page, in shapes whose requests have no budget."""


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """One page that was read.

    :param address: as it was asked for.
    :param tree: with its main content chosen, where that was asked for.
    """

    address: str
    page: Page
    tree: Tree

    @property
    def metadata(self) -> Metadata:
        """What the page says about itself."""
        return known_metadata(self.tree)

    def written(self, format: OutputFormat, *, links: bool = True, images: bool = False) -> str:
        """Return the main content of the page where it was chosen, else the whole page."""
        style = Style(links=links, images=images, full=format == "html")
        return write_tree(self.tree, format, style, main_part(self.tree))


class Shape:
    """What a shape does with a server: the same functions, limits and rules as the routes of Prunus itself."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def during(self, request: Request, caller: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of work when the turn of a request has come, for as long as its client stays."""

        async def made() -> T:
            return await work()

        return await unless_left(request.receive, self.server.workers.within(made, caller))

    def check_addresses(self, addresses: Sequence[str], field: str) -> list[str]:
        """Return the addresses of a request, stripped; see :func:`~prunus.serve.inputs.addresses_of`."""
        return addresses_of(addresses, self.server.options, field)

    async def read(self, addresses: Sequence[str], *, main: bool = True) -> list[LoadedPage | PrunusError]:
        """Fetch and clean pages; the error of each that cannot be read stands in its place.

        :param main: choose the pages' main content.
        """
        async with aclosing(fetched_each(addresses, self.server.settings)) as pages:
            fetched = [page async for page in pages]

        def cleaned() -> list[LoadedPage | PrunusError]:
            return [
                page if isinstance(page, PrunusError) else self.cleaned(address, page, main)
                for address, page in zip(addresses, fetched, strict=True)
            ]

        return await in_a_thread(cleaned)

    def cleaned(self, address: str, page: Page, main: bool = True) -> LoadedPage | PrunusError:
        """Return a page that was read, or why it could not be; call this in a thread."""
        [tree] = read_each([page], self.server.settings, main)
        return tree if isinstance(tree, PrunusError) else LoadedPage(address, page, tree)

    def pruned(self, read: LoadedPage, question: str, budget: int | None, format: OutputFormat) -> Context:
        """Return the evidence of a page for a question; call this in a thread."""
        pruner = Pruner(Options(links=format == "markdown"), self.server.settings)
        return pruner.prune(Documents([read.tree]), question, budget, format)

    async def hits(self, request: SearchRequest) -> list[Hit]:
        """Return the hits of the operator's search providers.

        :raises BadInput: the operator chose no provider.
        """
        if not self.server.settings.search:
            raise BadInput("this server has no search provider: the operator sets search", subject="query")
        results = await asearch(request, settings=self.server.settings)
        return list(results.hits[: request.count])

    async def answered(self, request: Request, caller: str, question: str, pages: Sequence[Page]) -> Answer:
        """Return the answer to a question from pages that were read.

        :raises RequestRefused: the key may not ask.
        :raises NothingFound: the pages have no answer.
        """
        need_scope(request, "ask")
        choices = Choices(settings=self.server.settings, options=Options(limits=self.server.options.limits))
        events = events_of(self.server, ClientQuestion(question, list(pages), choices, caller=caller), None)
        return await unless_left(request.receive, answer_of(events))

    async def filled(
        self, request: Request, caller: str, schema: Mapping[str, Any], question: str, page: Page
    ) -> Mapping[str, Any]:
        """Return the fields of a JSON schema, filled from a page that was read.

        :raises RequestRefused: the key may not ask.
        :raises BadInput: the schema cannot be used.
        """
        need_scope(request, "ask")
        choices = FillChoices(settings=self.server.settings)
        work = partial(filled_from, schema, [page], question, choices, self.server.engines)
        return (await self.during(request, caller, work)).data

    def line(self, error: PrunusError) -> str:
        """Return an error in one line, without what only the operator may know."""
        return self.server.mask.text(one_line(str(error), longest=500))

    def safe(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a reply without the addresses and folders of the operator."""
        return dict(self.server.mask.record(record))
