"""Write the blocks of a PDF as HTML: join blocks across columns and pages, rank headings, nest lists.

The words of a block become inline HTML: lines joined, hyphens undone, emphasis, links, page marks.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from ....core.text.numbers import bounded_int, in_ascii
from ....core.text.words import UNSPACED
from ...asides import comment
from .._common.write import escape_lines, escape_text, with_mark
from .blocks import PdfBlock, PdfStyle
from .lines import Word
from .reader import BOLD, ITALIC, MONO
from .tables import PdfCell, PdfTable, cell_lines, continues

_TAIL: Final = re.compile(r"(?<![^\W\d_])([^\W\d_]++)[-\u00ad\u2010]$")
_COMPOUNDS: Final = frozenset(
    """self well ill half high low long short full all ex cross mid part year month day first second third fourth last
    left right one two three four five six seven eight nine ten twenty thirty forty fifty sixty seventy eighty
    ninety""".split()
)
"""Words that go on with a hyphen, which the end of a line does not take away."""

_HEAD: Final = re.compile(r"[^\W\d_]+")
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")

Key = tuple[str, bool, bool, bool, bool, str, int]
"""Link, bold, italic, code, struck, ``sup`` or ``sub``, number of the page that begins here or 0."""


class PdfInlineWriter:
    """Writes the words of one document.

    :param words: all words of the document. They tell whether the parts of a hyphenated word form one word.
    :param bold: whether running text is bold, so that bold is no emphasis.
    """

    def __init__(self, words: Iterable[Word], bold: bool = False) -> None:
        self.known = Counter(word.text.strip(".,;:!?()[]\"'“”‘’").lower() for word in words)
        self.bold = bold
        self.page = -1

    def inline(self, lines: Sequence[Sequence[Word]], plain: bool = False) -> str:
        """Return lines as inline HTML.

        :param plain: leave out emphasis, for headings and header cells.
        """
        runs: list[tuple[Key, str]] = []
        last: Word | None = None
        for number, line in enumerate(lines):
            base = _base(line)
            for at, word in enumerate(line):
                glue = " " if word.space or (at == 0 and number > 0) else ""
                if at == 0 and number and last is not None:
                    glue = self._between(last, word, runs)
                if last is None:
                    glue = ""
                key = self._key(word, base, plain)
                text = glue + word.text
                if runs and runs[-1][0] == key:
                    runs[-1] = (key, runs[-1][1] + text)
                else:
                    runs.append((key, text))
                last = word
        return "".join(_wrapped(key, text) for key, text in runs).strip()

    def _between(self, last: Word, word: Word, runs: list[tuple[Key, str]]) -> str:
        """Return the separator between the last word of a line and the first word of the next.

        A hyphen that only breaks a word is removed from ``runs``.
        """
        if _UNSPACED.match(last.text[-1]) and _UNSPACED.match(word.text[0]):
            return ""
        tail, head = _TAIL.search(last.text), _HEAD.match(word.text)
        if not tail:
            return "" if last.text.endswith(("-", "\u00ad")) and len(last.text) > 1 and word.text[0].isalnum() else " "
        if head is None:
            return "" if word.text[0].isdigit() else " "
        soft = last.text.endswith("\u00ad")
        first, second = tail[1].lower(), head[0].lower()
        # the document itself decides: does it write the word with or without the hyphen elsewhere?
        joined, parted = self.known[first + second], self.known[f"{first}-{second}"]
        # self-made, state-of-the-art, UK-based
        compound = first in _COMPOUNDS or "-" in last.text[:-1] or (len(first) > 1 and tail[1].isupper())
        breaks = not parted and not compound and head[0][0].islower() and len(first) > 1
        if soft or joined > parted or breaks:
            key, text = runs[-1]
            runs[-1] = (key, text[:-1])
        return ""

    def _key(self, word: Word, base: tuple[float, float], plain: bool) -> Key:
        size, y = base
        script = word.script
        if not script and word.size <= 0.82 * size:  # smaller letters off the baseline are superscript or subscript
            script = "sup" if word.y < y - 0.18 * size else "sub" if word.y > y + 0.08 * size else ""
        begins = word.page + 1 if word.page > self.page else 0
        self.page = max(self.page, word.page)
        if plain:
            return (word.href, False, False, False, word.struck, script, begins)
        flags = word.flags
        bold = bool(flags & BOLD) and not self.bold
        return (word.href, bold, bool(flags & ITALIC), bool(flags & MONO), word.struck, script, begins)


def code_text(lines: Sequence[Sequence[Word]]) -> str:
    """Return lines of code with their indentation, escaped. Columns follow from the median letter width."""
    words = [word for line in lines for word in line]
    left = min(word.x0 for word in words)
    widths = sorted((word.x1 - word.x0) / max(len(word.text), 1) for word in words)
    width = widths[len(widths) // 2] or 1.0
    gaps = [lower[0].y - upper[0].y for upper, lower in itertools.pairwise(lines)]
    usual = min((gap for gap in gaps if gap > 0), default=0.0)
    written = []
    for number, line in enumerate(lines):
        if number and usual and gaps[number - 1] > 1.6 * usual:
            written.append("")
        text = ""
        for word in line:
            column = min(round((word.x0 - left) / width), 400)
            text += " " * max(column - len(text), 1 if word.space and text else 0) + word.text
        written.append(text)
    return escape("\n".join(written), quote=False)


def _base(line: Sequence[Word]) -> tuple[float, float]:
    """Return the most frequent (size, baseline) of a line, counted by letters."""
    sizes: Counter[tuple[float, float]] = Counter()
    for word in line:
        sizes[word.size, word.y] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else (10.0, 0.0)


def _wrapped(key: Key, text: str) -> str:
    """Return a run of text in the elements of its style. Spaces at its ends stay outside."""
    href, bold, italic, mono, struck, script, begins = key
    core = text.strip()
    if not core:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    html = escape(core, quote=False)
    for tag, wanted in (("code", mono), (script, bool(script)), ("s", struck), ("i", italic), ("b", bold)):
        if wanted:
            html = f"<{tag}>{html}</{tag}>"
    if href.lower().startswith(_WEB):
        html = f'<a href="{escape(href)}">{html}</a>'
    if begins:
        html = f'<data value="page-{begins}">{html}</data>'
    return before + html + after


_STOPS: Final = re.compile(r"[.!?:;。！？…][\"'”’»)\]]*(?:\d{1,3}|\[\d+\])?$")
_FLOATS: Final = frozenset({"note", "comment", "caption", "figure", "table"})
_DATE: Final = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?(?:(\d{2})(\d{2})(\d{2})?)?")
_VALUE: Final = re.compile(r"[(\[]?(\w+)[.)\]]?$")
_JUNK_TITLE: Final = re.compile(
    r"(?:untitled|microsoft word|powerpoint|slide \d|.*\.(?:docx?|dvi|tex|indd|pdf|qxd)$)", re.I
)
_ROMAN: Final = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv")


def document(blocks: Sequence[PdfBlock], metadata: Mapping[str, Any], style: PdfStyle, writer: PdfInlineWriter) -> str:
    """Return a whole document as HTML.

    :param metadata: metadata of the document, as :meth:`.reader.PdfReader.metadata` returns it.
    """
    joined = join_blocks(blocks)
    levels = heading_levels(joined, metadata.get("outline") or [])
    body = _Body(writer, levels)
    for at, block in enumerate(joined):
        body.add(block, joined[at + 1 : at + 4])
    body.close_lists(0)
    title = _title(metadata, joined)
    lang = re.match(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$", metadata.get("lang", ""))
    head = [f"<title>{escape(title, quote=False)}</title>"] if title else []
    if metadata.get("author"):
        head.append(f'<meta name="author" content="{escape(metadata["author"])}">')
    for name, key in (("published", "creationdate"), ("modified", "moddate")):
        when = _date(metadata.get(key, ""))
        if when:
            head.append(f'<meta property="article:{name}_time" content="{when}">')
    head += [f'<meta name="prunus:warning" content="{escape(said)}">' for said in metadata.get("warnings", [])]
    attribute = f' lang="{lang[0]}"' if lang else ""
    top = f'<!doctype html>\n<html{attribute}><head><meta charset="utf-8">{"".join(head)}</head><body>'
    return f"{top}\n{body.html()}\n</body></html>"


def join_blocks(blocks: Sequence[PdfBlock]) -> list[PdfBlock]:
    """Join blocks that a column or page break cut in two, and put captions into their tables and figures."""
    joined_blocks: list[PdfBlock] = []
    for block in blocks:
        if block.kind == "p" and block.first and block.lines:
            target = _continued_paragraph(joined_blocks, block)
            if target is not None:
                target.lines = [*target.lines, *block.lines]
                target.ends_early = block.ends_early
                continue
        before = joined_blocks[-1] if joined_blocks else None
        if before and _append_continued(before, block):
            continue
        joined_blocks.append(block)
    _drop_false_items(joined_blocks)
    return _place_captions(joined_blocks)


def _drop_false_items(blocks: Sequence[PdfBlock]) -> None:
    """Turn list items into paragraphs where no near item has the next or previous number: initials, years, sections."""
    items = [(block, *_numbering(block.marker)) for block in blocks if block.kind == "li"]
    numbers = [(tag + kind, number) for _, tag, number, kind in items]
    for at, (block, tag, number, kind) in enumerate(items):
        near = numbers[max(at - 12, 0) : at + 13]  # 12 items before and after: other lists may lie between
        if tag == "ol" and (tag + kind, number - 1) not in near and (tag + kind, number + 1) not in near:
            block.kind = "p"
            block.lines[0] = [*([block.mark] if block.mark else []), *block.lines[0]]


def _continued_paragraph(earlier: Sequence[PdfBlock], block: PdfBlock) -> PdfBlock | None:
    """Return the paragraph that a block continues, or None."""
    for before in reversed(earlier[-8:]):
        if before.kind in _FLOATS:
            continue
        if before.kind not in ("p", "li") or not before.lines or abs(before.size - block.size) > 0.6:
            return None
        text, start = before.text, block.text[:1]
        if text.endswith("-") and start.islower():
            return before
        if _STOPS.search(text) or (before.ends_early and not start.islower()):
            return None
        return before if start.islower() or before.kind == "p" else None
    return None


def _append_continued(before: PdfBlock, block: PdfBlock) -> bool:
    """Append a table at the top of a page to the table that it continues; return False where it continues none."""
    table, after = before.table, block.table
    if table is None or after is None or not block.first or block.page != before.page + 1:
        return False
    heads = _heads(after)
    if not continues(table, after) or (len(heads) > 1 and heads != _heads(table)):
        return False
    table.rows += _new_rows(table, after)
    before.page = block.page
    return True


def _heads(table: PdfTable) -> list[list[str]]:
    """Return the texts of the header rows of a table."""
    heads = itertools.takewhile(lambda row: any(cell and cell.head for cell in row), table.rows)
    return [[cell.text if cell else "" for cell in row] for row in heads]


def _new_rows(table: PdfTable, after: PdfTable) -> list[list[PdfCell | None]]:
    """Return the rows of a table's next part without a repeated header."""
    header = [cell.text if cell else "" for cell in table.rows[0]]
    first_row = [cell.text if cell else "" for cell in after.rows[0]]
    rows = after.rows[max(len(_heads(after)), 1) :] if header == first_row else after.rows
    for row in rows:
        for cell in row:
            if cell and header != first_row:
                cell.head = False
    return rows


