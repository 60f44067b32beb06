"""Greedy pruning (HtmlRAG, Algorithm 2) with exact budgets.

The published algorithm deletes the lowest-scored blocks until the rest fits. Here the best blocks
are taken until no remaining block fits; each brings the blocks that it requires (the header of its
table). The cost of a block is measured in its place, between its kept neighbours, so that the sum of
the costs is the cost of the whole output. The whole output is encoded a few times.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.ports import TokenCounter
from ..pages.clean.rules import LONG_VALUE
from ..pages.grid import has_rowspans
from ..pages.write.style import CLOSED_BY
from .blocks import Blocks
from .render import Rendering, document_header, join_documents, render_blocks, render_document, render_near
from .text_tokens import text_tokens

_NEAR = 4
"""A block that exceeds the rest of the budget by at most so many tokens is measured in the whole output."""

_EXACT = 6
"""Most measurements in the whole output per selection."""

_ALIKE = 3
"""Tokens by which the costs of blocks of equal likeness may differ."""

_AT_ONCE = 4096
"""Blocks of a ranking that are converted to a list at a time."""

_AGAIN = 64
"""Most blocks per selection that are measured although a block of equal likeness did not fit."""

_SPANNED = 6
"""Kept rows on each side of a row that is measured in a table with cells over several rows."""

_HOPE = 1.02
"""Tokens of all texts, as a share of the budget, up to which everything may fit: separate texts count higher."""

_SLACK = 4
"""Tokens by which the text of a block may cost more alone than in its place."""

_MOST_WORK = 250_000
"""Most nodes that one selection renders to measure blocks. Real pages stay far below; a hostile page can hold any
number of blocks that nearly fit, hundreds of levels deep."""

_MOST_LETTERS = 10_000_000
"""Most code points that one selection renders to measure blocks, plus 40 for each token of the budget. A cell in a row
of thousands is rendered with all the empty cells before it."""

_COUNTS = 20_000
"""Most texts whose token counts are cached."""

_AHEAD = 128
"""Texts of the ranking that are counted together, when the first of them is needed."""

_ROUND = 16
"""Groups that were taken at once, from which on it pays to measure the whole output and to do it again."""

_MARKS = 12
"""Tokens that marks of what was left out around a block may cost: a row with a mark ends a table that lacks rows."""

_RENDERED = 5_000
"""Most renderings of neighbours that are held."""

_Shape = tuple[int, int, bool, int]
_Likeness = tuple[_Shape, str, int]


_WINDOW: Final = 48
"""Code points on each side of a change that are encoded with it: no token reaches further."""

_FAR: Final = 80
"""Most code points by which that window grows to begin and end between words."""

_GAP: Final = re.compile(r"[ \n]")


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

    :param scores: one score per block, float64 [n], higher is better; equal scores keep document order.
    :param budget: most tokens of the output, markup included.
    :param requires: for each block the indices that it requires; by default ``Block.requires``.
    :returns: the selection; no remaining block fits together with the blocks that it requires.
    """
    picker = _Picker(blocks, budget, counter, rendering, requires)
    picker.fill(np.argsort(-np.asarray(scores, np.float64), kind="stable"))
    return picker.selection()


def _numbers(values: NDArray[np.int64]) -> Iterator[int]:
    """Iterate over an array as Python integers; only a part is a list at any time, which bounds the memory."""
    for start in range(0, len(values), _AT_ONCE):
        yield from values[start : start + _AT_ONCE].tolist()


