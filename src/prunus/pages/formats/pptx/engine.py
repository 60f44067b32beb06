"""``pptx``: PowerPoint slides, one section each: shapes in reading order, then speaker notes and comments."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """PowerPoint presentations (.pptx, .pptm, .ppsx). Macros and embedded files are never opened.

    The first words of slide N are in ``<data value="slide-N">``. Speaker notes, comments and hidden slides are asides;
    hidden shapes are left out.
    """

    name = "pptx"
    media_types = (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    )
    suffixes = (".pptx", ".pptm", ".ppsx")

    def to_html(self, page: Page) -> str:
        """Return the presentation as HTML.

        :raises BadPage: the page is no presentation, is damaged or encrypted, or exceeds a limit.
        """
        from .slides import slides_html  # lazy: a program that reads no such file does not load it

        return slides_html(page)
