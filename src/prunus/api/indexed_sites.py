"""Sites of an index: read them into it, and later ask only for what may have changed.

A site's addresses with what the next visit needs (ETag, Last-Modified, the sitemap's date, digests) are notes of the
index. While a site is read, a queue on disk holds them, so that a run that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ..core.errors import BadInput, OutsideFailed, PrunusError
from ..engines import formats
from ..index.nodes import read_json, read_note
from ..index.terms import PAGE, REPEATED, SITE, SiteReport
from ..pages.links import page_key
from ..web.reader import blocking
from ..web.site.queue import SiteEntry, SiteQueue
from ..web.site.scope import SiteRules
from ..web.site.walk import EARLIER, SiteVisit
from .documents import document_of
from .sites import open_queue, site_walk

if TYPE_CHECKING:
    from ..core.settings import Settings
    from ..index.build import Builder
    from ..index.leaves import DocumentSource
    from ..index.nodes import NodeStore

Done = Callable[[str, str], None]

_KEPT: Final = ("stored", "read", "check")
_AGAIN: Final = ("waiting", "failed")  # pages that the last run could not read, or had no room for


class WithSites(Protocol):
    """What a site needs of an index, which :class:`prunus.Index` has."""

    store: NodeStore
    settings: Settings
    location: str

    @property
    def builder(self) -> Builder:
        """Adds documents."""
        ...

    def known(self) -> dict[str, str]:
        """Return the digest of each document's source, by id."""
        ...

    def update(self) -> None:
        """Update the tree."""
        ...


def sites_of(index: WithSites) -> dict[str, SiteRules]:
    """Return the sites of an index, by where they begin."""
    sites = {}
    for name in index.store.notes(SITE):
        rules = json.dumps(read_note(index.store, name).get("rules", {}))
        try:
            sites[name.removeprefix(SITE)] = read_json(rules, SiteRules)
        except ValueError as error:
            raise BadInput(
                f"{index.location}: damaged (its note {name}); add the site again", subject=index.location
            ) from error
    return sites


def confirmed(store: NodeStore) -> dict[str, str]:
    """Return when each page of the sites of an index was fetched, or confirmed as unchanged, last; by its address."""
    result: dict[str, str] = {}
    for text in store.notes(PAGE).values():
        with suppress(ValueError):  # of another layout, or damaged: the next visit reads the page anew
            entry: SiteEntry = read_json(text, SiteEntry)
            result[entry.url] = max(entry.read_at, result.get(entry.url, ""))
    return result


