"""Write a Tree, or any kept part of it, as HTML: compact, full or pretty.

Compact HTML saves tokens. It leaves out end tags that HTML5 makes optional, quotes attribute values only where it must,
and writes wrappers only where they separate words. Parsing it gives the same words in the same structure.
"""

from __future__ import annotations

import re
from typing import Final

from ..clean import rules
from ..clean.elements import ENDING, ITEMS, NOT_NESTED
from ..grid import begins_inline, first_row_group, has_rowspans, is_sole, kept_cells, next_kept, number_after_gap
from ..node_arrays import Attrs
from ..tree import Tree
from .selection import MARK, Kept
from .style import (
    CLEAN,
    CLOSED_BY,
    EMIT,
    END_TAGS,
    KNOWN_HTML,
    PASS,
    SPACED,
    START_TAGS,
    WRAP,
    Style,
    actions,
    escape,
    shown_attributes,
    written_attributes,
)

_SPECIAL: Final = ITEMS | {"p"}
_CLOSING: Final = frozenset(
    """address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup html li main menu nav ol pre search section summary td th ul""".split()
)
"""Blocks whose end tags close an open paragraph or item; while one is open, other end tags are ignored
(HTML, 13.2.6.4.7)."""

_SOLE_PARENTS: Final = frozenset({"li", "td", "th", "dd", "blockquote", "figcaption"})
_ROW_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_CHECKED: Final = frozenset({"p", "img", "video", "audio", "source", "track", "table", "thead", "tbody", "tfoot"})
"""Tags for which more than name and attributes decides whether they are written."""

_INLINES: Final = rules.INLINE
_ODD_TAGS: Final = rules.VOID | rules.PREFORMATTED
_CELLS: Final = frozenset({"td", "th"})
_OPENS_RAW: Final = re.compile(r"<(?:pre|textarea)[ >]")
_NEVER: Final = 1 << 60


