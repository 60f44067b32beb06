"""Where to cut a Tree: HtmlRAG's Algorithm 1 with semantic units preferred as cuts."""

from __future__ import annotations

from ..pages.clean import rules
from ..pages.grid import header_rows, row_cells
from ..pages.tree import Tree
from .runs import Piece, cut_run

FIGURE_SLACK = 3
"""A figure stays whole up to this many times ``max_words``: a picture stays with its caption."""


def cut_tree(tree: Tree, max_words: int, leaves: bool = False) -> list[Piece]:
    """Cut one document; the pieces are contiguous and in document order."""
    cutter = _Cutter(tree, max_words, leaves)
    cutter.run()
    return cutter.result()


def cut_piece(tree: Tree, piece: Piece, max_words: int) -> list[Piece]:
    """Cut one piece of a document finer; the parts cover exactly it."""
    if piece.first or piece.last >= 0:
        return cut_run(tree, piece, max_words)
    node, siblings = piece.lo, []
    while node < piece.hi:
        siblings.append(node)
        node = tree.end[node]
    if node > piece.hi:  # a run that ends inside an inline element
        return cut_run(tree, piece, max_words)
    cutter = _Cutter(tree, max_words, False)
    if len(siblings) == 1 and tree.tag[piece.lo]:
        if tree.end[piece.lo] == piece.lo + 1:
            return [piece]
        cutter.expand(piece.lo)
    else:
        cutter.push(cutter.units(piece.node, siblings), ())
    cutter.go()
    return cutter.result()


class _Cutter:
    """Breadth is handled by an explicit stack, so that depth never meets Python's recursion limit."""

    def __init__(self, tree: Tree, max_words: int, leaves: bool) -> None:
        self.tree = tree
        self.max_words = max_words
        self.leaves = leaves
        self.pieces: list[Piece] = []
        self.holds_block = _holds_block(tree)
        self.stack: list[tuple[int, tuple[int, ...]]] = []  # (node, requires)
        self.terms: dict[int, int] = {}  # definitions that are blocks of their own -> their term

    def result(self) -> list[Piece]:
        """Return the pieces, terms that definitions need named by their place among them."""
        if self.terms:
            begins = {piece.lo: index for index, piece in reversed(list(enumerate(self.pieces)))}
            for piece in self.pieces:
                found = [begins.get(~needed, -1) if needed < 0 else needed for needed in piece.requires]
                piece.requires = tuple(needed for needed in found if needed >= 0)
        return self.pieces

    def run(self) -> None:
        """Cut the whole document."""
        self.stack.append((0, ()))
        self.go()

    def go(self) -> None:
        """Cut what is on the stack."""
        stack, tree = self.stack, self.tree
        while stack:
            node, requires = stack.pop()
            if node < 0:  # a run that was put off to keep document order: ~lo, with hi after it
                hi, _ = stack.pop()
                self._run(~node, hi, requires)
            elif self._is_whole(node):
                if tree.end[node] > node + 1 or tree.text[node] or tree.tag[node] in rules.SOLID or node == 0:
                    self._add(tree.parent[node], node, tree.end[node], requires, node)
            else:
                self.expand(node, requires)

    def _add(self, node: int, lo: int, hi: int, requires: tuple[int, ...], subtree: int = -1) -> None:
        """Add a subtree or a run."""
        words = self.tree.words
        whole = subtree >= 0 and self.tree.tag[subtree] != ""  # a text node alone is a run
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
        return words <= self.max_words or (tree.end[node] == node + 1)

    def expand(self, node: int, requires: tuple[int, ...] = ()) -> None:
        """Cut below a node: its children in turn, what is directly attached to it as runs."""
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
                # the term's place among the blocks is not known yet: named by its node until the end
                self.stack.append((lo, requires if term is None else (*requires, ~term)))
            else:
                self.stack.append((hi, ()))
                self.stack.append((~lo, requires))

    def units(self, node: int, children: list[int]) -> list[tuple[int, int, bool]]:
        """Group children of a node: block-level subtrees, runs between them, units that belong together."""
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
        """Keep terms with their definitions where both fit into a block."""
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
                for place in range(index + 1, stop):
                    if tag[parts[place][0]] == "dd":
                        self.terms[parts[place][0]] = lo
                grouped.extend(parts[index:stop])
            index = stop
        return grouped

    def _sections(self, parts: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
        """Keep a heading with its whole section where that fits into a block."""
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
        """Cut a table at its rows; each needs the table's header rows."""
        tree = self.tree
        header = header_rows(tree, table)
        todo: list[int] = []
        for child in tree.children(table):
            if tree.tag[child] in ("thead", "tbody", "tfoot"):
                todo.extend(tree.children(child))
            else:
                todo.append(child)
        plan: list[tuple[int, tuple[int, ...]]] = []
        needed = requires
        for node in todo:
            end = tree.end[node]
            if node in header and not plan:
                needed = (*needed, len(self.pieces))
                self._add(tree.parent[node], node, end, requires, node)
            elif not tree.tag[node]:
                self._run(node, end, requires) if not plan else plan.append((node, requires))
            elif tree.tag[node] == "tr":
                plan.append((node, needed))
            elif not plan and tree.word_count(node) <= self.max_words:
                self._add(tree.parent[node], node, end, requires, node)
            else:
                plan.append((node, requires))
        self.stack.extend(reversed(plan))

    def _row(self, row: int, requires: tuple[int, ...]) -> None:
        """Cut a large row at its cells; each needs the row's own header cell, when it is short."""
        tree = self.tree
        cells = row_cells(tree, row)
        first = cells[0] if cells else -1
        todo: list[tuple[int, tuple[int, ...]]] = []
        for child in tree.children(row):
            if child == first and len(cells) > 1 and tree.tag[child] == "th" and self._is_whole(child):
                needed = (*requires, len(self.pieces))
                self._add(row, child, tree.end[child], requires, child)
                requires = needed
            else:
                todo.append((child, requires))
        self.stack.extend(reversed(todo))

    # -- runs -------------------------------------------------------------------------------------

    def _run(self, lo: int, hi: int, requires: tuple[int, ...]) -> None:
        """Add a run of siblings, cut at sentences (in code: at lines) where it is larger than a block."""
        tree = self.tree
        parent = tree.parent[lo]
        words = tree.words[hi] - tree.words[lo]
        if words <= self.max_words or self.leaves:
            self._add(parent, lo, hi, requires)
            return
        self.pieces.extend(cut_run(tree, Piece(parent, lo, hi, 0, requires=requires), self.max_words))


def _holds_block(tree: Tree) -> bytearray:
    """Mark the nodes with a block-level descendant."""
    marks = bytearray(len(tree))
    parent, tag, inline = tree.parent, tree.tag, rules.INLINE
    for node in range(len(tree) - 1, 0, -1):
        if marks[node] or (tag[node] and tag[node] != "br" and tag[node] not in inline):
            marks[parent[node]] = 1
    return marks
