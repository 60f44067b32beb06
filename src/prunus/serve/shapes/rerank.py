"""``POST /v1/rerank`` and ``/v2/rerank``, as Cohere, Jina and Open WebUI's external reranker call them.

Sources: the client ``cohere`` 7.3, both versions of its API; Jina's reranker, whose documents are texts or objects with
``text``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, FastAPI, Request
from pydantic import Field

from ...answer.rank_pages import by_hybrid
from ...core.deadline import check
from ...core.ports import Reranker
from ...core.sync import in_a_thread
from ...engines import NO_RERANKER, installed_reranker, one_engine
from ..background import LargeRoute
from ..inputs import Caller
from ..server import Server
from ..wire import RequestBody, Short, Text
from .reading import REFUSED, Shape

MOST: Final = 1_000
"""Documents of a request at most, as Cohere advises."""
_POINTS: Final = 4_000
"""Most code points of a document that a model reads; the rest is left out, as Cohere does it."""
_AT_ONCE: Final = 32
"""Documents between two looks at the deadline."""
_SLOPE, _BIAS = 0.6, -7.4
"""Turn a score of the own reranker into a chance: fitted on 60 questions with ten passages, one of which answers."""


class RerankDocument(RequestBody):
    """A document as an object."""

    text: str


class RerankBody(RequestBody):
    """Documents to be put into an order for a question."""

    query: Annotated[Text, Field(min_length=1)]
    documents: Annotated[list[str | RerankDocument], Field(min_length=1, max_length=MOST)]
    model: Short = Field("", description="Taken as it is: the operator chose the reranker.")
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False
    max_tokens_per_doc: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Documents are cut at some thousand letters at most."
    )
    max_chunks_per_doc: Annotated[int, Field(ge=1)] | None = Field(None, description="Without effect.")
    priority: int | None = Field(None, description="Without effect.")


def add_rerank(app: FastAPI, server: Server) -> None:
    """Add both routes to an application."""
    shape = Shape(server)
    routes = APIRouter(tags=["shapes"], responses=REFUSED, route_class=LargeRoute)

    async def rerank(body: RerankBody, request: Request, caller: Caller) -> dict[str, Any]:
        """Order documents by how well they answer a question: by the reranker, or without one by words and meaning."""
        texts = [given if isinstance(given, str) else given.text for given in body.documents]
        longest = min(_POINTS, 6 * body.max_tokens_per_doc) if body.max_tokens_per_doc else _POINTS

        async def work() -> tuple[list[float], int]:
            cut = [text[:longest] for text in texts]
            return await in_a_thread(lambda: (_scores(server, body.query, cut), server.tokens("\n".join(cut))))

        scores, tokens = await shape.during(request, caller, work)
        order = sorted(range(len(texts)), key=lambda place: -scores[place])[: body.top_n]
        results: list[dict[str, Any]] = []
        for place in order:
            result: dict[str, Any] = {"index": place, "relevance_score": round(scores[place], 6)}
            if body.return_documents:
                result["document"] = {"text": texts[place]}
            results.append(result)
        return {
            "id": str(uuid.uuid4()),
            "model": body.model or "prunus",
            "results": results,
            "usage": {"total_tokens": tokens},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 0}},
        }

    for version in (1, 2):
        routes.add_api_route(f"/v{version}/rerank", rerank, methods=["POST"], operation_id=f"rerank_v{version}")
    app.include_router(routes)


def _scores(server: Server, query: str, texts: Sequence[str]) -> list[float]:
    """Return one number from 0 to 1 a text: the reranker's, or without one that of words and meaning."""
    settings = server.settings
    spec = settings.reranker or installed_reranker() or NO_RERANKER
    if spec == NO_RERANKER:
        scores = by_hybrid(one_engine("embedder", settings, shared=server.engines))(query, texts)
        return [float(score) / 1.5 for score in scores]  # at most 1 for the words and a half for the meaning
    reranker: Reranker = one_engine("reranker", settings, shared=server.engines)
    parts = []
    for start in range(0, len(texts), _AT_ONCE):
        check()
        parts.append(np.asarray(reranker.rerank(query, texts[start : start + _AT_ONCE]), np.float64))
    numbers = np.concatenate(parts)
    if spec == "prunus":
        numbers = _SLOPE * numbers + _BIAS
    elif numbers.min() >= 0 and numbers.max() <= 1:  # a model that gives chances
        return [float(number) for number in numbers]
    return [float(number) for number in 1 / (1 + np.exp(-np.clip(numbers, -50, 50)))]
