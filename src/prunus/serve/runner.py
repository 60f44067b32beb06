"""Work on the jobs of indexes, in threads of their own beside those of requests.

A job goes on where it was left: documents that have a fate are not taken up again, and documents that were stored
before a crash are seen to be unchanged. The tree is updated once, at the end: it is that of a run without a crash.
A job that is cancelled keeps what it has added, and the tree covers it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from ..api.index import Index
from ..core.errors import PrunusError, StoreFailed, one_line
from ..core.settings import Settings
from ..core.types import Page
from ..pages.sources import Source
from .errors import note_bug
from .mask import Mask
from .options import ServeOptions
from .queue import Fate, InputDocument, JobRecord, JobState, Queue
from .user_indexes import CreatedIndexes, Full

log = logging.getLogger("prunus.serve.jobs")

_GROUP: Final = 8
"""Documents that are read and stored together; a cancelled job ends after them."""
_IDLE: Final = 2.0
"""Seconds after which a worker looks again for a job: of another server, or of one that is gone."""
_MIB: Final = 1024 * 1024
_SLICE: Final = 5.0
"""Seconds of work after which a job gives the worker to the next one."""
_PAUSE: Final = 5.0
"""Seconds before a job goes on whose index or state could not be written."""
_SLOW: Final = 10.0
"""Seconds of a group from which on its failed hosts count as slow."""
_HOST_FAILURES: Final = 5
"""Slow failures after which a job asks a host no more."""


class _Ended(Exception):
    """The job goes no further in this worker.

    :param told: ``cancel``, ``lost``, ``stop`` where the server ends, or ``turn`` where it is the next job's turn.
    """

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


class _Spent:
    """What a job has cost this server: seconds of work, and slow failures by host."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.failures: Counter[str] = Counter()


