"""Pruning in two stages (HtmlRAG §3.4): a cheap scorer over everything, a fine one over what it left.

The first stage scores coarse blocks of all pages and keeps what fits an intermediate budget. What it
kept is expanded into finer blocks, which the fine scorer reads and ranks; greedy pruning to the final
budget follows, as with one stage. Whatever the first stage drops never comes back. Either stage works
alone.

A fine scorer that reads all blocks in one prompt may find them over its model's window. Then the
first stage chooses what it reads; the others rank behind by their first score, and a warning says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadBudget, BadInput, OverWindow
from ..core.options import Options
from ..core.ports import TokenCounter
from ..core.types import Trace
from .block_size import coarse_budget_for, coarse_words_for, fine_words_for
from .blocks import Block, Blocks, split
from .documents import Documents
from .greedy import select, text_tokens
from .recut import Expanded, replaced, subset
from .render import Rendering, render_blocks
from .scorer import Scorer

_SHRINKS: Final = 8
"""How often the first stage keeps less because a prompt is over a window; each try only counts tokens."""

_MARGIN: Final = 0.95
"""Of a window that is aimed at: what a counter of tokens says is not what the model counts."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Granularity and budgets of two stages.

    :param coarse_words, words: of a block in the first and in the second stage.
    :param coarse_budget, budget: tokens that each leaves.
    """

    coarse_words: int
    words: int
    coarse_budget: int
    budget: int


def sizes_for(query: str, budget: int, options: Options) -> Sizes:
    """Choose granularity and intermediate budget where the options leave them open.

    :raises BadInput: a number is negative, or finer where it must be coarser.
    :raises BadBudget: the intermediate budget is below the final one.
    """
    for name in ("coarse_budget", "coarse_words", "max_words"):
        if getattr(options, name) < 0:
            raise BadInput(f"{name} must be at least 1, not {getattr(options, name)}", subject=name)
    coarse_budget = options.coarse_budget or coarse_budget_for(budget)
    if coarse_budget < budget:
        raise BadBudget(
            f"the first stage cannot leave {coarse_budget} tokens for a budget of {budget}; raise coarse_budget",
            subject="coarse_budget",
        )
    words = options.max_words or fine_words_for(budget, query)
    if options.coarse_words and not options.max_words:
        words = min(words, options.coarse_words)
    coarse_words = options.coarse_words or coarse_words_for(coarse_budget, words)
    if coarse_words < words:
        raise BadInput(
            f"the first stage's blocks of {coarse_words} words are finer than the second's of {words}; raise "
            "coarse_words or lower max_words",
            subject="coarse_words",
        )
    return Sizes(coarse_words, words, coarse_budget, budget)


@dataclass(slots=True)
class RankedBlocks:
    """Blocks with scores, ready for the final budget.

    :param blocks: the cut of all pages; paths, spans and records are of these.
    :param scores: one a block, float64 [n]: of the stage that decided over it.
    :param stage: that stage, 1 or 2, int [n].
    :param places: the blocks that may be kept, ascending.
    :param ranking: what they are ranked by, float64 [places].
    :param trace: a record of each stage that ran.
    :param warnings: what the caller should know.
    :param tree: the token tree, of a scorer that makes one.
    """

    blocks: Blocks
    scores: NDArray[np.float64]
    stage: NDArray[Any]
    places: Sequence[int]
    ranking: NDArray[np.float64]
    trace: list[Trace] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tree: Any = None


@dataclass(frozen=True, slots=True)
class Scorers:
    """The scorers of two stages.

    :param first: the cheap one.
    :param fine: the one that reads what it left.
    :param when: of the first stage: ``always``; ``never``, unless a prompt is over a window; ``large``: where
        the pages are over the intermediate budget.
    """

    first: Scorer
    fine: Scorer
    when: str = "large"


def rank_once(blocks: Blocks, query: str, scorer: Scorer) -> RankedBlocks:
    """Score blocks in one stage."""
    scores, tree = score_with(scorer, query, blocks)
    return RankedBlocks(blocks, scores, np.ones(len(blocks), np.int8), range(len(blocks)), scores, tree=tree)


def rank(
    documents: Documents, query: str, options: Options, scorers: Scorers, writing: Writing, sizes: Sizes
) -> RankedBlocks:
    """Score blocks in one or two stages, as the pages want it.

    :raises OverWindow: fewer than two blocks fit the fine scorer's window.
    :raises BadBudget: the first stage keeps nothing.
    """
    run = _Run(documents, query, options, scorers, writing, sizes)
    return run.ranked()


@dataclass(frozen=True, slots=True)
class Writing:
    """How output is written and counted.

    :param requires: what each block needs, for a cut.
    """

    counter: TokenCounter
    rendering: Rendering
    requires: Callable[[Blocks], Sequence[tuple[int, ...]] | None]


class _Run:
    """One question: the first stage is run when it is wanted, and at most once."""

    def __init__(
        self, documents: Documents, query: str, options: Options, scorers: Scorers, writing: Writing, sizes: Sizes
    ) -> None:
        self.query, self.scorers, self.writing, self.sizes = query, scorers, writing, sizes
        self.expanded: Expanded = documents.expanded(sizes.coarse_words, sizes.words, options.units)
        self.first_scores: NDArray[np.float64] | None = None
        self.trace: list[Trace] = []
        self.warnings: list[str] = []

    def ranked(self) -> RankedBlocks:
        """Run what is wanted."""
        blocks = self.expanded.blocks
        places = list(range(len(blocks)))
        if self._wants_first():
            places = self._survivors(self.sizes.coarse_budget)
            if not places:
                raise BadBudget(
                    f"the first stage's budget of {self.sizes.coarse_budget} tokens is below the smallest block of "
                    "these pages; raise coarse_budget, or lower coarse_words",
                    subject="coarse_budget",
                )
        read, fine_scores, tree = self._fine(places)
        scores, stage = np.full(len(blocks), 0.0), np.full(len(blocks), 1)
        if self.first_scores is not None:
            scores = self.first_scores[np.asarray(self.expanded.parents, np.int64)]
        scores[read] = fine_scores
        stage[read] = 2
        ranking = scores[places]
        behind = stage[places] == 1
        if behind.any():
            ranking[behind] = _below(float(fine_scores.min()), ranking[behind])
        return RankedBlocks(blocks, scores, stage, places, ranking, self.trace, self.warnings, tree)

    def _wants_first(self) -> bool:
        """Decide whether the first stage runs."""
        if self.scorers.when != "large":
            return self.scorers.when == "always"
        coarse, budget = self.expanded.coarse, self.sizes.coarse_budget
        if sum(text_tokens(coarse, self.writing.counter)) > budget * 1.02:  # texts are counted apart
            return True
        whole = render_blocks(coarse, range(len(coarse)), self.writing.rendering)
        return int(self.writing.counter.count([whole])[0]) > budget

    def _survivors(self, budget: int, name: str = "first") -> list[int]:
        """Return the fine blocks inside the coarse ones that a budget of the first stage keeps.

        :param name: of the record in the trace; a later one of the same name replaces it.
        """
        coarse, writing, started = self.expanded.coarse, self.writing, time.perf_counter()
        if self.first_scores is None:
            self.first_scores = np.asarray(self.scorers.first.score(self.query, coarse), np.float64)
        chosen = select(coarse, self.first_scores, budget, writing.counter, writing.rendering, writing.requires(coarse))
        kept = set(chosen.kept)
        detail = {
            "max_words": coarse.max_words,
            "blocks": len(coarse),
            "kept": len(kept),
            "budget": budget,
            "tokens": chosen.tokens,
        }
        self.trace = [one for one in self.trace if one.stage != name]
        self.trace.append(Trace(name, time.perf_counter() - started, detail))
        return [place for place, parent in enumerate(self.expanded.parents) if parent in kept]

    def _fine(self, places: list[int]) -> tuple[list[int], NDArray[np.float64], Any]:
        """Score blocks by the fine scorer, as many as its window holds.

        :returns: the blocks that it read, their scores, and the token tree where the scorer makes one.
        """
        read, budget = places, 0
        for shrinks in range(_SHRINKS + 1):
            started = time.perf_counter()
            part = subset(self.expanded.blocks, read)
            try:
                scores, tree = score_with(self.scorers.fine, self.query, part)
            except OverWindow as over:
                budget = self._smaller(part, over, budget)
                fewer = [place for place in self._survivors(budget, "window") if place in set(read)]
                if len(fewer) < 2 or shrinks == _SHRINKS:  # one block alone is ranked by nobody
                    raise
                read, window = fewer, over.window
                continue
            if len(read) < len(places):
                self.warnings.append(
                    f"the pages are over the fine scorer's window of {window:,} tokens: it ranked the {len(read):,} of "
                    f"{len(places):,} blocks that the first stage found best, and the others stand behind them"
                )
            detail = {"max_words": self.sizes.words, "blocks": len(read), "budget": self.sizes.budget}
            self.trace.append(Trace("fine", time.perf_counter() - started, detail))
            return read, scores, tree
        raise AssertionError("the last try returns or raises")

    def _smaller(self, part: Blocks, over: OverWindow, before: int) -> int:
        """Return a budget of the first stage that should fit a window."""
        if not before:
            whole = render_blocks(part, range(len(part)), self.writing.rendering)
            before = int(self.writing.counter.count([whole])[0])
        return max(1, int(before * min(_MARGIN, _MARGIN * over.window / max(1, over.needed))))


def score_with(scorer: Scorer, query: str, blocks: Blocks) -> tuple[NDArray[np.float64], Any]:
    """Return scores, and the token tree of a scorer that makes one (None of others)."""
    if scorer.tree is not None and len(blocks):
        tree = scorer.tree(query, blocks)
        return np.asarray(tree.scores, np.float64), tree
    return np.asarray(scorer.score(query, blocks), np.float64), None


def _below(least: float, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put scores below a number, in their order."""
    order = np.unique(scores, return_inverse=True)[1]
    return np.asarray(least - 1.0 - (order.max() - order), np.float64)


