"""The report of ``prunus prune --report``: a page that shows every block of every document, coloured by its score.

The page is self-contained: it has no script and loads nothing, and its policy forbids both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from ..core.types import BlockRecord
from ..core.version import __version__
from ..evidence.context import Context
from ..evidence.documents import Documents
from .html_file import html_file, safe
from .output import counted
from .trees import as_html

STEPS: Final = 10
"""Shades of the heat map."""

SHORT_RUN: Final = 2
"""A run of up to this many dropped blocks is shown; a longer run is folded."""

PATH: Final = 25
"""Characters of a block's path that are shown, from its end; the row's tooltip has the whole path."""


def write_report(
    context: Context, documents: Documents, *, tokens_before: int = -1, seconds: Mapping[str, float] | None = None
) -> str:
    """Return the report of one pruning as a page.

    :param context: the result of the pruning, with every kept and dropped block.
    :param documents: the documents that were pruned, with the failures of pages that could not be read.
    :param tokens_before: tokens of the cleaned documents; -1 where they were not counted.
    :param seconds: wall time by stage; by default that of the context.
    """
    parts = [
        f'<main>\n<p class="over">What was kept for the question</p>\n<h1 dir="auto">{safe(context.question)}</h1>\n',
        _tiles(context, documents, tokens_before),
        _stages(context.seconds if seconds is None else seconds),
        _legend(context),
        _contents(context, documents),
        _warnings(context),
        as_html(context),
    ]
    heat = _Heat(context.blocks)
    for number, blocks in groupby(context.blocks, key=lambda block: block.document):
        parts.extend(_document(context, number, list(blocks), heat))
    parts.append("</main>\n")
    style = Path(__file__).with_suffix(".css").read_text("utf-8")
    return html_file(f"Pruned: {context.question}", style, "".join(parts))


class _Heat:
    """Maps scores to shades, linear from the lowest to the highest score of a stage."""

    def __init__(self, blocks: Sequence[BlockRecord]) -> None:
        self.bounds: dict[int, tuple[float, float]] = {}
        for block in blocks:
            if math.isfinite(block.score):
                low, high = self.bounds.get(block.stage, (block.score, block.score))
                self.bounds[block.stage] = min(low, block.score), max(high, block.score)

    def shade(self, block: BlockRecord) -> str:
        """Return the CSS class of a block's shade."""
        low, high = self.bounds.get(block.stage, (0.0, 0.0))
        if not math.isfinite(block.score) or high <= low:
            return f"s{STEPS - 1 if block.score > low else 0}"
        return f"s{min(STEPS - 1, int((block.score - low) / (high - low) * STEPS))}"


def _tiles(context: Context, documents: Documents, before: int) -> str:
    """Write the totals."""
    kept = context.kept
    words_kept, words = sum(block.words for block in kept), documents.words
    share = min(100.0, 100 * context.tokens / max(1, context.budget))
    source = f"of {before:,} tokens" if before >= 0 else "tokens kept"
    used = sum(document.kept > 0 for document in context.documents)
    engines = ", ".join(f"{safe(kind)} {safe(name)}" for kind, name in sorted(context.engines.items()))
    return (
        '<ul class="tiles">\n'
        f"<li><b>{context.tokens:,}</b><span>{source}, written as {context.format}</span></li>\n"
        f'<li><b>{share:.0f} %</b><span class="bar"><i style="width:{share:.1f}%"></i></span>'
        f"<span>of the budget of {context.budget:,} tokens</span></li>\n"
        f"<li><b>{len(kept):,} of {len(context.blocks):,}</b><span>blocks kept, in "
        f"{used} of {counted(len(context.documents), 'document')}</span></li>\n"
        f"<li><b>{words_kept:,} of {words:,}</b><span>words kept; blocks of up to {context.max_words} words</span>"
        "</li>\n"
        f'</ul>\n<p class="soft">Made by Prunus {__version__} with {engines}.</p>\n'
    )


def _stages(seconds: Mapping[str, float]) -> str:
    """Write the time by stage as bars."""
    if not seconds:
        return ""
    longest = max(seconds.values()) or 1.0
    rows = "".join(
        f"<span>{safe(stage)}</span>"
        f'<span class="bar"><i style="width:{100 * value / longest:.1f}%"></i></span>'
        f'<span class="num">{1000 * value:,.1f} ms</span>\n'
        for stage, value in seconds.items()
    )
    return f'<section class="panel" aria-label="Time by stage"><div class="stages">\n{rows}</div></section>\n'


