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
_WRAPPED, _UNWRAPPED = 60, 80  # letters of the shortest full line that a program wraps, and of one that none wraps
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


def text_html(content: str, name: str = "", has_lines: bool = False) -> str:
    """Return plain text as HTML.

    :param name: name of the document in errors.
    :param has_lines: keep line breaks where the writer ended a line before it was full, as in mails.
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
            parts.append(f"<p>{_with_breaks(text) if has_lines else text}</p>")
    return "\n".join(parts)


def _with_breaks(paragraph: str) -> str:
    """Return a paragraph with ``<br>`` after each line that had room for the first word of the next."""
    lines = paragraph.split("\n")
    width = max(_WRAPPED, *(len(line) for line in lines if len(line) < _UNWRAPPED), 0)
    written = lines[:1]
    for line, below in pairwise(lines):
        word = below.split(" ", 1)[0]
        is_quoted = below.startswith(("&gt;", "--")) or line.startswith("&gt;")
        written.append("<br>" if is_quoted or len(line) + 1 + len(word) <= width else "\n")
        written.append(below)
    return "".join(written)


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for gap in _GAP.finditer(text):
        yield text[start : gap.start()]
        start = gap.end()
    yield text[start:]
