"""Prune in two stages (HtmlRAG §3.4): a cheap scorer ranks all blocks, a second scorer ranks the best of them.

The first stage scores coarse blocks of all pages and keeps the blocks that fit an intermediate budget.
These blocks are expanded into finer blocks, which the second scorer ranks. Greedy pruning to the final
budget follows, as with one stage. A block that the first stage drops never comes back. Each stage also
works alone.

A second scorer that reads all blocks in one prompt may exceed its model's window. Then the first stage
chooses the blocks that it reads; the other blocks rank behind, by their first score, and a warning
says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadBudget, BadInput, OverWindow
from ..core.options import Options
from ..core.ports import Segment, TokenCounter
from ..core.types import Trace
from .blocks import Block, Blocks, Scorer, coarse_budget_for, coarse_words_for, fine_words_for, split
from .documents import Documents
from .greedy import select, text_tokens
from .refine import Expanded, replace_block, subset
from .render import Rendering, render_blocks

_SHRINKS: Final = 8
"""How often the first stage keeps fewer blocks because a prompt exceeds a window; each try only counts tokens."""

_MARGIN: Final = 0.95
"""Share of the window to aim at: the token counter and the model's tokenizer count differently."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Granularity and budgets of two stages.

    :param coarse_words, words: words per block in the first and in the second stage.
    :param coarse_budget, budget: tokens that the first and the second stage keep.
    """

    coarse_words: int
    words: int
    coarse_budget: int
    budget: int


def sizes_for(query: str, budget: int, options: Options) -> Sizes:
    """Choose the granularities and the intermediate budget where the options leave them open.

    :raises BadInput: a number is negative, or the blocks of the first stage are finer than those of the second.
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

    :param blocks: all blocks of all pages; indices, paths and spans refer to them.
    :param scores: one score per block, float64 [n], from the last stage that scored the block.
    :param stage: that stage, 1 or 2, int [n].
    :param places: indices of the blocks that may be kept, ascending.
    :param ranking: the values that rank them, float64 [places].
    :param trace: a record of each stage that ran.
    :param warnings: messages for the caller.
    :param tree: the token tree of a generative scorer; None otherwise.
    """

    blocks: Blocks
    scores: NDArray[np.float64]
    stage: NDArray[Any]
    places: Sequence[int]
    ranking: NDArray[np.float64]
    trace: list[Trace] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tree: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines that choose evidence, and their names.

    :param scorer: the scorer of the only stage, or of the first of two stages.
    :param second_scorer: the scorer of the second stage; None where there is only one stage.
    :param first: when the first of two stages runs: ``always``; ``large``: if the pages exceed the intermediate
        budget; ``never``: only if a prompt exceeds the model's window.
    :param chance: returns the chance that the best of several segments answers a question.
    """

    counter: TokenCounter
    scorer: Scorer
    second_scorer: Scorer | None = None
    first: str = "large"
    chance: Callable[[str, Sequence[Segment]], float] = field(kw_only=True)
    names: Mapping[str, str] = field(default_factory=dict)


def rank_once(blocks: Blocks, query: str, scorer: Scorer) -> RankedBlocks:
    """Score blocks in one stage."""
    scores, tree = score_with(scorer, query, blocks)
    return RankedBlocks(blocks, scores, np.ones(len(blocks), np.int8), range(len(blocks)), scores, tree=tree)


def rank(
    documents: Documents, query: str, options: Options, engines: Engines, writing: Writing, sizes: Sizes
) -> RankedBlocks:
    """Score blocks in one or two stages, by the size of the pages and ``engines.first``.

    :raises OverWindow: fewer than two blocks fit the second scorer's window.
    :raises BadBudget: the first stage keeps nothing.
    """
    run = _Run(documents, query, options, engines, writing, sizes)
    return run.ranked()


def second_stage(
    documents: Documents, query: str, options: Options, engines: Engines, writing: Writing, sizes: Sizes
) -> Blocks:
    """Return the blocks that the second scorer is asked to rank, with their paths in the whole pages.

    The second scorer itself is not called: where its model's window is too small for these blocks, pruning asks it
    about fewer of them, under the same paths.

    :raises BadBudget: the first stage keeps nothing.
    """
    run = _Run(documents, query, options, engines, writing, sizes)
    return subset(run.expanded.blocks, run.places())


@dataclass(frozen=True, slots=True)
class Writing:
    """How the output is written and counted.

    :param requires: returns for each block the blocks that it requires; None: those of the cut.
    """

    counter: TokenCounter
    rendering: Rendering
    requires: Callable[[Blocks], Sequence[tuple[int, ...]] | None]