def _legend(context: Context) -> str:
    """Write the legend of colours, marks and roles."""
    last = max((block.stage for block in context.blocks), default=1)
    scores = [block.score for block in context.blocks if block.stage == last and math.isfinite(block.score)]
    low, high = (min(scores), max(scores)) if scores else (0.0, 0.0)
    shades = "".join(f'<i class="s{step}"></i>' for step in range(STEPS))
    return (
        '<section class="panel legend" aria-label="Legend">\n'
        f'<span>score{" of stage 2" if last == 2 else ""} <span class="num">{low:.3f}</span>'
        f'<span class="scale">{shades}</span>'
        f'<span class="num">{high:.3f}</span></span>\n'
        '<span><b class="fate">✓ kept</b> in the output, with a solid bar at its left</span>\n'
        "<span>– dropped: long runs are folded</span>\n"
        "<span>role <b>scored</b>: kept or dropped by its score; <b>header</b>: a kept block needs it; "
        "<b>cut</b>: part of a block that was too large</span>\n</section>\n"
    )


def _contents(context: Context, documents: Documents) -> str:
    """Write the list of documents, and the list of pages that could not be read."""
    out = []
    if len(context.documents) > 1:
        items = "".join(
            f'<li><span class="num">{document.kept:,} / {document.blocks:,}</span>'
            f'<a href="#d{number}">{safe(document.title or document.url or "page")}</a></li>\n'
            for number, document in enumerate(context.documents)
        )
        out.append(f'<section class="panel"><ol class="toc">\n{items}</ol></section>\n')
    if documents.failures:
        items = "".join(f"<li>{safe(reason)}</li>\n" for reason in documents.failures.values())
        out.append(f'<section class="panel"><p>Could not be read:</p><ul class="failures">\n{items}</ul></section>\n')
    return "".join(out)


def _warnings(context: Context) -> str:
    """Write the warnings of the pruning."""
    items = "".join(f"<li>{safe(warning)}</li>\n" for warning in context.warnings)
    return f'<section class="panel"><ul class="failures">\n{items}</ul></section>\n' if items else ""


def _document(context: Context, number: int, blocks: Sequence[BlockRecord], heat: _Heat) -> Iterator[str]:
    """Write one document: its map, then its blocks in order."""
    info = context.documents[number]
    tokens = f"{info.kept:,} of {info.blocks:,} blocks kept"
    yield f'<section class="doc" id="d{number}">\n<header><h2 dir="auto">{safe(info.title or info.url or "page")}</h2>'
    yield f"<p>{safe(info.url)}{' · ' if info.url else ''}{tokens}</p></header>\n"
    yield '<nav class="map" aria-label="Map of the blocks">'
    for block in blocks:
        fate = "kept" if block.kept else "dropped"
        yield (
            f'<a href="#b{block.index}" class="{heat.shade(block)}{" k" if block.kept else ""}"'
            f' title="{fate}, score {block.score:.3f}: {safe(_start(block.text))}"></a>'
        )
    yield '</nav>\n<div class="row head"><span>fate</span><span>score</span><span>words</span>'
    yield "<span>role</span><span>path</span><span>text</span></div>\n"
    for kept, run in groupby(blocks, key=lambda block: block.kept):
        same = list(run)
        rows = "".join(_row(block, heat) for block in same)
        yield rows if kept or len(same) <= SHORT_RUN else _folded(same, rows, heat)
    yield "</section>\n"


def _folded(blocks: Sequence[BlockRecord], rows: str, heat: _Heat) -> str:
    """Fold a run of dropped blocks under one line with its blocks, words and best score."""
    best = max(blocks, key=lambda block: (block.stage, block.score))
    words = sum(block.words for block in blocks)
    return (
        f'<details class="run"><summary>– {counted(len(blocks), "block")} dropped, {counted(words, "word")}, '
        f"best score "
        f'<span class="score chip {heat.shade(best)}">{best.score:.3f}</span></summary>\n{rows}</details>\n'
    )


def _row(block: BlockRecord, heat: _Heat) -> str:
    """Write one block."""
    mark, fate = ("k", "✓ kept") if block.kept else ("d", "– dropped")
    path = block.path if len(block.path) <= PATH else "…" + block.path[1 - PATH :]
    title = f"{safe(block.path)}; {block.role}; score {block.score:.4f}; {block.words} words"
    title += f"; scored by stage {block.stage}"
    return (
        f'<div class="row {mark}" id="b{block.index}" title="{title}"><span class="fate">{fate}</span>'
        f'<span class="score {heat.shade(block)}">{block.score:.3f}</span>'
        f'<span class="words">{block.words}</span><span class="role">{block.role}</span>'
        f'<span class="path">{safe(path)}</span><span class="text" dir="auto">{safe(block.text)}</span></div>\n'
    )


def _start(text: str) -> str:
    line = " ".join(text[:160].split())
    return line if len(line) <= 80 else line[:79] + "…"
