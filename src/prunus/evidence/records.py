"""What became of each block of a pruning, said when it is asked for: a page may have any number of blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..core.types import BlockRecord, Span
from .blocks import Blocks


class Records(Sequence[BlockRecord]):
    """The records of all blocks, in document order; each is made anew when it is asked for.

    :param scores: one a block.
    :param kept: the blocks that were kept.
    :param required: those of them that were kept because another needs them.
    :param parts: blocks that are parts of one that was too large.
    :param stages: which stage's number each score is; None where there was one stage.
    """

    def __init__(
        self,
        blocks: Blocks,
        scores: NDArray[np.float64],
        kept: Collection[int],
        required: Collection[int],
        parts: Collection[int],
        stages: NDArray[Any] | None = None,
    ) -> None:
        self._blocks, self._scores, self._stages = blocks, scores, stages
        self._kept, self._required, self._parts = frozenset(kept), frozenset(required), frozenset(parts)

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, index: int) -> BlockRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[BlockRecord]: ...
    def __getitem__(self, index: int | slice) -> BlockRecord | list[BlockRecord]:
        if isinstance(index, slice):
            return [self._record(place) for place in range(*index.indices(len(self)))]
        return self._record(range(len(self))[index])

    def __iter__(self) -> Iterator[BlockRecord]:
        return map(self._record, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Records | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by what it holds, like a list

    def __repr__(self) -> str:
        return f"<records of {len(self)} blocks, {len(self._kept)} kept>"

    def _record(self, index: int) -> BlockRecord:
        blocks = self._blocks
        block = blocks.blocks[index]
        role: Literal["scored", "header", "cut"]
        role = "header" if index in self._required else "cut" if index in self._parts else "scored"
        return BlockRecord(
            index,
            block.document,
            blocks.path(index),
            float(self._scores[index]),
            block.words,
            index in self._kept,
            role,
            blocks.texts[index],
            Span(blocks.trees[block.document].document, *blocks.span(index)),
            1 if self._stages is None else int(self._stages[index]),
        )
