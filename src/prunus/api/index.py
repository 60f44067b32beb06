"""`Index`: a tree of summaries over documents; open it, add documents, retrieve evidence, answer questions.

An index stores the settings it was built with, and keeps them: later calls cut, cluster and embed as the first call
did, whatever the settings are by then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput, MissingExtra, OutsideFailed
from ..core.events import answer_of
from ..core.installation import pip_install
from ..core.options import Options
from ..core.ports import Summarizer
from ..core.registry import make_engine
from ..core.settings import Settings, load_settings
from ..core.sync import run
from ..core.types import Answer, OutputFormat, Summary
from ..engines import EngineSet, answer_engines, formats, one_engine, prune_engines
from ..evidence.context import Context
from ..evidence.documents import Documents
from ..evidence.prune import prune as prune_documents
from ..index.nodes import NodeStore, NoIndex, Preparing, read_note
from ..index.store._named import engine_of
from ..index.terms import BUILT, COST, COSTS, PRESETS, Bill, Built, Report, Retrieval, SiteReport, harmless, moment
from ..pages.clean.parse import without_surrogates
from ..pages.sources import Source, is_folder, pages_of
from .arguments import check_choices, question_of
from .cutting import Cutting, build_settings, can_be_shared, identity_of, unpack
from .documents import absolute, each_document, named

if TYPE_CHECKING:
    from ..core.executor import Executor
    from ..index.build import Builder
    from ..index.evidence import Pages
    from ..index.retrieve import Retrieved, Retriever
    from ..web.site.scope import SiteRules


class Index:
    """A tree of summaries over documents, in a folder or a database; see :meth:`open`.

    ``executor`` does the work of :meth:`add`, :meth:`sync` and :meth:`update` that several processes can do: by
    default in this process; ``ProcessExecutor(4)`` of ``prunus.core.executor`` in four. Set it before the first of
    these calls. The index is the same. A program that sets it runs under ``if __name__ == "__main__":``, as processes
    require.
    """

    def __init__(self, store: NodeStore, settings: Settings, options: Options) -> None:
        self.store = store
        self.location = store.location
        stored = read_note(store, BUILT)
        self.built = Built(**{field.name: stored[field.name] for field in fields(Built) if field.name in stored})
        self.options = options
        self._by_name = bool(self.built.named_embedder and not options.embedder)
        if self._by_name:
            self.options = replace(options, embedder=self.built.named_embedder)
        self.settings = replace(settings, clusterer=self.built.clusterer)
        self.executor: Executor | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = True,
        preset: str = "",
        settings: Settings | None = None,
        options: Options | None = None,
    ) -> Index:
        """Open an index, or make an empty one.

        :param path: its folder; or ``postgresql://…``, the address of a database with pgvector, with the schema
            after ``#`` (by default ``prunus``); or its schema, where the setting ``store`` is ``postgres:ADDRESS``;
            or ``lance:PLACE``, a folder or ``s3://bucket/prefix``; or its name, where ``store`` is ``lance:PLACE``.
        :param create: make an empty index where there is none.
        :param preset: ``raptor`` builds a new index as in the paper; '' follows the settings.
        :param options: engines of this call: embedder, tokenizer, llm; and limits on the cost of summaries.
        :raises BadInput: there is no index and ``create`` is false, or it has another version or another preset.
        """
        settings, options = settings or load_settings(), options or Options()
        if preset and preset not in PRESETS:
            raise BadInput(f"unknown preset {preset!r}; the presets are: {', '.join(PRESETS)}", subject=preset)
        wanted = {**PRESETS.get(preset, {})}
        spec = wanted.pop("embedder", "")
        if spec and not options.embedder:
            options = replace(options, embedder=spec)
        engine, at = engine_of(path, settings.store)
        if engine in ("file", "lance"):
            at["exact_nodes"] = settings.exact_nodes
        try:
            store = make_engine("store", engine, **at)
        except NoIndex:
            if not create:
                raise
            built = _built_with(settings, options, preset, wanted)
            embedder = one_engine("embedder", settings, options)
            identity, dimension = identity_of(embedder)
            store = make_engine("store", engine, **at, embedder=identity, dimension=dimension, create=True)
            store.put_notes({BUILT: json.dumps(asdict(built))})
        result = cls(store, settings, options)
        if preset and result.built.preset != preset:
            raise BadInput(
                f"{store.location}: this index was not built with the preset {preset}", subject=store.location
            )
        return result

    # --- engines, made when they are first needed ---------------------------------------------

    @cached_property
    def _engines(self) -> EngineSet:
        return EngineSet(self.settings, self.options)

    @cached_property
    def _embedder(self) -> Any:
        try:
            return self._own_embedder()
        except (BadInput, MissingExtra):
            if not self._by_name or not self._in_the_settings():
                raise
        return self._own_embedder()

    def _in_the_settings(self) -> bool:
        """Take the embedder of the settings if it is that of the index: what the index names may have been moved."""
        named = self.options, self._engines
        self.options = replace(self.options, embedder=self.settings.embedder)
        self._engines = EngineSet(self.settings, self.options)
        try:
            self._own_embedder()
        except (BadInput, MissingExtra):
            self.options, self._engines = named
            return False
        return True

    def _asked_with(self) -> Options:
        """Return the options of a question without options of its own; they name the embedder of the index."""
        self._embedder  # noqa: B018  # finds out which embedder that is
        return self.options

    def _own_embedder(self) -> Any:
        """Return the embedder, if it is that of the index.

        :raises BadInput: it is another one.
        """
        embedder = self._engines.get("embedder")
        identity, dimension = identity_of(embedder)
        if identity != self.store.embedder or dimension not in (0, self.store.dimension):
            named = "name that embedder"
            if self.store.embedder == "static":  # so it was called before
                named = f"those vectors are now the embedder wordllama ({pip_install('wordllama')}): name it"
            raise BadInput(
                f"{self.location}: this index was built with the embedder {self.store.embedder} "
                f"({self.store.dimension} dimensions), not with {identity}; {named}, or build the index anew",
                subject=self.location,
            )
        return embedder

    @cached_property
    def retriever(self) -> Retriever:
        """The retriever of nodes."""
        from ..index.retrieve import Retriever

        return Retriever(self.store, self._embedder, self._engines.get("tokenizer"))

    @cached_property
    def pages(self) -> Pages:
        """The pages of the documents."""
        from ..index.evidence import Pages

        return Pages(self.store)

    @cached_property
    def builder(self) -> Builder:
        """The builder of the tree."""
        from ..index.build import Builder

        settings = build_settings(self.built)
        make = self._engines.get
        embedder, tokenizer, clusterer = self._embedder, make("tokenizer"), make("clusterer")
        builder = Builder(self.store, embedder, tokenizer, clusterer, self._summarizer(), settings)
        if self.executor is not None:
            builder.executor = self.executor
        return builder

    def _summarizer(self) -> Any:
        """Return the summarizer; the replies of a model are stored under ``home``, so that they are paid for once."""
        if not self.pays:
            return self._engines.get("summarizer")

        def made() -> Any:
            from ..index.summarize.llm import Engine

            return Engine(self._engines.get("llm", "summarizer llm"), self.settings.folder / "summaries.sqlite3")

        return LazySummarizer(made)

    @property
    def pays(self) -> bool:
        """Whether a language model writes the summaries."""
        return self.settings.summarizer.partition(":")[0] == "llm"

    # --- documents ---------------------------------------------------------------------------

    def add(
        self,
        documents: Source | Iterable[Source] | Mapping[str, Source],
        *,
        done: Callable[[str, str], None] = lambda id, fate: None,
        strict: bool = True,
        tree: bool = True,
    ) -> Report:
        """Add documents, or replace documents of the same id that have changed; then update the tree.

        A file's id is its absolute path, an address is its own id, a Page's id is its url, a mapping's keys are the
        ids; the id of any other source is the sha256 of its content. Summaries that cost nothing are written at once.

        :param documents: files, folders, addresses, HTML, bytes, Pages; or a mapping from ids to sources.
        :param done: called with the id and ``added`` (it is stored on disk), ``unchanged`` or ``failed``.
        :param strict: raise where a document cannot be read, after the others were added; else only report it.
        :param tree: update the tree; False leaves that to a later :meth:`update`, where many calls follow each other.
        :raises BadInput: there is no document, or with ``strict`` a document cannot be read.
        """
        given = named(documents, self.settings)
        report = Report()
        self._take_in(given, report, done)
        if tree:
            self.update()
        if strict and report.failures:
            raise report.failures.first or BadInput("a document cannot be read")
        return report

    def sync(self, folder: str | Path, done: Callable[[str, str], None] = lambda id, fate: None) -> Report:
        """Bring the index up to date with a folder: add new and changed files, remove deleted ones.

        Documents from outside the folder stay. A file that can no longer be read stays in the index and is reported.
        """
        path = Path(folder)
        if not is_folder(path):
            raise BadInput(f"{folder}: no such folder", subject=str(folder))
        files = {absolute(file): file for file in pages_of(path, formats().suffixes, self.settings.max_files)}
        inside = absolute(path).rstrip(os.sep) + os.sep
        report = Report()
        report.removed = [
            document.id
            for document in self.store.documents()
            if document.id.startswith(inside) and document.id not in files
        ]
        self._take_in(files, report, done)
        if report.removed:
            self.store.delete_many(report.removed)
        self.update()
        return report

    def add_site(
        self, url: str, rules: SiteRules | None = None, *, done: Callable[[str, str], None] = lambda id, fate: None
    ) -> SiteReport:
        """Add the pages of a site; its addresses are their ids. A run that was stopped goes on where it was.

        A site that the index has is brought up to date, by these rules from now on.

        :param url: where the site begins.
        :param rules: which pages are meant; by default those in the folder of ``url``.
        :param done: called with the id and ``added`` (it is stored on disk), ``changed``, ``unchanged``, ``removed`` or
            ``failed``.
        :raises OutsideFailed: the start cannot be read, or one page after the other.
        """
        from ..web.site.scope import SiteRules
        from .indexed_sites import read_site

        return read_site(self, url, rules or SiteRules(), done)

    def sites(self) -> dict[str, SiteRules]:
        """Return the sites of the index, by where they begin."""
        from .indexed_sites import sites_of

        return sites_of(self)

    def sync_sites(
        self, *, check_all: bool = False, done: Callable[[str, str], None] = lambda id, fate: None
    ) -> SiteReport:
        """Bring the sites of the index up to date: ask for what may have changed, and for new pages.

        A page is not asked for where a sitemap says that it has not changed since it was read; others are asked whether
        they have changed (``If-None-Match``, ``If-Modified-Since``). Pages that are gone are removed; those that fail
        otherwise stay.

        :param check_all: do not believe sitemaps.
        :raises BadInput: the index has no site.
        """
        from .indexed_sites import read_site

        sites = self.sites()
        if not sites:
            raise BadInput(f"{self.location}: this index has no site; name a folder", subject=self.location)
        report = SiteReport()
        for start, rules in sites.items():
            report.take(read_site(self, start, rules, done, check_all))
        return report

    def remove(self, ids: str | Sequence[str]) -> list[str]:
        """Remove documents and every summary made from them; return their ids.

        :param ids: ids of documents, paths relative to the working folder, or patterns with ``*``.
        :raises BadInput: a document is not in the index; then none is removed.
        """
        known = self.ids([ids] if isinstance(ids, str) else ids)
        self.store.delete_many(known)
        self.update()
        return known

    def ids(self, given: Sequence[str]) -> list[str]:
        """Return the documents' ids, from exact ids, paths relative to the working folder, or patterns with ``*``.

        :raises BadInput: a document is not in the index.
        """
        known = dict.fromkeys(document.id for document in self.store.documents())
        result = []
        for name in given:
            if "*" in name and name not in known:
                from ..web.fetch.robots import matches  # here: it loads the network

                inside = [id for id in known if matches(f"{name}$", id)]
                if not inside:
                    raise BadInput(
                        f"{self.location}: no document is like {name!r}; see prunus index info", subject=name
                    )
                result += inside
                continue
            id = name if name in known else absolute(Path(name))
            if id not in known:
                raise BadInput(f"{self.location}: there is no document {name!r}; see prunus index info", subject=name)
            result.append(id)
        return list(dict.fromkeys(result))

    def _only(self, how: Retrieval) -> list[str] | None:
        """Return the ids of the documents that are retrieved from; None for all.

        :raises BadInput: there are none.
        """
        ids = self.ids(how.documents) if how.documents else None
        for name, text, date_of in (("since", how.since, self._published), ("max_age", how.max_age, self._fetched)):
            if not text:
                continue
            first = moment(text, name, datetime.now(UTC))
            new = {id for id, date in date_of().items() if date >= first}
            ids = [id for id in (new if ids is None else ids) if id in new]
            if not ids:
                said = "was published" if name == "since" else "was fetched"
                raise BadInput(f"{self.location}: no document {said} since {first}", subject=name)
        return ids

    def _published(self) -> dict[str, str]:
        """Return the date of each document, '' where it does not say it."""
        return {document.id: document.metadata.get("published", "") for document in self.store.documents()}

    def _fetched(self) -> dict[str, str]:
        """Return when each document was fetched; a page of a site, when it was fetched or confirmed last."""
        from .indexed_sites import confirmed  # here: most indexes hold no site

        times = {document.id: document.metadata.get("read_at", "") for document in self.store.documents()}
        return times | {id: max(time, times[id]) for id, time in confirmed(self.store).items() if id in times}

    def known(self) -> dict[str, str]:
        """Return the digest of each document's source, by id."""
        return {document.id: document.digest for document in self.store.documents()}

    def cutting(self) -> Cutting:
        """Return what another process needs to cut documents for this index; see :mod:`.cutting`."""
        options, store = self._asked_with(), self.store
        return Cutting(self.settings, options, self.built, store.embedder, store.dimension, self.location)

    def add_cut(self, documents: Sequence[bytes]) -> int:
        """Add or replace documents that :func:`.cutting.pack` packed, all of them or none, without the tree.

        :returns: the number of their chunks.
        """
        return self.builder.put([unpack(document, self.store.dimension) for document in documents])

    def _take_in(self, named: Mapping[str, Source], report: Report, done: Callable[[str, str], None]) -> None:
        def on_the_disk(id: str) -> None:
            report.added.append(id)
            done(id, "added")

        known = self.known()
        builder = self.builder
        if self.executor is None or not can_be_shared(named, self.options):
            report.chunks = builder.add(each_document(named, known, self.settings, report, done), on_the_disk)
            return
        for documents in self.cutting().by(self.executor, named, known, report, done):
            report.chunks += builder.put(documents, on_the_disk)

    # --- the tree ----------------------------------------------------------------------------

    def update(self) -> None:
        """Update the tree after documents were added or removed, and what the search of a large index needs.

        Summaries that cost nothing are written.

        Where a model writes the summaries and the clusterer needs them, :meth:`summarize` builds the tree instead.
        """
        if not (self.pays and self.builder.clusterer.needs_summaries):
            run(lambda: self.builder.update(summaries=not self.pays))
        self._prepare_search()

    def _prepare_search(self) -> None:
        if isinstance(self.store, Preparing):
            self.store.prepare()

    def bill(self) -> Bill:
        """Return the greatest possible cost of :meth:`summarize`; spends nothing."""
        from ..index.bill import bill_of

        price = self._engines.get("llm", "summarizer llm").price if self.pays else None
        return bill_of(self.builder, price, self.pays)

    def forget_summaries(self) -> None:
        """Remove all summaries, so that :meth:`summarize` writes them anew; the tree stays.

        :raises OutsideFailed: another process changed the index at the same time.
        """
        from ..index.grow import without_summaries

        if not self.store.grow(without_summaries(self.store.view())):
            raise OutsideFailed(f"{self.location}: the index is changing; try again", subject=self.location)

    def summarize(self) -> int:
        """Write the missing summaries; return the number of nodes that had none.

        Summaries are stored batch by batch: after a failure the next call resumes there.

        :raises OverLimit: a limit of the options is reached.
        :raises OutsideFailed: the model failed.
        """
        before = len(self.store.unsummarised())
        try:
            run(self._summarized)
        finally:
            self._note_cost()
        self._prepare_search()
        return before

    async def _summarized(self) -> None:
        if self.builder.clusterer.needs_summaries:
            view = self.store.view()
            if len(view.ids) == view.leaves or self.store.unsummarised():
                await self.builder.update()
        else:
            await self.builder.update(summaries=False)
            await self.builder.summarize()

    def _note_cost(self) -> None:
        """Add the cost of this call to the cost that the index has recorded."""
        meter = self._engines.meter
        if not (meter.total.prompt_tokens or meter.total.completion_tokens):
            return
        before = read_note(self.store, COST)
        total = {name: before.get(name, 0) + getattr(meter.total, name) for name in COSTS}
        self.store.put_notes({COST: json.dumps({**total, "summarizer": self.settings.llm or self.options.llm})})
        meter.reset()

    def info(self) -> dict[str, Any]:
        """Return what the index holds: documents, layers with their nodes, children, tokens and compression, cost."""
        from ..index.bill import described

        cost = read_note(self.store, COST)
        return {**described(self.store), "built": asdict(self.built), "cost": cost}

    # --- asking ------------------------------------------------------------------------------

    def retrieved(self, query: str, budget: int = 2000, retrieval: Retrieval | None = None) -> Retrieved:
        """Return the nodes that a question retrieves within a budget of tokens of their texts.

        :raises BadInput: an empty question, or a document that is not in the index.
        """
        how = retrieval or Retrieval()
        way = self.way(how)
        only = self._only(how)
        retriever = self.retriever if only is None else self.retriever.limited(only)
        query = without_surrogates(query)
        if way == "traversal":
            return retriever.traversal(query, how.top, how.depth, budget=budget, start=how.start_layer)
        if way == "hybrid":
            return retriever.hybrid(query, budget)
        return retriever.collapsed(query, budget, tree=way == "collapsed", scorer=how.scorer, layers=how.layers)

    @property
    def budget(self) -> int:
        """The default budget in tokens of evidence: that of the preset, else that of the settings."""
        return int(PRESETS.get(self.built.preset, {}).get("budget", self.settings.budget))

    def way(self, retrieval: Retrieval | None) -> str:
        """Return the way of retrieval: hybrid, collapsed, traversal or flat."""
        named = retrieval.way if retrieval else ""
        return named or ("collapsed" if self.built.preset == "raptor" else "hybrid")

    def retrieve(
        self,
        question: str,
        budget: int | None = None,
        format: OutputFormat = "html",
        retrieval: Retrieval | None = None,
        options: Options | None = None,
    ) -> Context:
        """Return the evidence for a question within a token budget: blocks of the pages, tables as tables.

        :param budget: tokens of the output, never exceeded; by default :attr:`budget`.
        :raises NothingFound: the index is empty.
        """
        from ..index.evidence import evidence_of

        question = question_of(question, None, "retrieve(question)")
        check_choices(budget, options, None)
        options = options or self._asked_with()
        engines = prune_engines(self.settings, options)
        tokens = self.budget if budget is None else budget
        evidence = evidence_of(question, self, tokens, retrieval)
        engines = replace(engines, scorer=evidence)
        return prune_documents(evidence, question, tokens, format, options, engines)

    def ask(self, question: str, budget: int | None = None, retrieval: Retrieval | None = None) -> Answer:
        """Answer a question from the index, with citations that are checked against its pages.

        :raises NothingFound: nothing in the index bears on the question.
        """
        from ..answer.run import Asked
        from ..answer.write import answer_from
        from ..index.evidence import Indexes

        tokens = self.budget if budget is None else budget
        question = question_of(question, None, "ask(question)")
        check_choices(budget, None, None)
        asked = Asked(question, tokens, self._asked_with(), indexes=Indexes([self], retrieval))
        engines = answer_engines(self.settings, self.options)
        return run(lambda: answer_of(answer_from(Documents([]), asked, engines)))


