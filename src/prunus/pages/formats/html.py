"""``html``: HTML and XHTML, passed on unchanged. The parser decides the encoding."""

from __future__ import annotations

from ...core.types import Page


class Engine:
    """Web pages, unchanged."""

    name = "html"
    media_types = ("text/html", "application/xhtml+xml")
    suffixes = (".html", ".htm", ".xhtml", ".xht")

    def to_html(self, page: Page) -> str | bytes:
        """Return the page's content unchanged."""
        return page.content
