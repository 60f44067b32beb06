"""The headings of a page, each with the first block below it: so that blocks can be shown in sections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from ..pages.tree import Tree

_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}
_LONGEST: Final = 300  # letters of a heading that are told


def outline_of(tree: Tree, starts: Sequence[int], first: int) -> list[dict[str, Any]]:
    """Return the page's headings in its order: level, text, and the number of the first block that is below each.

    A heading in the middle of a block is above the next block. Headings above no block are left out.

    :param starts: where each block of the page begins in its canonical text, ascending.
    :param first: the number of the page's first block.
    """
    found: list[dict[str, Any]] = []
    for node, tag in enumerate(tree.tag):
        level = _LEVELS.get(tag)
        if level is None:
            continue
        text = " ".join("".join(tree.text[node : tree.end[node]]).split())
        if not text:
            continue
        inside = next(part for part in range(node, tree.end[node]) if tree.text[part])
        block = bisect_right(starts, tree.starts[inside] - 1)
        if block < len(starts):
            found.append({"level": level, "text": text[:_LONGEST], "block": first + block})
    return found
