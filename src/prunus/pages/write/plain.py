"""Write a Tree, or any kept part of it, as plain text: a line for each block, tabs between cells."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from ..clean import rules
from ..tree import Tree
from .selection import AFTER, BEFORE, MARK, Kept

_KEPT: Final = re.compile(rb"\x01+|\x02")


def plain_text(tree: Tree, kept: Kept | None = None) -> str:
    """Return the visible text of a document, or of the kept part of it."""
    return KeptText(tree, kept).text(0, len(tree)).strip("\n").rstrip()


class KeptText:
    """Cuts the kept text out of the canonical text; separators between kept parts stay.

    :param kept: the part of the document; None for the whole.
    """

    def __init__(self, tree: Tree, kept: Kept | None = None) -> None:
        kept = kept or Kept(None, {}, {})
        self.tree, self.mask, self.pieces = tree, kept.mask, kept.pieces
        self.leads: dict[int, str] = {}  # node -> marks before its text
        self.tails: dict[int, str] = {}  # node -> marks behind its text
        if kept.mask is not None:
            self._mark(kept, kept.mask)
        self.cut = sorted({*self.pieces, *self.leads, *self.tails})
        self.seams = _seams(tree)

    def text(self, lo: int, hi: int) -> str:
        """Return the kept text of nodes ``[lo, hi)``."""
        canonical = self.tree.canonical
        out: list[str] = []
        last = 0
        for node, start, end in self._spans(lo, hi):
            part = canonical[start:end]
            if not part:  # the mark of a note, which the canonical text leaves out
                continue
            gap = canonical[last:start] if out else "\n"
            between = "\n" if "\n" in gap else "\t" if "\t" in gap else gap[:1] and " "
            tabs = gap[len(gap.rstrip("\t")) :]  # the columns before the first words of a row, or between two cells
            # white space collapses where a dropped part leaves two spaces, or a space at the start of a line
            raw = part[0] == " " and _is_raw(self.tree, node)
            if part[0] == " " and (between in ("\n", "\t") or out[-1][-1] == " ") and not raw:
                part = part[1:]
                if not part:
                    continue
            lead = self._lead(node, start, last)
            if lead:
                part = lead + (part if raw or lead[-1] != " " else part.lstrip(" "))
                between = between or lead[-1]
            if out and between:
                before = out[-1]
                if between == " ":
                    between = "" if before[-1].isspace() or part[0].isspace() else " "
                else:
                    out[-1] = before = before.rstrip(" ")
                    between = "" if before[-1:] == between == "\n" else between
                    if not lead:
                        between = tabs if between == "\t" else between + tabs
                out.append(between)
            if not out and node not in self.leads:
                out.append(_empty_cells(canonical, start))
            out.append(part)
            last = end
            if node in self.tails and end == self._end_of(node):
                out[-1] = out[-1].rstrip() + self.tails[node]
        return "".join(out)

    def _lead(self, node: int, start: int, last: int) -> str:
        """Return the marks before a part of a text node.

        :param last: end of the part before it.
        """
        pieces = self.pieces.get(node)
        if pieces is None or start == self.tree.offset(node, pieces[0][0]):
            return self.leads.get(node, "")
        if not self.tree.canonical[last:start].strip():
            return ""
        return f"{MARK}\n" if _is_raw(self.tree, node) else f"{MARK} "

    def _end_of(self, node: int) -> int:
        """Return the end of the kept text of a node in the canonical text."""
        pieces = self.pieces.get(node)
        return self.tree.offset(node, pieces[-1][1]) if pieces else self.tree.stop(node)

    def _mark(self, kept: Kept, mask: bytearray) -> None:
        """Find the texts before and behind which the marks stand."""
        tree = self.tree
        for node, side in kept.marks.items():
            if tree.tag[node]:
                self._add(self.leads, self._texts(node, mask)[:1], f"{MARK}\n")
                continue
            space = "\n" if _is_raw(tree, node) else " "
            if side & BEFORE:
                self._add(self.leads, [node], f"{MARK}{space}")
            if side & AFTER:
                self._add(self.tails, [node], f"{space}{MARK}")
        node = mask.find(2)
        while node >= 0:
            if tree.tag[node] == "tr" and kept.marked:
                self._mark_cells(node, mask)
            elif tree.tag[node] == "table" and kept.lacks_rows(tree, node):
                self._add(self.tails, self._texts(node, mask)[-1:], f"\n{MARK}")
            node = mask.find(2, node + 1)

    def _mark_cells(self, row: int, mask: bytearray) -> None:
        """Mark the cells that a kept row lacks."""
        tree, before = self.tree, list[int]()
        missing = ""
        for cell in tree.children(row):
            texts = self._texts(cell, mask) if mask[cell] else []
            if texts:
                self._add(self.leads, texts[:1], missing)
                before, missing = texts[-1:], ""
            elif not mask[cell] and tree.word_count(cell):
                self._add(self.tails, before, f"\t{MARK}")
                missing += "" if before else f"{MARK}\t"

    def _texts(self, node: int, mask: bytearray) -> list[int]:
        """Return the kept nodes with text below a node."""
        tree = self.tree
        return [inner for inner in range(node, tree.end[node]) if mask[inner] == 1 and tree.text[inner].strip()]

    def _add(self, marks: dict[int, str], nodes: list[int], mark: str) -> None:
        for node in nodes:
            marks[node] = mark + marks.get(node, "") if marks is self.leads else marks.get(node, "") + mark

    def _spans(self, lo: int, hi: int) -> Iterator[tuple[int, int, int]]:
        """Yield the kept spans of the canonical text in order, as (node, start, end)."""
        mask = self.mask
        runs = [(lo, hi)] if mask is None else (match.span() for match in _KEPT.finditer(mask, lo, hi))
        for first, stop in runs:
            node = first
            for at in self._breaks(first, stop):
                yield from self._shown(node, at)
                for begin, end in self.pieces.get(at) or [(0, len(self.tree.text[at]))]:
                    if begin < end:
                        yield at, self.tree.offset(at, begin), self.tree.offset(at, end)
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
            yield lo, starts[lo], self.tree.stop(end)


def _seams(tree: Tree) -> list[int]:
    """Return the text nodes whose first space repeats the last space of the text before them."""
    key = ("seams", 0)
    known: list[int] | None = tree.cache.get(key)
    if known is None:
        known = tree.cache[key] = []
        canonical, starts = tree.canonical, tree.starts
        for node, text in enumerate(tree.text):
            if (
                text
                and text[0] == " "
                and canonical[starts[node] - 1 : starts[node]] == " "
                and not _is_raw(tree, node)
            ):
                known.append(node)
    return known


def _empty_cells(canonical: str, start: int) -> str:
    """Return the tabs before the first words of a row."""
    first = start
    while first and canonical[first - 1] == "\t":
        first -= 1
    return canonical[first:start] if not first or canonical[first - 1] == "\n" else ""


def _is_raw(tree: Tree, node: int) -> bool:
    """Tell whether a node is preformatted."""
    while node > 0 and tree.tag[node] not in rules.PREFORMATTED:
        node = tree.parent[node]
    return node > 0
