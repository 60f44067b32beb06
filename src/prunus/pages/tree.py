"""The Tree: one cleaned document as compact arrays in document order.

Only :mod:`prunus.pages.clean.walk` builds it; the code after it reads it and never changes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..core.deadline import checked
from .clean import rules
from .grid import cell_gaps
from .node_arrays import Attrs, NodeArrays
from .text_forms import Forms, text_forms

SPACED = frozenset({"button", "select", "option", "textarea", "input", "img", "meter", "progress", "label"})
"""Inline elements that a browser shows apart from their neighbours."""


class Tree(NodeArrays):
    """One cleaned document; treat it as immutable.

    ``main`` tells which nodes are the page's main content: 0 dropped, 1 kept, 2 an ancestor of a kept node; None where
    the whole page is, or where nobody asked. ``parts`` holds the (start, end) of kept text nodes of which only a part
    is main content. ``main_confidence`` is how well the choice is expected to agree with a person's, as F of words from
    0 to 1; None where nobody asked. ``warnings`` says what a reader of the document should know of how it was read.
    ``read_at`` says when it was fetched, ISO 8601; '' for what was not fetched.
    """

    __slots__ = (
        "_canonical", "_forms", "_markup", "_starts", "_xpaths", "document", "lang", "main", "main_confidence", "parts",
        "published", "read_at", "snapshot", "title", "url", "warnings",
    )  # fmt: skip

    def __init__(
        self, tag: list[str], parent: Sequence[int], end: Sequence[int], text: list[str], attrs: list[Attrs | None]
    ) -> None:
        super().__init__(tag, parent, end, text, attrs)
        self.document = ""
        self.url = ""
        self.title = ""
        self.lang = ""
        self.published = ""
        self.read_at = ""
        self.snapshot = ""
        self.warnings: Sequence[str] = ()
        self.main: bytearray | None = None
        self.main_confidence: float | None = None
        self.parts: dict[int, list[tuple[int, int]]] = {}
        self._canonical: str | None = None
        self._forms: Forms = {}
        self._starts: Sequence[int] = []
        self._markup: tuple[str | bytes, str] = ("", "")
        self._xpaths: Any = None  # the XPath of each node

    @property
    def canonical(self) -> str:
        """The document's canonical text, into which spans point: a line for each block, a tab between cells.

        Every column of a table keeps its place: an empty cell, and one under a cell that spans rows, leave their tab.

        It says without tags what the page says: superscripts and subscripts keep their meaning (``10⁹``, ``x^(n+1)``),
        struck words stand between ``~~``, ``<q>`` has its quotation marks. Marks of notes are left out.
        """
        self._lay_out()
        assert self._canonical is not None
        return self._canonical

    @property
    def starts(self) -> Sequence[int]:
        """Offset of each node's own text in ``canonical``; one entry more than there are nodes."""
        self._lay_out()
        return self._starts

    def stop(self, node: int) -> int:
        """Return the end of a node's own text in ``canonical``."""
        self._lay_out()
        form = self._forms.get(node)
        return self._starts[node] + (len(self.text[node]) if form is None else len(form[0]))

    def offset(self, node: int, index: int) -> int:
        """Return the offset in ``canonical`` of a code point of ``text[node]``.

        Marks around the text belong to it: they are after offset 0, and before that of its length.
        """
        self._lay_out()
        form = self._forms.get(node)
        if form is None:
            return self._starts[node] + index
        if index in (0, len(self.text[node])):
            return self.stop(node) if index else self._starts[node]
        return self._starts[node] + min(form[1] + index, len(form[0]))

    def index(self, node: int, offset: int) -> int:
        """Return the code point of ``text[node]`` at an offset in ``canonical``; the reverse of :meth:`offset`."""
        self._lay_out()
        form = self._forms.get(node)
        size = len(self.text[node])
        if offset >= self.stop(node):
            return size
        return max(0, min(size, offset - self._starts[node] - (form[1] if form else 0)))

    def node_at(self, offset: int) -> int:
        """Return the node whose text covers code point ``offset`` of ``canonical``."""
        starts = self.starts
        node = bisect_right(starts, offset, 0, len(self)) - 1
        while node > 0 and not self.text[node]:
            node -= 1
        return max(node, 0)

    def _lay_out(self) -> None:
        """Build the canonical text and the offsets of the nodes in it, once."""
        if self._canonical is not None:
            return
        forms = self._forms = text_forms(self)
        left_out = {node for node, (form, _) in forms.items() if not form}
        gaps = cell_gaps(self, left_out) if "table" in self.tag else {}
        pieces: list[str] = []
        starts: list[int] = []
        position = 0
        gap = ""
        closing: list[int] = []  # ends of open elements whose closing separates words
        closing_gap: list[str] = []
        separators: dict[str, str] = {}  # by tag: a page has few
        texts, ends = self.text, self.end
        for node, tag in enumerate(checked(self.tag)):
            while closing and closing[-1] <= node:
                closing.pop()
                between = closing_gap.pop()
                if gap != "\n" and gap != between:
                    gap = wider(gap, between)
            if tag:
                known = separators.get(tag)
                if known is None:
                    known = separators[tag] = separator(tag)
                if known:
                    if gap != "\n" and gap != known:
                        gap = wider(gap, known)
                    closing.append(ends[node])
                    closing_gap.append(known)
            text = texts[node]
            if forms and node in forms:
                text = forms[node][0]
            if gaps and node in gaps:
                gap = gaps[node]
            if text and gap:
                if position and (gap != " " or (text[0] != " " and pieces[-1][-1] != " ")):
                    pieces.append(gap)
                    position += len(gap)
                elif not position and node in gaps:  # the page begins with empty cells
                    pieces.append(gap.lstrip("\n"))
                    position += len(pieces[-1])
                gap = ""
            starts.append(position)
            if text:
                pieces.append(text)
                position += len(text)
        starts.append(position)
        self._canonical = "".join(pieces)
        self._starts = starts


def separator(tag: str) -> str:
    """Return the separator between the words of an element and the words around it in canonical text."""
    if not tag or (tag in rules.INLINE and tag not in SPACED):
        return ""
    if tag in ("td", "th"):
        return "\t"
    return " " if tag in SPACED else "\n"


def wider(first: str, second: str) -> str:
    """Return the stronger of two separators: line, then cell, then space, then none."""
    order = "\n\t "
    if not first or not second:
        return first or second
    return order[min(order.index(first), order.index(second))]


def subtree_text(tree: Tree, node: int) -> str:
    """Return the visible text of a subtree on one line."""
    end = tree.end[node] - 1
    while end > node and not tree.text[end]:
        end -= 1
    return " ".join(tree.canonical[tree.starts[node] : tree.stop(end)].split())
