"""Where words stand in a document: its page, slide, sheet and row, or chapter.

Formats mark the first words of such a part: ``<data value="page-2">``, which cleaning keeps.
"""

from __future__ import annotations

import re
from typing import Final

from ..core.text.numbers import bounded_int
from .asides import asides_around
from .tree import Tree, subtree_text

_MOST: Final = 10_000_000  # pages or rows
_MARK: Final = re.compile(r"(page|slide|chapter|row)-(\d{1,7})|sheet")


def place_in_document(tree: Tree, node: int) -> str:
    """Return where a node of a document begins: ``page 2``, ``slide 3``, ``chapter 2``, ``sheet Costs, row 5``.

    Pages, slides and chapters are counted from 1 in the order of the file, rows as the spreadsheet numbers them. What
    the document does not show says so: ``slide 3, speaker notes``, ``page 2, comment``, ``hidden sheet Costs, row 5``.
    '' where the document has no such parts, or the node stands before the first.
    """
    if "data" not in tree.tag:
        return ""
    while node + 1 < len(tree) and not tree.text[node] and tree.end[node] > node + 1:
        node += 1  # the mark stands inside an element, before its first words
    place, around = _shown_place(tree, node), asides_around(tree, node)
    if "comment" in around:
        place = place.partition(", row ")[0]  # comments follow the rows of their sheet, and name the cell
    said = [place, *(word for word in ("comment", "speaker notes") if word in around)]
    return "hidden " * ("hidden" in around) + ", ".join(filter(None, said))


def _shown_place(tree: Tree, node: int) -> str:
    """Return the page, slide, chapter, or sheet and row of a node."""
    row = 0  # rows of tables down to the node, after the row whose number a mark says
    is_counted = False
    for at in range(node, -1, -1):
        if tree.tag[at] in ("tr", "caption") and not is_counted:
            row += 1
        if tree.tag[at] != "data" or not (mark := _MARK.fullmatch((tree.attrs[at] or {}).get("value", ""))):
            continue
        kind, number = mark.groups()
        if kind is None:
            return f"sheet {subtree_text(tree, at)}, row {max(row, 1)}"
        if kind != "row":
            return f"{kind} {number}"
        if not is_counted:
            row, is_counted = row + bounded_int(number, 0, most=_MOST), True
    return ""
