"""The routes of jobs: long work on indexes, that is given to the server and looked at later."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final, Literal

from fastapi import APIRouter, FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from .errors import RequestRefused
from .inputs import Caller
from .queue import JobRecord
from .routes import NO_BUFFER, REFUSALS, SILENCE
from .server import Server

_ID: Final = re.compile(r"[0-9a-f]{32}")
_LOOK: Final = 0.5
"""Seconds between two looks at a job whose progress is streamed."""
_SILENCE: Final = 15.0
"""Seconds without progress after which a stream says that it lives."""


class DocumentFate(BaseModel):
    """What became of a document of a job."""

    id: str
    fate: Literal["", "added", "unchanged", "removed", "failed", "left"] = Field(
        description="Empty while it waits; `left` where the job failed before its turn."
    )
    failure: str = Field("", description="Why it failed, in one line.")


class JobReply(BaseModel):
    """A job and its progress."""

    id: str
    kind: Literal["add", "remove", "delete"]
    index: str = Field(description="Name of the index.")
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = Field(
        description="`done` also where single documents failed; `failed` where the job could not go on."
    )
    made: str = Field(description="UTC time, ISO 8601.")
    started: str
    ended: str = Field(description="Empty until the job has ended.")
    error: str = Field(description="Why the job failed, in one line.")
    of: int = Field(description="Documents of the job.")
    done: int = Field(description="Documents that it is done with.")
    added: int
    unchanged: int
    removed: int
    failed: int


class JobDetail(JobReply):
    """A job with each of its documents."""

    documents: list[DocumentFate] = Field(
        description="Of a cancelled job only those that it is done with; what is left is only counted, in `of`."
    )


class JobList(BaseModel):
    """The newest jobs of a key, the newest first."""

    jobs: list[JobReply]


def job_of(record: JobRecord) -> JobReply:
    """Return a job as clients see it."""
    counts = record.counts
    of = sum(counts.values())
    return JobReply(
        id=record.id,
        kind=record.kind,
        index=record.name,
        state=record.state,
        made=record.made,
        started=record.started,
        ended=record.ended,
        error=record.error,
        of=of,
        done=of - counts.get("", 0) - counts.get("left", 0),
        **{fate: counts.get(fate, 0) for fate in ("added", "unchanged", "removed", "failed")},
    )


def add_jobs(app: FastAPI, server: Server) -> None:
    """Add the routes to an application."""
    routes = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=REFUSALS)
    queue = server.queue

    async def found(id: str, caller: str) -> JobRecord:
        record = await server.workers.lookup(partial(queue.find, caller, id)) if _ID.fullmatch(id) else None
        if record is None:
            raise _unknown(id)
        return record

    @routes.get("")
    async def jobs(caller: Caller) -> JobList:
        """List the newest hundred jobs of the key, the newest first; a hundred ended ones are kept for seven days."""
        return JobList(jobs=[job_of(record) for record in await server.workers.lookup(partial(queue.of, caller))])

    @routes.get("/{id}")
    async def job(id: str, caller: Caller) -> JobDetail:
        """Show a job: its state, its progress, and what became of each document."""
        record = await found(id, caller)
        fates = await server.workers.lookup(partial(queue.fates, id))
        documents = [DocumentFate(id=fate.id, fate=fate.fate, failure=fate.failure) for fate in fates]
        return JobDetail(**job_of(record).model_dump(), documents=documents)

    @routes.delete("/{id}")
    async def cancel(id: str, caller: Caller) -> JobReply:
        """Cancel a job: what it has added stays, and can be asked; what is left is not added.

        A running job ends after the documents that it has begun. A job that has ended stays as it is.
        """
        record = await server.workers.lookup(partial(queue.cancel, caller, id)) if _ID.fullmatch(id) else None
        if record is None:
            raise _unknown(id)
        return job_of(record)

    @routes.get("/{id}/events", response_class=StreamingResponse, responses={200: {"content": _EVENTS}})
    async def events(id: str, caller: Caller) -> StreamingResponse:
        """Stream the progress of a job: `progress` at each change, and `done` at the end."""
        first = await found(id, caller)
        return StreamingResponse(_events(first), media_type="text/event-stream", headers=NO_BUFFER)

    async def _events(record: JobRecord) -> AsyncIterator[str]:
        ends = time.monotonic() + server.options.seconds
        shown, at = None, time.monotonic()
        while True:
            current = job_of(record)
            if current.ended:
                yield _event("done", current)
                return
            if current != shown:
                yield _event("progress", current)
                shown, at = current, time.monotonic()
            elif time.monotonic() - at > _SILENCE:
                yield SILENCE
                at = time.monotonic()
            if time.monotonic() > ends or server.runner.stopping:  # the client asks again
                return
            await asyncio.sleep(_LOOK)
            again = await server.workers.lookup(partial(queue.find, record.owner, record.id))
            if again is None:
                return
            record = again

    app.include_router(routes)


_EVENTS: Final = {"text/event-stream": {"schema": {}, "example": 'event: progress\ndata: {"of": 9, "done": 3}'}}


def _event(name: str, job: JobReply) -> str:
    record: dict[str, Any] = job.model_dump()
    return f"event: {name}\ndata: {json.dumps(record, ensure_ascii=False)}\n\n"


def _unknown(id: str) -> RequestRefused:
    return RequestRefused(404, f"there is no job {id[:40]!r}", param="id")
