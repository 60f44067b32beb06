"""The arrays of a Tree while they grow, and the lines of text in them: white space as CSS collapses it."""

from __future__ import annotations

from typing import Any, Final

from ..tree import Attrs
from . import rules
from .parse import Node
from .tag_table import KINDS, LINE

START: Final = -1  # at the start of a line: white space collapses to nothing
_END_A_PARAGRAPH: Final = frozenset(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary ul""".split()
)
"""Elements whose start tag ends an open <p> (HTML, 13.2.6.4.7)."""

_SCOPES: Final = frozenset({"applet", "button", "caption", "marquee", "object", "table", "td", "template", "th"})
"""Elements in which the <p> outside is out of reach (HTML, 13.2.4.2: button scope)."""

FILLED: Final = -2  # something that is no text stands last on the line


class GrowingTree:
    """The growing arrays, and where white space stands.

    While it grows, ``depth`` says where each node hangs; ``parent`` and ``end`` follow from it at the end. ``origins``
    are the DOM nodes behind the nodes, where they are wanted. ``open`` holds the open elements, ``kinds`` the number of
    their tags in ``tag_table.KINDS``, ``here`` and ``kind`` the innermost; ``firsts`` where the first child of each
    has ended, 0 as long as it has none that did.

    ``last`` is the latest text node of the line, or START, or FILLED. ``space`` tells that white space waits for words
    to come on its line: most of it stands before the end of a line, and goes.
    """

    __slots__ = (
        "attrs", "depth", "dirty", "end", "firsts", "here", "kind", "kinds", "last", "noscripts", "odd", "open",
        "origins", "paragraph", "parent", "preformatted", "raw", "space", "spacer", "tag", "text", "vanished",
    )  # fmt: skip

    def __init__(self, with_origins: bool) -> None:
        self.tag: list[Any] = []  # str, None where a wrapper was merged away
        self.depth: list[int] = []
        self.text: list[str] = []
        self.attrs: list[Attrs | None] = []
        self.origins: list[Any] | None = [] if with_origins else None
        self.parent: list[int] = []
        self.end: list[int] = []
        self.here = -1
        self.open: list[int] = []
        self.kind = 0
        self.kinds: list[int] = [0]
        self.firsts: list[int] = [0]
        self.last = START
        self.space = False
        self.spacer: Any = None  # the DOM node of the white space that waits
        self.vanished = False  # an empty box went: the next words must not join those before it
        self.dirty = False  # a node was merged away, emptied, or split: close_gaps() has work
        self.noscripts: list[int] = []
        self.paragraph = -1  # the <p> that is open
        self.raw = 0  # depth of preformatted elements
        self.preformatted = False  # there is text in which white space stays
        self.odd = False  # letters were seen that show nowhere, or that no encoding can write

    def _add(self, tag: str, flags: int, text: str, attrs: Attrs | None, node: Node) -> None:
        """Add an element to the open one."""
        if self.paragraph >= 0 and not flags & LINE and tag in _END_A_PARAGRAPH:
            self._open_paragraph()
        self.tag.append(tag)
        self.depth.append(len(self.open))
        self.text.append(text)
        self.attrs.append(attrs)
        if self.origins is not None:
            self.origins.append(node)

    def _enter_node(self, node: int, flags: int) -> None:
        """Let what comes next be inside the element that was just added."""
        self.open.append(node)
        self.kinds.append(flags)
        self.firsts.append(0)
        self.here, self.kind = node, flags

    def _ended(self, node: int) -> None:
        """Note that a child of the open element has ended, where it is the first."""
        if node == self.here + 1:
            self.firsts[-1] = len(self.tag)

    def _leave_node(self) -> int:
        """Let what comes next be outside the open element; return where its first child has ended."""
        first = self.firsts.pop()
        self.open.pop()
        self.kinds.pop()
        self.here, self.kind = self.open[-1] if self.open else -1, self.kinds[-1]
        return first

    def _make_div(self, level: int) -> None:
        """Make a <div> of an open element, which could not be written as it is."""
        self.tag[self.open[level]] = "div"
        self.kinds[level + 1] = KINDS["div"]
        self.kind = self.kinds[-1]

    def _open_paragraph(self) -> None:
        """Make a <div> of the open <p>: written down, what was moved into it out of a table would end it."""
        level = len(self.open) - 1
        while level >= 0 and self.open[level] > self.paragraph and self.tag[self.open[level]] not in _SCOPES:
            level -= 1
        if level >= 0 and self.open[level] == self.paragraph:
            self._make_div(level)
            self.paragraph = -1

    def _add_text(self, text: str, node: Node) -> None:
        """Add a text node; one right after another is joined to it when the gaps are closed."""
        tags = self.tag
        level = len(self.open)
        if tags[-1] == "" and self.depth[-1] == level:
            self.dirty = True
        self.last = len(tags)
        tags.append("")
        self.depth.append(level)
        self.text.append(text)
        self.attrs.append(None)
        if self.origins is not None:
            self.origins.append(node)

    def _add_words(self, data: str, node: Node, level: int) -> None:
        """Add text that shows words at a depth, its white space collapsed as CSS collapses it."""
        if self.space:
            self._put_space()
        tags, texts = self.tag, self.text
        if "  " not in data and data.isprintable():  # of white space, only single spaces
            words = data.strip(" ")
        else:
            if not data.isascii():
                data = self._without_odd_letters(data)
            words = " ".join(data.split())
        last = self.last
        if len(words) != len(data):
            if last != START and data[:1].isspace() and (last == FILLED or texts[last][-1:] != " "):
                words = " " + words
            if data[-1:].isspace():
                words += " "
        if self.vanished and last == START:
            self.vanished = False
            if self._line_is_open(level):
                words = " " + words
        if tags[-1] == "" and self.depth[-1] == level:
            self.dirty = True
        self.last = len(tags)
        tags.append("")
        self.depth.append(level)
        texts.append(words)
        self.attrs.append(None)
        if self.origins is not None:
            self.origins.append(node)

    def _without_odd_letters(self, text: str) -> str:
        """Take out what shows nowhere, see :data:`rules.INVISIBLE`; note that there was something of the kind."""
        if not rules.ODD_LETTER.search(text):
            return text
        self.odd = True
        return rules.INVISIBLE.sub("", text)

    def _add_space(self, node: Node) -> None:
        """Let white space between words of one line wait, unless a space is there already."""
        last = self.last
        if not self.space and (last == FILLED or self.text[last][-1:] != " "):
            self.space, self.spacer = True, node

    def _put_space(self) -> None:
        """Add the white space that waited: something on the same line follows it."""
        self.space = False
        self._add_text(" ", self.spacer)

    def _add_raw(self, data: str, node: Node) -> int:
        """Add preformatted text as it is; return 1 if it shows words."""
        if data:
            self.preformatted = True
            self._add_text(self._without_odd_letters(data), node)
            self.last = FILLED
        return 0 if not data or data.isspace() else 1

    def _line_end(self) -> None:
        """End a line: a space that collapsed into its end disappears, the next line starts afresh."""
        last, self.last, self.space = self.last, START, False
        if last >= 0:
            text = self.text[last]
            if text[-1:] == " ":
                self.text[last] = text = text[:-1]
                if not text:
                    self._drop_tail(last)

    def _drop_tail(self, node: int) -> None:
        """Take away an emptied text node, and the closed inline elements that held only it."""
        self.dirty = True
        if node < len(self.tag) - 1:
            self._empty_around(node)
            return
        while node and node == len(self.tag) - 1 and node != self.here:
            tag = self.tag[node]
            if (tag and (tag not in rules.INLINE or tag in rules.SOLID)) or self.text[node]:
                return
            self._cut(node)
            node -= 1

    def _empty_around(self, node: int) -> None:
        """Take away the inline elements that held only an emptied text node, where others have come after it."""
        following = self.depth[node + 1]
        above = node - 1
        while above > 0 and following <= self.depth[above] < self.depth[above + 1]:
            tag = self.tag[above]
            if not tag or tag not in rules.INLINE or tag in rules.SOLID:
                return
            self.tag[above] = None
            above -= 1

    def _cut(self, node: int) -> None:
        """Cut the arrays off at ``node``."""
        if node == len(self.tag) - 1:
            self.tag.pop()
            self.depth.pop()
            self.text.pop()
            self.attrs.pop()
        else:
            del self.tag[node:]
            del self.depth[node:]
            del self.text[node:]
            del self.attrs[node:]
        if self.origins is not None:
            del self.origins[node:]
        while self.noscripts and self.noscripts[-1] >= node:
            self.noscripts.pop()

    def _line_is_open(self, level: int) -> bool:
        """Tell whether inline content stands before words at a depth, in the same block."""
        tags, depths, opened = self.tag, self.depth, self.open
        node, above = len(tags) - 1, len(opened) - 1
        if level > len(opened):  # in the element that was just added
            if tags[node] not in rules.INLINE:
                return False
            node -= 1
        while above >= 0 and tags[opened[above]] in rules.INLINE:
            if opened[above] == node:  # opened just now, and empty so far
                node -= 1
            above -= 1
        block = opened[above] if above >= 0 else -1
        while above + 1 < len(opened) and opened[above + 1] < node:
            above += 1
        while node > block:  # up to what is in an open element
            tag = tags[node]
            if tag and tag not in rules.INLINE:
                return False
            level = depths[node]
            if level <= above + 1:
                return True
            node -= 1
            while depths[node] >= level:
                node -= 1
        return False

    def link(self) -> None:
        """Work out ``parent`` and ``end`` from the depths."""
        self.parent, self.end = linked(self.depth)


def linked(depths: list[int]) -> tuple[list[int], list[int]]:
    """Return ``parent`` and ``end`` of the nodes of a tree in document order.

    :param depths: of each node; 0 is the root, and each is at most one more than the one before.
    """
    parent: list[int] = []
    end = list(range(1, len(depths) + 1))  # right for all that hold nothing
    opened: list[int] = []
    above = -1
    level, node = -1, 0
    for depth in depths:
        if depth > level:
            if node:
                above = node - 1
                opened.append(above)
            level = depth
        elif depth < level:
            while level > depth:
                end[opened.pop()] = node
                level -= 1
            above = opened[-1]
        parent.append(above)
        node += 1
    for last in opened:
        end[last] = node
    return parent, end
