"""The routes of indexes: make, fill, look at, ask and delete them.

Clients make indexes only where the operator set a place for them. An index belongs to the key that made it; for every
other key it does not exist. The operator's own indexes can be asked by all, and changed where the operator says so.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from ..api.index import Index
from .background import LargeRoute, background_reply
from .errors import RequestRefused
from .inputs import Caller, index_place, no_index
from .jobs import JobReply, job_of
from .keys import now
from .options import INDEX_NAME
from .queue import InputDocument, Kind, ManyJobs, NoSuchIndex
from .routes import ASKED, REFUSALS, reply_to
from .server import Server
from .uploads import FORM, JSON, documents_of, ids_of
from .user_indexes import Full, Taken
from .wire import AskRequest, AskResponse, RequestBody


class IndexGiven(RequestBody):
    """An index to make."""

    name: Annotated[str, Field(pattern=f"^{INDEX_NAME.pattern}$", examples=["handbook"])]


class IndexRecord(BaseModel):
    """An index that the key may ask."""

    name: str
    own: bool = Field(description="Whether the key made it.")
    writable: bool = Field(description="Whether the key may add and remove documents.")
    made: str = Field(description="UTC time, ISO 8601; empty for an index of the operator.")


class IndexInfo(IndexRecord):
    """What an index holds."""

    documents: int
    bytes: int
    nodes: list[int] = Field(description="Nodes of each layer; the first are the leaves.")
    unsummarised: int = Field(description="Nodes whose summary is not written yet.")
    embedder: str
    most_documents: int = Field(description="Documents above which no more are added.")
    most_bytes: int


class IndexList(BaseModel):
    """The indexes that the key may ask."""

    indexes: list[IndexRecord]


class IndexedRecord(BaseModel):
    """A document of an index."""

    id: str
    title: str
    url: str
    language: str
    published: str


class DocumentList(BaseModel):
    """A part of the documents of an index, in the order in which they were added."""

    total: int
    documents: list[IndexedRecord]


_ACCEPTED: Final[dict[int | str, dict[str, Any]]] = {202: {"description": "The job that does it.", "model": JobReply}}
_UPLOADED: Final[dict[int | str, dict[str, Any]]] = {**_ACCEPTED, 415: REFUSALS[400]}
_UPLOAD: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": JSON},
            "multipart/form-data": {"schema": FORM},
        },
    }
}


def add_indexes(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    routes = APIRouter(prefix="/v1/indexes", tags=["indexes"], responses=REFUSALS)
    asking = APIRouter(prefix="/v1/indexes", tags=["indexes"], responses=REFUSALS, route_class=LargeRoute)
    options, created, queue = server.options, server.created, server.queue

    async def listed(caller: str) -> list[IndexRecord]:
        own = await server.workers.lookup(partial(created.of, caller))
        named = [
            IndexRecord(name=name, own=False, writable=name in options.writable, made="") for name in options.indexes
        ]
        return named + [
            IndexRecord(name=index.name, own=True, writable=True, made=index.made)
            for index in own
            if index.name not in options.indexes
        ]

    async def writable(name: str, caller: str) -> str:
        """Return the place of an index in a job, where the caller may change it."""
        if name in options.indexes:
            if name not in options.writable:
                raise RequestRefused(
                    403, f"{name} is an index of the operator, and cannot be changed here", param="name"
                )
            return f"={name}"
        result = await server.workers.lookup(partial(created.find, caller, name))
        if result is None:
            raise await no_index(name, server, caller, "name")
        return result.id

    async def given(caller: str, kind: Kind, name: str, place: str, documents: list[InputDocument]) -> Response:
        """Give a job to the workers."""
        try:
            record = await asyncio.to_thread(queue.add, caller, kind, place, name, documents, options.key_jobs)
        except ManyJobs as error:
            raise RequestRefused(429, str(error), retry_after=10) from None
        except NoSuchIndex:
            raise await no_index(name, server, caller, "name") from None
        server.wake()
        return _accepted(job_of(record))

    async def opened(name: str, caller: str) -> Index:
        place = await index_place(name, server, caller, "name")
        return await server.workers.call(lambda: Index.open(place, create=False, settings=server.settings))

    @routes.get("")
    async def indexes(caller: Caller) -> IndexList:
        """List the indexes that the key may ask: those of the operator, and its own."""
        return IndexList(indexes=await listed(caller))

    @routes.post("", status_code=201, responses={409: REFUSALS[400]})
    async def create(body: IndexGiven, caller: Caller) -> IndexRecord:
        """Make an empty index. It belongs to the key, and no other key can see it."""
        if not created.home:
            raise RequestRefused(403, "clients make no indexes on this server", param="name")
        name = body.name
        if name in options.indexes:
            raise RequestRefused(409, f"there is an index {name} already; choose another name", param="name")
        id = created.new_id()

        def make() -> str:
            # the name last: where the disk is full, there is neither a name nor a job that must be noted
            try:
                created.make_folder(id)
                Index.open(created.place(id), settings=server.settings)
                return created.add(caller, name, now(), options.key_indexes, id).made
            except BaseException:
                created.remove(id)
                raise

        try:
            await server.workers.lookup(partial(created.check, caller, name, options.key_indexes))
            made = await server.workers.call(make)
        except Taken as error:
            raise RequestRefused(409, str(error), param="name") from None
        except Full as error:
            raise RequestRefused(403, str(error), param="name") from None
        return IndexRecord(name=name, own=True, writable=True, made=made)

    @routes.get("/{name}")
    async def info(name: str, caller: Caller) -> IndexInfo:
        """Show what an index holds."""
        index = await opened(name, caller)
        held = await server.workers.call(index.store.info)
        record = next((one for one in await listed(caller) if one.name == name), None)
        if record is None:  # deleted meanwhile
            raise await no_index(name, server, caller, "name")
        return IndexInfo(
            **record.model_dump(),
            documents=held["documents"],
            bytes=held["bytes"],
            nodes=[held["nodes"][layer] for layer in sorted(held["nodes"])],
            unsummarised=held["unsummarised"],
            embedder=held["embedder"],
            most_documents=options.index_documents,
            most_bytes=options.index_mb << 20,
        )

    @routes.delete("/{name}", status_code=202, response_model=None, responses=_ACCEPTED)
    async def delete(name: str, caller: Caller) -> Response:
        """Delete an index of the key. It is gone at once, and its jobs end; the job removes its data."""
        if name in options.indexes:
            raise RequestRefused(403, f"{name} is an index of the operator, and cannot be deleted here", param="name")
        result = await server.workers.lookup(partial(created.find, caller, name))
        try:
            job = await server.workers.lookup(partial(queue.delete_index, result, options.key_jobs)) if result else None
        except ManyJobs as error:
            raise RequestRefused(429, str(error), retry_after=10) from None
        if job is None:
            raise await no_index(name, server, caller, "name")
        server.wake()
        return _accepted(job_of(job))

    @routes.get("/{name}/documents")
    async def documents(
        name: str,
        caller: Caller,
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> DocumentList:
        """List the documents of an index."""
        index = await opened(name, caller)
        result = await server.workers.call(index.store.documents)
        return DocumentList(
            total=len(result),
            documents=[
                IndexedRecord(
                    id=server.mask.record(document.id, "document"),
                    title=document.title,
                    url=server.mask.record(document.url, "url"),
                    language=document.language,
                    published=document.metadata.get("published", ""),
                )
                for document in result[offset : offset + limit]
            ],
        )

    @routes.post(
        "/{name}/documents",
        status_code=202,
        response_model=None,
        responses=_UPLOADED,
        openapi_extra=_UPLOAD,
    )
    async def add(name: str, request: Request, caller: Caller) -> Response:
        """Add documents as a job: JSON with content or addresses, or a form with files.

        A document replaces the one of the same name, unless its content is the same.
        """
        place = await writable(name, caller)  # before the body is read
        if reply := await background_reply(request):
            return reply
        return await given(caller, "add", name, place, await documents_of(request, options))

    @routes.delete("/{name}/documents", status_code=202, response_model=None, responses=_ACCEPTED)
    async def remove(name: str, caller: Caller, id: Annotated[list[str], Query(max_length=1_000)]) -> Response:
        """Remove documents, and every summary made from them, as a job."""
        return await given(caller, "remove", name, await writable(name, caller), ids_of(id))

    @asking.post("/{name}/ask", response_model=AskResponse, responses=ASKED)
    async def ask(name: str, body: AskRequest, request: Request, caller: Caller) -> Response | AskResponse:
        """Answer a question from an index: `/v1/ask` with the index in its address."""
        names = list(dict.fromkeys([name, *body.indexes]))
        return await reply_to(server, body.model_copy(update={"indexes": names}), caller, request)

    app.include_router(routes)
    app.include_router(asking)


def _accepted(job: JobReply) -> Response:
    return JSONResponse(job.model_dump(), 202, {"Location": f"/v1/jobs/{job.id}"})
