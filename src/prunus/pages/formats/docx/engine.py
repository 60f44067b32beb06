"""``docx``: Word documents as a reader of the final text sees them, with notes and text boxes."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """Word documents (.docx, .docm, .dotx). Macros, embedded files and templates are never opened.

    Tracked deletions and hidden text are left out; tracked insertions are kept, and comments are asides. Equations
    become TeX in ``<code class="math">``. Chart data becomes a table.
    """

    name = "docx"
    media_types = (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        "application/vnd.ms-word.document.macroenabled.12",
    )
    suffixes = (".docx", ".docm", ".dotx")

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: the page is no Word document, is damaged or encrypted, or exceeds a limit.
        """
        from .document import document_html  # lazy: a program that reads no such file does not load it

        return document_html(page)
