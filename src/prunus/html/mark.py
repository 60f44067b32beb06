"""Mark kept blocks in the page's own source; everything else stays as it was written.

The attribute goes into the start tags of the elements that a block holds. Words that stand directly
in an element of which other parts were dropped mark that element as holding kept text. Elements that
the parser made up have no start tag: what they hold is marked instead.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any, Final

from ..errors import BadInput
from .blocks import Blocks
from .clean import walk_page
from .formatting import NAMES
from .parse import (
    LARGE,
    Document,
    Element,
    Text,
    give_back_memory,
    is_rewritten,
    line_starts,
    parse_with_places,
    source_text,
    tag_place,
)
from .tree import Tree

ATTRIBUTE: Final = "data-prunus"
"""What is put into start tags; its value is ``kept`` or ``kept-text``."""

_NAME: Final = re.compile(r"data-[a-z][-a-z0-9]*")
_FORMATTING: Final = frozenset(NAMES)
"""Never marked: the parser compares their attributes, and a mark could change what it builds."""

_REMEMBERED: Final = 10_000
"""Elements around words that are remembered: more than can be open at once."""

_Marks = dict[int, tuple[bool, list[int]]]
"""Place in the source -> whether the whole element is kept, and the blocks that say so."""


def mark(
    blocks: Blocks,
    kept: Sequence[int],
    document: int = 0,
    scores: Sequence[float] | None = None,
    attribute: str = ATTRIBUTE,
) -> str:
    """Return the source of a document with its kept blocks marked.

    :param kept: indices of the kept blocks; those of other documents are left out.
    :param document: which of the documents, from 0.
    :param scores: one a block; with them, ``data-prunus-block`` and ``data-prunus-score`` say which
        blocks an element holds, and how they were scored, apart by spaces.
    :param attribute: its name, which begins with ``data-``. A page may hold such an attribute of its
        own; where a start tag is marked, the mark comes first, and so wins.
    :returns: the page as text, decoded as the parser decoded it, otherwise letter for letter; parsed
        and cleaned again, it gives the same Tree.
    :raises BadInput: no such document, its source is not known, its formatting never closed, or the name is no data
        attribute.
    """
    if not _NAME.fullmatch(attribute):
        raise BadInput(f"attribute {attribute!r}: give a name such as {ATTRIBUTE!r}", subject=attribute)
    if not 0 <= document < len(blocks.trees):
        raise BadInput(
            f"no document has the number {document}; there are {len(blocks.trees)}, from 0", subject=str(document)
        )
    markup, charset = blocks.trees[document]._markup
    if not markup:
        raise BadInput("the source of this document is not known; read the page with Prunus", subject="document")
    if is_rewritten(markup, charset):
        raise BadInput(
            "the source of this document cannot be marked: its formatting is never closed, so that each element of it"
            " stands in any number of places; close it, or do without the marks",
            subject="document",
        )
    text = source_text(markup, charset)
    marks = _Marker(blocks, document, text).marks(kept)
    out: list[str] = []
    done = 0
    for place in sorted(marks):
        whole, held = marks[place]
        out += [text[done:place], f' {attribute}="{"kept" if whole else "kept-text"}"']
        if scores is not None:
            numbers, graded = (" ".join(map(str, held)), " ".join(f"{scores[index]:.4g}" for index in held))
            out.append(f' {attribute}-block="{numbers}" {attribute}-score="{graded}"')
        done = place
    return "".join([*out, text[done:]])


def for_a_file(tree: Tree, marked: str) -> str:
    """Return marked source for a file in UTF-8; a byte-order mark overrules another charset that the page names."""
    markup, charset = tree._markup
    same = isinstance(markup, bytes) and source_text(markup, charset).encode() == markup
    return marked if same or marked.isascii() else f"\ufeff{marked}"


class _Marker:
    """Finds the start tags of what a document's blocks hold."""

    def __init__(self, blocks: Blocks, document: int, text: str) -> None:
        self.blocks, self.document, self.tree = blocks, document, blocks.trees[document]
        self.places = _places(text)
        if len(self.places) != len(self.tree):
            raise BadInput("this document was not read from its source; read the page again", subject="document")

    def marks(self, kept: Sequence[int]) -> _Marks:
        """Return the places in the source that are to be marked."""
        found: _Marks = {}
        for index in sorted(set(kept)):
            block = self.blocks.blocks[index]
            if block.document == self.document:
                for node, whole in self._held(block.lo, block.hi, bool(block.first), block.last >= 0):
                    place = self.places[node] if self.places[node] > 0 else ~self.places[node]
                    if place > 0:
                        known = found.get(place, (False, []))
                        found[place] = (known[0] or whole, [*known[1], index] if index not in known[1] else known[1])
        return found

    def _held(self, lo: int, hi: int, cut_first: bool, cut_last: bool) -> list[tuple[int, bool]]:
        """List what a block holds: elements whole, as far as they can be marked; else the words in them."""
        tree, found, node = self.tree, [], lo
        whole_from, whole_to = lo + cut_first, hi - cut_last
        while node < hi:
            end = tree.end[node]
            if not tree.tag[node]:
                if not tree.text[node].isspace():
                    found.append((node, False))
                node += 1
            elif node >= whole_from and end <= whole_to and self.places[node] > 0:
                found.append((node, True))
                node = end
            else:
                node += 1
        return found


def _places(text: str) -> Sequence[int]:
    """Return where each node that cleaning keeps is marked, as :meth:`_StartTags.place_of` says."""
    if len(text) >= LARGE:
        give_back_memory()  # what scoring left
    document = parse_with_places(text)
    tags = _StartTags(document, text)
    places: array[int] = walk_page(text, "", "page", (tags.place_of, array("i")), document)[1]
    return places


class _StartTags:
    """Where the elements of a DOM can be marked, as numbers: an object for each takes more than the DOM itself."""

    def __init__(self, document: Document, text: str) -> None:
        self._text = text
        self._lines = line_starts(text)
        self._owners = bytearray(len(text) + 1)
        self._around: dict[Any, int] = {}  # elements -> where words in them are marked
        nodes: list[Any] = [document]
        while nodes:  # as many as the DOM is deep
            node = nodes.pop()
            place = self._written(node)
            if place >= 0:
                self._owners[place] = min(2, self._owners[place] + 1)
            if (beside := node.next_sibling) is not None:
                nodes.append(beside)
            if not isinstance(node, Text) and len(node):
                nodes.append(node[0])

    def _written(self, node: Any) -> int:
        """Return where a start tag can take a mark; -1 where there is none that can."""
        if not isinstance(node, Element) or node.tag in _FORMATTING:
            return -1
        return tag_place(node, self._text, self._lines)

    def place_of(self, node: Any) -> int:
        """Return where an element is marked, ``~place`` where only one around it can be; for words it is always
        that. ``~(-1)``, which is 0, is no place: no name of a tag ends there."""
        if isinstance(node, Element) and (place := self._own(node)) >= 0:
            return place
        passed, place, around = [], -1, node.parent
        while place < 0 and isinstance(around, Element):
            known = self._around.get(around)
            if known is not None:
                place = known
                break
            passed.append(around)
            place = self._own(around)
            around = around.parent
        if len(self._around) > _REMEMBERED:
            self._around.clear()
        self._around.update(dict.fromkeys(passed, place))
        return ~place

    def _own(self, element: Element) -> int:
        """Return where an element is marked; -1: nowhere, or it is one of two that the parser made of one tag."""
        place = self._written(element)
        return place if place >= 0 and self._owners[place] == 1 else -1
