"""HTML cleaning (HtmlRAG §3.2): one parse, one read-only walk into the Tree arrays.

Every rule of :mod:`prunus.pages.clean.rules` is applied on the way: what cannot be seen goes before any
attribute is stripped, white space collapses as a browser collapses it, wrappers that add nothing
are merged, empty elements vanish. No word is lost, no two words are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..tree import Attrs, Tree
from . import rules
from .dom import holds_heading, holds_one_block, is_nested, says
from .elements import SPECIAL, kept_attributes
from .formatting import FORMER
from .gaps import close_gaps, drop_doubled_noscripts
from .hidden import is_hidden, shown_again
from .parse import Document, Element, Text, parse, without_surrogates
from .tag_table import (
    BLOCK,
    DROP,
    KEEPS,
    KIND,
    KINDS,
    LEAVES,
    LINE,
    MORE,
    NOT_NESTED,
    OBSOLETE,
    PASS,
    PRE,
    RENAMED,
    SHOWN,
    STRICT,
    UNNESTED,
    WRAPS,
)
from .tree_builder import FILLED, START, GrowingTree

_ROWS: Final = frozenset({"tr", "td", "th"})
_HOLD_ROWS: Final = frozenset({"table", "tr", "thead", "tbody", "tfoot"})
"""Where rows and cells count though they are empty; in mathematics, say, they are no part of any table."""

_MARKED: Final = "[style],[hidden],[aria-hidden],[popover],.sortkey,a a,button button,[lang]"
"""Elements that might be hidden, links in links, buttons in buttons, and what is in a language of its own."""

_ENDED_BY: Final = {"li": ("li",), "dd": ("dd", "dt"), "dt": ("dd", "dt")}
"""Items that end an open one (HTML, 13.2.6.4.7): only what is moved out of a table ever stands in it."""

_ITEM_SCOPES: Final = (rules.SECTIONS - {"address"}) | frozenset(
    """applet blockquote body button caption center dd details dialog dir dl dt figcaption figure h1 h2 h3 h4 h5 h6
    html li listing marquee menu object ol pre select summary table tbody td template tfoot th thead tr
    ul""".split()
)
"""Special elements: an item outside them is out of an item's reach."""

_WRAPPERS: Final = rules.WRAPPERS
_MEDIA: Final = rules.MEDIA


def clean_tree(markup: str | bytes, *, charset: str = "", name: str = "page") -> Tree:
    """Parse and clean a page.

    :param markup: HTML as str or bytes.
    :param charset: the encoding that the transport named, for bytes.
    :param name: how errors call the page.
    :returns: the cleaned document; it may hold no words if the page shows none.
    :raises BadPage: the page is empty, binary, or over the size limit.
    """
    tree, _ = walk_page(markup, charset, name)
    tree._markup = (markup, charset)
    return tree


def walk_page(
    markup: str | bytes, charset: str, name: str, with_origins: bool = False, document: Document | None = None
) -> tuple[Tree, list[Any]]:
    """Parse, walk, and close the gaps that the walk left.

    :param document: the page's DOM, if it was parsed before.
    :returns: the tree, and ``with_origins`` the DOM node behind each node of it.
    """
    walk = _Walk(with_origins)
    walk.run(document or parse(markup, charset, name))
    if isinstance(markup, str) and not markup.isascii() and _holds_surrogates(walk):
        walk = _Walk(with_origins)
        walk.run(parse(without_surrogates(markup), charset, name))
    if not walk.tag:  # a frameset has no body
        walk.tag, walk.depth, walk.text, walk.attrs = ["html"], [0], [""], [None]
    if walk.noscripts and drop_doubled_noscripts(walk, walk.noscripts):
        walk.dirty = True
    if walk.dirty:
        close_gaps(walk)
    walk.link()
    tags: list[str] = walk.tag
    tree = Tree(tags, walk.parent, walk.end, walk.text, walk.attrs)
    tree.lang = (tree.attrs[0] or {}).get("lang", "")
    if len(tags) > 2 and tags[1] == "title":
        tree.title = walk.text[2]
    return tree, walk.origins or []


