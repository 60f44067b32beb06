"""``prunus index``: documents under a tree of summaries, built once, grown, and asked many times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...api.documents import named
from ...api.index import Index
from ...core.errors import BadInput, OutsideFailed
from ...core.options import Limits, Options
from ...core.settings import load_settings
from ...index.terms import PRESETS, Report
from ...models.meter import OverLimit
from ...pages.sources import Source, is_address
from ..checked import verify
from ..choices import FORMATS, PAGE, as_unicode, common
from ..drawn import tree
from ..indexes import retrieval_from, retrieval_options
from ..output import DoneInPart, Interrupted, emit, emit_json, progress, say, settle


@click.group("index")
def command() -> None:
    """Keep documents under a tree of summaries, and ask them many times.

    \b
    Examples:
      prunus index add handbook examples/site
      prunus ask "How do I back up the store?" --index handbook
      prunus index sync handbook examples/site
      prunus index tree handbook --html tree.html -Q "How do I back up the store?"
    """


command.add_command(tree)
command.add_command(verify)


def _engines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a new index is built with; of one that is there it holds already."""
    for name, kind, text in (
        ("--embedder", str, "What embeds texts."),
        ("--tokenizer", str, "What counts tokens."),
        ("--clusterer", str, "What groups nodes, in a new index."),
        ("--chunk-tokens", click.IntRange(min=8), "Tokens of a chunk, in a new index."),
        ("--summary-tokens", click.IntRange(min=8), "Tokens of a summary at most, in a new index."),
        ("--tree", click.Choice(["collection", "document"]), "One tree, or one of each document, in a new index."),
        ("--preset", click.Choice([*PRESETS]), "Build a new index as the paper does."),
    ):
        function = click.option(name, type=kind, default=None, help=text)(function)
    return function


@command.command("add")
@click.argument("index", metavar="INDEX")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@_engines
@click.option("--no-summaries", is_flag=True, help="Leave them to prunus index summarize.")
@click.option("--events", is_flag=True, help="Write a JSON line for each document, as soon as it is on the disk.")
@common
def add(index: str, pages: tuple[str, ...], **given: Any) -> None:
    """Add documents to an index, or replace those that have changed.

    PAGE is a file, a folder (for all pages in it) or an address. A document that cannot be read is reported, and the
    rest goes in (exit code 5). What was added stays, also when the run is stopped: the same command goes on from there.

    \b
    Examples:
      prunus index add handbook examples/site
      prunus index add handbook examples/site/faq.html --events
      prunus index add papers papers/ --preset raptor
    """
    opened = _opened(index, given, create=True)
    sources: list[Source] = [page if is_address(page) else Path(page) for page in pages]
    files = named(sources, opened.settings)
    _taken_in(opened, len(files), given, lambda done: opened.add(files, done=done, strict=False))


@command.command("sync")
@click.argument("index", metavar="INDEX")
@click.argument("folder", type=PAGE, metavar="FOLDER")
@_engines
@click.option("--no-summaries", is_flag=True, help="Leave them to prunus index summarize.")
@click.option("--events", is_flag=True, help="Write a JSON line for each document, as soon as it is on the disk.")
@common
def sync(index: str, folder: str, **given: Any) -> None:
    """Make an index hold a folder's pages as they are: add what is new or changed, remove what is gone.

    Documents from elsewhere stay as they are.

    \b
    Examples:
      prunus index sync handbook examples/site
    """
    opened = _opened(index, given, create=True)
    _taken_in(opened, 0, given, lambda done: opened.sync(folder, done))


@command.command("remove")
@click.argument("index", metavar="INDEX")
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@common
def remove(index: str, documents: tuple[str, ...], **given: Any) -> None:
    """Remove documents, and every summary that was made of them.

    \b
    Examples:
      prunus index remove handbook examples/site/faq.html
    """
    gone = _opened(index, given).remove(documents)
    if given["as_json"]:
        emit_json({"removed": gone})
    elif not given["quiet"]:
        say(f"{len(gone):,} removed")


