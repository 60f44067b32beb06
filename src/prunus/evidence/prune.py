"""The flow: pages → documents → blocks → scores → evidence → passages → answer → citations.

Sees ports only: the engines arrive from :mod:`prunus.engines`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.errors import BadBudget, BadInput
from ..core.options import Options
from ..core.types import Context, DocumentInfo, Format
from ..pages.write.style import LEAN, Style
from ..pages.write.whole import render_tree
from .block_size import max_words_for
from .blocks import Blocks
from .documents import Documents
from .engines import Engines
from .greedy import Selection, select
from .records import Records
from .recut import subset
from .render import Rendering, render_blocks
from .two_stage import RankedBlocks, Scorers, Writing, cut_best, rank, rank_once, sizes_for

if TYPE_CHECKING:
    pass


def prune(documents: Documents, query: str, budget: int, format: Format, options: Options, engines: Engines) -> Context:
    """Keep the evidence for a question that fits a budget.

    :param budget: tokens of the output in ``format``, everything included.
    :raises BadInput: an empty question.
    :raises BadBudget: the budget is below 1, or below what any piece of evidence needs.
    """
    if not query.strip():
        raise BadInput("the question is empty", subject="query")
    if budget < 1:
        raise BadBudget(f"a budget of {budget} tokens holds nothing; give at least 1", subject=str(budget))
    if options.units not in ("blocks", "leaves"):
        raise BadInput(f"no units are called {options.units!r}; there are: blocks, leaves", subject="units")
    clock = _Clock()
    rendering = Rendering(format, style_of(options), len(documents) > 1)
    writing = Writing(engines.counter, rendering, with_breadcrumbs if options.breadcrumbs else _as_they_are)
    if engines.fine is None:
        blocks = documents.blocks(_max_words(documents.words, query, budget, options), options.units)
        clock.lap("blocks")
        ranked = rank_once(blocks, query, engines.scorer)
    else:
        sizes = sizes_for(query, budget, options)
        documents.expanded(sizes.coarse_words, sizes.words, options.units)  # made once, for every question
        clock.lap("blocks")
        scorers = Scorers(engines.scorer, engines.fine, engines.first)
        ranked = rank(documents, query, options, scorers, writing, sizes)
    clock.lap("score")
    parts = cut_best(ranked, engines.scorer, query, writing, budget)
    part = subset(ranked.blocks, ranked.places)
    chosen = select(part, ranked.ranking, budget, engines.counter, rendering, writing.requires(part))
    if not chosen.kept:
        raise BadBudget(
            f"a budget of {budget} tokens is below the smallest piece of evidence; give more", subject=str(budget)
        )
    clock.lap("prune")
    return _context(ranked, chosen, parts, rendering, _Call(query, budget, engines, clock.laps))


def _max_words(words: int, query: str, budget: int, options: Options) -> int:
    """Return the granularity of one stage."""
    max_words = options.max_words or max_words_for(words, budget, query)
    if max_words < 1:
        raise BadInput(f"max_words must be at least 1, not {max_words}", subject="max_words")
    return max_words


def _as_they_are(_: Blocks) -> None:
    """Let blocks require what the cut says."""


def style_of(options: Options) -> Style:
    """Return the style that pruned output is written in."""
    if options.full or options.pretty:
        return Style(full=True, pretty=options.pretty)
    return replace(LEAN, links=options.links, images=options.images, emphasis=options.emphasis)


def with_breadcrumbs(blocks: Blocks) -> list[tuple[int, ...]]:
    """Return for each block those that it needs when its headings are kept above it."""
    holder: dict[tuple[int, int], int] = {}
    for index, block in enumerate(blocks.blocks):
        for node in range(block.lo, block.hi):
            if blocks.trees[block.document].tag[node] in ("h1", "h2", "h3", "h4", "h5", "h6"):
                holder[block.document, node] = index
    needed = []
    for index, (block, context) in enumerate(zip(blocks.blocks, blocks.contexts, strict=True)):
        above = [holder[block.document, node] for node in context.headings if (block.document, node) in holder]
        needed.append(tuple(dict.fromkeys(i for i in (*above, *block.requires) if i != index)))
    return needed


class _Clock:
    """Wall time by stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage] = self.laps.get(stage, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class _Call:
    """What a context reports of the call that made it."""

    query: str
    budget: int
    engines: Engines
    seconds: Mapping[str, float]


def _context(
    ranked: RankedBlocks, chosen: Selection, parts: frozenset[int], rendering: Rendering, call: _Call
) -> Context:
    """Gather what survived, and what did not."""
    blocks, scores = ranked.blocks, ranked.scores
    kept, required = ([ranked.places[index] for index in some] for some in (chosen.kept, chosen.required))
    own = Counter(block.document for block in blocks.blocks)
    own_kept = Counter(blocks.blocks[index].document for index in kept)
    documents = [
        DocumentInfo(tree.document, tree.url, tree.title, own_kept[number], own[number])
        for number, tree in enumerate(blocks.trees)
    ]
    counter = call.engines.counter
    return Context(
        output=chosen.output,
        format=rendering.format,
        tokens=chosen.tokens,
        budget=call.budget,
        query=call.query,
        blocks=Records(blocks, scores, kept, required, parts, ranked.stage if ranked.trace else None),
        documents=documents,
        engines=_names(call.engines, ranked),
        seconds=_by_stage(call.seconds, ranked),
        max_words=blocks.max_words,
        _kept=kept,
        _render=lambda other: render_blocks(blocks, kept, replace(rendering, format=other)),
        _count=lambda text: int(counter.count([text])[0]),
        _mark=lambda document, details: _marked(blocks, kept, document, scores.tolist() if details else None),
        _before=lambda: sum(
            int(counter.count([render_tree(tree, rendering.format, rendering.style)])[0]) for tree in blocks.trees
        ),
        warnings=tuple(ranked.warnings),
        trace=tuple(ranked.trace),
        tree=ranked.tree,
    )


def _names(engines: Engines, ranked: RankedBlocks) -> Mapping[str, str]:
    """Return the engines by kind; where the fine scorer worked alone, it is the scorer."""
    names = dict(engines.names)
    if "fine" in names and all(one.stage == "fine" for one in ranked.trace):
        names["scorer"] = names.pop("fine")
    return names


def _by_stage(seconds: Mapping[str, float], ranked: RankedBlocks) -> Mapping[str, float]:
    """Return wall time by stage, with that of scoring told apart where there were two stages."""
    if len(ranked.trace) < 2:
        return seconds
    parts = {f"score, {one.stage}": one.seconds for one in ranked.trace}
    found: dict[str, float] = {}
    for name, value in seconds.items():
        found |= {**parts, "score, rest": max(0.0, value - sum(parts.values()))} if name == "score" else {name: value}
    return found


def _marked(blocks: Blocks, kept: Sequence[int], document: int, scores: Sequence[float] | None) -> str:
    from .mark import mark  # here: hardly any call marks

    return mark(blocks, kept, document, scores)