class _Picker:
    """The selection in progress and the rest of the budget."""

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
        self.log: list[list[int]] = []  # groups of blocks that were taken together, for ``_take_back``
        self.left = budget
        self.text_tokens = text_tokens(blocks, counter)
        self.tags = array("q", bytes(8 * len(blocks)))  # tokens of markup that a block cannot exceed; 0: not known yet
        self.present: dict[int, int] = {}  # document -> its kept blocks
        self.headers: dict[int, int] = {}  # document -> tokens of its header line
        self.overheads: dict[_Shape, int] = {}  # least tokens of groups of a shape, less those of texts and headers
        self.depths: dict[int, int] = {}
        self.counts: dict[str, int] = {}
        self.near: dict[tuple[tuple[int, ...], int], str] = {}  # (blocks, node above them; -1: the page) -> rendering
        self.work = 0
        self.letters = _MOST_LETTERS + 40 * budget  # that may still be rendered
        self.exact = 0
        self.again = 0
        self.doubted: set[int] = set()  # blocks that were taken at too low a cost, and taken back
        self.whole = ""  # rendering of the kept blocks; empty while it is unknown
        self.output, self.tokens = "", 0

    def fill(self, order: NDArray[np.int64]) -> None:
        """Take blocks by rank until none fits; then compare the sum of the costs with the whole output."""
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
        """Take all blocks if they fit; render and encode them only if they may fit."""
        if self.text_tokens.exceed(self.budget * _HOPE):
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
        """Take the head of the ranking that fits even at the highest possible cost, without measuring each block.

        The whole output is measured then. Where that shows much room, the head of the rest is taken, too.
        """
        rest = enumerate(_numbers(order))
        place, index = next(rest, (-1, -1))
        taken = _ROUND
        while taken >= _ROUND and index >= 0:
            left, before = self.left, len(self.log)
            while index >= 0:
                if index not in self.members:
                    self._count_ahead(order, place)
                    group = self._group(index)
                    left -= self._ceiling(group)
                    if left < 0:
                        break
                    self._take(index, group, 0)
                place, index = next(rest, (-1, -1))
            taken = len(self.log) - before
            if len(self.log) == 1:
                self._forget()
            elif taken:
                self._measure()

    def _forget(self) -> None:
        """Undo a selection of one group: to measure it again costs less than to measure the whole output."""
        self.kept, self.members, self.required, self.log = [], set(), set(), []
        self.present = {}
        self.left, self.whole = self.budget, ""

    def _measure(self) -> None:
        """Render the kept blocks and count their tokens."""
        self.output = self.whole = self._render(self.kept)
        self.tokens = self._count(self.output)
        self.left = self.budget - self.tokens

    def _count_ahead(self, order: NDArray[np.int64], place: int) -> None:
        """Count the text of a block, and with it the texts of the next blocks of a ranking that may still fit.

        :param place: rank of the block.
        """
        tokens, most = self.text_tokens, self.left + _SLACK
        if not tokens.is_known(int(order[place])):
            first, *ahead = order[place : place + 8 * _AHEAD].tolist()
            likely = (index for index in ahead if not tokens.is_known(index) and tokens.least[index] <= most)
            tokens.count([first, *islice(likely, _AHEAD)])

    def _ceiling(self, group: list[int]) -> int:
        """Return a cost that a group cannot exceed: each letter of each tag in it and above it counts as a token."""
        cost = sum(self.text_tokens[index] + self._markup(index) for index in group)
        return cost + sum(self._header(document) + _SLACK for document in self._new_documents(group))

    def _markup(self, index: int) -> int:
        """Return a cost that the markup of a block cannot exceed, without the header of its document."""
        known = self.tags[index]
        if not known:
            known = self.tags[index] = self._make_markup(index)
        return known

    def _make_markup(self, index: int) -> int:
        """Compute the highest possible cost of a block's markup."""
        block = self.blocks.blocks[index]
        tree = self.blocks.trees[block.document]
        cost = _SLACK + _MARKS
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
        if self.rendering.format != "html":
            cost += 2 * (block.hi - block.lo) + 12
        return cost

    def _new_documents(self, group: list[int]) -> set[int]:
        """Return the documents whose first kept blocks a group would bring; their header lines come with them."""
        if not self.rendering.headers:
            return set()
        documents = {self.blocks.blocks[index].document for index in group}
        return {document for document in documents if not self.present.get(document)}

    def _header(self, document: int) -> int:
        """Return the tokens of a document's header line."""
        known = self.headers.get(document)
        if known is None:
            line = document_header(self.blocks.trees[document], document, self.rendering.format)
            known = self.headers[document] = self._count(line.strip())
        return known

    def _passes(self, order: NDArray[np.int64]) -> None:
        """Repeat passes over the ranking until one adds nothing: a header that is taken makes its rows cheaper."""
        ranked = order
        taken = np.zeros(len(order), bool)
        added = True
        while added:
            added = False
            costs: dict[_Likeness, int] = {}
            taken[list(self.members)] = True
            ranked = ranked[~taken[ranked]]
            ranked = ranked[self.text_tokens.lower_bounds()[ranked] <= self.left + _SLACK]
            for place, index in enumerate(_numbers(ranked)):
                if index in self.members or self.text_tokens.least[index] > self.left + _SLACK:
                    continue
                self._count_ahead(ranked, place)
                if self.text_tokens.least[index] > self.left + _SLACK:
                    continue
                group = self._group(index)
                shape = self._shape(index, group)
                if self._floor(group, shape) > self.left:
                    continue
                likeness = self._likeness(index, shape)
                known = costs.get(likeness, 0)
                if known > self.left:  # a block of equal likeness was measured in this pass, and did not fit
                    if known > self.left + _ALIKE or self.again >= _AGAIN:
                        continue
                    self.again += 1
                if self.work > _MOST_WORK or self.letters < 0:
                    return
                cost = self._measured(index, group, shape)
                if cost <= self.left:
                    self._take(index, group, cost)
                    added = True
                else:
                    costs[likeness] = min(cost, costs.get(likeness, cost))

    def _shape(self, index: int, group: list[int]) -> _Shape:
        """Return a key that groups share whose markup costs about the same: tags, blocks, neighbours, new documents."""
        markup = sum(self._markup(member) for member in group)
        return markup, len(group), self._shares_parent(index), len(self._new_documents(group))

    def _floor(self, group: list[int], shape: _Shape) -> int:
        """Return a cost that a group is hardly below, by its texts and by groups of its shape that were measured."""
        alone = floor = nodes = 0
        for index in group:
            tokens, block = self.text_tokens[index], self.blocks.blocks[index]
            alone += tokens
            floor += max(0, tokens - _SLACK)
            nodes += block.hi - block.lo
        known = self.overheads.get(shape)
        if known is not None:
            floor = max(floor, alone + known - _ALIKE - nodes)
        return floor + sum(max(0, self._header(document) - _SLACK) for document in self._new_documents(group))

    def _measured(self, index: int, group: list[int], shape: _Shape) -> int:
        """Measure what a group costs in its place, and in the whole output where that is close to what is left."""
        if index in self.doubted:
            return self._exact_cost(group)
        cost = self._cost(group)
        headers = sum(self._header(document) for document in self._new_documents(group))
        overhead = cost - headers - sum(self.text_tokens[member] for member in group)
        self.overheads[shape] = min(overhead, self.overheads.get(shape, overhead))
        if self.left < cost <= self.left + _NEAR and self.exact < _EXACT:
            return self._exact_cost(group)
        return cost

    def _likeness(self, index: int, shape: _Shape) -> _Likeness:
        """Return a key that blocks of about equal cost share: shape, length, first and last letters, and the document
        where it is new."""
        text = self.blocks.texts[index]
        document = self.blocks.blocks[index].document if shape[3] else -1
        return shape, f"{self.text_tokens[index]} {text[:2]}{text[-2:]}", document

    def _shares_parent(self, index: int) -> bool:
        """Tell whether a kept block beside a block has the same parent."""
        block = self.blocks.blocks[index]
        parents = self.blocks.trees[block.document].parent
        place = bisect_left(self.kept, index)
        near = (self.blocks.blocks[neighbour] for neighbour in self.kept[max(0, place - 1) : place + 1])
        return any(beside.document == block.document and parents[beside.lo] == parents[block.lo] for beside in near)

    def _group(self, index: int) -> list[int]:
        """Return a block with the blocks that it requires, directly or not, and that are not kept yet."""
        group = [index]
        for needed in group:
            group.extend(i for i in self.requires[needed] if i not in self.members and i not in group)
        return sorted(group)

    def _take(self, index: int, group: list[int], cost: int) -> None:
        for member in group:
            insort(self.kept, member)
            self.members.add(member)
            document = self.blocks.blocks[member].document
            self.present[document] = self.present.get(document, 0) + 1
        self.required.update(member for member in group if member != index)
        self.log.append(group)
        self.left -= cost
        self.whole = ""

    def _take_back(self) -> None:
        """Drop the group that was taken last, and measure again."""
        for member in self.log.pop():
            self.doubted.add(member)
            self.members.discard(member)
            self.required.discard(member)
            self.present[self.blocks.blocks[member].document] -= 1
        self.kept = sorted(self.members)
        self._measure()

    def _cost(self, group: list[int]) -> int:
        """Measure the tokens that a group adds between its kept neighbours."""
        beside: set[int] = set()
        for index in group:
            place, reach = bisect_left(self.kept, index), self._reach(index)
            beside.update(self.kept[max(0, place - reach) : place + reach])
            beside.update(needed for needed in self.requires[index] if needed in self.members)
        near = sorted(beside)
        together = sorted([*near, *group])
        root = self._common_root(together) if near else None
        self.work += sum(self._depth(index) for index in together)
        return self._difference(self._beside(near, root), self._beside(together, root))

    def _beside(self, indices: list[int], root: tuple[int, int] | None) -> str:
        """Render blocks that lie side by side, up to a node above them all, or in several documents; most are known."""
        if root is not None:
            return self._held(root[0], indices, root[1])
        parts = []
        for document, group in groupby(indices, key=lambda index: self.blocks.blocks[index].document):
            parts.append(self._held(document, list(group), -1))
        return join_documents(parts, self.rendering)

    def _held(self, document: int, indices: list[int], node: int) -> str:
        """Render blocks of one document below a node, or with its header for -1, unless that was done already."""
        key = (tuple(indices), node)
        known = self.near.get(key)
        if known is None:
            if len(self.near) >= _RENDERED:
                self.near.clear()
            if node < 0:
                known = render_document(self.blocks, indices, document, self.rendering)
            else:
                known = render_near(self.blocks, indices, (document, node), self.rendering)
            self.near[key] = known
        return known

    def _reach(self, index: int) -> int:
        """Return how many kept blocks on each side affect the cost of a block: more where cells span rows."""
        block = self.blocks.blocks[index]
        table = self.blocks.contexts[index].table
        return _SPANNED if table >= 0 and has_rowspans(self.blocks.trees[block.document], table) else 1

    def _exact_cost(self, group: list[int]) -> int:
        """Measure the tokens that a group adds to the whole output: an end tag or a list number may change far away."""
        self.exact += 1
        if not self.whole:
            self.whole = self._render(self.kept)
        return self._difference(self.whole, self._render(sorted([*self.kept, *group])))

    def _depth(self, index: int) -> int:
        """Return how many nodes the rendering of a block visits: its nodes and their ancestors."""
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
        """Return (document, node) of the lowest node above all blocks; None if they are of several documents."""
        first, last = self.blocks.blocks[indices[0]], self.blocks.blocks[indices[-1]]
        if first.document != last.document:
            return None
        tree = self.blocks.trees[first.document]
        node = tree.parent[first.lo]
        while node > 0 and tree.end[node] < last.hi:
            node = tree.parent[node]
        return first.document, max(node, 0)

    def _difference(self, before: str, after: str) -> int:
        """Count the tokens of ``after`` less those of ``before``; encode only the text around the change."""
        self.letters -= len(before) + len(after)
        if not before:
            return self._count(after)
        low, cut = around_change(before, after)
        new, old = self._counts(after[low : len(after) - cut], before[low : len(before) - cut])
        return new - old

    def _render(self, kept: Sequence[int]) -> str:
        return render_blocks(self.blocks, kept, self.rendering) if kept else ""

    def _count(self, text: str) -> int:
        return self._counts(text)[0]

    def _counts(self, *texts: str) -> list[int]:
        """Count texts in one call; an empty text has no tokens."""
        if len(self.counts) >= _COUNTS:
            self.counts.clear()
        missing = [text for text in texts if text and text not in self.counts]
        if missing:
            for text, tokens in zip(missing, self.counter.count(missing), strict=True):
                self.counts[text] = int(tokens)
        return [self.counts[text] if text else 0 for text in texts]

    def selection(self) -> Selection:
        """Return the kept blocks with the output that was counted."""
        return Selection(self.kept, self.required & self.members, self.output, self.tokens)