def _place_captions(blocks: list[PdfBlock]) -> list[PdfBlock]:
    """Put captions into the tables and figures beside them."""
    captioned: list[PdfBlock] = []
    for at, block in enumerate(blocks):
        if block.kind != "caption":
            captioned.append(block)
            continue
        wanted = "table" if block.text.lower().lstrip().startswith(("tab", "supplementary tab")) else "figure"
        beside = [*blocks[at + 1 : at + 2], *captioned[-1:]]
        if wanted == "figure":
            beside.reverse()
        for neighbour in beside:
            if neighbour.kind == wanted and not neighbour.lines:
                neighbour.lines = block.lines  # the lines of a table or figure are its caption
                break
        else:
            captioned.append(block)
    return captioned


def heading_levels(blocks: Sequence[PdfBlock], outline: Sequence[Sequence[Any]]) -> dict[int, int]:
    """Return the level of each heading by its index: from bookmarks, from tags, or from size and weight."""
    headings = [at for at, block in enumerate(blocks) if block.kind == "h"]
    depths = {_heading_key(title): depth for depth, _, title in outline}
    styles: dict[int, tuple[float, bool]] = {at: (round(blocks[at].size), blocks[at].bold) for at in headings}
    # the first heading is the title where it has the largest size and no bookmark: the others move one level down
    largest = max((size for size, _ in styles.values()), default=0.0)
    has_title = (
        bool(headings) and styles[headings[0]][0] == largest and _heading_key(blocks[headings[0]].text) not in depths
    )
    sizes = sorted(set(styles.values()), key=lambda style: (-style[0], not style[1]))
    ranks = {style: rank for rank, style in enumerate(sizes, 1)}
    levels_by_style: dict[tuple[float, bool], Counter[int]] = {}
    levels: dict[int, int] = {}
    for at in headings:
        depth = depths.get(_heading_key(blocks[at].text))
        if depth is not None:
            levels[at] = depth + 1 + has_title
            levels_by_style.setdefault(styles[at], Counter())[levels[at]] += 1
        elif blocks[at].level:
            levels[at] = blocks[at].level
    for at in headings:
        if at not in levels:
            levels_of_style = levels_by_style.get(styles[at])
            levels[at] = levels_of_style.most_common(1)[0][0] if levels_of_style else ranks[styles[at]]
    return {at: min(max(level, 1), 6) for at, level in levels.items()} | {-1: 0}


