"""Keep the best blocks that fit a token budget.

HtmlRAG (Algorithm 2) deletes the lowest-scored blocks until the rest fits. Here the longest prefix of the ranking that
fits is searched by bisection. The block behind it is passed over, and the search goes on behind that block. Every try
renders and encodes the whole output, so that the budget is exact: an end tag, a list number or a mark of what was left
out may change far from a block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.deadline import check
from ..core.ports import TokenCounter
from ..pages.grid import row_cells
from .blocks import Blocks
from .headings import parting_headings
from .render import Rendering, render_blocks

_TRIES: Final = 12
"""Most whole outputs that one selection renders and encodes."""

_FIRST_TRIES: Final = 100
"""Most tries while nothing fits: a tiny budget holds few of the blocks."""

_FULL: Final = 0.99
"""Share of the budget from which on nothing more is tried."""

_GUESSES: Final = 4
"""Tries of one search that go where the text's share of the tokens points, before halving takes over."""

_PRICE: Final = 1.5
"""Tokens of output for each token of text, before anything was measured."""

_SLACK: Final = 4
"""Tokens by which the text of a block may cost more alone than in its context."""

_BATCH: Final = 128
"""Texts that are counted together."""

_WORDS_A_TOKEN: Final = 2
"""Words between spaces that a token holds at most, on average over a text. Common tokenizers never join two words."""

_CELLS_A_TOKEN: Final = 4
"""Cells that a token of the output holds at most: a row is written with all its cells, so that columns keep their
place."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept blocks and their rendering.

    :param kept: indices of the kept blocks, in document order.
    :param required: the kept blocks that were taken because another block requires them.
    :param output: the rendering of exactly the kept blocks.
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

    :param scores: one score per block, float64 [n], higher is better; equal scores keep document order. A block with
        the score -inf is kept only where another block requires it.
    :param budget: most tokens of the output, markup included.
    :param requires: for each block the indices that it requires; by default ``Block.requires``. Where not even the
        best block fits with all of them, it is kept with those that fit.
    """
    search = _Search(blocks, budget, counter, rendering, requires)
    scores = np.asarray(scores, np.float64)
    ranking = np.argsort(-scores, kind="stable")
    ranking = ranking[scores[ranking] > -np.inf]
    ranking = ranking[~_in_wide_rows(blocks, budget * _CELLS_A_TOKEN)[ranking]]  # no try needs to write such a row
    while len(ranking) and search.tries < search.most_tries and search.tokens < budget * _FULL:
        ranking = search.extend(ranking)
    return Selection(sorted(search.kept), search.required, search.output, search.tokens)


def _in_wide_rows(blocks: Blocks, most: int) -> NDArray[np.bool_]:
    """Tell for each block whether it is in a row of more than so many cells, bool [n]."""
    inside = np.zeros(len(blocks), np.bool_)
    for document, tree in enumerate(blocks.trees):
        if len(tree) <= most:
            continue
        begins = np.array([one.lo if one.document == document else -1 for one in blocks.blocks], np.int64)
        for row, tag in enumerate(tree.tag):
            if tag == "tr" and tree.end[row] - row > most and len(row_cells(tree, row)) > most:
                inside |= (begins > row) & (begins < tree.end[row])
    return inside


