"""``prunus index``: build a tree of summaries over documents, change it, and retrieve from it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...api.documents import absolute, named
from ...api.index import Index
from ...api.rebuild import rebuild as rebuild_index
from ...core.confidence import HARDLY, unlikely
from ...core.errors import BadInput, NothingFound, OutsideFailed
from ...core.options import Limits, Options
from ...core.settings import Settings, load_settings
from ...index.terms import PRESETS, Report, SiteReport
from ...models.meter import OverLimit
from ...pages.sources import Source, is_address, is_folder
from ..choices import (
    FORMATS,
    PAGE,
    Choice,
    budget,
    common,
    origin,
    question,
    retrieval_from,
    retrieval_options,
    shown_only,
    site_options,
    site_rules,
)
from ..inputs import STDIN, pages_given
from ..output import (
    DoneInPart,
    Interrupted,
    counted,
    emit,
    emit_json,
    one_line,
    progress,
    say,
    say_left_out,
    settle,
    working,
)
from .index_tree import tree
from .index_verify import verify

if TYPE_CHECKING:
    from ...core.executor import Executor


@click.group("index")
def command() -> None:
    """Build a tree of summaries over documents, and search it.

    \b
    Examples:
      prunus index add handbook examples/site
      prunus ask "How do I back up the store?" --index handbook
      prunus index sync handbook examples/site
      prunus index tree handbook --html tree.html -q "How do I back up the store?"
    """


command.add_command(tree)
command.add_command(verify)


def _engines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that a new index is built with; an existing index keeps the options it was built with."""
    for name, kind, text in (
        ("--embedder", str, "Engine that embeds texts."),
        ("--tokenizer", str, "Engine that counts tokens."),
        ("--clusterer", str, "Engine that groups nodes, for a new index."),
        ("--chunk-tokens", click.IntRange(min=8), "Tokens of a chunk, for a new index."),
        ("--summary-tokens", click.IntRange(min=8), "Tokens of a summary at most, for a new index."),
        (
            "--tree",
            Choice(["collection", "document"]),
            "One tree over all documents, or one per document.",
        ),
        ("--preset", Choice([*PRESETS]), "Build a new index as in the paper."),
    ):
        function = click.option(name, type=kind, default=None, help=text)(function)
    return function