def _built_with(settings: Settings, options: Options, preset: str, wanted: Mapping[str, Any]) -> Built:
    """Return the settings that a new index is built with."""
    given = {field.name: wanted.get(field.name, getattr(settings, field.name, "")) for field in fields(Built)}
    return Built(**given | {"preset": preset, "embedder": harmless(options.embedder or settings.embedder)})


def cutting_new(settings: Settings, options: Options) -> Cutting:
    """Return what another process needs to cut documents for an index that does not exist yet."""
    identity, dimension = identity_of(one_engine("embedder", settings, options))
    return Cutting(settings, options, _built_with(settings, options, "", {}), identity, dimension, "index")


def opened(
    indexes: Iterable[Index | str | Path], settings: Settings | None = None, options: Options | None = None
) -> list[Index]:
    """Return opened indexes from indexes, folders and addresses.

    :raises BadInput: there is no index.
    """
    indexes = list(indexes)
    for index in indexes:
        if not isinstance(index, Index | str | Path):
            raise BadInput(f"an index is an Index or a folder, not {type(index).__name__}", subject="index")
    return [
        index if isinstance(index, Index) else Index.open(index, create=False, settings=settings, options=options)
        for index in indexes
    ]


class LazySummarizer:
    """Passes calls on to a summariser that is made at the first call.

    :param make: makes the summariser; called once.
    """

    def __init__(self, make: Callable[[], Summarizer]) -> None:
        self._make = make

    @cached_property
    def _inner(self) -> Summarizer:
        return self._make()

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary for each group of texts."""
        return await self._inner.summarize(batch, max_tokens)
