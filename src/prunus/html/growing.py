"""The arrays of a Tree while they grow, and the lines of text in them: white space as CSS collapses it."""

from __future__ import annotations

from sys import intern
from typing import Any, Final

from . import rules
from .parse import Node
from .tree import Attrs

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

    ``last`` is the latest text node of the line, or START, or FILLED. ``space`` is the element in which white space
    waits for words to come on its line, -1 without any: most of it stands before the end of a line, and goes.
    """

    __slots__ = (
        "attrs", "dirty", "end", "last", "noscripts", "origins", "paragraph", "parent", "raw", "space", "spacer",
        "tag", "text", "vanished",
    )  # fmt: skip

    def __init__(self, with_origins: bool) -> None:
        self.tag: list[Any] = []  # str, None where a wrapper was merged away
        self.parent: list[int] = []
        self.end: list[int] = []
        self.text: list[str] = []
        self.attrs: list[Attrs | None] = []
        self.origins: list[Any] | None = [] if with_origins else None
        self.last = START
        self.space = -1
        self.spacer: Any = None  # the DOM node of the white space that waits
        self.vanished = False  # an empty box went: the next words must not join those before it
        self.dirty = False  # a node was merged away, emptied, or split: close_gaps() has work
        self.noscripts: list[int] = []
        self.paragraph = -1  # the <p> that is open
        self.raw = 0  # depth of preformatted elements

    def _add(self, tag: str, parent: int, text: str, attrs: Attrs | None, node: Node) -> None:
        """Add an element; it is open until its end is known."""
        if tag == "noscript":
            self.noscripts.append(len(self.tag))
        if self.paragraph >= 0 and tag in _END_A_PARAGRAPH:
            self._open_paragraph(parent)
        self.tag.append(intern(tag))  # the parser makes a new string of it for each element
        self.parent.append(parent)
        self.end.append(0)
        self.text.append(text)
        self.attrs.append(attrs)
        if self.origins is not None:
            self.origins.append(node)

    def _open_paragraph(self, here: int) -> None:
        """Make a <div> of the open <p>: written down, what was moved into it out of a table would end it."""
        while here > self.paragraph and self.tag[here] not in _SCOPES:
            here = self.parent[here]
        if here == self.paragraph:
            self.tag[here] = "div"
            self.paragraph = -1

    def _add_text(self, text: str, parent: int, node: Node) -> None:
        """Add a text node; one right after another is joined to it when the gaps are closed."""
        tags = self.tag
        place = len(tags)
        if tags[-1] == "" and self.parent[-1] == parent:
            self.dirty = True
        tags.append("")
        self.parent.append(parent)
        self.end.append(place + 1)
        self.text.append(text)
        self.attrs.append(None)
        self.last = place
        if self.origins is not None:
            self.origins.append(node)

    def _add_words(self, data: str, node: Node, here: int) -> None:
        """Add text that shows words, its white space collapsed as CSS collapses it."""
        if self.space >= 0:
            self._put_space()
        tags, texts = self.tag, self.text
        if "  " not in data and data.isprintable():  # of white space, only single spaces
            words = data.strip(" ")
        else:
            if not data.isascii():
                data = rules.INVISIBLE.sub("", data)
            words = " ".join(data.split())
        last = self.last
        if len(words) != len(data):
            if last != START and data[:1].isspace() and (last == FILLED or texts[last][-1:] != " "):
                words = " " + words
            if data[-1:].isspace():
                words += " "
        if self.vanished and last == START:
            self.vanished = False
            if self._line_is_open(here):
                words = " " + words
        if tags[-1] == "" and self.parent[-1] == here:
            self.dirty = True
        self.last = place = len(tags)
        tags.append("")
        self.parent.append(here)
        self.end.append(place + 1)
        texts.append(words)
        self.attrs.append(None)
        if self.origins is not None:
            self.origins.append(node)

    def _add_space(self, node: Node, here: int) -> None:
        """Let white space between words of one line wait, unless a space is there already."""
        last = self.last
        if self.space < 0 and (last == FILLED or self.text[last][-1:] != " "):
            self.space, self.spacer = here, node

    def _put_space(self) -> None:
        """Add the white space that waited: something on the same line follows it."""
        here, self.space = self.space, -1
        self._add_text(" ", here, self.spacer)

    def _add_raw(self, data: str, node: Node, here: int) -> int:
        """Add preformatted text as it is; return 1 if it shows words."""
        if data:
            self._add_text(rules.INVISIBLE.sub("", data), here, node)
            self.last = FILLED
        return 0 if not data or data.isspace() else 1

    def _line_end(self) -> None:
        """End a line: a space that collapsed into its end disappears, the next line starts afresh."""
        last, self.last, self.space = self.last, START, -1
        if last >= 0:
            text = self.text[last]
            if text[-1:] == " ":
                self.text[last] = text = text[:-1]
                if not text:
                    self._drop_tail(last)

    def _drop_tail(self, node: int) -> None:
        """Take away an emptied text node, and the closed inline elements that held only it."""
        self.dirty = True
        while node and node == len(self.tag) - 1 and self.end[node]:
            tag = self.tag[node]
            if (tag and (tag not in rules.INLINE or tag in rules.SOLID)) or self.text[node]:
                return
            above = self.parent[node]
            self._cut(node)
            while above >= 0 and self.end[above] > node:  # closed ancestors end one earlier now
                self.end[above] = node
                above = self.parent[above]
            node -= 1

    def _cut(self, node: int) -> None:
        """Cut the arrays off at ``node``."""
        for array in (self.tag, self.parent, self.end, self.text, self.attrs):
            del array[node:]
        if self.origins is not None:
            del self.origins[node:]
        while self.noscripts and self.noscripts[-1] >= node:
            self.noscripts.pop()

    def _line_is_open(self, here: int) -> bool:
        """Tell whether inline content stands before this place in the same block."""
        tags, parents = self.tag, self.parent
        block = here
        while block >= 0 and tags[block] in rules.INLINE:
            block = parents[block]
        node = len(tags) - 1
        while node > block and not self.end[node]:  # opened just now, and empty so far
            node -= 1
        if node <= block:
            return False
        while node > block:
            tag = tags[node]
            if tag and tag not in rules.INLINE:
                return False
            node = parents[node]
        return node == block