def repetition_of(notes: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return what most pages of a site repeat, for each page whose chunks leave it out, by its address.

    :param notes: those of an index; damaged ones say nothing.
    """
    result: dict[str, frozenset[str]] = {}
    for name, text in notes.items():
        start = name.removeprefix(SITE)
        with suppress(ValueError, TypeError, AttributeError):
            about = json.loads(text) if name.startswith(SITE) else {}
            lines, base = frozenset(read_json(about.get(REPEATED) or "[]", list[str])), page_key(about.get("base", ""))
            for page in notes if lines else ():
                if page.startswith(f"{PAGE}{start} "):
                    entry: SiteEntry = read_json(notes[page], SiteEntry)
                    if page_key(entry.url) != base:
                        result[entry.url] = lines
    return result


def read_site(
    index: WithSites, start: str, rules: SiteRules, done: Done = lambda id, fate: None, check_all: bool = False
) -> SiteReport:
    """Bring an index up to date with a site: add its pages, replace those that changed, remove those that are gone.

    :param done: called with the id and ``added``, ``changed``, ``unchanged``, ``removed`` or ``failed``.
    :param check_all: ask also for pages that have not changed by their sitemap.
    :raises BadInput: the address is none.
    :raises OutsideFailed: the start, or one page after the other, cannot be read. The next run goes on from there.
    """
    began = time.monotonic()
    start = start.strip()
    queue = open_queue(_queue_file(index, start, rules), start, rules)
    work = _SiteOfIndex(index, start, rules, queue, done, check_all)
    complete = False
    try:
        work.run()
        complete = True
    finally:
        queue.close(remove=complete)
    work.report.seconds = time.monotonic() - began
    return work.report


def _queue_file(index: WithSites, start: str, rules: SiteRules) -> Path:
    folder = Path(index.location)
    location = str(folder.absolute()) if folder.exists() else index.location
    name = hashlib.sha256(json.dumps([location, start, asdict(rules)]).encode()).hexdigest()[:32]
    return index.settings.folder / "sites" / f"{name}.sqlite3"


class _SiteOfIndex:
    """One run over one site of an index."""

    def __init__(
        self, index: WithSites, start: str, rules: SiteRules, queue: SiteQueue, done: Done, check_all: bool
    ) -> None:
        self.report = SiteReport()
        self._index, self._start, self._rules, self._queue, self._done = index, start, rules, queue, done
        self._known = index.known()
        self._notes = index.store.notes(f"{PAGE}{start} ")
        self._site = read_note(index.store, f"{SITE}{start}")
        if not queue.size:
            self._remember()
        for entry in queue.entries("stored", "check"):
            if entry.url not in self._known:  # removed from the index, or the index is another one
                entry.fate = "waiting"
                queue.put(entry)
        index.store.put_notes({f"{SITE}{start}": json.dumps({**self._site, "rules": asdict(rules)})})
        self._walk = site_walk(start, rules, queue, index.settings, check_all)

    def run(self) -> None:
        """Read the site, and write down what the next run needs."""
        index, queue, report = self._index, self._queue, self.report
        with closing(blocking(self._walk.visits())) as visits:
            report.chunks = index.builder.add(self._without_repetition(self._documents(visits)), self._on_the_disk)
        gone = [entry.url for entry in queue.entries("gone", "moved", "duplicate", "noindex", "older")]
        report.removed = [url for url in gone if url in self._known]
        if report.removed:
            index.store.delete_many(report.removed)
        for url in report.removed:
            self._done(url, "removed")
        index.update()
        self._write_notes()
        walk = self._walk
        report.requests, report.bytes = walk.asked, walk.bytes
        report.left_out, report.endless, report.notes = dict(walk.left_out), [*walk.endless], walk.notes

    def _remember(self) -> None:
        """Fill a new queue with what the index knows of the site."""
        entries = []
        for text in self._notes.values():
            try:
                entry: SiteEntry = read_json(text, SiteEntry)
            except ValueError:  # of another layout, or damaged: the page is read anew
                continue
            if entry.fate in _KEPT:
                entry.fate = "check"
            elif entry.fate in _AGAIN:
                entry.fate = "waiting"
            else:
                entry.note = EARLIER if entry.fate in ("gone", "robots") else entry.note
            entries.append(entry)
        self._queue.write_all(sorted(entries, key=lambda entry: (entry.depth, entry.url)))
        for name in ("base", "feeds", REPEATED):
            if self._site.get(name):
                self._queue.put_fact(name, str(self._site[name]))

    def _without_repetition(self, documents: Iterator[DocumentSource]) -> Iterator[DocumentSource]:
        """Yield the documents with what most pages of the site repeat, learned from the first of them.

        The start keeps its chunks, so that what all pages say, a licence perhaps, is still in the index.
        """
        from ..index.repetition import SAMPLE, repeated_lines

        known = self._queue.fact(REPEATED)
        if not known:
            first = list(islice(documents, SAMPLE))
            found = repeated_lines([document.tree.canonical for document in first if document.tree])
            known = json.dumps(found) if found else ""
            self._queue.put_fact(REPEATED, known)
            documents = chain(first, documents)
        repeated, base = frozenset(read_json(known or "[]", list[str])), page_key(self._queue.fact("base"))
        for document in documents:
            yield replace(document, repeated=repeated) if page_key(document.id) != base else document

    def _documents(self, visits: Generator[SiteVisit, None, None]) -> Iterator[DocumentSource]:
        """Yield the documents that are new or have changed."""
        to_html = formats(self._index.settings).to_html
        for visit in visits:
            url = visit.entry.url
            if visit.page is None:
                fate, error = visit.entry.fate, visit.error
                if error is not None and (fate == "failed" or (visit.known and fate != "gone")):
                    self._failed(visit.entry, error, visit.known)
                elif visit.known and visit.entry.fate == "stored":
                    self._unchanged(url)
                continue
            if self._known.get(url) == visit.page.snapshot:
                self._walk.kept(url)
                self._unchanged(url)
                continue
            try:
                document = document_of(url, visit.page, to_html)
            except PrunusError as error:
                self._walk.unreadable(url, str(error))
                self.report.failures.note(error, url)
                self._done(url, "failed")
                continue
            yield document

    def _on_the_disk(self, url: str) -> None:
        self._walk.kept(url)
        changed = url in self._known
        (self.report.changed if changed else self.report.added).append(url)
        self._done(url, "changed" if changed else "added")

    def _unchanged(self, url: str) -> None:
        self.report.unchanged.append(url)
        self._done(url, "unchanged")

    def _failed(self, entry: SiteEntry, error: PrunusError, known: bool) -> None:
        """Note a failure; of a page that is in the index, say from when it is."""
        if known:
            times = f", failed {entry.failures} times in a row" if entry.failures > 1 else ""
            error = OutsideFailed(f"{error}; kept as it was read on {entry.read_at[:10]}{times}", subject=entry.url)
        self.report.failures.note(error, entry.url)
        self._done(entry.url, "failed")

    def _write_notes(self) -> None:
        """Write what the next run needs: only what has changed."""
        start, queue = self._start, self._queue
        notes = {f"{PAGE}{start} {entry.key}": json.dumps(asdict(entry)) for entry in queue.entries()}
        about = {"rules": asdict(self._rules)} | {name: queue.fact(name) for name in ("base", "feeds", REPEATED)}
        changed = {name: text for name, text in notes.items() if self._notes.get(name) != text}
        dropped = dict.fromkeys(self._notes.keys() - notes.keys(), "")
        self._index.store.put_notes({**dropped, **changed, f"{SITE}{start}": json.dumps(about)})
