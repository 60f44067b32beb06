"""HTML cleaning (HtmlRAG §3.2): one parse, and one walk over the DOM that builds the tree.

The walk applies the rules of :mod:`prunus.pages.clean.rules`. It drops hidden elements before it strips attributes,
collapses white space as a browser does, merges wrappers without meaning, and drops empty elements. It loses no visible
word and joins no two words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

from ...core.deadline import checked
from ..node_arrays import Attrs
from ..tree import Tree
from . import rules
from .aria import ROWS, Parts, aria_tables
from .cascade import Hidden, Sheets, hidden_by_sheets
from .elements import (
    BLOCK,
    DROP,
    HELD,
    INLINE,
    KEEPS,
    KIND,
    KINDS,
    LEAVES,
    LINE,
    MORE,
    NOT_NESTED,
    OBSOLETE,
    PASS,
    PERMALINK,
    PRE,
    RENAMED,
    RUBY_PARTS,
    SHOWN,
    SPECIAL,
    STRICT,
    STRUCK_BLOCKS,
    UNNESTED,
    UNREAD,
    WRAPS,
    kept_attributes,
    unread_kind,
)
from .formula import draws_formula, formula_text, is_katex, is_tex, katex_text, plain_tex
from .generated import show_generated
from .hidden import Inside, Styles, faded_in, is_hidden, is_struck, keeps_place
from .icons import MAY_BE_ICONS, icon_words
from .language import language_of
from .layout import (
    AFTER,
    APART,
    LINES,
    LOWERED,
    MAX_ITEMS,
    ON_LINE,
    PARTED,
    RAISED,
    RAW,
    STRUCK,
    UNSEEN,
    Layout,
    after,
    layout_of,
)
from .panels import opened_panels
from .parse import FORMER, Document, Element, Text, parse, without_surrogates
from .shadow import show_shadows
from .states import show_states
from .streamed import place_streamed
from .tree_builder import FILLED, START, GrowingTree, close_gaps, drop_doubled_noscripts, strike

_ISOLATING: Final = frozenset({"caption", "object", "td", "th"})
"""Kept elements that isolate what they hold: a link inside one is not nested in a link outside (HTML, 13.2.4.3:
markers)."""

_SHOWN: Final = ",".join(sorted(SHOWN))

_ONLY_TEMPLATE: Final = frozenset({"template"})  # only a template isolates a form (HTML, 13.2.6.4.7)


def holds_one_block(children: Any) -> bool:
    """Tell whether the only child is a block-level element, white space aside."""
    seen = False
    for child in children:
        if type(child) is Element:
            if seen or KINDS.get(child.tag, BLOCK) & (KIND | LINE) not in (BLOCK, STRICT):
                return False
            seen = True
    # texts last: reading a text copies it
    return seen and all(type(child) is not Text or child.data.isspace() for child in children)


def holds_heading(children: Any) -> bool:
    """Tell whether a child is of ``NOT_NESTED``, as headings are, and shows something.

    Written directly inside an element of its kind, its start tag would end that element.
    """
    return any(type(child) is Element and child.tag in NOT_NESTED and shows_something(child) for child in children)


def shows_something(element: Element) -> bool:
    """Tell whether an element holds words, a picture, a player or a field; stops at the first words."""
    return any(not text.isspace() for text in element.strings if text) or element.select_one(_SHOWN) is not None


def _as_shown(groups: Sequence[Any]) -> list[Any]:
    """Return what a table holds as browsers show it: the first <thead> at its top, the first <tfoot> at its bottom."""
    first: dict[str, Any] = {}
    for node in groups:
        if type(node) is Element and node.tag in ("caption", "thead", "tfoot"):
            first.setdefault(node.tag, node)
    moved = [first[tag] for tag in ("caption", "thead", "tfoot") if tag in first]
    above = len(moved) - ("tfoot" in first)
    return [*moved[:above], *(node for node in groups if node not in moved), *moved[above:]]


def is_nested(element: Element) -> bool:
    """Tell whether a link, button or form is inside another of its kind, which no markup can express."""
    above: Any = element.parent
    isolating = _ISOLATING if element.tag != "form" else _ONLY_TEMPLATE
    while type(above) is Element and above.tag not in isolating:
        if above.tag == element.tag:
            return True
        above = above.parent
    return False


_ROWS: Final = frozenset({"tr", "td", "th"})
_HOLD_ROWS: Final = frozenset({"table", "tr", "thead", "tbody", "tfoot"})
"""Parents in which empty rows and cells are kept. Elsewhere, as in formulas, they are not part of a table."""

_MARKED: Final = (
    "[style],[hidden],[aria-hidden],[popover],[lang],.sortkey,.line-through,[class*=whitespace-pre],a a,button button,"
    f"math,{MAY_BE_ICONS},{ROWS}"
)
"""Elements that the walk looks at closely: perhaps hidden, laid out by their style, nested links and buttons, formulas,
and those with a language."""

_MISPLACED: Final = ("tfoot~tbody", "tbody~thead")
"""Groups of rows before which a <tfoot>, and a <thead> before which rows are written. A search for one tag is fast."""

_NEAR: Final = 16
"""Open elements among which a heading is looked for."""

_NOT_RENAMED: Final = frozenset({"a", "s", "del", "strike"})
"""Inline elements that stay what they are where their style strikes their words through."""

_SCRIPTS: Final = frozenset({"a", "sup", "sub", "s"})
"""Inline elements that stay what they are where their style raises or lowers their words."""

_SENTENCES: Final = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6"})
"""Elements whose content is a sentence: an element that the page defines is no block in them, as a date in a line."""

_HOLD_STRUCK: Final = frozenset(
    "table thead tbody tfoot tr ul ol dl section article main figure details fieldset form".split()
)
"""Elements whose style strikes through the words of the blocks inside."""

_ENDED_BY: Final = {"li": ("li",), "dd": ("dd", "dt"), "dt": ("dd", "dt")}
"""The open items that each item's start tag ends (HTML, 13.2.6.4.7). A parser nests them only where it moves content
out of a table."""

_ITEM_SCOPES: Final = (rules.SECTIONS - {"address"}) | frozenset(
    """blockquote body button caption dd details dialog dl dt figcaption figure h1 h2 h3 h4 h5 h6 html li listing menu
    object ol pre select summary table tbody td tfoot th thead tr ul""".split()
)
"""Special elements that are always written: a start tag of an item inside them ends no item outside."""

_IMPLIED: Final = RUBY_PARTS | {"dd", "dt", "li", "optgroup", "option", "p"}
"""Elements that the start tag of a part of a ruby ends, and of an option in a <select> (HTML, 13.2.6.3: implied end
tags)."""

_WRAPPERS: Final = rules.WRAPPERS
_MEDIA: Final = rules.MEDIA


def clean_tree(markup: str | bytes, *, charset: str = "", name: str = "page") -> Tree:
    """Parse and clean a page.

    :param markup: HTML as str or bytes.
    :param charset: encoding of bytes by the transport; '' when unknown.
    :param name: the page's name in errors.
    :returns: the cleaned document, which may hold no words.
    :raises BadPage: the page is empty, binary, or over a limit of :func:`~prunus.pages.clean.parse.parse`.
    """
    tree, _ = walk_page(markup, charset, name)
    tree._markup = (markup, charset)
    return tree


def walk_page(
    markup: str | bytes, charset: str, name: str, with_origins: bool = False, document: Document | None = None
) -> tuple[Tree, list[Any]]:
    """Parse a page, walk its DOM, and clean up the arrays.

    :param document: the page's DOM, if it was parsed before.
    :returns: the tree, and with ``with_origins`` the DOM node of each of its nodes (else an empty list).
    """
    document = document or parse(markup, charset, name)
    walk = _walked(document, with_origins)
    # surrogates in kept text are rare: only such a page is parsed a second time, without them
    if isinstance(markup, str) and not markup.isascii() and _holds_surrogates(walk):
        walk = _walked(parse(without_surrogates(markup), charset, name), with_origins)
    if not walk.tag:  # a frameset has no body
        walk.tag, walk.depth, walk.text, walk.attrs = ["html"], [0], [""], [None]
    if walk.noscripts and drop_doubled_noscripts(walk, walk.noscripts):
        walk.dirty = True
    if walk.struck:
        strike(walk)
    if walk.dirty:
        close_gaps(walk)
    walk.link()
    tags: list[str] = walk.tag
    tree = Tree(tags, walk.parent, walk.end, walk.text, walk.attrs)
    tree.lang = (tree.attrs[0] or {}).get("lang", "")
    if len(tags) > 2 and tags[1] == "title":
        tree.title = walk.text[2]
    if walk.unread:
        told = [f"{number} {name if number == 1 else _plural(name)}" for name, number in walk.unread.items()]
        tree.warnings = [f"not read: {', '.join(told)}"]
    return tree, walk.origins or []


def _walked(document: Document, with_origins: bool) -> _Walk:
    """Return the walk over a document."""
    show_shadows(document)
    place_streamed(document)
    walk = _Walk(with_origins)
    walk.run(document)
    return walk


def _plural(name: str) -> str:
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _holds_surrogates(walk: _Walk) -> bool:
    """Tell whether the kept text or attributes hold surrogates, which no encoding can write."""
    kept: list[str] = [text for text in walk.text if not text.isascii()] if walk.odd else []
    for attrs in walk.attrs:
        if attrs:
            kept.extend(attrs.values())
    shown = "".join(kept)
    if shown.isascii():
        return False
    try:
        shown.encode("utf-16-le")  # the fastest encoding that refuses surrogates
    except UnicodeEncodeError:
        return True
    return False


class _Walk(GrowingTree):
    """The walk over the DOM that fills the arrays. It is the hot loop of cleaning: keep it fast.

    ``content`` counts the nodes so far that show something. ``mark`` is that count before the element that was just
    entered, -1 where only its children are kept. An element whose mark equals ``content`` at its end shows nothing.
    """

    __slots__ = (
        "content", "faded", "hidden", "layout", "mark", "marked", "panels", "parts", "placed", "settled", "styles",
        "told", "turned", "unread",
    )  # fmt: skip

    def __init__(self, with_origins: bool) -> None:
        super().__init__(with_origins)
        self.content = 0
        self.faded: set[Any] = set()
        self.hidden: Hidden = {}
        self.mark = -1
        self.marked: set[Any] = set()
        self.panels: dict[Element, str] = {}
        self.parts: Parts = {}
        self.placed: set[Element] = set()  # hidden cells that keep their place
        self.unread: Counter[str] = Counter()
        self.styles = Styles(None)
        self.turned: set[Any] = set()  # tables whose rows are not written in the order that a reader sees
        self.layout: Layout = {}
        self.told: set[Any] = set()  # the texts of ``layout``, which is looked up for few elements
        self.settled: set[Any] = set()

    def run(self, document: Document) -> None:
        """Walk the DOM once, in document order, without recursion."""
        element, words = Element, Text  # locals: module names are slow to look up in compiled code
        self.styles = Styles(document)
        marked = document.select(_MARKED)  # one native search is cheaper than a test of every element
        self.marked = set(marked)
        self.faded = faded_in(document, self.styles)
        sheets = Sheets(document)
        self.hidden = hidden_by_sheets(document, sheets, self.styles)
        self.placed = sheets.placed
        show_generated(document, sheets)
        show_states(document)
        self.layout = layout_of(document, sheets, self.styles, self.marked)
        self.marked.update(self.hidden)
        self.parts = aria_tables(marked)
        self.marked.update(self.parts)
        self.turned = {node.parent for misplaced in _MISPLACED for node in document.select(misplaced)}
        self.marked.update(self.turned)
        for node in self.layout:
            (self.told if type(node) is words else self.marked).add(node)
        self.panels = opened_panels(document, self.marked, self._is_unseen)
        nodes: Iterator[Any] = iter([node for node in document.children if type(node) is element])
        levels: list[tuple[Iterator[Any], int]] = []  # the siblings after each open element, and its mark
        for _ in checked(count()):
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
        self.marked, self.faded, self.hidden, self.panels, self.parts = set(), set(), {}, {}, {}
        self.layout, self.told, self.settled, self.styles = {}, set(), set(), Styles(None)
        self.turned = set()
        self.spacer = None  # free the DOM: each node holds the whole of it

    def _enter(self, node: Element) -> Sequence[Any] | None:
        """Enter an element; return the nodes to walk next, None where there are none."""
        tag = node.tag
        flags = KINDS.get(tag, BLOCK)
        kind = flags & KIND
        if flags == BLOCK and "-" in tag and self.here >= 0 and self.tag[self.here] in _SENTENCES:
            flags = kind = PASS
        if kind == DROP and (self.here < 0 or self.tag[self.here] not in _MEDIA or tag not in LEAVES):
            if tag == "script" and is_tex(node) and self.last != START:
                self._add_formula(node, plain_tex(node.text))
            if tag in UNREAD and not (tag == "svg" and self.here >= 0 and self._add_icon(node)):
                self._note_unread(node)
            return None
        self.mark = -1
        marked = node in self.marked
        struck = empty = False
        again: list[Element] | None = None
        if marked:
            if tag == "img" and draws_formula(node) and not self._has_formula_beside(node):
                self._add_formula(node, plain_tex(node.attr("alt") or ""))
                return None
            said = self.layout.get(node, 0)
            if said & UNSEEN:
                return None
            if node in self.panels and node not in self.settled:
                self.settled.add(node)
                if flags & KIND in (BLOCK, MORE) and tag not in _HOLD_ROWS | _ROWS:
                    return self._open_panel(node)
            if node not in self.settled and self._is_unseen(node):
                again = self.hidden.get(node)
                if again:
                    self._line_end()
                if again is not None or not self._shows_inside(node):
                    if tag not in ("td", "th") or not (node in self.placed or keeps_place(node)):
                        return again or None
                    empty = True  # the cells behind it stay under their headers
            if self.parts and self.parts.get(node) and not self.raw:
                return self._open_part(node)
            named = tag == "span" or (tag not in SPECIAL and node.attr("role") == "img")
            if named and self._add_icon(node):
                return None
            if tag in ("a", "button") and is_nested(node):
                return node.children
            if tag == "math":
                self._add_formula(node, formula_text(node, self._is_unseen))
                return None
            if is_katex(node):
                self._add_formula(node, katex_text(node, self._is_unseen))
                return None
            if said:
                inside = self._lay_out(node, tag, said)
                if inside is not None:
                    return inside
            if said & STRUCK or is_struck(node):
                struck = tag in STRUCK_BLOCKS
                if kind in (PASS, INLINE) and tag not in _NOT_RENAMED:
                    tag, flags, kind = "s", KINDS["s"], INLINE
                elif tag in _HOLD_STRUCK:
                    self._strike_inside(node)
            elif said & (RAISED | LOWERED) and kind in (PASS, INLINE) and tag not in _SCRIPTS:
                tag, kind = "sup" if said & RAISED else "sub", INLINE
                flags = KINDS[tag]
        if kind == RENAMED:
            tag = FORMER[tag]
            flags = KINDS[tag]
            kind = flags & KIND
        if kind == STRICT:
            tag = self._readable(node, tag)
            if not tag:
                return node.children
            flags = KINDS[tag]
            kind = INLINE if flags & LINE else BLOCK
        kept = kept_attributes(tag, node, marked) if marked or flags & KEEPS else None
        if kept is PERMALINK:
            return None
        if kind == MORE:
            return self._special(node, tag, kept)
        children: Sequence[Any] = (again or ()) if empty else node.children
        if marked and tag == "table" and node in self.turned:
            children = _as_shown(children)
        if kind == BLOCK:
            if self.last != START:
                self._line_end()
            if not children:
                self.vanished = True
        if not children:
            if tag not in _ROWS or self.tag[self.here] not in _HOLD_ROWS:
                if kind == INLINE or tag == "a":
                    self._add_icon(node)
                return None
            if kind == BLOCK and tag != "tr" and node.attr("title") and not empty:
                self._add_cell(node, tag, kept)
                return None
        if not kept:
            unnested = self.kind & UNNESTED
            if kind == PASS:
                if not (unnested and holds_heading(children)):
                    return children
                flags |= HELD
            if (
                len(children) < 4
                and flags & WRAPS
                and not struck
                and not unnested
                and not self.raw
                and holds_one_block(children)
            ):
                return children
        if struck:
            self.struck.append(len(self.tag))
        return self._open(node, tag, flags, kept, children)

    def _strike_inside(self, node: Element) -> None:
        """Strike through the words of the outermost blocks in an element whose style strikes through all its words."""
        stack = [child for child in node.children if isinstance(child, Element)]
        while stack and len(stack) < MAX_ITEMS:
            child = stack.pop()
            if child.tag in STRUCK_BLOCKS or child.tag in PARTED:
                self.layout[child] = self.layout.get(child, 0) | STRUCK
                self.marked.add(child)
                self.told.add(child)
            else:
                stack += [inner for inner in child.children if isinstance(inner, Element)]

    def _is_unseen(self, node: Element) -> bool:
        """Tell whether a reader does not see an element, whatever is around it."""
        if node in self.faded or node not in self.marked:
            return False
        return node in self.hidden or is_hidden(node, self.styles)

    def _shows_inside(self, node: Element) -> bool:
        """Tell whether elements inside a hidden one are seen; note the words around them, which are not."""
        inside = Inside(node, self.styles)
        if inside.seen:
            self.layout.update(dict.fromkeys(inside.unseen, UNSEEN))
            self.told.update(inside.unseen)
            self.settled.update(inside.settled)
            self.marked.update(inside.unseen)
        return inside.seen

    def _note_unread(self, node: Element) -> None:
        """Count an element that a reader sees and that is not read."""
        name = unread_kind(node)
        if name and not self._is_unseen(node) and "noscript" not in (self.tag[above] for above in self.open):
            self.unread[name] += 1

    def _open_panel(self, node: Element) -> Sequence[Any] | None:
        """Enter a panel that a reader can open: a closed <details> around it, under the words of its control."""
        self._line_end()
        label = self.panels[node]
        inner = self._open(node, "details", KINDS["details"], None, (node,))
        if label:
            position = len(self.tag)
            self._add("summary", BLOCK, "", None, node)
            self._add_words(label, node, len(self.open) + 1)
            self._line_end()
            self._ended(position)
        return inner

    def _open_part(self, node: Element) -> Sequence[Any]:
        """Enter an element that its role makes a table, or a part of one."""
        part = self.parts[node].pop(0)
        self._line_end()
        position = len(self.tag)
        self._add(part.tag, KINDS.get(part.tag, BLOCK), "", part.attrs, node)
        self.mark = self.content
        self._enter_node(position, KINDS.get(part.tag, BLOCK))
        return part.inside

    def _lay_out(self, node: Element, tag: str, said: int) -> Sequence[Any] | None:
        """Part an element from the words before it, as its style says; return the nodes to walk next if it is opened.

        What is said of its place is forgotten where the element itself is among these nodes.
        """
        of_words = said & (STRUCK | RAISED | LOWERED)
        self.layout[node] = of_words
        in_line = self.raw or any(self.tag[above] in rules.HEADINGS for above in self.open[-_NEAR:])
        if said & APART or (said & ON_LINE and in_line):
            self._part(node, said)
        if not said & (ON_LINE | RAW) or (self.raw and not said & ON_LINE):
            return None
        if in_line:
            following = after(node)
            if following is not None:
                self.layout[following] = self.layout.get(following, 0) | APART | AFTER
                self.marked.add(following)
                self.told.add(following)
            return None
        if self.last != START:
            self._line_end()
        new = "pre" if said & RAW else "div"
        position = len(self.tag)
        language = language_of(node) if new == "pre" else ""
        self._add(new, KINDS[new], "", {"class": f"language-{language}"} if language else None, node)
        self.raw += said & RAW > 0
        self.mark = self.content
        self._enter_node(position, KINDS[new])
        # an element that says more than its place stays inside
        stays = KINDS.get(tag, BLOCK) & KIND == INLINE or tag == "a" or of_words or is_struck(node)
        return (node,) if stays else node.children

    def _part(self, node: Any, said: int) -> None:
        """Part the next words from those before: by a space; in code by a line break, where a block begins or ended."""
        if self.raw:
            if said & (ON_LINE | AFTER) and self.tag[-1] == "" and self.text[-1] and not self.text[-1].endswith("\n"):
                self._add_raw("\n", node)
        elif self.last != START:
            self._add_space(node)

    def _add_icon(self, node: Element) -> bool:
        """Add the words of an icon, apart from those around it; tell whether there are any."""
        words = icon_words(node)
        if not words or self.raw or self._is_unseen(node):
            return False
        if self.last != START:
            self._add_space(node)
        self.content += 1
        self._add_words(words, node, len(self.open))
        self._add_space(node)
        return True

    def _add_cell(self, node: Element, tag: str, kept: Attrs | None) -> None:
        """Add an empty cell with the words of the icon that it is."""
        position = len(self.tag)
        self._add(tag, KINDS.get(tag, BLOCK), "", kept, node)
        words = icon_words(node)
        if words:
            self.content += 1
            self._add_words(words, node, len(self.open) + 1)
            self._line_end()
        self._ended(position)

    def _has_formula_beside(self, image: Element) -> bool:
        """Tell whether a reader sees MathML beside a drawn formula."""
        beside: Any = (image.previous_sibling, image.next_sibling)
        return any(
            type(node) is Element and node.select_one("math") is not None and not self._is_unseen(node)
            for node in beside
        )

    def _add_formula(self, node: Element, words: str) -> None:
        """Add a formula as code, as the formulas of other formats are."""
        if not words:
            return
        if words[0].isdigit() and self.last >= 0 and self.text[self.last][-1:].isdigit():
            self._add_space(node)  # 2 1/3 is not 21/3
        if self.space:
            self._put_space()
        self.content += 1
        if self.raw:
            self._add_raw(words, node)
            return
        position = len(self.tag)
        self._add("code", KINDS["code"], "", None, node)
        self._add_words(words, node, len(self.open) + 1)
        self._ended(position)
        following = node.next_sibling
        if words[-1].isdigit() and isinstance(following, Text) and following.data[:1].isdigit():
            self._add_space(node)

    def _readable(self, node: Element, tag: str) -> str:
        """Return the tag with which a heading, an item, a form or a part of a ruby can be written here.

        The parser's repairs can nest it directly in an element that its start tag would end, if it were written so. It
        becomes a ``div`` then; of a part of a ruby only the content is kept.

        :returns: its own tag, ``div``, or '' for the content alone.
        """
        level = len(self.open) - 1
        above = self.tag[self.here]
        while above == "noscript":  # its tags are never written
            level -= 1
            above = self.tag[self.open[level]]
        if tag in rules.HEADINGS:
            if above in rules.HEADINGS and shows_something(node):
                self._make_div(level)
                self._dissolve_wrappers(level)
            return tag
        if tag in RUBY_PARTS:
            above = self._written_above()
            ends = above in _IMPLIED and not (above == "rtc" and tag in ("rp", "rt"))
            return "" if ends and any(self.tag[node] == "ruby" for node in self.open) else tag
        if tag == "form":
            return "div" if is_nested(node) else tag
        ended = _ENDED_BY[tag]
        while above not in ended and above not in _ITEM_SCOPES:
            level -= 1
            above = self.tag[self.open[level]]
        return "div" if above in ended else tag

    def _ends_item(self, tag: str) -> bool:
        """Tell whether an option, written here, would end an element around it: in a <select> it does."""
        above = self._written_above()
        ends = above in _IMPLIED and (tag, above) != ("option", "optgroup")
        return ends and any(self.tag[node] == "select" for node in self.open)

    def _written_above(self) -> str:
        """Return the tag of the innermost open element that is always written."""
        for node in reversed(self.open):
            tag: str = self.tag[node]
            if tag in _IMPLIED or tag in _ITEM_SCOPES or (tag in rules.INLINE and tag != "noscript"):
                return tag
        return ""

    def _dissolve_wrappers(self, level: int) -> None:
        """Dissolve the wrappers in an open element that were kept because it was a heading."""
        for node in range(self.open[level] + 1, len(self.tag)):
            if self.depth[node] == level + 1 and self.tag[node] in rules.DISSOLVED and not self.attrs[node]:
                self.tag[node] = None
                self.dirty = True

    def _open(
        self, node: Element, tag: str, flags: int, kept: Attrs | None, children: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Add an element; if it holds only a text node, add that too and return None."""
        if self.space:
            self._put_space()
        position = len(self.tag)
        self._add(tag, flags, "", kept, node)
        if len(children) == 1 and not self.raw and type(children[0]) is Text:
            data: str = children[0].data
            if not data.isspace() and not (self.told and children[0] in self.told):
                self.content += 1
                self._add_words(data, children[0], len(self.open) + 1)
                if not flags & LINE:
                    self._line_end()
                self._ended(position)
                return None
        self.mark = self.content
        self._enter_node(position, flags)
        if tag == "p":
            self.paragraph = position
        return children

    def _special(self, node: Element, tag: str, kept: Attrs | None) -> Sequence[Any] | None:
        """Enter an element of kind MORE; return the nodes to walk next, None where there are none."""
        tag = OBSOLETE.get(tag, tag)
        flags = KINDS[tag]
        children: Any = node.children
        words = ""  # of the element itself, as the alt text of a picture
        if tag in SPECIAL:
            special = SPECIAL[tag](node, kept)
            if special is None:
                if tag == "input":
                    self._note_unread(node)
                return None
            children, kept, words = special
        if tag == "head" or (tag in ("option", "optgroup") and self._ends_item(tag)):
            return children  # type: ignore[no-any-return]
        if tag == "hr" and self._written_above() in ("option", "optgroup"):
            tag = "br"  # <hr> would end them
        if tag == "select" and is_nested(node):
            return [child for option in children for child in option.children]
        inline = flags & LINE
        if not inline and self.last != START:
            self._line_end()
        if self.space:
            self._put_space()
        position = len(self.tag)
        if tag == "noscript":
            self.noscripts.append(position)
        self._add(tag, flags, words, kept, node)
        before = self.content
        if words or (tag in SHOWN and (kept or tag not in _MEDIA)):  # a player's sources are counted as nodes
            self.content += 1
            if inline and (self.last != START or tag in rules.VOID):
                self.last = FILLED
        if tag in LEAVES:
            self._ended(position)
            return None
        if flags & PRE:
            self.raw += 1
        self.mark = before
        self._enter_node(position, flags)
        return children  # type: ignore[no-any-return]

    def _read(self, node: Text) -> None:
        """Add a text node: words, white space between words, or preformatted text."""
        data: str = node.data
        if self.told and node in self.told:
            said = self.layout[node]
            if said & UNSEEN:
                return
            if said & APART and not (self.raw and data.startswith("\n")):
                self._part(node, said)
            if said & LINES and not self.raw:
                self._read_lines(node, data)
                return
        if self.raw:
            self.content += self._add_raw(data, node)
        elif not data.isspace():
            self.content += 1
            self._add_words(data, node, len(self.open))
        elif self.last != START:
            self._add_space(node)

    def _read_lines(self, node: Text, data: str) -> None:
        """Add a text whose line breaks a reader sees."""
        if node.previous_sibling is None:
            data = data.lstrip()
        if node.next_sibling is None:
            data = data.rstrip()
        for number, line in enumerate(data.split("\n")):
            if number:
                if self.last != START:
                    self._line_end()
                position = len(self.tag)
                self._add("br", KINDS["br"], "", None, node)
                self._ended(position)
            if line and not line.isspace():
                self.content += 1
                self._add_words(line, node, len(self.open))

    def _leave(self, mark: int) -> None:
        """Leave the open element at its end: merge it, or drop it where it shows nothing."""
        place, flags = self.here, self.kind
        tag = self.tag[place]
        inline = flags & LINE
        if tag == "p":
            self.paragraph = -1
        if self.space and inline:
            self._put_space()
        if self.content == mark or flags & PRE:
            self._close(place, tag, self.content > mark)
        else:
            if self.last != START and not inline:
                self._line_end()
            first = self._leave_node()
            self._ended(place)
            if first == len(self.tag):
                inner = self.tag[place + 1]
                if inner is None or (inner and (flags & WRAPS or inner in _WRAPPERS)):
                    self._merge(place, tag)
        if flags & HELD and place < len(self.tag) and not self._holds_heading(place):
            self.tag[place] = None
            self.dirty = True

    def _holds_heading(self, node: int) -> bool:
        """Tell whether a child of the last element is of ``NOT_NESTED``."""
        tags, depths = self.tag, self.depth
        merged: list[int] = []  # depths of the merged elements around this node
        for inner in range(node + 1, len(tags)):
            while merged and merged[-1] >= depths[inner]:
                merged.pop()
            if tags[inner] is None:
                merged.append(depths[inner])
            elif tags[inner] in NOT_NESTED and depths[inner] - len(merged) == depths[node] + 1:
                return True
        return False

    def _close(self, node: int, tag: str, shows: bool) -> None:
        """Close a preformatted or an empty element; an empty element is dropped, except cells and rows."""
        block = tag not in rules.INLINE
        if tag in rules.PREFORMATTED:
            self.raw -= 1
        if block and self.last != START:
            self._line_end()
        self._leave_node()
        # an empty inline element stays if it holds nodes: <b> </b> and <b><br></b> separate the words around them
        empty = not shows and (tag not in _ROWS or self.tag[self.here] not in _HOLD_ROWS)
        empty = empty and (tag not in _HOLD_ROWS or tag == "table" or len(self.tag) == node + 1)
        if empty and node and (block or len(self.tag) == node + 1):
            self._cut(node)
            self.vanished = self.vanished or block
            if not block and self.tag[-1] == "" and not self.text[-1]:
                self._drop_tail(len(self.tag) - 1)  # the space before it was dropped at the end of a line
        else:
            self._ended(node)

    def _merge(self, node: int, tag: str) -> None:
        """Merge ``node`` with its only child if one of both is a wrapper; both end at the end of the arrays."""
        tags = self.tag
        child = node + 1
        while tags[child] is None:  # merged before: it has exactly one child
            child += 1
        inner = tags[child]
        if not inner or tag in rules.INLINE:
            return
        if tag in NOT_NESTED and any(held in NOT_NESTED for held in tags[child + 1 :]):
            return  # the wrapper keeps a nested heading from ending the outer heading
        if inner in rules.WRAPPERS and not self.attrs[child]:
            tags[child] = None
            self.dirty = True
        elif tag in rules.WRAPPERS and not self.attrs[node] and inner not in rules.INLINE:
            if inner in NOT_NESTED and tags[self.here] in NOT_NESTED:
                return
            tags[node] = None
            self.dirty = True
