"""The evidence that pruning kept, and a record of every block, kept or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput
from ..core.ports import Segment, TokenCounter
from ..core.types import BlockRecord, DocumentInfo, Metadata, OutputFormat, Span, Trace
from ..pages.write.whole import render_tree
from .blocks import Blocks
from .render import Rendering, render_blocks


@dataclass(frozen=True, slots=True)
class Context:
    """The evidence that pruning kept, rendered in the format that the token budget was given for.

    :param output: the evidence, in ``format``.
    :param tokens: tokens of exactly ``output``.
    :param blocks: every block, kept or not, in document order.
    :param seconds: wall time by stage.
    :param engines: engine specs by kind.
    :param warnings: what was left out of the evidence, and why.
    :param trace: a record of each scoring stage, where there were two.
    :param tree: the token tree of the scorer ``generative``, for drawing; None for other scorers.
    """

    output: str
    format: OutputFormat
    tokens: int
    budget: int
    question: str
    blocks: Sequence[BlockRecord]
    documents: Sequence[DocumentInfo]
    engines: Mapping[str, str]
    seconds: Mapping[str, float]
    max_words: int
    _blocks: Blocks = field(repr=False, compare=False)
    _kept: Sequence[int] = field(repr=False, compare=False)
    _scores: NDArray[np.float64] = field(repr=False, compare=False)
    _rendering: Rendering = field(repr=False, compare=False)
    _counter: TokenCounter = field(repr=False, compare=False)
    _chance: Callable[[str, Sequence[Segment]], float] = field(repr=False, compare=False)
    warnings: Sequence[str] = ()
    trace: Sequence[Trace] = field(default=(), compare=False)
    tree: Any = field(default=None, repr=False, compare=False)

    def render(self, format: OutputFormat) -> str:
        """Return the same evidence in another format; its token count may differ, see ``tokens_of``."""
        if format == self.format:
            return self.output
        return render_blocks(self._blocks, self._kept, replace(self._rendering, format=format))

    def tokens_of(self, format: OutputFormat) -> int:
        """Return the tokens of the evidence in ``format``."""
        return self.tokens if format == self.format else self._count(self.render(format))

    def tokens_before(self) -> int:
        """Return the tokens of the cleaned documents in the output's format, before pruning.

        Each call renders and tokenises every document.
        """
        rendering = self._rendering
        return sum(self._count(render_tree(tree, rendering.format, rendering.style)) for tree in self._blocks.trees)

    def confidence(self) -> float:
        """Return the chance that the best passage of the evidence answers the question, 0 to 1, without a model.

        Each call reads the evidence again.
        """
        from .segments import segments  # here: few calls need it

        return self._chance(self.question, segments(self.kept, {tree.document: tree for tree in self._blocks.trees}))

    def of(self, document: int, format: OutputFormat | None = None) -> str:
        """Return the evidence of one document alone, without a header line; '' where nothing of it was kept.

        :param document: number of the document, from 0.
        :param format: by default that of the output.
        :raises BadInput: no such document.
        """
        number = self._number(document)
        own = [index for index in self._kept if self._blocks.blocks[index].document == number]
        return render_blocks(self._blocks, own, replace(self._rendering, format=format or self.format, headers=False))

    def left_out(self, document: int = 0) -> list[str]:
        """Return the headings of a document below which nothing was kept; of a whole section the first alone.

        :param document: number of the document, from 0.
        :raises BadInput: no such document.
        """
        from .headings import headings_without  # here: few calls need it

        tree = self._blocks.trees[self._number(document)]
        kept = [block.span for block in self.kept if block.document == document and block.role != "header"]
        return headings_without(tree, [(span.start, span.end) for span in kept])

    def metadata(self, document: int) -> Metadata:
        """Return what a document says about itself; its date is that of the search hit where the page has none.

        :param document: number of the document, from 0.
        :raises BadInput: no such document.
        """
        from ..pages.metadata import known_metadata  # here: few calls need it

        tree = self._blocks.trees[self._number(document)]
        known = known_metadata(tree)
        return known if known.published else replace(known, published=tree.published)

    def place(self, block: BlockRecord) -> str:
        """Return where a block stands in a document, as ``page 2`` or ``sheet Costs, row 5``; '' without such parts."""
        from ..pages.place import place_in_document  # here: few calls need it

        tree = self._blocks.trees[self._number(block.document)]
        return place_in_document(tree, tree.node_at(block.span.start))

    def _count(self, text: str) -> int:
        return int(self._counter.count([text])[0])

    def _number(self, document: int) -> int:
        if not 0 <= document < len(self.documents):
            raise BadInput(f"there is no document {document}; there are {len(self.documents)}", subject="document")
        return document

    def mark(self, document: int = 0, *, details: bool = False, style: bool = False) -> str:
        """Return the source of a document with the kept blocks marked, and otherwise unchanged.

        Start tags of kept elements get ``data-prunus="kept"``. They get ``data-prunus="kept-text"`` where only the
        words directly in the element were kept. Bytes are decoded as the parser decoded them. A document of
        another format is marked in the HTML made of it.

        :param document: number of the document, from 0.
        :param details: write the element's blocks and their scores into ``data-prunus-block`` and
            ``data-prunus-score``.
        :param style: write a ``<style>`` into the page that shows the marked parts in a browser.
        :raises BadInput: no such document.
        """
        from .mark import mark  # here: few calls mark, and marking loads the parser

        return mark(self._blocks, self._kept, document, self._scores.tolist() if details else None, style=style)

    @property
    def html(self) -> str:
        """The evidence as HTML."""
        return self.render("html")

    @property
    def markdown(self) -> str:
        """The evidence as Markdown."""
        return self.render("markdown")

    @property
    def text(self) -> str:
        """The evidence as plain text."""
        return self.render("text")

    @property
    def kept(self) -> list[BlockRecord]:
        """The blocks that were kept, in document order."""
        return [self.blocks[index] for index in self._kept]

    def __str__(self) -> str:
        return self.output


class Records(Sequence[BlockRecord]):
    """The records of all blocks, in document order; each is built on access, because a page may have very many blocks.

    :param scores: one score per block, float64 [n].
    :param kept: indices of the kept blocks.
    :param required: the kept blocks that were taken because another block requires them.
    :param parts: blocks that are parts of a block that was too large.
    :param stages: the stage that gave each score, int [n]; None where there was one stage.
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
            return [self._record(at) for at in range(*index.indices(len(self)))]
        return self._record(range(len(self))[index])

    def __iter__(self) -> Iterator[BlockRecord]:
        return map(self._record, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Records | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by content, like a list

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
