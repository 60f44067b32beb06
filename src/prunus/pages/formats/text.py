"""``text``: plain text. Blank lines separate paragraphs."""

from __future__ import annotations

import html
import re

from ...core.errors import BadPage
from ...core.types import Page
from ..clean.parse import check_size, decode, is_binary


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
        parts = []
        for paragraph in re.split(r"\n[ \t]*\n\s*", content.replace("\r\n", "\n").replace("\r", "\n").strip("\n")):
            lines = paragraph.split("\n")
            aligned = sum(bool(re.search(r"\S[ \t]{3,}\S|^(\t| {4})\S", line)) for line in lines)
            if len(lines) > 1 and aligned * 2 > len(lines):  # most lines are aligned with spaces: a table or code
                parts.append(f"<pre>\n{html.escape(paragraph, quote=False)}</pre>")
            elif paragraph.strip():
                parts.append(f"<p>{html.escape(paragraph, quote=False)}</p>")
        return "\n".join(parts)
