"""Write a Tree, or any kept part of it, as GitHub-flavoured Markdown; tables with spans stay HTML."""

from __future__ import annotations

import re
from typing import Final

from . import rules
from .cut import header_rows
from .grid import item_numbers, next_kept, row_cells, table_rows
from .markup import Pieces, Writer
from .style import CLEAN, SPACED, Style, shown_attributes
from .tree import Tree

_ESCAPED: Final = re.compile(r"([\\`*]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|\[(?=[^\]]*\]\())")
_LINE_START: Final = re.compile(r"^(\s*)(#{1,6}(?=\s)|[-+>](?=\s)|\d{1,9}(?=[.)]\s)|={3,}|-{3,}|~{3,})")
_MARKS: Final = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
_LITERAL: Final = frozenset({"sup", "sub"})
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as its own marks."""
    return _ESCAPED.sub(r"\\\1", text)


class MarkdownWriter:
    """Writes the kept nodes of one Tree as Markdown.

    :param mask, pieces: as for :class:`prunus.html.markup.Writer`.
    """

    def __init__(
        self, tree: Tree, style: Style = CLEAN, mask: bytearray | None = None, pieces: Pieces | None = None
    ) -> None:
        self.tree, self.style, self.mask, self.pieces = tree, style, mask, pieces or {}
        self.out: list[str] = []
        self.line: list[str] = []
        self.prefixes: list[str] = []  # what every line begins with: list indents, quote marks
        self.marker = ""  # what the next line begins with instead of the last indent
        self.tight = 0  # depth of lists: items follow each other without blank lines
        self.code = 0

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
                node = next_kept(mask, node, stop)
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
        """Begin an element; return False when it is written whole."""
        tag = self.tree.tag[node]
        if tag in rules.INLINE:
            return self._enter_inline(node, tag)
        if tag == "br":
            self.line.append("\n")
            return False
        self._flush()
        if tag == "hr":
            self._emit("---")
        elif tag == "table":
            self._table(node)
        elif tag == "pre":
            self._fence(node)
        elif tag in ("ul", "ol"):
            if not self.tight:
                self._blank()
            self.tight += 1
            return True
        elif tag == "li":
            self.marker = "".join(self.prefixes) + self._bullet(node)
            self.prefixes.append(" " * len(self._bullet(node)))
            return True
        elif tag == "blockquote":
            self._blank()
            self.prefixes.append("> ")
            return True
        elif tag == "dd":
            self.marker = "".join(self.prefixes) + ": "
            self.prefixes.append("  ")
            self.tight += 1
            return True
        elif tag in ("option", "optgroup") and self.tree.text[node]:
            self.line.append(escape_markdown(self.tree.text[node]) + "\n")
            return True
        else:
            return True
        return False

    def _enter_inline(self, node: int, tag: str) -> bool:
        """Begin an inline element."""
        attrs = self.tree.attrs[node] or {}
        own = self.tree.text[node]
        if tag == "img":
            source = shown_attributes(attrs, self.style).get("src", "")
            if own or source:
                self.line.append(f"![{escape_markdown(own)}]({source})" if source else f"![{escape_markdown(own)}]()")
            return False
        if tag in ("video", "audio"):
            source = shown_attributes(attrs, self.style).get("src", "")
            if own or source:
                self.line.append(f"[{escape_markdown(own or tag)}]({source})")
            return False
        if tag == "input":
            ticked = attrs.get("type") in ("checkbox", "radio")
            self.line.append(f"[{'x' if 'checked' in attrs else ' '}] " if ticked else f" {escape_markdown(own)} ")
            return False
        if tag in SPACED or tag in ("select", "textarea"):
            self.line.append(" ")
        elif tag in _CODE:
            self.code += 1
            self.line.append("`")
        else:
            self.line.append(self._mark(node, tag))
        return True

    def _mark(self, node: int, tag: str) -> str:
        """Return the opening mark of an inline element, '' where none is written."""
        if tag == "a":
            return "[" if self._target(node) else ""
        if tag in _LITERAL:
            return f"<{tag}>"
        shown = self.style.emphasis or tag in ("del", "s", "strike")
        return _MARKS.get(tag, "") if shown and not self.code else ""

    def _target(self, node: int) -> str:
        """Return a link's target if it is written."""
        attrs = self.tree.attrs[node]
        return shown_attributes(attrs, self.style).get("href", "") if attrs else ""

    def _leave(self, node: int) -> None:
        """End an element."""
        tag = self.tree.tag[node]
        if tag in rules.INLINE:
            if tag in _CODE:
                self.code -= 1
                self._close_mark("`", "`")
            elif tag in SPACED or tag in ("select", "textarea"):
                self.line.append(" ")
            elif tag == "a":
                target = self._target(node)
                if target:
                    self._close_mark("[", f"]({target.replace(' ', '%20').replace(')', '%29')})")
            elif tag in _LITERAL:
                self._close_mark(f"<{tag}>", f"</{tag}>")
            else:
                mark = self._mark(node, tag)
                if mark:
                    self._close_mark(mark, mark)
            return
        if tag in rules.HEADINGS or tag == "title":
            words = " ".join("".join(self.line).split())
            self.line.clear()
            if words:
                self._blank()
                level = int(tag[1]) if tag != "title" else 0
                self._emit(f"{'#' * level} {words}" if level else words)
                self._blank()
            return
        self._flush()
        if tag in ("ul", "ol"):
            self.tight -= 1
            if not self.tight:
                self._blank()
        elif tag in ("li", "blockquote", "dd"):
            self.prefixes.pop()
            self.marker = ""
            if tag == "dd":
                self.tight -= 1
            elif tag == "blockquote":
                self._blank()

    def _close_mark(self, opening: str, closing: str) -> None:
        """Close an inline mark around its words: spaces move outside, a mark around nothing goes."""
        place = len(self.line) - 1
        while place >= 0 and self.line[place] != opening:
            place -= 1
        if place < 0:
            return  # a block inside the element has flushed the line: the opening mark stands before it
        inner = "".join(self.line[place + 1 :])
        words = inner.strip()
        del self.line[place:]
        if not words:
            self.line.append(inner)
            return
        before = inner[: len(inner) - len(inner.lstrip())]
        after = inner[len(inner.rstrip()) :]
        self.line.append(f"{before}{opening}{words}{closing}{after}")

    # -- lines ------------------------------------------------------------------------------------

    def _text(self, node: int) -> None:
        """Add a text node to the line."""
        text = self.tree.text[node]
        if node in self.pieces:
            text = " ".join(text[start:end].strip() for start, end in self.pieces[node])
        self.line.append(text if self.code else escape_markdown(text))

    def _flush(self) -> None:
        """End a paragraph."""
        words = "".join(self.line)
        self.line.clear()
        rows = [" ".join(row.split()) for row in words.split("\n")]
        rows = [_LINE_START.sub(r"\1\\\2", row) for row in rows if row]
        if not rows:
            return
        if not self.tight:
            self._blank()
        for row in rows:
            self._emit(row)
        if not self.tight:
            self._blank()

    def _emit(self, row: str) -> None:
        """Write one line with its prefix."""
        prefix, self.marker = self.marker or "".join(self.prefixes), ""
        self.out.append(f"{prefix}{row}\n")

    def _blank(self) -> None:
        """Make sure that a blank line comes before what follows."""
        if self.out and self.out[-1].strip("> \n") and not self.marker:
            self.out.append(f"{''.join(self.prefixes).rstrip()}\n")

    def _bullet(self, item: int) -> str:
        """Return an item's marker; ordered items keep the number that the page shows."""
        tree = self.tree
        above = tree.parent[item]
        if tree.tag[above] != "ol":
            return "- "
        return f"{item_numbers(tree, above)[item][0]}. "

    # -- code and tables --------------------------------------------------------------------------

    def _fence(self, node: int) -> None:
        """Write preformatted text between fences, every space and line break kept."""
        tree = self.tree
        parts = []
        for inner in range(node + 1, tree.end[node]):
            if tree.tag[inner] == "br":
                parts.append("\n")
            if tree.tag[inner] or (self.mask is not None and not self.mask[inner]):
                continue
            text = tree.text[inner]
            if inner in self.pieces:
                text = "".join(text[start:end] for start, end in self.pieces[inner])
            parts.append(text)
        code = "".join(parts).rstrip("\n")
        longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
        fence = "`" * max(3, longest + 1)
        self._blank()
        for row in (fence, *code.split("\n"), fence):
            self._emit(row)
        self._blank()

    def _table(self, table: int) -> None:
        """Write a table: as a GitHub table, or as HTML where that would lose its geometry."""
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
            writer = Writer(tree, self.style, mask, self.pieces)
            for row in _without_captions(tree, table, writer).split("\n"):
                self._emit(row)
        self._blank()

    def _is_plain(self, table: int) -> bool:
        """Tell whether a table fits GitHub's syntax: no spans, nothing but lines of text in its cells."""
        tree = self.tree
        for node in range(table + 1, tree.end[table]):
            attrs = tree.attrs[node]
            if attrs and ("colspan" in attrs or "rowspan" in attrs):
                return False
            if (
                tree.tag[node] in ("table", "ul", "ol", "pre", "dl", "blockquote", "br")
                or tree.tag[node] in rules.HEADINGS
            ):
                return False
        return True

    def _grid(self, table: int, rows: list[int]) -> None:
        """Write rows as a GitHub table; one without header row gets an empty one."""
        tree, mask = self.tree, self.mask
        lines = []
        for row in rows:
            cells = [self._cell(cell) if mask is None or mask[cell] else "" for cell in row_cells(tree, row)]
            lines.append(cells)
        width = max(len(cells) for cells in lines)
        header = rows[0] in header_rows(tree, table, table_rows(tree, table))
        if not header:
            lines.insert(0, [])
        for place, cells in enumerate(lines):
            self._emit("|" + "|".join(cells + [""] * (width - len(cells))) + "|")
            if place == 0:
                self._emit("|" + "-|" * width)

    def _cell(self, cell: int) -> str:
        """Return a cell's words as one line of inline Markdown."""
        outer, outer_out, self.out, self.line = self.line, self.out, [], []
        outer_prefixes, self.prefixes = self.prefixes, []
        marker, self.marker = self.marker, ""
        self._write(cell + 1, self.tree.end[cell])
        self._flush()
        words = " ".join("".join(self.out).split())
        self.line, self.out, self.prefixes, self.marker = outer, outer_out, outer_prefixes, marker
        return words.replace("|", "\\|")


def _without_captions(tree: Tree, table: int, writer: Writer) -> str:
    """Write a table as HTML, its captions left to the line above it."""
    mask = bytearray(writer.mask) if writer.mask is not None else bytearray(b"\1" * len(tree))
    for child in tree.children(table):
        if tree.tag[child] == "caption":
            mask[child : tree.end[child]] = bytes(tree.end[child] - child)
    writer.mask = mask
    return writer.html(table, tree.end[table])