class _Search:
    """The selection in progress: the blocks that are kept so far, and the output that was measured with them."""

    def __init__(
        self,
        blocks: Blocks,
        budget: int,
        counter: TokenCounter,
        rendering: Rendering,
        requires: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self.blocks, self.budget, self.counter, self.rendering = blocks, budget, counter, rendering
        self.requires = requires
        self.text = text_tokens(blocks, counter)
        self.kept: set[int] = set()
        self.required: set[int] = set()
        self.output, self.tokens, self.tries = "", 0, 0
        self.price = _PRICE

    @property
    def most_tries(self) -> int:
        """Most tries of the whole selection, as far as it is known."""
        return _TRIES if self.kept else _FIRST_TRIES

    def extend(self, ranking: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the longest prefix of a ranking that fits what is left.

        :returns: the ranking behind the first block that did not fit, without blocks whose text alone is too long.
        """
        ranking = ranking[self.text.lower_bounds()[ranking] <= self.budget - self.tokens + _SLACK]
        groups, sums, end = self._candidates(ranking)
        low, high = 0, len(groups) + 1  # so many groups fit; so many do not
        tries = 0
        while high - low > 1 and self.tries < self.most_tries:
            middle = self._guess(sums, low) if tries < _GUESSES else (low + high) // 2
            middle = min(max(middle, low + 1), high - 1)
            if self._fits(groups[low:middle], sums[middle] - sums[low]):
                low = middle
            else:
                high = middle
            tries += 1
        if not self.kept and groups:
            self._keep_with_less(groups[0][1])
        return ranking[groups[low][0] + 1 :] if low < len(groups) else ranking[end:]

    def _candidates(self, ranking: NDArray[np.int64]) -> tuple[list[tuple[int, int, list[int]]], list[int], int]:
        """Return the head of a ranking whose texts may fit what is left.

        :returns: for each block its rank, its index, and the indices that come with it; sums of their tokens of text,
            from 0; the rank at which the head ends.
        """
        left = self.budget - self.tokens
        groups: list[tuple[int, int, list[int]]] = []
        sums, members = [0], set(self.kept)
        for start in range(0, len(ranking), _BATCH):
            batch = ranking[start : start + _BATCH].tolist()
            self.text.count(batch)
            for rank, index in enumerate(batch, start):
                if index in members or self.text[index] > left + _SLACK:
                    continue
                group = self._group(index, members)
                sums.append(sums[-1] + sum(self.text[member] for member in group))
                groups.append((rank, index, group))
                members.update(group)
                if sums[-1] > left + _SLACK:
                    return groups, sums, rank + 1
        return groups, sums, len(ranking)

    def _keep_with_less(self, index: int) -> None:
        """Keep a block with those of the blocks that it requires that fit beside it, the nearest first."""
        if self._fits([(0, index, [index])], self.text[index]):
            for required in reversed(self._required(index)):
                self._fits([(0, index, [required])], self.text[required])

    def _group(self, index: int, members: set[int]) -> list[int]:
        """Return a block with the blocks that it requires, directly or not, and that are not kept yet."""
        group = {index: None}
        waiting = [index]
        for needed in waiting:
            new = [one for one in self._required(needed) if one not in members and one not in group]
            group.update(dict.fromkeys(new))
            waiting.extend(new)
        return list(group)

    def _required(self, index: int) -> Sequence[int]:
        return self.blocks.blocks[index].requires if self.requires is None else self.requires[index]

    def _guess(self, sums: Sequence[int], low: int) -> int:
        """Return how many groups should fit, by their texts."""
        return bisect_right(sums, sums[low] + (self.budget - self.tokens) / self.price) - 1

    def _fits(self, groups: Sequence[tuple[int, int, list[int]]], text: int) -> bool:
        """Try to keep more groups.

        :param text: tokens of their texts.
        """
        check()
        self.tries += 1
        more = {member for _, _, group in groups for member in group}
        parting = parting_headings(self.blocks, sorted(self.kept | more)) if self.requires is not None else set()
        more |= parting
        output = render_blocks(self.blocks, sorted(self.kept | more), self.rendering)
        tokens = int(self.counter.count([output])[0])
        self.price = max(1.0, (tokens - self.tokens) / max(1, text))
        if tokens > self.budget:
            return False
        self.required |= {member for _, index, group in groups for member in group if member != index}
        self.required |= parting - self.kept
        self.kept |= more
        self.output, self.tokens = output, tokens
        return True


class TextTokens:
    """Tokens of each block's text alone, counted when they are first needed and kept for later questions.

    Most blocks of many pages are far from a small budget: their words alone tell that they do not fit.

    :param blocks: the blocks, in whose cache the counts are kept.
    """

    __slots__ = ("_counter", "_known", "_least", "_texts")

    def __init__(self, blocks: Blocks, counter: TokenCounter) -> None:
        self._texts, self._counter = blocks.texts, counter
        self._known = bytearray(len(blocks))
        self._least = array("q", (len(text.split()) // _WORDS_A_TOKEN for text in self._texts))

    def __getitem__(self, index: int) -> int:
        if not self._known[index]:
            self.count((index,))
        return self._least[index]

    def lower_bounds(self) -> NDArray[np.int64]:
        """Return the tokens of the counted texts, and of the others a number that they are not below, int64 [n]."""
        return np.array(self._least, np.int64)

    def count(self, indices: Iterable[int]) -> None:
        """Count texts together, which is faster than one by one."""
        unknown = [index for index in indices if not self._known[index]]
        counts = self._counter.count([" ".join(self._texts[index].split()) for index in unknown]) if unknown else ()
        for index, tokens in zip(unknown, counts, strict=True):
            self._least[index] = int(tokens)
            self._known[index] = 1

    def exceed(self, limit: float) -> bool:
        """Tell whether all texts together have more tokens; they are counted only where their words do not tell it."""
        total = sum(self._least)
        for start in range(0, len(self._texts), _BATCH):
            if total > limit:
                return True
            batch = range(start, min(start + _BATCH, len(self._texts)))
            before = sum(self._least[start : batch.stop])
            self.count(batch)
            total += sum(self._least[start : batch.stop]) - before
        return total > limit


def text_tokens(blocks: Blocks, counter: TokenCounter) -> TextTokens:
    """Return the tokens of the blocks' texts, shared by all questions about these blocks."""
    key = f"tokens:{type(counter).__module__}:{id(counter)}"
    known = blocks.cache.get(key)
    if not isinstance(known, TextTokens):
        known = blocks.cache[key] = TextTokens(blocks, counter)
    return known