class _Run:
    """The ranking for one question; the first scorer runs only when it is needed, and at most once."""

    def __init__(
        self, documents: Documents, query: str, options: Options, engines: Engines, writing: Writing, sizes: Sizes
    ) -> None:
        self.query, self.engines, self.writing, self.sizes = query, engines, writing, sizes
        self.expanded: Expanded = documents.expanded(sizes.coarse_words, sizes.words, options.units)
        self.first_scores: NDArray[np.float64] | None = None
        self.trace: list[Trace] = []
        self.warnings: list[str] = []

    def ranked(self) -> RankedBlocks:
        """Run the stages that are needed, and rank the blocks."""
        blocks, places = self.expanded.blocks, self.places()
        read, second_scores, tree = self._second(places)
        scores, stage = np.full(len(blocks), 0.0), np.full(len(blocks), 1)
        if self.first_scores is not None:
            scores = self.first_scores[np.asarray(self.expanded.parents, np.int64)]
        scores[read] = second_scores
        stage[read] = 2
        ranking = scores[places]
        behind = stage[places] == 1
        if behind.any():
            ranking[behind] = _below(float(second_scores.min()), ranking[behind])
        return RankedBlocks(blocks, scores, stage, places, ranking, self.trace, self.warnings, tree)

    def places(self) -> list[int]:
        """Return the indices of the fine blocks that the first stage leaves to the second.

        :raises BadBudget: the first stage keeps nothing.
        """
        if not self._wants_first():
            return list(range(len(self.expanded.blocks)))
        places = self._survivors(self.sizes.coarse_budget)
        if not places:
            raise BadBudget(
                f"the first stage's budget of {self.sizes.coarse_budget} tokens is below the smallest block of "
                "these pages; raise coarse_budget, or lower coarse_words",
                subject="coarse_budget",
            )
        return places

    def _wants_first(self) -> bool:
        """Decide whether the first stage runs."""
        if self.engines.first != "large":
            return self.engines.first == "always"
        coarse, budget = self.expanded.coarse, self.sizes.coarse_budget
        if text_tokens(coarse, self.writing.counter).exceed(budget * 1.02):  # texts are counted apart
            return True
        whole = render_blocks(coarse, range(len(coarse)), self.writing.rendering)
        return int(self.writing.counter.count([whole])[0]) > budget

    def _survivors(self, budget: int, name: str = "first") -> list[int]:
        """Return the fine blocks inside the coarse blocks that the first stage keeps.

        :param budget: tokens that the first stage keeps.
        :param name: name of its trace record; a later record of the same name replaces it.
        """
        coarse, writing, started = self.expanded.coarse, self.writing, time.perf_counter()
        if self.first_scores is None:
            self.first_scores = np.asarray(self.engines.scorer.score(self.query, coarse), np.float64)
        chosen = select(coarse, self.first_scores, budget, writing.counter, writing.rendering, writing.requires(coarse))
        kept = set(chosen.kept)
        detail = {
            "max_words": coarse.max_words,
            "blocks": len(coarse),
            "kept": len(kept),
            "budget": budget,
            "tokens": chosen.tokens,
        }
        self.trace = [record for record in self.trace if record.stage != name]
        self.trace.append(Trace(name, time.perf_counter() - started, detail))
        return self.expanded.inside(kept)

    def _second(self, places: list[int]) -> tuple[list[int], NDArray[np.float64], Any]:
        """Score blocks by the second scorer, as many as its model's window holds.

        :returns: the indices of the blocks that it read, their scores, and the token tree or None.
        """
        second = self.engines.second_scorer
        assert second is not None  # two stages are run only with it
        read, budget = places, 0
        for shrinks in range(_SHRINKS + 1):
            started = time.perf_counter()
            part = subset(self.expanded.blocks, read)
            try:
                scores, tree = score_with(second, self.query, part)
            except OverWindow as over:
                budget = self._smaller(part, over, budget)
                fewer = [index for index in self._survivors(budget, "window") if index in set(read)]
                if len(fewer) < 2 or shrinks == _SHRINKS:  # a single block needs no ranking
                    raise
                read, window = fewer, over.window
                continue
            if len(read) < len(places):
                self.warnings.append(
                    f"the pages are over the second scorer's window of {window:,} tokens: it ranked the {len(read):,} "
                    f"of {len(places):,} blocks that the first stage found best, and the other blocks rank behind them"
                )
            detail = {"max_words": self.sizes.words, "blocks": len(read), "budget": self.sizes.budget}
            self.trace.append(Trace("second", time.perf_counter() - started, detail))
            return read, scores, tree
        raise AssertionError("the last try returns or raises")

    def _smaller(self, part: Blocks, over: OverWindow, before: int) -> int:
        """Return a smaller budget of the first stage, so that the prompt should fit the window."""
        if not before:
            whole = render_blocks(part, range(len(part)), self.writing.rendering)
            before = int(self.writing.counter.count([whole])[0])
        return max(1, int(before * min(_MARGIN, _MARGIN * over.window / max(1, over.needed))))


