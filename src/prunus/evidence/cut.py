"""Cut a Tree into pieces: HtmlRAG's Algorithm 1, with a preference for semantic units.

Sections, tables, terms with their definitions and figures stay whole where they fit into a block. A run of text that is
larger than a block is cut between sentences (in code between lines). A sentence and a row of data are cut only beyond
``WHOLE_WORDS``: a part of one may state what the whole does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import Final

from ..core.deadline import checked
from ..core.text.words import SYLLABIC, UNSPACED, count_words, sentence_spans
from ..pages.clean import rules
from ..pages.grid import row_cells
from ..pages.table_headers import group_titles, header_rows, header_rows_of
from ..pages.tree import Tree
from ..pages.write.selection import AFTER, BEFORE

WHOLE_WORDS = 128
"""A sentence or a row of data of up to so many words is one block at any granularity; what is longer is a list."""

CAPTION = 40
"""Words of a table's caption at most with which its rows are kept."""

FIGURE_SLACK = 3
"""A figure stays whole up to this many times ``max_words``, so that a picture keeps its caption."""


_CUTTABLE: Final = re.compile(rf"\s+|[{UNSPACED}{SYLLABIC}]")
"""White space, or a letter of a script that writes no spaces: a cut is allowed after it."""


@dataclass(slots=True)
class Piece:
    """A block of one document before it is numbered among all blocks.

    The fields are those of a block; ``requires`` holds indices among the pieces of the same document.
    """

    node: int
    lo: int
    hi: int
    words: int
    first: int = 0
    last: int = -1
    requires: tuple[int, ...] = ()
    ragged: int = 0


def cut_tree(tree: Tree, max_words: int, leaves: bool = False, whole_words: int = WHOLE_WORDS) -> list[Piece]:
    """Cut one document; the pieces are contiguous and in document order."""
    cutter = _Cutter(tree, max_words, leaves, max(max_words, whole_words))
    cutter.run()
    return cutter.result()


def cut_piece(tree: Tree, piece: Piece, max_words: int, whole_words: int = WHOLE_WORDS) -> list[Piece]:
    """Cut one piece of a document finer; the parts cover it exactly."""
    parts = _cut_piece(tree, piece, max_words, max(max_words, whole_words))
    if parts:
        parts[0].ragged |= piece.ragged & BEFORE
        parts[-1].ragged |= piece.ragged & AFTER
    return parts


def _cut_piece(tree: Tree, piece: Piece, max_words: int, whole_words: int) -> list[Piece]:
    if piece.first or piece.last >= 0:
        return cut_run(tree, piece, max_words, whole_words)
    node, siblings = piece.lo, []
    while node < piece.hi:
        siblings.append(node)
        node = tree.end[node]
    if node > piece.hi:  # a run that ends inside an inline element
        return cut_run(tree, piece, max_words, whole_words)
    cutter = _Cutter(tree, max_words, False, whole_words)
    if len(siblings) == 1 and tree.tag[piece.lo]:
        if tree.end[piece.lo] == piece.lo + 1:
            return [piece]
        cutter.expand(piece.lo)
    else:
        cutter.push(cutter.units(piece.node, siblings), ())
    cutter.go()
    return cutter.result()


