"""``docx``: Word documents: what a reader of the final text sees, notes and text boxes included."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """Word documents (.docx, .docm, .dotx). Macros, embedded files and templates are never opened.

    Tracked deletions, comments and hidden text stay out, insertions stay in. Equations become TeX in
    ``<code class="math">``; the data of charts becomes a table.
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

        :raises BadPage: it is no Word document, damaged, encrypted, or over a limit.
        """
        from .document import document_html  # here: others need not load it

        return document_html(page)