def _workers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the processes that cut documents and cluster a large tree."""
    function = click.option(
        "--on", default="", metavar="PLACE", help="Where to work: ray, or ray:ADDRESS; by default here."
    )(function)
    return click.option(
        "--workers",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        metavar="N",
        help="Processes that cut documents and cluster a large tree.",
    )(function)


@command.command("add")
@click.argument("index", metavar="INDEX")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@_engines
@_workers
@click.option("--no-summaries", is_flag=True, help="Write no summaries now; prunus index summarize writes them.")
@click.option("--events", is_flag=True, help="Write a JSON line for each document, as soon as it is stored.")
@click.option("--site", is_flag=True, help="Add the whole site that begins at PAGE, as the command map finds it.")
@site_options
@question("With --site: read the pages first that promise most for this question.")
@origin
@shown_only
@common
def add(index: str, pages: tuple[str, ...], **flags: Any) -> None:
    """Add documents to an index, or replace those that have changed.

    PAGE is a file, a folder (for all pages in it) or an address, or - for standard input with --url. A saved page with
    --url is stored under that address. A document that cannot be read is reported, the
    others are added, and the exit code is 5. Added documents stay when the run is stopped: run the same command again
    to resume. The pages of a site are added with what prunus index sync needs to keep them fresh.

    \b
    Examples:
      prunus index add handbook examples/site
      prunus index add handbook examples/site/faq.html --events
      prunus index add papers papers/ --preset raptor
      curl -s https://example.org/tides | prunus index add handbook - --url https://example.org/tides
      prunus index add handbook https://docs.example.org/en/ --site --exclude /en/old/
    """
    if flags["site"]:
        _add_site(index, pages, flags)
        return
    files = _documents(pages, load_settings(), flags["url"], flags["kind"])  # before the index: a page may be missing
    with _at(flags["on"], flags["workers"]) as executor:
        opened = _opened(index, flags, create=True)
        opened.executor = executor
        _add_documents(opened, len(files), flags, lambda done: opened.add(files, done=done, strict=False))


def _add_site(index: str, pages: tuple[str, ...], flags: Mapping[str, Any]) -> None:
    """Add a site.

    :raises BadInput: it is not one address.
    """
    if len(pages) != 1 or not is_address(pages[0]):
        raise BadInput("--site adds one site; give its address, as https://docs.example.org/", subject="--site")
    with _at(flags["on"], flags["workers"]) as executor:
        opened = _opened(index, flags, create=True)
        opened.executor = executor
        rules = site_rules(flags, opened.settings)
        _read_sites(opened, flags, lambda done: opened.add_site(pages[0], rules, done=done))


def _documents(pages: tuple[str, ...], settings: Settings, url: str, kind: str) -> dict[str, Source]:
    """Return the documents of a command line by id.

    :param url: the address that the only page was saved from; it is the page's id.
    :param kind: the only page's media type, suffix or format.
    :raises BadInput: as :func:`~prunus.cli.inputs.pages_given`, no page exists, or a page of standard input
        has no address.
    """
    if not any(page == STDIN or is_address(page) or Path(page).exists() for page in pages):
        raise BadInput(f"{pages[0]}: no such file or folder", subject=pages[0])
    if STDIN in pages and not url:
        raise BadInput("a page from standard input has no name to store it under; give --url", subject="--url")
    if not url and not kind:
        return named([page if is_address(page) else Path(page) for page in pages], settings)
    (page,) = pages_given(pages, settings, url=url, kind=kind)
    return {url or absolute(page.path or Path(page.name)): page.source}


@command.command("sync")
@click.argument("index", metavar="INDEX")
@click.argument("folder", type=PAGE, metavar="[FOLDER]", default="")
@_engines
@_workers
@click.option("--no-summaries", is_flag=True, help="Write no summaries now; prunus index summarize writes them.")
@click.option("--events", is_flag=True, help="Write a JSON line for each document, as soon as it is stored.")
@click.option("--all", "check_all", is_flag=True, help="Ask for every page, whatever its sitemap says.")
@shown_only
@common
def sync(index: str, folder: str, **flags: Any) -> None:
    """Bring an index up to date with a folder or its sites: add new and changed pages, remove deleted ones.

    With FOLDER, documents from outside the folder stay unchanged. Without it, the sites of the index are asked for what
    may have changed: pages whose sitemap has no new date are not asked for, others send their content only if it is
    new. Pages that are gone (404, 410) are removed; pages that fail otherwise stay, and are reported.

    \b
    Examples:
      prunus index sync handbook examples/site
      prunus index sync handbook
      prunus index sync handbook --all --json
    """
    if not folder:
        opened = _opened(index, flags)
        _read_sites(opened, flags, lambda done: opened.sync_sites(check_all=flags["check_all"], done=done))
        return
    if not is_folder(Path(folder)):  # before the index is made
        raise BadInput(f"{folder}: no such folder", subject=folder)
    with _at(flags["on"], flags["workers"]) as executor:
        opened = _opened(index, flags, create=True)
        opened.executor = executor
        _add_documents(opened, 0, flags, lambda done: opened.sync(folder, done))


@command.command("remove")
@click.argument("index", metavar="INDEX")
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@common
def remove(index: str, documents: tuple[str, ...], **flags: Any) -> None:
    """Remove documents, and every summary made from them.

    \b
    Examples:
      prunus index remove handbook examples/site/faq.html
    """
    gone = _opened(index, flags).remove(documents)
    if flags["as_json"]:
        emit_json({"removed": gone})
    elif not flags["quiet"]:
        say(f"{len(gone):,} removed")


@command.command("summarize")
@click.argument("index", metavar="INDEX")
@click.option("--llm", default="", metavar="SPEC", help="Language model; by default that of the settings.")
@click.option("--extractive", is_flag=True, help="Select sentences instead; costs nothing.")
@click.option("--anew", is_flag=True, help="Write existing summaries again, too.")
@click.option("--max-usd", type=click.FloatRange(min=0), default=0.0, metavar="USD", help="Money at most; 0: no limit.")
@click.option("--max-tokens", type=click.IntRange(min=0), default=0, metavar="N", help="Tokens at most; 0: no limit.")
@click.option("--yes", is_flag=True, help="Spend the shown cost without asking.")
@common
def summarize(index: str, **flags: Any) -> None:
    """Write the missing summaries, with a language model or from sentences of the documents.

    The greatest possible cost is shown before anything is spent. A run that is stopped or reaches a limit keeps its
    summaries: run the same command again to resume; nothing is paid for twice.

    \b
    Examples:
      prunus index summarize handbook --llm openai:gpt-4o-mini --anew --max-usd 2
      prunus index summarize handbook --extractive
    """
    settings = load_settings()
    llm = flags["llm"] or settings.llm
    if not llm and not flags["extractive"]:
        raise BadInput("no language model is configured: give --llm, set llm, or give --extractive", subject="llm")
    limits = Limits(tokens=flags["max_tokens"], usd=flags["max_usd"])
    wanted = "extractive" if flags["extractive"] else "llm"
    opened = _opened(index, {**flags, "summarizer": wanted}, options=Options(llm=llm, limits=limits))
    if flags["anew"]:
        opened.forget_summaries()
    bill = opened.bill()
    if opened.pays and bill.calls:
        money = "at an unknown price" if bill.usd is None else f"{bill.usd:.4f} USD"
        say(
            f"{counted(bill.calls, 'summary')} by {llm}: {'' if bill.exact else 'about '}at most "
            f"{bill.prompt_tokens:,} tokens to read and {bill.completion_tokens:,} to write, {money}"
        )
        _confirm_cost(flags["yes"])
    with _resumable(lambda: "the summaries written so far are stored"):
        try:
            opened.summarize()
        except (OverLimit, OutsideFailed) as error:
            left = len(opened.store.unsummarised())
            if left < bill.calls:
                raise DoneInPart(f"{error}; {bill.calls - left:,} summaries are written, {left:,} are left") from error
            raise
    if flags["as_json"]:
        emit_json({"bill": asdict(bill), "left": len(opened.store.unsummarised()), "cost": opened.info()["cost"]})
    elif not flags["quiet"]:
        say(f"{counted(bill.calls, 'summary')} written")


@command.command("rebuild")
@click.argument("index", metavar="INDEX")
@common
def rebuild(index: str, **flags: Any) -> None:
    """Build an index again from the pages that it stores: a damaged one, or one of an older layout.

    The index keeps its settings. The folder as it was is kept beside it as INDEX.old. Summaries by a model are written
    again by prunus index summarize.

    \b
    Examples:
      prunus index rebuild handbook
    """
    rebuilt = rebuild_index(index, load_settings())
    if flags["as_json"]:
        emit_json({"documents": rebuilt.documents, "lost": rebuilt.lost, "aside": str(rebuilt.aside)})
    else:
        emit(f"{counted(rebuilt.documents, 'document')} indexed again; the index as it was is {rebuilt.aside}")
    for name in rebuilt.lost:
        say(f"prunus: {one_line(name)}: damaged; add it again")
    if rebuilt.lost:
        raise DoneInPart(f"{len(rebuilt.lost):,} parts were too damaged; what they held is in {rebuilt.aside} alone")


@command.command("info")
@click.argument("index", metavar="INDEX")
@click.option("--documents", is_flag=True, help="List the documents.")
@common
def info(index: str, **flags: Any) -> None:
    """Show an index: its layers, nodes, children, tokens and compression, and the cost of its summaries.

    \b
    Examples:
      prunus index info handbook
      prunus index info handbook --documents --json
    """
    opened = _opened(index, flags)
    sites = list(opened.sites())
    result = opened.info() | ({"sites": sites} if sites else {})
    documents = [
        {name: getattr(document, name) for name in ("id", "title", "url", "language", "digest")}
        for document in opened.store.documents()
    ]
    if flags["as_json"]:
        emit_json({**result, **({"list": documents} if flags["documents"] else {})})
        return
    emit(_info_text(opened.location, result))
    if flags["documents"]:
        emit("\n" + "\n".join(f"{document['id']}  {document['title']}".rstrip() for document in documents))


@command.command("retrieve")
@click.argument("index", metavar="INDEX")
@question("What the evidence is for.", required=True)
@budget("the output")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="What to write.")
@retrieval_options
@click.option("--strict", is_flag=True, help="Fail with exit code 4 where nothing is likely to answer.")
@common
def retrieve(index: str, question: str, **flags: Any) -> None:
    """Write the evidence for a question from an index: blocks of the pages, tables as tables.

    \b
    Examples:
      prunus index retrieve handbook -q "What does Harbour cost?" --budget 1000
      prunus index retrieve handbook -q "What is it about?" --retrieval collapsed --layers 1,2
      prunus index retrieve handbook -q "What is it about?" --retrieval traversal --start-layer 2
    """
    opened = _opened(index, flags)
    result = opened.retrieve(question, flags["budget"], flags["format_"], retrieval_from(flags))
    sure = result.confidence() if flags["strict"] or flags["as_json"] or not flags["quiet"] else 1.0
    if flags["strict"] and sure < HARDLY:
        raise NothingFound(unlikely(sure), subject=question[:200])
    if flags["as_json"]:
        documents = [asdict(document) for document in result.documents]
        kept = [asdict(block) for block in result.kept]
        emit_json({"question": question, "output": result.output, "tokens": result.tokens, "budget": result.budget,
                   "documents": documents, "kept": kept, "confidence": sure})  # fmt: skip
    else:
        emit(result.output)
    if not flags["quiet"]:
        if sure < HARDLY:
            say(f"prunus: {unlikely(sure)}")
        say(f"{result.tokens:,} of {result.budget:,} tokens, {counted(len(result.kept), 'part')}")


@contextmanager
def _at(on: str, workers: int) -> Iterator[Executor | None]:
    """Give the workers of a command line: None for this process, processes of this machine, or Ray.

    :raises BadInput: there is no such place to work on.
    """
    if on:
        from ...batch.on_ray import RayExecutor, address_of  # here: only this needs Ray

        address = address_of(on)
        with RayExecutor(address, workers if not address else 0) as executor:
            yield executor
    elif workers > 1:
        from ...core.executor import ProcessExecutor

        yield ProcessExecutor(workers)
    else:
        yield None


def _opened(index: str, flags: Mapping[str, Any], create: bool = False, options: Options | None = None) -> Index:
    """Open an index with the options of a command line.

    :raises BadInput: there is no index, or an option contradicts what the index was built with.
    """
    names = ("clusterer", "chunk_tokens", "summary_tokens", "tree", "summarizer")
    # summaries by a model are never written while documents are added, only by `prunus index summarize`
    values = {**flags, **({"summarizer": "llm"} if flags.get("no_summaries") else {})}
    asked = {name: values.get(name) for name in names}
    settings = load_settings({**asked, "shown_only": values.get("shown_only") or None})
    options = options or Options(embedder=flags.get("embedder") or "", tokenizer=flags.get("tokenizer") or "")
    preset = flags.get("preset") or ""
    opened = Index.open(index, create=create, preset=preset, settings=settings, options=options)
    for name in ("clusterer", "chunk_tokens", "summary_tokens", "tree"):
        wanted = flags.get(name)
        if wanted is not None and wanted != getattr(opened.built, name):
            raise BadInput(
                f"{opened.location}: this index was built with {name.replace('_', ' ')} {getattr(opened.built, name)}, "
                f"which cannot change; leave out --{name.replace('_', '-')}, or make a new index",
                subject=name,
            )
    return opened


def _add_documents(opened: Index, total: int, flags: Mapping[str, Any], work: Callable[[Any], Report]) -> None:
    """Add documents with a progress bar, and report the counts and the failures.

    :param work: adds the documents; its argument is called with each document's id and fate.
    """
    done: list[str] = []

    def kept() -> str:
        return f"{len(done):,} documents of this run are stored"

    with progress(total, "documents", flags["quiet"]) as step, _resumable(kept):

        def note(id: str, fate: str) -> None:
            if fate == "added":
                done.append(id)
            if flags["events"]:
                emit_json({"event": fate, "document": id})
            step()

        report = work(note)
    if flags["as_json"] and not flags["events"]:
        emit_json({"added": report.added, "unchanged": report.unchanged, "removed": report.removed,
                   "chunks": report.chunks, "failures": dict(report.failures)})  # fmt: skip
    if not flags["quiet"]:
        removed = f", {len(report.removed):,} removed" if report.removed else ""
        added = f"{len(report.added):,} added in {counted(report.chunks, 'chunk')}"
        say(f"{added}, {len(report.unchanged):,} unchanged{removed}")
        if opened.pays or opened.store.unsummarised():
            say(f"summaries are missing: run prunus index summarize {opened.location}")
    settle(report.failures, len(report.added) + len(report.unchanged), "documents")


def _read_sites(opened: Index, flags: Mapping[str, Any], work: Callable[[Any], SiteReport]) -> None:
    """Read sites into an index, and report what became of their pages.

    :param work: reads them; its argument is called with each document's id and fate.
    """
    stored: list[str] = []

    def note(id: str, fate: str) -> None:
        if fate in ("added", "changed"):
            stored.append(id)
        if flags["events"]:
            emit_json({"event": fate, "document": id})

    with (
        working("reading the site", flags["quiet"]),
        _resumable(lambda: f"{len(stored):,} pages of this run are stored"),
    ):
        report = work(note)
    if flags["as_json"] and not flags["events"]:
        emit_json({"added": report.added, "changed": report.changed, "gone": report.removed,
                   "unchanged": report.unchanged, "chunks": report.chunks, "requests": report.requests,
                   "bytes": report.bytes, "seconds": round(report.seconds, 3), "failures": dict(report.failures),
                   "left_out": report.left_out, "endless": report.endless})  # fmt: skip
    if not flags["quiet"]:
        say(f"{len(report.added):,} added, {len(report.changed):,} changed, {len(report.removed):,} gone, "
            f"{len(report.unchanged):,} unchanged; {counted(report.requests, 'request')}, "
            f"{report.bytes / 1000:,.0f} kB, {report.seconds:.1f} s")  # fmt: skip
        say_left_out(report.left_out, report.endless, report.notes)
        if opened.pays or opened.store.unsummarised():
            say(f"summaries are missing: run prunus index summarize {opened.location}")
    settle(report.failures, len(report.added) + len(report.changed) + len(report.unchanged))


@contextmanager
def _resumable(kept: Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C into a message that says what is stored and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {kept()}; run the same command again to resume") from None


def _confirm_cost(yes: bool) -> None:
    """Ask the user whether to spend the shown cost; with ``yes`` do not ask.

    :raises BadInput: standard input is not a terminal, so that nobody can answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput("there is no terminal to confirm the cost; give --yes to spend it", subject="--yes")
    click.confirm("Spend it?", abort=True, err=True)


