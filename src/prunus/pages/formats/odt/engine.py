"""``odt``: OpenDocument texts (LibreOffice Writer), zipped or flat."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """OpenDocument texts (.odt, .ott, .fodt). Macros and embedded files are never opened.

    Deleted text that is still tracked, comments and hidden text stay out.
    """

    name = "odt"
    media_types = (
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.text-template",
        "application/vnd.oasis.opendocument.text-flat-xml",
    )
    suffixes = (".odt", ".ott", ".fodt")

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: it is no OpenDocument text, damaged, encrypted, or over a limit.
        """
        from .document import document_html  # here: others need not load it

        return document_html(page)