def score_with(scorer: Scorer, query: str, blocks: Blocks) -> tuple[NDArray[np.float64], Any]:
    """Return one score per block, and the token tree of a generative scorer (None for other scorers)."""
    if scorer.tree is not None and len(blocks):
        tree = scorer.tree(query, blocks)
        return np.asarray(tree.scores, np.float64), tree
    return np.asarray(scorer.score(query, blocks), np.float64), None


def _below(least: float, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move scores below a number; their order stays."""
    order = np.unique(scores, return_inverse=True)[1]
    return np.asarray(least - 1.0 - (order.max() - order), np.float64)


def cut_best(ranked: RankedBlocks, scorer: Scorer, query: str, writing: Writing, budget: int) -> frozenset[int]:
    """Cut the best block at its sentences where the block with what the cut requires exceeds the budget.

    The parts replace the block in ``ranked``; the scorer orders them among each other.

    :param scorer: the cheap scorer; it scores all blocks once more.
    :returns: the indices of the parts; an empty set where nothing was cut.
    """
    none: frozenset[int] = frozenset()
    if not ranked.places:
        return none
    blocks, best = ranked.blocks, ranked.places[int(np.argmax(ranked.ranking))]
    row = (
        blocks.blocks[best].is_subtree
        and blocks.trees[blocks.blocks[best].document].tag[blocks.blocks[best].lo] == "tr"
    )
    # a row without its header says more than a cell with it
    alone = render_blocks(blocks, [best] if row else sorted({best, *blocks.blocks[best].requires}), writing.rendering)
    if len(alone) <= budget or int(writing.counter.count([alone])[0]) <= budget:
        return none
    words = max(1, min(blocks.max_words, budget) // 8)
    parts = split(blocks, best, words)
    if len(parts) < 2:  # a single sentence or row is over the budget
        parts = split(blocks, best, words, whole_words=0)
    if len(parts) < 2:
        return none
    refined = replace_block(blocks, best, _under_header(blocks, best, parts, writing, budget))
    indices = range(best, best + len(parts))
    part_scores = np.asarray(scorer.score(query, refined), np.float64)[best : best + len(parts)]
    position, shift = ranked.places.index(best), len(parts) - 1
    # steps of 1e-9 order the parts without moving any of them past another block
    falling = ranked.ranking[position] - np.argsort(np.argsort(-part_scores, kind="stable"), kind="stable") * 1e-9
    ranked.ranking = np.concatenate([ranked.ranking[:position], falling, ranked.ranking[position + 1 :]])
    shown = ranked.scores[best] + (falling - falling.max())
    ranked.scores = np.concatenate([ranked.scores[:best], shown, ranked.scores[best + 1 :]])
    ranked.stage = np.concatenate([ranked.stage[:best], ranked.stage[[best] * len(parts)], ranked.stage[best + 1 :]])
    ranked.places = [*ranked.places[:position], *indices, *(after + shift for after in ranked.places[position + 1 :])]
    ranked.blocks = refined
    return frozenset(indices)


def _under_header(blocks: Blocks, best: int, parts: list[Block], writing: Writing, budget: int) -> list[Block]:
    """Let the parts of a block of rows require its header rows, if the smallest part fits the budget with them."""
    rows = blocks.blocks[best]
    if rows.is_subtree or not rows.requires or blocks.trees[rows.document].tag[rows.lo] != "tr":
        return parts
    smallest = min(parts, key=lambda part: part.words)
    trial = Blocks(blocks.trees, [*(blocks.blocks[index] for index in rows.requires), smallest], blocks.max_words)
    if int(writing.counter.count([render_blocks(trial, range(len(trial)), writing.rendering)])[0]) > budget:
        return parts
    return [replace(part, requires=(*rows.requires, *part.requires)) for part in parts]