@command.command("summarize")
@click.argument("index", metavar="INDEX")
@click.option("--llm", default="", metavar="SPEC", help="The language model; the setting llm by default.")
@click.option("--extractive", is_flag=True, help="Pick sentences instead; it costs nothing.")
@click.option("--anew", is_flag=True, help="Write those that are there anew, too.")
@click.option("--max-usd", type=click.FloatRange(min=0), default=0.0, metavar="USD", help="Money at most; 0: no limit.")
@click.option("--max-tokens", type=click.IntRange(min=0), default=0, metavar="N", help="Tokens at most; 0: no limit.")
@click.option("--yes", is_flag=True, help="Spend what was shown without asking.")
@common
def summarize(index: str, **given: Any) -> None:
    """Write the summaries that are missing, by a language model or from the documents' own sentences.

    What it will cost at most is shown before anything is spent. A run that is stopped, or meets a limit, keeps what
    it has: the same command goes on from there, and pays for nothing twice.

    \b
    Examples:
      prunus index summarize handbook --llm openai:gpt-4o-mini --anew --max-usd 2
      prunus index summarize handbook --extractive
    """
    settings = load_settings()
    llm = given["llm"] or settings.llm
    if not llm and not given["extractive"]:
        raise BadInput("no language model is named: give --llm or set llm, or give --extractive", subject="llm")
    limits = Limits(tokens=given["max_tokens"], usd=given["max_usd"])
    wanted = "extractive" if given["extractive"] else "llm"
    opened = _opened(index, {**given, "summarizer": wanted}, options=Options(llm=llm, limits=limits))
    if given["anew"]:
        opened.forget_summaries()
    bill = opened.bill()
    if opened.pays and bill.calls:
        money = "at a price that is not known" if bill.usd is None else f"{bill.usd:.4f} USD"
        say(
            f"{bill.calls:,} summaries by {llm}: {'' if bill.exact else 'about '}at most {bill.prompt_tokens:,} tokens "
            f"to read and {bill.completion_tokens:,} to write, {money}"
        )
        _agreed(given["yes"])
    with _going_on(lambda: "what was written is kept"):
        try:
            opened.summarize()
        except (OverLimit, OutsideFailed) as error:
            left = len(opened.store.unsummarised())
            if left < bill.calls:
                raise DoneInPart(f"{error}; {bill.calls - left:,} summaries are written, {left:,} are left") from error
            raise
    if given["as_json"]:
        emit_json({"bill": asdict(bill), "left": len(opened.store.unsummarised()), "cost": opened.info()["cost"]})
    elif not given["quiet"]:
        say(f"{bill.calls:,} summaries written")


@command.command("info")
@click.argument("index", metavar="INDEX")
@click.option("--documents", is_flag=True, help="List the documents.")
@common
def info(index: str, **given: Any) -> None:
    """Show what an index holds: layers, nodes, children, tokens, compression, and what its summaries have cost.

    \b
    Examples:
      prunus index info handbook
      prunus index info handbook --documents --json
    """
    opened = _opened(index, given)
    found = opened.info()
    documents = [
        {"id": one.id, "title": one.title, "url": one.url, "language": one.language, "digest": one.digest}
        for one in opened.store.documents()
    ]
    if given["as_json"]:
        emit_json({**found, **({"list": documents} if given["documents"] else {})})
        return
    emit(_written(opened.place, found))
    if given["documents"]:
        emit("\n" + "\n".join(f"{one['id']}  {one['title']}".rstrip() for one in documents))


@command.command("retrieve")
@click.argument("index", metavar="INDEX")
@click.option("-Q", "--question", required=True, metavar="TEXT", callback=as_unicode, help="What the evidence is for.")
@click.option("--budget", type=int, metavar="N", help="Tokens of the output at most.")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="What to write.")
@retrieval_options
@common
def retrieve(index: str, question: str, **given: Any) -> None:
    """Write the evidence that an index holds for a question: the pages' own parts, tables as tables.

    \b
    Examples:
      prunus index retrieve handbook -Q "What does Harbour cost?" --budget 1000
      prunus index retrieve handbook -Q "What is it about?" --retrieval collapsed --layers 1,2
      prunus index retrieve handbook -Q "What is it about?" --retrieval traversal --start-layer 2
    """
    opened = _opened(index, given)
    found = opened.retrieve(question, given["budget"], given["format_"], retrieval_from(given))
    if given["as_json"]:
        documents = [asdict(one) for one in found.documents]
        kept = [asdict(one) for one in found.kept]
        emit_json({"question": question, "output": found.output, "tokens": found.tokens, "budget": found.budget,
                   "documents": documents, "kept": kept})  # fmt: skip
    else:
        emit(found.output)
    if not given["quiet"]:
        say(f"{found.tokens:,} of {found.budget:,} tokens, {len(found.kept):,} parts")


