"""The routes on which the tree of an index is walked: the children of a node, and the nodes that a question takes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Query

from ..api.index import Index
from ..core.text.words import sentence_spans
from ..index.nodes import IndexedDocument, version_of
from ..index.terms import Retrieval
from .errors import RequestRefused
from .inputs import Caller, budget_of, index_place
from .server import Server
from .wire import ErrorResponse, NodesResponse, RetrieveBody, RetrievedResponse

_OPEN: Final = 8
"""Indexes that stay open: opening one of 100,000 nodes takes half a second."""
_LARGEST: Final = 2**53  # ids and places are numbers of JavaScript


@dataclass(frozen=True, slots=True)
class Walk:
    """One state of an index, ready to be walked.

    :param children: the children of each node that has any.
    :param parents: a parent of each node that has any; the first, where it has several.
    :param roots: the nodes without a parent: summaries from the highest layer down, then leaves.
    :param layers: the number of nodes of each layer, the leaves first.
    """

    index: Index
    version: int
    children: dict[int, list[int]]
    parents: dict[int, int]
    roots: list[int]
    layers: list[int]
    documents: dict[str, IndexedDocument]

    def below(self, node: int | None) -> Sequence[int]:
        """Return the children of a node; of None the roots."""
        return self.roots if node is None else self.children.get(node, ())

    def path(self, node: int) -> list[dict[str, int]]:
        """Return the way from a root to a node, each with its place among its siblings."""
        way = [node]
        while (above := self.parents.get(way[-1])) is not None:
            way.append(above)
        way.reverse()
        return [
            {"id": id, "place": self.below(above).index(id)} for id, above in zip(way, [None, *way[:-1]], strict=True)
        ]

    def told(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return nodes as clients see them."""
        result = []
        for node in self.index.store.get(ids):
            document = self.documents.get(node.document)
            result.append(
                {
                    "id": node.id,
                    "layer": node.layer,
                    "tokens": node.tokens,
                    "children": len(self.below(node.id)),
                    "text": node.text,
                    "above": list(node.above),
                    "sentences": [] if node.layer else [node.text[a:b].strip() for a, b in sentence_spans(node.text)],
                    "document": node.document,
                    "title": document.title if document else "",
                    "url": document.url if document else "",
                }
            )
        return result


class Walks:
    """The indexes that were walked last, open; threads may share it."""

    def __init__(self, server: Server) -> None:
        self._server, self._lock = server, threading.Lock()
        self._open: dict[str, Walk] = {}  # the longest unused first

    def walk(self, place: str) -> Walk:
        """Return the tree of an index as it is now.

        :raises BadInput: there is no index.
        """
        with self._lock:  # an index is opened once, however many ask for it
            known = self._open.pop(place, None)
            index = known.index if known else Index.open(place, create=False, settings=self._server.settings)
            walk = known if known and known.version == version_of(index.store) else _walk(index)
            self._open[place] = walk
            while len(self._open) > _OPEN:
                del self._open[next(iter(self._open))]
        return walk


def _walk(index: Index) -> Walk:
    view, children = index.store.view(), index.store.edges()
    parents: dict[int, int] = {}
    for parent, below in children.items():
        for child in below:
            parents.setdefault(child, parent)
    free = [
        (-int(layer), at, int(id))
        for at, (id, layer) in enumerate(zip(view.ids.tolist(), view.layer.tolist(), strict=True))
        if id not in parents
    ]
    layers = [int((view.layer == layer).sum()) for layer in range(int(view.layer.max(initial=-1)) + 1)]
    documents = {document.id: document for document in index.store.documents()}
    return Walk(index, view.version, children, parents, [id for _, _, id in sorted(free)], layers, documents)


def add_trees(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    refusals: dict[int | str, dict[str, Any]] = {status: {"model": ErrorResponse} for status in (400, 401, 403, 404)}
    routes = APIRouter(prefix="/v1/indexes", tags=["indexes"], responses=refusals)
    walks = Walks(server)

    @routes.get("/{name}/nodes")
    async def nodes(
        name: str,
        caller: Caller,
        parent: Annotated[int | None, Query(ge=0, le=_LARGEST)] = None,
        start: Annotated[int, Query(ge=0, le=_LARGEST)] = 0,
        count: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> NodesResponse:
        """Return children of a node of the summary tree, or its roots: some at a time."""
        place = await index_place(name, server, caller, "name")

        def work() -> NodesResponse:
            walk = walks.walk(place)
            if parent is not None and parent not in walk.children and parent not in walk.parents:
                raise RequestRefused(404, f"the index {name[:100]} has no node {parent}", param="parent")
            below = walk.below(parent)
            return NodesResponse(
                index=name,
                parent=parent,
                start=start,
                total=len(below),
                nodes=server.mask.record(walk.told(below[start : start + count])),
                layers=walk.layers,
                documents=len(walk.documents),
            )

        return await server.workers.call(work)

    @routes.post("/{name}/retrieved")
    async def retrieved(name: str, body: RetrieveBody, caller: Caller) -> RetrievedResponse:
        """Return the nodes that a question takes from an index, the best first, each with its path from a root."""
        place = await index_place(name, server, caller, "name")
        budget = budget_of(body.budget, server.options)

        def work() -> RetrievedResponse:
            walk = walks.walk(place)
            how = Retrieval(body.retrieval, tuple(body.documents), since=body.since, max_age=body.max_age)
            result = walk.index.retrieved(body.question, budget or 2000, how)
            score_of = {node.id: score for node, score in zip(result.nodes, result.scores, strict=True)}
            ids = sorted(score_of, key=lambda id: -score_of[id])
            taken = [{**node, "score": score_of[node["id"]], "path": walk.path(node["id"])} for node in walk.told(ids)]
            return RetrievedResponse(
                index=name, way=walk.index.way(how), tokens=result.tokens, nodes=server.mask.record(taken)
            )

        return await server.workers.call(work)

    app.include_router(routes)
