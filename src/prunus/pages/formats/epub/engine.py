"""``epub``: electronic books: the chapters in spine order, with their markup."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """Electronic books (.epub) without copy protection. The table of contents is left out: it repeats the headings."""

    name = "epub"
    media_types = ("application/epub+zip",)
    suffixes = (".epub",)

    def to_html(self, page: Page) -> str:
        """Return the book as HTML, a section for each chapter.

        :raises BadPage: the page is no EPUB, is damaged or copy-protected, or exceeds a limit.
        """
        from .book import book_html  # lazy: a program that reads no such file does not load it

        return book_html(page)