def _opened(index: str, given: Mapping[str, Any], create: bool = False, options: Options | None = None) -> Index:
    """Open an index with what a command line says."""
    names = ("clusterer", "chunk_tokens", "summary_tokens", "tree", "summarizer")
    wanted_by = {**given, **({"summarizer": "llm"} if given.get("no_summaries") else {})}
    settings = load_settings({name: wanted_by.get(name) for name in names})
    options = options or Options(embedder=given.get("embedder") or "", tokenizer=given.get("tokenizer") or "")
    preset = given.get("preset") or ""
    opened = Index.open(index, create=create, preset=preset, settings=settings, options=options)
    for name in ("clusterer", "chunk_tokens", "summary_tokens", "tree"):
        wanted = given.get(name)
        if wanted is not None and wanted != getattr(opened.built, name):
            raise BadInput(
                f"{opened.place}: it was built with {name.replace('_', ' ')} {getattr(opened.built, name)}, which "
                f"holds for good; leave --{name.replace('_', '-')} out, or make a new index",
                subject=name,
            )
    return opened


def _taken_in(opened: Index, total: int, given: Mapping[str, Any], work: Callable[[Any], Report]) -> None:
    """Add documents with a bar, say what became of them, and end with the right code."""
    done: list[str] = []

    def kept() -> str:
        return f"{len(done):,} documents of this run are on the disk"

    with progress(total, "documents", given["quiet"]) as step, _going_on(kept):

        def on(id: str, fate: str) -> None:
            if fate == "added":
                done.append(id)
            if given["events"]:
                emit_json({"event": fate, "document": id})
            step()

        report = work(on)
    if given["as_json"] and not given["events"]:
        emit_json({"added": report.added, "unchanged": report.unchanged, "removed": report.removed,
                   "chunks": report.chunks, "failures": dict(report.failures)})  # fmt: skip
    if not given["quiet"]:
        removed = f", {len(report.removed):,} removed" if report.removed else ""
        say(f"{len(report.added):,} added in {report.chunks:,} chunks, {len(report.unchanged):,} unchanged{removed}")
        if opened.pays or opened.store.unsummarised():
            say(f"summaries are missing: run prunus index summarize {opened.place}")
    settle(report.failures, len(report.added) + len(report.unchanged), "documents")


@contextmanager
def _going_on(kept: Callable[[], str]) -> Iterator[None]:
    """Say on Ctrl-C what is kept, and that the same command goes on from there."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {kept()}; the same command goes on from there") from None


def _agreed(yes: bool) -> None:
    """Ask whether to spend it.

    :raises BadInput: nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput("nobody can be asked whether to spend it; give --yes", subject="--yes")
    click.confirm("Spend it?", abort=True, err=True)


def _written(place: str, found: Mapping[str, Any]) -> str:
    built, cost = found["built"], found["cost"]
    preset = f", preset {built['preset']}" if built["preset"] else ""
    lines = [
        f"{place}: {found['documents']:,} documents, {found['leaf_tokens']:,} tokens, "
        f"{found['bytes'] / 2**20:,.1f} MiB",
        f"embedder {found['embedder']} ({found['dimension']}), clusterer {built['clusterer']}, tree over the "
        f"{built['tree']}, chunks of {built['chunk_tokens']} tokens{preset}",
        "",
        f"{'layer':>5}  {'nodes':>8}  {'tokens':>10}  {'children':>8}  {'compression':>11}  {'unsummarised':>12}",
    ]
    for one in reversed(found["layers"]):
        ratio = f"{one['compression']:.1%}" if one["compression"] else ""
        children = f"{one['children']:.1f}" if one["children"] else ""
        lines.append(
            f"{one['layer']:>5}  {one['nodes']:>8,}  {one['tokens']:>10,}  {children:>8}  {ratio:>11}  "
            f"{one['unsummarised']:>12,}"
        )
    if cost:
        lines.append(
            f"\nsummaries have cost {cost['prompt_tokens']:,} tokens read, {cost['completion_tokens']:,} written, "
            f"{cost['usd']:.4f} USD"
        )
    return "\n".join(lines)