class _Cutter:
    """Cuts one Tree; an explicit stack keeps deep pages below Python's recursion limit."""

    def __init__(self, tree: Tree, max_words: int, leaves: bool, whole_words: int) -> None:
        self.tree = tree
        self.max_words = max_words
        self.leaves = leaves
        self.whole_words = whole_words
        self.pieces: list[Piece] = []
        self.holds_block = _holds_block(tree)
        self.stack: list[tuple[int, tuple[int, ...]]] = []  # (node, requires)
        self.terms: dict[int, int] = {}  # definition that is a separate block -> its term
        self.later = False  # a row requires the titles of its group

    def result(self) -> list[Piece]:
        """Return the pieces; replace the nodes of required terms and titles by the indices of their pieces."""
        if self.terms or self.later:
            begins = {piece.lo: index for index, piece in reversed(list(enumerate(self.pieces)))}
            for piece in self.pieces:
                places = [begins.get(~needed, -1) if needed < 0 else needed for needed in piece.requires]
                piece.requires = tuple(index for index in places if index >= 0)
        return self.pieces

    def run(self) -> None:
        """Cut the whole document."""
        self.stack.append((0, ()))
        self.go()

    def go(self) -> None:
        """Cut the nodes on the stack until it is empty."""
        stack, tree = self.stack, self.tree
        for _ in checked(count()):
            if not stack:
                break
            node, requires = stack.pop()
            if node < 0:  # a run, deferred to keep document order: ~lo on top, hi below it
                hi, _ = stack.pop()
                self._run(~node, hi, requires)
            elif self._is_whole(node):
                if tree.end[node] > node + 1 or tree.text[node] or tree.tag[node] in rules.SOLID or node == 0:
                    self._add(tree.parent[node], node, tree.end[node], requires, node)
            else:
                self.expand(node, requires)

    def _add(self, node: int, lo: int, hi: int, requires: tuple[int, ...], subtree: int = -1) -> None:
        """Add a subtree or a run as a piece."""
        words = self.tree.words
        whole = subtree >= 0 and self.tree.tag[subtree] != ""  # a single text node counts as a run
        self.pieces.append(Piece(subtree if whole else node, lo, hi, words[hi] - words[lo], requires=requires))

    def _is_whole(self, node: int) -> bool:
        """Decide whether a subtree becomes one block."""
        tree, tag = self.tree, self.tree.tag[node]
        if self.leaves:
            return not any(tree.tag[child] for child in tree.children(node))
        words = tree.word_count(node)
        if tag in ("html", "body"):
            return words == 0 or (words <= self.max_words and tag == "body")
        if tag in rules.FIGURES:
            return words <= FIGURE_SLACK * self.max_words
        if words <= self.max_words or tree.end[node] == node + 1:
            return True
        return tag == "tr" and words <= self.whole_words and self._is_data(node)

    def _is_data(self, row: int) -> bool:
        """Tell whether a row holds data: no cell holds a block. The rows of a layout hold the blocks of the page."""
        return not any(self.holds_block[cell] for cell in row_cells(self.tree, row))

    def expand(self, node: int, requires: tuple[int, ...] = ()) -> None:
        """Cut below a node: block-level children one by one, the text between them as runs."""
        tag = self.tree.tag[node]
        if not self.leaves:
            if tag == "table":
                self._table(node, requires)
                return
            if tag == "tr":
                self._row(node, requires)
                return
        self.push(self.units(node, self.tree.children(node)), requires)

    def push(self, parts: list[tuple[int, int, bool]], requires: tuple[int, ...]) -> None:
        """Put parts onto the stack, the first on top."""
        for lo, hi, subtree in reversed(parts):
            if subtree:
                term = self.terms.get(lo)
                # the index of the term's piece is not known yet: ~node names it until ``result``
                self.stack.append((lo, requires if term is None else (*requires, ~term)))
            else:
                self.stack.append((hi, ()))
                self.stack.append((~lo, requires))

    def units(self, node: int, children: list[int]) -> list[tuple[int, int, bool]]:
        """Group the children of a node into block-level subtrees, runs between them, pairs and sections."""
        parts = self.group(children)
        if self.leaves:
            return parts
        return self._pairs(parts) if self.tree.tag[node] == "dl" else self._sections(parts)

    def group(self, children: list[int]) -> list[tuple[int, int, bool]]:
        """Group siblings into block-level subtrees and runs between them: (lo, hi, is a subtree)."""
        tree = self.tree
        parts: list[tuple[int, int, bool]] = []
        for child in children:
            tag, end = tree.tag[child], tree.end[child]
            inline = not tag or (not self.leaves and tag in rules.INLINE and not self.holds_block[child])
            if inline and tag not in rules.FIGURES:
                if parts and not parts[-1][2] and parts[-1][1] == child:
                    parts[-1] = (parts[-1][0], end, False)
                else:
                    parts.append((child, end, False))
            elif parts and tag == "br" and not parts[-1][2]:
                parts[-1] = (parts[-1][0], end, False)
            else:
                parts.append((child, end, True))
        return parts

    def _pairs(self, parts: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
        """Join terms and their definitions where they fit into one block together."""
        words, tag = self.tree.words, self.tree.tag
        grouped: list[tuple[int, int, bool]] = []
        index = 0
        while index < len(parts):
            stop = index
            while stop < len(parts) and tag[parts[stop][0]] == "dt":
                stop += 1
            while stop < len(parts) and tag[parts[stop][0]] == "dd" and stop > index:
                stop += 1
            stop = max(stop, index + 1)
            lo, hi = parts[index][0], parts[stop - 1][1]
            if stop - index > 1 and words[hi] - words[lo] <= self.max_words:
                grouped.append((lo, hi, False))
            else:
                for at in range(index + 1, stop):
                    if tag[parts[at][0]] == "dd":
                        self.terms[parts[at][0]] = lo
                grouped.extend(parts[index:stop])
            index = stop
        return grouped

    def _sections(self, parts: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
        """Join a heading and its section where the whole section fits into a block."""
        words, tag = self.tree.words, self.tree.tag
        grouped: list[tuple[int, int, bool]] = []
        index = 0
        while index < len(parts):
            lo = parts[index][0]
            if tag[lo] in rules.HEADINGS:
                stop = index + 1
                while (
                    stop < len(parts)
                    and not (tag[parts[stop][0]] in rules.HEADINGS and tag[parts[stop][0]] <= tag[lo])
                    and words[parts[stop][1]] - words[lo] <= self.max_words
                ):
                    stop += 1
                ended = stop == len(parts) or tag[parts[stop][0]] in rules.HEADINGS
                if ended and stop - index > 1:
                    grouped.append((lo, parts[stop - 1][1], False))
                    index = stop
                    continue
            grouped.append(parts[index])
            index += 1
        return grouped

    # -- tables -----------------------------------------------------------------------------------

    def _table(self, table: int, requires: tuple[int, ...]) -> None:
        """Cut a table at its rows; each row requires the header rows above it, and the titles of its group."""
        tree = self.tree
        header, titles, others = header_rows(tree, table), group_titles(tree, table), header_rows_of(tree, table)
        above: dict[tuple[int, ...], tuple[int, ...]] = {}  # by rows above: the rows of a group share one tuple
        todo: list[int] = []
        for child in tree.children(table):
            if tree.tag[child] in ("thead", "tbody", "tfoot"):
                todo.extend(tree.children(child))
            else:
                todo.append(child)
        plan: list[tuple[int, tuple[int, ...]]] = []
        needed = under = requires  # with the header rows, and without
        for node in todo:
            end = tree.end[node]
            if node in header and not plan:
                needed = (*needed, len(self.pieces))
                self._add(tree.parent[node], node, end, requires, node)
            elif not tree.tag[node]:
                self._run(node, end, requires) if not plan else plan.append((node, requires))
            elif tree.tag[node] == "tr":
                headers = others.get(node, ())
                own = (*headers, *titles.get(node, ()))
                self.later |= bool(own)
                base = under if headers else needed
                is_header = node in headers
                plan.append((node, under if is_header else above.setdefault(own, (*base, *(~row for row in own)))))
            elif not plan and tree.tag[node] == "caption" and 0 < tree.word_count(node) <= CAPTION:
                needed = under = (*needed, len(self.pieces))  # it may hold the unit of every number
                self._add(tree.parent[node], node, end, requires, node)
            elif not plan and tree.tag[node] == "caption" and not self.holds_block[node]:
                self._run(node + 1, end, requires)
            elif not plan and tree.word_count(node) <= self.max_words:
                self._add(tree.parent[node], node, end, requires, node)
            else:
                plan.append((node, requires))
        self.stack.extend(reversed(plan))

    def _row(self, row: int, requires: tuple[int, ...]) -> None:
        """Cut a large row at its cells; each cell requires the first cell of the row, if that is a short header."""
        tree = self.tree
        cells = row_cells(tree, row)
        first = cells[0] if cells else -1
        todo: list[tuple[int, tuple[int, ...]]] = []
        for child in tree.children(row):
            heads = child == first and len(cells) > 1 and (tree.tag[child] == "th" or self._is_data(row))
            if heads and self._is_whole(child):
                needed = (*requires, len(self.pieces))
                self._add(row, child, tree.end[child], requires, child)
                requires = needed
            else:
                todo.append((child, requires))
        self.stack.extend(reversed(todo))

    # -- runs -------------------------------------------------------------------------------------

    def _run(self, lo: int, hi: int, requires: tuple[int, ...]) -> None:
        """Add a run of siblings; cut it at sentences (in code at lines) where it is larger than a block."""
        tree = self.tree
        parent = tree.parent[lo]
        words = tree.words[hi] - tree.words[lo]
        if words <= self.max_words or self.leaves:
            self._add(parent, lo, hi, requires)
            return
        whole = Piece(parent, lo, hi, 0, requires=requires)
        self.pieces.extend(cut_run(tree, whole, self.max_words, self.whole_words))


def _holds_block(tree: Tree) -> bytearray:
    """Mark the nodes that have a block-level descendant."""
    marks = bytearray(len(tree))
    parent, tag, inline = tree.parent, tree.tag, rules.INLINE
    for node in range(len(tree) - 1, 0, -1):
        if marks[node] or (tag[node] and tag[node] != "br" and tag[node] not in inline):
            marks[parent[node]] = 1
    return marks


# --- runs that are larger than a block ------------------------------------------------------------


def cut_run(tree: Tree, whole: Piece, max_words: int, whole_words: int) -> list[Piece]:
    """Cut a run of siblings into pieces that cover exactly it.

    :param whole: the run; it may start and end inside text nodes.
    :param max_words: most words of a piece; only a longer sentence exceeds it.
    :param whole_words: a sentence of more words is cut, too, between words.
    """
    parts = _run_texts(tree, whole)
    text = "".join(part for _, part in parts)
    cuts = _cut_points(text, max_words, whole_words)
    if _is_preformatted(tree, whole.node):
        cuts = [(_line_start(text, cut), inside) for cut, inside in cuts]
    pieces: list[Piece] = []
    lo, first, ragged = whole.lo, whole.first, 0
    index, base = 0, 0
    for cut, inside in cuts:
        while base + len(parts[index][1]) < cut:
            base += len(parts[index][1])
            index += 1
        node, part = parts[index]
        start = whole.first if node == whole.lo else 0
        if tree.tag[node] or cut - base == len(part):
            hi, last, following, offset = node + 1, -1, node + 1, 0
        else:
            offset = start + cut - base
            hi, last, following = node + 1, offset, node
        if hi > lo and hi <= whole.hi:
            pieces.append(_make_piece(tree, whole, (lo, hi, first, last), ragged | AFTER * inside))
            lo, first, ragged = following, offset, BEFORE * inside
    if whole.hi > lo:
        pieces.append(_make_piece(tree, whole, (lo, whole.hi, first, whole.last), ragged))
    return pieces


def _run_texts(tree: Tree, whole: Piece) -> list[tuple[int, str]]:
    """Return the visible text of a run by node; a line break or a picture separates the words beside it."""
    parts: list[tuple[int, str]] = []
    for node in range(whole.lo, whole.hi):
        tag, text = tree.tag[node], tree.text[node]
        if tag == "br":
            parts.append((node, "\n"))
        elif tag and text:
            parts.append((node, text + " "))
        elif text:
            start = whole.first if node == whole.lo else 0
            end = whole.last if whole.last >= 0 and node == whole.hi - 1 else len(text)
            parts.append((node, text[start:end]))
    return parts


def _is_preformatted(tree: Tree, node: int) -> bool:
    """Tell whether a node is code or lies inside code."""
    while node > 0 and tree.tag[node] not in rules.PREFORMATTED:
        node = tree.parent[node]
    return node > 0


def _make_piece(tree: Tree, whole: Piece, bounds: tuple[int, int, int, int], ragged: int) -> Piece:
    """Make a piece of a run from its bounds (lo, hi, first, last), and count its words."""
    lo, hi, first, last = bounds
    end = hi - 1
    if lo == end:
        words = tree.words[hi] - tree.words[lo]
        if first or last >= 0:
            words = count_words(tree.text[lo][first : last if last >= 0 else None])
        return Piece(whole.node, lo, hi, words, first, last, whole.requires, ragged)
    words = tree.words[hi] - tree.words[lo]
    if first:
        words -= tree.words[lo + 1] - tree.words[lo] - count_words(tree.text[lo][first:])
    if last >= 0:
        words -= tree.words[hi] - tree.words[end] - count_words(tree.text[end][:last])
    return Piece(whole.node, lo, hi, words, first, last, whole.requires, ragged)


def _cut_points(text: str, max_words: int, whole_words: int) -> list[tuple[int, bool]]:
    """Choose where to cut a long text: between sentences, and inside the sentences of more than ``whole_words``.

    :returns: each position, and whether it lies inside a sentence.
    """
    cuts: list[tuple[int, bool]] = []
    held = 0
    for start, end in sentence_spans(text):
        size = count_words(text[start:end])
        if held and held + size > max_words:
            cuts.append((start, False))
            held = 0
        inner = _word_cuts(text, start, end, max_words) if size > whole_words else []
        cuts.extend((position, True) for position in inner)
        held = count_words(text[inner[-1] : end]) if inner else held + size
    return cuts


def _line_start(text: str, position: int) -> int:
    """Return the start of the line whose first word is at a position, or the position if words precede it there."""
    start = position
    while start and text[start - 1] in " \t":
        start -= 1
    return start if start and text[start - 1] == "\n" else position


def _word_cuts(text: str, start: int, end: int, max_words: int) -> list[int]:
    """Cut one long sentence after about every ``max_words`` words, at white space where there is some."""
    # strides of the average length need no count of words at each cut: time stays linear
    average = max(1, (end - start) // max(1, count_words(text[start:end])))
    stride = max(1, average * max_words)
    cuts = []
    position = start + stride
    while position < end:
        gap = _CUTTABLE.search(text, position - 1, end)  # never inside a word
        if not gap or gap.end() >= end:
            break
        cuts.append(gap.end())
        position = gap.end() + stride
    return cuts