def _heading_key(text: str) -> str:
    """Return a heading in lower case without its number and spaces, for comparison with bookmarks."""
    return re.sub(
        r"^(?:(?:chapter|section|part|appendix)\s+)?[\dA-Z]{0,3}(?:\.\d+)*[.:)]?\s+|\W", "", text.strip()
    ).lower()


def _title(metadata: Mapping[str, Any], blocks: Sequence[PdfBlock]) -> str:
    """Return the title from the metadata, or else the first heading of the first 12 blocks."""
    stated = " ".join(metadata.get("title", "").split())
    if stated and not _JUNK_TITLE.match(stated):
        return stated
    first = next((block for block in blocks[:12] if block.kind == "h"), None)
    return first.text if first else ""


def _date(text: str) -> str:
    """Return a PDF date as ISO 8601, or '' where the text is no date."""
    match = _DATE.match(text)
    if not match:
        return ""
    year, month, day, hour, minute, second = match.groups()
    date = "-".join(part for part in (year, month, day if month else None) if part)
    return f"{date}T{hour}:{minute}:{second or '00'}" if day and hour else date


class _Body:
    """The HTML of the body while it is written, with its open lists."""

    def __init__(self, writer: PdfInlineWriter, levels: Mapping[int, int]) -> None:
        self.writer = writer
        self.levels = levels
        self.parts: list[str] = []
        self.lists: list[tuple[float, str, int]] = []  # indent, tag, latest number
        self.number = -1

    def html(self) -> str:
        """Return the body."""
        return "\n".join(part for part in self.parts if part)

    def add(self, block: PdfBlock, following: Sequence[PdfBlock]) -> None:
        """Write a block. ``following`` holds the next blocks, which show whether a list continues."""
        self.number += 1
        if block.kind == "li":
            self._item(block)
            return
        if self.lists and not self._stays_inside(block, following):
            self.close_lists(0)
        self.parts.append(self._block_html(block))

    def _block_html(self, block: PdfBlock) -> str:
        write = self.writer.inline
        if block.kind == "h":
            level = self.levels[self.number]
            return f"<h{level}>{write(block.lines, plain=True)}</h{level}>"
        if block.kind == "table" and block.table:
            return self._table(block.table, block)
        if block.kind == "pre":
            if block.page > self.writer.page:
                self.writer.page = block.page
                first, _, rest = code_text(block.lines).partition("\n")
                mark = f'<data value="page-{block.page + 1}">{first}</data>'
                return f"<pre>{mark}{chr(10) if rest else ''}{rest}</pre>"
            return f"<pre>{code_text(block.lines)}</pre>"
        if block.kind == "comment":
            author, _, said = block.alt.partition("\n")
            written = comment(escape_lines(said.strip().replace("\r", "\n")), escape_text(author.strip()))
            if block.page > self.writer.page:
                self.writer.page = block.page
                written = with_mark(written, f"page-{block.page + 1}")
            return written
        if block.kind in ("figure", "caption"):
            image = f'<img alt="{escape(block.alt)}">' if block.alt else ""
            caption = write(block.lines)
            return f"<figure>{image}{f'<figcaption>{caption}</figcaption>' if caption else ''}</figure>"
        inner = write(block.lines)
        return f"<aside><p>{inner}</p></aside>" if block.kind == "note" else f"<p>{inner}</p>"

    def _table(self, table: PdfTable, block: PdfBlock) -> str:
        caption = self.writer.inline(block.lines) if block.lines else ""
        parts = [f"<table>{f'<caption>{caption}</caption>' if caption else ''}"]
        header_rows = 0
        for row in table.rows:
            if not any(cell.head for cell in row if cell) or header_rows < 0:
                break
            header_rows += 1
        for number, row in enumerate(table.rows):
            if number == 0 and header_rows:
                parts.append("<thead>")
            if number == header_rows:
                parts.append("</thead><tbody>" if header_rows else "<tbody>")
            parts.append(f"<tr>{''.join(self._cell(cell) for cell in row if cell)}</tr>")
        return "".join(parts) + "</tbody></table>"

    def _cell(self, cell: PdfCell) -> str:
        spans = "".join(
            f' {name}="{value}"' for name, value in (("colspan", cell.colspan), ("rowspan", cell.rowspan)) if value > 1
        )
        tag = "th" if cell.head else "td"
        return f"<{tag}{spans}>{self.writer.inline(cell_lines(cell), plain=cell.head)}</{tag}>"

    # --- lists -----------------------------------------------------------------------------------

    def _item(self, block: PdfBlock) -> None:
        tag, number, kind = _numbering(block.marker)
        em = block.size or 10.0
        while self.lists and self.lists[-1][0] > block.indent + 0.6 * em:
            self.close_lists(len(self.lists) - 1)
        level = bool(self.lists) and abs(self.lists[-1][0] - block.indent) <= 0.6 * em
        if level and self.lists[-1][1] != tag:
            self.close_lists(len(self.lists) - 1)
            level = False
        if level:
            indent, _, latest = self.lists[-1]
            number = number or latest + 1
            value = f' value="{number}"' if tag == "ol" and number != latest + 1 else ""
            self.parts.append(f"</li>\n<li{value}>")
            self.lists[-1] = (indent, tag, number)
        else:
            start = f' start="{number}"' if tag == "ol" and number > 1 else ""
            self.parts.append(f"<{tag}{start}{kind}>\n<li>")
            self.lists.append((block.indent, tag, number))
        self.parts[-1] += self.writer.inline(block.lines)

    def _stays_inside(self, block: PdfBlock, following: Sequence[PdfBlock]) -> bool:
        """Tell whether a block belongs to the latest list item: it is indented, and the list continues after it."""
        inside = block.kind in ("p", "pre", "table") and block.indent > self.lists[0][0] + 0.8 * (block.size or 10)
        return inside and any(next_block.kind == "li" for next_block in following)

    def close_lists(self, depth: int) -> None:
        """Close the innermost lists until ``depth`` are open."""
        while len(self.lists) > depth:
            self.parts.append(f"</li></{self.lists.pop()[1]}>")


def _numbering(marker: str) -> tuple[str, int, str]:
    """Return list tag, number and ``type`` attribute of a list marker."""
    match = _VALUE.match(marker)
    if not match or marker in ("o", "*"):
        return "ul", 0, ""
    value = match[1]
    number = bounded_int(in_ascii(value), -1, most=999_999_999)
    if number >= 0:
        return "ol", number, ""
    if value.lower() in _ROMAN and (len(value) > 1 or value in "iI"):
        return "ol", _ROMAN.index(value.lower()) + 1, ' type="i"' if value.islower() else ' type="I"'
    if len(value) == 1 and value.isascii():
        return "ol", ord(value.lower()) - 96, ' type="a"' if value.islower() else ' type="A"'
    return "ul", 0, ""
