"""Write a Tree, or any kept part of it, as GitHub-flavoured Markdown; tables with spans stay HTML."""

from __future__ import annotations

import re
from typing import Final

from ..clean import rules
from ..grid import counts_in_digits, item_label, next_kept, row_cells, table_rows
from ..table_headers import header_rows
from ..text_forms import draws_quotes, has_no_brackets, quote_marks
from ..tree import Tree
from .inline import Line, destination, escape_heading, escape_label, escape_markdown, escape_rows, html_block
from .markup import HtmlWriter
from .plain import KeptText
from .selection import MARK, Kept
from .style import CLEAN, SPACED, Style, shown_attributes

_MARKS: Final = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
_LITERAL: Final = frozenset({"sup", "sub"})
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})
_APART: Final = SPACED | {"select", "textarea"}
_SPANS: Final = frozenset({"colspan", "rowspan"})
_PARTED: Final = rules.HEADINGS | rules.LISTS | {"blockquote", "hr", "li", "pre", "table"}
"""Blocks that do not stand on the line of an item's number where Markdown knows no such number."""
_NOT_IN_CELLS: Final = rules.HEADINGS | {"table", "ul", "ol", "pre", "dl", "blockquote", "br", "hr"}


class MarkdownWriter:
    """Writes the kept nodes of one Tree as Markdown.

    :param kept: the part of the document that is written; None for the whole.
    """

    def __init__(self, tree: Tree, style: Style = CLEAN, kept: Kept | None = None) -> None:
        self.tree, self.style, self.part = tree, style, kept or Kept(None, {}, {})
        self.mask, self.marks = self.part.mask, self.part.marks
        self.out: list[str] = []
        self.line = Line()
        self.prefixes: list[str] = []  # prefix of every line: list indents, quote marks
        self.marker = ""  # prefix of the next line in their place: an item's bullet
        self.blank: str | None = None  # the prefix of a blank line that must come before the next line
        self.label = ""  # the number that begins the words of an item
        self.begins = False  # a list has begun, but none of its items
        self.loose = False  # a list inside an item has ended: only another item may follow without a blank line
        self.tight = 0  # depth of lists, in which no blank lines separate items
        self.level = 0  # level of the open heading, 0 outside headings
        self.in_cell = False
        self.kept: KeptText | None = None
        self.bare: bytearray | None = None  # the mask without the captions, which are written above their tables

    def markdown(self) -> str:
        """Return the document's Markdown."""
        self._write(0, len(self.tree))
        self._flush()
        return "".join(self.out).strip("\n")

    def _write(self, node: int, stop: int) -> None:
        """Write nodes ``[node, stop)``."""
        tree, mask = self.tree, self.mask
        stack: list[int] = []
        while True:
            while stack and tree.end[stack[-1]] <= node:
                self._leave(stack.pop())
            if node >= stop:
                return
            if mask is not None and not mask[node]:
                after = next_kept(mask, node, stop)
                if self.line.parts:  # the words on both sides of a gap stay apart
                    self.line.add("\n" if "br" in tree.tag[node:after] else " ")
                node = after
            elif not tree.tag[node]:
                self._text(node)
                node += 1
            elif self._enter(node):
                stack.append(node)
                node += 1
            else:
                node = tree.end[node]

    # -- elements ---------------------------------------------------------------------------------

    def _enter(self, node: int) -> bool:
        """Begin an element; return False when it is already written with its content."""
        tag = self.tree.tag[node]
        if tag in rules.INLINE:
            return self._enter_inline(node, tag)
        if tag == "br":
            self.line.add("\n")
            return False
        if tag in _PARTED or self.line.parts != [self.label]:
            self._flush()
        if self.marks and node in self.marks:
            self._mark_item(node, tag)
        if tag == "hr":
            self._blank()
            self._emit("***" if self.marker else "---")
            self._blank()
        elif tag == "table":
            self._table(node)
        elif tag == "pre":
            self._fence(node)
        else:
            self._enter_block(node, tag)
            return True
        return False

    def _enter_block(self, node: int, tag: str) -> None:
        """Begin a block that holds other blocks or a paragraph."""
        if tag in ("ul", "ol"):
            if not self.tight:
                self._blank()
            self.tight += 1
            self.begins = True
        elif tag in ("li", "dd"):
            self._enter_item(node, tag)
        elif tag == "blockquote":
            self._blank()
            self.prefixes.append("> ")
            if self.marker:
                self.marker += "> "
        elif tag in rules.HEADINGS:
            self.level = int(tag[1])
        elif tag in ("option", "optgroup") and self.tree.text[node]:
            self.line.add_words(self.tree.text[node] + "\n")

    def _enter_item(self, node: int, tag: str, before: int = 0) -> None:
        """Begin an item.

        :param before: 1 for the number of the item before it.
        """
        bullet, label = self._bullet(node, before) if tag == "li" else (": ", "")
        if self.begins and bullet not in ("- ", "1. "):
            self._blank()  # Markdown: another number cannot begin a list right after a paragraph
        self.begins = False
        self.marker = (self.marker or "".join(self.prefixes)) + bullet
        self.prefixes.append(" " * len(bullet))
        self.tight += tag == "dd"
        self.label = label
        if label:
            self.line.add(label)

    def _leave_item(self, tag: str) -> None:
        """End an item."""
        self.prefixes.pop()
        self.marker = ""
        self.tight -= tag == "dd"

    def _mark_item(self, node: int, tag: str) -> None:
        """Write an item with the mark of items that were left out."""
        if tag != "dt":
            self._enter_item(node, tag, 1)
        label = "".join(self.line.take())
        self._emit(f"{label} {MARK}" if label else MARK)
        if tag != "dt":
            self._leave_item(tag)

    def _enter_inline(self, node: int, tag: str) -> bool:
        """Begin an inline element."""
        if tag in ("img", "video", "audio", "input"):
            self._object(node, tag)
            return False
        if tag in ("progress", "meter"):
            self.line.add_words(self.tree.text[node])
        if tag in _APART:
            self.line.add(" ")
        else:
            self.line.open(node, *self._mark(node, tag))
        return True

    def _object(self, node: int, tag: str) -> None:
        """Write a picture, a player or a field."""
        attrs = self.tree.attrs[node] or {}
        words = " ".join(self.tree.text[node].split())
        if tag == "input":
            ticked = attrs.get("type") in ("checkbox", "radio")
            self.line.add(f"[{'x' if 'checked' in attrs else ' '}] " if ticked else " ")
            self.line.add_words(f"{words} " if words and not ticked else "")
        elif self.line.code:
            self.line.add_words(f" {words} ")
        else:
            source = destination(shown_attributes(attrs, self.style).get("src", ""))
            label = escape_label(escape_markdown(words))
            if tag == "img" and (words or source):
                self.line.add(f"![{label}]({source})")
            elif words or source:
                self.line.add(f"[{label or tag}]({source})")

    def _mark(self, node: int, tag: str) -> tuple[str, str]:
        """Return the opening and closing marks of an inline element; '' for none."""
        if tag == "a":
            attrs = self.tree.attrs[node]
            target = shown_attributes(attrs, self.style).get("href", "") if attrs else ""
            return ("[", f"]({destination(target)})") if target else ("", "")
        if tag in _CODE:
            return "`", "`"
        if tag in _LITERAL:
            return f"<{tag}>", f"</{tag}>"
        if tag == "rt":
            return ("(", ")") if has_no_brackets(self.tree, node) else ("", "")
        if tag == "q":
            draws = draws_quotes(next(filter(None, self.tree.text[node:]), ""))
            return quote_marks(self.tree, node) if draws else ("", "")
        mark = _MARKS.get(tag, "") if self.style.emphasis or tag in ("del", "s", "strike") else ""
        return mark, mark

    def _leave(self, node: int) -> None:
        """End an element."""
        tag = self.tree.tag[node]
        if tag in rules.INLINE:
            if tag in _APART:
                self.line.add(" ")
            else:
                self.line.close(node)
            return
        self._flush()
        if tag in ("ul", "ol"):
            self.tight -= 1
            if self.tight:
                self.loose = True
            else:
                self._blank()
        elif tag in ("li", "dd"):
            self._leave_item(tag)
        elif tag == "blockquote":
            self._leave_item(tag)
            self._blank()
        elif tag in rules.HEADINGS:
            self.level = 0

    # -- lines ------------------------------------------------------------------------------------

    def _text(self, node: int) -> None:
        """Add a text node, or the kept pieces of it, to the line."""
        text, pieces = self.tree.text[node], self.part.pieces.get(node)
        if pieces or node in self.marks:
            cut = pieces or [(0, len(text))]
            text = " " * (cut[0][0] > 0) + self.part.text(self.tree, node) + " " * (cut[-1][1] < len(text))
        if self.line.code and self.tree.tag[self.tree.parent[node]] in ("sup", "sub"):
            # code has no marks, and 10<sup>6</sup> is not 106
            text = self.tree.canonical[self.tree.starts[node] : self.tree.stop(node)]
        self.line.add_words(text)

    def _flush(self) -> None:
        """End a paragraph or a heading."""
        rows = self.line.take() if self.line.parts else ()
        if not rows:
            return
        if self.level:
            rows = [f"{'#' * self.level} {escape_heading(' '.join(rows))}"]
        elif not self.in_cell:
            rows = escape_rows(rows)
        if self.level or not self.tight:
            self._blank()
        for row in rows:
            self._emit(row)
        if self.level or not self.tight:
            self._blank()

    def _emit(self, row: str) -> None:
        """Write one line with its prefix."""
        prefix = "".join(self.prefixes)
        if self.loose and not self.marker:
            self._blank()
        if self.blank is not None and self.out:
            self.out.append(f"{min(self.blank, prefix, key=len).rstrip()}\n")
        prefix = self.marker or prefix
        self.blank, self.loose, self.marker = None, False, ""
        self.out.append(f"{prefix}{row}\n" if row else f"{prefix.rstrip()}\n")

    def _blank(self) -> None:
        """Request a blank line before the next line, unless that is the first line of an item."""
        if not self.marker:
            prefix = "".join(self.prefixes)
            self.blank = prefix if self.blank is None else min(self.blank, prefix, key=len)

    def _bullet(self, item: int, before: int = 0) -> tuple[str, str]:
        """Return an item's bullet, and its number where Markdown knows no such: a letter, a number below 0.

        :param before: 1 for the number of the item before it.
        """
        if self.tree.tag[self.tree.parent[item]] != "ol":
            return "- ", ""
        label = item_label(self.tree, item, before)
        if counts_in_digits(self.tree, self.tree.parent[item]):
            return f"{label}. ", ""
        return "- ", f"{label}. "

    # -- code and tables --------------------------------------------------------------------------

    def _fence(self, node: int) -> None:
        """Write preformatted text between fences, every space and line break kept."""
        tree, mask = self.tree, self.mask
        if self.kept is None:
            self.kept = KeptText(tree, self.part)
        rows, start = [], node
        for inner in range(node, tree.end[node]):
            if tree.tag[inner] == "br" and (mask is None or mask[inner]):
                rows.append(self.kept.text(start, inner))
                start = inner + 1
        code = "\n".join([*rows, self.kept.text(start, tree.end[node])]).rstrip("\n")
        longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
        fence = "`" * max(3, longest + 1)
        language = ((tree.attrs[node] or {}).get("class", "")).removeprefix("language-")
        self._blank()
        for row in (fence + language, *code.split("\n"), fence):
            self._emit(row)
        self._blank()

    def _table(self, table: int) -> None:
        """Write a table as a GitHub table, or as HTML where a GitHub table cannot express it."""
        tree, mask = self.tree, self.mask
        for child in tree.children(table):
            if tree.tag[child] == "caption" and (mask is None or mask[child]):
                self._write(child, tree.end[child])
                self._flush()
        rows = table_rows(tree, table)
        if mask is not None:
            rows = [row for row in rows if mask[row]]
        if not rows:
            return
        self._blank()
        if self._is_plain(table):
            self._grid(table, rows)
        else:
            for row in html_block(self._html(table)).split("\n"):
                self._emit(row)
        self._blank()

    def _html(self, table: int) -> str:
        """Return a table as HTML without its captions, which are written above it."""
        tree, mask = self.tree, self.mask
        if self.bare is None:
            self.bare = bytearray(b"\1" * len(tree)) if mask is None else bytearray(mask)
        for child in tree.children(table):
            if tree.tag[child] == "caption":
                self.bare[child : tree.end[child]] = bytes(tree.end[child] - child)
        part = Kept(self.bare, self.part.pieces, self.marks)
        return HtmlWriter(tree, self.style, part).html(table, tree.end[table])

    def _is_plain(self, table: int) -> bool:
        """Tell whether a table fits GitHub's syntax: no spans, and only inline text in its cells."""
        tree = self.tree
        key = ("plain", table)
        known = tree.cache.get(key)
        if known is None:
            inside = range(table + 1, tree.end[table])
            spans = any(tree.attrs[node] and not _SPANS.isdisjoint(tree.attrs[node] or ()) for node in inside)
            known = tree.cache[key] = not spans and _NOT_IN_CELLS.isdisjoint(tree.tag[table + 1 : tree.end[table]])
        return bool(known)

    def _grid(self, table: int, rows: list[int]) -> None:
        """Write rows as a GitHub table, with an empty header row where the table has none."""
        tree, lines = self.tree, []
        for row in rows:
            lines.append([self._cell(cell) for cell in row_cells(tree, row)])
        if self.part.lacks_rows(tree, table):
            lines.append([MARK])
        width = max(len(cells) for cells in lines)
        if not width:
            return
        header = rows[0] in header_rows(tree, table)
        if not header:
            lines.insert(0, [])
        for index, cells in enumerate(lines):
            self._emit("|" + "|".join(cells + [""] * (width - len(cells))) + "|")
            if index == 0:
                self._emit("|" + "-|" * width)

    def _cell(self, cell: int) -> str:
        """Return a cell's words as one line of inline Markdown."""
        if self.mask is not None and not self.mask[cell]:
            return MARK if self.part.lacks(self.tree, cell) else ""
        inner = MarkdownWriter(self.tree, self.style, self.part)
        inner.in_cell = True
        inner._write(cell + 1, self.tree.end[cell])
        inner._flush()
        return " ".join("".join(inner.out).split()).replace("|", "\\|")
