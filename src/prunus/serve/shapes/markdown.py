"""``GET /md?url=ADDRESS``: a page as Markdown, its tokens in ``x-markdown-tokens``, as sites do that serve Markdown."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import Response

from ...core.errors import BadInput, PrunusError
from ...core.sync import in_a_thread
from ..background import LargeRoute
from ..inputs import Caller, budget_of
from ..routes import markdown_reply
from ..server import Server
from .reading import REFUSED, Shape


def add_markdown(app: FastAPI, server: Server) -> None:
    """Add the route to an application."""
    shape = Shape(server)
    routes = APIRouter(tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    @routes.get("/md", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
    async def markdown(
        request: Request,
        caller: Caller,
        url: Annotated[str, Query(min_length=1, max_length=4096)],
        question: Annotated[str, Query(max_length=20_000)] = "",
        budget: Annotated[int | None, Query(ge=1)] = None,
    ) -> Response:
        """Return a page's main content, or with a question its evidence within a budget."""
        [address] = shape.check_addresses([url], "url")
        tokens = budget_of(budget, server.options)
        if budget is not None and not question.strip():
            raise BadInput("a budget needs a question: without one the whole page is given", subject="budget")

        async def work() -> Response:
            [read] = await shape.read([address])
            if isinstance(read, PrunusError):
                raise read

            def written() -> Response:
                asked = question.strip()
                text = shape.pruned(read, asked, tokens, "markdown").output if asked else read.written("markdown")
                return markdown_reply(text, server)

            return await in_a_thread(written)

        return await shape.during(request, caller, work)

    app.include_router(routes)