def around_change(before: str, after: str) -> tuple[int, int]:
    """Return how many code points two renderings share at their start and at their end, and need not be encoded.

    The shared parts end and begin between words where white space is near, because no token reaches across it.
    """
    start = _common_prefix(before, after)
    end = _common_suffix(before, after, start)
    low = _gap_before(after, max(0, start - _WINDOW))
    return low, len(after) - _gap_after(after, len(after) - max(0, end - _WINDOW))


def _gap_before(text: str, place: int) -> int:
    """Return the place of the nearest white space before a place; the place itself if none is near."""
    near = max(0, place - _FAR)
    gap = max(text.rfind(" ", near, place), text.rfind("\n", near, place))
    return gap if gap >= 0 else place


def _gap_after(text: str, place: int) -> int:
    """Return the place of the nearest white space from a place on; the place itself if none is near."""
    gap = _GAP.search(text, place, place + _FAR)
    return gap.start() if gap else place


def _common_prefix(before: str, after: str) -> int:
    """Return the length of the common prefix."""
    # a binary search: comparing slices is much faster than comparing letters in Python
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(before: str, after: str, start: int) -> int:
    """Return the length of the common suffix behind the common prefix."""
    low, high = 0, min(len(before), len(after)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if before[len(before) - middle : len(before) - low] == after[len(after) - middle : len(after) - low]:
            low = middle
        else:
            high = middle - 1
    return low