def _holds_surrogates(walk: _Walk) -> bool:
    """Tell whether anything that is kept of a page holds what no encoding can write."""
    kept: list[str] = [text for text in walk.text if not text.isascii()] if walk.odd else []
    for attrs in walk.attrs:
        if attrs:
            kept.extend(attrs.values())
    shown = "".join(kept)
    if shown.isascii():
        return False
    try:
        shown.encode("utf-16-le")  # the quickest that refuses surrogates
    except UnicodeEncodeError:
        return True
    return False


class _Walk(GrowingTree):
    """The walk: what of each DOM node goes into the arrays. Nothing in it is idle: it is the hot loop of cleaning.

    ``content`` is how many nodes so far show something, ``mark`` how many did before the element that was just
    entered, -1 where only its children stay.
    """

    __slots__ = ("content", "mark", "marked", "styles")

    def __init__(self, with_origins: bool) -> None:
        super().__init__(with_origins)
        self.content = 0
        self.mark = -1
        self.marked: set[Any] = set()
        self.styles: dict[str, bool] = {}

    def run(self, document: Document) -> None:
        """Walk the DOM once, in document order, without recursion."""
        element, words = Element, Text  # names of a module are slow to look up in compiled code
        self.marked = set(document.select(_MARKED))  # one native search is cheaper than a look at every element
        nodes: Iterator[Any] = iter([node for node in document.children if type(node) is element])
        levels: list[tuple[Iterator[Any], int]] = []  # what comes after each open element, and its mark
        while True:
            for node in nodes:
                kind = type(node)
                if kind is element:
                    inner = self._enter(node)
                    if inner is not None:
                        levels.append((nodes, self.mark))
                        nodes = iter(inner)
                        del inner
                        break
                elif kind is words:
                    self._read(node)
            else:
                if not levels:
                    break
                nodes, mark = levels.pop()
                if mark >= 0:
                    self._leave(mark)
        self.marked = set()
        self.spacer = None  # a node holds the whole DOM

    def _enter(self, node: Element) -> Sequence[Any] | None:
        """Enter an element; return what of it is walked next, None where nothing is."""
        tag = node.tag
        flags = KINDS.get(tag, BLOCK)
        seen = flags & KIND
        if seen == DROP and (self.here < 0 or self.tag[self.here] not in _MEDIA or tag not in LEAVES):
            return None
        self.mark = -1
        marked = node in self.marked
        if marked:
            if is_hidden(node, self.styles):
                again = shown_again(node)
                if again:
                    self._line_end()
                return again or None
            if tag in ("a", "button") and is_nested(node):
                return node.children
        if seen == RENAMED:
            tag = FORMER[tag]
            flags = KINDS[tag]
            seen = flags & KIND
        if seen == STRICT:
            tag = self._readable(node, tag)
            flags = KINDS[tag]
            seen = BLOCK
        kept = kept_attributes(tag, node, marked) if marked or flags & KEEPS else None
        if seen == MORE:
            return self._special(node, tag, kept)
        children: Sequence[Any] = node.children
        if seen == BLOCK:
            if self.last != START:
                self._line_end()
            if not children:
                self.vanished = True
        if not children and (tag not in _ROWS or self.tag[self.here] not in _HOLD_ROWS):
            return None
        if not kept:
            unnested = self.kind & UNNESTED
            if seen == PASS and not (unnested and holds_heading(children)):
                return children
            if len(children) < 4 and flags & WRAPS and not unnested and not self.raw and holds_one_block(children):
                return children
        return self._open(node, tag, flags, kept, children)

    def _readable(self, node: Element, tag: str) -> str:
        """Return the tag of a heading, an item or a form, as it can be written where it stands.

        Straight in one of its kind, where the parser's repairs have put it, it would end that one.
        """
        level = len(self.open) - 1
        above = self.tag[self.here]
        while above == "noscript":  # its tags are never written
            level -= 1
            above = self.tag[self.open[level]]
        if tag in rules.HEADINGS:
            if above in rules.HEADINGS and says(node):
                self._make_div(level)
            return tag
        if tag == "form":
            return "div" if is_nested(node) else tag
        ended = _ENDED_BY[tag]
        while above not in ended and above not in _ITEM_SCOPES:
            level -= 1
            above = self.tag[self.open[level]]
        return "div" if above in ended else tag

    def _open(
        self, node: Element, tag: str, flags: int, kept: Attrs | None, children: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Add an element; one that holds a text node and nothing else is whole with it."""
        if self.space:
            self._put_space()
        place = len(self.tag)
        self._add(tag, flags, "", kept, node)
        if len(children) == 1 and not self.raw and type(children[0]) is Text:
            data: str = children[0].data
            if not data.isspace():
                self.content += 1
                self._add_words(data, children[0], len(self.open) + 1)
                if not flags & LINE:
                    self._line_end()
                self._ended(place)
                return None
        self.mark = self.content
        self._enter_node(place, flags)
        if tag == "p":
            self.paragraph = place
        return children

    def _special(self, node: Element, tag: str, kept: Attrs | None) -> Sequence[Any] | None:
        """Enter an element that needs more than its tag; return what of it is walked next, None where nothing is."""
        tag = OBSOLETE.get(tag, tag)
        flags = KINDS[tag]
        children: Any = node.children
        own = ""
        if tag in SPECIAL:
            special = SPECIAL[tag](node, kept)
            if special is None:
                return None
            children, kept, own = special
        if tag == "head":
            return children  # type: ignore[no-any-return]
        if tag == "select" and is_nested(node):
            return [child for option in children for child in option.children]
        inline = flags & LINE
        if not inline and self.last != START:
            self._line_end()
        if self.space:
            self._put_space()
        place = len(self.tag)
        if tag == "noscript":
            self.noscripts.append(place)
        self._add(tag, flags, own, kept, node)
        before = self.content
        if own or (tag in SHOWN and (kept or tag not in _MEDIA)):  # the sources of a player count themselves
            self.content += 1
            if inline:
                self.last = FILLED
        if tag in LEAVES:
            self._ended(place)
            return None
        if flags & PRE:
            self.raw += 1
        self.mark = before
        self._enter_node(place, flags)
        return children  # type: ignore[no-any-return]

    def _read(self, node: Text) -> None:
        """Add a text node: words, white space between words, or preformatted text."""
        data: str = node.data
        if self.raw:
            self.content += self._add_raw(data, node)
        elif not data.isspace():
            self.content += 1
            self._add_words(data, node, len(self.open))
        elif self.last != START:
            self._add_space(node)

    def _leave(self, mark: int) -> None:
        """Come to the end of the open element."""
        place, flags = self.here, self.kind
        tag = self.tag[place]
        inline = flags & LINE
        if tag == "p":
            self.paragraph = -1
        if self.space and inline:
            self._put_space()
        if self.content == mark or flags & PRE:
            self._close(place, tag, self.content > mark)
            return
        if self.last != START and not inline:
            self._line_end()
        first = self._leave_node()
        self._ended(place)
        if first == len(self.tag):
            inner = self.tag[place + 1]
            if inner is None or (inner and (flags & WRAPS or inner in _WRAPPERS)):
                self._merge(place, tag)

    def _close(self, node: int, tag: str, shows: bool) -> None:
        """Close a preformatted element, or one that shows nothing: that is dropped, but for cells and rows."""
        block = tag not in rules.INLINE
        if tag in rules.PREFORMATTED:
            self.raw -= 1
        if block and self.last != START:
            self._line_end()
        self._leave_node()
        # <b> </b> and <b><br></b> hold apart the words beside them
        empty = not shows and (tag not in _ROWS or self.tag[self.here] not in _HOLD_ROWS)
        empty = empty and (tag not in _HOLD_ROWS or tag == "table" or len(self.tag) == node + 1)
        if empty and node and (block or len(self.tag) == node + 1):
            self._cut(node)
            self.vanished = self.vanished or block
        else:
            self._ended(node)

    def _merge(self, node: int, tag: str) -> None:
        """Merge single-nested wrappers: ``node`` has one child, the end of the arrays is its end."""
        tags = self.tag
        child = node + 1
        while tags[child] is None:  # a merged wrapper has exactly one child
            child += 1
        inner = tags[child]
        if not inner or tag in rules.INLINE:
            return
        if tag in NOT_NESTED and any(held in NOT_NESTED for held in tags[child + 1 :]):
            return  # the wrapper keeps a heading in a heading from ending the outer one
        if inner in rules.WRAPPERS and not self.attrs[child]:
            tags[child] = None
            self.dirty = True
        elif tag in rules.WRAPPERS and not self.attrs[node] and inner not in rules.INLINE:
            if inner in NOT_NESTED and tags[self.here] in NOT_NESTED:
                return
            tags[node] = None
            self.dirty = True
