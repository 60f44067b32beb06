"""Change a cut: expand all blocks into finer blocks, replace one block by its parts, or take a subset.

The trees stay the same, so that spans, paths and marks of the new blocks point into the same documents.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from ..pages.clean import rules
from .blocks import Block, Blocks, split
from .cut import FIGURE_SLACK


@dataclass(frozen=True, slots=True)
class Expanded:
    """Coarse blocks, and the finer blocks cut inside them.

    :param coarse: the coarse blocks.
    :param blocks: the fine blocks; each lies in exactly one coarse block.
    :param parents: for each fine block the index of its coarse block.
    """

    coarse: Blocks
    blocks: Blocks
    parents: Sequence[int]

    def inside(self, kept: Container[int]) -> list[int]:
        """Return the indices of the fine blocks inside some of the coarse blocks, ascending.

        :param kept: indices of the coarse blocks.
        """
        return [index for index, parent in enumerate(self.parents) if parent in kept]


def expand(coarse: Blocks, max_words: int) -> Expanded:
    """Cut every block of more than ``max_words`` words finer (HtmlRAG §3.4.2: the leaves are expanded).

    The parts of a coarse block require all parts of each block that the coarse block requires.
    """
    parts_of = [_parts(coarse, index, max_words) for index in range(len(coarse))]
    offsets = [0]
    for parts in parts_of:
        offsets.append(offsets[-1] + len(parts))
    blocks: list[Block] = []
    parents: list[int] = []
    for index, parts in enumerate(parts_of):
        inherited = [
            at
            for needed in coarse.blocks[index].requires
            for at in range(offsets[needed], offsets[needed + 1])
            if needed != index
        ]
        shift = offsets[index] - index  # :func:`split` counts from the index of the coarse block
        for part in parts:
            siblings = (needed + shift for needed in part.requires) if len(parts) > 1 else ()
            blocks.append(replace(part, requires=tuple(dict.fromkeys((*inherited, *siblings)))))
            parents.append(index)
    return Expanded(coarse, Blocks(coarse.trees, blocks, max_words), parents)


def _parts(blocks: Blocks, index: int, max_words: int) -> list[Block]:
    """Cut one block, unless it is small enough or a figure that stays whole."""
    block = blocks.blocks[index]
    limit = max_words
    if block.is_subtree and blocks.trees[block.document].tag[block.node] in rules.FIGURES:
        limit *= FIGURE_SLACK
    return [block] if block.words <= limit else split(blocks, index, max_words) or [block]


def replace_block(blocks: Blocks, index: int, parts: Sequence[Block]) -> Blocks:
    """Return blocks in which one block is replaced by its parts, as :func:`~prunus.evidence.blocks.split` gives them.

    No other block requires the parts. The parts may require each other or blocks before them; the
    requirements of the replaced block count only where the parts repeat them.
    """
    shift = len(parts) - 1
    shifted = [
        replace(block, requires=tuple(i + shift if i > index else i for i in block.requires if i != index))
        if block.requires
        else block
        for block in blocks.blocks
    ]
    return Blocks(blocks.trees, [*shifted[:index], *parts, *shifted[index + 1 :]], blocks.max_words)


def subset(blocks: Blocks, places: Sequence[int]) -> Blocks:
    """Return some of the blocks in document order; their paths stay those of the full cut.

    :param places: indices of the blocks, ascending; requirements outside them are dropped.
    """
    if len(places) == len(blocks):
        return blocks
    new_index = {place: number for number, place in enumerate(places)}
    chosen = []
    for place in places:
        block = blocks.blocks[place]
        needed = tuple(new_index[required] for required in block.requires if required in new_index)
        chosen.append(block if needed == block.requires else replace(block, requires=needed))
    return Blocks(blocks.trees, chosen, blocks.max_words, whole=blocks, places=places)