def cut_best(ranked: RankedBlocks, scorer: Scorer, query: str, writing: Writing, budget: int) -> frozenset[int]:
    """Cut the best block at its sentences where it alone, with what it needs, is over the budget.

    The parts take its place in ``ranked``, in the order of the scorer.

    :param scorer: the cheap one: it reads all blocks once more.
    :returns: the indices of the parts; none where nothing was cut.
    """
    none: frozenset[int] = frozenset()
    if not ranked.places:
        return none
    blocks, best = ranked.blocks, ranked.places[int(np.argmax(ranked.ranking))]
    alone = render_blocks(blocks, sorted({best, *blocks.blocks[best].requires}), writing.rendering)
    if len(alone) <= budget or int(writing.counter.count([alone])[0]) <= budget:
        return none
    inside = split(blocks, best, max(1, min(blocks.max_words, budget) // 8))
    if len(inside) < 2:
        return none
    parted = replaced(blocks, best, _under_header(blocks, best, inside, writing, budget))
    parts = range(best, best + len(inside))
    own = np.asarray(scorer.score(query, parted), np.float64)[best : best + len(inside)]
    place, grown = ranked.places.index(best), len(inside) - 1
    falling = ranked.ranking[place] - np.argsort(np.argsort(-own, kind="stable"), kind="stable") * 1e-9
    ranked.ranking = np.concatenate([ranked.ranking[:place], falling, ranked.ranking[place + 1 :]])
    shown = ranked.scores[best] + (falling - falling.max())
    ranked.scores = np.concatenate([ranked.scores[:best], shown, ranked.scores[best + 1 :]])
    ranked.stage = np.concatenate([ranked.stage[:best], ranked.stage[[best] * len(inside)], ranked.stage[best + 1 :]])
    ranked.places = [*ranked.places[:place], *parts, *(other + grown for other in ranked.places[place + 1 :])]
    ranked.blocks = parted
    return frozenset(parts)


def _under_header(blocks: Blocks, best: int, inside: list[Block], writing: Writing, budget: int) -> list[Block]:
    """Let the parts of rows that shared a block keep the header that it requires, where the smallest fits under it."""
    rows = blocks.blocks[best]
    if rows.is_subtree or not rows.requires or blocks.trees[rows.document].tag[rows.lo] != "tr":
        return inside
    smallest = min(inside, key=lambda part: part.words)
    trial = Blocks(blocks.trees, [*(blocks.blocks[place] for place in rows.requires), smallest], blocks.max_words)
    if int(writing.counter.count([render_blocks(trial, range(len(trial)), writing.rendering)])[0]) > budget:
        return inside
    return [replace(part, requires=(*rows.requires, *part.requires)) for part in inside]
