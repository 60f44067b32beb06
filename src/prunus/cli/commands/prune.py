"""``prunus prune``: keep the evidence for a question, with a report of what was kept and why."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click

from ...api.pages import Pruner, with_links
from ...api.plain import context_record
from ...core.errors import BadInput
from ...core.settings import load_settings
from ...core.types import Context
from ...evidence.documents import Documents
from ...evidence.mark import text_for_file
from ..choices import FORMATS, PAGE, as_unicode, common, engines, granularity, options_from, shape, stages
from ..explain import ranking
from ..given import pages_given, read_given
from ..output import counted, emit, emit_json, say, settle, write_whole
from ..trees import as_lines


@click.command("prune")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@click.option(
    "-Q", "--question", required=True, metavar="TEXT", callback=as_unicode, help="Question to keep evidence for."
)
@click.option("--budget", type=int, metavar="N", help="Tokens of the output at most.")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="Format of the output.")
@engines
@stages
@granularity
@click.option("--breadcrumbs", is_flag=True, help="Keep the headings above each kept block.")
@click.option("--links", is_flag=True, help="Write the targets of links.")
@click.option("--images", is_flag=True, help="Write the addresses of images.")
@click.option("--emphasis", is_flag=True, help="Write bold, italics and other emphasis.")
@shape
@click.option("--explain", is_flag=True, help="Show the ranked blocks on stderr.")
@click.option(
    "--report",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Write a page that shows what was pruned and why.",
)
@click.option(
    "--mark",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Write the page's source with the kept parts marked; for several pages, name a folder.",
)
@click.option(
    "--follow",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Also read the N most promising links.",
)
@common
def command(pages: tuple[str, ...], question: str, **flags: Any) -> None:
    """Keep the evidence for a question that fits a token budget.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input.

    \b
    Examples:
      prunus prune examples/site/plans-and-prices.html -Q "What does Harbour cost?" --budget 256
      prunus prune examples/site -Q "How long is the Pell 2 guaranteed?" --format markdown
      prunus prune - -Q "How do I back up the store?" < examples/site/levelcast-docs.html
      prunus prune examples/site/faq.html -Q "When is a value final?" --explain --report report.html
      prunus prune examples/site/faq.html -Q "What does residual mean?" --scorer bm25 --json
      prunus prune examples/site/faq.html -Q "What does residual mean?" --mark marked.html
      prunus prune examples/site -Q "When is a value final?" --two-stage --fine bm25 --coarse-budget 2000 --budget 500
    """
    settings = load_settings()
    pruner = Pruner(options_from(flags), settings)
    started = time.perf_counter()
    documents = read_given(pages_given(pages, settings), settings, flags["quiet"])
    if flags["follow"]:
        documents = with_links(documents, question, flags["follow"], settings)
    read = time.perf_counter() - started
    context = pruner.prune(documents, question, flags["budget"], flags["format_"])
    seconds = {"read": read, **context.seconds}
    before = -1
    if flags["as_json"] or flags["report"] or not flags["quiet"]:  # counting costs time; only these show it
        before = context.tokens_before()
    if flags["report"]:
        from ..report import write_report

        write_whole(Path(flags["report"]), write_report(context, documents, tokens_before=before, seconds=seconds))
    if flags["mark"]:
        write_marked(Path(flags["mark"]), context, documents)
    if flags["as_json"]:
        emit_json(context_record(context, before, seconds, documents.failures))
    else:
        emit(context.output)
    if flags["explain"]:
        say(ranking(context))
        if context.tree is not None:
            say(as_lines(context))
    if not flags["quiet"]:
        for warning in context.warnings:
            say(f"prunus: {warning}")
        for line in stage_lines(context):
            say(line)
        say(summary(context, before, sum(seconds.values())))
    settle(documents.failures, len(documents))


def write_marked(out: Path, context: Context, documents: Documents) -> None:
    """Write each page's source with the kept parts marked: one page to a file, several into a folder.

    :raises BadInput: several pages and no folder, or the output would overwrite a page.
    """
    several = len(documents) > 1
    if several and not out.is_dir():
        raise BadInput(
            f"{out}: {len(documents)} pages cannot be marked in one file; name a folder that exists", subject=str(out)
        )
    for number, tree in enumerate(documents.trees):
        place = out
        if out.is_dir():
            stem = re.sub(r"[^\w.-]+", "-", Path(tree.url).stem)[:60].strip("-.") or "page"
            place = out / (f"{number + 1:03}-{stem}.html" if several else f"{stem}.html")
        if any(place.resolve() == Path(page.url).resolve() for page in documents.trees if page.url):
            raise BadInput(f"{place}: this would overwrite an input page; name another file", subject=str(place))
        write_whole(place, text_for_file(tree, context.mark(number, details=True)))


def summary(context: Context, before: int, seconds: float) -> str:
    """Return one line with the tokens before and after, the budget, the kept blocks and the time."""
    return (
        f"{before:,} -> {context.tokens:,} tokens (budget {context.budget:,}); "
        f"{len(context.kept):,} of {counted(len(context.blocks), 'block')} kept; {seconds:.2f} s"
    )


def stage_lines(context: Context) -> list[str]:
    """Return a line for each stage of pruning in two stages; nothing where there was one stage."""
    names = {"first": context.engines.get("scorer", ""), "window": context.engines.get("scorer", "")}
    lines = []
    for trace in context.trace if len(context.trace) > 1 else ():
        detail, engine = trace.detail, names.get(trace.stage, context.engines.get("fine", ""))
        left = f"{detail['kept']:,} kept, {detail['tokens']:,} tokens" if "kept" in detail else "ranked"
        lines.append(
            f"stage {trace.stage}: {engine} read {detail['blocks']:,} blocks of up to {detail['max_words']} words, "
            f"{left} (budget {detail['budget']:,})"
        )
    return lines
