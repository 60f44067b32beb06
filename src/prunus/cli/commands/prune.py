"""``prunus prune``."""

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
from ..output import emit, emit_json, say, settle, write_whole
from ..trees import as_lines


@click.command("prune")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@click.option("-Q", "--question", required=True, metavar="TEXT", callback=as_unicode, help="What the evidence is for.")
@click.option("--budget", type=int, metavar="N", help="Tokens of the output at most.")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="What to write.")
@engines
@stages
@granularity
@click.option("--breadcrumbs", is_flag=True, help="Keep the headings above each kept block.")
@click.option("--links", is_flag=True, help="Write the targets of links.")
@click.option("--images", is_flag=True, help="Write the addresses of pictures.")
@click.option("--emphasis", is_flag=True, help="Write bold, italics and their kin.")
@shape
@click.option("--explain", is_flag=True, help="Show the ranked blocks on stderr.")
@click.option(
    "--report", type=click.Path(readable=False), metavar="FILE", help="Write a page that shows what was pruned and why."
)
@click.option(
    "--mark",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Write the page's own source with what was kept marked; for several pages, name a folder.",
)
@click.option(
    "--follow", type=click.IntRange(0, 100), default=0, metavar="N", help="Read the N most promising links, too."
)
@common
def command(pages: tuple[str, ...], question: str, **given: Any) -> None:
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
    pruner = Pruner(options_from(given), settings)
    started = time.perf_counter()
    documents = read_given(pages_given(pages, settings), settings, given["quiet"])
    if given["follow"]:
        documents = with_links(documents, question, given["follow"], settings)
    read = time.perf_counter() - started
    context = pruner.prune(documents, question, given["budget"], given["format_"])
    seconds = {"read": read, **context.seconds}
    before = -1
    if given["as_json"] or given["report"] or not given["quiet"]:
        before = context.tokens_before()
    if given["report"]:
        from ..report import write_report

        write_whole(Path(given["report"]), write_report(context, documents, tokens_before=before, seconds=seconds))
    if given["mark"]:
        write_marked(Path(given["mark"]), context, documents)
    if given["as_json"]:
        emit_json(context_record(context, before, seconds, documents.failures))
    else:
        emit(context.output)
    if given["explain"]:
        say(ranking(context))
        if context.tree is not None:
            say(as_lines(context))
    if not given["quiet"]:
        for warning in context.warnings:
            say(f"prunus: {warning}")
        for line in stage_lines(context):
            say(line)
        say(summary(context, before, sum(seconds.values())))
    settle(documents.failures, len(documents))


def write_marked(out: Path, context: Context, documents: Documents) -> None:
    """Write each page's source with what was kept marked: one page to a file, several into a folder.

    :raises BadInput: several pages, and no folder.
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
        if any(place.resolve() == Path(other.url).resolve() for other in documents.trees if other.url):
            raise BadInput(f"{place}: this is the page itself; name another file", subject=str(place))
        write_whole(place, text_for_file(tree, context.mark(number, details=True)))


def summary(context: Context, before: int, seconds: float) -> str:
    """Say in one line what pruning did."""
    return (
        f"{before:,} -> {context.tokens:,} tokens (budget {context.budget:,}); "
        f"{len(context.kept):,} of {len(context.blocks):,} blocks kept; {seconds:.2f} s"
    )


def stage_lines(context: Context) -> list[str]:
    """Say in a line each what the stages of a pruning in two did; nothing where there was one."""
    names = {"first": context.engines.get("scorer", ""), "window": context.engines.get("scorer", "")}
    lines = []
    for one in context.trace if len(context.trace) > 1 else ():
        detail, engine = one.detail, names.get(one.stage, context.engines.get("fine", ""))
        left = f"{detail['kept']:,} kept, {detail['tokens']:,} tokens" if "kept" in detail else "ranked"
        lines.append(
            f"stage {one.stage}: {engine} read {detail['blocks']:,} blocks of up to {detail['max_words']} words, "
            f"{left} (budget {detail['budget']:,})"
        )
    return lines
