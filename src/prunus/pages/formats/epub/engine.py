"""``epub``: electronic books: the chapters in the order of the spine, each with its own markup."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """Electronic books (.epub) without copy protection; their table of contents, which doubles headings, stays out."""

    name = "epub"
    media_types = ("application/epub+zip",)
    suffixes = (".epub",)

    def to_html(self, page: Page) -> str:
        """Return the book as HTML, a section for each chapter.

        :raises BadPage: it is no EPUB, damaged, copy-protected, or over a limit.
        """
        from .book import book_html  # here: others need not load it

        return book_html(page)
