"""``text``: plain text. Blank lines separate paragraphs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ...core.errors import BadPage
from ...core.types import Page
from ..clean.parse import check_size, decode, is_binary
from ._common.allowance import Allowance

_GAP: Final = re.compile(r"\n[ \t]*\n\s*")
_LINE: Final = re.compile(r"[^\n]+")
_WRAPPED: Final = 60  # letters of the shortest full line that a program wraps
_NARROW: Final = 30  # the same, where nearly all lines of a paragraph are full
_FEW, _NEARLY_ALL = 3, 0.8
_FAR_LONGER: Final = 1.5
_ENTRY: Final = re.compile(r"&gt;|--|\[|[-*•–] |\d{1,3}[.)] |\d{2,4}[-/.:]\d\d")
"""What begins a line of its own: a quoted line, an item, an entry with a time."""

_ALIGNED: Final = re.compile(r"\S[ \t]{3,}\S|^(\t| {4})\S")


class Engine:
    """Plain text as HTML paragraphs. Text that is aligned with spaces becomes ``<pre>``."""

    name = "text"
    media_types = ("text/plain",)
    suffixes = (".txt", ".text", ".log")

    def to_html(self, page: Page) -> str:
        """Return the text as HTML.

        :raises BadPage: the content is binary or too large.
        """
        content = page.content
        check_size(content, page.url or "page")
        if isinstance(content, bytes):
            if is_binary(content, page.charset):
                raise BadPage(f"{page.url or 'page'}: this is binary data, not text", subject=page.url)
            content = decode(content, page.charset)
        return text_html(content, page.url)


def text_html(content: str, name: str = "") -> str:
    """Return plain text as HTML. Lines that their writer ended before they were full stay lines.

    :param name: name of the document in errors.
    """
    parts, allowance = [], Allowance(name)
    for paragraph in _paragraphs(content.replace("\r\n", "\n").replace("\r", "\n").strip("\n")):
        allowance.spend("items")
        lines = paragraph.count("\n") + 1
        aligned = sum(bool(_ALIGNED.search(line[0])) for line in _LINE.finditer(paragraph))
        if lines > 1 and aligned * 2 > lines:  # most lines are aligned with spaces: a table or code
            parts.append(f"<pre>\n{html.escape(paragraph, quote=False)}</pre>")
        elif paragraph.strip():
            text = html.escape(paragraph, quote=False)
            parts.append(f"<p>{_with_breaks(text)}</p>")
    return "\n".join(parts)


def _with_breaks(paragraph: str) -> str:
    """Return a paragraph with ``<br>`` after each line that had room for the first word of the next."""
    lines = paragraph.split("\n")
    room = [len(line) + 1 + len(below.split(" ", 1)[0]) for line, below in pairwise(lines)]
    width = _width(lines, room)
    written = lines[:1]
    for (line, below), needed in zip(pairwise(lines), room, strict=True):
        is_apart = _ENTRY.match(below) or line.startswith("&gt;")
        written.append("<br>" if is_apart or needed <= width or len(line) > width else "\n")
        written.append(below)
    return "".join(written)


def _width(lines: list[str], room: list[int]) -> int:
    """Return the width at which a program wrapped a paragraph; 60 at least, unless nearly all its lines fill less.

    A line far longer than the others, an address for example, was wrapped by nobody: it says nothing of the width.

    :param room: length of each line, but the last, with the first word of the next.
    """
    lengths = sorted(map(len, lines))
    longest = max(length for length in lengths if length <= lengths[len(lengths) // 2] * _FAR_LONGER)
    wrapped = [needed > longest for needed, below in zip(room, lines[1:], strict=True) if not _ENTRY.match(below)]
    fills = len(lines) > _FEW and longest >= _NARROW and sum(wrapped) >= _NEARLY_ALL * len(wrapped) > 0
    return longest if fills else max(longest, _WRAPPED)


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for gap in _GAP.finditer(text):
        yield text[start : gap.start()]
        start = gap.end()
    yield text[start:]