class HtmlWriter:
    """Writes the kept nodes of one Tree as HTML.

    :param kept: the part of the document that is written; None for the whole.
    """

    __slots__ = (
        "actions", "ampersand", "default", "follows", "gap", "kept", "line", "marks", "mask", "open", "out",
        "pending", "pieces", "plans", "raw", "style", "tree", "wrapper", "written",
    )  # fmt: skip

    def __init__(self, tree: Tree, style: Style = CLEAN, kept: Kept | None = None) -> None:
        self.tree, self.style = tree, style
        self.kept = kept = kept or Kept(None, {}, {})
        self.mask, self.pieces, self.marks = kept.mask, kept.pieces, kept.marks
        self.out: list[str] = []
        self.open: list[str] = []  # tags that are written but not closed
        self.pending = ""  # an end tag that may still turn out to be optional
        self.line = False  # the current line has words
        self.raw = 0  # number of open preformatted elements
        self.wrapper = -1  # an unwritten wrapper that must be written if words follow on the line
        self.written: set[int] = set()
        self.follows: dict[int, bool] = {}  # whether words without a block of their own follow a node
        self.ampersand = False  # the latest text with "&" or "<" ends with "&"
        self.gap = False  # a part of this line was dropped: the words around it must not join
        self.plans: dict[int, list[tuple[int, int]]] = {}
        self.actions = actions(style)
        self.default = EMIT if style.full else WRAP

    def html(self, node: int = 0, stop: int | None = None) -> str:
        """Return the HTML of a subtree or of a run of siblings; the whole document by default."""
        self.write(node, len(self.tree) if stop is None else stop)
        while self.style.full and self.open:
            self._close(self.open[-1])
        return "".join(self.out).strip("\n ") if not self.raw else "".join(self.out)

    def write(self, node: int, stop: int) -> None:
        """Write the nodes ``[node, stop)`` without recursion, for deep trees."""
        tree, mask, out = self.tree, self.mask, self.out
        tags, ends, parents = tree.tag, tree.end, tree.parent
        actions_of, default, checked = self.actions, self.default, _CHECKED
        inside: list[int] = []  # the open elements
        done: list[int] = []  # the action of each
        nearest = _NEVER  # end of the innermost
        while True:
            while node >= nearest:
                last = inside.pop()
                self._leave(last, tags[last], done.pop())
                nearest = ends[inside[-1]] if inside else _NEVER
            if node >= stop:
                return
            if mask is not None and not mask[node]:
                if tags[node] in _CELLS and mask[parents[node]] == 2:
                    self._start(node, tags[node], tree.attrs[node], empty=True)
                    self._left_out(node)
                    self._close(tags[node])
                    node = ends[node]
                else:
                    self.gap = self.line
                    node = next_kept(mask, node, ends[parents[node]])
                continue
            tag = tags[node]
            if not tag:
                self._text(node)
                node += 1
                continue
            action = actions_of.get(tag, default)
            if tag in checked or (action and (tree.attrs[node] or (self.open and self.open[-1] in NOT_NESTED))):
                action = self._action(node, tag)
            if action == EMIT:
                if self.marks and tag in ITEMS and node in self.marks:
                    self._start(node, tag, None, empty=True)
                    self._write_mark()
                    self._close(tag)
                self._start(node, tag, tree.attrs[node])
                if self._write_whole(node, tag):
                    node = ends[node]
                    continue
            elif action == WRAP:
                if self._words_follow(node):
                    self._start(node, tag, None)
                    self.written.add(node)
                elif self.line:
                    self.wrapper = node
                if tag not in _INLINES:
                    self._trim()
            elif tag in SPACED and self.line and not out[-1].endswith(" "):
                out.append(" ")
            inside.append(node)
            done.append(action)
            nearest = ends[node]
            node += 1

    def _write_whole(self, node: int, tag: str) -> bool:
        """Write the content and end of a void element, a planned row or an element of one text; else return False."""
        tree, mask = self.tree, self.mask
        if tag in rules.VOID:
            return True
        if self.plans and node in self.plans:
            self._planned_row(node)
        elif tree.end[node] == node + 2 and not tree.tag[node + 1] and (mask is None or mask[node + 1]):
            self._text(node + 1)
        else:
            return False
        self._close(tag)
        return True

    # -- what to do with an element ---------------------------------------------------------------

    def _action(self, node: int, tag: str) -> int:
        """Decide whether an element's tags are written."""
        tree, style = self.tree, self.style
        if tag == "table" and self.mask is not None and self.mask[node] == 2 and has_rowspans(tree, node):
            self.plans.update(kept_cells(tree, node, self.mask))
        if style.full:
            return EMIT
        action = self.actions.get(tag, self.default)
        attrs = tree.attrs[node]
        if attrs and action and ((style.sections and style.links and style.images) or shown_attributes(attrs, style)):
            return EMIT
        nested = action == WRAP and self.open and self.open[-1] in NOT_NESTED
        if nested and any(inner in ENDING for inner in tree.tag[node + 1 : tree.end[node]]):
            return EMIT  # without the wrapper, a nested heading would end the outer heading
        if tag == "p" and self._stands_alone(node):
            return WRAP
        if tag == "img" and not (attrs and shown_attributes(attrs, style)):
            return PASS
        unnamed = tag in ("video", "audio") and not (attrs and attrs.get("title"))
        if not style.images and (unnamed or tag in ("source", "track")):
            return PASS
        if tag in _ROW_GROUPS:
            return self._row_group_action(node, tag)
        return action

    def _row_group_action(self, node: int, tag: str) -> int:
        """Decide whether a row group's tags are written: for a header or footer, or to end spanning cells."""
        tree, mask = self.tree, self.mask
        if tag != "tbody" and self.style.sections:
            return EMIT
        table = tree.parent[node]
        first = first_row_group(tree, table)
        leads = first == node or (mask is not None and next_kept(mask, first, node) == node)
        return EMIT if not leads and (self.style.sections or has_rowspans(tree, table)) else PASS

    def _stands_alone(self, node: int) -> bool:
        """Tell whether a paragraph is the only content of an item, cell or quote, unwritten wrappers aside."""
        tags, parents = self.tree.tag, self.tree.parent
        above = parents[node]
        while above > 0 and is_sole(self.tree, self.mask, node):
            if tags[above] in _SOLE_PARENTS:
                return True
            inline = tags[above] in rules.INLINE and tags[above] != "noscript"
            if inline or self._is_written(above) or above in self.written:
                return False
            node, above = above, parents[above]
        return False

    def _words_follow(self, node: int) -> bool:
        """Tell whether words without a block of their own follow a wrapper; they would join the wrapper's words."""
        tree, mask, known = self.tree, self.mask, self.follows
        tags, ends, parents = tree.tag, tree.end, tree.parent
        chain: list[int] = []
        answer = False
        while node > 0:
            if node in known:
                answer = known[node]
                break
            chain.append(node)
            after, above = ends[node], parents[node]
            if mask is not None:
                after = next_kept(mask, after, ends[above])
            if after < ends[above]:
                answer = begins_inline(tree, mask, after)
                break
            if tags[above] not in rules.INLINE and (self._is_written(above) or above in self.written):
                break
            node = above
        for passed in chain:
            known[passed] = answer
        return answer

    def _is_written(self, node: int) -> bool:
        """Tell whether the tags of a block are always written."""
        return self.actions.get(self.tree.tag[node], self.default) == EMIT

    # -- writing ----------------------------------------------------------------------------------

    def _start(self, node: int, tag: str, attrs: Attrs | None, *, empty: bool = False) -> None:
        """Write a start tag."""
        out = self.out
        if tag in _INLINES:
            if self.pending or self.wrapper >= 0:
                self._begin_inline()
        else:
            if self.pending:
                if tag not in CLOSED_BY[self.pending] or (tag == "optgroup" and "select" not in self.open):
                    out.append(END_TAGS[self.pending])
                self.pending = ""
            if self.line:
                if not self.raw:
                    self._trim()
                    if tag not in KNOWN_HTML:
                        out.append(" ")  # other parsers treat unknown elements as inline
                self.line = False
            self.wrapper, self.gap = -1, False
            if self.style.pretty and out and not self.raw:
                out.append("\n" + "  " * len(self.open))
        shown = ""
        if attrs:
            if empty or node in self.plans:
                attrs = {name: value for name, value in attrs.items() if name == "colspan" and value != "1"}
            shown = written_attributes(attrs, self.style)
        if tag == "li" and self.mask is not None and not empty:
            shown += number_after_gap(self.tree, node, self.mask, node in self.marks)
        out.append(f"<{tag}{shown}>" if shown or tag not in START_TAGS else START_TAGS[tag])
        if tag in _ODD_TAGS:
            if tag in rules.VOID:
                self.line = self.line or tag in _INLINES
                return
            self.raw += 1
        self.open.append(tag)

    def _planned_row(self, row: int) -> None:
        """Write a kept row of a table with dropped rows, its row spans shortened to the kept rows."""
        tree, mask = self.tree, self.mask
        for cell, height in self.plans[row]:
            tag = tree.tag[cell]
            attrs = {name: value for name, value in (tree.attrs[cell] or {}).items() if name != "rowspan"}
            if height > 1:
                attrs["rowspan"] = str(height)
            self._start(cell, tag, attrs)
            in_row = tree.parent[cell] == row
            self.mask = mask if in_row else None  # a cell that spans down from a dropped row is written whole here
            if not in_row or mask is None or mask[cell]:
                self.write(cell + 1, tree.end[cell])
            else:
                self._left_out(cell)
            self.mask = mask
            self._close(tag)

    def _begin_inline(self) -> None:
        """Prepare for inline content: write a pending end tag, and a wrapper that must separate words."""
        if self.pending:
            self.out.append(END_TAGS[self.pending])
            self.pending = ""
        if self.wrapper >= 0:
            if self.line:
                tag = self.tree.tag[self.wrapper]
                self._trim()
                # other parsers treat an unknown element as inline: a space separates its words
                self.out.append(f"<{tag}>" if tag in KNOWN_HTML or self.raw else f" <{tag}>")
                self.open.append(tag)
                self.written.add(self.wrapper)
                self.line = False
            self.wrapper = -1

    def _text(self, node: int) -> None:
        """Write a text node, or the kept pieces of it."""
        text, out = self.tree.text[node], self.out
        if (self.pieces and node in self.pieces) or (self.marks and node in self.marks):
            text = self.kept.text(self.tree, node, self.raw > 0)
            if self.line and not self.raw and self.pieces.get(node, ((0, 0),))[0][0]:
                self.gap = True
            if self.raw and not self.line:
                text = text.removeprefix("\n") if node in self.marks else text
        if self.raw:
            if text[:1] == "\n" and out and _OPENS_RAW.match(out[-1]):
                text = "\n" + text  # the parser swallows one line break after the start tag
        else:
            if self.gap:
                self.gap = False
                text = text if text[:1] == " " else " " + text
            if text[:1] == " " and (not self.line or self.wrapper >= 0 or (out and out[-1][-1:] == " ")):
                text = text[1:]
            if not text:
                return
        if self.pending or self.wrapper >= 0:
            self._begin_inline()
        self.line = True
        if self.ampersand and text:
            self.ampersand = False
            begins_name = text[0].isascii() and (text[0].isalpha() or text[0] == "#")
            if out[-1].endswith("&amp;") and not begins_name:
                out[-1] = out[-1][:-4]  # parsed again, both texts are one, in which this "&" needs no escape
        if "&" in text or "<" in text:
            text = escape(text)
            self.ampersand = text.endswith("&amp;")
        out.append(text)

    def _write_mark(self) -> None:
        """Write the mark of something that was left out."""
        self._begin_inline()
        self.out.append(MARK)
        self.line = True

    def _left_out(self, node: int) -> None:
        """Write the mark in the place of an element, if it has words."""
        if self.kept.lacks(self.tree, node):
            self._write_mark()

    def _end_table(self, table: int) -> None:
        """Write a row with the mark at the end of a table that lacks rows."""
        if self.kept.lacks_rows(self.tree, table):
            for tag in ("tr", "td"):
                self._start(table, tag, None)
            self._write_mark()
            for tag in ("td", "tr"):
                self._close(tag)

    def _trim(self) -> None:
        """Drop the space at the end of a line."""
        out = self.out
        if self.line and not self.raw and out and out[-1][-1:] == " ":
            out[-1] = out[-1][:-1]

    def _leave(self, node: int, tag: str, action: int) -> None:
        """Leave an element at its end."""
        if tag == "table" and self.mask is not None:
            self._end_table(node)
        if action == EMIT or node in self.written:
            self._close(tag)
        elif action == WRAP:
            if self.wrapper == node:
                self.wrapper = -1
            if tag not in _INLINES:
                self._trim()
        elif tag in SPACED and self.line and not self.out[-1].endswith(" "):
            self.out.append(" ")

    def _close(self, tag: str) -> None:
        """Write an end tag, or keep it pending where the next tag may make it optional."""
        out = self.out
        block = tag not in _INLINES
        if self.pending:
            needed = self.pending in _SPECIAL and tag not in _CLOSING
            needed = needed or self.pending == tag or (tag in ITEMS and self.pending in ITEMS)
            if not block or tag not in KNOWN_HTML or needed:
                out.append(END_TAGS[self.pending])
            self.pending = ""
        self.open.pop()
        if not block:
            out.append(END_TAGS[tag])
            return
        if self.line:
            self._trim()
        if tag in rules.PREFORMATTED:
            self.raw -= 1
        if tag in CLOSED_BY and not self.style.full:
            self.pending = tag
        else:
            if self.style.pretty and not self.line and not self.raw:
                out.append("\n" + "  " * len(self.open))
            out.append(END_TAGS.get(tag) or f"</{tag}>")
        self.line, self.wrapper, self.gap = False, -1, False
        if tag not in KNOWN_HTML and not self.raw:
            self.line = self.gap = True
