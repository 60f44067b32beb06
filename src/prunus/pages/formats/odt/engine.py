"""``odt``: OpenDocument texts (LibreOffice Writer), zipped or flat."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """OpenDocument texts (.odt, .ott, .fodt). Macros and embedded files are never opened.

    Tracked deletions and hidden text are left out; comments are asides.
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

        :raises BadPage: the page is no OpenDocument text, is damaged or encrypted, or exceeds a limit.
        """
        from .document import document_html  # lazy: a program that reads no such file does not load it

        return document_html(page)
