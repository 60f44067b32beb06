"""The headings that kept blocks come with, so that no block stands under the heading of another section."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, cast

from ..pages.clean import rules
from ..pages.tree import Tree, subtree_text
from .blocks import Blocks

_LONGEST: Final = 30
"""Words of a heading's block at most: a longer one is more than a heading."""


def with_heading(blocks: Blocks) -> Sequence[tuple[int, ...]]:
    """Return for each block the blocks that it requires: that of its innermost heading, then those of the cut."""
    return _required(blocks, 1)


def with_breadcrumbs(blocks: Blocks) -> Sequence[tuple[int, ...]]:
    """Return for each block the blocks that it requires: those of all headings above it, then those of the cut."""
    return _required(blocks, 6)


def _required(blocks: Blocks, count: int) -> Sequence[tuple[int, ...]]:
    key = f"required with {count} headings"
    known = cast("list[tuple[int, ...]] | None", blocks.cache.get(key))
    if known is None:
        known = []
        inside = _headings_inside(blocks)
        for index, (block, path) in enumerate(zip(blocks.blocks, heading_paths(blocks), strict=True)):
            words = blocks.trees[block.document].words
            headed = bool(inside[index]) and words[inside[index][0][1]] == words[block.lo]  # it begins with a heading
            above = path[-count:] if count > 1 or not headed else ()
            known.append(tuple(dict.fromkeys((*above, *block.requires))))
        blocks.cache[key] = known
    return known


def heading_blocks(blocks: Blocks) -> frozenset[int]:
    """Return the blocks that hold nothing but headings."""
    known = cast("frozenset[int] | None", blocks.cache.get("heading blocks"))
    if known is None:
        held = (index for index in set(_holders(blocks).values()) if _is_heading(blocks, index))
        known = blocks.cache["heading blocks"] = frozenset(held)
    return known


def heading_paths(blocks: Blocks) -> Sequence[tuple[int, ...]]:
    """Return for each block the blocks of the headings above it, outermost first."""
    known = cast("list[tuple[int, ...]] | None", blocks.cache.get("heading paths"))
    if known is None:
        holders, known = _holders(blocks), []
        made: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}  # the blocks of a section share one path
        for index, (block, context) in enumerate(zip(blocks.blocks, blocks.contexts, strict=True)):
            section = (block.document, context.headings)
            if section not in made:
                held = (holders.get((block.document, node), -1) for node in context.headings)
                made[section] = tuple(dict.fromkeys(place for place in held if place >= 0))
            path = made[section]
            known.append(tuple(place for place in path if place != index) if index in path else path)
        blocks.cache["heading paths"] = known
    return known


def parting_headings(blocks: Blocks, kept: Iterable[int]) -> set[int]:
    """Return the blocks of headings that part kept blocks from kept headings of other sections.

    With ``<h2>A</h2>…<h2>B</h2>…<h3>C</h3>…``, words under A and under C: C would be read as a part of A without B.

    :param kept: indices of blocks, ascending.
    """
    holders, inside, added = _holders(blocks), _headings_inside(blocks), set[int]()
    shown: list[tuple[int, int]] = []  # (level, node) of the headings under which a reader sees the next block
    document = -1
    for index in kept:
        if blocks.blocks[index].document != document:
            document, shown = blocks.blocks[index].document, []
        path, tags = blocks.contexts[index].headings, blocks.trees[document].tag
        for level, foreign in shown:
            if foreign in path:
                continue
            parts = [node for node in path if node > foreign and int(tags[node][1]) <= level]
            if parts and (document, parts[-1]) in holders:
                added.add(holders[document, parts[-1]])
                shown = _shown_after(shown, int(tags[parts[-1]][1]), parts[-1])
            break
        for level, node in inside[index]:
            shown = _shown_after(shown, level, node)
    return added


def _shown_after(shown: list[tuple[int, int]], level: int, node: int) -> list[tuple[int, int]]:
    """Return the headings that a reader sees above what follows a heading."""
    return [*(other for other in shown if other[0] < level), (level, node)]


def _headings_inside(blocks: Blocks) -> Sequence[Sequence[tuple[int, int]]]:
    """Return for each block the (level, node) of the headings in it."""
    known = cast("list[tuple[tuple[int, int], ...]] | None", blocks.cache.get("headings inside"))
    if known is None:
        known = []
        for block in blocks.blocks:
            tags = blocks.trees[block.document].tag
            inside = (node for node in range(block.lo, block.hi) if tags[node] in rules.HEADINGS)
            known.append(tuple((int(tags[node][1]), node) for node in inside))
        blocks.cache["headings inside"] = known
    return known


def _is_heading(blocks: Blocks, index: int) -> bool:
    """Tell whether all words of a block are in headings."""
    block = blocks.blocks[index]
    tree = blocks.trees[block.document]
    node, words = block.lo, 0
    while node < block.hi:
        inside = tree.tag[node] in rules.HEADINGS
        words += tree.word_count(node) if inside else 0
        node = tree.end[node] if inside else node + 1
    return words >= block.words


def _holders(blocks: Blocks) -> dict[tuple[int, int], int]:
    """Map each heading, as (document, node), to the short block that holds it."""
    known = cast("dict[tuple[int, int], int] | None", blocks.cache.get("heading holders"))
    if known is None:
        known = {}
        for index, (block, inside) in enumerate(zip(blocks.blocks, _headings_inside(blocks), strict=True)):
            if block.words <= _LONGEST:
                known |= {(block.document, node): index for _, node in inside}
        blocks.cache["heading holders"] = known
    return known


def headings_without(tree: Tree, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return the headings of a document below which no span has a part; of a whole section the first alone.

    :param spans: places in the canonical text, in order, that do not overlap.
    """
    nodes = [node for node, tag in enumerate(tree.tag) if tag in rules.HEADINGS and subtree_text(tree, node)]
    below = [tree.stop(tree.end[node] - 1) for node in nodes]
    begins = [*(tree.starts[node] for node in nodes), len(tree.canonical)]
    stops = [stop for _, stop in spans]

    def is_kept(first: int, last: int) -> bool:
        at = bisect_right(stops, first)
        return at < len(spans) and spans[at][0] < last

    result, number = [], 0
    while number < len(nodes):
        level = tree.tag[nodes[number]]
        end = next((at for at in range(number + 1, len(nodes)) if tree.tag[nodes[at]] <= level), len(nodes))
        own, whole = ((below[number], begins[at]) for at in (number + 1, end))
        gone = not is_kept(*whole)
        if gone or (tree.canonical[slice(*own)].strip() and not is_kept(*own)):
            result.append(subtree_text(tree, nodes[number]))
        number = end if gone else number + 1
    return result
