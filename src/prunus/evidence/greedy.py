"""Greedy pruning (HtmlRAG, Algorithm 2) with exact budgets.

The published algorithm deletes the lowest-scored blocks until the rest fits. Here the best blocks
are taken in until no remaining one fits, each with what it needs (the header of its table). What a
block costs is measured where it would stand, between its kept neighbours, so that the sum is the
cost of the whole output; the whole output is encoded at most three times.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.ports import TokenCounter
from ..pages.clean.rules import LONG_VALUE
from ..pages.grid import has_rowspans
from ..pages.write.style import CLOSED_BY
from .blocks import Blocks
from .render import Rendering, render_blocks, render_near
from .text_change import around_change

_NEAR = 4
"""Tokens over what is left up to which a block is measured in the whole output."""

_EXACT = 6
"""How often, in one selection."""

_ALIKE = 3
"""Tokens by which blocks of the same make may differ in what they cost."""

_AT_ONCE = 4096
"""Blocks of a ranking that are looked at from one list."""

_AGAIN = 64
"""How often, in one selection, a block is measured although one of the same make was."""

_SPANNED = 6
"""Kept rows on each side with which a row is measured where cells span rows."""

_HOPE = 1.02
"""Tokens of all texts, over the budget, up to which everything might fit: texts are counted apart."""

_SLACK = 4
"""Tokens by which the text of a block may cost more alone than in its place."""


_MOST_WORK = 250_000
"""Nodes that are rendered to measure blocks before a selection ends: hostile pages hold any number of
blocks that nearly fit, hundreds of levels deep. Real pages stay far below it."""


_COUNTS = 20_000
"""Counted texts that are remembered."""

_BATCH = 4096
"""Texts that are counted at a time."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What was kept.

    :param kept: block indices in document order.
    :param required: those of them that were kept because another needs them.
    :param output: the rendering of exactly these.
    :param tokens: tokens of ``output``.
    """

    kept: list[int]
    required: set[int]
    output: str
    tokens: int


def select(
    blocks: Blocks,
    scores: NDArray[np.float64],
    budget: int,
    counter: TokenCounter,
    rendering: Rendering,
    requires: Sequence[tuple[int, ...]] | None = None,
) -> Selection:
    """Keep the best blocks that fit a budget.

    :param scores: one a block, higher is better; equal scores keep document order.
    :param budget: tokens that the output may have, everything included.
    :param requires: for each block those that it needs; by default the blocks' own.
    :returns: the selection; when it stops, no remaining block fits with what it needs.
    """
    picker = _Picker(blocks, budget, counter, rendering, requires)
    picker.fill(np.argsort(-np.asarray(scores, np.float64), kind="stable"))
    return picker.selection()


def _numbers(values: NDArray[np.int64]) -> Iterator[int]:
    """Iterate over an array as over its list, of which only a part is there at a time."""
    for start in range(0, len(values), _AT_ONCE):
        yield from values[start : start + _AT_ONCE].tolist()


class _Picker:
    """The growing selection and what is left of the budget."""

    def __init__(
        self,
        blocks: Blocks,
        budget: int,
        counter: TokenCounter,
        rendering: Rendering,
        requires: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self.blocks, self.budget, self.counter, self.rendering = blocks, budget, counter, rendering
        self.requires = requires or [block.requires for block in blocks.blocks]
        self.kept: list[int] = []  # sorted
        self.members: set[int] = set()
        self.required: set[int] = set()
        self.log: list[list[int]] = []  # what came in together, for taking back
        self.left = budget
        self.text_tokens = text_tokens(blocks, counter)
        self.ceilings = array("q", bytes(8 * len(blocks)))  # 0: not known yet
        self.depths: dict[int, int] = {}
        self.counts: dict[str, int] = {}
        self.work = 0
        self.exact = 0
        self.again = 0
        self.doubted: set[int] = set()  # what came in at too low a cost, and was taken back
        self.whole = ""  # what is kept, rendered, where that is known
        self.output, self.tokens = "", 0

    def fill(self, order: NDArray[np.int64]) -> None:
        """Take blocks in by rank until none fits; then check the sum against the whole."""
        if self._all_fit(order):
            return
        self._take_certain(order)
        for _ in range(2):
            self._passes(order)
            expected = self.left
            self._measure()
            while self.left < 0 and self.log:
                self._take_back()
            if self.left <= expected:
                return

    def _all_fit(self, order: NDArray[np.int64]) -> bool:
        """Take everything in where it fits; it is rendered and encoded only where it might."""
        if sum(self.text_tokens) > self.budget * _HOPE:
            return False
        output = self._render(range(len(self.blocks)))
        tokens = self._count(output)
        if tokens > self.budget:
            return False
        for index in map(int, order):
            if index not in self.members:
                self._take(index, self._group(index), 0)
        self.output = self.whole = output
        self.tokens, self.left = tokens, self.budget - tokens
        return True

    def _take_certain(self, order: NDArray[np.int64]) -> None:
        """Take in the head of the ranking as far as it fits by any count: no need to measure each."""
        left = self.left
        for index in map(int, order):
            if index in self.members:
                continue
            group = self._group(index)
            left -= sum(self._ceiling(member) for member in group)
            if left < 0:
                break
            self._take(index, group, 0)
        if len(self.log) > 1:
            self._measure()
        elif self.log:
            self._forget()

    def _forget(self) -> None:
        """Take everything out again: measuring one block costs less than measuring the whole."""
        self.kept, self.members, self.required, self.log = [], set(), set(), []
        self.left, self.whole = self.budget, ""

    def _measure(self) -> None:
        """Render and count what is kept."""
        self.output = self.whole = self._render(self.kept)
        self.tokens = self._count(self.output)
        self.left = self.budget - self.tokens

    def _ceiling(self, index: int) -> int:
        """Return more than a block can cost: every letter of every tag in it and above it a token."""
        known = self.ceilings[index]
        if not known:
            known = self.ceilings[index] = self._make_ceiling(index)
        return known

    def _make_ceiling(self, index: int) -> int:
        """Add up a block's ceiling."""
        block = self.blocks.blocks[index]
        tree = self.blocks.trees[block.document]
        cost = self.text_tokens[index] + _SLACK
        tag = tree.tag
        for node in range(block.lo, block.hi):
            if tag[node]:
                cost += len(tag[node]) + 2 + (0 if tag[node] in CLOSED_BY else len(tag[node]) + 3)
                attrs = tree.attrs[node]
                if attrs:
                    cost += sum(len(name) + min(len(value), 4 * LONG_VALUE) + 4 for name, value in attrs.items())
        above = tree.parent[block.lo]
        while above > 0:
            cost += 2 * len(tag[above]) + 5
            above = tree.parent[above]
        if self.rendering.headers:
            cost += 4 * (len(tree.url) + 130)
        if self.rendering.format != "html":
            cost += 2 * (block.hi - block.lo) + 12
        return cost

    def _passes(self, order: NDArray[np.int64]) -> None:
        """Go through the ranking until a whole pass adds nothing (a header taken in makes rows cheaper)."""
        ranked = order
        floors = np.maximum(np.asarray(self.text_tokens, np.int64) - _SLACK, 0)
        taken = np.zeros(len(floors), bool)
        added = True
        while added:
            added = False
            learned: dict[tuple[int, str, int, bool], int] = {}
            taken[list(self.members)] = True
            ranked = ranked[~taken[ranked]]
            for index in _numbers(ranked[floors[ranked] <= self.left]):
                if floors[index] > self.left or index in self.members:
                    continue
                group = self._group(index)
                if int(floors[group].sum()) > self.left:
                    continue
                likeness = self._likeness(index, group)
                known = learned.get(likeness, 0)
                if known > self.left:  # a block of the same make has been measured
                    if known > self.left + _ALIKE or self.again >= _AGAIN:
                        continue
                    self.again += 1
                if self.work > _MOST_WORK:
                    return
                if index in self.doubted:
                    cost = self._exact_cost(group)
                else:
                    cost = self._cost(group)
                    if self.left < cost <= self.left + _NEAR and self.exact < _EXACT:
                        cost = self._exact_cost(group)
                if cost <= self.left:
                    self._take(index, group, cost)
                    added = True
                else:
                    learned[likeness] = min(cost, learned.get(likeness, cost))

    def _likeness(self, index: int, group: list[int]) -> tuple[int, str, int, bool]:
        """Return what blocks that cost the same have in common: tags, length, and how their words end."""
        block = self.blocks.blocks[index]
        parents = self.blocks.trees[block.document].parent
        place = bisect_left(self.kept, index)
        near = (self.blocks.blocks[other] for other in self.kept[max(0, place - 1) : place + 1])
        shares = any(other.document == block.document and parents[other.lo] == parents[block.lo] for other in near)
        text = self.blocks.texts[index]
        return self._ceiling(index), f"{self.text_tokens[index]} {text[:2]}{text[-2:]}", len(group), shares

    def _group(self, index: int) -> list[int]:
        """Return a block with all that it needs and that is not in yet."""
        group = [index]
        for needed in group:
            group.extend(i for i in self.requires[needed] if i not in self.members and i not in group)
        return sorted(group)

    def _take(self, index: int, group: list[int], cost: int) -> None:
        for member in group:
            insort(self.kept, member)
            self.members.add(member)
        self.required.update(member for member in group if member != index)
        self.log.append(group)
        self.left -= cost
        self.whole = ""

    def _take_back(self) -> None:
        """Take the latest blocks out again and measure anew."""
        for member in self.log.pop():
            self.doubted.add(member)
            self.members.discard(member)
            self.required.discard(member)
        self.kept = sorted(self.members)
        self._measure()

    def _cost(self, group: list[int]) -> int:
        """Measure what a group adds, between the kept blocks that would stand beside it."""
        beside: set[int] = set()
        for index in group:
            place, reach = bisect_left(self.kept, index), self._reach(index)
            beside.update(self.kept[max(0, place - reach) : place + reach])
            beside.update(needed for needed in self.requires[index] if needed in self.members)
        near = sorted(beside)
        together = sorted([*near, *group])
        root = self._common_root(together) if near else None
        self.work += sum(self._depth(index) for index in together)
        if root is None:
            return self._difference(self._render(near), self._render(together))
        return self._difference(
            render_near(self.blocks, near, root, self.rendering),
            render_near(self.blocks, together, root, self.rendering),
        )

    def _reach(self, index: int) -> int:
        """Return how many kept blocks on each side say what a block adds; cells may span many rows."""
        block = self.blocks.blocks[index]
        table = self.blocks.contexts[index].table
        return _SPANNED if table >= 0 and has_rowspans(self.blocks.trees[block.document], table) else 1

    def _exact_cost(self, group: list[int]) -> int:
        """Measure what a group adds to the whole output: an end tag or a list's number may change far from it."""
        self.exact += 1
        if not self.whole:
            self.whole = self._render(self.kept)
        return self._difference(self.whole, self._render(sorted([*self.kept, *group])))

    def _depth(self, index: int) -> int:
        """Return how many nodes a block's rendering visits: its own and those above it."""
        known = self.depths.get(index)
        if known is None:
            block = self.blocks.blocks[index]
            parents = self.blocks.trees[block.document].parent
            known, above = block.hi - block.lo, parents[block.lo]
            while above >= 0:
                known, above = known + 1, parents[above]
            self.depths[index] = known
        return known

    def _common_root(self, indices: list[int]) -> tuple[int, int] | None:
        """Return (document, node) of the lowest node above blocks, None if they are of several documents."""
        first, last = self.blocks.blocks[indices[0]], self.blocks.blocks[indices[-1]]
        if first.document != last.document:
            return None
        tree = self.blocks.trees[first.document]
        node = tree.parent[first.lo]
        while node > 0 and tree.end[node] < last.hi:
            node = tree.parent[node]
        return first.document, max(node, 0)

    def _difference(self, before: str, after: str) -> int:
        """Count tokens of ``after`` less those of ``before``, encoding only around the change."""
        if not before:
            return self._count(after)
        low, cut = around_change(before, after)
        return self._count(after[low : len(after) - cut]) - self._count(before[low : len(before) - cut])

    def _render(self, kept: Sequence[int]) -> str:
        return render_blocks(self.blocks, kept, self.rendering) if kept else ""

    def _count(self, text: str) -> int:
        if not text:
            return 0
        known = self.counts.get(text)
        if known is None:
            if len(self.counts) >= _COUNTS:
                self.counts.clear()
            known = self.counts[text] = int(self.counter.count([text])[0])
        return known

    def selection(self) -> Selection:
        """Return what was kept, with the output that was counted."""
        return Selection(self.kept, self.required & self.members, self.output, self.tokens)


def text_tokens(blocks: Blocks, counter: TokenCounter) -> list[int]:
    """Return the tokens of each block's text alone, counted once for all questions."""
    key = f"tokens:{type(counter).__module__}:{id(counter)}"
    known = blocks.cache.get(key)
    if not isinstance(known, list):
        known = list[int]()
        for start in range(0, len(blocks), _BATCH):
            texts = [" ".join(text.split()) for text in blocks.texts[start : start + _BATCH]]
            known.extend(int(count) for count in counter.count(texts))
        blocks.cache[key] = known
    return known