class Runner:
    """The workers of one server.

    :param queue, created: the server's state.
    """

    def __init__(
        self, queue: Queue, created: CreatedIndexes, settings: Settings, options: ServeOptions, mask: Mask
    ) -> None:
        self._queue, self._created, self._mask = queue, created, mask
        self._settings, self._options = settings, options
        self._wake = threading.Event()
        self._stopping = False  # no event: a signal handler sets it, and must wait for no lock
        self._threads: list[threading.Thread] = []
        self._living: set[str] = set()
        self._spent: dict[str, _Spent] = {}

    def start(self) -> None:
        """Start the workers, where there can be jobs."""
        if not self.needed:
            return
        for _ in range(self._options.jobs):
            # a daemon: an update of a large tree cannot be stopped, and the process does not wait for it
            thread = threading.Thread(target=self._work, name="prunus-job", daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def needed(self) -> bool:
        """Whether there can be jobs: clients can change an index, and this server does not leave them to others."""
        return bool(self._options.jobs and (self._created.home or self._options.writable))

    def wake(self) -> None:
        """Tell the workers that there is a new job."""
        self._wake.set()

    @property
    def stopping(self) -> bool:
        """Whether the server stops."""
        return self._stopping

    def begin_stop(self) -> None:
        """Tell the workers to end after the documents that they have begun; a signal handler may call this."""
        self._stopping = True

    async def stop(self, seconds: float) -> None:
        """Stop the workers after the documents that they have begun; their jobs wait for another server.

        :param seconds: to wait for them at most; a job that is cut off then goes on when its lease has run out.
        """
        self.begin_stop()
        self._wake.set()
        ends = time.monotonic() + seconds
        while self.running and time.monotonic() < ends:
            await asyncio.sleep(0.05)

    @property
    def running(self) -> bool:
        """Whether a worker is at work still."""
        return any(thread.is_alive() for thread in self._threads)

    def place(self, place: str) -> str:
        """Return where the index of a job is, as `prunus.Index.open` takes it."""
        return self._options.indexes[place[1:]] if place.startswith("=") else self._created.place(place)

    def _can(self, place: str) -> bool:
        """Tell whether the index of a job can be changed from here."""
        return place[1:] in self._options.writable if place.startswith("=") else bool(self._created.home)

    # --- one worker --------------------------------------------------------------------------

    def _work(self) -> None:
        worker = secrets.token_hex(8)
        self._living.add(worker)
        while not self._stopping:
            self._wake.clear()
            try:
                job = self._queue.claim(worker, self._can, self._living)
                if job is not None:
                    self._do(job, worker)
                    continue
            except PrunusError as error:
                log.error("jobs cannot go on: %s", error)
            except Exception as error:  # a bug ends no worker
                note_bug(error, "a worker of jobs")
            self._wake.wait(_IDLE)

    def _do(self, job: JobRecord, worker: str) -> None:
        """Work on a job until it has ended, or is another worker's."""
        started = time.monotonic()
        state: JobState = "done"
        error = ""
        with self._leased(job, worker) as lost:
            try:
                self._perform(job, worker, lost)
            except _Ended as end:
                if end.told == "lost":
                    self._spent.pop(job.id, None)
                    return
                if end.told in ("stop", "turn"):
                    self._queue.release(job.id, worker)
                    return
                state = "cancelled"
            except StoreFailed as caught:
                # what failed may come back, and the job has done nothing wrong. Where even this cannot be noted, the
                # lease runs out
                log.error("job %s: %s; it goes on in %g s", job.id, caught, _PAUSE)
                self._queue.release(job.id, worker, _PAUSE)
                return
            except PrunusError as caught:
                if job.kind == "delete":  # the data must not stay
                    self._postpone(job, worker, str(caught))
                    return
                state, error = "failed", self._mask.text(one_line(str(caught), longest=500))
            except Exception as caught:
                note_bug(caught, f"job {job.id}")
                if job.kind == "delete":
                    self._postpone(job, worker, type(caught).__name__)
                    return
                state, error = "failed", "an internal error; the server's log has the details"
            self._queue.end(job.id, worker, state, error)
        self._spent.pop(job.id, None)
        log.info("job %s %s %s %.1f s key=%s", job.id, job.kind, state, time.monotonic() - started, job.owner)

    def _postpone(self, job: JobRecord, worker: str, why: str) -> None:
        log.error("job %s: %s; another try in %g s", job.id, why, self._queue.postpone(job.id, worker))

    @contextmanager
    def _leased(self, job: JobRecord, worker: str) -> Iterator[threading.Event]:
        """Renew the lease in the background; the event is set where the lease is lost."""
        over, lost = threading.Event(), threading.Event()

        def renew() -> None:
            while not over.wait(self._queue.lease / 4):
                try:
                    if self._queue.renew(job.id, worker) == "lost":
                        lost.set()
                        return
                except PrunusError as error:  # the state may come back before the lease runs out
                    log.error("a lease cannot be renewed: %s", error)

        thread = threading.Thread(target=renew, name="prunus-lease", daemon=True)
        thread.start()
        try:
            yield lost
        finally:
            over.set()
            thread.join()

    # --- the work ----------------------------------------------------------------------------

    def _perform(self, job: JobRecord, worker: str, lost: threading.Event) -> None:
        if job.kind == "delete":
            self._created.remove(job.place)
            return
        own = not job.place.startswith("=")
        index = Index.open(self.place(job.place), create=own, settings=self._settings)
        told = "cancel" if job.cancelled else ""
        spent = self._spent.setdefault(job.id, _Spent())
        began = spent.seconds
        try:
            while not told:
                if lost.is_set() or self._stopping:
                    raise _Ended("lost" if lost.is_set() else "stop")
                if spent.seconds - began > _SLICE:
                    raise _Ended("turn")
                if spent.seconds > self._options.job_seconds:
                    raise Full(f"the job took longer than {self._options.job_seconds:g} seconds, the limit here")
                group = self._queue.pending(job.id, _GROUP)
                if not group:
                    break
                started = time.monotonic()
                fates = self._added(index, group, spent) if job.kind == "add" else self._removed(index, group)
                spent.seconds += time.monotonic() - started
                told = self._queue.note(job.id, worker, fates)
        except Full:
            index.update()
            raise
        if told == "lost":
            raise _Ended("lost")
        index.update()
        if told:
            raise _Ended(told)

    def _added(self, index: Index, group: list[tuple[int, InputDocument]], spent: _Spent) -> list[Fate]:
        """Add documents to an index without updating the tree; return what became of each.

        A host that let the job wait and failed too often is asked no more.

        :raises Full: the index has as many documents or bytes as it may have.
        """
        options = self._options
        known = {document.id for document in index.store.documents()}
        new = {document.id for _, document in group} - known
        if len(known) + len(new) > options.index_documents:
            raise Full(f"the index is full: it may have {options.index_documents} documents", subject="index")
        if index.store.size() > options.index_mb * _MIB:
            raise Full(f"the index is full: it may have {options.index_mb} MiB", subject="index")
        fates: dict[str, str] = {}
        hosts = {document.id: _host(document) for _, document in group}
        asked = {
            document.id: _source(document)
            for _, document in group
            if spent.failures[hosts[document.id]] < _HOST_FAILURES
        }
        began = time.monotonic()
        failures: dict[str, str] = {}
        if asked:
            failures = index.add(asked, done=fates.__setitem__, strict=False, tree=False).failures
        if time.monotonic() - began > _SLOW:
            spent.failures.update(hosts[id] for id, fate in fates.items() if fate == "failed" and hosts[id])
        refused = {id: f"{hosts[id]} did not answer in time, too often in this job" for id in hosts if id not in asked}
        return [
            Fate(place, document.id, fates.get(document.id, "failed"), self._told(failures | refused, document.id))
            for place, document in group
        ]

    def _removed(self, index: Index, group: list[tuple[int, InputDocument]]) -> list[Fate]:
        """Remove documents from an index without updating the tree.

        A document is named by its id, or as clients see it, without the folder of a file of the operator.
        """
        by_name: dict[str, list[str]] = {}
        for known in index.store.documents():
            for name in {known.id, self._mask.record(known.id, "document")}:
                by_name.setdefault(name, []).append(known.id)
        fates, gone = [], []
        for place, document in group:
            ids = by_name.get(document.id, [])
            if len(ids) == 1:
                gone += ids
                fates.append(Fate(place, document.id, "removed"))
            else:
                why = "several documents have this name" if ids else "there is no such document"
                fates.append(Fate(place, document.id, "failed", why))
        index.store.delete_many(gone)
        return fates

    def _told(self, failures: dict[str, str], id: str) -> str:
        return self._mask.text(one_line(failures.get(id, ""), longest=500))


def _host(document: InputDocument) -> str:
    """Return the host that a document is fetched from; '' where it is not fetched."""
    return (urlsplit(document.url).hostname or "") if document.content is None else ""


def _source(document: InputDocument) -> Source:
    """Return a document as `prunus.Index.add` takes it; never a path."""
    if document.content is None:
        return document.url
    return Page(document.content, url=document.id, final_url=document.url, media_type=document.type)
