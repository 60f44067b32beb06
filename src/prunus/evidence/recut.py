"""Cutting what is cut already: blocks expanded into finer ones, one block replaced by its parts, some of them alone.

All of these keep the documents: spans, paths and marks of the result lead into the same pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..pages.clean import rules
from .blocks import Block, Blocks, split
from .cut import FIGURE_SLACK


@dataclass(frozen=True, slots=True)
class Expanded:
    """A cut, and the finer cut that was made inside its blocks.

    :param coarse: the cut that was expanded.
    :param blocks: the finer one; every block lies in exactly one coarse block.
    :param parents: for each fine block the coarse one that it lies in.
    """

    coarse: Blocks
    blocks: Blocks
    parents: Sequence[int]


def expand(coarse: Blocks, max_words: int) -> Expanded:
    """Cut every block finer, where it is larger than ``max_words`` (HtmlRAG §3.4.2: the leaves are expanded).

    What a coarse block requires, each of its parts requires.
    """
    parts = [_parts(coarse, index, max_words) for index in range(len(coarse))]
    offsets = [0]
    for some in parts:
        offsets.append(offsets[-1] + len(some))
    blocks: list[Block] = []
    parents: list[int] = []
    for index, some in enumerate(parts):
        above = [
            place
            for needed in coarse.blocks[index].requires
            for place in range(offsets[needed], offsets[needed + 1])
            if needed != index
        ]
        shift = offsets[index] - index  # what :func:`split` says is counted from the block's own place
        for part in some:
            own = (needed + shift for needed in part.requires) if len(some) > 1 else ()
            blocks.append(replace(part, requires=tuple(dict.fromkeys((*above, *own)))))
            parents.append(index)
    return Expanded(coarse, Blocks(coarse.trees, blocks, max_words), parents)


def _parts(blocks: Blocks, index: int, max_words: int) -> list[Block]:
    """Cut one block, unless it is small enough, or a figure that stays whole."""
    block = blocks.blocks[index]
    limit = max_words
    if block.is_subtree and blocks.trees[block.document].tag[block.node] in rules.FIGURES:
        limit *= FIGURE_SLACK
    return [block] if block.words <= limit else split(blocks, index, max_words) or [block]


def replaced(blocks: Blocks, index: int, inside: Sequence[Block]) -> Blocks:
    """Return blocks with one of them replaced by its parts, as :func:`~prunus.pages.clean.blocks.split` gives them.

    Nothing requires the parts, and they require each other, or blocks before the one that they replace: what that one
    required is not required any more, unless they say so.
    """
    grown = len(inside) - 1
    others = [
        replace(other, requires=tuple(i + grown if i > index else i for i in other.requires if i != index))
        if other.requires
        else other
        for other in blocks.blocks
    ]
    return Blocks(blocks.trees, [*others[:index], *inside, *others[index + 1 :]], blocks.max_words)


def subset(blocks: Blocks, places: Sequence[int]) -> Blocks:
    """Return some of the blocks, in document order, as blocks of their own; paths stay those of the whole.

    :param places: ascending; what a block requires and is not among them is not required any more.
    """
    if len(places) == len(blocks):
        return blocks
    new = {place: number for number, place in enumerate(places)}
    chosen = []
    for place in places:
        block = blocks.blocks[place]
        needed = tuple(new[other] for other in block.requires if other in new)
        chosen.append(block if needed == block.requires else replace(block, requires=needed))
    return Blocks(blocks.trees, chosen, blocks.max_words, whole=blocks, places=places)
