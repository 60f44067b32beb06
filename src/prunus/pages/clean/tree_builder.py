"""The arrays of a Tree while the walk builds them, and their last cleaning; white space is collapsed as CSS does.

After the walk, wrappers are merged, empty and split text nodes and noscripts that repeat the page go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..node_arrays import Attrs
from . import rules
from .elements import KINDS, LINE
from .parse import Node

START: Final = -1  # at the start of a line, where white space disappears
_END_A_PARAGRAPH: Final = frozenset(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary ul""".split()
)
"""Elements whose start tag ends an open <p> (HTML, 13.2.6.4.7)."""

_SCOPES: Final = frozenset({"applet", "button", "caption", "marquee", "object", "table", "td", "template", "th"})
"""Elements inside which no start tag ends a <p> outside (HTML, 13.2.4.2: button scope)."""

FILLED: Final = -2  # the line ends with something that is not text, as a picture


class GrowingTree:
    """The arrays of a tree under construction, and the state of the current line of text.

    While the tree grows, ``depth`` holds the depth of each node; :meth:`link` makes ``parent`` and ``end`` of it.
    ``origins`` are the DOM nodes of the nodes, where the caller wants them. ``open`` is the stack of open elements,
    ``kinds`` their flags in ``elements.KINDS``; ``here`` and ``kind`` are those of the innermost element. ``firsts``
    holds for each open element the end of its first child, 0 until that child has ended.

    ``last`` is the latest text node of the line, or START, or FILLED. ``space`` is set while white space waits for
    words on the same line: most white space is before the end of a line and is dropped.
    """

    __slots__ = (
        "attrs", "depth", "dirty", "end", "firsts", "here", "kind", "kinds", "last", "noscripts", "odd", "open",
        "origins", "paragraph", "parent", "preformatted", "raw", "space", "spacer", "struck", "tag", "text", "vanished",
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
        self.spacer: Any = None  # DOM node of the waiting white space
        self.vanished = False  # an empty block was dropped: it still separates the words around it
        self.dirty = False  # a node was merged, emptied or split: close_gaps() must run
        self.noscripts: list[int] = []
        self.struck: list[int] = []  # blocks whose style strikes their words through
        self.paragraph = -1  # the open <p>
        self.raw = 0  # number of open preformatted elements
        self.preformatted = False  # the page has text with kept white space
        self.odd = False  # the page has invisible letters, or surrogates

    def _add(self, tag: str, flags: int, text: str, attrs: Attrs | None, node: Node) -> None:
        """Add an element to the open element."""
        if self.paragraph >= 0 and not flags & LINE and tag in _END_A_PARAGRAPH:
            self._open_paragraph()
        self.tag.append(tag)
        self.depth.append(len(self.open))
        self.text.append(text)
        self.attrs.append(attrs)
        if self.origins is not None:
            self.origins.append(node)

    def _enter_node(self, node: int, flags: int) -> None:
        """Open the element that was just added: the next nodes are inside it."""
        self.open.append(node)
        self.kinds.append(flags)
        self.firsts.append(0)
        self.here, self.kind = node, flags

    def _ended(self, node: int) -> None:
        """Record the end of a node if it is the first child of the open element."""
        if node == self.here + 1:
            self.firsts[-1] = len(self.tag)

    def _leave_node(self) -> int:
        """Close the open element; return the end of its first child."""
        first = self.firsts.pop()
        self.open.pop()
        self.kinds.pop()
        self.here, self.kind = self.open[-1] if self.open else -1, self.kinds[-1]
        return first

    def _make_div(self, level: int) -> None:
        """Make an open element a <div>, because it could not be written as it is."""
        self.tag[self.open[level]] = "div"
        self.kinds[level + 1] = KINDS["div"]
        self.kind = self.kinds[-1]

    def _open_paragraph(self) -> None:
        """Make the open <p> a <div>: it holds a block that the parser moved out of a table, which would end a <p>."""
        level = len(self.open) - 1
        while level >= 0 and self.open[level] > self.paragraph and self.tag[self.open[level]] not in _SCOPES:
            level -= 1
        if level >= 0 and self.open[level] == self.paragraph:
            self._make_div(level)
            self.paragraph = -1

    def _add_text(self, text: str, node: Node) -> None:
        """Add a text node; :func:`close_gaps` joins adjacent text nodes."""
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
        """Add text with words at a depth, with its white space collapsed."""
        if self.space:
            self._put_space()
        tags, texts = self.tag, self.text
        if "  " not in data and data.isprintable():  # fast path: no white space but single spaces
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
        """Remove invisible letters, see :data:`rules.INVISIBLE`; record in ``odd`` that there were odd letters."""
        if not rules.ODD_LETTER.search(text):
            return text
        self.odd = True
        return rules.INVISIBLE.sub("", text)

    def _add_space(self, node: Node) -> None:
        """Remember white space for the next words of the line, unless the line ends with a space."""
        last = self.last
        if not self.space and (last == FILLED or self.text[last][-1:] != " "):
            self.space, self.spacer = True, node

    def _put_space(self) -> None:
        """Add the waiting white space, now that something follows it on the line."""
        self.space = False
        self._add_text(" ", self.spacer)

    def _add_raw(self, data: str, node: Node) -> int:
        """Add preformatted text with its white space; return 1 if it holds words, else 0."""
        if data:
            self.preformatted = True
            self._add_text(self._without_odd_letters(data), node)
            self.last = FILLED
        return 0 if not data or data.isspace() else 1

    def _line_end(self) -> None:
        """End a line and drop the space at its end."""
        last, self.last, self.space = self.last, START, False
        if last >= 0:
            text = self.text[last]
            if text[-1:] == " ":
                self.text[last] = text = text[:-1]
                if not text:
                    self._drop_tail(last)

    def _drop_tail(self, node: int) -> None:
        """Remove an empty text node, and the closed inline elements that held nothing else."""
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
        """Mark inline elements that held only an empty text node as removed; later nodes follow, so the arrays stay."""
        following = self.depth[node + 1]
        above = node - 1
        while above > 0 and following <= self.depth[above] < self.depth[above + 1]:
            tag = self.tag[above]
            if not tag or tag not in rules.INLINE or tag in rules.SOLID:
                return
            self.tag[above] = None
            above -= 1

    def _cut(self, node: int) -> None:
        """Remove ``node`` and all nodes after it."""
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
        for positions in (self.noscripts, self.struck):
            while positions and positions[-1] >= node:
                positions.pop()

    def _line_is_open(self, level: int) -> bool:
        """Tell whether words at a depth follow inline content of the same block."""
        tags, depths, opened = self.tag, self.depth, self.open
        node, above = len(tags) - 1, len(opened) - 1
        if level > len(opened):  # the words are in the element that was just added
            if tags[node] not in rules.INLINE:
                return False
            node -= 1
        while above >= 0 and tags[opened[above]] in rules.INLINE:
            if opened[above] == node:  # empty so far
                node -= 1
            above -= 1
        block = opened[above] if above >= 0 else -1
        while above + 1 < len(opened) and opened[above + 1] < node:
            above += 1
        while node > block:  # back to the innermost open element's content
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
        """Compute ``parent`` and ``end`` from the depths."""
        self.parent, self.end = linked(self.depth)


def linked(depths: list[int]) -> tuple[list[int], list[int]]:
    """Return ``parent`` and ``end`` of the nodes of a tree in document order.

    :param depths: depth of each node; 0 for the root, and at most one more than that of the node before.
    """
    parent: list[int] = []
    end = list(range(1, len(depths) + 1))  # already right for nodes without children
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


_SEARCHED: Final = 64
"""Noscripts whose words are searched for in the whole page. Each search is linear in the page, and a hostile page could
hold any number of noscripts: beyond this number, only equal text nodes count."""

_KEPT_EMPTY: Final = frozenset({"tr", "thead", "tbody", "tfoot", "td", "th", "body", "html"})


def drop_doubled_noscripts(walk: GrowingTree, noscripts: list[int]) -> bool:
    """Drop each <noscript> whose words the page shows elsewhere, or that only repeats a lazy image.

    :returns: whether anything was dropped.
    """
    tags, texts = walk.tag, walk.text
    parents, all_ends = linked(walk.depth)
    ends = [all_ends[node] for node in noscripts]
    outside_texts: set[str] = set()
    outside: list[str] = []
    shown = ""
    collected = False
    starts: dict[int, int] = {}  # of the nodes that were dropped, by their end
    last_end, dropped, searched = -1, False, 0
    for node, end in zip(noscripts, ends, strict=True):
        if node < last_end:
            continue
        last_end = end
        parts = [_collapsed(text, True) for text in texts[node:end] if text and not text.isspace()]
        if parts:
            if not collected:
                collected = True
                outside = _words_outside(walk, noscripts, ends)
                outside_texts = set(outside)
            doubled = all(part in outside_texts for part in parts)
            if not doubled and searched < _SEARCHED:
                searched += 1
                shown = shown or " ".join([text for text in outside if text])
                doubled = " ".join(parts) in shown
        else:
            doubled = tags[starts.get(node, node) - 1] == "img" or "img" not in tags[node:end]
        if doubled:
            dropped = True
            starts[end] = _drop(walk, node, end, parents, starts)
    return dropped


def _collapsed(text: str, raw: bool) -> str:
    """Return a text with single spaces between its words.

    :param raw: the text may be preformatted; other texts have single spaces already.
    """
    if raw and ("  " in text or not text.isprintable()):
        return " ".join(text.split())
    return text.strip(" ")


def _words_outside(walk: GrowingTree, noscripts: list[int], ends: list[int]) -> list[str]:
    """Return the texts of a page outside its noscripts."""
    texts: list[str] = []
    after = 0
    for node, end in zip(noscripts, ends, strict=True):
        if node >= after:  # else it is nested in the previous noscript
            texts += walk.text[after:node]
            after = end
    texts += walk.text[after:]
    raw = walk.preformatted
    return [_collapsed(text, raw) for text in texts if text]


def _drop(walk: GrowingTree, node: int, end: int, parents: Sequence[int], starts: Mapping[int, int]) -> int:
    """Drop a subtree, the elements around it that hold nothing else, and those that hold a space at a line's end.

    :param starts: where dropped nodes begin, by their end: they are passed over.
    :returns: where the dropped nodes begin now.
    """
    tags, texts, depths = walk.tag, walk.text, walk.depth
    after, depth = depths[end] if end < len(tags) else 0, depths[node]
    held_block = any(tag and tag not in rules.INLINE for tag in tags[node:end])
    for index in range(node, end):
        tags[index] = None
        texts[index] = ""
    while node > 1:
        if node in starts:
            node = starts[node]
            continue
        tag, level = tags[node - 1], depths[node - 1]
        first = tag == "" and texts[node - 1] == " " and level == depth > depths[node - 2]
        if first and tags[node - 2] in rules.INLINE and _ends_line(walk, node - 1, end, parents):
            texts[node - 1] = ""
        if tag and tag not in _KEPT_EMPTY and after <= level < depth:
            depth = level
            held_block = held_block or tag not in rules.INLINE
        elif tag is None or tag or texts[node - 1] or level < depth:
            break
        node -= 1
        tags[node] = None
    # at most one space stays between the words on both sides, and one where a block separated them
    if end < len(tags) and tags[end] == "":
        before = texts[node - 1] if tags[node - 1] == "" else ""
        if not texts[end].startswith(" "):
            texts[end] = " " + texts[end] if held_block and before and not before.endswith(" ") else texts[end]
        elif before.endswith(" ") or (not before and tags[node - 1] not in rules.INLINE):
            texts[end] = texts[end][1:]
    return node


def _ends_line(walk: GrowingTree, node: int, end: int, parents: Sequence[int]) -> bool:
    """Tell whether a line ends between a node and the node ``end``, which follows its subtree; not so in <pre>."""
    tags, depths = walk.tag, walk.depth
    ends = end >= len(tags) or not (tags[end] == "" or tags[end] in rules.INLINE)
    above = parents[node]
    while above >= 0 and (walk.preformatted or not ends):
        if tags[above] in rules.PREFORMATTED:
            return False
        ends = ends or (depths[above] >= depths[end] and tags[above] not in rules.INLINE)
        above = parents[above]
    return ends


def strike(walk: GrowingTree) -> None:
    """Put an ``<s>`` around the content of each struck block."""
    struck = set(walk.struck)
    tags, depths, texts, attrs = list[Any](), list[int](), list[str](), list[Attrs | None]()
    origins: list[Any] | None = None if walk.origins is None else []
    inside: list[int] = []  # depths of the struck blocks that are open
    for node, depth in enumerate(walk.depth):
        while inside and depth <= inside[-1]:
            inside.pop()
        tags.append(walk.tag[node])
        depths.append(depth + len(inside))
        texts.append(walk.text[node])
        attrs.append(walk.attrs[node])
        if origins is not None and walk.origins is not None:
            origins.append(walk.origins[node])
        if node in struck and node + 1 < len(walk.depth) and walk.depth[node + 1] > depth:
            inside.append(depth)
            tags.append("s")
            depths.append(depth + len(inside))
            texts.append("")
            attrs.append(None)
            if origins is not None and walk.origins is not None:
                origins.append(walk.origins[node])
    walk.tag, walk.depth, walk.text, walk.attrs, walk.origins = tags, depths, texts, attrs, origins


def close_gaps(walk: GrowingTree) -> None:
    """Rebuild the arrays: children of merged wrappers move up, adjacent text nodes join, empty text nodes go."""
    tags, texts, depths = walk.tag, walk.text, walk.depth
    tag_list: list[Any] = []
    text_list: list[str] = []
    depth_list: list[int] = []
    attrs: list[Attrs | None] = []
    origins: list[Any] | None = None if walk.origins is None else []
    parents, _ = linked(depths) if walk.origins else ([], [])
    joined: dict[int, list[str]] = {}  # parts of a joined text node, by its new index
    merged: list[int] = []  # depths of the merged nodes around this node
    latest = -1  # depth of the text node right before this node, -1 if another node is between
    for node, tag in enumerate(tags):
        level = depths[node]
        while merged and merged[-1] >= level:
            merged.pop()
        if tag is None:
            merged.append(level)
            continue
        level -= len(merged)
        text = texts[node]
        if tag:
            latest = -1
        elif not text:
            continue
        elif latest == level:
            joined.setdefault(len(text_list) - 1, [text_list[-1]]).append(text)
            if origins and walk.origins:  # words of several elements: their common parent is the origin
                origins[-1] = walk.origins[parents[node]]
            continue
        else:
            latest = level
        tag_list.append(tag)
        text_list.append(text)
        depth_list.append(level)
        attrs.append(walk.attrs[node])
        if origins is not None and walk.origins is not None:
            origins.append(walk.origins[node])
    for place, parts in joined.items():
        text_list[place] = "".join(parts)
    walk.tag, walk.text, walk.depth, walk.attrs, walk.origins = tag_list, text_list, depth_list, attrs, origins
