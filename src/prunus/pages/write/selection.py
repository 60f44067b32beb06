"""The part of a document that is written, and the marks where something was left out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..grid import table_rows
from ..tree import Tree

Pieces = dict[int, list[tuple[int, int]]]
"""Text nodes of which only parts are kept: node -> (start, end) within its text."""

MARK: Final = "\u2026"
"""Stands where something was left out."""

BEFORE: Final = 1
AFTER: Final = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of a document that is written.

    :param mask: per node: 0 dropped, 1 kept, 2 an ancestor of a kept node; None keeps all.
    :param pieces: text nodes of which only parts are kept.
    :param marks: node -> ``BEFORE`` or ``AFTER``. Words of the same paragraph were left out before or after a text.
        Items of the same list were left out before an item.
    :param marked: whether cells and rows that were left out are marked.
    """

    mask: bytearray | None
    pieces: Pieces
    marks: dict[int, int]
    marked: bool = True

    def lacks_rows(self, tree: Tree, table: int) -> bool:
        """Tell whether rows of a table were left out; rows of tables inside it do not count."""
        mask = self.mask
        if mask is None or mask[table] != 2 or not self.marked:
            return False
        return any(not mask[row] and tree.word_count(row) for row in table_rows(tree, table))

    def lacks(self, tree: Tree, cell: int) -> bool:
        """Tell whether a cell that was left out is to be marked; an empty one is not."""
        return self.marked and tree.word_count(cell) > 0

    def text(self, tree: Tree, node: int, raw: bool = False) -> str:
        """Return the kept text of a text node, with marks where parts of it, or words beside it, were left out.

        :param raw: the text is preformatted: a mark is a line of its own.
        """
        whole, side, space = tree.text[node], self.marks.get(node, 0), "\n" if raw else " "
        text, reached = "", 0 if side & BEFORE else -1
        for start, end in self.pieces.get(node) or [(0, len(whole))]:
            part = whole[start:end]
            if 0 <= reached < start or (side & BEFORE and not reached):
                marked = not text or whole[reached:start].strip()
                text = text.rstrip(" ").removesuffix(space) + (f"{space}{MARK}{space}" if marked else space)
                part = part.removeprefix(space)
            text += part
            reached = end
        return f"{text.rstrip()}{space}{MARK}" if side & AFTER else text


def main_part(tree: Tree) -> Kept | None:
    """Return the main content of a document, as chosen when it was cleaned; None for the whole document."""
    return Kept(tree.main, tree.parts, {}, marked=False) if tree.main is not None else None