def _info_text(place: str, found: Mapping[str, Any]) -> str:
    """Return :meth:`Index.info` as text, the highest layer first."""
    built, cost = found["built"], found["cost"]
    preset = f", preset {built['preset']}" if built["preset"] else ""
    lines = [
        f"{place}: {counted(found['documents'], 'document')}, {counted(found['leaf_tokens'], 'token')}, "
        f"{found['bytes'] / 2**20:,.1f} MiB",
        f"embedder {found['embedder']} ({found['dimension']}), clusterer {built['clusterer']}, tree over the "
        f"{built['tree']}, chunks of {built['chunk_tokens']} tokens{preset}",
        "",
        f"{'layer':>5}  {'nodes':>8}  {'tokens':>10}  {'children':>8}  {'compression':>11}  {'unsummarised':>12}",
    ]
    for layer in reversed(found["layers"]):
        ratio = f"{layer['compression']:.1%}" if layer["compression"] else ""
        children = f"{layer['children']:.1f}" if layer["children"] else ""
        lines.append(
            f"{layer['layer']:>5}  {layer['nodes']:>8,}  {layer['tokens']:>10,}  {children:>8}  {ratio:>11}  "
            f"{layer['unsummarised']:>12,}"
        )
    lines += [f"\nsite {site}" for site in found.get("sites", ())]
    if cost:
        lines.append(
            f"\nsummaries have cost {cost['prompt_tokens']:,} tokens read, {cost['completion_tokens']:,} written, "
            f"{cost['usd']:.4f} USD"
        )
    return "\n".join(lines)
