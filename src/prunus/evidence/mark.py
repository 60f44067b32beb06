"""Mark kept blocks in the page's own source; everything else stays as it was written.

The attribute goes into the start tags of the elements that a block holds. Words that stand directly
in an element of which other parts were dropped mark that element as holding kept text. Elements that
the parser made up have no start tag: what they hold is marked instead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from ..core.errors import BadInput
from ..pages.clean.formatting import FORMER, NAMES
from ..pages.clean.parse import Element, line_starts, parse_with_places, source_text, tag_place
from ..pages.clean.walk import walk_page
from ..pages.tree import Tree
from .blocks import Blocks

ATTRIBUTE: Final = "data-prunus"
"""What is put into start tags; its value is ``kept`` or ``kept-text``."""

_NAME: Final = re.compile(r"data-[a-z][-a-z0-9]*")
_FORMATTING: Final = frozenset({*NAMES, *FORMER})
"""Never marked: the parser compares their attributes, and a mark could change what it builds."""

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
    :raises BadInput: no such document, its source is not known, or the name is no data attribute.
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
        parsed, text, self.added = parse_with_places(text)
        self.origins = walk_page(text, "", "page", True, parsed)[1]
        if len(self.origins) != len(self.tree):
            raise BadInput("this document was not read from its source; read the page again", subject="document")
        self.own = _start_tags(parsed, text)
        self.around = dict(self.own)

    def marks(self, kept: Sequence[int]) -> _Marks:
        """Return the places in the source that are to be marked."""
        found: _Marks = {}
        for index in sorted(set(kept)):
            block = self.blocks.blocks[index]
            if block.document == self.document:
                for place, whole in self._held(block.lo, block.hi, bool(block.first), block.last >= 0):
                    known = found.get(place, (False, []))
                    found[place] = (known[0] or whole, [*known[1], index] if index not in known[1] else known[1])
        return {place - bisect_right(self.added, place): mark for place, mark in found.items()}

    def _held(self, lo: int, hi: int, cut_first: bool, cut_last: bool) -> list[tuple[int, bool]]:
        """List where what a block holds is marked: elements whole, as far as they can be; else the words in them."""
        tree, found, node = self.tree, [], lo
        whole_from, whole_to = lo + cut_first, hi - cut_last
        while node < hi:
            end, place = tree.end[node], -1
            if not tree.tag[node]:
                if not tree.text[node].isspace():
                    place = self._place_around(self.origins[node])
            elif node >= whole_from and end <= whole_to:
                place = self.own.get(self.origins[node], -1)
            if place >= 0:
                found.append((place, bool(tree.tag[node])))
            node = end if place >= 0 else node + 1
        return found

    def _place_around(self, node: Any) -> int:
        """Return where the nearest element around words is marked; -1: nowhere."""
        passed = []
        while node is not None and node not in self.around:
            passed.append(node)
            node = node.parent
        place = -1 if node is None else self.around[node]
        self.around.update(dict.fromkeys(passed, place))
        return place


def _start_tags(document: Any, text: str) -> dict[Any, int]:
    """Map elements of a DOM to where their start tags can be marked."""
    lines = line_starts(text)
    found: dict[Any, int] = {}
    owners: dict[int, Any] = {}
    for element in document.descendants:
        if isinstance(element, Element) and element.tag not in _FORMATTING:
            place = tag_place(element, text, lines)
            if place in owners:  # the parser made two elements of one tag: a mark would be in both
                found.pop(owners[place], None)
            elif place >= 0:
                owners[place] = element
                found[element] = place
    return found
