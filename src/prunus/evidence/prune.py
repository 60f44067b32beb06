"""Prune documents for a question: blocks, scores, greedy selection, and the Context that reports them.

This module knows ports only; the engines come from :mod:`prunus.engines`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.checked_engines import declared
from ..core.deadline import check
from ..core.errors import BadBudget, BadInput
from ..core.options import Options
from ..core.types import DocumentInfo, OutputFormat
from ..pages.write.style import LEAN, Style
from .blocks import Blocks, max_words_for
from .context import Context, Records
from .documents import Documents
from .greedy import Selection, select
from .headings import heading_blocks, heading_paths, with_breadcrumbs, with_heading
from .refine import subset
from .render import Rendering
from .two_stage import Engines, RankedBlocks, Writing, cut_best, rank, rank_once, second_stage, sizes_for

_FISCAL: Final = re.compile(r"\bFY ?(19|20)?(\d\d)\b")


def prune(
    documents: Documents, query: str, budget: int, format: OutputFormat, options: Options, engines: Engines
) -> Context:
    """Keep the best evidence for a question that fits a token budget.

    :param budget: most tokens of the output in ``format``, markup included.
    :raises BadInput: the question is empty, or an option has a bad value.
    :raises BadBudget: the budget is below 1, or no piece of evidence fits it.
    """
    if not query.strip():
        raise BadInput("the question is empty", subject="query")
    if budget < 1:
        raise BadBudget(f"a budget of {budget} tokens holds nothing; give at least 1", subject=str(budget))
    if options.units not in ("blocks", "leaves"):
        raise BadInput(f"units {options.units!r} are not known; choose blocks or leaves", subject="units")
    clock = _Clock()
    asked = _with_years(query, documents)
    writing = _writing(documents, format, options, engines)
    rendering = writing.rendering
    if engines.second_scorer is None:
        blocks = documents.blocks(_max_words(documents.words, query, budget, options), options.units)
        clock.lap("blocks")
        ranked = rank_once(blocks, asked, engines.scorer)
    else:
        sizes = sizes_for(query, budget, options)
        documents.expanded(sizes.coarse_words, sizes.words, options.units)  # cached: so that the lap measures cutting
        clock.lap("blocks")
        ranked = rank(documents, asked, options, engines, writing, sizes)
    clock.lap("score")
    parts = cut_best(ranked, engines.scorer, asked, writing, budget)
    part = subset(ranked.blocks, ranked.places)
    ranking = ranked.ranking if options.fill else _bearing(part, ranked.ranking, engines)
    chosen = select(part, ranking, budget, engines.counter, rendering, writing.requires(part))
    if not chosen.kept:
        raise BadBudget(
            f"a budget of {budget} tokens is below the smallest piece of evidence; give more", subject=str(budget)
        )
    clock.lap("prune")
    return _context(ranked, chosen, parts, rendering, _Call(query, budget, engines, clock.laps))


def asked_blocks(
    documents: Documents, query: str, budget: int, format: OutputFormat, options: Options, engines: Engines
) -> Blocks:
    """Return the blocks that :func:`prune` with the same arguments asks the second scorer to rank, with their paths.

    A pruner is trained and measured on them. The second scorer is not called; ``engines.second_scorer`` may be None.

    :raises BadInput: an option has a bad value.
    :raises BadBudget: the first stage keeps nothing.
    """
    writing = _writing(documents, format, options, engines)
    asked = _with_years(query, documents)
    return second_stage(documents, asked, options, engines, writing, sizes_for(query, budget, options))


def _with_years(query: str, documents: Documents) -> str:
    """Return a question with the years that it abbreviates (FY2019, FY21) as documents that do not do so write them."""
    if not _FISCAL.search(query) or any(_FISCAL.search(tree.canonical) for tree in documents.trees):
        return query
    return _FISCAL.sub(lambda match: f"{match[1] or 20}{match[2]}", query)


def _writing(documents: Documents, format: OutputFormat, options: Options, engines: Engines) -> Writing:
    """Return how the output is written and counted."""
    rendering = Rendering(format, style_of(options), len(documents) > 1)
    return Writing(engines.counter, rendering, with_breadcrumbs if options.breadcrumbs else with_heading)


def _max_words(words: int, query: str, budget: int, options: Options) -> int:
    """Return the words per block of a single stage."""
    max_words = options.max_words or max_words_for(words, budget, query)
    if max_words < 1:
        raise BadInput(f"max_words must be at least 1, not {max_words}", subject="max_words")
    return max_words


def _bearing(blocks: Blocks, ranking: NDArray[np.float64], engines: Engines) -> NDArray[np.float64]:
    """Return the ranking with -inf for blocks that are not kept for themselves.

    These are headings, and blocks that hardly bear on the question, where the scorer can tell. Where a heading is best
    of all, the block below it takes its rank.
    """
    headings, paths, bearing = heading_blocks(blocks), heading_paths(blocks), ranking.copy()
    if len(headings) == len(blocks):
        return ranking
    best = int(np.argmax(ranking))
    below = best
    while below in headings and below + 1 < len(blocks) and below in paths[below + 1]:
        below += 1
    bearing[below] = ranking[best]
    bearing[list(headings)] = -np.inf
    share = 0.0 if engines.second_scorer else declared(engines.scorer, "scorer", "least_share")
    if share:
        bearing[bearing < share * bearing.max()] = -np.inf
    return bearing


def style_of(options: Options) -> Style:
    """Return the style that pruned output is written in."""
    if options.full or options.pretty:
        return Style(full=True, pretty=options.pretty)
    return replace(LEAN, links=options.links, images=options.images, emphasis=options.emphasis)


class _Clock:
    """Measures the wall time of each stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage and add its seconds."""
        check()
        now = time.perf_counter()
        self.laps[stage] = self.laps.get(stage, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class _Call:
    """The parts of a call that its Context reports."""

    query: str
    budget: int
    engines: Engines
    seconds: Mapping[str, float]


def _context(
    ranked: RankedBlocks, chosen: Selection, parts: frozenset[int], rendering: Rendering, call: _Call
) -> Context:
    """Build the Context from the selection and the records of all blocks."""
    blocks, scores = ranked.blocks, ranked.scores
    kept, required = ([ranked.places[index] for index in indices] for indices in (chosen.kept, chosen.required))
    block_counts = Counter(block.document for block in blocks.blocks)
    kept_counts = Counter(blocks.blocks[index].document for index in kept)
    documents = [
        DocumentInfo(tree.document, tree.url, tree.title, kept_counts[number], block_counts[number])
        for number, tree in enumerate(blocks.trees)
    ]
    return Context(
        output=chosen.output,
        format=rendering.format,
        tokens=chosen.tokens,
        budget=call.budget,
        question=call.query,
        blocks=Records(blocks, scores, kept, required, parts, ranked.stage if ranked.trace else None),
        documents=documents,
        engines=_names(call.engines, ranked),
        seconds=_by_stage(call.seconds, ranked),
        max_words=blocks.max_words,
        _blocks=blocks,
        _kept=kept,
        _scores=scores,
        _rendering=rendering,
        _counter=call.engines.counter,
        _chance=call.engines.chance,
        warnings=(
            *(f"{tree.url or tree.document}: {said}" for tree in blocks.trees for said in tree.warnings),
            *ranked.warnings,
        ),
        trace=tuple(ranked.trace),
        tree=ranked.tree,
    )


def _names(engines: Engines, ranked: RankedBlocks) -> Mapping[str, str]:
    """Return the names of the engines by kind; a second scorer that worked alone is called the scorer."""
    names = dict(engines.names)
    if "second_scorer" in names and all(stage.stage == "second" for stage in ranked.trace):
        names["scorer"] = names.pop("second_scorer")
    return names


def _by_stage(seconds: Mapping[str, float], ranked: RankedBlocks) -> Mapping[str, float]:
    """Return wall time by stage; the time of scoring is split where there were two stages."""
    if len(ranked.trace) < 2:
        return seconds
    parts = {f"score, {stage.stage}": stage.seconds for stage in ranked.trace}
    split: dict[str, float] = {}
    for name, value in seconds.items():
        split |= {**parts, "score, rest": max(0.0, value - sum(parts.values()))} if name == "score" else {name: value}
    return split
