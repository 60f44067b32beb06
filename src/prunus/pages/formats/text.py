"""``text``: plain text. Blank lines separate paragraphs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from ...core.errors import BadPage
from ...core.types import Page
from ..clean.parse import check_size, decode, is_binary
from ._common.allowance import Allowance

_GAP: Final = re.compile(r"\n[ \t]*\n\s*")
_LINE: Final = re.compile(r"[^\n]+")
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
        parts, allowance = [], Allowance(page.url)
        for paragraph in _paragraphs(content.replace("\r\n", "\n").replace("\r", "\n").strip("\n")):
            allowance.spend("items")
            lines = paragraph.count("\n") + 1
            aligned = sum(bool(_ALIGNED.search(line[0])) for line in _LINE.finditer(paragraph))
            if lines > 1 and aligned * 2 > lines:  # most lines are aligned with spaces: a table or code
                parts.append(f"<pre>\n{html.escape(paragraph, quote=False)}</pre>")
            elif paragraph.strip():
                parts.append(f"<p>{html.escape(paragraph, quote=False)}</p>")
        return "\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for gap in _GAP.finditer(text):
        yield text[start : gap.start()]
        start = gap.end()
    yield text[start:]
