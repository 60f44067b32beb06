"""Write a Tree, or any kept part of it, as plain text: a line a block, cells apart by tabs."""

from __future__ import annotations

from .markup import Pieces
from .tree import Tree, separator, wider


def plain_text(tree: Tree, mask: bytearray | None = None, pieces: Pieces | None = None) -> str:
    """Return the visible text of the kept nodes.

    :param mask: per node: 0 dropped, 1 kept, 2 an ancestor of something kept; None keeps all.
    :param pieces: text nodes of which only parts are kept.
    """
    out: list[str] = []
    gap = ""
    open_ends: list[tuple[int, str]] = []
    node, stop = 0, len(tree)
    while node < stop:
        while open_ends and open_ends[-1][0] <= node:
            gap = wider(gap, open_ends.pop()[1])
        if mask is not None and not mask[node]:
            gap = wider(gap, separator(tree.tag[node]) or (" " if not tree.tag[node] else ""))
            node = tree.end[node]
            continue
        between = separator(tree.tag[node])
        if between:
            gap = wider(gap, between)
            open_ends.append((tree.end[node], between))
        text = tree.text[node]
        if pieces and node in pieces:
            text = " ".join(text[start:end].strip() for start, end in pieces[node])
        if text:
            if gap and out:
                if out[-1].endswith(" ") and gap != " ":
                    out[-1] = out[-1].rstrip(" ")
                out.append(gap)
            out.append(text)
            gap = ""
        node += 1
    return "".join(out).strip()
