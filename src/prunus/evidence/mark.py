"""Mark kept blocks in the page's own source; the rest of the source does not change.

The start tags of the elements in a kept block get an attribute. Where only text directly inside an
element is kept, the attribute of that element says ``kept-text``. An element that the parser inserted
has no start tag; then the elements inside it are marked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from ..core.errors import BadInput
from ..pages.clean.parse import FORMER, NAMES, Element, line_starts, parse_with_places, source_text, tag_place
from ..pages.clean.walk import walk_page
from ..pages.tree import Tree
from .blocks import Blocks

ATTRIBUTE: Final = "data-prunus"
"""The attribute that is put into start tags; its value is ``kept`` or ``kept-text``."""

_STYLE: Final = (
    "[@=kept],[@=kept] *{background:#fff1a8!important;color:#1d1b18!important}"
    "[@=kept]{outline:2px solid #d4a900!important}[@=kept-text]{outline:2px dashed #d4a900!important}"
)
"""The style sheet of marked elements; ``@`` stands for the attribute."""

_NAME: Final = re.compile(r"data-[a-z][-a-z0-9]*")
_FORMATTING: Final = frozenset({*NAMES, *FORMER})
"""Elements that are never marked: the parser compares their attributes, so a mark could change the tree."""

_Marks = dict[int, tuple[bool, list[int]]]
"""Place in the source -> whether the whole element is kept, and the blocks that keep it."""


def mark(
    blocks: Blocks,
    kept: Sequence[int],
    document: int = 0,
    scores: Sequence[float] | None = None,
    attribute: str = ATTRIBUTE,
    style: bool = False,
) -> str:
    """Return the source of a document with its kept blocks marked.

    :param kept: indices of the kept blocks; blocks of other documents are ignored.
    :param document: index of the document, from 0.
    :param scores: one score per block; with them, ``data-prunus-block`` and ``data-prunus-score`` list
        the blocks of an element and their scores, separated by spaces.
    :param attribute: name of the attribute; it begins with ``data-``. The mark comes first in its tag, so
        that it wins over an attribute of the same name in the page.
    :param style: write a style sheet that colours the marked elements before the page's first element.
    :returns: the page as text, decoded as the parser decoded it, otherwise letter for letter; cleaned
        again, it gives the same Tree.
    :raises BadInput: there is no such document, its source is not known, or the name is no data attribute.
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
    marks = _Marker(blocks, document, text).find_marks(kept)
    done = _prologue(text) if style else 0
    out = [text[:done], f"<style>{_STYLE.replace('@', attribute)}</style>"] if style else []
    for offset in sorted(marks):
        whole, indices = marks[offset]
        out += [text[done:offset], f' {attribute}="{"kept" if whole else "kept-text"}"']
        if scores is not None:
            numbers, graded = (" ".join(map(str, indices)), " ".join(f"{scores[index]:.4g}" for index in indices))
            out.append(f' {attribute}-block="{numbers}" {attribute}-score="{graded}"')
        done = offset
    return "".join([*out, text[done:]])


def text_for_file(tree: Tree, marked: str, styled: bool = False) -> str:
    """Return marked source for a UTF-8 file; a byte-order mark overrules another charset that the page names.

    :param styled: a style sheet was written into it, so that a browser may no longer see the charset in time.
    """
    markup, charset = tree._markup
    if styled and not marked.isascii():
        return "\ufeff" + marked.removeprefix("\ufeff")
    same = isinstance(markup, bytes) and source_text(markup, charset).encode() == markup
    return marked if same or marked.isascii() else f"\ufeff{marked}"


def _prologue(text: str) -> int:
    """Return the offset after the document type, white space and comments; without a document type, the start."""
    start = position = int(text.startswith("\ufeff"))
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        is_comment = text.startswith("<!--", position)
        end = text.find("-->" if is_comment else ">", position + 2)
        if text[position : position + 9].lower() == "<!doctype" and end >= 0:
            return end + 1
        if end < 0 or not (is_comment or text.startswith("<?", position)):
            break
        position = end + (3 if is_comment else 1)
    return start


class _Marker:
    """Finds the start tags of the elements in a document's blocks."""

    def __init__(self, blocks: Blocks, document: int, text: str) -> None:
        self.blocks, self.document, self.tree = blocks, document, blocks.trees[document]
        parsed, text, self.added = parse_with_places(text)
        self.origins = walk_page(text, "", "page", True, parsed)[1]
        if len(self.origins) != len(self.tree):
            raise BadInput("this document was not read from its source; read the page again", subject="document")
        self.start_tags = _start_tags(parsed, text)
        self.around = dict(self.start_tags)  # grows: ancestors that were looked up share their answer

    def find_marks(self, kept: Sequence[int]) -> _Marks:
        """Return the marks of the kept blocks by their places in the source."""
        marks: _Marks = {}
        for index in sorted(set(kept)):
            block = self.blocks.blocks[index]
            if block.document == self.document:
                for offset, whole in self._places(block.lo, block.hi, bool(block.first), block.last >= 0):
                    known = marks.get(offset, (False, []))
                    marks[offset] = (known[0] or whole, [*known[1], index] if index not in known[1] else known[1])
        # places are those of the text that was parsed, which has characters added to the source
        return {offset - bisect_right(self.added, offset): mark for offset, mark in marks.items()}

    def _places(self, lo: int, hi: int, cut_first: bool, cut_last: bool) -> list[tuple[int, bool]]:
        """List (offset of a start tag, whether the whole element is in the block) for the nodes of a block."""
        tree, places, node = self.tree, list[tuple[int, bool]](), lo
        whole_from, whole_to = lo + cut_first, hi - cut_last
        while node < hi:
            end, offset = tree.end[node], -1
            if not tree.tag[node]:
                if not tree.text[node].isspace():
                    offset = self._place_around(self.origins[node])
            elif node >= whole_from and end <= whole_to:
                offset = self.start_tags.get(self.origins[node], -1)
            if offset >= 0:
                places.append((offset, bool(tree.tag[node])))
            node = end if offset >= 0 else node + 1
        return places

    def _place_around(self, node: Any) -> int:
        """Return the offset of the mark of the nearest element around a text; -1 without such an element."""
        passed = []
        while node is not None and node not in self.around:
            passed.append(node)
            node = node.parent
        offset = -1 if node is None else self.around[node]
        self.around.update(dict.fromkeys(passed, offset))
        return offset


def _start_tags(document: Any, text: str) -> dict[Any, int]:
    """Map each element of a DOM to the offset in its start tag where a mark can be put."""
    lines = line_starts(text)
    places: dict[Any, int] = {}
    owners: dict[int, Any] = {}
    for element in document.descendants:
        if isinstance(element, Element) and element.tag not in _FORMATTING:
            offset = tag_place(element, text, lines)
            if offset in owners:  # the parser made two elements of one tag: a mark would be on both
                places.pop(owners[offset], None)
            elif offset >= 0:
                owners[offset] = element
                places[element] = offset
    return places
