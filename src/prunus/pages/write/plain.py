"""Write a Tree, or any kept part of it, as plain text: a line for each block, tabs between cells."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from ..clean import rules
from ..tree import Tree
from .markup import Pieces

_KEPT: Final = re.compile(rb"\x01+|\x02")


def plain_text(tree: Tree, mask: bytearray | None = None, pieces: Pieces | None = None) -> str:
    """Return the visible text of the kept nodes.

    :param mask: per node: 0 dropped, 1 kept, 2 an ancestor of a kept node; None keeps all.
    :param pieces: text nodes of which only parts are kept.
    """
    return KeptText(tree, mask, pieces).text(0, len(tree)).strip("\n").rstrip()


class KeptText:
    """Cuts the kept text out of the canonical text; separators between kept parts stay.

    :param mask, pieces: as for :func:`plain_text`.
    """

    def __init__(self, tree: Tree, mask: bytearray | None = None, pieces: Pieces | None = None) -> None:
        self.tree, self.mask, self.pieces = tree, mask, pieces or {}
        self.cut = sorted(self.pieces)
        self.seams = _seams(tree)

    def text(self, lo: int, hi: int) -> str:
        """Return the kept text of nodes ``[lo, hi)``."""
        canonical = self.tree.canonical
        out: list[str] = []
        last = 0
        for node, start, end in self._spans(lo, hi):
            part = canonical[start:end]
            gap = canonical[last:start] if out else "\n"
            between = "\n" if "\n" in gap else "\t" if "\t" in gap else gap[:1] and " "
            # white space collapses where a dropped part leaves two spaces, or a space at the start of a line
            if part[0] == " " and (between in ("\n", "\t") or out[-1][-1] == " ") and not _is_raw(self.tree, node):
                part = part[1:]
                if not part:
                    continue
            if out and between:
                before = out[-1]
                if between == " ":
                    between = "" if before[-1].isspace() or part[0].isspace() else " "
                else:
                    out[-1] = before = before.rstrip(" ")
                    between = "" if before[-1:] == between == "\n" else between
                out.append(between)
            out.append(part)
            last = end
        return "".join(out)

    def _spans(self, lo: int, hi: int) -> Iterator[tuple[int, int, int]]:
        """Yield the kept spans of the canonical text in order, as (node, start, end)."""
        mask = self.mask
        runs = [(lo, hi)] if mask is None else (match.span() for match in _KEPT.finditer(mask, lo, hi))
        for first, stop in runs:
            node = first
            for at in self._breaks(first, stop):
                yield from self._shown(node, at)
                start = self.tree.starts[at]
                for begin, end in self.pieces.get(at) or [(0, len(self.tree.text[at]))]:
                    if begin < end:
                        yield at, start + begin, start + end
                node = at + 1
            yield from self._shown(node, stop)

    def _breaks(self, lo: int, hi: int) -> list[int]:
        """Return the text nodes of ``[lo, hi)`` that are written one by one: those with pieces, and seams."""
        cut = self.cut[bisect_left(self.cut, lo) : bisect_left(self.cut, hi)]
        seams = self.seams[bisect_left(self.seams, lo) : bisect_left(self.seams, hi)]
        return sorted({*cut, *seams}) if cut and seams else cut or seams

    def _shown(self, lo: int, hi: int) -> Iterator[tuple[int, int, int]]:
        """Yield the span of whole nodes, if they have text."""
        texts, starts = self.tree.text, self.tree.starts
        while lo < hi and not texts[lo]:
            lo += 1
        if lo < hi:
            end = hi - 1
            while not texts[end]:
                end -= 1
            yield lo, starts[lo], starts[end] + len(texts[end])


def _seams(tree: Tree) -> list[int]:
    """Return the text nodes whose first space repeats the last space of the text before them."""
    key = ("seams", 0)
    known: list[int] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = []
        canonical, starts = tree.canonical, tree.starts
        for node, text in enumerate(tree.text):
            if text[:1] == " " and canonical[starts[node] - 1 : starts[node]] == " " and not _is_raw(tree, node):
                known.append(node)
    return known


def _is_raw(tree: Tree, node: int) -> bool:
    """Tell whether a node is preformatted."""
    while node > 0 and tree.tag[node] not in rules.PREFORMATTED:
        node = tree.parent[node]
    return node > 0
