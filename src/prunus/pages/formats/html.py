"""``html``: HTML and XHTML, passed on unchanged. The parser decides the encoding."""

from __future__ import annotations

from ...core.types import Page
from ..clean.parse import source_text
from ..clean.xhtml import html_of
from ._sniff import suffix_of


class Engine:
    """Web pages, unchanged."""

    name = "html"
    media_types = ("text/html", "application/xhtml+xml")
    suffixes = (".html", ".htm", ".xhtml", ".xht")

    def to_html(self, page: Page) -> str | bytes:
        """Return the page's content unchanged, but for XHTML that only its name or media type shows to be XHTML."""
        if page.media_type not in self.media_types[1:] and suffix_of(page.final_url or page.url) not in (
            ".xhtml",
            ".xht",
        ):
            return page.content
        text = source_text(page.content, page.charset)
        html = html_of(text)
        return page.content if html == text else html
