"""``prunus prune``: keep the evidence for a question, with a report of what was kept and why."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from ...api.pages import Pruner, with_links
from ...api.plain import context_record
from ...core.confidence import HARDLY, unlikely
from ...core.errors import BadInput, NothingFound
from ...core.settings import load_settings
from ...core.types import BlockRecord
from ...evidence.context import Context
from ...evidence.documents import Documents
from ...evidence.mark import text_for_file
from ..choices import (
    FORMATS,
    PAGE,
    budget,
    common,
    engines,
    granularity,
    options_from,
    origin,
    question,
    shape,
    shown_only,
    stages,
)
from ..inputs import pages_given, read_given
from ..output import counted, emit, emit_json, say, settle, shorten, working, write_whole
from ..trees import as_lines

BELOW: Final = 20
"""Dropped blocks that are shown below the last kept block."""

MOST: Final = 60
"""Blocks that are shown at most."""

_PATH: Final = 34
_TEXT: Final = 48


class _Prune(click.Command):
    """The command, with ``--json=full`` beside ``--json``: click knows no option whose value only ``=`` gives."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, ["--json-full" if arg == "--json=full" else arg for arg in args])


@click.command("prune", cls=_Prune)
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@question("Question to keep evidence for.", required=True)
@budget("the output")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="Format of the output.")
@engines
@stages
@granularity
@click.option("--breadcrumbs", is_flag=True, help="Keep all headings above each kept block, not only its own.")
@click.option("--fill", is_flag=True, help="Fill the budget, also with what hardly bears on the question.")
@click.option("--strict", is_flag=True, help="Fail with exit code 4 where nothing is likely to answer.")
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
    "--mark-style/--no-mark-style",
    default=True,
    help="Colour the marked parts in a browser, by a style that --mark writes into the page; on by default.",
)
@click.option(
    "--follow",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Also read the N most promising links.",
)
@origin
@shown_only
@click.option("--json-full", is_flag=True, hidden=True)
@common
def command(pages: tuple[str, ...], question: str, **flags: Any) -> None:
    """Keep the evidence for a question that fits a token budget.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. --json writes the output
    with the kept blocks; --json=full writes all blocks.

    \b
    Examples:
      prunus prune examples/site/plans-and-prices.html -q "What does Harbour cost?" --budget 256
      prunus prune examples/site -q "How long is the Pell 2 guaranteed?" --format markdown
      prunus prune - -q "How do I back up the store?" < examples/site/levelcast-docs.html
      prunus prune examples/site/faq.html -q "When is a value final?" --explain --report report.html
      prunus prune examples/site/faq.html -q "What does residual mean?" --scorer bm25 --json
      prunus prune examples/site/faq.html -q "What does residual mean?" --mark marked.html
      prunus prune examples/site -q "When is a value final?" --two-stage --second-scorer bm25 --budget 500
    """
    settings = load_settings({"shown_only": flags["shown_only"] or None})
    pruner = Pruner(options_from(flags), settings)
    started = time.perf_counter()
    given = pages_given(pages, settings, url=flags["url"], kind=flags["kind"])
    documents = read_given(given, settings, flags["quiet"])
    if flags["follow"]:
        documents = with_links(documents, question, flags["follow"], settings)
    read = time.perf_counter() - started
    with working("pruning", flags["quiet"]):
        context = pruner.prune(documents, question, flags["budget"], flags["format_"])
    seconds = {"read": read, **context.seconds}
    sure = context.confidence() if flags["strict"] or flags["as_json"] or not flags["quiet"] else 1.0
    if flags["strict"] and sure < HARDLY:
        raise NothingFound(unlikely(sure), subject=question[:200])
    before = -1
    flags["as_json"] = flags["as_json"] or flags["json_full"]
    if flags["as_json"] or flags["report"] or not flags["quiet"]:  # counting costs time; only these show it
        with working("counting tokens", flags["quiet"]):
            before = context.tokens_before()
    if flags["report"]:
        from ..report import write_report

        write_whole(Path(flags["report"]), write_report(context, documents, tokens_before=before, seconds=seconds))
    if flags["mark"]:
        inputs = [page.path for page in given if page.path is not None]
        write_marked(Path(flags["mark"]), context, documents, inputs, flags["mark_style"])
    if flags["as_json"]:
        record = context_record(context, documents.trees, before, seconds, documents.failures, flags["json_full"])
        emit_json(record | {"confidence": sure})
    else:
        emit(context.output)
    if flags["explain"]:
        say(ranking(context))
        if context.tree is not None:
            say(as_lines(context))
    if not flags["quiet"]:
        for warning in context.warnings:
            say(f"prunus: {warning}")
        if sure < HARDLY:
            say(f"prunus: {unlikely(sure)}")
        for line in stage_lines(context):
            say(line)
        say(summary(context, before, sum(seconds.values())))
    settle(documents.failures, len(documents))


def write_marked(
    out: Path, context: Context, documents: Documents, inputs: Sequence[Path] = (), style: bool = True
) -> None:
    """Write each page's source with the kept parts marked: one page to a file, several into a folder.

    :param inputs: the files of the pages, which are never overwritten.
    :param style: write a style sheet into the page that shows the kept parts in a browser.
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
        if any(place.resolve() == path.resolve() for path in inputs):
            raise BadInput(f"{place}: this would overwrite an input page; name another file", subject=str(place))
        write_whole(place, text_for_file(tree, context.mark(number, details=True, style=style), styled=style))


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
        detail, engine = trace.detail, names.get(trace.stage, context.engines.get("second_scorer", ""))
        left = f"{detail['kept']:,} kept, {detail['tokens']:,} tokens" if "kept" in detail else "ranked"
        lines.append(
            f"stage {trace.stage}: {engine} read {detail['blocks']:,} blocks of up to {detail['max_words']} words, "
            f"{left} (budget {detail['budget']:,})"
        )
    return lines


def ranking(context: Context) -> str:
    """Return the blocks by score as a table: score, fate, role, words, path, first words.

    After two stages, the blocks that the second stage scored come first: the two stages' scores have different scales.
    """
    ranked = sorted(context.blocks, key=lambda block: (-block.stage, -block.score, block.index))
    last = max((index for index, block in enumerate(ranked) if block.kept), default=-1)
    shown = ranked[: min(last + 1 + BELOW, MOST)]
    lines = [f"{'score':>9}  {'':7}  {'role':6}  {'words':>5}  {'path':{_PATH}}  first words"]
    for index, block in enumerate(shown):
        if index and block.stage != shown[index - 1].stage:
            lines.append(f"{'':9}  the score of the first stage from here on:")
        lines.append(_row(block))
    if len(shown) < len(ranked):
        kept = sum(block.kept for block in ranked[len(shown) :])
        more = f", {kept:,} of them kept" if kept else ""
        lines.append(
            f"… and {len(ranked) - len(shown):,} blocks with lower scores{more}; --json and --report show them all"
        )
    return "\n".join(lines)


def _row(block: BlockRecord) -> str:
    path = block.path if len(block.path) <= _PATH else "…" + block.path[1 - _PATH :]
    fate = "kept" if block.kept else "dropped"
    text = shorten(block.text, _TEXT)
    return f"{block.score:9.4f}  {fate:7}  {block.role:6}  {block.words:5}  {path:{_PATH}}  {text}"
